// Transposes a tile of a matrix.
#pragma once

#include <cstdint>
#include <type_traits>

#include "dtypes.hpp"
#include "simd/intrinsics.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// Eight rows of eight 32-bit elements.
[[gnu::always_inline]] inline void transpose_8x8(uint32_t* out, int64_t out_stride, const uint32_t* in,
                                                 int64_t in_stride) {
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
    _mm256_storeu_ps(reinterpret_cast<float*>(out + (i + 4) * out_stride),
                     _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}

#ifdef __AVX512F__
// Sixteen rows of sixteen 32-bit elements.
[[gnu::always_inline]] inline void transpose_16x16(uint32_t* out, int64_t out_stride, const uint32_t* in,
                                                   int64_t in_stride) {
  using Row [[gnu::vector_size(64), gnu::aligned(4), gnu::may_alias]] = uint32_t;
  using Lanes [[gnu::vector_size(64)]] = uint32_t;
  constexpr Lanes low = {0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29};
  constexpr Lanes high = {2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31};
  constexpr Lanes low_pair = {0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29};
  constexpr Lanes high_pair = {2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31};
  constexpr Lanes even_fours = {0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27};
  constexpr Lanes odd_fours = {4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31};
  const auto store = [&](int row, Lanes value) { *reinterpret_cast<Row*>(out + row * out_stride) = value; };
  Lanes r[16], s[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) r[i] = *reinterpret_cast<const Row*>(in + i * in_stride);
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    s[i] = __builtin_shuffle(r[i], r[i + 1], low);
    s[i + 1] = __builtin_shuffle(r[i], r[i + 1], high);
  }
  // Of each four rows, r[4 g + k] holds elements k, k + 4, k + 8 and k + 12.
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = __builtin_shuffle(s[i], s[i + 2], low_pair);
    r[i + 1] = __builtin_shuffle(s[i], s[i + 2], high_pair);
    r[i + 2] = __builtin_shuffle(s[i + 1], s[i + 3], low_pair);
    r[i + 3] = __builtin_shuffle(s[i + 1], s[i + 3], high_pair);
  }
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    const Lanes even01 = __builtin_shuffle(r[k], r[4 + k], even_fours),
                odd01 = __builtin_shuffle(r[k], r[4 + k], odd_fours);
    const Lanes even23 = __builtin_shuffle(r[8 + k], r[12 + k], even_fours),
                odd23 = __builtin_shuffle(r[8 + k], r[12 + k], odd_fours);
    store(k, __builtin_shuffle(even01, even23, even_fours));
    store(k + 8, __builtin_shuffle(even01, even23, odd_fours));
    store(k + 4, __builtin_shuffle(odd01, odd23, even_fours));
    store(k + 12, __builtin_shuffle(odd01, odd23, odd_fours));
  }
}
#endif

// Four rows of four 64-bit elements.
[[gnu::always_inline]] inline void transpose_4x4(uint64_t* out, int64_t out_stride, const uint64_t* in,
                                                 int64_t in_stride) {
  __m256d r[4];
  for (int i = 0; i < 4; ++i) r[i] = _mm256_loadu_pd(reinterpret_cast<const double*>(in + i * in_stride));
  const __m256d low0 = _mm256_unpacklo_pd(r[0], r[1]), high0 = _mm256_unpackhi_pd(r[0], r[1]);
  const __m256d low1 = _mm256_unpacklo_pd(r[2], r[3]), high1 = _mm256_unpackhi_pd(r[2], r[3]);
  _mm256_storeu_pd(reinterpret_cast<double*>(out), _mm256_permute2f128_pd(low0, low1, 0x20));
  _mm256_storeu_pd(reinterpret_cast<double*>(out + out_stride), _mm256_permute2f128_pd(high0, high1, 0x20));
  _mm256_storeu_pd(reinterpret_cast<double*>(out + 2 * out_stride), _mm256_permute2f128_pd(low0, low1, 0x31));
  _mm256_storeu_pd(reinterpret_cast<double*>(out + 3 * out_stride), _mm256_permute2f128_pd(high0, high1, 0x31));
}

