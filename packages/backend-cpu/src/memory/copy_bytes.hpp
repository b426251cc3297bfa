// Copies and fills contiguous memory. Large results use non-temporal stores.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dtypes.hpp"
#include "memory/nontemporal.hpp"
#include "simd/intrinsics.hpp"

namespace candelabra::cpu {

inline namespace CANDELABRA_ISA_NAMESPACE {

// Copies whole cache lines with non-temporal stores. `destination` is 64-byte aligned and `bytes` a
// multiple of 64. The caller issues the fence.
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

// Copies with non-temporal stores, which do not read the destination's lines first. The caller
// issues the fence.
inline void stream_unfenced(void* destination, const void* source, int64_t bytes) {
  auto* out = static_cast<char*>(destination);
  const auto* in = static_cast<const char*>(source);
  int64_t head = std::min<int64_t>(bytes, static_cast<int64_t>(-reinterpret_cast<uintptr_t>(out) & 63));
  std::memcpy(out, in, head);
  int64_t lines = (bytes - head) & ~int64_t{63};
  stream_lines(out + head, in + head, lines);
  std::memcpy(out + head + lines, in + head + lines, bytes - head - lines);
}
// Copies four rows of `bytes` bytes with ordinary stores, one cache line of each in turn. The
// hardware prefetcher works within one page, so four rows give it four streams. Rows of the
// destination are 64-byte aligned.
inline void copy_interleaved(std::byte* out, int64_t out_step, const std::byte* in, int64_t in_step, int64_t bytes) {
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
// Copies contiguous memory as four interleaved pages at a time.
inline void copy_pages(std::byte* out, const std::byte* in, int64_t bytes) {
  constexpr int64_t page = 4096, step = 4 * page;
  int64_t at = std::min<int64_t>(bytes, static_cast<int64_t>(-reinterpret_cast<uintptr_t>(out) & 63));
  std::memcpy(out, in, at);
  for (; at + step <= bytes; at += step) copy_interleaved(out + at, page, in + at, page, page);
  std::memcpy(out + at, in + at, bytes - at);
}

// Copies contiguous memory. The caller issues fence_after(stores).
inline void move_bytes(std::byte* out, const std::byte* in, int64_t bytes, MoveStores stores) {
  switch (stores) {
    case MoveStores::NonTemporal:
      return stream_unfenced(out, in, bytes);
    case MoveStores::Interleaved:
      return copy_pages(out, in, bytes);
    case MoveStores::Ordinary:
      std::memcpy(out, in, static_cast<size_t>(bytes));
  }
}

inline void fence_after(MoveStores stores) {
  if (stores == MoveStores::NonTemporal) _mm_sfence();
}

// Fills with non-temporal stores. The caller issues the fence.
template <typename U>
void fill_non_temporal(U* out, U value, int64_t n) {
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
    fill_non_temporal(out, value, n);
    _mm_sfence();
  } else {
    std::fill_n(out, n, value);
  }
}

}  // namespace CANDELABRA_ISA_NAMESPACE

}  // namespace candelabra::cpu
