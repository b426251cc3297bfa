// Software conversion of float16 and bfloat16. Widening is exact; narrowing rounds to nearest, ties
// to even.
#pragma once

#include <bit>
#include <cstdint>

namespace candelabra {

inline float float16_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t fraction = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent == 0) {
    // subnormal: a multiple of 2^-24, exact in binary32
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

// Takes a binary64, so that a Python float is rounded only once.
inline uint16_t float16_from_double(double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 48 & 0x8000u);
  const uint64_t magnitude = bits & 0x7fffffffffffffffull;
  if (magnitude > 0x7ff0000000000000ull) return sign | 0x7e00u;  // NaN becomes a quiet NaN
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  if (exponent >= 16) return sign | 0x7c00u;
  if (exponent < -25) return sign;
  const uint64_t significand = (magnitude & 0xfffffffffffffull) | 0x10000000000000ull;
  // Normal results keep 11 of the 53 bits; subnormal results keep fewer.
  const int dropped = exponent >= -14 ? 42 : 42 + (-14 - exponent);
  uint64_t kept = significand >> dropped;
  const uint64_t rest = significand & ((uint64_t{1} << dropped) - 1);
  const uint64_t half = uint64_t{1} << (dropped - 1);
  if (rest > half || (rest == half && (kept & 1))) ++kept;
  // The hidden bit of `kept` adds the missing 1 to the exponent. A carry from rounding increments
  // the exponent, possibly to infinity.
  const uint64_t result = exponent >= -14 ? (static_cast<uint64_t>(exponent + 14) << 10) + kept : kept;
  return static_cast<uint16_t>(sign | result);
}

inline float bfloat16_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

inline uint16_t bfloat16_from_double(double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 48 & 0x8000u);
  const uint64_t magnitude = bits & 0x7fffffffffffffffull;
  if (magnitude > 0x7ff0000000000000ull) return sign | 0x7fc0u;
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  if (exponent >= 128) return sign | 0x7f80u;
  if (exponent < -134) return sign;
  const uint64_t significand = (magnitude & 0xfffffffffffffull) | 0x10000000000000ull;
  const int dropped = exponent >= -126 ? 45 : 45 + (-126 - exponent);
  uint64_t kept = significand >> dropped;
  const uint64_t rest = significand & ((uint64_t{1} << dropped) - 1);
  const uint64_t half = uint64_t{1} << (dropped - 1);
  if (rest > half || (rest == half && (kept & 1))) ++kept;
  const uint64_t result = exponent >= -126 ? (static_cast<uint64_t>(exponent + 126) << 7) + kept : kept;
  return static_cast<uint16_t>(sign | result);
}

}  // namespace candelabra
