// Systems of linear equations, batches of them, on cuBLAS and cuSOLVER.
#include <limits>

#include "cublas.hpp"
#include "cublas_dense.hpp"
#include "cusolver.hpp"
#include "matrix_kernels.hpp"
#include "move.hpp"

namespace candelabra::cuda {
namespace {

// Factors of square matrices, which become them, and their pivots in the integers of whatever solves with them.
struct Factors {
  const Matrices& lu;
  bool batched;
  Workspace pivots;

  Factors(const Call& call, const Matrices& a, int32_t* info)
      : lu(a),
        batched(suits_batched(a.batches, a.rows)),
        pivots(call, static_cast<size_t>(a.batches * a.rows) * (batched ? 4u : 8u)) {
    if (batched)
      factor_lu_batched(call, a, pivots.as<int32_t>(), info);
    else
      factor_lu(call, a, pivots.as<int64_t>(), info);
  }
  void solve(const Call& call, const Matrices& x) const {
    if (batched)
      solve_lu_batched(call, lu, pivots.as<int32_t>(), x, false);
    else
      solve_lu(call, lu, pivots.as<int64_t>(), x, false);
  }
};

// (A, B) -> (result, info)
void solve(Call& call) {
  const cb_tensor &matrices = call.tensor(0), &right = call.tensor(1), &failures = call.output(1);
  dispatch<LapackTypes>(matrices.dtype, [&]<typename T>() {
    if (matrices.numel == 0) return clear(call, failures);
    const OwnMatrices a = loaded_from(call, matrices);
    const Packed info(call, failures);
    const Factors factors(call, a, info.as<int32_t>());
    info.finish();
    if (right.numel == 0) return;
    const OwnMatrices x = loaded_from(call, right);
    factors.solve(call, x);
    store(call, call.output(0), x);
  });
}

// (A) -> (inverse, info)
void invert(Call& call) {
  const cb_tensor &matrices = call.tensor(0), &failures = call.output(1);
  dispatch<LapackTypes>(matrices.dtype, [&]<typename T>() {
    if (matrices.numel == 0) return clear(call, failures);
    const OwnMatrices a = loaded_from(call, matrices);
    const Packed info(call, failures);
    const Factors factors(call, a, info.as<int32_t>());
    const OwnMatrices inverse(call, a.dtype, a.batches, a.rows, a.columns);
    if (factors.batched) {
      // Its own info is that of the factors again.
      const Workspace same(call, static_cast<size_t>(a.batches) * sizeof(int32_t));
      invert_lu_batched(call, a, factors.pivots.as<int32_t>(), inverse, same.as<int32_t>());
    } else {
      set_identity(call, inverse);
      factors.solve(call, inverse);
    }
    store(call, call.output(0), inverse);
    info.finish();
  });
}

// How cuBLAS may read the matrices of a tensor where they lie: in columns, or transposed in columns.
struct InPlace {
  Strided memory;
  bool transposed;
};
std::optional<InPlace> readable(const cb_tensor& t) {
  const auto step = batch_step(t);
  if (!step || *step < 0) return std::nullopt;
  const int64_t rows = rows_of(t), columns = columns_of(t), row = t.strides[t.ndim - 2], column = t.strides[t.ndim - 1];
  const auto fits = [](int64_t size, int64_t along, int64_t count, int64_t across) {
    return (along == 1 || size <= 1) && (across >= std::max<int64_t>(1, size) || count <= 1);
  };
  const auto leading = [](int64_t size, int64_t count, int64_t across) { return count <= 1 ? std::max<int64_t>(1, size) : across; };
  if (fits(rows, row, columns, column)) return InPlace{{t.data, leading(rows, columns, column), *step}, false};
  if (fits(columns, column, rows, row)) return InPlace{{t.data, leading(columns, rows, row), *step}, true};
  return std::nullopt;
}

// (A, B, upper, left, unitriangular)
void solve_triangular_kernel(Call& call) {
  const cb_tensor &matrices = call.tensor(0), &right = call.tensor(1), &out = call.output();
  const bool upper = call.boolean(2), left = call.boolean(3), unit = call.boolean(4);
  dispatch<LapackTypes>(matrices.dtype, [&]<typename T>() {
    if (out.numel == 0) return;
    // In rows, X is X^T in columns, and A X = B is X^T A^T = B^T. So the output is worked on where it lies.
    std::optional<OwnMatrices> own;
    Strided x{out.data, std::max<int64_t>(1, columns_of(out)), rows_of(out) * columns_of(out)};
    if (is_contiguous(out)) {
      begin_as(call, out, right);
    } else {
      own.emplace(loaded_from(call, right, As::Transposed));
      x = strided(*own);
    }
    std::optional<InPlace> a = readable(matrices);
    std::optional<OwnMatrices> copy;
    // In place of an argument that the output covers, too.
    if (!a || matrices.data == out.data) {
      copy.emplace(loaded_from(call, matrices));
      a = InPlace{strided(*copy), false};
    }
    // What is transposed in memory has to be A^T: as it is where memory holds it transposed.
    const bool stands_transposed = a->transposed;
    const TriangularSystem system{.dtype = out.dtype,
                                  .left = !left,
                                  .upper = stands_transposed ? !upper : upper,
                                  .transposed = !stands_transposed,
                                  .unit = unit,
                                  .rows = columns_of(out),
                                  .columns = rows_of(out),
                                  .batches = batch_count(out, 2),
                                  .a = a->memory,
                                  .x = x};
    solve_triangular(call, system);
    if (own) store(call, out, *own, As::Transposed);
  });
}

// (LU, pivots, B, adjoint): the factors of lu_factor, rows of B exchanged as they say
void lu_solve(Call& call) {
  const cb_tensor &matrices = call.tensor(0), &exchanges = call.tensor(1), &right = call.tensor(2);
  const bool adjoint = call.boolean(3);
  dispatch<LapackTypes>(matrices.dtype, [&]<typename T>() {
    if (right.numel == 0) return;
    const OwnMatrices lu = loaded_from(call, matrices), x = loaded_from(call, right);
    const Workspace given = packed_copy(call, exchanges);
    const bool batched = suits_batched(lu.batches, lu.rows);
    const int64_t count = lu.batches * lu.rows;
    const Workspace pivots(call, static_cast<size_t>(count) * (batched ? 4u : 8u));
    check_pivots(call, given.as<int32_t>(), count, lu.rows, batched ? pivots.as<int32_t>() : nullptr,
                 batched ? nullptr : pivots.as<int64_t>(), "pivots must be between 1 and {size}, but got {index}");
    if (batched)
      solve_lu_batched(call, lu, pivots.as<int32_t>(), x, adjoint);
    else
      solve_lu(call, lu, pivots.as<int64_t>(), x, adjoint);
    store(call, call.output(), x);
  });
}

// (LD, pivots, B, hermitian)
void ldl_solve(Call& call) {
  const cb_tensor &matrices = call.tensor(0), &exchanges = call.tensor(1), &right = call.tensor(2);
  const bool hermitian = call.boolean(3) && is_complex_dtype(matrices.dtype);
  dispatch<LapackTypes>(matrices.dtype, [&]<typename T>() {
    if (right.numel == 0) return;
    const OwnMatrices ld = loaded_from(call, matrices), x = loaded_from(call, right);
    const Workspace pivots = packed_copy(call, exchanges);
    solve_ldl(call, ld, pivots.as<int32_t>(), hermitian, x,
              "pivots must be numbers of rows from 1 to {size}, or their negatives, but got {index}");
    store(call, call.output(), x);
  });
}

// ---- least squares

constexpr cb_scalar one{CB_SCALAR_INT, 0, 1, 1.0, 0.0}, minus_one{CB_SCALAR_INT, 0, -1, -1.0, 0.0},
    zero{CB_SCALAR_INT, 0, 0, 0.0, 0.0};

// to = alpha * from^T @ right or from @ right, + beta * to
void product(const Call& call, const Matrices& from, bool transposed, const Matrices& right, const Matrices& to,
             const cb_scalar& alpha, const cb_scalar& beta) {
  const Gemm gemm{to.dtype,
                  to.rows,
                  to.columns,
                  right.rows,
                  to.batches,
                  {from.data, from.leading(), from.step(), transposed},
                  {right.data, right.leading(), right.step(), false},
                  to.data,
                  to.leading(),
                  to.step()};
  if (!multiply(call, gemm, alpha, beta))
    throw failure(CB_RUNTIME_ERROR, "%s: cuBLASLt has no algorithm for these matrices", call.raw()->operator_name);
}

void decompose(const Call& call, const Matrices& a, void* scales) {
  if (suits_batched(a.batches, std::max(a.rows, a.columns)))
    factor_qr_batched(call, a, scales);
  else
    factor_qr(call, a, scales);
}

// Of full rank, by A = Q R of the tall matrix among A and A^T.
void least_squares_by_qr(const Call& call, const Matrices& a, bool tall, const Matrices& x, int64_t* ranks) {
  const int64_t k = a.columns;
  const Workspace scales(call, static_cast<size_t>(a.batches * k * itemsize(a.dtype)));
  decompose(call, a, scales.data());
  check_diagonal(
      call, a,
      "The least squares solution could not be computed because the input matrix does not have full rank (error code: {index}).");
  fill_ranks(call, ranks, k, a.batches);
  TriangularSystem system{.dtype = a.dtype,
                          .upper = true,
                          .transposed = !tall,
                          .rows = k,
                          .columns = x.columns,
                          .batches = a.batches,
                          .a = strided(a),
                          .x = strided(x)};
  if (tall) {  // R x = Q^H b; below stands what cannot be reached
    reflect(call, {.v = a, .scales = scales.data(), .scale_step = k, .count = k, .adjoint = true}, x);
    solve_triangular(call, system);
  } else {  // A = R^T Q^T: the shortest solution is conj(Q) R^-T b
    solve_triangular(call, system);
    reflect(call, {.v = a, .scales = scales.data(), .scale_step = k, .count = k, .conjugated = true}, x);
  }
}

// Of any rank, by A = U S V^H of the tall matrix among A and A^T. x holds the right-hand sides in its first rows.
void least_squares_by_svd(const Call& call, const Matrices& a, bool tall, const Matrices& x, double rcond, int64_t* ranks,
                          void* values) {
  const int64_t m = a.rows, k = a.columns;
  const OwnMatrices u(call, a.dtype, a.batches, m, k), v_adjoint(call, a.dtype, a.batches, k, k);
  const Workspace info(call, static_cast<size_t>(a.batches) * sizeof(int32_t));
  singular_values_qr(call, a, values, &u, &v_adjoint, info.as<int32_t>());
  check_finite(call, info.as<int32_t>(), a.batches,
               "the algorithm for computing the SVD failed to converge (error code: {index}).");
  const OwnMatrices y(call, a.dtype, a.batches, k, x.columns);
  if (tall) {
    // V S^+ U^H b, where X^H y is conj(X^T conj(y))
    const OwnMatrices b(call, a.dtype, a.batches, m, x.columns), solution(call, a.dtype, a.batches, k, x.columns);
    copy_bytes(call, b.data, x.data, b.bytes());
    conjugate(call, b);
    product(call, u, true, b, y, one, zero);  // conj(U^H b)
    if (m > k) {
      // What of b cannot be reached: b - U U^H b
      conjugate(call, y);
      conjugate(call, b);
      product(call, u, false, y, b, minus_one, one);
      conjugate(call, y);
    }
    divide_by_singular(call, y, values, rcond, ranks, k);
    product(call, v_adjoint, true, y, solution, one, zero);
    conjugate(call, solution);
    copy_corner(call, x, solution);
    if (m > k) store_norms(call, b, x, k);
  } else {
    // A = (U S V^H)^T = conj(V) S U^T, so x = conj(U) S^+ V^T b: V^T = conj(V^H), and conj(Z) y = conj(Z conj(y))
    const OwnMatrices b(call, a.dtype, a.batches, k, x.columns);
    copy_corner(call, b, x);
    conjugate(call, b);
    product(call, v_adjoint, false, b, y, one, zero);  // conj(V^T b)
    divide_by_singular(call, y, values, rcond, ranks, k);
    product(call, u, false, y, x, one, zero);
    conjugate(call, x);
  }
}

// (A, B, rcond, driver) -> (X of max(m, n) rows, rank, singular values)
void lstsq(Call& call) {
  const cb_tensor &matrices = call.tensor(0), &right = call.tensor(1), &out = call.output(0), &out_rank = call.output(1),
                  &out_values = call.output(2);
  const double rcond = call.real(2);
  const std::string_view driver = call.string(3);
  dispatch<LapackTypes>(matrices.dtype, [&]<typename T>() {
    if (matrices.numel == 0 || right.numel == 0) {
      clear(call, out);
      clear(call, out_rank);
      return clear(call, out_values);
    }
    const bool tall = rows_of(matrices) >= columns_of(matrices);
    const OwnMatrices a = loaded_from(call, matrices, tall ? As::Is : As::Transposed);
    const OwnMatrices x(call, a.dtype, a.batches, a.rows, columns_of(right));
    if (!tall) fill_bytes(call, x.data, 0, x.bytes());
    load(call, x, right);
    const Workspace flags(call, 2 * static_cast<size_t>(a.batches) * sizeof(int32_t));
    const char* const not_finite =
        "the least squares solution could not be computed because the input contains elements that are not finite.";
    clear_not_finite(call, a, flags.as<int32_t>());
    clear_not_finite(call, x, flags.as<int32_t>() + a.batches);
    check_finite(call, flags.as<int32_t>(), 2 * a.batches, not_finite);
    const Packed ranks(call, out_rank);
    if (driver == "gels") {
      least_squares_by_qr(call, a, tall, x, ranks.as<int64_t>());
    } else {
      const Workspace values(call, static_cast<size_t>(a.batches * a.columns) * sizeof(real_t<T>));
      std::optional<Packed> shown;
      if (out_values.numel) shown.emplace(call, out_values);
      least_squares_by_svd(call, a, tall, x, rcond, ranks.as<int64_t>(), shown ? shown->data() : values.data());
      if (shown) shown->finish();
    }
    store(call, out, x);
    ranks.finish();
  });
}

}  // namespace

void register_solving(KernelTable& table) {
  table.add<solve>("linalg_solve_ex");
  table.add<invert>("linalg_inv_ex");
  table.add<solve_triangular_kernel>("linalg_solve_triangular");
  table.add<lu_solve>("linalg_lu_solve");
  table.add<ldl_solve>("linalg_ldl_solve");
  table.add<lstsq>("linalg_lstsq_driver");
}

}  // namespace candelabra::cuda
