// candelabra.tensor and tolist: conversion between tensors and numbers or nested sequences.
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "dispatch/dispatch_hook.hpp"
#include "dispatch/torch_dispatch.hpp"
#include "interop/interop.hpp"
#include "memory/host_block.hpp"
#include "record/refuse.hpp"

namespace candelabra {

namespace {

// How the numbers are stored while they are read: the widest kind so far, or that of the requested
// dtype.
enum class Kind : int { Bool, Int, Float, Complex };

Kind kind_of(Dtype dtype) {
  if (dtype == Dtype::Bool) return Kind::Bool;
  if (is_complex(dtype)) return Kind::Complex;
  return is_floating(dtype) ? Kind::Float : Kind::Int;
}

// The dtype of a NumPy scalar, by the name of its type.
Dtype dtype_of_numpy_scalar(PyObject* object, const cb_scalar& value) {
  const char* type_name = Py_TYPE(object)->tp_name;
  const char* dot = std::strchr(type_name, '.');
  for (int i = 0; dot && i < dtype_count; ++i) {
    if (std::strcmp(dtype_infos[i].name, dot + 1) == 0) return static_cast<Dtype>(i);
  }
  switch (value.kind) {
    case CB_SCALAR_BOOL:
      return Dtype::Bool;
    case CB_SCALAR_INT:
      return Dtype::Int64;
    case CB_SCALAR_FLOAT:
      return Dtype::Float64;
    default:
      return Dtype::Complex128;
  }
}

Dtype dtype_of_number(const cb_scalar& value) {
  switch (value.kind) {
    case CB_SCALAR_BOOL:
      return Dtype::Bool;
    case CB_SCALAR_INT:
      return Dtype::Int64;
    case CB_SCALAR_FLOAT:
      return default_dtype();
    default:
      return complex_of(default_dtype());
  }
}

bool is_text(PyObject* object) {
  return PyUnicode_Check(object) || PyBytes_Check(object) || PyByteArray_Check(object);
}
bool is_sequence(PyObject* object) {
  return PyList_Check(object) || PyTuple_Check(object) ||
         (PySequence_Check(object) && !is_text(object) && !PyDict_Check(object));
}

// Reads nested sequences in one pass and stores each number as it is read.
class Reader {
 public:
  Reader(PyObject* data, std::optional<Dtype> wanted) : wanted_(wanted), kind_(wanted ? kind_of(*wanted) : Kind::Bool) {
    find_sizes(data);
    const int64_t count = product(sizes_);
    check(count < (int64_t{1} << 40), PyExc_RuntimeError, "tensor(): too many elements: ", count);
    resize(static_cast<size_t>(count));
    if (count > 0)
      read(data, 0);
    else
      check_empty(data, 0);
  }

  const Dims& sizes() const { return sizes_; }
  Dtype dtype() const {
    if (wanted_) return *wanted_;
    if (!seen_) return default_dtype();
    std::optional<Dtype> result;
    for (int i = 0; i < dtype_count; ++i) {
      if (seen_ >> i & 1) result = result ? promote(*result, static_cast<Dtype>(i)) : static_cast<Dtype>(i);
    }
    return *result;
  }

  // Writes the elements in this dtype.
  void write(Dtype dtype, void* destination) const {
    const size_t count = static_cast<size_t>(product(sizes_));
    if (kind_ == Kind::Float && dtype == Dtype::Float32) {
      float* to = static_cast<float*>(destination);
      for (size_t i = 0; i < count; ++i) to[i] = static_cast<float>(floats_[i]);
    } else if (kind_ == Kind::Float && dtype == Dtype::Float64) {
      std::memcpy(destination, floats_.data(), count * sizeof(double));
    } else if (kind_ == Kind::Int && dtype == Dtype::Int64) {
      std::memcpy(destination, integers_.data(), count * sizeof(int64_t));
    } else if (kind_ == Kind::Bool && dtype == Dtype::Bool) {
      std::memcpy(destination, booleans_.data(), count);
    } else {
      char* to = static_cast<char*>(destination);
      for (size_t i = 0; i < count; ++i, to += itemsize(dtype)) store_scalar(value(i), dtype, to);
    }
  }

