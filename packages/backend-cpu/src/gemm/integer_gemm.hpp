// Products of integer matrices. Results wrap around.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "dtypes.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// c = alpha * a @ b + beta * c. a has any strides; rows of b and c are contiguous. With beta == 0,
// c is not read.
template <typename T>
void integer_gemm(int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t a_row, int64_t a_column, const T* b,
                  int64_t ldb, T beta, T* c, int64_t ldc) {
  // Unsigned, and at least 32 bits: signed overflow is undefined, and small types would be promoted
  // to a signed int.
  using U = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  constexpr int64_t column_block = 16384 / sizeof(T);  // a row of c and some of b stay in L1
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
