// Loads and stores half precisions as registers of float32.
#pragma once

#include <cstdint>

#include "dtypes.hpp"
#include "simd/half_conversions.hpp"
#include "simd/vec.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace halves {

using Floats = math::Vec<float>;

// Access all elements of a register, or the first n.
template <typename T>
[[gnu::always_inline]] inline Floats load(const T* from) {
  return raw::load(from);
}
template <typename T>
[[gnu::always_inline]] inline Floats load(const T* from, int64_t n) {
  return raw::load(from, n);
}
template <typename T>
[[gnu::always_inline]] inline void store(Floats value, T* to) {
  raw::store(value.v, to);
}
template <typename T>
[[gnu::always_inline]] inline void store(Floats value, T* to, int64_t n) {
  raw::store(value.v, to, n);
}
template <typename T>
[[gnu::always_inline]] inline void store(Floats low, Floats high, T* to) {
  raw::store(low.v, high.v, to);
}

}  // namespace halves

// Load and store n elements of any floating dtype as a register of the compute type.
template <typename T>
[[gnu::always_inline]] inline math::Vec<compute_t<T>> load_some(const T* from, int64_t n) {
  using V = math::Vec<compute_t<T>>;
  if constexpr (is_half_v<T>)
    return n == V::size ? halves::load(from) : halves::load(from, n);
  else
    return n == V::size ? V::load(from) : V::load(from, n);
}
template <typename T>
[[gnu::always_inline]] inline void store_some(math::Vec<compute_t<T>> value, T* to, int64_t n) {
  const bool whole = n == math::Vec<compute_t<T>>::size;
  if constexpr (is_half_v<T>)
    whole ? halves::store(value, to) : halves::store(value, to, n);
  else
    whole ? value.store(to) : value.store(to, n);
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
