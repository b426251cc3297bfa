// Numbers: between Python objects, cb_scalar and one element of a tensor.
#include <cmath>
#include <cstring>
#include <limits>

#include "candelabra/half.hpp"
#include "candelabra/small_floats.hpp"
#include "dispatch/call.hpp"
#include "dispatch/dispatch_hook.hpp"
#include "dispatch/torch_dispatch.hpp"
#include "interop/interop.hpp"
#include "record/refuse.hpp"

namespace candelabra {

namespace {

cb_scalar bool_scalar(bool value) {
  return {CB_SCALAR_BOOL, 0, value, value ? 1.0 : 0.0, 0, 0};
}
cb_scalar int_scalar(int64_t value) {
  return {CB_SCALAR_INT, 0, value, static_cast<double>(value), 0, 0};
}
cb_scalar unsigned_scalar(uint64_t value) {
  const int32_t flags = value >> 63 ? CB_SCALAR_UNSIGNED : 0;
  return {CB_SCALAR_INT, flags, static_cast<int64_t>(value), static_cast<double>(value), 0, 0};
}
cb_scalar float_scalar(double value) {
  return {CB_SCALAR_FLOAT, 0, 0, value, 0, 0};
}
cb_scalar complex_scalar(double re, double im) {
  return {CB_SCALAR_COMPLEX, 0, 0, re, im, 0};
}

cb_scalar scalar_from_long(PyObject* object) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (value == -1 && !overflow && PyErr_Occurred()) throw PythonError();
  if (overflow > 0) {
    const unsigned long long large = PyLong_AsUnsignedLongLong(object);
    if (!PyErr_Occurred()) return unsigned_scalar(large);
    PyErr_Clear();  // it is longer than 64 bits
  }
  check(!overflow, PyExc_ValueError, "Overflow when unpacking long long: the integer does not fit into 64 bits");
  return int_scalar(value);
}

// Rounds towards zero. What does not fit becomes the smallest int64, as the processor's own
// conversion does, instead of undefined.
int64_t truncate(double value) {
  if (!(value >= -0x1p63 && value < 0x1p63)) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);  // float index: in range by the line above
}

// The same for uint64, whose upper half int64 lacks.
uint64_t truncate_unsigned(double value) {
  // float index: in range by the condition
  return value >= 0x1p63 && value < 0x1p64 ? static_cast<uint64_t>(value) : static_cast<uint64_t>(truncate(value));
}

PyObject* whole_object(const cb_scalar& scalar) {
  if (scalar.flags & CB_SCALAR_UNSIGNED) return PyLong_FromUnsignedLongLong(static_cast<uint64_t>(scalar.i));
  return PyLong_FromLongLong(scalar.i);
}

float whole_as_float(const cb_scalar& scalar) {
  return scalar.flags & CB_SCALAR_UNSIGNED ? static_cast<float>(static_cast<uint64_t>(scalar.i))
                                           : static_cast<float>(scalar.i);
}

template <typename T>
void store(T value, void* element) {
  std::memcpy(element, &value, sizeof(T));
}

template <typename T>
T load(const void* element) {
  T value;
  std::memcpy(&value, element, sizeof(T));
  return value;
}

bool whole(const cb_scalar& scalar) {
  return scalar.kind == CB_SCALAR_BOOL || scalar.kind == CB_SCALAR_INT;
}

}  // namespace

PyObject* scalar_object(const cb_scalar& scalar) {
  switch (scalar.kind) {
    case CB_SCALAR_BOOL:
      return PyBool_FromLong(scalar.i != 0);
    case CB_SCALAR_INT:
      return whole_object(scalar);
    case CB_SCALAR_FLOAT:
      return PyFloat_FromDouble(scalar.re);
    default:
      return PyComplex_FromDoubles(scalar.re, scalar.im);
  }
}

bool is_numpy_scalar(PyObject* object) {
  // Every NumPy scalar type derives from numpy.generic; its name is enough, so NumPy need not be
  // imported.
  for (PyTypeObject* type = Py_TYPE(object); type; type = type->tp_base) {
    if (std::strcmp(type->tp_name, "numpy.number") == 0) return true;
    if (std::strcmp(type->tp_name, "numpy.bool") == 0 || std::strcmp(type->tp_name, "numpy.bool_") == 0) return true;
  }
  return false;
}

bool is_number(PyObject* object) {
  // Bool is an int
  if (PyFloat_Check(object) || PyLong_Check(object) || PyComplex_Check(object)) return true;
  return !is_tensor(object) && is_numpy_scalar(object);
}

