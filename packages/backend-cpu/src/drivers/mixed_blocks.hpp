// Elementwise kernels on operands of several dtypes. Operands of another dtype than the
// computation's are converted block by block, so that no converted tensors are written to memory.
#pragma once

#include "drivers/blocks.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// The loop that converts elements between two dtypes, both of which are loop dtypes (loop_dtype).
// Defined in kernels/movement/copying.cpp.
Blocks conversion(int32_t to, int32_t from);

// Whether an operand is one number, broadcast to all elements.
inline bool is_constant(const cb_tensor& tensor) {
  if (tensor.flags & CB_TENSOR_NUMBER) return true;
  for (int d = 0; d < tensor.ndim; ++d)
    if (tensor.sizes[d] != 1 && tensor.strides[d] != 0) return false;
  return true;
}

// Like run_blocks(), for operands of any dtype. The loop computes in the output's loop dtype.
void run_mixed(const Blocks& blocks, cb_tensor& out, const cb_tensor* const* in, int count);

template <size_t N>
inline void run_any(const Blocks& blocks, cb_tensor& out, const std::array<const cb_tensor*, N>& in) {
  for (const cb_tensor* each : in)
    if (each->dtype != out.dtype && !(each->flags & CB_TENSOR_NUMBER)) return run_mixed(blocks, out, in.data(), N);
  run<N>(blocks, out, in);
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
