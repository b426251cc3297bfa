// cuSOLVER: factorizations, eigenvalues and singular values, matrix by matrix. All work is queued
// on the call's stream; info is in device memory, one number per matrix.
#pragma once

#include <cstdint>

#include "drivers/matrices/matrices.hpp"

namespace candelabra::cuda {

// The triangle is that of the column-major matrices. The other triangle is unchanged.
void factor_cholesky(const Call& call, const Matrices& a, bool upper, int32_t* info);
// `pivots` holds min(rows, columns) numbers from 1 per matrix; null: no pivoting.
void factor_lu(const Call& call, const Matrices& a, int64_t* pivots, int32_t* info);
// x holds the right-hand sides on entry and the solution on return.
void solve_lu(const Call& call, const Matrices& lu, const int64_t* pivots, const Matrices& x, bool adjoint);
// QR factorization as LAPACK's geqrf, with min(rows, columns) scales per matrix.
void factor_qr(const Call& call, const Matrices& a, void* scales);
// q has at least `count` and at most `rows` columns. On entry its first columns hold reflections;
// on return, the first columns of their product. The `scales` of matrices are `scale_step` elements
// apart.
void form_q(const Call& call, const Matrices& q, int64_t count, const void* scales, int64_t scale_step);
// Bunch-Kaufman factorization of symmetric matrices, as LAPACK's sytrf for the lower triangle.
void factor_symmetric(const Call& call, const Matrices& a, int32_t* pivots, int32_t* info);

// Eigenvalues in ascending order, `rows` per matrix. `a` becomes the eigenvectors if they are
// requested; otherwise it is clobbered.
void eigenvalues_symmetric(const Call& call, const Matrices& a, bool upper, bool vectors, void* values, int32_t* info);
// Complex eigenvalues. Vectors have the type of `a`: for real matrices, two columns hold the real
// and the imaginary part of a conjugate pair, as in LAPACK's geev. Null: no vectors.
void eigenvalues_general(const Call& call, const Matrices& a, void* values, const Matrices* vectors, int32_t* info);

// For matrices with no more columns than rows. u is rows x rows or rows x columns, v (not
// conjugated and not transposed) columns x columns; both or neither. info is above 0 if the
// iteration did not converge. `a` is clobbered.
void singular_values_jacobi(const Call& call, const Matrices& a, void* values, const Matrices* u, const Matrices* v,
                            int32_t* info);
// The same by the QR algorithm, which is slower and more robust; here the second factor is the
// adjoint of V.
void singular_values_qr(const Call& call, const Matrices& a, void* values, const Matrices* u, const Matrices* v_adjoint,
                        int32_t* info);

}  // namespace candelabra::cuda
