// Half precision for the emulated libraries.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace emulation {

struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) {
    const auto word = std::bit_cast<uint32_t>(value);
    bits = static_cast<uint16_t>(value != value ? 0x7fc0u : (word + 0x7fffu + (word >> 16 & 1u)) >> 16);
  }
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

struct Half {
  _Float16 value = 0;
  Half() = default;
  explicit Half(float given) : value(static_cast<_Float16>(given)) {}
  operator float() const { return static_cast<float>(value); }
};

}  // namespace emulation
