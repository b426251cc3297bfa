// Reads elements, and tells zeros from other values. A bool from foreign memory (a view of bytes,
// numpy.frombuffer) may hold any byte, and every nonzero byte is true. C++ assumes that a bool in
// memory is 0 or 1, so kernels must never read one as such.
#pragma once

#include "dtypes.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

template <typename T>
[[gnu::always_inline]] inline T load(const T* from) {
  if constexpr (std::is_same_v<T, bool>)
    return *reinterpret_cast<const uint8_t*>(from) != 0;
  else
    return *from;
}

// Of complex numbers, whether a part is nonzero. Subnormal half precisions count as nonzero even
// where the processor flushes them.
template <typename T>
[[gnu::always_inline]] inline bool is_nonzero(T value) {
  if constexpr (is_half_v<T>)
    return (value.bits & 0x7fff) != 0;
  else if constexpr (is_complex_v<T>)
    return (value.real() != 0) | (value.imag() != 0);
  else
    return value != T(0);
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
