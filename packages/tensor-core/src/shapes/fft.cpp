// Fourier transforms.
#include "candelabra/positions.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

namespace {

void check_points(const Call& call, int64_t n) {
  check(n >= 1, PyExc_RuntimeError, base_name(call), "(): Invalid number of data points (", n, ") specified");
}

}  // namespace

void fft_c2c(Call& call) {
  namespace at = positions::fft_c2c;
  const TensorObject& self = call.tensor(at::self);
  if (!is_complex(self.dtype)) not_implemented(call, self.dtype);
  Dims dims(call.ints(at::dim));
  for (int64_t& dim : dims) dim = wrap_dim(dim, self.ndim());
  dim_set(dims, self.ndim());
  for (int64_t dim : dims) check_points(call, self.sizes[static_cast<int>(dim)]);
  call.set_ints(at::dim, dims);
  call.add_output(self.dtype, self.sizes);
}

void fft_r2c(Call& call) {
  namespace at = positions::fft_r2c;
  const TensorObject& self = call.tensor(at::self);
  if (self.dtype != Dtype::Float32 && self.dtype != Dtype::Float64) not_implemented(call, self.dtype);
  const int dim = call.dim(at::dim, self.ndim());
  check_points(call, self.sizes[dim]);
  Dims sizes = self.sizes;
  sizes[dim] = sizes[dim] / 2 + 1;
  call.add_output(complex_of(self.dtype), std::move(sizes));
}

void fft_r2c_nd(Call& call) {
  namespace at = positions::fft_r2c_nd;
  const TensorObject& self = call.tensor(at::self);
  if (self.dtype != Dtype::Float32 && self.dtype != Dtype::Float64) not_implemented(call, self.dtype);
  Dims dims(call.ints(at::dim));
  check(!dims.empty(), PyExc_RuntimeError, base_name(call), "(): there has to be at least one dimension");
  for (int64_t& dim : dims) dim = wrap_dim(dim, self.ndim());
  dim_set(dims, self.ndim());
  for (int64_t dim : dims) check_points(call, self.sizes[static_cast<int>(dim)]);
  const int last = static_cast<int>(dims[dims.size() - 1]);
  Dims sizes = self.sizes;
  sizes[last] = sizes[last] / 2 + 1;
  call.set_ints(at::dim, dims);
  call.add_output(complex_of(self.dtype), std::move(sizes));
}

void fft_c2r(Call& call) {
  namespace at = positions::fft_c2r;
  const TensorObject& self = call.tensor(at::self);
  if (!is_complex(self.dtype)) not_implemented(call, self.dtype);
  const int dim = call.dim(at::dim, self.ndim());
  const int64_t n = call.integer(at::n);
  check_points(call, n);
  check(self.sizes[dim] == n / 2 + 1, PyExc_RuntimeError, base_name(call), "(): ", n, " results need ", n / 2 + 1,
        " coefficients, but dimension ", dim, " has ", self.sizes[dim]);
  Dims sizes = self.sizes;
  sizes[dim] = n;
  call.add_output(real_of(self.dtype), std::move(sizes));
}

}  // namespace candelabra::shapes
