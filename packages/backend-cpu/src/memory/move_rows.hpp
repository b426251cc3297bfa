// Copies contiguous rows between strided buffers. A memcpy call per short row would take longer
// than the copy itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "memory/copy_bytes.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// Rows of `Bytes` bytes.
template <int64_t Bytes>
void move_short_rows(std::byte* out, int64_t out_step, const std::byte* in, int64_t in_step, int64_t rows) {
  for (int64_t i = 0; i < rows; ++i) std::memcpy(out + i * out_step, in + i * in_step, Bytes);
}

// Rows longer than Most / 2 and at most Most bytes: copies their first and last Most / 2 bytes,
// which may overlap.
template <int64_t Most>
void move_overlapping_rows(std::byte* out, int64_t out_step, const std::byte* in, int64_t in_step, int64_t rows,
                           int64_t bytes) {
  constexpr int64_t half = Most / 2;
  const int64_t second = bytes - half;
  for (int64_t i = 0; i < rows; ++i) {
    std::byte first[half], last[half];
    std::memcpy(first, in + i * in_step, half);
    std::memcpy(last, in + i * in_step + second, half);
    std::memcpy(out + i * out_step, first, half);
    std::memcpy(out + i * out_step + second, last, half);
  }
}

// Rows of fewer bytes are always moved by ordinary stores.
constexpr int64_t long_row = 1024;

// Steps are in bytes. The caller issues fence_after(stores).
inline void move_rows(std::byte* out, int64_t out_step, const std::byte* in, int64_t in_step, int64_t rows,
                      int64_t bytes, MoveStores stores = MoveStores::Ordinary) {
  switch (bytes) {
    case 1:
      return move_short_rows<1>(out, out_step, in, in_step, rows);
    case 2:
      return move_short_rows<2>(out, out_step, in, in_step, rows);
    case 4:
      return move_short_rows<4>(out, out_step, in, in_step, rows);
    case 8:
      return move_short_rows<8>(out, out_step, in, in_step, rows);
    case 16:
      return move_short_rows<16>(out, out_step, in, in_step, rows);
    case 32:
      return move_short_rows<32>(out, out_step, in, in_step, rows);
    case 64:
      return move_short_rows<64>(out, out_step, in, in_step, rows);
    default:
      break;
  }
  if (bytes > 4 && bytes < 8) return move_overlapping_rows<8>(out, out_step, in, in_step, rows, bytes);
  if (bytes > 8 && bytes < 16) return move_overlapping_rows<16>(out, out_step, in, in_step, rows, bytes);
  if (bytes > 16 && bytes < 32) return move_overlapping_rows<32>(out, out_step, in, in_step, rows, bytes);
  if (bytes > 32 && bytes < 64) return move_overlapping_rows<64>(out, out_step, in, in_step, rows, bytes);
  if (bytes < long_row) stores = MoveStores::Ordinary;
  if (stores == MoveStores::NonTemporal) {
    for (int64_t i = 0; i < rows; ++i) stream_unfenced(out + i * out_step, in + i * in_step, bytes);
    return;
  }
  int64_t i = 0;
  if (stores == MoveStores::Interleaved &&
      (reinterpret_cast<uintptr_t>(out) | static_cast<uintptr_t>(out_step)) % 64 == 0)
    for (; i + 4 <= rows; i += 4) copy_interleaved(out + i * out_step, out_step, in + i * in_step, in_step, bytes);
  for (; i < rows; ++i) std::memcpy(out + i * out_step, in + i * in_step, static_cast<size_t>(bytes));
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