cb_scalar scalar_from_object(PyObject* object) {
  if (PyFloat_Check(object)) return float_scalar(PyFloat_AS_DOUBLE(object));
  if (PyBool_Check(object)) return bool_scalar(object == Py_True);
  if (PyLong_Check(object)) return scalar_from_long(object);
  if (PyComplex_Check(object)) return complex_scalar(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object));
  if (is_tensor(object)) return item(as_tensor(object));
  if (is_numpy_scalar(object)) {
    const char* type_name = Py_TYPE(object)->tp_name;
    if (std::strncmp(type_name, "numpy.bool", 10) == 0) {
      const int truth = PyObject_IsTrue(object);
      if (truth < 0) throw PythonError();
      return bool_scalar(truth != 0);
    }
    if (std::strncmp(type_name, "numpy.complex", 13) == 0 || std::strncmp(type_name, "numpy.clongdouble", 17) == 0) {
      const Py_complex value = PyComplex_AsCComplex(object);
      if (PyErr_Occurred()) throw PythonError();
      return complex_scalar(value.real, value.imag);
    }
    if (PyIndex_Check(object)) {
      Ref<> integer(PyNumber_Index(object));
      if (integer) return scalar_from_long(integer.get());
      PyErr_Clear();  // a NumPy float has the slot but refuses: it is read as a float below
    }
    const double value = PyFloat_AsDouble(object);
    if (value == -1.0 && PyErr_Occurred()) throw PythonError();
    return float_scalar(value);
  }
  raise(PyExc_TypeError, "must be a number, not ", Py_TYPE(object)->tp_name);
}

void store_scalar(const cb_scalar& scalar, Dtype dtype, void* element) {
  check(!(scalar.flags & CB_SCALAR_UNSIGNED) || !is_integral(dtype) || dtype == Dtype::Bool || dtype == Dtype::UInt64,
        PyExc_RuntimeError, "value cannot be converted to type ", name(dtype),
        " without overflow: ", static_cast<uint64_t>(scalar.i));
  const int64_t integer = whole(scalar) || is_floating(dtype) || is_complex(dtype) ? scalar.i : truncate(scalar.re);
  switch (dtype) {
    case Dtype::Bool:
      return store<uint8_t>(whole(scalar) ? scalar.i != 0 : scalar.re != 0 || scalar.im != 0, element);
    case Dtype::UInt8:
      return store(static_cast<uint8_t>(integer), element);
    case Dtype::Int8:
      return store(static_cast<int8_t>(integer), element);
    case Dtype::Int16:
      return store(static_cast<int16_t>(integer), element);
    case Dtype::Int32:
      return store(static_cast<int32_t>(integer), element);
    case Dtype::Int64:
      return store(integer, element);
    case Dtype::UInt16:
      return store(static_cast<uint16_t>(integer), element);
    case Dtype::UInt32:
      return store(static_cast<uint32_t>(integer), element);
    case Dtype::UInt64:
      return store(whole(scalar) ? static_cast<uint64_t>(scalar.i) : truncate_unsigned(scalar.re), element);
    case Dtype::Float16:
      return store(half_bits::float16_from_double(scalar.re), element);
    case Dtype::BFloat16:
      return store(half_bits::bfloat16_from_double(scalar.re), element);
    // From the integer where there is one, so that it is rounded once.
    case Dtype::Float32:
      return store(whole(scalar) ? whole_as_float(scalar) : static_cast<float>(scalar.re), element);
    case Dtype::Float64:
      return store(scalar.re, element);
    case Dtype::Float8E4M3Fn:
    case Dtype::Float8E5M2:
    case Dtype::Float8E4M3Fnuz:
    case Dtype::Float8E5M2Fnuz:
    case Dtype::Float8E8M0Fnu:
      return small_floats::dispatch_float8(static_cast<int32_t>(dtype), [&]<int32_t Format>() {
        store(small_floats::float8_from_float<Format>(static_cast<float>(scalar.re)), element);
      });
    case Dtype::Complex32: {
      const uint16_t parts[2] = {half_bits::float16_from_double(scalar.re), half_bits::float16_from_double(scalar.im)};
      std::memcpy(element, parts, sizeof(parts));
      return;
    }
    case Dtype::Complex64: {
      const float parts[2] = {whole(scalar) ? whole_as_float(scalar) : static_cast<float>(scalar.re),
                              static_cast<float>(scalar.im)};
      std::memcpy(element, parts, sizeof(parts));
      return;
    }
    case Dtype::Complex128: {
      const double parts[2] = {scalar.re, scalar.im};
      std::memcpy(element, parts, sizeof(parts));
      return;
    }
  }
}

