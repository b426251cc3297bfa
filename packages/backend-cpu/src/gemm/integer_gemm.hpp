// Products of integer matrices. Results wrap around.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "dtypes.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

#ifndef __AVX512DQ__
// AVX2 multiplies 64-bit integers in many steps, but those of 32 bits in one.
inline bool has_32_bits(const int64_t* values, int64_t rows, int64_t row, int64_t columns, int64_t column) {
  uint64_t outside = 0;
  for (int64_t i = 0; i < rows; ++i)
#pragma omp simd reduction(| : outside)
    for (int64_t j = 0; j < columns; ++j)
      outside |= (static_cast<uint64_t>(values[i * row + j * column]) + (uint64_t{1} << 31)) >> 32;
  return outside == 0;
}
// row += sum of factors[p] * b[p] over `count` rows of b. Returns the columns that were computed.
template <int64_t Count>
[[gnu::always_inline]] inline int64_t add_narrow_rows(int64_t* row, const uint64_t* factors, const int64_t* b,
                                                      int64_t ldb, int64_t width) {
  __m256i by[Count];
  for (int64_t p = 0; p < Count; ++p) by[p] = _mm256_set1_epi64x(static_cast<int64_t>(factors[p]));
  int64_t x = 0;
  for (; x + 4 <= width; x += 4) {
    auto* to = reinterpret_cast<__m256i*>(row + x);
    __m256i sum = _mm256_loadu_si256(to);
#pragma GCC unroll 8
    for (int64_t p = 0; p < Count; ++p) {
      const __m256i value = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + p * ldb + x));
      sum = _mm256_add_epi64(sum, _mm256_mul_epi32(by[p], value));
    }
    _mm256_storeu_si256(to, sum);
  }
  return x;
}
#endif

// c = alpha * a @ b + beta * c. a has any strides; rows of b and c are contiguous. With beta == 0,
// c is not read.
template <typename T>
void integer_gemm(int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t a_row, int64_t a_column, const T* b,
                  int64_t ldb, T beta, T* c, int64_t ldc) {
  // Unsigned, and at least 32 bits: signed overflow is undefined, and small types would be promoted
  // to a signed int.
  using U = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  constexpr int64_t column_block = 16384 / sizeof(T);  // a row of c and some of b stay in L1
#ifndef __AVX512DQ__
  bool narrow = false;
  if constexpr (std::is_same_v<T, int64_t>)
    narrow = alpha == 1 && m >= 4 && has_32_bits(b, k, ldb, n, 1) && has_32_bits(a, m, a_row, k, a_column);
#endif
  parallel_for(m, grain_for(n * k), [&](int64_t begin, int64_t end) {
    for (int64_t j = 0; j < n; j += column_block) {
      int64_t width = std::min(column_block, n - j);
      for (int64_t i = begin; i < end; ++i) {
        T* row = c + i * ldc + j;
        if (beta == 0)
          std::fill_n(row, width, T{0});
        else if (beta != 1)
          for (int64_t x = 0; x < width; ++x) row[x] = static_cast<T>(static_cast<U>(row[x]) * static_cast<U>(beta));
        auto factor = [&](int64_t p) { return static_cast<U>(a[i * a_row + p * a_column]) * static_cast<U>(alpha); };
        int64_t p = 0;
#ifndef __AVX512DQ__
        if constexpr (std::is_same_v<T, int64_t>)
          for (; narrow && p + 8 <= k; p += 8) {
            U factors[8];
            for (int64_t q = 0; q < 8; ++q) factors[q] = factor(p + q);
            const T* rows = b + p * ldb + j;
            for (int64_t x = add_narrow_rows<8>(row, factors, rows, ldb, width); x < width; ++x)
              for (int64_t q = 0; q < 8; ++q)
                row[x] = static_cast<T>(static_cast<U>(row[x]) + factors[q] * static_cast<U>(rows[q * ldb + x]));
          }
#endif
        for (; p + 4 <= k; p += 4) {
          U f0 = factor(p), f1 = factor(p + 1), f2 = factor(p + 2), f3 = factor(p + 3);
          const T *b0 = b + p * ldb + j, *b1 = b0 + ldb, *b2 = b1 + ldb, *b3 = b2 + ldb;
#pragma omp simd
          for (int64_t x = 0; x < width; ++x)
            row[x] = static_cast<T>(static_cast<U>(row[x]) + f0 * static_cast<U>(b0[x]) + f1 * static_cast<U>(b1[x]) +
                                    f2 * static_cast<U>(b2[x]) + f3 * static_cast<U>(b3[x]));
        }
        for (; p < k; ++p) {
          U f = factor(p);
          const T* b0 = b + p * ldb + j;
#pragma omp simd
          for (int64_t x = 0; x < width; ++x)
            row[x] = static_cast<T>(static_cast<U>(row[x]) + f * static_cast<U>(b0[x]));
        }
      }
    }
  });
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
