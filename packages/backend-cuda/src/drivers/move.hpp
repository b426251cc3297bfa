// Strided copies on the device, for all dtypes.
#pragma once

#include <array>
#include <cstdint>

#include "drivers/iterate.hpp"
#include "kernels.hpp"

namespace candelabra::cuda {

// Queues a copy of all elements of `in` to `out`, which has the same sizes and dtype. Strides may
// be negative; the two must not overlap.
void move_elements(const Call& call, const cb_tensor& out, const cb_tensor& in);
// Copies self to the output of an operator that changes a part of it. Does nothing in place.
void initialize_from(const Call& call, const cb_tensor& out, const cb_tensor& self);

// Sets all elements to zero.
void clear(const Call& call, const cb_tensor& out);

// The bytes of one element, for kernels that copy elements: from a Python number given for a
// tensor, or a Scalar.
struct ElementBits {
  alignas(16) unsigned char bytes[16];
  template <typename U>
  CANDELABRA_HOST_DEVICE const U& as() const {
    return *reinterpret_cast<const U*>(bytes);
  }
};
ElementBits bits_of_number(const cb_tensor& number, int32_t dtype);
ElementBits bits_of_scalar(const cb_scalar& scalar, int32_t dtype);

}  // namespace candelabra::cuda
