// Eigenvalues and singular values of batches of matrices by cuSOLVER. Matrices with non-finite
// elements are replaced by zeros and reported as info = -1.
#include <vector>

#include "candelabra/arguments/spectral.hpp"
#include "drivers/matrices/matrix_kernels.hpp"
#include "drivers/move.hpp"
#include "vendor/cusolver/cusolver.hpp"

namespace candelabra::cuda {
namespace {

// These algorithms synchronize with the device.
void refuse_capture(const Call& call) {
  if (is_capturing(call.stream()))
    throw failure(CB_RUNTIME_ERROR, "%s: cannot be captured in a graph: the algorithm takes decisions on the host",
                  call.raw()->operator_name);
}

struct Flags {
  Workspace memory;
  Flags(const Call& call, const Matrices& a) : memory(call, static_cast<size_t>(a.batches) * sizeof(int32_t)) {
    clear_not_finite(call, a, data());
  }
  int32_t* data() const { return memory.as<int32_t>(); }
};

// Results: eigenvalues, eigenvectors, info.
void eigh(Call& call) {
  const arguments::LinalgEighEx args(call);
  const cb_tensor &input = *args.A, &failures = call.output(2);
  const bool upper = args.UPLO == "U", vectors = args.compute_v;
  dispatch<LapackTypes>(input.dtype, [&]<typename T>() {
    if (input.numel == 0) return clear(call, failures);
    refuse_capture(call);
    const OwnMatrices a = loaded_from(call, input);
    const Flags flags(call, a);
    const Packed values(call, call.output(0)), info(call, failures);
    eigenvalues_symmetric(call, a, upper, vectors, values.data(), info.as<int32_t>());
    tell_not_finite(call, flags.data(), info.as<int32_t>(), a.batches);
    if (vectors) store(call, call.output(1), a);
    values.finish();
    info.finish();
  });
}

// Results: eigenvalues, eigenvectors, info.
void eig(Call& call) {
  const arguments::LinalgEigEx args(call);
  const cb_tensor &input = *args.A, &failures = call.output(2);
  dispatch<LapackTypes>(input.dtype, [&]<typename T>() {
    if (input.numel == 0) return clear(call, failures);
    refuse_capture(call);
    const OwnMatrices a = loaded_from(call, input);
    const Flags flags(call, a);
    const Packed values(call, call.output(0)), info(call, failures);
    const OwnMatrices parts(call, a.dtype, args.compute_v ? a.batches : 0, a.rows, a.columns);
    eigenvalues_general(call, a, values.data(), args.compute_v ? &parts : nullptr, info.as<int32_t>());
    tell_not_finite(call, flags.data(), info.as<int32_t>(), a.batches);
    if (args.compute_v && is_complex_v<T>) {
      store(call, call.output(1), parts);
    } else if (args.compute_v) {
      const OwnMatrices vectors(call, sizeof(T) == 4 ? CB_COMPLEX64 : CB_COMPLEX128, a.batches, a.rows, a.columns);
      pair_vectors(call, parts, values.data(), vectors);
      store(call, call.output(1), vectors);
    }
    values.finish();
    info.finish();
  });
}

// The singular vectors of an empty matrix may be any orthonormal basis.
void store_identity(const Call& call, const cb_tensor& out) {
  if (out.numel == 0) return;
  const OwnMatrices m(call, out.dtype, batch_count(out, 2), rows_of(out), columns_of(out));
  set_identity(call, m);
  store(call, out, m);
}

// Results: U, S, Vh, info.
void svd(Call& call) {
  const arguments::LinalgSvdEx args(call);
  const cb_tensor &input = *args.A, &failures = call.output(3);
  const bool full = args.full_matrices, vectors = args.compute_uv;
  dispatch<LapackTypes>(input.dtype, [&]<typename T>() {
    if (input.numel == 0) {
      if (vectors) store_identity(call, call.output(0)), store_identity(call, call.output(2));
      return clear(call, failures);
    }
    refuse_capture(call);
    // A wide matrix is transposed: A^T = U S W^H gives A = conj(W) S U^T.
    const As as = rows_of(input) >= columns_of(input) ? As::Is : As::Transposed;
    const cb_tensor &left = call.output(as == As::Is ? 0 : 2), &right = call.output(as == As::Is ? 2 : 0);
    const OwnMatrices a = loaded_from(call, input, as);
    const Flags flags(call, a);
    const Packed values(call, call.output(1)), info(call, failures);
    // cuSOLVER's batched routine always computes full matrices; the rest is not stored.
    const bool batched = a.batches > 1 && a.rows <= 32;
    const OwnMatrices u(call, a.dtype, vectors ? a.batches : 0, a.rows, full || batched ? a.rows : a.columns),
        v(call, a.dtype, vectors ? a.batches : 0, a.columns, a.columns);
    singular_values_jacobi(call, a, values.data(), vectors ? &u : nullptr, vectors ? &v : nullptr, info.as<int32_t>());
    if (vectors) {
      conjugate(call, v);  // store() transposes: V^H
      store(call, left, u, as);
      store(call, right, v, as == As::Is ? As::Transposed : As::Is);
    }
    std::vector<int32_t> failed(static_cast<size_t>(a.batches));
    read_back(call, failed.data(), info.data(), failed.size() * sizeof(int32_t));
    bool all_converged = true;
    for (const int32_t each : failed) all_converged &= each == 0;
    if (!all_converged) {
      load(call, a, input, as);
      clear_not_finite(call, a, flags.data());
      const OwnMatrices u_again(call, a.dtype, vectors ? a.batches : 0, a.rows, full ? a.rows : a.columns);
      singular_values_qr(call, a, values.data(), vectors ? &u_again : nullptr, vectors ? &v : nullptr,
                         info.as<int32_t>());
      if (vectors) {
        store(call, left, u_again, as);
        store(call, right, v, as);
      }
    }
    tell_not_finite(call, flags.data(), info.as<int32_t>(), a.batches);
    values.finish();
    info.finish();
  });
}

}  // namespace

void register_spectral(KernelTable& table) {
  table.add<eigh>("linalg_eigh_ex");
  table.add<eig>("linalg_eig_ex");
  table.add<svd>("linalg_svd_ex");
}

}  // namespace candelabra::cuda
