// The driver of all elementwise kernels. A kernel is one loop over contiguous arrays; the driver brings everything to that form in
// blocks that stay in the first-level cache: it gathers strided operands, converts half precisions to float32 and back, repeats
// numbers, divides the work among threads, and writes large results past the caches. So one loop per operator and dtype is
// compiled, and not one per combination of strides.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dtypes.hpp"
#include "kernels.hpp"

namespace candelabra::cpu {

// n elements; `in` has one pointer an input. Out may be one of the inputs.
using BlockLoop = void (*)(void* out, const void* const* in, int64_t n, const void* context);

struct Blocks {
  BlockLoop loop;
  const void* context = nullptr;  // given to the loop
  int64_t work = 1;               // cost of an element in additions
  bool halves_as_float = true;    // the loop sees float32 in the place of float16 and bfloat16
};

constexpr int max_block_inputs = 3;
constexpr int64_t tiny_elements = 256;

// Any strides and sizes; all operands have the sizes of the output.
void run_blocks(const Blocks& blocks, cb_tensor& out, const cb_tensor* const* in, int count);

// `value` points to one element of `itemsize` bytes.
void repeat_element(void* out, const void* value, int64_t itemsize, int64_t n);

// Small contiguous operands take the short way: no geometry, no threads.
template <size_t N>
inline void run(const Blocks& blocks, cb_tensor& out, const std::array<const cb_tensor*, N>& in) {
  static_assert(N <= max_block_inputs);
  if (out.numel <= tiny_elements && is_contiguous(out)) {
    alignas(64) std::byte repeated[N][tiny_elements * 16];
    const void* pointers[N];
    bool simple = !(blocks.halves_as_float && is_half_dtype(out.dtype));
    for (size_t k = 0; k < N && simple; ++k) {
      const cb_tensor& each = *in[k];
      simple = !(blocks.halves_as_float && is_half_dtype(each.dtype));
      pointers[k] = each.data;
      if (each.flags & CB_TENSOR_NUMBER) {
        if (out.numel > 1) repeat_element(repeated[k], each.data, itemsize(each.dtype), out.numel), pointers[k] = repeated[k];
      } else if (simple) {
        simple = is_contiguous(each);
      }
    }
    if (simple) {
      if (out.numel > 0) blocks.loop(out.data, pointers, out.numel, blocks.context);
      return;
    }
  }
  run_blocks(blocks, out, in.data(), static_cast<int>(N));
}

}  // namespace candelabra::cpu
