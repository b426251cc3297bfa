// The float8 formats and their conversion. A format is described once, in `float8_formats`; the
// conversions, finfo and the largest number that fits follow from it.
//
// Widening is exact. Narrowing takes a float32 and rounds to nearest, ties to even. Out of range it
// gives what PyTorch gives: infinity where the format has one, otherwise the largest number
// (e4m3fn) or NaN. The functions have no branches, so that compilers vectorize loops over them.
#ifndef CANDELABRA_SMALL_FLOATS_HPP
#define CANDELABRA_SMALL_FLOATS_HPP

#include <cstdint>

#include "candelabra/backend.h"
#include "candelabra/host_device.hpp"

namespace candelabra::small_floats {

struct Float8Format {
  int exponent_bits, mantissa_bits, bias;
  bool has_infinity, saturates;
  // The code that narrowing gives for NaN. With 0x80, that of a negative zero, the format has no
  // other NaN and only one zero.
  uint8_t nan;
};

// By dtype, from CB_FLOAT8_E4M3FN on. A format without mantissa has only powers of two: it has no
// sign, no zero and no subnormal numbers.
constexpr Float8Format float8_formats[] = {
    {4, 3, 7, false, true, 0x7f},     // e4m3fn
    {5, 2, 15, true, false, 0x7f},    // e5m2
    {4, 3, 8, false, false, 0x80},    // e4m3fnuz
    {5, 2, 16, false, false, 0x80},   // e5m2fnuz
    {8, 0, 127, false, false, 0xff},  // e8m0fnu
};

constexpr const Float8Format& float8_format(int32_t dtype) {
  return float8_formats[dtype - CB_FLOAT8_E4M3FN];
}
constexpr bool has_one_zero(const Float8Format& format) {
  return format.nan == 0x80;
}
constexpr bool is_power_of_two(const Float8Format& format) {
  return format.mantissa_bits == 0;
}

// The code of infinity, or that of the NaN that follows the largest finite number. Formats with one
// zero have none: the largest code is finite, and 0x80 stands for the next number.
constexpr uint32_t first_not_finite(const Float8Format& format) {
  if (format.has_infinity) return ((1u << format.exponent_bits) - 1) << format.mantissa_bits;
  return format.nan;
}
constexpr uint32_t largest_code(const Float8Format& format) {
  return first_not_finite(format) - 1;
}

inline namespace CANDELABRA_ISA_NAMESPACE {

template <int32_t Dtype>
CANDELABRA_FORMULA float float8_to_float(uint8_t code) {
  constexpr Float8Format format = float8_format(Dtype);
  if constexpr (is_power_of_two(format)) {
    const uint32_t bits = code == 0 ? 0x00400000u : static_cast<uint32_t>(code) << 23;
    return __builtin_bit_cast(float, code == format.nan ? 0x7fc00000u : bits);
  } else {
    constexpr int shift = 23 - format.mantissa_bits;
    // A subnormal number is read with the leading one that it lacks, which is then subtracted.
    constexpr uint32_t leading_one = static_cast<uint32_t>(128 - format.bias) << 23;
    const uint32_t magnitude = code & 0x7fu, sign = static_cast<uint32_t>(code & 0x80u) << 24;
    const bool is_subnormal = magnitude < (1u << format.mantissa_bits);
    const uint32_t base = static_cast<uint32_t>(127 - format.bias + is_subnormal) << 23;
    const float number = __builtin_bit_cast(float, (magnitude << shift) + base) -
                         __builtin_bit_cast(float, is_subnormal ? leading_one : 0u);
    uint32_t bits = __builtin_bit_cast(uint32_t, number);
    if constexpr (has_one_zero(format)) {
      return __builtin_bit_cast(float, code == format.nan ? 0x7fc00000u : bits | sign);
    } else {
      constexpr uint32_t limit = first_not_finite(format);
      bits = magnitude > limit || (magnitude == limit && !format.has_infinity) ? 0x7fc00000u : bits;
      bits = magnitude == limit && format.has_infinity ? 0x7f800000u : bits;
      return __builtin_bit_cast(float, bits | sign);
    }
  }
}

template <int32_t Dtype>
CANDELABRA_FORMULA uint8_t float8_from_float(float value) {
  constexpr Float8Format format = float8_format(Dtype);
  const uint32_t word = __builtin_bit_cast(uint32_t, value), magnitude = word & 0x7fffffffu;
  if constexpr (is_power_of_two(format)) {
    // A tie, 1.5 times a power of two, goes up. Of float32's subnormal numbers, 2^-127 is one.
    const uint32_t exponent = magnitude >> 23, rest = magnitude & 0x007fffffu;
    const uint32_t is_up = (rest > 0x00400000u) | ((rest == 0x00400000u) & (exponent > 0));
    return static_cast<uint8_t>(exponent == 0xffu ? format.nan : exponent + is_up);
  } else {
    constexpr int shift = 23 - format.mantissa_bits;
    constexpr uint32_t smallest_normal = static_cast<uint32_t>(128 - format.bias) << 23;
    // Adding this power of two rounds a float32 to a multiple of the format's smallest number.
    constexpr uint32_t rounder = static_cast<uint32_t>(128 - format.bias + shift) << 23;
    const uint32_t rounded = magnitude + ((1u << (shift - 1)) - 1) + (magnitude >> shift & 1u);
    const uint32_t normal = (rounded >> shift) - (static_cast<uint32_t>(127 - format.bias) << format.mantissa_bits);
    const float shifted = __builtin_bit_cast(float, magnitude) + __builtin_bit_cast(float, rounder);
    const uint32_t subnormal = __builtin_bit_cast(uint32_t, shifted) - rounder;
    constexpr uint32_t limit = format.saturates ? largest_code(format) : first_not_finite(format);
    uint32_t code = magnitude < smallest_normal ? subnormal : normal;
    code = code > limit ? limit : code;
    if constexpr (has_one_zero(format)) {
      const uint32_t sign = code == 0 ? 0u : word >> 24 & 0x80u;
      return static_cast<uint8_t>(code == limit ? limit : code | sign);
    } else {
      code = magnitude > 0x7f800000u ? format.nan : code;
      return static_cast<uint8_t>(code | (word >> 24 & 0x80u));
    }
  }
}

// Calls f.operator()<Dtype>() for a float8 dtype.
template <typename F>
auto dispatch_float8(int32_t dtype, F&& f) {
  switch (dtype) {
    case CB_FLOAT8_E4M3FN:
      return f.template operator()<CB_FLOAT8_E4M3FN>();
    case CB_FLOAT8_E5M2:
      return f.template operator()<CB_FLOAT8_E5M2>();
    case CB_FLOAT8_E4M3FNUZ:
      return f.template operator()<CB_FLOAT8_E4M3FNUZ>();
    case CB_FLOAT8_E5M2FNUZ:
      return f.template operator()<CB_FLOAT8_E5M2FNUZ>();
    default:
      return f.template operator()<CB_FLOAT8_E8M0FNU>();
  }
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::small_floats

#endif  // CANDELABRA_SMALL_FLOATS_HPP
