// Shared by the accelerator_*.cpp files and collectives.cpp: checks for features that a backend may
// lack, and calls without the GIL.
#pragma once

#include "device/streams.hpp"
#include "python/bindings.hpp"
#include "python/gil.hpp"

namespace candelabra {

inline void require(bool is_available, const DeviceType& type, const char* what) {
  check(is_available, PyExc_NotImplementedError, "the device type '", type.name, "' (", type.distribution, ") has no ",
        what);
}

inline void succeed(const DeviceType& type, const char* what, int32_t status) {
  if (status != CB_OK) [[unlikely]]
    raise_backend_failure(type, what, status);
}

template <typename F>
int32_t unlocked(F&& f) {
  const GilReleased released;
  return f();
}

}  // namespace candelabra
