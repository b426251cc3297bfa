// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.
// Arguments of the operators of the family factorization, for kernels:
//
//   const arguments::LinalgCholeskyEx args(call);
//
// A tensor or number that was not given is a null pointer; other optional arguments are std::optional.
#ifndef CANDELABRA_ARGUMENTS_FACTORIZATION_HPP
#define CANDELABRA_ARGUMENTS_FACTORIZATION_HPP

#include <optional>
#include <span>
#include <string_view>

#include "candelabra/kernel.hpp"

namespace candelabra::arguments {

// linalg_cholesky_ex(Tensor self, bool upper=False) -> (Tensor L, Tensor info)
struct LinalgCholeskyEx {
  const cb_tensor* self;
  bool upper;

  explicit LinalgCholeskyEx(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        upper(call.boolean(1)) {}
};

// linalg_lu_factor_ex(Tensor A, bool pivot=True) -> (Tensor LU, Tensor pivots, Tensor info)
struct LinalgLuFactorEx {
  const cb_tensor* A;
  bool pivot;

  explicit LinalgLuFactorEx(const kernel::Call& call)
      : A(call.optional_tensor(0)),
        pivot(call.boolean(1)) {}
};

// _lu_pivots_to_permutation(Tensor self, int dim, bool backwards=False) -> Tensor
struct LuPivotsToPermutation {
  const cb_tensor* self;
  int64_t dim;
  bool backwards;

  explicit LuPivotsToPermutation(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.integer(1)),
        backwards(call.boolean(2)) {}
};

// linalg_ldl_factor_ex(Tensor self, bool hermitian=False) -> (Tensor LD, Tensor pivots, Tensor info)
struct LinalgLdlFactorEx {
  const cb_tensor* self;
  bool hermitian;

  explicit LinalgLdlFactorEx(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        hermitian(call.boolean(1)) {}
};

// geqrf(Tensor self) -> (Tensor a, Tensor tau)
struct Geqrf {
  const cb_tensor* self;

  explicit Geqrf(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)
struct LinalgQr {
  const cb_tensor* A;
  std::string_view mode;

  explicit LinalgQr(const kernel::Call& call)
      : A(call.optional_tensor(0)),
        mode(call.string(1)) {}
};

// linalg_householder_product(Tensor input, Tensor tau) -> Tensor
struct LinalgHouseholderProduct {
  const cb_tensor* input;
  const cb_tensor* tau;

  explicit LinalgHouseholderProduct(const kernel::Call& call)
      : input(call.optional_tensor(0)),
        tau(call.optional_tensor(1)) {}
};

}  // namespace candelabra::arguments

#endif  // CANDELABRA_ARGUMENTS_FACTORIZATION_HPP
