// Factories: new memory and constants.
#include <algorithm>
#include <cmath>

#include "candelabra/positions.hpp"
#include "operators/arguments.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"
#include "tensor/tensor_type.hpp"

namespace candelabra::shapes {

namespace {

void check_sizes(std::span<const int64_t> sizes) {
  for (int64_t size : sizes) {
    check(size >= 0, PyExc_RuntimeError, "Trying to create tensor with negative dimension ", size, ": ", shown(sizes));
  }
  check(sizes.size() <= static_cast<size_t>(max_dims), PyExc_RuntimeError, "only tensors with up to ", max_dims,
        " dims are supported, not ", sizes.size());
}

}  // namespace

// allocate, empty: the same positions.
void empty(Call& call) {
  namespace at = positions::empty;
  const std::span<const int64_t> sizes = call.ints(at::size);
  check_sizes(sizes);
  const Dtype dtype = call.dtype_or(at::dtype, default_dtype());
  const MemoryFormat format = call[at::memory_format].kind == ArgumentKind::MemoryFormat
                                  ? call[at::memory_format].memory_format
                                  : MemoryFormat::Contiguous;
  const bool channels_last = format == MemoryFormat::ChannelsLast || format == MemoryFormat::ChannelsLast3d;
  check_rank_of_format(format, sizes);
  call.result =
      Ref<>((channels_last ? candelabra::empty_strided(sizes, channels_last_strides(sizes), dtype, call.device)
                           : candelabra::empty(sizes, dtype, call.device))
                .release_object());
}

namespace {

// Whether empty() fills new memory: set by candelabra.use_deterministic_algorithms().
bool fills_uninitialized = false;

// The value that marks memory as not set: NaN, or the largest integer.
cb_scalar uninitialized_marker(Dtype dtype) {
  static constexpr int64_t largest[dtype_count] = {1, UINT8_MAX, INT8_MAX, INT16_MAX,  INT32_MAX,  INT64_MAX, 0, 0, 0,
                                                   0, 0,         0,        UINT16_MAX, UINT32_MAX, INT64_MAX};
  cb_scalar value{};
  value.kind = is_integral(dtype) ? CB_SCALAR_INT : CB_SCALAR_FLOAT;
  value.i = largest[static_cast<int>(dtype)];
  value.re = is_integral(dtype) ? static_cast<double>(value.i) : std::nan("");
  if (dtype == Dtype::UInt64) {
    value.i = -1;
    value.re = 0x1p64;
    value.flags = CB_SCALAR_UNSIGNED;
  }
  return value;
}

cb_scalar integer_scalar(int64_t number) {
  cb_scalar value{};
  value.kind = CB_SCALAR_INT;
  value.i = number;
  value.re = static_cast<double>(number);
  return value;
}

// The schema of every factory ends with layout, requires_grad and pin_memory. Returns the position
// of one of them, given its position in the schema of empty.
int common_keyword(const Call& call, positions::empty::Position in_empty) {
  return call.argument_count - 1 - (positions::empty::pin_memory - in_empty);
}

// Other layouts and pinned memory are left to the fallback of the operator, which refuses them.
void leave_rare_to_fallback(const Call& call) {
  const int layout = common_keyword(call, positions::empty::layout);
  const int pin_memory = common_keyword(call, positions::empty::pin_memory);
  if (call.arguments[layout].object != Py_None || (call.arguments[pin_memory].given() && call.boolean(pin_memory))) {
    candelabra::mismatch(call.title(), "(): layout and pin_memory");
  }
}

void set_result(Call& call, TensorRef made) {
  const int requires_grad = common_keyword(call, positions::empty::requires_grad);
  if (call[requires_grad].given() && call.boolean(requires_grad)) ask_for_gradients(made.get());
  call.result = Ref<>(made.release_object());
}

// zeros, ones, full: `size` is at the same position.
void constant(Call& call, Dtype dtype, const cb_scalar& value) {
  leave_rare_to_fallback(call);
  const std::span<const int64_t> sizes = call.ints(positions::full::size);
  check_sizes(sizes);
  TensorRef made = candelabra::empty(sizes, dtype, call.device);
  fill(made.get(), value);
  set_result(call, std::move(made));
}

}  // namespace

// The rule of candelabra.empty, which has the keywords of the factories.
void empty_factory(Call& call) {
  leave_rare_to_fallback(call);
  empty(call);
  TensorRef made(as_tensor(call.result.release()));
  if (fills_uninitialized) fill(made.get(), uninitialized_marker(made->dtype));
  set_result(call, std::move(made));
}

void zeros(Call& call) {
  constant(call, call.dtype_or(positions::zeros::dtype, default_dtype()), integer_scalar(0));
}
void ones(Call& call) {
  constant(call, call.dtype_or(positions::ones::dtype, default_dtype()), integer_scalar(1));
}

void full(Call& call) {
  namespace at = positions::full;
  PyObject* value = call[at::fill_value].object;
  Dtype dtype = call.dtype_or(at::dtype, default_dtype());
  if (call[at::dtype].kind == ArgumentKind::Dtype || PyFloat_CheckExact(value)) {
    // The dtype is given, or a float asks for the default.
  } else if (PyBool_Check(value)) {
    dtype = Dtype::Bool;
  } else if (PyLong_CheckExact(value)) {
    dtype = Dtype::Int64;
  } else {
    mismatch("full(): another kind of number");
  }
  check_number_fits(call[at::fill_value].scalar, dtype, true);
  constant(call, dtype, call[at::fill_value].scalar);
}

namespace {

// What full_like has at other positions than empty_like, zeros_like and ones_like.
struct LikePositions {
  int dtype, device, memory_format;
};
constexpr LikePositions empty_like_positions{positions::empty_like::dtype, positions::empty_like::device,
                                             positions::empty_like::memory_format};
constexpr LikePositions full_like_positions{positions::full_like::dtype, positions::full_like::device,
                                            positions::full_like::memory_format};

// New memory like that of a row-major self. Other strides are left to the fallback of the operator.
TensorRef memory_like(Call& call, const LikePositions& at) {
  leave_rare_to_fallback(call);
  TensorObject& self = call.tensor(positions::empty_like::self);
  const Argument& format = call[at.memory_format];
  if (!self.contiguous || (format.given() && format.memory_format != MemoryFormat::Preserve)) {
    candelabra::mismatch(call.title(), "(): in another order");
  }
  const Device device = call[at.device].kind == ArgumentKind::Device ? call[at.device].device : self.device();
  return candelabra::empty(self.sizes, call.dtype_or(at.dtype, self.dtype), device);
}

void constant_like(Call& call, const LikePositions& at, const cb_scalar& value) {
  TensorRef made = memory_like(call, at);
  check_number_fits(value, made->dtype, true);
  fill(made.get(), value);
  set_result(call, std::move(made));
}

}  // namespace

void empty_like(Call& call) {
  TensorRef made = memory_like(call, empty_like_positions);
  if (fills_uninitialized) fill(made.get(), uninitialized_marker(made->dtype));
  set_result(call, std::move(made));
}
void zeros_like(Call& call) {
  constant_like(call, empty_like_positions, integer_scalar(0));
}
void ones_like(Call& call) {
  constant_like(call, empty_like_positions, integer_scalar(1));
}
void full_like(Call& call) {
  constant_like(call, full_like_positions, call[positions::full_like::fill_value].scalar);
}

bool fill_uninitialized_memory() {
  return fills_uninitialized;
}

void set_fill_uninitialized_memory(bool fills) {
  fills_uninitialized = fills;
}

void empty_strided(Call& call) {
  namespace at = positions::empty_strided;
  const std::span<const int64_t> sizes = call.ints(at::size), strides = call.ints(at::stride);
  check(sizes.size() == strides.size(), PyExc_RuntimeError, "empty_strided(): dimensionality of sizes (", sizes.size(),
        ") must match dimensionality of strides (", strides.size(), ")");
  check_sizes(sizes);
  for (int64_t stride : strides) {
    check(stride >= 0, PyExc_RuntimeError,
          "empty_strided(): Negative strides are not supported at the moment, got strides: ", shown(strides));
    check(stride <= max_stride, PyExc_RuntimeError, "Storage size calculation overflowed with sizes=", shown(sizes),
          " and strides=", shown(strides));
  }
  call.result = Ref<>(candelabra::empty_strided(sizes, strides, call.dtype_or(at::dtype, default_dtype()), call.device)
                          .release_object());
}

}  // namespace candelabra::shapes