// Eight rows of eight 16-bit elements, or sixteen rows of sixteen bytes.
template <typename U>
[[gnu::always_inline]] inline void transpose_registers(U* out, int64_t out_stride, const U* in, int64_t in_stride) {
  constexpr int size = 16 / sizeof(U);
  const auto low = [](__m128i a, __m128i b) {
    return sizeof(U) == 1 ? _mm_unpacklo_epi8(a, b) : _mm_unpacklo_epi16(a, b);
  };
  const auto high = [](__m128i a, __m128i b) {
    return sizeof(U) == 1 ? _mm_unpackhi_epi8(a, b) : _mm_unpackhi_epi16(a, b);
  };
  __m128i r[size], s[size];
#pragma GCC unroll 16
  for (int i = 0; i < size; ++i) r[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i * in_stride));
  // Each round interleaves the first half of all elements with the second.
#pragma GCC unroll 4
  for (int round = 1; round < size; round *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < size / 2; ++i) {
      s[2 * i] = low(r[i], r[i + size / 2]);
      s[2 * i + 1] = high(r[i], r[i + size / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < size; ++i) r[i] = s[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < size; ++i) _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i * out_stride), r[i]);
}

// out[i + j * out_stride] = in[i * in_stride + j] for i < columns, j < rows. Both sides touch whole
// cache lines within a tile.
template <typename U>
void transpose_bits(U* out, int64_t out_stride, const U* in, int64_t in_stride, int64_t columns, int64_t rows) {
  int64_t full_columns = 0, full_rows = 0;
  if constexpr (sizeof(U) < 4) {
    constexpr int64_t size = 16 / sizeof(U);
    full_columns = columns & ~(size - 1);
    full_rows = rows & ~(size - 1);
    for (int64_t j = 0; j < full_rows; j += size)
      for (int64_t i = 0; i < full_columns; i += size)
        transpose_registers(out + i + j * out_stride, out_stride, in + i * in_stride + j, in_stride);
  } else if constexpr (sizeof(U) == 4) {
#ifdef __AVX512F__
    if (columns % 16 == 0 && rows % 16 == 0) {
      for (int64_t j = 0; j < rows; j += 16)
        for (int64_t i = 0; i < columns; i += 16)
          transpose_16x16(out + i + j * out_stride, out_stride, in + i * in_stride + j, in_stride);
      return;
    }
#endif
    full_columns = columns & ~int64_t{7};
    full_rows = rows & ~int64_t{7};
    for (int64_t j = 0; j < full_rows; j += 8)
      for (int64_t i = 0; i < full_columns; i += 8)
        transpose_8x8(out + i + j * out_stride, out_stride, in + i * in_stride + j, in_stride);
  } else if constexpr (sizeof(U) == 8) {
    full_columns = columns & ~int64_t{3};
    full_rows = rows & ~int64_t{3};
    for (int64_t j = 0; j < full_rows; j += 4)
      for (int64_t i = 0; i < full_columns; i += 4)
        transpose_4x4(out + i + j * out_stride, out_stride, in + i * in_stride + j, in_stride);
  }
  for (int64_t j = 0; j < rows; ++j)
    for (int64_t i = j < full_rows ? full_columns : 0; i < columns; ++i)
      out[i + j * out_stride] = in[i * in_stride + j];
}

// The same for elements of 4, 8 or 16 bytes: `in` has `high` rows of `wide` elements.
template <typename T>
void transpose_tile(T* out, int64_t out_stride, const T* in, int64_t in_stride, int64_t high, int64_t wide) {
  if constexpr (sizeof(T) == 16) {
    for (int64_t y = 0; y < wide; ++y)
      for (int64_t x = 0; x < high; ++x) out[x + y * out_stride] = in[x * in_stride + y];
  } else {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    transpose_bits(reinterpret_cast<Bits*>(out), out_stride, reinterpret_cast<const Bits*>(in), in_stride, high, wide);
  }
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
