// Classic cuBLAS: triangular systems, and batched factorizations of small matrices, which cuSOLVER
// only offers for single matrices.
#pragma once

#include <cstdint>

#include "drivers/matrices/matrices.hpp"

namespace candelabra::cuda {

// A batch in column-major order, possibly with gaps. Items are `step` elements apart; 0: all are
// the same.
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
  bool upper = false;  // of A as stored
  bool transposed = false;
  bool adjoint = false;  // transposed and conjugated
  bool unit = false;
  int64_t rows, columns, batches;  // of X
  Strided a, x;                    // x holds B, and then X
};
void solve_triangular(const Call& call, const TriangularSystem& system);

// Whether a batch suits the batched routines below better than cuSOLVER's, matrix by matrix.
bool suits_batched(int64_t batches, int64_t size);

// LU factorization in place. `pivots` holds `rows` numbers from 1 per matrix; null: no pivoting.
void factor_lu_batched(const Call& call, const Matrices& a, int32_t* pivots, int32_t* info);
// Computes the inverse from the factors, into other memory.
void invert_lu_batched(const Call& call, const Matrices& lu, const int32_t* pivots, const Matrices& inverse,
                       int32_t* info);
// x holds the right-hand sides on entry and the solution on return.
void solve_lu_batched(const Call& call, const Matrices& lu, const int32_t* pivots, const Matrices& x, bool adjoint);
// QR factorization as LAPACK's geqrf, with min(rows, columns) scales per matrix.
void factor_qr_batched(const Call& call, const Matrices& a, void* scales);

}  // namespace candelabra::cuda
