// Random numbers, and other operators that only write to self.
#include "candelabra/positions.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

namespace {

// self is the first argument of all operators of mutate_self.
void check_parameters(const Call& call) {
  const std::string_view name = base_name(call);
  const TensorObject& self = call.tensor(positions::fill::self);
  const auto real = [&](int i) { return call.arguments[i].f; };
  if (name == "fill_") {
    check_number_fits(call.arguments[positions::fill::value].scalar, self.dtype, true);
    return;
  }
  if (name == "random_range_") {
    const int64_t low = call.integer(positions::random_range::low), high = call.integer(positions::random_range::high);
    check(low < high, PyExc_RuntimeError, "random_ expects 'from' to be less than 'to', but got from=", low,
          " >= to=", high);
    if (is_complex(self.dtype)) not_implemented(call, self.dtype);
    return;
  }
  if (name == "bernoulli_") {
    const double p = real(positions::bernoulli_in_place::p);
    check(p >= 0 && p <= 1, PyExc_RuntimeError, "bernoulli_ expects p to be in [0, 1], but got p=", p);
    if (is_complex(self.dtype)) not_implemented(call, self.dtype);
    return;
  }
  if (!is_floating(self.dtype)) not_implemented(call, self.dtype);
  if (name == "uniform_") {
    const double from = real(positions::uniform::from), to = real(positions::uniform::to);
    check(from <= to, PyExc_RuntimeError, "uniform_ expects to return a [from, to) range, but found from=", from,
          " > to=", to);
  } else if (name == "normal_") {
    const double deviation = real(positions::normal::std);
    check(deviation >= 0, PyExc_RuntimeError, "normal_(): normal expects std >= 0.0, but found std ", deviation);
  } else if (name == "exponential_") {
    const double lambda = real(positions::exponential::lambd);
    check(lambda > 0, PyExc_RuntimeError, "exponential_ expects lambda > 0.0, but found lambda=", lambda);
  }
}

}  // namespace

void mutate_self(Call& call) {
  check_parameters(call);
  Argument& self = call[positions::fill::self];
  if (!call.outputs[0].given) call.outputs[0].given = self.tensor;
  call.add_output(self.tensor->dtype, self.tensor->sizes);
}

void randperm(Call& call) {
  namespace at = positions::randperm;
  const int64_t n = call.integer(at::n);
  const Dtype dtype = call.dtype_or(at::dtype, Dtype::Int64);
  check(n >= 0, PyExc_RuntimeError, "randperm(): n must be non-negative, got ", n);
  check(!is_complex(dtype) && dtype != Dtype::Bool, PyExc_NotImplementedError, "\"randperm\" not implemented for '",
        info(dtype).type_name, "'");
  // Every number up to n - 1 must be exact in the dtype.
  static constexpr int64_t limits[dtype_count] = {0,         255,  127,   32767,      INT32_MAX,
                                                  INT64_MAX, 2048, 256,   1 << 24,    int64_t{1} << 53,
                                                  0,         0,    65535, UINT32_MAX, INT64_MAX};
  check(n - 1 <= limits[static_cast<int>(dtype)], PyExc_RuntimeError, "randperm(): n is too large for result type ",
        info(dtype).type_name, ", got ", n);
  call.set_dtype(at::dtype, dtype);
  call.add_output(dtype, Dims{n});
}

void native_dropout(Call& call) {
  namespace at = positions::native_dropout;
  const TensorObject& input = call.tensor(at::input);
  const double p = call[at::p].f;
  check(p >= 0 && p <= 1, PyExc_ValueError, "dropout probability has to be between 0 and 1, but got ", p);
  if (is_integral(input.dtype)) not_implemented(call, input.dtype);
  for (Dtype dtype : {input.dtype, Dtype::Bool}) {
    Output& output = call.add_output(dtype, input.sizes);
    if (!input.contiguous) output.strides = preserved_strides(input);
  }
}

}  // namespace candelabra::shapes
