// New tensors of another dtype, device or order, which the core copies to.
#include "candelabra/positions.hpp"
#include "device/streams.hpp"
#include "interop/interop.hpp"
#include "operators/arguments.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

namespace {

MemoryFormat format_or(const Call& call, int i, MemoryFormat fallback) {
  return call.arguments[i].kind == ArgumentKind::MemoryFormat ? call.arguments[i].memory_format : fallback;
}

}  // namespace

void clone(Call& call) {
  namespace at = positions::clone;
  call.result =
      Ref<>(candelabra::clone(&call.tensor(at::self), format_or(call, at::memory_format, MemoryFormat::Preserve))
                .release_object());
}

// The result is self where its dtype stays. Other forms of the call, and other devices, are left to
// the decomposition.
void to(Call& call) {
  namespace at = positions::to;
  TensorObject* self = &call.tensor(at::self);
  Dtype dtype = call.dtype_or(at::dtype, self->dtype);
  Device device = call[at::device].kind == ArgumentKind::Device ? call[at::device].device : self->device();
  PyObject* target = call[at::target].object;
  PyObject* second = call[at::second].object;
  if (is_dtype_object(target)) {
    dtype = dtype_from_object(target);
  } else if (PyUnicode_Check(target) || is_device_object(target)) {
    device = device_from_object(target);
    if (is_dtype_object(second)) {
      dtype = dtype_from_object(second);
      second = Py_None;
    }
  } else if (target != Py_None) {
    mismatch("to(): by another tensor, or a type of Python");
  }
  if (second != Py_None || device != self->device()) mismatch("to(): with more options");
  call.result = Ref<>(convert_dtype(self, dtype).release_object());
}

// The result is always a new tensor. The dtype is converted before the copy to another device,
// unless that one has host memory: then it is converted there.
void to_copy(Call& call) {
  namespace at = positions::to_copy;
  TensorObject* self = &call.tensor(at::self);
  const Dtype dtype = call.dtype_or(at::dtype, self->dtype);
  const Device device = call[at::device].kind == ArgumentKind::Device ? call[at::device].device : self->device();
  const bool convert_first = !device_type(device).has(CB_CAP_HOST_MEMORY) || device == self->device();
  TensorRef result = TensorRef::borrow(self);
  if (convert_first) result = convert_dtype(result.get(), dtype);
  // A copy that is read again below must not be asynchronous.
  const bool may_be_asynchronous = call.boolean(at::non_blocking) && result->dtype == dtype &&
                                   format_or(call, at::memory_format, MemoryFormat::Preserve) == MemoryFormat::Preserve;
  result = to_device(result.get(), device, may_be_asynchronous);
  result = convert_dtype(result.get(), dtype);
  const MemoryFormat format = format_or(call, at::memory_format, MemoryFormat::Preserve);
  const bool in_format = format == MemoryFormat::Preserve || (format == MemoryFormat::Contiguous && result->contiguous);
  if (result.get() == self || !in_format) result = candelabra::clone(result.get(), format);
  call.result = Ref<>(result.release_object());
}

void contiguous(Call& call) {
  namespace at = positions::contiguous;
  TensorObject* self = &call.tensor(at::self);
  const MemoryFormat format = format_or(call, at::memory_format, MemoryFormat::Contiguous);
  if (is_in_format(*self, format)) {
    call.result = Ref<>::borrow(as_object(self));
    return;
  }
  check(format != MemoryFormat::Preserve, PyExc_RuntimeError,
        "preserve memory format is unsupported by the contiguous operator");
  call.result = Ref<>(candelabra::clone(self, format).release_object());
}

}  // namespace candelabra::shapes
