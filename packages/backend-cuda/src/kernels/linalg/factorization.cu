// Factorizations of batches of matrices by cuSOLVER and cuBLAS: Cholesky, LU, LDL, QR.
#include "candelabra/arguments/factorization.hpp"
#include "drivers/matrices/matrix_kernels.hpp"
#include "drivers/move.hpp"
#include "vendor/cublas/cublas_dense.hpp"
#include "vendor/cusolver/cusolver.hpp"

namespace candelabra::cuda {
namespace {

void clear_info(const Call& call, const cb_tensor& info) {
  if (info.numel) clear(call, info);
}

// Results: L, info.
void cholesky(Call& call) {
  const arguments::LinalgCholeskyEx args(call);
  const cb_tensor &input = *args.self, &out = call.output(0), &failures = call.output(1);
  const bool upper = args.upper;
  dispatch<LapackTypes>(input.dtype, [&]<typename T>() {
    if (input.numel == 0) return clear_info(call, failures);
    const Packed info(call, failures);
    if (is_contiguous(out)) {
      // A row-major matrix is the column-major transpose, whose factor is the transpose of ours.
      initialize_from(call, out, input);
      const Matrices transposed{out.data, out.dtype, batch_count(out, 2), columns_of(out), rows_of(out)};
      factor_cholesky(call, transposed, !upper, info.as<int32_t>());
      keep_triangle(call, transposed, !upper);
    } else {
      const OwnMatrices a = loaded_from(call, input);
      factor_cholesky(call, a, upper, info.as<int32_t>());
      keep_triangle(call, a, upper);
      store(call, out, a);
    }
    info.finish();
  });
}

// Results: LU, pivots, info.
void lu_factor(Call& call) {
  const arguments::LinalgLuFactorEx args(call);
  const cb_tensor &input = *args.A, &failures = call.output(2);
  const bool pivot = args.pivot;
  dispatch<LapackTypes>(input.dtype, [&]<typename T>() {
    if (input.numel == 0) return clear_info(call, failures);
    const OwnMatrices a = loaded_from(call, input);
    const Packed pivots(call, call.output(1)), info(call, failures);
    const int64_t length = std::min(a.rows, a.columns), count = a.batches * length;
    if (a.rows == a.columns && suits_batched(a.batches, a.rows)) {
      factor_lu_batched(call, a, pivot ? pivots.as<int32_t>() : nullptr, info.as<int32_t>());
    } else if (pivot) {
      const Workspace wide(call, static_cast<size_t>(count) * sizeof(int64_t));
      factor_lu(call, a, wide.as<int64_t>(), info.as<int32_t>());
      narrow_pivots(call, wide.as<int64_t>(), pivots.as<int32_t>(), count);
    } else {
      factor_lu(call, a, nullptr, info.as<int32_t>());
    }
    if (!pivot) count_pivots(call, pivots.as<int32_t>(), length, count);
    store(call, call.output(0), a);
    pivots.finish();
    info.finish();
  });
}

// Results: LD, pivots, info.
void ldl_factor(Call& call) {
  const arguments::LinalgLdlFactorEx args(call);
  const cb_tensor &input = *args.self, &failures = call.output(2);
  const bool hermitian = args.hermitian && is_complex_dtype(input.dtype);
  dispatch<LapackTypes>(input.dtype, [&]<typename T>() {
    if (input.numel == 0) return clear_info(call, failures);
    const OwnMatrices a = loaded_from(call, input);
    const Packed pivots(call, call.output(1)), info(call, failures);
    // One block of threads suffices for a small matrix. cuSOLVER has no Hermitian LDL.
    if (!hermitian && a.rows > 256 && a.batches <= 8)
      factor_symmetric(call, a, pivots.as<int32_t>(), info.as<int32_t>());
    else
      factor_ldl(call, a, hermitian, pivots.as<int32_t>(), info.as<int32_t>());
    keep_triangle(call, a, false);
    store(call, call.output(0), a);
    pivots.finish();
    info.finish();
  });
}

void factor_qr_any(const Call& call, const Matrices& a, void* scales) {
  if (suits_batched(a.batches, std::max(a.rows, a.columns)))
    factor_qr_batched(call, a, scales);
  else
    factor_qr(call, a, scales);
}

// Sets q to the first columns of the product of the `count` Householder reflections in `from`.
void product_of_reflections(const Call& call, const Matrices& q, const Matrices& from, const void* scales,
                            int64_t count) {
  if (q.empty()) return;
  if (count == 0) return set_identity(call, q);
  if (suits_batched(q.batches, q.rows)) {
    reflect(call, {.v = from, .scales = scales, .scale_step = count, .count = count, .from_identity = true}, q);
  } else {
    copy_corner(call, q, from);
    form_q(call, q, count, scales, count);
  }
}

// Results: a, tau.
void geqrf(Call& call) {
  const cb_tensor& input = *arguments::Geqrf(call).self;
  dispatch<LapackTypes>(input.dtype, [&]<typename T>() {
    if (input.numel == 0) return;
    const OwnMatrices a = loaded_from(call, input);
    const Packed scales(call, call.output(1));
    factor_qr_any(call, a, scales.data());
    store(call, call.output(0), a);
    scales.finish();
  });
}

// Results: Q, R.
void qr(Call& call) {
  const arguments::LinalgQr args(call);
  const cb_tensor &input = *args.A, &out_q = call.output(0), &out_r = call.output(1);
  const bool needs_q = args.mode != "r";
  dispatch<LapackTypes>(input.dtype, [&]<typename T>() {
    const int64_t batches = batch_count(input, 2), m = rows_of(input), n = columns_of(input), k = std::min(m, n);
    if (input.numel == 0) {  // Q of an empty matrix is the identity
      if (!needs_q || out_q.numel == 0) return;
      const OwnMatrices q(call, input.dtype, batches, m, columns_of(out_q));
      set_identity(call, q);
      return store(call, out_q, q);
    }
    const OwnMatrices a = loaded_from(call, input);
    const Workspace scales(call, static_cast<size_t>(batches * k * itemsize(input.dtype)));
    factor_qr_any(call, a, scales.data());
    const OwnMatrices r(call, input.dtype, batches, rows_of(out_r), n);
    copy_corner(call, r, a);
    keep_triangle(call, r, true);
    store(call, out_r, r);
    if (!needs_q) return;
    const OwnMatrices q(call, input.dtype, batches, m, columns_of(out_q));
    product_of_reflections(call, q, a, scales.data(), k);
    store(call, out_q, q);
  });
}

// The result has as many columns as the input.
void householder_product(Call& call) {
  const arguments::LinalgHouseholderProduct args(call);
  const cb_tensor &input = *args.input, &scales = *args.tau;
  dispatch<LapackTypes>(input.dtype, [&]<typename T>() {
    if (input.numel == 0) return;
    const OwnMatrices a = loaded_from(call, input);
    const OwnMatrices q(call, a.dtype, a.batches, a.rows, a.columns);
    const Workspace packed = packed_copy(call, scales);
    product_of_reflections(call, q, a, packed.data(), scales.sizes[scales.ndim - 1]);
    store(call, call.output(0), q);
  });
}

}  // namespace

void register_factorization(KernelTable& table) {
  table.add<cholesky>("linalg_cholesky_ex");
  table.add<lu_factor>("linalg_lu_factor_ex");
  table.add<ldl_factor>("linalg_ldl_factor_ex");
  table.add<geqrf>("geqrf");
  table.add<qr>("linalg_qr");
  table.add<householder_product>("linalg_householder_product");
}

}  // namespace candelabra::cuda
