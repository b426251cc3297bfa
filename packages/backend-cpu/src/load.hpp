// Reading elements. A bool that came from foreign memory (a view of bytes, numpy.frombuffer) may be any byte: everything but 0 is
// true. C++ may take it that a bool is 0 or 1 in memory, so that a kernel must never read one as such.
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
