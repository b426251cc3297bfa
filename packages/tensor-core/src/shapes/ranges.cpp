// Ranges of numbers and of indices.
#include <algorithm>
#include <cmath>

#include "candelabra/positions.hpp"
#include "candelabra/triangle.hpp"
#include "operators/arguments.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

namespace {

bool is_integer(const cb_scalar& scalar) {
  return scalar.kind == CB_SCALAR_BOOL || scalar.kind == CB_SCALAR_INT;
}

std::string number_text(const cb_scalar& scalar) {
  return is_integer(scalar) ? text(scalar.i) : text(scalar.re);
}

// The count of the numbers start, start + step, ... before end.
int64_t range_length(const cb_scalar& start, const cb_scalar& end, const cb_scalar& step) {
  check(start.kind != CB_SCALAR_COMPLEX && end.kind != CB_SCALAR_COMPLEX && step.kind != CB_SCALAR_COMPLEX,
        PyExc_RuntimeError, "arange(): complex numbers have no order");
  check(step.re != 0, PyExc_RuntimeError, "step must be nonzero");
  // The texts of numbers are made only where the check fails.
  if (!std::isfinite(start.re) || !std::isfinite(end.re)) [[unlikely]]
    check(false, PyExc_RuntimeError, "unsupported range: ", number_text(start), " -> ", number_text(end));
  if (!std::isfinite(step.re)) [[unlikely]]
    check(false, PyExc_RuntimeError, "unsupported step: ", number_text(step));
  check((step.re > 0 && end.re >= start.re) || (step.re < 0 && end.re <= start.re), PyExc_RuntimeError,
        "upper bound and lower bound inconsistent with step sign");
  if (is_integer(start) && is_integer(end) && is_integer(step)) {
    // The difference of two int64 fits in a uint64.
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

// One number alone is the end.
void arange(Call& call) {
  namespace at = positions::arange;
  if (call[at::end].object == call.op.schema.parameters[at::end].default_value) {
    std::swap(call[at::start].scalar, call[at::end].scalar);
    call[at::start].scalar = {CB_SCALAR_INT, 0, 0, 0, 0, 0};
  }
  const cb_scalar &start = call[at::start].scalar, &end = call[at::end].scalar, &step = call[at::step].scalar;
  const bool integers = is_integer(start) && is_integer(end) && is_integer(step);
  const TensorObject* out = call.outputs[0].given;
  if (call[at::dtype].kind != ArgumentKind::Dtype) {
    if (out) mismatch("arange(): of the dtype of out");
    call.set_dtype(at::dtype, integers ? Dtype::Int64 : default_dtype());
  }
  const Dtype dtype = call[at::dtype].dtype;
  if (!integers && is_integral(dtype) && std::isfinite(start.re) && std::isfinite(end.re) && std::isfinite(step.re)) {
    mismatch("arange(): whole numbers of others are for the function behind the operator");
  }
  for (int i : {at::start, at::end, at::step}) {
    check(!(call[i].scalar.flags & CB_SCALAR_UNSIGNED) ||
              (i != at::step && (dtype == Dtype::UInt64 || !is_integral(dtype))),
          PyExc_RuntimeError, "value cannot be converted to type ", cpp_type_name(dtype), " without overflow");
  }
  call.add_output(dtype, Dims{range_length(start, end, step)});
}

void linspace(Call& call) {
  namespace at = positions::linspace;
  const int64_t steps = call.integer(at::steps);
  check(steps >= 0, PyExc_RuntimeError, "number of steps must be non-negative");
  const Dtype dtype = call[at::dtype].dtype;
  for (int i : {at::start, at::end}) check_number_fits(call[i].scalar, dtype, false);
  call.add_output(dtype, Dims{steps});
}

void tril_triu_indices(Call& call) {
  namespace at = positions::tril_triu_indices;
  const int64_t rows = call.integer(at::rows), columns = call.integer(at::columns);
  check(rows >= 0 && columns >= 0, PyExc_RuntimeError, "row and col must be non-negative, got ", rows, " and ",
        columns);
  int64_t elements;
  constexpr int64_t most = INT64_MAX / 4;
  check(!__builtin_mul_overflow(rows, columns, &elements) && std::max({rows, columns, elements}) <= most,
        PyExc_RuntimeError, "invalid size, possible overflow? row and col are ", rows, " and ", columns);
  const Dtype dtype = call[at::dtype].dtype;
  check(dtype == Dtype::Int64 || dtype == Dtype::Int32, PyExc_RuntimeError, base_name(call),
        "(): dtype must be int32 or int64, but got ", info(dtype).name);
  // A diagonal farther off gives the same indices; clamped, sums with it cannot overflow.
  call.set_int(at::offset, std::clamp(call.integer(at::offset), -rows - 1, columns + 1));
  call.add_output(dtype, Dims{2, triangle::count(rows, columns, call.integer(at::offset), call.boolean(at::upper))});
}

}  // namespace candelabra::shapes
