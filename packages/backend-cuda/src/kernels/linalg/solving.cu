// Batches of systems of linear equations, solved by cuBLAS and cuSOLVER.
#include <limits>

#include "candelabra/arguments/solving.hpp"
#include "drivers/matrices/matrix_kernels.hpp"
#include "drivers/move.hpp"
#include "runtime/fault_messages.hpp"
#include "vendor/cublas/cublas.hpp"
#include "vendor/cublas/cublas_dense.hpp"
#include "vendor/cusolver/cusolver.hpp"

namespace candelabra::cuda {
namespace {

// The LU factors of square matrices, in their memory. The integer type of the pivots is that of the
// library.
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

// Results: result, info.
void solve(Call& call) {
  const arguments::LinalgSolveEx args(call);
  const cb_tensor &matrices = *args.A, &right = *args.B, &failures = call.output(1);
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

// Results: inverse, info.
void invert(Call& call) {
  const cb_tensor &matrices = *arguments::LinalgInvEx(call).A, &failures = call.output(1);
  dispatch<LapackTypes>(matrices.dtype, [&]<typename T>() {
    if (matrices.numel == 0) return clear(call, failures);
    const OwnMatrices a = loaded_from(call, matrices);
    const Packed info(call, failures);
    const Factors factors(call, a, info.as<int32_t>());
    const OwnMatrices inverse(call, a.dtype, a.batches, a.rows, a.columns);
    if (factors.batched) {
      // The inversion reports the same info as the factorization.
      const Workspace ignored_info(call, static_cast<size_t>(a.batches) * sizeof(int32_t));
      invert_lu_batched(call, a, factors.pivots.as<int32_t>(), inverse, ignored_info.as<int32_t>());
    } else {
      set_identity(call, inverse);
      factors.solve(call, inverse);
    }
    store(call, call.output(0), inverse);
    info.finish();
  });
}

// Matrices that cuBLAS can read in place: column-major, or row-major as their transposes.
struct InPlace {
  Strided memory;
  bool transposed;
};
std::optional<InPlace> readable(const cb_tensor& t) {
  const auto step = batch_step(t);
  if (!step || *step < 0) return std::nullopt;
  const int64_t rows = rows_of(t), columns = columns_of(t), row = t.strides[t.ndim - 2], column = t.strides[t.ndim - 1];
  const auto is_column_major = [](int64_t size, int64_t along, int64_t count, int64_t across) {
    return (along == 1 || size <= 1) && (across >= std::max<int64_t>(1, size) || count <= 1);
  };
  const auto leading = [](int64_t size, int64_t count, int64_t across) {
    return count <= 1 ? std::max<int64_t>(1, size) : across;
  };
  if (is_column_major(rows, row, columns, column))
    return InPlace{{t.data, leading(rows, columns, column), *step}, false};
  if (is_column_major(columns, column, rows, row)) return InPlace{{t.data, leading(columns, rows, row), *step}, true};
  return std::nullopt;
}

void solve_triangular_kernel(Call& call) {
  const arguments::LinalgSolveTriangular args(call);
  const cb_tensor &matrices = *args.self, &right = *args.B, &out = call.output();
  const bool upper = args.upper, left = args.left, unit = args.unitriangular;
  dispatch<LapackTypes>(matrices.dtype, [&]<typename T>() {
    if (out.numel == 0) return;
    // Row-major X is column-major X^T, and A X = B is X^T A^T = B^T: a row-major output is solved
    // in place.
    std::optional<OwnMatrices> own;
    Strided x{out.data, std::max<int64_t>(1, columns_of(out)), rows_of(out) * columns_of(out)};
    if (is_contiguous(out)) {
      initialize_from(call, out, right);
    } else {
      own.emplace(loaded_from(call, right, As::Transposed));
      x = strided(*own);
    }
    std::optional<InPlace> a = readable(matrices);
    std::optional<OwnMatrices> copy;
    // A must also be copied if the output overwrites it.
    if (!a || matrices.data == out.data) {
      copy.emplace(loaded_from(call, matrices));
      a = InPlace{strided(*copy), false};
    }
    // The system needs A^T: memory that holds the transpose is used as it is.
    const bool stored_transposed = a->transposed;
    const TriangularSystem system{.dtype = out.dtype,
                                  .left = !left,
                                  .upper = stored_transposed ? !upper : upper,
                                  .transposed = !stored_transposed,
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

void lu_solve(Call& call) {
  const arguments::LinalgLuSolve args(call);
  const cb_tensor &matrices = *args.LU, &right = *args.B;
  dispatch<LapackTypes>(matrices.dtype, [&]<typename T>() {
    if (right.numel == 0) return;
    const OwnMatrices lu = loaded_from(call, matrices), x = loaded_from(call, right);
    const Workspace given = packed_copy(call, *args.pivots);
    const bool batched = suits_batched(lu.batches, lu.rows);
    const int64_t count = lu.batches * lu.rows;
    const Workspace pivots(call, static_cast<size_t>(count) * (batched ? 4u : 8u));
    check_pivots(call, given.as<int32_t>(), count, lu.rows, batched ? pivots.as<int32_t>() : nullptr,
                 batched ? nullptr : pivots.as<int64_t>(),
                 message_sink(call, "linalg.lu_solve", "pivots must be between 1 and {size}, but got {index}"));
    if (batched)
      solve_lu_batched(call, lu, pivots.as<int32_t>(), x, args.adjoint);
    else
      solve_lu(call, lu, pivots.as<int64_t>(), x, args.adjoint);
    store(call, call.output(), x);
  });
}

void ldl_solve(Call& call) {
  const arguments::LinalgLdlSolve args(call);
  const cb_tensor &matrices = *args.LD, &right = *args.B;
  const bool hermitian = args.hermitian && is_complex_dtype(matrices.dtype);
  dispatch<LapackTypes>(matrices.dtype, [&]<typename T>() {
    if (right.numel == 0) return;
    const OwnMatrices ld = loaded_from(call, matrices), x = loaded_from(call, right);
    const Workspace pivots = packed_copy(call, *args.pivots);
    solve_ldl(call, ld, pivots.as<int32_t>(), hermitian, x,
              message_sink(call, "linalg.ldl_solve",
                           "pivots must be numbers of rows from 1 to {size}, or their negatives, but got {index}"));
    store(call, call.output(), x);
  });
}

// ---- least squares

constexpr const char* lstsq_title = "torch.linalg.lstsq";

constexpr cb_scalar one{CB_SCALAR_INT, 0, 1, 1.0, 0.0, 0}, minus_one{CB_SCALAR_INT, 0, -1, -1.0, 0.0, 0},
    zero{CB_SCALAR_INT, 0, 0, 0.0, 0.0, 0};

// to = alpha * op(from) @ right + beta * to; op transposes if `transposed`.
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

void factor_qr_any(const Call& call, const Matrices& a, void* scales) {
  if (suits_batched(a.batches, std::max(a.rows, a.columns)))
    factor_qr_batched(call, a, scales);
  else
    factor_qr(call, a, scales);
}

// For full rank: the QR factorization of A or A^T, whichever is tall.
void least_squares_by_qr(const Call& call, const Matrices& a, bool tall, const Matrices& x, int64_t* ranks) {
  const int64_t k = a.columns;
  const Workspace scales(call, static_cast<size_t>(a.batches * k * itemsize(a.dtype)));
  factor_qr_any(call, a, scales.data());
  check_diagonal(call, a,
                 message_sink(call, lstsq_title,
                              "The least squares solution could not be computed because the input matrix does not have "
                              "full rank (error code: {index})."));
  fill_ranks(call, ranks, k, a.batches);
  TriangularSystem system{.dtype = a.dtype,
                          .upper = true,
                          .transposed = !tall,
                          .rows = k,
                          .columns = x.columns,
                          .batches = a.batches,
                          .a = strided(a),
                          .x = strided(x)};
  if (tall) {  // R x = Q^H b; the rows below x hold the residual
    reflect(call, {.v = a, .scales = scales.data(), .scale_step = k, .count = k, .adjoint = true}, x);
    solve_triangular(call, system);
  } else {  // A = R^T Q^T: the shortest solution is conj(Q) R^-T b
    solve_triangular(call, system);
    reflect(call, {.v = a, .scales = scales.data(), .scale_step = k, .count = k, .conjugated = true}, x);
  }
}

// For any rank: the SVD A = U S V^H of A or A^T, whichever is tall. The first rows of x hold the
// right-hand sides.
void least_squares_by_svd(const Call& call, const Matrices& a, bool tall, const Matrices& x, double rcond,
                          int64_t* ranks, void* values) {
  const int64_t m = a.rows, k = a.columns;
  const OwnMatrices u(call, a.dtype, a.batches, m, k), v_adjoint(call, a.dtype, a.batches, k, k);
  const Workspace info(call, static_cast<size_t>(a.batches) * sizeof(int32_t));
  singular_values_qr(call, a, values, &u, &v_adjoint, info.as<int32_t>());
  check_finite(
      call, info.as<int32_t>(), a.batches,
      message_sink(call, lstsq_title, "the algorithm for computing the SVD failed to converge (error code: {index})."));
  const OwnMatrices y(call, a.dtype, a.batches, k, x.columns);
  if (tall) {
    // V S^+ U^H b, where X^H y is conj(X^T conj(y))
    const OwnMatrices b(call, a.dtype, a.batches, m, x.columns), solution(call, a.dtype, a.batches, k, x.columns);
    copy_bytes(call, b.data, x.data, b.bytes());
    conjugate(call, b);
    product(call, u, true, b, y, one, zero);  // conj(U^H b)
    if (m > k) {
      // The residual: b - U U^H b
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
    // A = (U S V^H)^T = conj(V) S U^T, so x = conj(U) S^+ V^T b: V^T = conj(V^H), and conj(Z) y =
    // conj(Z conj(y))
    const OwnMatrices b(call, a.dtype, a.batches, k, x.columns);
    copy_corner(call, b, x);
    conjugate(call, b);
    product(call, v_adjoint, false, b, y, one, zero);  // conj(V^T b)
    divide_by_singular(call, y, values, rcond, ranks, k);
    product(call, u, false, y, x, one, zero);
    conjugate(call, x);
  }
}

// Results: X of max(m, n) rows, rank, singular values.
void lstsq(Call& call) {
  const arguments::LinalgLstsqDriver args(call);
  const cb_tensor &matrices = *args.A, &right = *args.B, &out = call.output(0), &out_rank = call.output(1),
                  &out_values = call.output(2);
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
    clear_not_finite(call, a, flags.as<int32_t>());
    clear_not_finite(call, x, flags.as<int32_t>() + a.batches);
    check_finite(call, flags.as<int32_t>(), 2 * a.batches,
                 message_sink(call, lstsq_title,
                              "the least squares solution could not be computed because the input contains elements "
                              "that are not finite."));
    const Packed ranks(call, out_rank);
    if (args.driver == "gels") {
      least_squares_by_qr(call, a, tall, x, ranks.as<int64_t>());
    } else {
      const Workspace values(call, static_cast<size_t>(a.batches * a.columns) * sizeof(real_t<T>));
      std::optional<Packed> packed_values;
      if (out_values.numel) packed_values.emplace(call, out_values);
      least_squares_by_svd(call, a, tall, x, args.rcond, ranks.as<int64_t>(),
                           packed_values ? packed_values->data() : values.data());
      if (packed_values) packed_values->finish();
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
