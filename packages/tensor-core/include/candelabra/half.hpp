// Software conversion of float16 (IEEE 754 binary16) and bfloat16, on their bits. Widening is
// exact; narrowing rounds to nearest, ties to even, and makes every NaN a quiet one.
#ifndef CANDELABRA_HALF_HPP
#define CANDELABRA_HALF_HPP

#include <cstdint>

#include "candelabra/host_device.hpp"

namespace candelabra::half_bits {
inline namespace CANDELABRA_ISA_NAMESPACE {

CANDELABRA_FORMULA float bfloat16_to_float(uint16_t bits) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
}
CANDELABRA_FORMULA uint16_t bfloat16_from_float(float value) {
  const uint32_t word = __builtin_bit_cast(uint32_t, value);
  const uint32_t rounded = (word + 0x7fffu + ((word >> 16) & 1u)) >> 16;
  return static_cast<uint16_t>(value != value ? 0x7fc0u : rounded);
}

inline float float16_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16, rest = bits & 0x7fffu;
  if (rest >= 0x7c00u) return __builtin_bit_cast(float, sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  if (rest < 0x400u) {  // subnormal: a multiple of 2^-24
    const float magnitude = static_cast<float>(rest) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return __builtin_bit_cast(float, sign | ((rest << 13) + 0x38000000u));
}

// From binary64, so that a Python float is rounded only once, to a sign, an exponent with this bias
// and this many bits of fraction.
template <int fraction, int bias>
uint16_t narrowed(double value) {
  constexpr uint64_t infinity = uint64_t{2 * bias + 1} << fraction;
  const uint64_t bits = __builtin_bit_cast(uint64_t, value);
  const uint64_t sign = bits >> 48 & 0x8000u, magnitude = bits & 0x7fffffffffffffffull;
  if (magnitude > 0x7ff0000000000000ull) return static_cast<uint16_t>(sign | infinity | uint64_t{1} << (fraction - 1));
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  if (exponent > bias) return static_cast<uint16_t>(sign | infinity);
  if (exponent < -bias - fraction) return static_cast<uint16_t>(sign);
  const uint64_t significand = (magnitude & 0xfffffffffffffull) | 0x10000000000000ull;
  // Normal results keep 1 + fraction of the 53 bits; subnormal results keep fewer.
  const int below = 1 - bias - exponent, dropped = 52 - fraction + (below > 0 ? below : 0);
  uint64_t kept = significand >> dropped;
  const uint64_t rest = significand & ((uint64_t{1} << dropped) - 1), half = uint64_t{1} << (dropped - 1);
  if (rest > half || (rest == half && (kept & 1))) ++kept;
  // The hidden bit of `kept` adds the missing 1 to the exponent. A carry from rounding increments
  // the exponent, possibly to infinity.
  if (below <= 0) kept += static_cast<uint64_t>(exponent + bias - 1) << fraction;
  return static_cast<uint16_t>(sign | kept);
}
inline uint16_t float16_from_double(double value) {
  return narrowed<10, 15>(value);
}
inline uint16_t bfloat16_from_double(double value) {
  return narrowed<7, 127>(value);
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::half_bits

#endif  // CANDELABRA_HALF_HPP