 private:
  cb_scalar value(size_t i) const {
    switch (kind_) {
      case Kind::Bool:
        return {CB_SCALAR_BOOL, 0, booleans_[i], static_cast<double>(booleans_[i]), 0, 0};
      case Kind::Int:
        if (unsigned_ && integers_[i] < 0) {
          return {CB_SCALAR_INT,
                  CB_SCALAR_UNSIGNED,
                  integers_[i],
                  static_cast<double>(static_cast<uint64_t>(integers_[i])),
                  0,
                  0};
        }
        return {CB_SCALAR_INT, 0, integers_[i], static_cast<double>(integers_[i]), 0, 0};
      case Kind::Float:
        return {CB_SCALAR_FLOAT, 0, 0, floats_[i], 0, 0};
      default:
        return {CB_SCALAR_COMPLEX, 0, 0, floats_[2 * i], floats_[2 * i + 1], 0};
    }
  }

  void resize(size_t count) {
    switch (kind_) {
      case Kind::Bool:
        return booleans_.resize(count);
      case Kind::Int:
        return integers_.resize(count);
      case Kind::Float:
        return floats_.resize(count);
      default:
        return floats_.resize(2 * count);
    }
  }

  // Converts the numbers read so far to a wider kind.
  void widen(Kind kind) {
    const size_t count = static_cast<size_t>(product(sizes_));
    std::vector<uint8_t> booleans = std::move(booleans_);
    std::vector<int64_t> integers = std::move(integers_);
    std::vector<double> floats = std::move(floats_);
    booleans_.clear(), integers_.clear(), floats_.clear();
    const Kind old = std::exchange(kind_, kind);
    resize(count);
    const auto old_value = [&](size_t i) {
      if (old == Kind::Int && unsigned_ && integers[i] < 0)
        return static_cast<double>(static_cast<uint64_t>(integers[i]));
      return old == Kind::Bool  ? static_cast<double>(booleans[i])
             : old == Kind::Int ? static_cast<double>(integers[i])
                                : floats[i];
    };
    for (size_t i = 0; i < position_; ++i) {
      if (kind == Kind::Int) {
        integers_[i] = booleans[i];
      } else if (kind == Kind::Float) {
        floats_[i] = old_value(i);
      } else {
        floats_[2 * i] = old_value(i);
      }
    }
  }

  // A tensor within a sequence is one number, as in PyTorch.
  void find_sizes(PyObject* data) {
    Ref<> current = Ref<>::borrow(data);
    while (true) {
      if (PyFloat_CheckExact(current.get()) || PyLong_CheckExact(current.get())) return;
      if (is_tensor(current.get())) {
        if (current.get() != data) return;
        for (int64_t size : as_tensor(current.get())->sizes) add_size(size);
        return;
      }
      if (is_numpy_array(current.get())) {
        for (int64_t size : block_of_array(current.get()).sizes) add_size(size);
        return;
      }
      if (is_number(current.get()) || !is_sequence(current.get())) return;
      const Py_ssize_t length = PySequence_Size(current.get());
      if (length < 0) throw PythonError();
      add_size(length);
      if (length == 0) return;
      Ref<> first(PySequence_GetItem(current.get(), 0));
      if (!first) {
        PyErr_Clear();
        raise(PyExc_ValueError, "could not determine the shape of object type '", Py_TYPE(current.get())->tp_name, "'");
      }
      current = std::move(first);
    }
  }

  void add_size(int64_t size) {
    check(sizes_.size() < max_dims, PyExc_ValueError, "too many dimensions: a tensor has at most ", max_dims);
    sizes_.push_back(size);
  }

  void check_length(int64_t length, int dim) const {
    check(length == sizes_[dim], PyExc_ValueError, "expected sequence of length ", sizes_[dim], " at dim ", dim,
          " (got ", length, ")");
  }

  // A tensor with a dimension of size 0 has no elements, but the sequences must still have
  // consistent lengths.
  void check_empty(PyObject* data, int dim) const {
    if (dim >= sizes_.size() || is_tensor(data) || is_numpy_array(data)) return;
    check(is_sequence(data), PyExc_TypeError, "not a sequence: '", Py_TYPE(data)->tp_name, "' at dim ", dim);
    const Ref<> items = owned(PySequence_Fast(data, "not a sequence"));
    check_length(PySequence_Fast_GET_SIZE(items.get()), dim);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
      check_empty(PySequence_Fast_GET_ITEM(items.get(), i), dim + 1);
    }
  }

