// Tensors from nothing: memory and ranges.
#include <cmath>

#include "checks.hpp"
#include "shapes.hpp"

namespace candelabra::shapes {

namespace {

void check_sizes(std::span<const int64_t> sizes) {
  for (int64_t size : sizes) {
    check(size >= 0, PyExc_RuntimeError, "Trying to create tensor with negative dimension ", size, ": ", shown(sizes));
  }
  check(sizes.size() <= static_cast<size_t>(max_dims), PyExc_RuntimeError, "a tensor has at most ", max_dims, " dimensions, not ",
        sizes.size());
}

bool whole(const cb_scalar& scalar) {
  return scalar.kind == CB_SCALAR_BOOL || scalar.kind == CB_SCALAR_INT;
}

std::string number_text(const cb_scalar& scalar) {
  return whole(scalar) ? text(scalar.i) : text(scalar.re);
}

// How many numbers start, start + step, ... lie before end.
int64_t range_length(const cb_scalar& start, const cb_scalar& end, const cb_scalar& step) {
  check(start.kind != CB_SCALAR_COMPLEX && end.kind != CB_SCALAR_COMPLEX && step.kind != CB_SCALAR_COMPLEX, PyExc_RuntimeError,
        "arange(): complex numbers have no order");
  check(step.re != 0, PyExc_RuntimeError, "step must be nonzero");
  // Texts of numbers are made for messages only.
  if (!std::isfinite(start.re) || !std::isfinite(end.re)) [[unlikely]]
    check(false, PyExc_RuntimeError, "unsupported range: ", number_text(start), " -> ", number_text(end));
  if (!std::isfinite(step.re)) [[unlikely]]
    check(false, PyExc_RuntimeError, "unsupported step: ", number_text(step));
  check((step.re > 0 && end.re >= start.re) || (step.re < 0 && end.re <= start.re), PyExc_RuntimeError,
        "upper bound and lower bound inconsistent with step sign");
  if (whole(start) && whole(end) && whole(step)) {
    // Differences of int64 fit into 64 bits without sign.
    const uint64_t distance = step.i > 0 ? static_cast<uint64_t>(end.i) - static_cast<uint64_t>(start.i)
                                         : static_cast<uint64_t>(start.i) - static_cast<uint64_t>(end.i);
    const uint64_t stride = step.i > 0 ? static_cast<uint64_t>(step.i) : uint64_t{0} - static_cast<uint64_t>(step.i);
    const uint64_t count = distance / stride + (distance % stride != 0);
    check(count <= static_cast<uint64_t>(INT64_MAX), PyExc_RuntimeError, "invalid size, possible overflow?");
    return static_cast<int64_t>(count);
  }
  const double count = std::ceil((end.re - start.re) / step.re);
  check(count >= 0 && count < 0x1p63, PyExc_RuntimeError, "invalid size, possible overflow?");
  return static_cast<int64_t>(count);
}

}  // namespace

void empty(Call& call) {
  const std::span<const int64_t> sizes = call.ints(0);
  check_sizes(sizes);
  const Dtype dtype = call.dtype_or(1, default_dtype());
  const MemoryFormat format = call[3].kind == ArgumentKind::MemoryFormat ? call[3].memory_format : MemoryFormat::Contiguous;
  const bool channels_last = format == MemoryFormat::ChannelsLast || format == MemoryFormat::ChannelsLast3d;
  check_rank_of_format(format, sizes);
  call.result = Ref<>((channels_last ? candelabra::empty_strided(sizes, channels_last_strides(sizes), dtype, call.device)
                                     : candelabra::empty(sizes, dtype, call.device))
                          .release_object());
}

void empty_strided(Call& call) {
  const std::span<const int64_t> sizes = call.ints(0), strides = call.ints(1);
  check(sizes.size() == strides.size(), PyExc_RuntimeError,
        "empty_strided(): mismatch in length of strides and shape: ", shown(strides), " and ", shown(sizes));
  check_sizes(sizes);
  for (int64_t stride : strides) {
    check(stride >= 0, PyExc_RuntimeError,
          "empty_strided(): Negative strides are not supported at the moment, got strides: ", shown(strides));
    check(stride <= max_stride, PyExc_RuntimeError, "Storage size calculation overflowed with sizes=", shown(sizes),
          " and strides=", shown(strides));
  }
  call.result = Ref<>(candelabra::empty_strided(sizes, strides, call.dtype_or(2, default_dtype()), call.device).release_object());
}

void arange(Call& call) {
  for (int i : {0, 1, 2}) {
    check(
        !(call[i].scalar.flags & CB_SCALAR_UNSIGNED) || (i < 2 && (call[3].dtype == Dtype::UInt64 || !is_integral(call[3].dtype))),
        PyExc_RuntimeError, "value cannot be converted to type ", c_name(call[3].dtype), " without overflow");
  }
  const int64_t count = range_length(call[0].scalar, call[1].scalar, call[2].scalar);
  call.add_output(call[3].dtype, Dims{count});
}

void linspace(Call& call) {
  const int64_t steps = call.integer(2);
  check(steps >= 0, PyExc_RuntimeError, "number of steps must be non-negative");
  const Dtype dtype = call[3].dtype;
  for (int i : {0, 1}) check_number_fits(call[i].scalar, dtype, false);
  call.add_output(dtype, Dims{steps});
}

}  // namespace candelabra::shapes
