// Eigenvalues and singular values.
#include "candelabra/positions.hpp"
#include "operators/operator.hpp"
#include "shapes/matrices.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

namespace {

// Eigenvectors have the sizes of the matrices; if not computed, the result is empty.
Dims eigenvector_sizes(const TensorObject& self, bool compute) {
  return compute ? self.sizes : Dims{0};
}

}  // namespace

void eigh(Call& call) {
  namespace at = positions::linalg_eigh_ex;
  check_square(call, at::A, "A");
  check_lapack_dtype(call, at::A, not_in_lapack);
  const TensorObject& self = call.tensor(at::A);
  const std::string_view triangle = call[at::UPLO].string;
  check(triangle == "L" || triangle == "U", PyExc_RuntimeError, "Expected UPLO argument to be 'L' or 'U', but got ",
        triangle);
  call.add_output(real_of(self.dtype), batch_of(self, 1));
  call.add_output(self.dtype, eigenvector_sizes(self, call.boolean(at::compute_v)));
  call.add_output(Dtype::Int32, batch_of(self));
}

void eig(Call& call) {
  namespace at = positions::linalg_eig_ex;
  check_square(call, at::A, "A");
  check_lapack_dtype(call, at::A);
  const TensorObject& self = call.tensor(at::A);
  const Dtype dtype = complex_of(self.dtype);
  call.add_output(dtype, batch_of(self, 1));
  call.add_output(dtype, eigenvector_sizes(self, call.boolean(at::compute_v)));
  call.add_output(Dtype::Int32, batch_of(self));
}

void svd(Call& call) {
  namespace at = positions::linalg_svd_ex;
  check_matrices(call, at::A, "A");
  check_lapack_dtype(call, at::A);
  const TensorObject& self = call.tensor(at::A);
  const int64_t m = self.sizes[self.ndim() - 2], n = self.sizes[self.ndim() - 1], k = std::min(m, n);
  const bool full = call.boolean(at::full_matrices), vectors = call.boolean(at::compute_uv);
  const Dims batch = batch_of(self);
  call.add_output(self.dtype, vectors ? joined(batch, {m, full ? m : k}) : Dims{0});
  call.add_output(real_of(self.dtype), joined(batch, {k}));
  call.add_output(self.dtype, vectors ? joined(batch, {full ? n : k, n}) : Dims{0});
  call.add_output(Dtype::Int32, batch);
}

}  // namespace candelabra::shapes
