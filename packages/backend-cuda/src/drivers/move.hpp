// Elements from one place to another on the device, whatever their type.
#pragma once

#include <array>
#include <cstdint>

#include "drivers/iterate.hpp"
#include "kernels.hpp"

namespace candelabra::cuda {

// Queues the move of all elements of `in` to `out`, of the same sizes and dtype. Strides may be
// negative. What is written must not be read by the same move.
void move_elements(const Call& call, const cb_tensor& out, const cb_tensor& in);
// The output of an operator that changes a part of self begins as a copy of it; in place it is
// there already.
void initialize_from(const Call& call, const cb_tensor& out, const cb_tensor& self);

// Zeros in all elements.
void clear(const Call& call, const cb_tensor& out);

// One element's bytes, for kernels that move elements: the number that a tensor argument stands
// for, or a Scalar.
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
