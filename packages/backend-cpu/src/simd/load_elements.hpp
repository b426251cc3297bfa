// Loads contiguous or strided elements into a contiguous buffer of the compute type (float32 for
// half precisions), and stores them back.
#pragma once

#include <algorithm>
#include <type_traits>

#include "dtypes.hpp"
#include "memory/gather.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

template <typename T>
void load_contiguous(const T* from, int64_t n, compute_t<T>* to) {
  if constexpr (is_half_v<T>)
    to_float(from, to, n);
  else
    std::copy_n(from, n, to);
}
template <typename T>
void store_contiguous(const compute_t<T>* from, int64_t n, T* to) {
  if constexpr (is_half_v<T>)
    from_float(from, to, n);
  else
    std::copy_n(from, n, to);
}

template <typename T, typename V>
void load_strided(const T* from, int64_t stride, int64_t n, V* to) {
  if constexpr (std::is_same_v<T, V>) return gather(to, from, stride, sizeof(T), n);
  if constexpr (is_half_v<T>)
    if (stride == 1) return to_float(from, to, n);
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<V>(from[i * stride]);
}
template <typename T, typename V>
void store_strided(const V* from, int64_t n, T* to, int64_t stride) {
  if constexpr (is_half_v<T>)
    if (stride == 1) return from_float(from, to, n);
  for (int64_t i = 0; i < n; ++i) to[i * stride] = static_cast<T>(from[i]);
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
