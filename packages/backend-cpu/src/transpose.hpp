// Transposition of a tile of a matrix.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "dtypes.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// Eight rows of eight 32-bit elements.
[[gnu::always_inline]] inline void transpose_8x8(uint32_t* out, int64_t out_stride, const uint32_t* in, int64_t in_stride) {
  __m256 r[8], s[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(reinterpret_cast<const float*>(in + i * in_stride));
  for (int i = 0; i < 8; i += 2) {
    s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(s[i], s[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(s[i], s[i + 2], 0xee);
    r[i + 2] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(reinterpret_cast<float*>(out + i * out_stride), _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(reinterpret_cast<float*>(out + (i + 4) * out_stride), _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}

// out[i + j * out_stride] = in[i * in_stride + j] for i < columns, j < rows: both sides touch whole cache lines within a tile.
template <typename U>
void transpose_tile(U* out, int64_t out_stride, const U* in, int64_t in_stride, int64_t columns, int64_t rows) {
  int64_t full_columns = 0, full_rows = 0;
  if constexpr (sizeof(U) == 4) {
    full_columns = columns & ~int64_t{7};
    full_rows = rows & ~int64_t{7};
    for (int64_t j = 0; j < full_rows; j += 8)
      for (int64_t i = 0; i < full_columns; i += 8)
        transpose_8x8(out + i + j * out_stride, out_stride, in + i * in_stride + j, in_stride);
  }
  for (int64_t j = 0; j < rows; ++j)
    for (int64_t i = j < full_rows ? full_columns : 0; i < columns; ++i) out[i + j * out_stride] = in[i * in_stride + j];
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
