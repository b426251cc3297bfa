// Lines whose elements lie far apart in memory and which are neighbours there, as the columns of a matrix: turned into memory of
// their own, some at a time, so that every cache line is read and written once and not once for each of its elements.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "../allocator.hpp"
#include "../dtypes.hpp"
#include "../transpose.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

template <typename T>
class TurnedLines {
 public:
  static constexpr int64_t width = 16;  // lines at a time

  // Lines of elements `stride` apart, of which there are `count`, each `side` from the one before.
  static bool pays(int64_t stride, int64_t side, int64_t count, int64_t length) {
    constexpr int64_t shortest = 8, longest = 65536;
    return side == 1 && count >= width / 4 && std::abs(stride) > 1 && length >= shortest && length <= longest;
  }

  // The lines lie a cache line further apart than they are long: at powers of two they would displace one another.
  explicit TurnedLines(int64_t length) : length_(length), pitch_(length + 64 / size), room_(width * pitch_) {}

  T* line(int64_t i) { return room_.data() + i * pitch_; }

  void read(const T* from, int64_t stride, int64_t lines) {
    for (int64_t k = 0; k < length_; k += tile)
      transpose_tile(bits(room_.data() + k), pitch_, bits(from + k * stride), stride, std::min(tile, length_ - k), lines);
  }
  void write(T* to, int64_t stride, int64_t lines) {
    for (int64_t k = 0; k < length_; k += tile)
      transpose_tile(bits(to + k * stride), stride, bits(room_.data() + k), pitch_, lines, std::min(tile, length_ - k));
  }

 private:
  static constexpr int64_t size = sizeof(T), tile = 64;
  using Bits = std::conditional_t<size == 1, uint8_t,
                                  std::conditional_t<size == 2, uint16_t, std::conditional_t<size == 4, uint32_t, uint64_t>>>;
  static_assert(sizeof(Bits) == sizeof(T));
  static Bits* bits(T* pointer) { return reinterpret_cast<Bits*>(pointer); }
  static const Bits* bits(const T* pointer) { return reinterpret_cast<const Bits*>(pointer); }

  int64_t length_, pitch_;
  Scratch<T> room_;
};

// line(i, from, stride) for `count` neighbouring lines, whose elements are together where turning them pays.
template <typename T, typename F>
void for_each_line(const T* from, int64_t stride, int64_t side, int64_t count, int64_t length, F&& line) {
  if (!TurnedLines<T>::pays(stride, side, count, length)) {
    for (int64_t i = 0; i < count; ++i) line(i, from + i * side, stride);
    return;
  }
  TurnedLines<T> turned(length);
  for (int64_t first = 0; first < count; first += turned.width) {
    const int64_t lines = std::min(turned.width, count - first);
    turned.read(from + first, stride, lines);
    for (int64_t i = 0; i < lines; ++i) line(first + i, static_cast<const T*>(turned.line(i)), int64_t{1});
  }
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
