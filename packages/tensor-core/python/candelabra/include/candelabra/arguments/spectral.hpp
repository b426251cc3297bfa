// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.
// Arguments of the operators of the family spectral, for kernels:
//
//   const arguments::LinalgEighEx args(call);
//
// A tensor or number that was not given is a null pointer; other optional arguments are std::optional.
#ifndef CANDELABRA_ARGUMENTS_SPECTRAL_HPP
#define CANDELABRA_ARGUMENTS_SPECTRAL_HPP

#include <optional>
#include <span>
#include <string_view>

#include "candelabra/kernel.hpp"

namespace candelabra::arguments {

// linalg_eigh_ex(Tensor A, str UPLO='L', bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors, Tensor info)
struct LinalgEighEx {
  const cb_tensor* A;
  std::string_view UPLO;
  bool compute_v;

  explicit LinalgEighEx(const kernel::Call& call)
      : A(call.optional_tensor(0)),
        UPLO(call.string(1)),
        compute_v(call.boolean(2)) {}
};

// linalg_eig_ex(Tensor A, bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors, Tensor info)
struct LinalgEigEx {
  const cb_tensor* A;
  bool compute_v;

  explicit LinalgEigEx(const kernel::Call& call)
      : A(call.optional_tensor(0)),
        compute_v(call.boolean(1)) {}
};

// linalg_svd_ex(Tensor A, bool full_matrices=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor Vh, Tensor info)
struct LinalgSvdEx {
  const cb_tensor* A;
  bool full_matrices;
  bool compute_uv;

  explicit LinalgSvdEx(const kernel::Call& call)
      : A(call.optional_tensor(0)),
        full_matrices(call.boolean(1)),
        compute_uv(call.boolean(2)) {}
};

}  // namespace candelabra::arguments

#endif  // CANDELABRA_ARGUMENTS_SPECTRAL_HPP
