// S/D/C/Z dispatch: the variants of a routine for float32, float64, complex64 and complex128 as one
// function that takes a dtype.
#pragma once

#include "vendor/libraries.hpp"

namespace candelabra::cuda {

// A device address that converts to the pointer type of the routine: cuComplex* or float*.
struct Address {
  void* address;
  template <typename P>
  operator P*() const {
    return static_cast<P*>(address);
  }
};
inline Address at(const void* address) {
  return {const_cast<void*>(address)};
}

template <typename S, typename D, typename C, typename Z>
struct FourTypes {
  Function<S> single;
  Function<D> full;
  Function<C> complex_single;
  Function<Z> complex_full;

  template <typename... Arguments>
  auto operator()(int32_t dtype, const Arguments&... arguments) const {
    switch (dtype) {
      case CB_FLOAT32:
        return single(arguments...);
      case CB_FLOAT64:
        return full(arguments...);
      case CB_COMPLEX64:
        return complex_single(arguments...);
      case CB_COMPLEX128:
        return complex_full(arguments...);
      default:
        throw not_implemented();
    }
  }
};

}  // namespace candelabra::cuda