  void read(PyObject* data, int dim) {
    if (dim == sizes_.size() && (PyFloat_CheckExact(data) || PyLong_CheckExact(data))) return read_number(data);
    if (is_tensor(data)) return read_tensor(as_tensor(data), dim);
    if (is_numpy_array(data)) return read_block(block_of_array(data), dim);
    if (dim == sizes_.size()) return read_number(data);
    check(is_sequence(data), PyExc_TypeError, "not a sequence: expected one of length ", sizes_[dim], " at dim ", dim,
          ", got '", Py_TYPE(data)->tp_name, "'");
    const Ref<> items = owned(PySequence_Fast(data, "not a sequence"));
    check_length(PySequence_Fast_GET_SIZE(items.get()), dim);
    const bool innermost = dim + 1 == sizes_.size();
    for (Py_ssize_t i = 0; i < sizes_[dim]; ++i) {
      // Checked again: reading a number may run Python code that changes the list.
      check_length(PySequence_Fast_GET_SIZE(items.get()), dim);
      PyObject* entry = PySequence_Fast_GET_ITEM(items.get(), i);
      if (innermost && read_plain(entry)) continue;
      const Ref<> kept = Ref<>::borrow(entry);
      read(entry, dim + 1);
    }
  }

  // Fast path for exact floats and ints that need no conversion.
  bool read_plain(PyObject* entry) {
    if (kind_ == Kind::Float && PyFloat_CheckExact(entry)) {
      floats_[position_++] = PyFloat_AS_DOUBLE(entry);
      seen_ |= 1u << static_cast<int>(default_dtype());
      return true;
    }
    if (kind_ == Kind::Int && !wanted_ && PyLong_CheckExact(entry)) {
      int overflow = 0;
      const long long value = PyLong_AsLongLongAndOverflow(entry, &overflow);
      if (overflow) return false;  // read_number() raises the error
      integers_[position_++] = value;
      negative_ |= value < 0;
      seen_ |= 1u << static_cast<int>(Dtype::Int64);
      return true;
    }
    return false;
  }

  // A floating dtype holds integers of any length.
  cb_scalar number_from(PyObject* data) {
    if (wanted_ && kind_ >= Kind::Float && PyLong_Check(data)) {
      const double value = PyLong_AsDouble(data);
      if (value == -1.0 && PyErr_Occurred()) throw PythonError();
      return {CB_SCALAR_FLOAT, 0, 0, value, 0, 0};
    }
    // As bool an integer of any length is its truth.
    if (wanted_ == Dtype::Bool && PyLong_Check(data))
      return scalar_from_object(PyObject_IsTrue(data) ? Py_True : Py_False);
    return scalar_from_object(data);
  }

  void read_number(PyObject* data) {
    if (!is_number(data)) {
      // The first entry decides about the dimensions, and a text is a sequence of texts.
      check(!is_text(data) || position_ > 0, PyExc_ValueError, "too many dimensions '", Py_TYPE(data)->tp_name, "'");
      check(!is_text(data), PyExc_TypeError, "new(): invalid data type '", Py_TYPE(data)->tp_name, "'");
      check(!is_sequence(data), PyExc_TypeError, "'", Py_TYPE(data)->tp_name,
            "' object cannot be interpreted as a number: the sequences are not nested equally deep");
      raise(PyExc_RuntimeError, "Could not infer dtype of ", Py_TYPE(data)->tp_name);
    }
    const cb_scalar value = number_from(data);
    const bool plain = PyFloat_CheckExact(data) || PyLong_Check(data) || PyComplex_CheckExact(data);
    add(value, plain ? dtype_of_number(value) : dtype_of_numpy_scalar(data, value));
  }

  void read_tensor(TensorObject* tensor, int dim) {
    if (dim == 0 || dim < sizes_.size()) return read_block(block_of_tensor(tensor), dim);
    check(tensor->numel == 1, PyExc_ValueError, "only one element tensors can be converted to Python scalars");
    const HostBlock block = block_of_tensor(tensor);
    add(load_scalar(block.dtype, block.data), block.dtype);
  }

  void read_block(const HostBlock& block, int dim) {
    check(dim + block.sizes.size() == sizes_.size(), PyExc_ValueError,
          "only one element tensors can be converted to Python scalars: the entries of the sequence have different "
          "numbers of "
          "dimensions");
    for (int i = 0; i < block.sizes.size(); ++i) check_length(block.sizes[i], dim + i);
    for_each_element(block, [&](const char* element) { add(load_scalar(block.dtype, element), block.dtype); });
  }

