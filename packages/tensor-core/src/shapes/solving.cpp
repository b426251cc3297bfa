// Systems of linear equations.
#include "candelabra/positions.hpp"
#include "operators/operator.hpp"
#include "shapes/matrices.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

namespace {

// Checks that the sizes of A (n, n) and B fit the equation AX = B (`left`) or XA = B.
void check_equation(const Call& call, int a_argument, int b_argument, bool left) {
  const TensorObject &a = call.tensor(a_argument), &b = call.tensor(b_argument);
  const int64_t n = a.sizes[a.ndim() - 1], rows = b.sizes[b.ndim() - (left ? 2 : 1)];
  check(n == rows, PyExc_RuntimeError, call.op.title, ": Incompatible shapes of A and B for the equation ",
        left ? "AX = B" : "XA = B", " (", a.sizes[a.ndim() - 2], "x", n, " and ", b.sizes[b.ndim() - 2], "x",
        b.sizes[b.ndim() - 1], ")");
}

// Broadcasts the batches of A and B to one. Returns the sizes of B with that batch.
Dims broadcast_right_hand_side(Call& call, int a_argument, int b_argument) {
  const Dims batch = broadcast_batches(call, a_argument, b_argument);
  const TensorObject& b = call.tensor(b_argument);
  const Dims sizes = joined(batch, {b.sizes[b.ndim() - 2], b.sizes[b.ndim() - 1]});
  broadcast_batch(call, a_argument, batch);
  broadcast_batch(call, b_argument, batch);
  return sizes;
}

}  // namespace

void solve(Call& call) {
  namespace at = positions::linalg_solve_ex;
  check_square(call, at::A, "A");
  check_matrices(call, at::B, "B");
  check_lapack_dtype(call, at::A);
  check_same_dtype(call, at::A, at::B, "A", "B");
  check_equation(call, at::A, at::B, true);
  const Dims sizes = broadcast_right_hand_side(call, at::A, at::B);
  Dims batch = sizes;
  batch.resize(batch.size() - 2);
  call.add_output(call.tensor(at::A).dtype, sizes);
  call.add_output(Dtype::Int32, batch);
}

void invert(Call& call) {
  namespace at = positions::linalg_inv_ex;
  check_square(call, at::A, "A");
  check_lapack_dtype(call, at::A, {.half = PyExc_RuntimeError});
  const TensorObject& self = call.tensor(at::A);
  call.add_output(self.dtype, self.sizes);
  call.add_output(Dtype::Int32, batch_of(self));
}

void solve_triangular(Call& call) {
  namespace at = positions::linalg_solve_triangular;
  check_square(call, at::self, "A");
  check_matrices(call, at::B, "B");
  check_lapack_dtype(call, at::self, not_in_lapack);
  check_same_dtype(call, at::self, at::B, "A", "B");
  check_equation(call, at::self, at::B, call.boolean(at::left));
  call.add_output(call.tensor(at::self).dtype, broadcast_right_hand_side(call, at::self, at::B));
}

// linalg_lu_solve, linalg_ldl_solve: the same positions; LD stands where LU does.
void factored_solve(Call& call) {
  namespace at = positions::linalg_lu_solve;
  check_square(call, at::LU, "the factor");
  check_matrices(call, at::B, "B");
  check_lapack_dtype(call, at::LU);
  check_same_dtype(call, at::LU, at::B, "the factor", "B");
  const TensorObject &factor = call.tensor(at::LU), &pivots = call.tensor(at::pivots);
  check(pivots.dtype == Dtype::Int32, PyExc_RuntimeError, call.op.title,
        ": Expected pivots to be of dtype int32, but got ", name(pivots.dtype));
  check(pivots.sizes == batch_of(factor, 1), PyExc_RuntimeError, call.op.title, ": Expected pivots of shape ",
        shown(batch_of(factor, 1)), ", one for each row of each matrix, but got ", shown(pivots.sizes));
  check_equation(call, at::LU, at::B, true);
  const Dims sizes = broadcast_right_hand_side(call, at::LU, at::B);
  Dims batch = sizes;
  batch.resize(batch.size() - 2);
  broadcast_batch(call, at::pivots, batch, 1);
  call.add_output(call.tensor(at::LU).dtype, sizes);
}

void cholesky_solve(Call& call) {
  namespace at = positions::cholesky_solve;
  const int b_ndim = call.tensor(at::self).ndim(), u_ndim = call.tensor(at::input2).ndim();
  check(b_ndim >= 2, PyExc_RuntimeError, "b should have at least 2 dimensions, but has ", b_ndim,
        " dimensions instead");
  check(u_ndim >= 2, PyExc_RuntimeError, "u should have at least 2 dimensions, but has ", u_ndim,
        " dimensions instead");
  check_square(call, at::input2, "input2");
  check_lapack_dtype(call, at::self);
  check_same_dtype(call, at::self, at::input2, "input", "input2");
  check_equation(call, at::input2, at::self, true);
  call.add_output(call.tensor(at::self).dtype, broadcast_right_hand_side(call, at::input2, at::self));
}

void lstsq(Call& call) {
  namespace at = positions::linalg_lstsq_driver;
  check_matrices(call, at::A, "A");
  check_matrices(call, at::B, "B");
  check_lapack_dtype(call, at::A);
  check_same_dtype(call, at::A, at::B, "input", "other");
  const std::string_view driver = call[at::driver].string;
  check(driver == "gels" || driver == "gelsy" || driver == "gelsd" || driver == "gelss", PyExc_RuntimeError,
        "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), but got ", driver);
  const TensorObject &a = call.tensor(at::A), &b = call.tensor(at::B);
  const int64_t m = a.sizes[a.ndim() - 2], n = a.sizes[a.ndim() - 1];
  check(m == b.sizes[b.ndim() - 2], PyExc_RuntimeError,
        "torch.linalg.lstsq: input.size(-2) should match other.size(-2), but got ", m, " and ", b.sizes[b.ndim() - 2]);
  const Dims batch = broadcast_batches(call, at::A, at::B);
  const int64_t columns = b.sizes[b.ndim() - 1];
  broadcast_batch(call, at::A, batch);
  broadcast_batch(call, at::B, batch);
  call.add_output(a.dtype, joined(batch, {std::max(m, n), columns}));
  call.add_output(Dtype::Int64, batch);
  call.add_output(real_of(a.dtype), driver == "gelsd" || driver == "gelss" ? joined(batch, {std::min(m, n)}) : Dims{0});
}

// linalg_det, linalg_slogdet: the same positions. One number for each matrix.
void batch_scalar(Call& call) {
  namespace at = positions::linalg_det;
  check_square(call, at::A, "A");
  check_lapack_dtype(call, at::A);
  call.add_output(call.tensor(at::A).dtype, batch_of(call.tensor(at::A)));
}

void slogdet(Call& call) {
  namespace at = positions::linalg_slogdet;
  batch_scalar(call);
  call.add_output(real_of(call.tensor(at::A).dtype), batch_of(call.tensor(at::A)));
}

void pseudoinverse(Call& call) {
  namespace at = positions::linalg_pinv_atol_rtol;
  check_matrices(call, at::A, "A");
  check_lapack_dtype(call, at::A);
  if (call.boolean(at::hermitian)) check_square(call, at::A, "A");
  const TensorObject& self = call.tensor(at::A);
  call.add_output(self.dtype, joined(batch_of(self), {self.sizes[self.ndim() - 1], self.sizes[self.ndim() - 2]}));
}

}  // namespace candelabra::shapes
