// Classic cuBLAS: triangular systems, and routines on batches of small matrices that cuSOLVER has
// for single ones.
#pragma once

#include <cstdint>

#include "drivers/matrices/matrices.hpp"

namespace candelabra::cuda {

// A batch in column-major order with gaps: items lie `step` elements apart, 0 where all are the
// same.
struct Strided {
  void* data;
  int64_t leading, step;
};
inline Strided strided(const Matrices& m) {
  return {m.data, m.leading(), m.step()};
}

struct TriangularSystem {
  int32_t dtype;
  bool left = true;    // op(A) X = B; else X op(A) = B
  bool upper = false;  // of A as it lies in memory
  bool transposed = false;
  bool adjoint = false;  // transposed and conjugated
  bool unit = false;
  int64_t rows, columns, batches;  // of X
  Strided a, x;                    // x holds B, and then X
};
void solve_triangular(const Call& call, const TriangularSystem& system);

// Whether batches go to the routines below, which take all at once, and not to cuSOLVER's one after
// the other.
bool suits_batched(int64_t batches, int64_t size);

// Square matrices become their factors. Pivots, `rows` for each matrix, count from 1; null: rows
// are not exchanged.
void factor_lu_batched(const Call& call, const Matrices& a, int32_t* pivots, int32_t* info);
// The inverse from the factors, to other memory.
void invert_lu_batched(const Call& call, const Matrices& lu, const int32_t* pivots, const Matrices& inverse,
                       int32_t* info);
// x holds the right-hand sides, and then the solution.
void solve_lu_batched(const Call& call, const Matrices& lu, const int32_t* pivots, const Matrices& x, bool adjoint);
// As LAPACK's geqrf; min(rows, columns) scales for each matrix.
void factor_qr_batched(const Call& call, const Matrices& a, void* scales);

}  // namespace candelabra::cuda
