// DLPack export and import. The consumer of a capsule owns its contents and calls the deleter once.
#include "interop/dlpack.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "dispatch/call.hpp"
#include "interop/interop.hpp"
#include "memory/copy_on_write.hpp"
#include "python/bindings.hpp"
#include "python/gil.hpp"

namespace candelabra {

namespace {

constexpr const char* plain_name = "dltensor";
constexpr const char* plain_used_name = "used_dltensor";
constexpr const char* versioned_name = "dltensor_versioned";
constexpr const char* versioned_used_name = "used_dltensor_versioned";

dlpack::DataType dlpack_dtype(Dtype dtype) {
  const uint8_t bits = static_cast<uint8_t>(8 * itemsize(dtype));
  switch (dtype) {
    case Dtype::Bool:
      return {dlpack::code_bool, 8, 1};
    case Dtype::BFloat16:
      return {dlpack::code_bfloat, 16, 1};
    case Dtype::Float8E4M3Fn:
      return {dlpack::code_float8_e4m3fn, 8, 1};
    case Dtype::Float8E5M2:
      return {dlpack::code_float8_e5m2, 8, 1};
    case Dtype::Float8E4M3Fnuz:
      return {dlpack::code_float8_e4m3fnuz, 8, 1};
    case Dtype::Float8E5M2Fnuz:
      return {dlpack::code_float8_e5m2fnuz, 8, 1};
    case Dtype::Float8E8M0Fnu:
      return {dlpack::code_float8_e8m0fnu, 8, 1};
    default:
      break;
  }
  if (is_integral(dtype) && !info(dtype).is_signed) return {dlpack::code_uint, bits, 1};
  if (is_complex(dtype)) return {dlpack::code_complex, bits, 1};
  return {is_floating(dtype) ? dlpack::code_float : dlpack::code_int, bits, 1};
}

Dtype dtype_of(const dlpack::DataType& type) {
  for (int i = 0; i < dtype_count; ++i) {
    const dlpack::DataType candidate = dlpack_dtype(static_cast<Dtype>(i));
    if (candidate.code == type.code && candidate.bits == type.bits && type.lanes == 1) return static_cast<Dtype>(i);
  }
  raise(PyExc_BufferError, "from_dlpack(): no dtype for DLPack's type code ", int{type.code}, " of ", int{type.bits},
        " bits and ", type.lanes, " lanes");
}

// DLPack's device type for one of ours, if it has one. Backends without host memory provide it as
// extension("dlpack_device_type"), an int32_t.
std::optional<int32_t> dlpack_device_type(const DeviceType& type) {
  if (type.has(CB_CAP_HOST_MEMORY)) return dlpack::device_cpu;
  const void* number = type.table->extension ? type.table->extension("dlpack_device_type") : nullptr;
  if (!number) return std::nullopt;
  return *static_cast<const int32_t*>(number);
}

dlpack::Device dlpack_device(Device device) {
  const std::optional<int32_t> number = dlpack_device_type(device_type(device));
  check(number.has_value(), PyExc_BufferError, "device type '", device_type(device).name,
        "' has no number in DLPack. Use Tensor.cpu() to copy the tensor to host memory first.");
  return {*number, *number == dlpack::device_cpu ? 0 : device.index};
}

Device device_of(const dlpack::Device& device) {
  if (device.type == dlpack::device_cpu || device.type == dlpack::device_cuda_host) return host_device();
  for (int i = 0; i < device_type_count(); ++i) {
    if (dlpack_device_type(device_type(i)) == device.type) {
      check(device.index >= 0 && device.index < device_type(i).device_count, PyExc_BufferError, "from_dlpack(): '",
            device_type(i).name, "' has no device ", device.index);
      return {static_cast<int8_t>(i), static_cast<int8_t>(device.index)};
    }
  }
  raise(PyExc_BufferError, "from_dlpack(): no loaded backend has the memory of DLPack's device type ", device.type);
}

// ---- export

struct Exported {
  TensorObject* tensor;  // kept alive
  Storage* storage;      // kept alive, in case the tensor gets other memory
  std::unique_ptr<int64_t[]> geometry;
  union {
    dlpack::ManagedTensor plain;
    dlpack::ManagedTensorVersioned versioned;
  };
};

void free_exported(void* context) {
  // May run on any thread, without the GIL, and after Python has ended. In the last case the memory
  // is left to the process's exit.
  if (!Py_IsInitialized()) return;
  const GilHeld held;
  const std::unique_ptr<Exported> exported(static_cast<Exported*>(context));
  end_export(exported->storage);
  Py_DECREF(as_object(exported->tensor));
}

// A capsule that was not consumed still owns the tensor.
template <typename Managed>
void destroy_capsule(PyObject* capsule, const char* capsule_name) {
  if (!PyCapsule_IsValid(capsule, capsule_name)) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, capsule_name));
  if (managed->deleter) managed->deleter(managed);
}

