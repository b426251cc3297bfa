// Random numbers, and other operators that only write to self.
#include "candelabra/positions.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

namespace {

// Every operator of this kind takes self first.
constexpr int self_position = positions::fill::self;

void write_self(Call& call) {
  Argument& self = call[self_position];
  if (!call.outputs[0].given) call.outputs[0].given = self.tensor;
  call.add_output(self.tensor->dtype, self.tensor->sizes);
}

void check_floating(const Call& call) {
  const Dtype dtype = call.tensor(self_position).dtype;
  if (!is_floating(dtype)) not_implemented(call, dtype);
}

void check_real(const Call& call) {
  const Dtype dtype = call.tensor(self_position).dtype;
  if (is_complex(dtype)) not_implemented(call, dtype);
}

}  // namespace

void fill(Call& call) {
  namespace at = positions::fill;
  check_number_fits(call[at::value].scalar, call.tensor(at::self).dtype, true);
  write_self(call);
}

void uniform(Call& call) {
  namespace at = positions::uniform;
  check_floating(call);
  const double from = call[at::from].f, to = call[at::to].f;
  check(from <= to, PyExc_RuntimeError, "uniform_ expects to return a [from, to) range, but found from=", from,
        " > to=", to);
  write_self(call);
}

void normal(Call& call) {
  check_floating(call);
  const double deviation = call[positions::normal::std].f;
  check(deviation >= 0, PyExc_RuntimeError, "normal_(): normal expects std >= 0.0, but found std ", deviation);
  write_self(call);
}

void exponential(Call& call) {
  check_floating(call);
  const double lambda = call[positions::exponential::lambd].f;
  check(lambda > 0, PyExc_RuntimeError, "exponential_ expects lambda > 0.0, but found lambda=", lambda);
  write_self(call);
}

void bernoulli_in_place(Call& call) {
  const double p = call[positions::bernoulli_in_place::p].f;
  check(p >= 0 && p <= 1, PyExc_RuntimeError, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  check_real(call);
  write_self(call);
}

void random_range(Call& call) {
  namespace at = positions::random_range;
  const int64_t low = call.integer(at::low), high = call.integer(at::high);
  check(low < high, PyExc_RuntimeError, "random_ expects 'from' to be less than 'to', but got from=", low,
        " >= to=", high);
  check_real(call);
  write_self(call);
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