  void add(const cb_scalar& value, Dtype dtype) {
    seen_ |= 1u << static_cast<int>(dtype);
    if (!wanted_ && value.kind > static_cast<int>(kind_)) widen(static_cast<Kind>(value.kind));
    const size_t i = position_++;
    const bool whole = value.kind <= CB_SCALAR_INT;
    if (value.flags & CB_SCALAR_UNSIGNED) {
      // Without a requested dtype, only an element of a uint64 array may be this large.
      check(wanted_ || dtype == Dtype::UInt64, PyExc_ValueError,
            "Overflow when unpacking long long: the integer does not fit into 64 bits; give dtype=candelabra.uint64");
      unsigned_ = true;
    } else if (whole) {
      negative_ |= value.i < 0;
    }
    check(!unsigned_ || !negative_ || kind_ != Kind::Int, PyExc_RuntimeError,
          "no integer dtype holds both negative numbers and numbers of 2**63 and above");
    switch (kind_) {
      case Kind::Bool:
        booleans_[i] = whole ? value.i != 0 : value.re != 0 || value.im != 0;
        return;
      case Kind::Int:
        integers_[i] = whole ? value.i : truncated(value);
        break;
      case Kind::Float:
        check(value.kind != CB_SCALAR_COMPLEX, PyExc_TypeError, "must be real number, not complex: dtype is ",
              wanted_name());
        floats_[i] = value.re;
        return;
      case Kind::Complex:
        floats_[2 * i] = value.re;
        floats_[2 * i + 1] = value.im;
        return;
    }
    const bool above = whole ? value.flags & CB_SCALAR_UNSIGNED : value.re >= 0x1p63;
    if (wanted_) check_fits(integers_[i], above);
  }

  const char* wanted_name() const { return wanted_ ? name(*wanted_) : "inferred"; }

  int64_t truncated(const cb_scalar& value) {
    check(value.kind != CB_SCALAR_COMPLEX, PyExc_TypeError, "must be real number, not complex: dtype is ",
          wanted_name());
    check(!std::isnan(value.re), PyExc_ValueError, "cannot convert float NaN to integer");
    if (wanted_ == Dtype::UInt64 && value.re >= 0x1p63 && value.re < 0x1p64) {
      unsigned_ = true;
      return static_cast<int64_t>(static_cast<uint64_t>(value.re));
    }
    const bool is_negative_of_unsigned = value.re < 0 && !info(*wanted_).is_signed;
    check(value.re >= -0x1p63 && value.re < 0x1p63 && !is_negative_of_unsigned, PyExc_RuntimeError,
          "value cannot be converted to type ", wanted_name(), " without overflow");
    return static_cast<int64_t>(value.re);
  }

  void check_fits(int64_t value, bool is_unsigned) const {
    const Dtype wanted = *wanted_;
    const int bits = 8 * itemsize(wanted);
    bool fits = is_unsigned ? wanted == Dtype::UInt64 : wanted != Dtype::UInt64 || value >= 0;
    if (!is_unsigned && bits < 64) {
      // A negative number is taken modulo the range of an unsigned dtype, as in PyTorch: -1 is 255.
      const bool is_signed = info(wanted).is_signed;
      const int64_t limit = int64_t{1} << (is_signed ? bits - 1 : bits);
      fits = value < limit && value >= (is_signed ? -limit : 1 - limit);
    }
    check(fits, PyExc_RuntimeError, "value cannot be converted to type ", wanted_name(), " without overflow: ", value);
  }