dlpack::Tensor describe(Exported& exported) {
  const TensorObject& tensor = *exported.tensor;
  const int ndim = tensor.ndim();
  exported.geometry = std::make_unique<int64_t[]>(static_cast<size_t>(2 * ndim + 1));
  for (int i = 0; i < ndim; ++i) {
    exported.geometry[i] = tensor.sizes[i];
    // The stride of a dimension of size 1 has no meaning, and some consumers reject unusual ones.
    exported.geometry[ndim + i] = tensor.sizes[i] == 1 ? 1 : tensor.strides[i];
  }
  dlpack::Tensor result{};
  result.data = tensor.numel ? tensor.data() : nullptr;
  result.device = dlpack_device(tensor.device());
  result.ndim = ndim;
  result.dtype = dlpack_dtype(tensor.dtype);
  result.shape = exported.geometry.get();
  result.strides = exported.geometry.get() + ndim;
  return result;
}

PyObject* export_capsule(TensorRef tensor, bool versioned, bool copied) {
  make_writable(tensor->storage);
  auto exported = std::make_unique<Exported>();
  exported->tensor = tensor.get();
  const dlpack::Tensor described = describe(*exported);
  PyObject* capsule;
  if (versioned) {
    exported->versioned = {dlpack::our_version, exported.get(),
                           [](dlpack::ManagedTensorVersioned* managed) { free_exported(managed->context); },
                           copied ? uint64_t{dlpack::flag_copied} : 0, described};
    capsule = PyCapsule_New(&exported->versioned, versioned_name, [](PyObject* object) {
      destroy_capsule<dlpack::ManagedTensorVersioned>(object, versioned_name);
    });
  } else {
    exported->plain = {described, exported.get(),
                       [](dlpack::ManagedTensor* managed) { free_exported(managed->context); }};
    capsule = PyCapsule_New(&exported->plain, plain_name,
                            [](PyObject* object) { destroy_capsule<dlpack::ManagedTensor>(object, plain_name); });
  }
  if (!capsule) throw PythonError();
  exported->storage = begin_export(tensor->storage);
  tensor.release();
  exported.release();
  return capsule;
}

// Parses a pair of ints, (device type, index) or (major, minor); nullopt for None.
std::optional<std::pair<long, long>> pair_from(PyObject* object, const char* what) {
  if (object == Py_None) return std::nullopt;
  // A tuple: an __index__ may change a list.
  const Ref<> items = owned(PySequence_Tuple(object));
  check(PyTuple_GET_SIZE(items.get()) == 2, PyExc_TypeError, what, " must be a pair of ints");
  const long first = PyLong_AsLong(PyTuple_GET_ITEM(items.get(), 0));
  const long second = PyErr_Occurred() ? -1 : PyLong_AsLong(PyTuple_GET_ITEM(items.get(), 1));
  if (PyErr_Occurred()) throw PythonError();
  return std::pair(first, second);
}

// ---- import

template <typename Managed>
void release_imported(Storage& storage) {
  auto* managed = static_cast<Managed*>(storage.owner);
  if (managed->deleter) managed->deleter(managed);
}

