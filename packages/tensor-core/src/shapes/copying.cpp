// Copies between tensors, dtypes and devices.
#include "../arguments.hpp"
#include "../interop.hpp"
#include "../streams.hpp"
#include "checks.hpp"
#include "shapes.hpp"

namespace candelabra::shapes {

namespace {

void check_broadcasts(const TensorObject& destination, const TensorObject& source) {
  const int missing = destination.ndim() - source.ndim();
  check(missing >= 0, PyExc_RuntimeError, "copy_(): output with shape ", shown(destination.sizes),
        " doesn't match the broadcast shape ", shown(source.sizes));
  for (int i = 0; i < source.ndim(); ++i) {
    const int64_t wanted = destination.sizes[missing + i], there = source.sizes[i];
    check(there == wanted || there == 1, PyExc_RuntimeError, "copy_(): The size of tensor a (", wanted,
          ") must match the size of tensor b (", there, ") at non-singleton dimension ", missing + i, ": shapes ",
          shown(destination.sizes), " and ", shown(source.sizes));
  }
}

// A bool says whether any part is not zero: nothing is lost.
void warn_of_lost_part(Dtype from, Dtype to) {
  if (is_complex(from) && !is_complex(to) && to != Dtype::Bool) [[unlikely]] {
    warn("Casting complex values to real discards the imaginary part; take .real, or .abs(), where this is meant");
  }
}

MemoryFormat format_or(const Call& call, int i, MemoryFormat fallback) {
  return call.arguments[i].kind == ArgumentKind::MemoryFormat ? call.arguments[i].memory_format : fallback;
}

}  // namespace

void copy_(Call& call) {
  TensorObject* self = &call.tensor(0);
  call.device = self->device();
  check_broadcasts(*self, call.tensor(1));
  check(!may_overlap_itself(*self), PyExc_RuntimeError,
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
        "Please clone() the tensor before performing the operation.");
  warn_of_lost_part(call.tensor(1).dtype, self->dtype);
  const auto done = [&] { call.result = Ref<>::borrow(as_object(self)); };
  const bool non_blocking = call.boolean(2);
  if (self->numel == 0 || copy_as_bytes(self, &call.tensor(1), non_blocking)) return done();
  if (call.tensor(1).device() != self->device()) {
    if (!device_type(self->device()).has(CB_CAP_HOST_MEMORY)) call.convert(1, self->dtype);
    call[1].tensor = call.keep(to_device(&call.tensor(1), self->device()));
    if (copy_as_bytes(self, &call.tensor(1), non_blocking)) return done();
  } else if (share_memory_partly(*self, call.tensor(1))) {
    call[1].tensor = call.keep(candelabra::clone(&call.tensor(1), MemoryFormat::Preserve));
  }
  call.broadcast(1, self->sizes);
  call.add_output(self->dtype, self->sizes);
}

void clone(Call& call) {
  call.result = Ref<>(candelabra::clone(&call.tensor(0), format_or(call, 1, MemoryFormat::Preserve)).release_object());
}

// to(self, target, second, dtype, device): the tensor itself where nothing is to convert. Forms with more in them, and other
// devices, are for the decomposition.
void to(Call& call) {
  TensorObject* self = &call.tensor(0);
  Dtype dtype = call.dtype_or(3, self->dtype);
  Device device = call[4].kind == ArgumentKind::Device ? call[4].device : self->device();
  PyObject* target = call[1].object;
  PyObject* second = call[2].object;
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

// Always a new tensor. The conversion is done by a device of host memory where there is one, else before bytes cross.
void to_copy(Call& call) {
  TensorObject* self = &call.tensor(0);
  const Dtype dtype = call.dtype_or(1, self->dtype);
  const Device device = call[2].kind == ArgumentKind::Device ? call[2].device : self->device();
  const bool convert_first = !device_type(device).has(CB_CAP_HOST_MEMORY) || device == self->device();
  TensorRef result = TensorRef::borrow(self);
  if (convert_first) result = convert_dtype(result.get(), dtype);
  // What is read here again must have arrived.
  const bool arrives_later =
      call.boolean(3) && result->dtype == dtype && format_or(call, 4, MemoryFormat::Preserve) == MemoryFormat::Preserve;
  result = to_device(result.get(), device, arrives_later);
  result = convert_dtype(result.get(), dtype);
  const MemoryFormat format = format_or(call, 4, MemoryFormat::Preserve);
  const bool in_format = format == MemoryFormat::Preserve || (format == MemoryFormat::Contiguous && result->contiguous);
  if (result.get() == self || !in_format) result = candelabra::clone(result.get(), format);
  call.result = Ref<>(result.release_object());
}

void contiguous(Call& call) {
  TensorObject* self = &call.tensor(0);
  const MemoryFormat format = format_or(call, 1, MemoryFormat::Contiguous);
  if (is_in_format(*self, format)) {
    call.result = Ref<>::borrow(as_object(self));
    return;
  }
  check(format != MemoryFormat::Preserve, PyExc_RuntimeError, "preserve memory format is unsupported by the contiguous operator");
  call.result = Ref<>(candelabra::clone(self, format).release_object());
}

}  // namespace candelabra::shapes