cb_scalar load_scalar(Dtype dtype, const void* element) {
  switch (dtype) {
    case Dtype::Bool:
      return bool_scalar(load<uint8_t>(element) != 0);
    case Dtype::UInt8:
      return int_scalar(load<uint8_t>(element));
    case Dtype::Int8:
      return int_scalar(load<int8_t>(element));
    case Dtype::Int16:
      return int_scalar(load<int16_t>(element));
    case Dtype::Int32:
      return int_scalar(load<int32_t>(element));
    case Dtype::Int64:
      return int_scalar(load<int64_t>(element));
    case Dtype::UInt16:
      return int_scalar(load<uint16_t>(element));
    case Dtype::UInt32:
      return int_scalar(load<uint32_t>(element));
    case Dtype::UInt64:
      return unsigned_scalar(load<uint64_t>(element));
    case Dtype::Float16:
      return float_scalar(half_bits::float16_to_float(load<uint16_t>(element)));
    case Dtype::BFloat16:
      return float_scalar(half_bits::bfloat16_to_float(load<uint16_t>(element)));
    case Dtype::Float32:
      return float_scalar(load<float>(element));
    case Dtype::Float64:
      return float_scalar(load<double>(element));
    case Dtype::Float8E4M3Fn:
    case Dtype::Float8E5M2:
    case Dtype::Float8E4M3Fnuz:
    case Dtype::Float8E5M2Fnuz:
    case Dtype::Float8E8M0Fnu:
      return small_floats::dispatch_float8(static_cast<int32_t>(dtype), [&]<int32_t Format>() {
        return float_scalar(small_floats::float8_to_float<Format>(load<uint8_t>(element)));
      });
    case Dtype::Complex32:
      return complex_scalar(
          half_bits::float16_to_float(load<uint16_t>(element)),
          half_bits::float16_to_float(load<uint16_t>(static_cast<const char*>(element) + sizeof(uint16_t))));
    case Dtype::Complex64:
      return complex_scalar(load<float>(element), load<float>(static_cast<const char*>(element) + sizeof(float)));
    case Dtype::Complex128:
      return complex_scalar(load<double>(element), load<double>(static_cast<const char*>(element) + sizeof(double)));
  }
  raise(PyExc_RuntimeError, "unknown dtype");
}

cb_scalar item(TensorObject* self) {
  check(self->numel == 1, PyExc_RuntimeError, "a Tensor with ", self->numel, " elements cannot be converted to Scalar");
  refuse_recording("item(), bool(), int() or float() reads the value of a tensor");
  if (dispatch_hook() && is_wrapper(as_object(self))) {
    return scalar_from_object(owned(PyObject_CallMethod(as_object(self), "item", nullptr)).get());
  }
  if (self->storage->is_host_visible) {
    wait_for(self->device());
    return load_scalar(self->dtype, self->data());
  }
  if (is_meta(self->device()) && type_dispatches(Py_TYPE(as_object(self)))) {
    return scalar_from_object(dispatched_item(self).get());
  }
  check(!is_meta(self->device()), PyExc_RuntimeError, "Tensor.item() cannot be called on meta tensors");
  alignas(16) char element[16];
  copy_bytes_to_host(element, position_of(*self), static_cast<size_t>(itemsize(self->dtype)));
  return load_scalar(self->dtype, element);
}

TensorRef number_tensor(const cb_scalar& number, Dtype dtype, Device device) {
  TensorRef result = empty({}, dtype, device);
  alignas(16) char element[16];
  store_scalar(number, dtype, element);
  copy_bytes_from_host(position_of(*result.get()), element, static_cast<size_t>(itemsize(dtype)));
  return result;
}

// ---- a tensor as a Python number

namespace {

cb_scalar single_value(PyObject* self) {
  TensorObject* tensor = as_tensor(self);
  check(tensor->numel == 1, PyExc_ValueError,
        "only one element tensors can be converted to Python scalars, this one has shape ", shown(tensor->sizes));
  return item(tensor);
}

void refuse_complex(const cb_scalar& value, const char* type_name) {
  check(value.kind != CB_SCALAR_COMPLEX || value.im == 0, PyExc_RuntimeError, "value cannot be converted to type ",
        type_name, " without overflow: it is complex");
}

}  // namespace

int tensor_bool(PyObject* self) {
  return guarded(-1, [&] {
    const int64_t numel = as_tensor(self)->numel;
    check(numel != 0, PyExc_RuntimeError, "Boolean value of Tensor with no values is ambiguous");
    check(numel == 1, PyExc_RuntimeError, "Boolean value of Tensor with more than one value is ambiguous");
    const cb_scalar value = item(as_tensor(self));
    return static_cast<int>(whole(value) ? value.i != 0 : value.re != 0 || value.im != 0);
  });
}

PyObject* tensor_int(PyObject* self) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    const cb_scalar value = single_value(self);
    refuse_complex(value, "int64_t");
    return whole(value) ? whole_object(value) : PyLong_FromDouble(value.re);
  });
}

PyObject* tensor_float(PyObject* self) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    const cb_scalar value = single_value(self);
    refuse_complex(value, "double");
    return PyFloat_FromDouble(value.re);
  });
}

PyObject* tensor_complex(PyObject* self, PyObject*) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    const cb_scalar value = single_value(self);
    return PyComplex_FromDoubles(value.re, value.im);
  });
}

PyObject* tensor_index(PyObject* self) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    const TensorObject* tensor = as_tensor(self);
    check(tensor->numel == 1 && is_integral(tensor->dtype), PyExc_TypeError,
          "only integer tensors of a single element can be converted to an index");
    return whole_object(item(as_tensor(self)));
  });
}

}  // namespace candelabra
