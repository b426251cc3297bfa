// Copies of a tensor's elements to another, of any dtype and device.
#include "candelabra/positions.hpp"
#include "device/streams.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

namespace {

void check_broadcasts(const TensorObject& destination, const TensorObject& source) {
  const int missing = destination.ndim() - source.ndim();
  check(missing >= 0, PyExc_RuntimeError, "output with shape ", shown(destination.sizes),
        " doesn't match the broadcast shape ", shown(source.sizes));
  for (int i = 0; i < source.ndim(); ++i) {
    const int64_t size = destination.sizes[missing + i], source_size = source.sizes[i];
    check(source_size == size || source_size == 1, PyExc_RuntimeError, "The size of tensor a (", size,
          ") must match the size of tensor b (", source_size, ") at non-singleton dimension ", missing + i, ": shapes ",
          shown(destination.sizes), " and ", shown(source.sizes));
  }
}

// A conversion to bool is exempt: it looks at both parts.
void warn_of_lost_imaginary_part(Dtype from, Dtype to) {
  if (is_complex(from) && !is_complex(to) && to != Dtype::Bool) [[unlikely]] {
    warn("Casting complex values to real discards the imaginary part; take .real, or .abs(), where this is meant");
  }
}

}  // namespace

void copy_(Call& call) {
  namespace at = positions::copy;
  TensorObject* self = &call.tensor(at::self);
  call.device = self->device();
  check_broadcasts(*self, call.tensor(at::src));
  check(!may_overlap_itself(*self), PyExc_RuntimeError,
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
        "Please clone() the tensor before performing the operation.");
  warn_of_lost_imaginary_part(call.tensor(at::src).dtype, self->dtype);
  const auto done = [&] { call.result = Ref<>::borrow(as_object(self)); };
  const bool non_blocking = call.boolean(at::non_blocking);
  if (self->numel == 0 || copy_as_bytes(self, &call.tensor(at::src), non_blocking)) return done();
  if (call.tensor(at::src).device() != self->device()) {
    if (!device_type(self->device()).has(CB_CAP_HOST_MEMORY)) call.convert(at::src, self->dtype);
    call[at::src].tensor = call.keep(to_device(&call.tensor(at::src), self->device()));
    if (copy_as_bytes(self, &call.tensor(at::src), non_blocking)) return done();
  } else {
    check(!share_memory_partly(*self, call.tensor(at::src)), PyExc_RuntimeError, overlaps_written);
  }
  call.broadcast(at::src, self->sizes);
  call.add_output(self->dtype, self->sizes);
}

}  // namespace candelabra::shapes
