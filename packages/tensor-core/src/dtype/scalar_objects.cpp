// Numbers: between Python objects and cb_scalar, and of tensors.
#include <cstring>

#include "dispatch/call.hpp"
#include "dispatch/dispatch_hook.hpp"
#include "dispatch/torch_dispatch.hpp"
#include "dtype/scalar.hpp"
#include "interop/interop.hpp"
#include "record/refuse.hpp"

namespace candelabra {

namespace {

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

PyObject* whole_object(const cb_scalar& scalar) {
  if (scalar.flags & CB_SCALAR_UNSIGNED) return PyLong_FromUnsignedLongLong(static_cast<uint64_t>(scalar.i));
  return PyLong_FromLongLong(scalar.i);
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
