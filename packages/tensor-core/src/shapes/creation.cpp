// Tensors from nothing: memory and ranges.
#include <algorithm>
#include <cmath>

#include "../arguments.hpp"
#include "../tensor_type.hpp"
#include "candelabra/triangle.hpp"
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
  return static_cast<int64_t>(count);  // float index: in range by the check
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

namespace {

// Whether memory that nobody has set is to be filled: candelabra.use_deterministic_algorithms().
bool fills_unset_memory = false;

// A value that shows where memory was read before it was set.
cb_scalar conspicuous(Dtype dtype) {
  static constexpr int64_t largest[dtype_count] = {1, UINT8_MAX, INT8_MAX, INT16_MAX, INT32_MAX,  INT64_MAX,  0,        0,
                                                   0, 0,         0,        0,         UINT16_MAX, UINT32_MAX, INT64_MAX};
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

cb_scalar whole_number(int64_t number) {
  cb_scalar value{};
  value.kind = CB_SCALAR_INT;
  value.i = number;
  value.re = static_cast<double>(number);
  return value;
}

// The keywords that the factories have in common end their schemas: layout, requires_grad, pin_memory. Another layout and pinned
// memory are refused by the function behind the operator.
void refuse_rare(const Call& call) {
  const int last = call.argument_count - 1;
  if (call.arguments[last - 2].object != Py_None || (call.arguments[last].given() && call.boolean(last))) {
    mismatch(call.name(), "(): layout and pin_memory");
  }
}

void give(Call& call, TensorRef made) {
  const int grad = call.argument_count - 2;
  if (call[grad].given() && call.boolean(grad)) ask_for_gradients(made.get());
  call.result = Ref<>(made.release_object());
}

void constant(Call& call, Dtype dtype, const cb_scalar& value) {
  refuse_rare(call);
  const std::span<const int64_t> sizes = call.ints(0);
  check_sizes(sizes);
  TensorRef made = candelabra::empty(sizes, dtype, call.device);
  fill(made.get(), value);
  give(call, std::move(made));
}

}  // namespace

// As empty, and what else candelabra.empty takes.
void empty_factory(Call& call) {
  refuse_rare(call);
  empty(call);
  TensorRef made(as_tensor(call.result.release()));
  if (fills_unset_memory) fill(made.get(), conspicuous(made->dtype));
  give(call, std::move(made));
}

void zeros(Call& call) {
  constant(call, call.dtype_or(1, default_dtype()), whole_number(0));
}
void ones(Call& call) {
  constant(call, call.dtype_or(1, default_dtype()), whole_number(1));
}

void full(Call& call) {
  PyObject* value = call[1].object;
  Dtype dtype = call.dtype_or(2, default_dtype());
  if (call[2].kind == ArgumentKind::Dtype || PyFloat_CheckExact(value)) {
    // The kind of the number does not matter, or asks for the default.
  } else if (PyBool_Check(value)) {
    dtype = Dtype::Bool;
  } else if (PyLong_CheckExact(value)) {
    dtype = Dtype::Int64;
  } else {
    mismatch("full(): another kind of number");
  }
  check_number_fits(call[1].scalar, dtype, true);
  constant(call, dtype, call[1].scalar);
}

namespace {

// (self, [value,] *, dtype, device, memory_format, …), with the keywords from `first` on. Another order in memory than that without
// gaps is for the function behind the operator.
TensorRef memory_like(Call& call, int first) {
  refuse_rare(call);
  TensorObject& self = call.tensor(0);
  const Argument& format = call[first + 2];
  if (!self.contiguous || (format.given() && format.memory_format != MemoryFormat::Preserve)) {
    mismatch(call.name(), "(): in another order");
  }
  const Device device = call[first + 1].kind == ArgumentKind::Device ? call[first + 1].device : self.device();
  return candelabra::empty(self.sizes, call.dtype_or(first, self.dtype), device);
}

void constant_like(Call& call, int first, const cb_scalar& value) {
  TensorRef made = memory_like(call, first);
  check_number_fits(value, made->dtype, true);
  fill(made.get(), value);
  give(call, std::move(made));
}

}  // namespace

void empty_like(Call& call) {
  TensorRef made = memory_like(call, 1);
  if (fills_unset_memory) fill(made.get(), conspicuous(made->dtype));
  give(call, std::move(made));
}
void zeros_like(Call& call) {
  constant_like(call, 1, whole_number(0));
}
void ones_like(Call& call) {
  constant_like(call, 1, whole_number(1));
}
void full_like(Call& call) {
  constant_like(call, 2, call[1].scalar);
}

void set_fills_unset_memory(bool fills) {
  fills_unset_memory = fills;
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

// arange(start, end, step, dtype, device): one number alone is the end.
void arange(Call& call) {
  if (call[1].object == call.op.schema.parameters[1].default_value) {
    std::swap(call[0].scalar, call[1].scalar);
    call[0].scalar = whole_number(0);
  }
  const bool whole_numbers = whole(call[0].scalar) && whole(call[1].scalar) && whole(call[2].scalar);
  const TensorObject* out = call.outputs[0].given;
  if (call[3].kind != ArgumentKind::Dtype) {
    if (out) mismatch("arange(): of the dtype of out");
    call.set_dtype(3, whole_numbers ? Dtype::Int64 : default_dtype());
  }
  const auto finite = [&](int i) { return std::isfinite(call[i].scalar.re); };
  if (!whole_numbers && is_integral(call[3].dtype) && finite(0) && finite(1) && finite(2)) {
    mismatch("arange(): whole numbers of others are for the function behind the operator");
  }
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

// triangle_indices(rows, columns, offset, upper, dtype, device)
void triangle_indices(Call& call) {
  const int64_t rows = call.integer(0), columns = call.integer(1);
  check(rows >= 0 && columns >= 0, PyExc_RuntimeError, "row and col must be non-negative, got ", rows, " and ", columns);
  int64_t elements;
  constexpr int64_t most = INT64_MAX / 4;
  check(!__builtin_mul_overflow(rows, columns, &elements) && std::max({rows, columns, elements}) <= most, PyExc_RuntimeError,
        "invalid size, possible overflow? row and col are ", rows, " and ", columns);
  const Dtype dtype = call[4].dtype;
  check(dtype == Dtype::Int64 || dtype == Dtype::Int32, PyExc_RuntimeError, base_name(call),
        "(): dtype must be int32 or int64, but got ", info(dtype).name);
  // Farther away there is nothing more, or nothing.
  call.set_int(2, std::clamp(call.integer(2), -rows - 1, columns + 1));
  call.add_output(dtype, Dims{2, triangle::count(rows, columns, call.integer(2), call.boolean(3))});
}

}  // namespace candelabra::shapes
