// Random numbers, and everything else that only writes to self.
#include "checks.hpp"
#include "shapes.hpp"

namespace candelabra::shapes {

namespace {

void check_parameters(const Call& call) {
  const std::string_view name = base_name(call);
  const TensorObject& self = call.tensor(0);
  if (name == "fill_") {
    check_number_fits(call.arguments[1].scalar, self.dtype, true);
    return;
  }
  if (name == "random_range_") {
    const int64_t low = call.integer(1), high = call.integer(2);
    check(low < high, PyExc_RuntimeError, "random_ expects 'from' to be less than 'to', but got from=", low, " >= to=", high);
    if (is_complex(self.dtype)) not_implemented(call, self.dtype);
    return;
  }
  const double first = call.arguments[1].f;
  if (name == "bernoulli_") {
    check(first >= 0 && first <= 1, PyExc_RuntimeError, "bernoulli_ expects p to be in [0, 1], but got p=", first);
    if (is_complex(self.dtype)) not_implemented(call, self.dtype);
    return;
  }
  if (!is_floating(self.dtype)) not_implemented(call, self.dtype);
  if (name == "uniform_") {
    const double last = call.arguments[2].f;
    check(first <= last, PyExc_RuntimeError, "uniform_ expects to return a [from, to) range, but found from=", first,
          " > to=", last);
  } else if (name == "normal_") {
    const double deviation = call.arguments[2].f;
    check(deviation >= 0, PyExc_RuntimeError, "normal_(): normal expects std >= 0.0, but found std ", deviation);
  } else if (name == "exponential_") {
    check(first > 0, PyExc_RuntimeError, "exponential_ expects lambda > 0.0, but found lambda=", first);
  }
}

}  // namespace

void mutate_self(Call& call) {
  check_parameters(call);
  Argument& self = call[0];
  if (!call.outputs[0].given) call.outputs[0].given = self.tensor;
  call.add_output(self.tensor->dtype, self.tensor->sizes);
}

void randperm(Call& call) {
  const int64_t n = call.integer(0);
  const Dtype dtype = call.dtype_or(1, Dtype::Int64);
  check(n >= 0, PyExc_RuntimeError, "randperm(): n must be non-negative, got ", n);
  check(!is_complex(dtype) && dtype != Dtype::Bool, PyExc_NotImplementedError, "\"randperm\" not implemented for '",
        info(dtype).type_name, "'");
  // Every number has to be a value of the dtype.
  static constexpr int64_t limits[dtype_count] = {
      0, 255, 127, 32767, INT32_MAX, INT64_MAX, 2048, 256, 1 << 24, int64_t{1} << 53, 0, 0, 65535, UINT32_MAX, INT64_MAX};
  check(n - 1 <= limits[static_cast<int>(dtype)], PyExc_RuntimeError, "randperm(): n is too large for result type ",
        info(dtype).type_name, ", got ", n);
  call.set_dtype(1, dtype);
  call.add_output(dtype, Dims{n});
}

void native_dropout(Call& call) {
  const TensorObject& input = call.tensor(0);
  const double p = call[1].f;
  check(p >= 0 && p <= 1, PyExc_ValueError, "dropout probability has to be between 0 and 1, but got ", p);
  if (is_integral(input.dtype)) not_implemented(call, input.dtype);
  for (Dtype dtype : {input.dtype, Dtype::Bool}) {
    Output& output = call.add_output(dtype, input.sizes);
    if (!input.contiguous) output.strides = preserved_strides(input);
  }
}

}  // namespace candelabra::shapes
