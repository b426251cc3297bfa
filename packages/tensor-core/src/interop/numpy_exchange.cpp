// NumPy and the buffer protocol, on the same memory. NumPy's headers are not needed: an array tells
// of itself by __array_struct__ (NumPy reference, "The array interface protocol"), and a tensor by
// Python's buffer protocol (PEP 3118).
#include <algorithm>
#include <cstring>
#include <vector>

#include "interop/interop.hpp"
#include "memory/copy_on_write.hpp"
#include "memory/host_block.hpp"
#include "record/refuse.hpp"

namespace candelabra {

namespace {

// What the capsule of __array_struct__ points to.
struct ArrayInterface {
  int two;
  int nd;
  char typekind;
  int itemsize;
  int flags;
  Py_intptr_t* shape;
  Py_intptr_t* strides;
  void* data;
  PyObject* descr;
};
enum : int { flag_not_swapped = 0x200, flag_writable = 0x400 };

constexpr const char* supported_types =
    "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and "
    "bool";

std::optional<Dtype> dtype_of_kind(char kind, int size) {
  for (int i = 0; i < dtype_count; ++i) {
    const DtypeInfo& candidate = dtype_infos[i];
    if (!candidate.numpy_type || candidate.itemsize != size) continue;
    if (candidate.numpy_type[0] == kind) return static_cast<Dtype>(i);
  }
  return std::nullopt;
}

std::string dtype_text(PyObject* array) {
  const Ref<> dtype = owned(PyObject_GetAttrString(array, "dtype"));
  const Ref<> type = owned(PyObject_GetAttrString(dtype.get(), "type"));
  const Ref<> name = owned(PyObject_GetAttrString(type.get(), "__name__"));
  const char* text = PyUnicode_AsUTF8(name.get());
  if (!text) throw PythonError();
  return std::string("numpy.") + text;
}

// PEP 3118's format of a dtype; null where it has none. NumPy's int64 is a long where a long has 64
// bits.
const char* buffer_format(Dtype dtype) {
  switch (dtype) {
    case Dtype::Bool:
      return "?";
    case Dtype::UInt8:
      return "B";
    case Dtype::Int8:
      return "b";
    case Dtype::Int16:
      return "h";
    case Dtype::Int32:
      return "i";
    case Dtype::Int64:
      return sizeof(long) == 8 ? "l" : "q";
    case Dtype::UInt16:
      return "H";
    case Dtype::UInt32:
      return "I";
    case Dtype::UInt64:
      return sizeof(long) == 8 ? "L" : "Q";
    case Dtype::Float16:
      return "e";
    case Dtype::Float32:
      return "f";
    case Dtype::Float64:
      return "d";
    case Dtype::Complex64:
      return "Zf";
    case Dtype::Complex128:
      return "Zd";
    case Dtype::BFloat16:
    case Dtype::Float8E4M3Fn:
    case Dtype::Float8E5M2:
    case Dtype::Float8E4M3Fnuz:
    case Dtype::Float8E5M2Fnuz:
    case Dtype::Float8E8M0Fnu:
    case Dtype::Complex32:
      return nullptr;
  }
  return nullptr;
}

// Kept by an exported buffer: the tensor may get other memory or another shape in the meantime.
struct BufferExport {
  Storage* storage;
  Py_ssize_t shape[max_dims];
  Py_ssize_t strides[max_dims];
};

bool is_fortran_contiguous(const TensorObject& tensor) {
  int64_t expected = 1;
  for (int i = 0; i < tensor.ndim(); ++i) {
    if (tensor.sizes[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.sizes[i];
  }
  return true;
}

void fill_buffer(TensorObject* tensor, Py_buffer* view, int flags) {
  if (!tensor->storage->is_host_visible) {
    raise(PyExc_BufferError, "the memory of device ", to_text(tensor->device()),
          " is not host memory. Use Tensor.cpu() to copy the tensor to host memory first.");
  }
  check(!tensor->requires_grad || !grad_mode.enabled, PyExc_BufferError,
        "Can't export a buffer of Tensor that requires grad. Use tensor.detach() first.");
  const char* format = buffer_format(tensor->dtype);
  check(format, PyExc_BufferError, "the buffer protocol has no format for ", name(tensor->dtype));
  const bool wants_strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
  check(wants_strides || tensor->contiguous, PyExc_BufferError,
        "the tensor is not contiguous, and the reader takes no strides");
  const auto wants = [flags](int order) { return (flags & order) == order; };
  const bool fortran = is_fortran_contiguous(*tensor);
  check(!wants(PyBUF_C_CONTIGUOUS) || tensor->contiguous, PyExc_BufferError, "the tensor is not C-contiguous");
  check(!wants(PyBUF_F_CONTIGUOUS) || fortran, PyExc_BufferError, "the tensor is not Fortran-contiguous");
  check(!wants(PyBUF_ANY_CONTIGUOUS) || tensor->contiguous || fortran, PyExc_BufferError,
        "the tensor is not contiguous");
  make_writable(tensor->storage);
  wait_for(tensor->device());
  alignas(16) static char nothing[16];
  const int size = itemsize(tensor->dtype);
  auto kept = std::make_unique<BufferExport>();
  for (int i = 0; i < tensor->ndim(); ++i) {
    kept->shape[i] = tensor->sizes[i];
    // Never stepped along
    if (__builtin_mul_overflow(tensor->strides[i], size, &kept->strides[i])) kept->strides[i] = size;
  }
  view->buf = tensor->numel ? tensor->data() : nothing;
  view->len = tensor->numel * size;
  view->itemsize = size;
  view->readonly = 0;
  view->ndim = tensor->ndim();
  view->format = flags & PyBUF_FORMAT ? const_cast<char*>(format) : nullptr;
  view->shape = (flags & PyBUF_ND) == PyBUF_ND ? kept->shape : nullptr;
  view->strides = wants_strides ? kept->strides : nullptr;
  view->suboffsets = nullptr;
  kept->storage = begin_export(tensor->storage);
  view->internal = kept.release();
  view->obj = Py_NewRef(as_object(tensor));
}

// A function of NumPy, which is imported now, if it is not yet.
Ref<> numpy_function(const char* function_name) {
  const Ref<> module(PyImport_ImportModule("numpy"));
  if (module) return owned(PyObject_GetAttrString(module.get(), function_name));
  check(PyErr_ExceptionMatches(PyExc_ImportError), PyExc_RuntimeError, "importing NumPy failed");
  PyErr_Clear();
  raise(PyExc_RuntimeError, "Numpy is not available: pip install numpy");
}

// An array on the tensor's own memory; the checks are done.
Ref<> array_on(TensorObject* tensor) {
  static constinit LookedUpOnce asarray;
  const Ref<> memory = owned(PyMemoryView_FromObject(as_object(tensor)));
  return owned(PyObject_CallOneArg(asarray.get([] { return numpy_function("asarray"); }), memory.get()));
}

void check_numpy_dtype(const TensorObject& tensor) {
  check(buffer_format(tensor.dtype), PyExc_TypeError, "Got unsupported ScalarType ", info(tensor.dtype).type_name,
        ": NumPy has no ", name(tensor.dtype), "; use tensor.",
        is_complex(tensor.dtype) ? "to(candelabra.complex64)" : "float()", ".numpy()");
}

Ref<> shared_array(TensorObject* tensor) {
  check(!tensor->requires_grad || !grad_mode.enabled, PyExc_RuntimeError,
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
  if (!tensor->storage->is_host_visible) {
    raise(PyExc_TypeError, "can't convert ", to_text(tensor->device()),
          " device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.");
  }
  check_numpy_dtype(*tensor);
  return array_on(tensor);
}

// A new array with the values, from any device.
Ref<> copied_array(TensorObject* tensor) {
  check_numpy_dtype(*tensor);
  const HostBlock block = block_of_tensor(tensor);
  const Ref<> new_array = numpy_function("empty");
  const Ref<> shape = owned(size_object(tensor->sizes));
  const std::string typestr = text('=', info(tensor->dtype).numpy_type);
  Ref<> array = owned(PyObject_CallFunction(new_array.get(), "Os", shape.get(), typestr.c_str()));
  Py_buffer view;
  if (PyObject_GetBuffer(array.get(), &view, PyBUF_CONTIG) < 0) throw PythonError();
  gather(block, view.buf);
  PyBuffer_Release(&view);
  return array;
}

void release_array(Storage& storage) {
  Py_DECREF(static_cast<PyObject*>(storage.owner));
}

PyObject* from_numpy(PyObject*, PyObject* array) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] { return tensor_from_numpy(array).release_object(); });
}

}  // namespace

bool is_numpy_array(PyObject* object) {
  for (PyTypeObject* type = Py_TYPE(object); type; type = type->tp_base) {
    if (std::strcmp(type->tp_name, "numpy.ndarray") == 0) return true;
  }
  return false;
}

HostBlock block_of_array(PyObject* array) {
  HostBlock block;
  block.owner = owned(PyObject_GetAttrString(array, "__array_struct__"));
  const auto* interface = static_cast<const ArrayInterface*>(PyCapsule_GetPointer(block.owner.get(), nullptr));
  if (!interface) throw PythonError();
  check(interface->two == 2, PyExc_TypeError, "__array_struct__ of '", Py_TYPE(array)->tp_name, "' is not valid");
  const std::optional<Dtype> dtype = dtype_of_kind(interface->typekind, interface->itemsize);
  if (!dtype) {
    raise(PyExc_TypeError, "can't convert np.ndarray of type ", dtype_text(array),
          ". The only supported types are: ", supported_types, ".");
  }
  check(interface->itemsize == 1 || (interface->flags & flag_not_swapped), PyExc_ValueError,
        "given numpy array has byte order different from the native byte order. Conversion between byte orders is "
        "currently not "
        "supported.");
  check(interface->nd <= max_dims, PyExc_ValueError, "a tensor has at most ", max_dims, " dimensions, the array has ",
        interface->nd);
  block.data = static_cast<const char*>(interface->data);
  block.dtype = *dtype;
  for (int i = 0; i < interface->nd; ++i) {
    block.sizes.push_back(interface->shape[i]);
    block.strides.push_back(interface->strides[i]);
  }
  block.writable = interface->flags & flag_writable;
  return block;
}

void gather(const HostBlock& block, void* destination) {
  char* to = static_cast<char*>(destination);
  const size_t size = static_cast<size_t>(itemsize(block.dtype));
  int64_t count = 1;
  bool dense = true;
  for (int i = block.sizes.size() - 1; i >= 0; --i) {
    dense &= block.sizes[i] == 1 || block.strides[i] == count * static_cast<int64_t>(size);
    count *= block.sizes[i];
  }
  if (dense || count == 0) {
    if (count) std::memcpy(to, block.data, static_cast<size_t>(count) * size);
    return;
  }
  const auto copy_as = [&]<typename T>(T) {
    for_each_element(block, [&](const char* element) {
      std::memcpy(to, element, sizeof(T));
      to += sizeof(T);
    });
  };
  struct Wide {
    uint64_t parts[2];
  };
  switch (size) {
    case 1:
      return copy_as(uint8_t{});
    case 2:
      return copy_as(uint16_t{});
    case 4:
      return copy_as(uint32_t{});
    case 8:
      return copy_as(uint64_t{});
    default:
      return copy_as(Wide{});
  }
}

Device host_device() {
  const Device chosen = default_device();
  if (device_type(chosen).has(CB_CAP_HOST_MEMORY)) return chosen;
  for (int i = 0; i < device_type_count(); ++i) {
    if (device_type(i).has(CB_CAP_HOST_MEMORY)) return {static_cast<int8_t>(i), 0};
  }
  const Device device = device_from_text("cpu");
  check(device_type(device).has(CB_CAP_HOST_MEMORY), PyExc_RuntimeError,
        "no installed backend computes in host memory");
  return device;
}

TensorRef tensor_from_numpy(PyObject* array) {
  check(is_numpy_array(array), PyExc_TypeError, "expected np.ndarray (got ", Py_TYPE(array)->tp_name, ")");
  HostBlock block = block_of_array(array);
  if (!block.writable) {
    warn(
        "The given NumPy array is not writable, and Candelabra does not support non-writable tensors. Writing to this "
        "tensor is "
        "undefined behavior. You may want to copy the array to protect its data or make it writable before converting "
        "it to a "
        "tensor.");
  }
  const int size = itemsize(block.dtype);
  int64_t extent = 1;
  bool is_empty = false;
  Dims strides;
  for (int i = 0; i < block.sizes.size(); ++i) {
    // A dimension of one entry is never stepped along, so its stride says nothing.
    const int64_t stride =
        block.sizes[i] > 1 ? block.strides[i] : std::clamp<int64_t>(block.strides[i] / size, 0, max_stride) * size;
    check(stride >= 0, PyExc_ValueError,
          "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
          "currently supported. "
          "(You can probably work around this by making a copy of your array  with array.copy().)");
    check(stride % size == 0, PyExc_ValueError,
          "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the "
          "memory.");
    strides.push_back(stride / size);
    is_empty |= block.sizes[i] == 0;
    extent += (block.sizes[i] - 1) * strides[i];
  }
  check(is_empty || is_aligned(block.data, block.dtype), PyExc_ValueError,
        "the memory of the given numpy array is not aligned to the size of its elements. Copy the numpy array to "
        "reallocate the "
        "memory.");
  const Device device = host_device();
  const size_t bytes = is_empty ? 0 : static_cast<size_t>(extent) * size;
  Storage* storage = adopt_storage(device, const_cast<char*>(block.data), bytes, release_array, Py_NewRef(array));
  return make_tensor(storage, block.dtype, std::move(block.sizes), std::move(strides), 0);
}

TensorRef copy_of_numpy(PyObject* array, Device device) {
  const HostBlock block = block_of_array(array);
  TensorRef result = empty(block.sizes, block.dtype, device);
  if (result->numel == 0) return result;
  if (result->storage->is_host_visible) {
    wait_for(device);
    gather(block, result->data());
    refuse_recording("a tensor is made from a NumPy array; make it outside the function");
    return result;
  }
  std::vector<std::byte> buffer(static_cast<size_t>(result->numel) * itemsize(block.dtype));
  gather(block, buffer.data());
  copy_bytes_from_host(position_of(*result.get()), buffer.data(), buffer.size());
  return result;
}

PyObject* tensor_numpy(PyObject* self, PyObject* arguments, PyObject* keywords) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    static const char* names[] = {"force", nullptr};
    int force = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|$p:numpy", const_cast<char**>(names), &force))
      return nullptr;
    TensorObject* tensor = as_tensor(self);
    refuse_wrapper_subclass(tensor, ".numpy()");
    if (!force) return shared_array(tensor).release();
    if (!tensor->storage->is_host_visible) return copied_array(tensor).release();
    return shared_array(make_alias(tensor).get()).release();
  });
}

