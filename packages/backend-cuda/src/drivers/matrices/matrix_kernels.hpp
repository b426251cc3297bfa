// Kernels on batches of matrices that NVIDIA's libraries lack: pointer tables, triangles, pivots,
// Householder reflections.
#pragma once

#include <cstdint>

#include "drivers/matrices/matrices.hpp"
#include "runtime/faults.hpp"

namespace candelabra::cuda {

// Device memory with `count` addresses, `step` bytes apart, for the libraries' batched routines.
Workspace addresses(const Call& call, void* first, int64_t step, int64_t count);
Workspace addresses(const Call& call, const Matrices& m);

// Zeroes the other triangle; keeps the diagonal.
void keep_triangle(const Call& call, const Matrices& a, bool upper);
// Ones on the diagonal, zeros elsewhere.
void set_identity(const Call& call, const Matrices& a);
void conjugate(const Call& call, const Matrices& a);  // in place; nothing for real ones

// Sets flags[b] to 1 if matrix b has elements that are not finite, else to 0. Such a matrix is
// filled with zeros, so that every algorithm terminates.
void clear_not_finite(const Call& call, const Matrices& a, int32_t* flags);
// Sets info[b] to -1 if flags[b] is set.
void tell_not_finite(const Call& call, const int32_t* flags, int32_t* info, int64_t count);

void narrow_pivots(const Call& call, const int64_t* from, int32_t* to, int64_t count);
// Writes 1 to `length` for each matrix: the pivots of rows that are not swapped.
void count_pivots(const Call& call, int32_t* pivots, int64_t length, int64_t count);
// Copies pivots from 1 to `rows`; others become 1 and are reported. Either result may be null.
void check_pivots(const Call& call, const int32_t* pivots, int64_t count, int64_t rows, int32_t* narrow, int64_t* wide,
                  FaultSink sink);

// x = Q x for Q = H(0) H(1) …, `count` reflections I - tau v v^H. Their vectors are the columns of
// v below the diagonal.
struct Reflections {
  Matrices v;
  const void* scales;
  int64_t scale_step, count;
  bool adjoint = false;        // Q^H x
  bool conjugated = false;     // of Q with conjugated elements
  bool from_identity = false;  // x starts as the first columns of the identity
};
void reflect(const Call& call, const Reflections& reflections, const Matrices& x);

// Bunch-Kaufman factors L D L^T or L D L^H of the lower triangle: one block of threads per matrix.
void factor_ldl(const Call& call, const Matrices& a, bool hermitian, int32_t* pivots, int32_t* info);
// Reports invalid pivots.
void solve_ldl(const Call& call, const Matrices& ld, const int32_t* pivots, bool hermitian, const Matrices& x,
               FaultSink sink);

// Complex eigenvectors of real matrices from real and imaginary parts in adjacent columns (see
// eigenvalues_general).
void pair_vectors(const Call& call, const Matrices& parts, const void* values, const Matrices& vectors);

// Divides rows of x by singular values. Rows become zero where these are not above rcond times the
// first; `ranks` counts the others.
void divide_by_singular(const Call& call, const Matrices& x, const void* values, double rcond, int64_t* ranks,
                        int64_t count);
// Stores the norm of each column of `rest` into row `row` of x, and zeros below it.
void store_norms(const Call& call, const Matrices& rest, const Matrices& x, int64_t row);
// Reports the index of a zero on the diagonal.
void check_diagonal(const Call& call, const Matrices& r, FaultSink sink);
// Reports matrices with elements that are not finite.
void check_finite(const Call& call, const int32_t* flags, int64_t count, FaultSink sink);
void fill_ranks(const Call& call, int64_t* ranks, int64_t value, int64_t count);

}  // namespace candelabra::cuda
