// cuSOLVER: factorizations, eigenvalues and singular values of matrices one after the other. All
// are queued on the call's stream; info is in device memory, one number for each matrix.
#pragma once

#include <cstdint>

#include "drivers/matrices/matrices.hpp"

namespace candelabra::cuda {

// Triangles are those of the matrices as they lie in column-major memory. The other triangle keeps
// what it had.
void factor_cholesky(const Call& call, const Matrices& a, bool upper, int32_t* info);
// Pivots, min(rows, columns) for each matrix, count from 1; null: rows are not exchanged.
void factor_lu(const Call& call, const Matrices& a, int64_t* pivots, int32_t* info);
// x holds the right-hand sides, and then the solution.
void solve_lu(const Call& call, const Matrices& lu, const int64_t* pivots, const Matrices& x, bool adjoint);
// As LAPACK's geqrf; min(rows, columns) scales for each matrix.
void factor_qr(const Call& call, const Matrices& a, void* scales);
// q, of at least `count` columns and no more than rows, holds reflections in its first columns, and
// then the first columns of their product. `scales` of matrices lie `scale_step` elements apart.
void form_q(const Call& call, const Matrices& q, int64_t count, const void* scales, int64_t scale_step);
// Bunch and Kaufman's factors of symmetric matrices, as LAPACK's sytrf has them for the lower
// triangle.
void factor_symmetric(const Call& call, const Matrices& a, int32_t* pivots, int32_t* info);

// Values ascending, `rows` for each matrix; a becomes the eigenvectors where they are wanted, else
// it is spoilt.
void eigenvalues_symmetric(const Call& call, const Matrices& a, bool upper, bool vectors, void* values, int32_t* info);
// Complex values. Vectors are of the type of a: real matrices have the real and the imaginary part
// of a pair of conjugate vectors in two columns, as LAPACK's geev does. No vectors where they are
// null.
void eigenvalues_general(const Call& call, const Matrices& a, void* values, const Matrices* vectors, int32_t* info);

// Matrices of no more columns than rows. u is of rows x rows or rows x columns, v (not conjugated
// and not transposed) of columns x columns; both or none. info is above 0 where the iteration did
// not converge. `a` is spoilt.
void singular_values_jacobi(const Call& call, const Matrices& a, void* values, const Matrices* u, const Matrices* v,
                            int32_t* info);
// The same by another algorithm, slower and surer; here the second factor is V's adjoint.
void singular_values_qr(const Call& call, const Matrices& a, void* values, const Matrices* u, const Matrices* v_adjoint,
                        int32_t* info);

}  // namespace candelabra::cuda
