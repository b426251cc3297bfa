// Unsigned keys that compare like the elements.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "dtypes.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// NaN is larger than every number, and both zeros have the same key.
template <typename T>
auto key_of(T value) {
  if constexpr (std::is_same_v<T, bool> || std::is_unsigned_v<T>) {
    return static_cast<std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>>(value);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return static_cast<uint64_t>(value) ^ (uint64_t{1} << 63);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<uint32_t>(static_cast<int32_t>(value)) ^ (uint32_t{1} << 31);
  } else if constexpr (is_half_v<T>) {
    constexpr uint16_t infinity = std::is_same_v<T, Half> ? 0x7c00 : 0x7f80;
    uint16_t bits = value.bits, magnitude = bits & 0x7fff;
    uint32_t ordered = bits & 0x8000 ? 0x8000u - magnitude : 0x8000u + magnitude;
    return magnitude > infinity ? 0xffffu : ordered;
  } else {
    using U = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    constexpr U sign = U{1} << (8 * sizeof(T) - 1);
    U bits = std::bit_cast<U>(value + T(0));  // -0 + 0 is +0
    U ordered = bits & sign ? ~bits : bits | sign;
    return value != value ? ~U{0} : ordered;
  }
}
template <typename T>
using Key = decltype(key_of(T{}));
// The number of low bits in which keys of type T can differ.
template <typename T>
constexpr int key_bits = sizeof(T) == 1 && !std::is_signed_v<T> ? 8
                         : is_half_v<T>                         ? 16
                                                                : 8 * static_cast<int>(sizeof(Key<T>));

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
