// Eigenvalues and singular values.
#include "matrices.hpp"
#include "shapes.hpp"

namespace candelabra::shapes {

namespace {

Dims square(const TensorObject& self, bool wanted) {
  return wanted ? self.sizes : Dims{0};
}

}  // namespace

void eigh(Call& call) {
  check_square(call, 0, "A");
  check_lapack_dtype(call, 0);
  const TensorObject& self = call.tensor(0);
  const std::string_view part = call[1].string;
  check(part == "L" || part == "U", PyExc_RuntimeError, "Expected UPLO argument to be 'L' or 'U', but got ", part);
  call.add_output(real_of(self.dtype), batch_of(self, 1));
  call.add_output(self.dtype, square(self, call.boolean(2)));
  call.add_output(Dtype::Int32, batch_of(self));
}

void eig(Call& call) {
  check_square(call, 0, "A");
  check_lapack_dtype(call, 0);
  const TensorObject& self = call.tensor(0);
  const Dtype dtype = complex_of(self.dtype);
  call.add_output(dtype, batch_of(self, 1));
  call.add_output(dtype, square(self, call.boolean(1)));
  call.add_output(Dtype::Int32, batch_of(self));
}

void svd(Call& call) {
  check_matrices(call, 0, "A");
  check_lapack_dtype(call, 0);
  const TensorObject& self = call.tensor(0);
  const int64_t m = self.sizes[self.ndim() - 2], n = self.sizes[self.ndim() - 1], k = std::min(m, n);
  const bool full = call.boolean(1), vectors = call.boolean(2);
  const Dims batch = batch_of(self);
  call.add_output(self.dtype, vectors ? joined(batch, {m, full ? m : k}) : Dims{0});
  call.add_output(real_of(self.dtype), joined(batch, {k}));
  call.add_output(self.dtype, vectors ? joined(batch, {full ? n : k, n}) : Dims{0});
  call.add_output(Dtype::Int32, batch);
}

}  // namespace candelabra::shapes
