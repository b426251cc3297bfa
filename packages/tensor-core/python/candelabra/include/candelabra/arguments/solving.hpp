// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.
// Arguments of the operators of the family solving, for kernels:
//
//   const arguments::LinalgSolveEx args(call);
//
// A tensor or number that was not given is a null pointer; other optional arguments are std::optional.
#ifndef CANDELABRA_ARGUMENTS_SOLVING_HPP
#define CANDELABRA_ARGUMENTS_SOLVING_HPP

#include <optional>
#include <span>
#include <string_view>

#include "candelabra/kernel.hpp"

namespace candelabra::arguments {

// linalg_solve_ex(Tensor A, Tensor B) -> (Tensor result, Tensor info)
struct LinalgSolveEx {
  const cb_tensor* A;
  const cb_tensor* B;

  explicit LinalgSolveEx(const kernel::Call& call)
      : A(call.optional_tensor(0)),
        B(call.optional_tensor(1)) {}
};

// linalg_inv_ex(Tensor A) -> (Tensor inverse, Tensor info)
struct LinalgInvEx {
  const cb_tensor* A;

  explicit LinalgInvEx(const kernel::Call& call)
      : A(call.optional_tensor(0)) {}
};

// linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor
struct LinalgSolveTriangular {
  const cb_tensor* self;
  const cb_tensor* B;
  bool upper;
  bool left;
  bool unitriangular;

  explicit LinalgSolveTriangular(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        B(call.optional_tensor(1)),
        upper(call.boolean(2)),
        left(call.boolean(3)),
        unitriangular(call.boolean(4)) {}
};

// linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, bool adjoint=False) -> Tensor
struct LinalgLuSolve {
  const cb_tensor* LU;
  const cb_tensor* pivots;
  const cb_tensor* B;
  bool adjoint;

  explicit LinalgLuSolve(const kernel::Call& call)
      : LU(call.optional_tensor(0)),
        pivots(call.optional_tensor(1)),
        B(call.optional_tensor(2)),
        adjoint(call.boolean(3)) {}
};

// cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor
struct CholeskySolve {
  const cb_tensor* self;
  const cb_tensor* input2;
  bool upper;

  explicit CholeskySolve(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        input2(call.optional_tensor(1)),
        upper(call.boolean(2)) {}
};

// linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, bool hermitian=False) -> Tensor
struct LinalgLdlSolve {
  const cb_tensor* LD;
  const cb_tensor* pivots;
  const cb_tensor* B;
  bool hermitian;

  explicit LinalgLdlSolve(const kernel::Call& call)
      : LD(call.optional_tensor(0)),
        pivots(call.optional_tensor(1)),
        B(call.optional_tensor(2)),
        hermitian(call.boolean(3)) {}
};

// linalg_lstsq_driver(Tensor A, Tensor B, float rcond, str driver) -> (Tensor X, Tensor rank, Tensor singular_values)
struct LinalgLstsqDriver {
  const cb_tensor* A;
  const cb_tensor* B;
  double rcond;
  std::string_view driver;

  explicit LinalgLstsqDriver(const kernel::Call& call)
      : A(call.optional_tensor(0)),
        B(call.optional_tensor(1)),
        rcond(call.real(2)),
        driver(call.string(3)) {}
};

// linalg_det(Tensor A) -> Tensor
struct LinalgDet {
  const cb_tensor* A;

  explicit LinalgDet(const kernel::Call& call)
      : A(call.optional_tensor(0)) {}
};

// linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)
struct LinalgSlogdet {
  const cb_tensor* A;

  explicit LinalgSlogdet(const kernel::Call& call)
      : A(call.optional_tensor(0)) {}
};

// linalg_pinv_atol_rtol(Tensor A, Tensor atol, Tensor rtol, bool hermitian=False) -> Tensor
struct LinalgPinvAtolRtol {
  const cb_tensor* A;
  const cb_tensor* atol;
  const cb_tensor* rtol;
  bool hermitian;

  explicit LinalgPinvAtolRtol(const kernel::Call& call)
      : A(call.optional_tensor(0)),
        atol(call.optional_tensor(1)),
        rtol(call.optional_tensor(2)),
        hermitian(call.boolean(3)) {}
};

}  // namespace candelabra::arguments

#endif  // CANDELABRA_ARGUMENTS_SOLVING_HPP
