// Reads elements. A bool from foreign memory (a view of bytes, numpy.frombuffer) may hold any byte,
// and every nonzero byte is true. C++ assumes that a bool in memory is 0 or 1, so kernels must
// never read one as such.
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

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