template <typename Managed>
TensorRef import_managed(PyObject* capsule, const char* capsule_name, const char* used_name) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, capsule_name));
  const dlpack::Tensor& source = managed->tensor;
  const Dtype dtype = dtype_of(source.dtype);
  const Device device = device_of(source.device);
  check(source.ndim >= 0 && source.ndim <= max_dims, PyExc_BufferError, "from_dlpack(): ", source.ndim, " dimensions");
  check(source.ndim == 0 || source.shape, PyExc_BufferError, "from_dlpack(): a tensor without a shape");
  const size_t ndim = static_cast<size_t>(source.ndim);
  const Dims sizes(std::span<const int64_t>(source.shape, ndim));
  Dims strides = source.strides ? Dims(std::span<const int64_t>(source.strides, ndim)) : contiguous_strides(sizes);
  int64_t extent = 1;
  bool is_empty = false;
  for (int i = 0; i < source.ndim; ++i) {
    check(sizes[i] >= 0, PyExc_BufferError, "from_dlpack(): negative size ", sizes[i], " of dimension ", i);
    check(sizes[i] <= 1 || strides[i] >= 0, PyExc_BufferError,
          "from_dlpack(): negative strides are not supported; make a copy on the other side first");
    // unused, so any value is valid
    if (sizes[i] <= 1) strides[i] = std::clamp<int64_t>(strides[i], 0, max_stride);
    check(strides[i] <= max_stride, PyExc_BufferError, "from_dlpack(): stride ", strides[i], " of dimension ", i,
          " is out of range");
    is_empty |= sizes[i] == 0;
    int64_t reach;
    check(!__builtin_mul_overflow(std::max<int64_t>(sizes[i] - 1, 0), strides[i], &reach) &&
              !__builtin_add_overflow(extent, reach, &extent) && extent <= max_stride,
          PyExc_BufferError, "from_dlpack(): a tensor of shape ", shown(sizes), " and strides ", shown(strides),
          " is too large");
  }
  check(is_empty || source.data, PyExc_BufferError, "from_dlpack(): a tensor of shape ", shown(sizes),
        " without memory: its data pointer is null");
  check(is_empty || is_aligned(static_cast<char*>(source.data) + source.byte_offset, dtype), PyExc_BufferError,
        "from_dlpack(): the memory is not aligned to the size of an element; make a copy on the other side first");
  // From here on the capsule is consumed, and the storage calls the deleter.
  if (PyCapsule_SetName(capsule, used_name) != 0) throw PythonError();
  PyCapsule_SetDestructor(capsule, nullptr);
  char* data = static_cast<char*>(source.data) + (source.data ? source.byte_offset : 0);
  const size_t bytes = is_empty ? 0 : static_cast<size_t>(extent) * itemsize(dtype);
  Storage* storage = adopt_storage(device, data, bytes, release_imported<Managed>, managed);
  return make_tensor(storage, dtype, sizes, strides, 0);
}

TensorRef import_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, versioned_name)) {
    const auto* managed = static_cast<dlpack::ManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, versioned_name));
    check(managed->version.major <= dlpack::our_version.major, PyExc_BufferError,
          "from_dlpack(): the capsule is of DLPack ", managed->version.major, ".", managed->version.minor,
          ", this reads ", dlpack::our_version.major, ".x");
    if (managed->flags & dlpack::flag_read_only) {
      warn(
          "The memory given by DLPack is not writable, and Candelabra does not support non-writable tensors. "
          "Writing to this tensor is undefined behavior.");
    }
    return import_managed<dlpack::ManagedTensorVersioned>(capsule, versioned_name, versioned_used_name);
  }
  check(PyCapsule_IsValid(capsule, plain_name), PyExc_RuntimeError,
        "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might "
        "have already "
        "constructed a tensor from it once.");
  return import_managed<dlpack::ManagedTensor>(capsule, plain_name, plain_used_name);
}

// Calls the object's __dlpack__. An exporter older than DLPack 1.0 accepts no keywords.
py::object call_dlpack_method(py::handle exporter) {
  static constinit InternedOnce name("__dlpack__");
  static constinit LookedUpOnce keywords, version;
  PyObject* const arguments[] = {exporter.ptr(), version.get([] { return owned(Py_BuildValue("(ii)", 1, 0)); })};
  PyObject* const names = keywords.get([] { return owned(Py_BuildValue("(s)", "max_version")); });
  if (PyObject* capsule = PyObject_VectorcallMethod(name.get(), arguments, 1, names))
    return py::reinterpret_steal<py::object>(capsule);
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw PythonError();
  PyErr_Clear();
  return stolen(PyObject_CallMethodNoArgs(exporter.ptr(), name.get()));
}

