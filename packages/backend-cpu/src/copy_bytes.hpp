// Moving and filling contiguous memory; large results go past the caches.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dtypes.hpp"
#include "streaming.hpp"

namespace candelabra::cpu {

inline namespace CANDELABRA_ISA_NAMESPACE {

// Whole cache lines by non-temporal stores; destination 64-byte aligned, bytes a multiple of 64. Ends without a fence.
inline void stream_lines(void* destination, const void* source, int64_t bytes) {
  auto* out = static_cast<char*>(destination);
  const auto* in = static_cast<const char*>(source);
  for (int64_t i = 0; i < bytes; i += 64) {
#ifdef __AVX512F__
    _mm512_stream_si512(reinterpret_cast<__m512i*>(out + i), _mm512_loadu_si512(in + i));
#else
    __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i));
    __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i + 32));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(out + i), low);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(out + i + 32), high);
#endif
  }
}

// Copies without reading the destination's lines first.
inline void stream_unfenced(void* destination, const void* source, int64_t bytes) {
  auto* out = static_cast<char*>(destination);
  const auto* in = static_cast<const char*>(source);
  int64_t head = std::min<int64_t>(bytes, static_cast<int64_t>(-reinterpret_cast<uintptr_t>(out) & 63));
  std::memcpy(out, in, head);
  int64_t lines = (bytes - head) & ~int64_t{63};
  stream_lines(out + head, in + head, lines);
  std::memcpy(out + head + lines, in + head + lines, bytes - head - lines);
}
// The same, ending with a fence.
inline void stream_bytes(void* destination, const void* source, int64_t bytes) {
  stream_unfenced(destination, source, bytes);
  _mm_sfence();
}

// Four rows of so many bytes, the lines of all in turn, by ordinary stores: where they come from memory, the processor fetches
// ahead within a page alone, and so does it in four. Rows of the destination begin at lines. (Two threads of a Cascade Lake copy 16
// MiB in 0.8 of memcpy's time so, 64 MiB in 0.9.)
inline void copy_in_turn(std::byte* out, int64_t out_step, const std::byte* in, int64_t in_step, int64_t bytes) {
  const int64_t lines = bytes & ~int64_t{63};
  for (int64_t i = 0; i < lines; i += 64)
    for (int64_t row = 0; row < 4; ++row) {
      const auto* from = reinterpret_cast<const __m256i*>(in + row * in_step + i);
      auto* to = reinterpret_cast<__m256i*>(out + row * out_step + i);
      const __m256i low = _mm256_loadu_si256(from), high = _mm256_loadu_si256(from + 1);
      _mm256_store_si256(to, low);
      _mm256_store_si256(to + 1, high);
    }
  for (int64_t row = 0; row < 4 && lines < bytes; ++row)
    std::memcpy(out + row * out_step + lines, in + row * in_step + lines, bytes - lines);
}
// Contiguous memory, as pages in turn.
inline void copy_pages(std::byte* out, const std::byte* in, int64_t bytes) {
  constexpr int64_t page = 4096, step = 4 * page;
  int64_t at = std::min<int64_t>(bytes, static_cast<int64_t>(-reinterpret_cast<uintptr_t>(out) & 63));
  std::memcpy(out, in, at);
  for (; at + step <= bytes; at += step) copy_in_turn(out + at, page, in + at, page, page);
  std::memcpy(out + at, in + at, bytes - at);
}

// Ends without a fence.
template <typename U>
void fill_past_caches(U* out, U value, int64_t n) {
  int64_t i = 0;
  alignas(64) U line[64 / sizeof(U)];
  for (U& each : line) each = value;
  for (; i < n && reinterpret_cast<uintptr_t>(out + i) & 63; ++i) out[i] = value;
  constexpr int64_t step = 64 / sizeof(U);
  for (; i + step <= n; i += step) stream_lines(out + i, line, 64);
  for (; i < n; ++i) out[i] = value;
}

template <typename U>
void fill_bytes(U* out, U value, int64_t n) {
  if (n * static_cast<int64_t>(sizeof(U)) >= streaming_threshold()) {
    fill_past_caches(out, value, n);
    _mm_sfence();
  } else {
    std::fill_n(out, n, value);
  }
}

}  // namespace CANDELABRA_ISA_NAMESPACE

}  // namespace candelabra::cpu
