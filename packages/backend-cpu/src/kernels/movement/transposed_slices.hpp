// Neighbouring strided slices, such as the columns of a matrix, are transposed into a buffer a few
// at a time. Every cache line is then read and written once, not once per element.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "dtypes.hpp"
#include "memory/allocator.hpp"
#include "memory/transpose.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

template <typename T>
class TransposedSlices {
 public:
  static constexpr int64_t width = 16;  // slices at a time

  // Whether transposing `count` slices pays off. `stride` is that of elements, `side` that of
  // slices.
  static bool pays_off(int64_t stride, int64_t side, int64_t count, int64_t length) {
    constexpr int64_t shortest = 8, longest = 65536;
    return side == 1 && count >= width / 4 && std::abs(stride) > 1 && length >= shortest && length <= longest;
  }

  // Slices are padded by a cache line, because at powers of two they would evict one another.
  explicit TransposedSlices(int64_t length) : length_(length), pitch_(length + 64 / size), buffer_(width * pitch_) {}

  T* slice(int64_t i) { return buffer_.data() + i * pitch_; }

  void read(const T* from, int64_t stride, int64_t slices) {
    for (int64_t k = 0; k < length_; k += tile)
      transpose_bits(bits(buffer_.data() + k), pitch_, bits(from + k * stride), stride, std::min(tile, length_ - k),
                     slices);
  }
  void write(T* to, int64_t stride, int64_t slices) {
    for (int64_t k = 0; k < length_; k += tile)
      transpose_bits(bits(to + k * stride), stride, bits(buffer_.data() + k), pitch_, slices,
                     std::min(tile, length_ - k));
  }

 private:
  static constexpr int64_t size = sizeof(T), tile = 64;
  using Bits =
      std::conditional_t<size == 1, uint8_t,
                         std::conditional_t<size == 2, uint16_t, std::conditional_t<size == 4, uint32_t, uint64_t>>>;
  static_assert(sizeof(Bits) == sizeof(T));
  static Bits* bits(T* pointer) { return reinterpret_cast<Bits*>(pointer); }
  static const Bits* bits(const T* pointer) { return reinterpret_cast<const Bits*>(pointer); }

  int64_t length_, pitch_;
  Scratch<T> buffer_;
};

// Calls f(i, from, stride) for `count` neighbouring slices, transposed into contiguous memory where
// that pays off.
template <typename T, typename F>
void for_each_slice(const T* from, int64_t stride, int64_t side, int64_t count, int64_t length, F&& f) {
  if (!TransposedSlices<T>::pays_off(stride, side, count, length)) {
    for (int64_t i = 0; i < count; ++i) f(i, from + i * side, stride);
    return;
  }
  TransposedSlices<T> transposed(length);
  for (int64_t first = 0; first < count; first += transposed.width) {
    const int64_t slices = std::min(transposed.width, count - first);
    transposed.read(from + first, stride, slices);
    for (int64_t i = 0; i < slices; ++i) f(first + i, static_cast<const T*>(transposed.slice(i)), int64_t{1});
  }
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