  std::optional<Dtype> wanted_;
  Kind kind_;
  Dims sizes_;
  uint32_t seen_ = 0;  // one bit for each dtype read
  size_t position_ = 0;
  bool negative_ = false, unsigned_ = false;  // integers < 0, or >= 2^63, were read
  std::vector<uint8_t> booleans_;
  std::vector<int64_t> integers_;
  std::vector<double> floats_;  // (real, imaginary) pairs for Kind::Complex
};

TensorRef convert_and_move(TensorRef tensor, std::optional<Dtype> dtype, Device device) {
  if (dtype) tensor = convert_dtype(tensor.get(), *dtype);
  return to_device(tensor.get(), device);
}

template <typename T>
T element_at(const char* data) {
  T value;
  std::memcpy(&value, data, sizeof(T));
  return value;
}

PyObject* number_object(Dtype dtype, const char* data) {
  PyObject* number;
  switch (dtype) {  // fast paths that avoid cb_scalar
    case Dtype::Float32:
      number = PyFloat_FromDouble(element_at<float>(data));
      break;
    case Dtype::Float64:
      number = PyFloat_FromDouble(element_at<double>(data));
      break;
    case Dtype::Int64:
      number = PyLong_FromLongLong(element_at<int64_t>(data));
      break;
    case Dtype::Int32:
      number = PyLong_FromLong(element_at<int32_t>(data));
      break;
    default:
      number = scalar_object(load_scalar(dtype, data));
      break;
  }
  if (!number) throw PythonError();
  return number;
}

PyObject* list_of(const HostBlock& block, int dim, const char* data) {
  if (dim == block.sizes.size()) return number_object(block.dtype, data);
  Ref<> list = owned(PyList_New(block.sizes[dim]));
  for (int64_t i = 0; i < block.sizes[dim]; ++i) {
    PyList_SET_ITEM(list.get(), i, list_of(block, dim + 1, data + i * block.strides[dim]));
  }
  return list.release();
}

// Reads memory that the host can access. `sizes` and `strides` (in elements) are those of the
// remaining dimensions.
PyObject* list_of(Dtype dtype, std::span<const int64_t> sizes, const int64_t* strides, const char* data) {
  if (sizes.empty()) return number_object(dtype, data);
  const int64_t step = strides[0] * itemsize(dtype);
  Ref<> list = owned(PyList_New(sizes[0]));
  if (sizes.size() == 1) {
    for (int64_t i = 0; i < sizes[0]; ++i) PyList_SET_ITEM(list.get(), i, number_object(dtype, data + i * step));
  } else {
    for (int64_t i = 0; i < sizes[0]; ++i) {
      PyList_SET_ITEM(list.get(), i, list_of(dtype, sizes.subspan(1), strides + 1, data + i * step));
    }
  }
  return list.release();
}

PyObject* tensor_from_data_function(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    check(count >= 1 && count <= 3, PyExc_TypeError, "tensor_from_data(data, dtype=None, device=None)");
    std::optional<Dtype> dtype;
    std::optional<Device> device;
    if (count > 1 && arguments[1] != Py_None) dtype = dtype_from_object(arguments[1]);
    if (count > 2 && arguments[2] != Py_None) device = device_from_object(arguments[2]);
    return tensor_from_data(arguments[0], dtype, device).release_object();
  });
}

PyObject* tolist_function(PyObject*, PyObject* object) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    check(is_tensor(object), PyExc_TypeError, "tolist() takes a Tensor, not ", Py_TYPE(object)->tp_name);
    return nested_list(as_tensor(object));
  });
}

PyObject* tensor_item(PyObject* self, PyObject*) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] { return scalar_object(item(as_tensor(self))); });
}

PyObject* tensor_tolist(PyObject* self, PyObject*) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] { return nested_list(as_tensor(self)); });
}