PyObject* tensor_array(PyObject* self, PyObject* arguments, PyObject* keywords) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    static const char* names[] = {"dtype", "copy", nullptr};
    PyObject* dtype = Py_None;
    PyObject* copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|OO:__array__", const_cast<char**>(names), &dtype, &copy))
      return nullptr;
    Ref<> array = shared_array(as_tensor(self));
    if (dtype != Py_None) {
      // numpy.asarray refuses by itself what copy=False forbids; older NumPy knows no copy=None.
      const Ref<> same = owned(PyObject_CallMethod(array.get(), "astype", "O", dtype));
      const Ref<> before = owned(PyObject_GetAttrString(array.get(), "dtype"));
      const Ref<> after = owned(PyObject_GetAttrString(same.get(), "dtype"));
      const int equal = PyObject_RichCompareBool(before.get(), after.get(), Py_EQ);
      if (equal < 0) return nullptr;
      if (equal) {
        return copy == Py_True ? Py_NewRef(same.get()) : array.release();
      }
      check(copy != Py_False, PyExc_ValueError,
            "Unable to avoid copy while creating an array of another dtype as requested.");
      return Py_NewRef(same.get());
    }
    if (copy == Py_True) return PyObject_CallMethod(array.get(), "copy", nullptr);
    return array.release();
  });
}

int tensor_getbuffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  return guarded<>(-1, [&] {
    fill_buffer(as_tensor(self), view, flags);
    return 0;
  });
}

void tensor_releasebuffer(PyObject*, Py_buffer* view) {
  const std::unique_ptr<BufferExport> kept(static_cast<BufferExport*>(view->internal));
  if (kept) end_export(kept->storage);
  view->internal = nullptr;
}

PyMethodDef numpy_functions[] = {
    {"from_numpy", from_numpy, METH_O, "from_numpy(array) -> Tensor\n\nA tensor on the memory of a NumPy array."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace candelabra