py::object from_dlpack(py::handle object, py::handle device, py::handle copy) {
  py::object capsule;
  if (PyCapsule_CheckExact(object.ptr())) {
    capsule = py::reinterpret_borrow<py::object>(object);
  } else {
    check(py::hasattr(object, "__dlpack__"), PyExc_TypeError, "from_dlpack(): '", Py_TYPE(object.ptr())->tp_name,
          "' has no __dlpack__ method");
    capsule = call_dlpack_method(object);
  }
  TensorRef result = import_capsule(capsule.ptr());
  const Device target = device.is_none() ? result->device() : device_from_object(device.ptr());
  if (target != result->device()) {
    check(copy.ptr() != Py_False, PyExc_BufferError, "from_dlpack(): a copy to ", to_text(target),
          " is needed, and copy=False forbids it");
    return stolen(to_device(result.get(), target).release_object());
  }
  if (copy.ptr() == Py_True) result = clone(result.get(), MemoryFormat::Preserve);
  return stolen(result.release_object());
}

}  // namespace

PyObject* tensor_dlpack(PyObject* self, PyObject* arguments, PyObject* keywords) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    static const char* names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
    PyObject* stream = Py_None;
    PyObject* max_version = Py_None;
    PyObject* wanted_device = Py_None;
    PyObject* copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|$OOOO:__dlpack__", const_cast<char**>(names), &stream,
                                     &max_version, &wanted_device, &copy)) {
      return nullptr;
    }
    TensorObject* tensor = as_tensor(self);
    check(!tensor->requires_grad, PyExc_BufferError, "Can't export tensors that require gradient, use tensor.detach()");
    check(copy == Py_None || PyBool_Check(copy), PyExc_TypeError, "__dlpack__(): copy must be True, False or None");
    const auto version = pair_from(max_version, "max_version");
    const auto wanted = pair_from(wanted_device, "dl_device");
    TensorRef source = TensorRef::borrow(tensor);
    bool copied = false;
    const bool on_host = device_type(tensor->device()).has(CB_CAP_HOST_MEMORY);
    if (wanted) {
      const auto here = dlpack_device_type(device_type(tensor->device()));
      if (here != static_cast<int32_t>(wanted->first)) {
        check(copy != Py_False, PyExc_BufferError,
              "__dlpack__(): a copy to another device is needed, and copy=False forbids it");
        check(wanted->first == dlpack::device_cpu, PyExc_BufferError, "__dlpack__(): cannot export ",
              to_text(tensor->device()), " to DLPack's device type ", wanted->first);
        source = to_device(tensor, host_device());
        copied = true;
      }
    }
    check(stream == Py_None || PyLong_Check(stream), PyExc_TypeError, "stream must be ``int`` or ``none``");
    if (on_host && stream != Py_None) {
      raise(PyExc_BufferError, "__dlpack__(): stream must be None, since ", to_text(tensor->device()),
            " has no streams");
    }
    if (copy == Py_True && !copied) {
      source = clone(tensor, MemoryFormat::Preserve);
      copied = true;
    }
    // Completes queued work, so that the consumer may use any stream.
    wait_for(source->device());
    return export_capsule(std::move(source), version && version->first >= 1, copied);
  });
}

PyObject* tensor_dlpack_device(PyObject* self, PyObject*) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    const dlpack::Device device = dlpack_device(as_tensor(self)->device());
    return Py_BuildValue("(ii)", device.type, device.index);
  });
}

void register_dlpack(py::module_& module) {
  using namespace py::literals;
  module.def("from_dlpack", from_dlpack, "ext_tensor"_a, py::kw_only(), "device"_a = py::none(), "copy"_a = py::none(),
             "A tensor that shares the memory of a DLPack capsule or exporter.");
}

}  // namespace candelabra