PyCFunction with_keywords(PyObject* (*function)(PyObject*, PyObject*, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

}  // namespace

TensorRef tensor_from_data(PyObject* data, std::optional<Dtype> dtype, std::optional<Device> device) {
  if (is_tensor(data) && dispatch_hook() && is_wrapper(data)) {
    const Ref<> detached = owned(PyObject_CallMethod(data, "detach", nullptr));
    Ref<> made = owned(PyObject_CallMethod(detached.get(), "clone", nullptr));
    if (dtype) made = owned(PyObject_CallMethod(made.get(), "to", "O", dtype_object(*dtype)));
    return TensorRef(as_tensor(made.release()));
  }
  if (is_tensor(data)) {
    TensorObject* source = as_tensor(data);
    TensorRef result = convert_and_move(make_alias(source), dtype, device.value_or(source->device()));
    // The result must not share memory with the caller's tensor.
    return result->storage == source->storage ? clone(result.get(), MemoryFormat::Preserve) : result;
  }
  const Device target = device ? *device : default_device();
  if (is_numpy_array(data)) return convert_and_move(copy_of_numpy(data, target), dtype, target);
  check(!is_text(data), PyExc_TypeError, "tensor(): invalid data type '", Py_TYPE(data)->tp_name, "'");
  const Reader reader(data, dtype);
  const Dtype result_dtype = reader.dtype();
  TensorRef result = empty(reader.sizes(), result_dtype, target);
  if (result->numel == 0) return result;
  if (result->storage->is_host_visible) {
    wait_for(target);
    reader.write(result_dtype, result->data());
    note_host_write(*result->storage);
  } else {
    std::vector<std::byte> buffer(static_cast<size_t>(result->numel) * itemsize(result_dtype));
    reader.write(result_dtype, buffer.data());
    copy_bytes_from_host(position_of(*result.get()), buffer.data(), buffer.size());
  }
  return result;
}

void refuse_wrapper_subclass(TensorObject* tensor, const char* method) {
  check(!is_meta(tensor->device()) || !type_dispatches(Py_TYPE(as_object(tensor))), PyExc_RuntimeError, method,
        " is not supported for tensor subclasses.");
}

PyObject* nested_list(TensorObject* self) {
  refuse_recording("tolist() reads the values of a tensor");
  refuse_wrapper_subclass(self, ".tolist()");
  if (self->storage->is_host_visible && !(dispatch_hook() && is_wrapper(as_object(self)))) {
    wait_for(self->device());
    // Making lists may collect garbage, which may run any code and replace the tensor's memory. So
    // keep the storage and copy the geometry.
    const Dims sizes = self->sizes, strides = self->strides;
    const std::unique_ptr<Storage, void (*)(Storage*)> kept(retain(self->storage), release);
    return list_of(self->dtype, sizes, strides.data(), self->data());
  }
  const HostBlock block = block_of_tensor(self);
  return list_of(block, 0, block.data);
}

HostBlock block_of_tensor(TensorObject* tensor) {
  if (dispatch_hook() && is_wrapper(as_object(tensor))) {
    const Ref<> value = owned(PyObject_CallMethod(as_object(tensor), "_readable", "s", "item"));
    return block_of_tensor(as_tensor(value.get()));
  }
  refuse_wrapper_subclass(tensor, ".numpy()");
  HostBlock block;
  block.dtype = tensor->dtype;
  block.sizes = tensor->sizes;
  TensorRef source = TensorRef::borrow(tensor);
  if (tensor->storage->is_host_visible) {
    wait_for(tensor->device());
    block.strides = tensor->strides;
    block.data = tensor->data();
    block.owner = Ref<>(source.release_object());
  } else {
    source = contiguous(tensor);
    block.strides = contiguous_strides(tensor->sizes);
    const size_t bytes = static_cast<size_t>(tensor->numel) * itemsize(tensor->dtype);
    block.owner = owned(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(bytes)));
    block.data = PyBytes_AS_STRING(block.owner.get());
    copy_bytes_to_host(PyBytes_AS_STRING(block.owner.get()), position_of(*source.get()), bytes);
  }
  // the stride of an unused dimension may overflow when scaled to bytes
  for (int i = 0; i < block.sizes.size(); ++i) {
    block.strides[i] = block.sizes[i] > 1 && tensor->numel ? block.strides[i] * itemsize(tensor->dtype) : 0;
  }
  return block;
}

PyMethodDef data_functions[] = {
    {"tensor_from_data", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(tensor_from_data_function)),
     METH_FASTCALL,
     "tensor_from_data(data, dtype=None, device=None) -> Tensor\n\nA new tensor from a number, nested sequences, an "
     "array or "
     "a tensor."},
    {"tolist", tolist_function, METH_O, "tolist(tensor)\n\nNested lists of Python numbers."},
    {nullptr, nullptr, 0, nullptr},
};

PyMethodDef interop_methods[] = {
    {"item", tensor_item, METH_NOARGS, "item($self)\n--\n\nThe value of a tensor of one element, as a Python number."},
    {"tolist", tensor_tolist, METH_NOARGS,
     "tolist($self)\n--\n\nNested lists of Python numbers; one number for a tensor without dimensions."},
    {"numpy", with_keywords(tensor_numpy), METH_VARARGS | METH_KEYWORDS,
     "numpy($self, *, force=False)\n--\n\nA NumPy array that shares the tensor's memory; with force=True, a copy if it "
     "cannot."},
    {"__array__", with_keywords(tensor_array), METH_VARARGS | METH_KEYWORDS,
     "__array__(dtype=None, copy=None)\n\nThe protocol of numpy.asarray()."},
    {"__complex__", tensor_complex, METH_NOARGS,
     "__complex__($self, /)\n--\n\nThe value of a tensor of one element, as a Python complex."},
    {"__dlpack__", with_keywords(tensor_dlpack), METH_VARARGS | METH_KEYWORDS,
     "__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)\n\nThe tensor as a DLPack capsule."},
    {"__dlpack_device__", tensor_dlpack_device, METH_NOARGS,
     "__dlpack_device__($self, /)\n--\n\nDLPack's device type and index."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace candelabra
