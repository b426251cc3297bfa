// What batches of matrices need beyond NVIDIA's libraries: tables of addresses, triangles, pivots,
// Householder's reflections.
#pragma once

#include <cstdint>

#include "drivers/matrices/matrices.hpp"
#include "runtime/faults.hpp"

namespace candelabra::cuda {

// Device memory with `count` addresses, `step` bytes apart: what routines on batches take.
Workspace addresses(const Call& call, void* first, int64_t step, int64_t count);
Workspace addresses(const Call& call, const Matrices& m);

// Zeros beside the triangle that stays; the diagonal stays.
void keep_triangle(const Call& call, const Matrices& a, bool upper);
// Ones on the diagonal, zeros elsewhere.
void set_identity(const Call& call, const Matrices& a);
void conjugate(const Call& call, const Matrices& a);  // in place; nothing for real ones

// flags[b] becomes 1 where matrix b has elements that are not finite, else 0; such a matrix becomes
// zeros, with which every algorithm comes to an end.
void clear_not_finite(const Call& call, const Matrices& a, int32_t* flags);
// info[b] becomes -1 where flags[b] is set.
void tell_not_finite(const Call& call, const int32_t* flags, int32_t* info, int64_t count);

void narrow_pivots(const Call& call, const int64_t* from, int32_t* to, int64_t count);
// 1 to `length`, again and again: pivots of rows that stay where they are.
void count_pivots(const Call& call, int32_t* pivots, int64_t length, int64_t count);
// Pivots from 1 to `rows` as they are; others become 1 and are reported. Either result may be null.
void check_pivots(const Call& call, const int32_t* pivots, int64_t count, int64_t rows, int32_t* narrow, int64_t* wide,
                  FaultSink sink);

// x = Q x, for Q = H(0) H(1) …, `count` reflections I - tau v v^H that lie in the columns of v
// below the diagonal.
struct Reflections {
  Matrices v;
  const void* scales;
  int64_t scale_step, count;
  bool adjoint = false;        // Q^H x
  bool conjugated = false;     // of Q with conjugated elements
  bool from_identity = false;  // x is taken for the first columns of the identity
};
void reflect(const Call& call, const Reflections& reflections, const Matrices& x);

// Bunch and Kaufman's factors L D L^T or L D L^H of the lower triangle, a block of threads for each
// matrix.
void factor_ldl(const Call& call, const Matrices& a, bool hermitian, int32_t* pivots, int32_t* info);
// Pivots that cannot be are reported.
void solve_ldl(const Call& call, const Matrices& ld, const int32_t* pivots, bool hermitian, const Matrices& x,
               FaultSink sink);

// Complex vectors of real matrices from real and imaginary parts in neighbouring columns (see
// eigenvalues_general).
void pair_vectors(const Call& call, const Matrices& parts, const void* values, const Matrices& vectors);

// Rows of x divided by singular values, or zero where those are not above rcond times the first;
// ranks count the others.
void divide_by_singular(const Call& call, const Matrices& x, const void* values, double rcond, int64_t* ranks,
                        int64_t count);
// Into row `row` of x the norm of each column of `rest`, zeros below it.
void store_norms(const Call& call, const Matrices& rest, const Matrices& x, int64_t row);
// Reports the place of a zero on the diagonal.
void check_diagonal(const Call& call, const Matrices& r, FaultSink sink);
// Reports that there are elements that are not finite.
void check_finite(const Call& call, const int32_t* flags, int64_t count, FaultSink sink);
void fill_ranks(const Call& call, int64_t* ranks, int64_t value, int64_t count);

}  // namespace candelabra::cuda
