// Unsigned keys in the order of the elements, as in the CPU backend's sort_keys.hpp.
#pragma once

#include <cstdint>
#include <type_traits>

#include "dtypes.hpp"

namespace candelabra::cuda {

using SortableTypes = decltype(BoolType{} + RealTypes{});

template <typename T>
using Key = std::conditional_t<sizeof(memory_t<T>) == 8, uint64_t, uint32_t>;
// The number of key bits that may differ between elements of type T.
template <typename T>
constexpr int key_bits = 8 * static_cast<int>(sizeof(memory_t<T>));
template <typename T>
constexpr Key<T> key_mask = static_cast<Key<T>>(~uint64_t{0} >> (64 - key_bits<T>));

// NaN is larger than every number; both zeros are equal.
template <typename T>
__device__ __forceinline__ Key<T> key_of(memory_t<T> value) {
  constexpr Key<T> sign = Key<T>{1} << (key_bits<T> - 1);
  if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else if constexpr (std::is_unsigned_v<T>) {
    return static_cast<Key<T>>(value);
  } else if constexpr (std::is_integral_v<T>) {
    return (static_cast<Key<T>>(value) & key_mask<T>)^sign;
  } else if constexpr (is_half_v<T>) {
    constexpr uint32_t infinity = std::is_same_v<T, Half> ? 0x7c00u : 0x7f80u;
    const uint32_t bits = value.bits, magnitude = bits & 0x7fffu;
    return magnitude > infinity ? 0xffffu : bits & 0x8000u ? 0x8000u - magnitude : 0x8000u + magnitude;
  } else {
    const Key<T> bits = __builtin_bit_cast(Key<T>, value), magnitude = bits & (sign - 1);
    constexpr Key<T> infinity =
        sizeof(T) == 4 ? static_cast<Key<T>>(0x7f800000u) : static_cast<Key<T>>(0x7ff0000000000000u);
    return magnitude > infinity ? ~Key<T>{0} : bits & sign ? sign - magnitude : sign + magnitude;
  }
}

}  // namespace candelabra::cuda
