// Systems of linear equations.
#include "matrices.hpp"
#include "shapes.hpp"

namespace candelabra::shapes {

namespace {

void check_rows(const Call& call, int i, int j, bool left) {
  const TensorObject &a = call.tensor(i), &b = call.tensor(j);
  const int64_t n = a.sizes[a.ndim() - 1], rows = b.sizes[b.ndim() - (left ? 2 : 1)];
  check(n == rows, PyExc_RuntimeError, linalg_title(call), ": Incompatible shapes of A and B for the equation ",
        left ? "AX = B" : "XA = B", " (", a.sizes[a.ndim() - 2], "x", n, " and ", b.sizes[b.ndim() - 2], "x", b.sizes[b.ndim() - 1],
        ")");
}

// The sizes of B, with the batch of both; both are seen by the kernel with it.
Dims expanded(Call& call, int i, int j) {
  const Dims batch = broadcast_batches(call, i, j);
  const TensorObject& b = call.tensor(j);
  const Dims sizes = joined(batch, {b.sizes[b.ndim() - 2], b.sizes[b.ndim() - 1]});
  expand_batch(call, i, batch);
  expand_batch(call, j, batch);
  return sizes;
}

}  // namespace

void solve(Call& call) {
  check_square(call, 0, "A");
  check_matrices(call, 1, "B");
  check_lapack_dtype(call, 0);
  check_same_dtype(call, 0, 1, "A", "B");
  check_rows(call, 0, 1, true);
  const Dims sizes = expanded(call, 0, 1);
  Dims batch = sizes;
  batch.resize(batch.size() - 2);
  call.add_output(call.tensor(0).dtype, sizes);
  call.add_output(Dtype::Int32, batch);
}

void invert(Call& call) {
  check_square(call, 0, "A");
  check_lapack_dtype(call, 0);
  const TensorObject& self = call.tensor(0);
  call.add_output(self.dtype, self.sizes);
  call.add_output(Dtype::Int32, batch_of(self));
}

void solve_triangular(Call& call) {
  check_square(call, 0, "A");
  check_matrices(call, 1, "B");
  check_lapack_dtype(call, 0);
  check_same_dtype(call, 0, 1, "A", "B");
  check_rows(call, 0, 1, call.boolean(3));
  call.add_output(call.tensor(0).dtype, expanded(call, 0, 1));
}

// LU or LDL factors, their pivots, and right-hand sides
void factored_solve(Call& call) {
  check_square(call, 0, "the factor");
  check_matrices(call, 2, "B");
  check_lapack_dtype(call, 0);
  check_same_dtype(call, 0, 2, "the factor", "B");
  const TensorObject &factor = call.tensor(0), &pivots = call.tensor(1);
  check(pivots.dtype == Dtype::Int32, PyExc_RuntimeError, linalg_title(call), ": Expected pivots to be of dtype int32, but got ",
        name(pivots.dtype));
  check(pivots.sizes == batch_of(factor, 1), PyExc_RuntimeError, linalg_title(call), ": Expected pivots of shape ",
        shown(batch_of(factor, 1)), ", one for each row of each matrix, but got ", shown(pivots.sizes));
  check_rows(call, 0, 2, true);
  const Dims sizes = expanded(call, 0, 2);
  Dims batch = sizes;
  batch.resize(batch.size() - 2);
  expand_batch(call, 1, batch, 1);
  call.add_output(call.tensor(0).dtype, sizes);
}

void cholesky_solve(Call& call) {
  check(call.tensor(0).ndim() >= 2, PyExc_RuntimeError, "b should have at least 2 dimensions, but has ", call.tensor(0).ndim(),
        " dimensions instead");
  check(call.tensor(1).ndim() >= 2, PyExc_RuntimeError, "u should have at least 2 dimensions, but has ", call.tensor(1).ndim(),
        " dimensions instead");
  check_square(call, 1, "input2");
  check_lapack_dtype(call, 0);
  check_same_dtype(call, 0, 1, "input", "input2");
  check_rows(call, 1, 0, true);
  call.add_output(call.tensor(0).dtype, expanded(call, 1, 0));
}

void lstsq(Call& call) {
  check_matrices(call, 0, "A");
  check_matrices(call, 1, "B");
  check_lapack_dtype(call, 0);
  check_same_dtype(call, 0, 1, "input", "other");
  const TensorObject &a = call.tensor(0), &b = call.tensor(1);
  const int64_t m = a.sizes[a.ndim() - 2], n = a.sizes[a.ndim() - 1];
  check(m == b.sizes[b.ndim() - 2], PyExc_RuntimeError, "torch.linalg.lstsq: input.size(-2) should match other.size(-2), but got ",
        m, " and ", b.sizes[b.ndim() - 2]);
  const Dims batch = broadcast_batches(call, 0, 1);
  const int64_t columns = b.sizes[b.ndim() - 1];
  expand_batch(call, 0, batch);
  expand_batch(call, 1, batch);
  const std::string_view driver = call[3].string;
  call.add_output(a.dtype, joined(batch, {std::max(m, n), columns}));
  call.add_output(Dtype::Int64, batch);
  call.add_output(real_of(a.dtype), driver == "gelsd" || driver == "gelss" ? joined(batch, {std::min(m, n)}) : Dims{0});
}

// One number for each matrix.
void batch_scalar(Call& call) {
  check_square(call, 0, "A");
  check_lapack_dtype(call, 0);
  call.add_output(call.tensor(0).dtype, batch_of(call.tensor(0)));
}

void slogdet(Call& call) {
  batch_scalar(call);
  call.add_output(real_of(call.tensor(0).dtype), batch_of(call.tensor(0)));
}

void pseudoinverse(Call& call) {
  check_matrices(call, 0, "A");
  check_lapack_dtype(call, 0);
  if (call.boolean(3)) check_square(call, 0, "A");
  const TensorObject& self = call.tensor(0);
  call.add_output(self.dtype, joined(batch_of(self), {self.sizes[self.ndim() - 1], self.sizes[self.ndim() - 2]}));
}

}  // namespace candelabra::shapes
