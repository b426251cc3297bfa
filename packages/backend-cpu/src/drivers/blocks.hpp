// The driver of all elementwise kernels. A kernel is one loop over contiguous arrays. The driver
// calls it on blocks that fit in L1: it gathers strided operands, converts half precisions to
// float32 and back, broadcasts scalars, divides the work among threads, and writes large results
// with non-temporal stores. One loop per operator and dtype is compiled, not one per combination of
// strides.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dtypes.hpp"
#include "kernels.hpp"

namespace candelabra::cpu {

// Computes n elements. `in` holds one pointer per input. `out` may equal an input.
using BlockLoop = void (*)(void* out, const void* const* in, int64_t n, const void* context);

struct Blocks {
  BlockLoop loop;
  const void* context = nullptr;  // passed to the loop
  int64_t work = 1;               // cost of an element, in additions
  bool halves_as_float = true;    // the loop gets float32 for float16 and bfloat16
};

constexpr int max_block_inputs = 3;
constexpr int64_t tiny_elements = 256;

// Operands may have any strides. All have the sizes of the output.
void run_blocks(const Blocks& blocks, cb_tensor& out, const cb_tensor* const* in, int count);

// `value` points to one element of `itemsize` bytes.
void repeat_element(void* out, const void* value, int64_t itemsize, int64_t n);

// Conversions of arrays of half precisions to float32 and back. The pointers are to raw bits,
// because Half and BFloat16 are distinct types in each instruction set's namespace.
struct HalfConversions {
  void (*half_to_float)(const uint16_t*, float*, int64_t);
  void (*bfloat16_to_float)(const uint16_t*, float*, int64_t);
  void (*half_from_float)(const float*, uint16_t*, int64_t);
  void (*bfloat16_from_float)(const float*, uint16_t*, int64_t);
};
// Sets the conversions that the driver uses. Called before any kernel runs.
void use_half_conversions(const HalfConversions& conversions);

inline namespace CANDELABRA_ISA_NAMESPACE {
inline constexpr HalfConversions half_conversions = {
    [](const uint16_t* in, float* out, int64_t n) { to_float(reinterpret_cast<const Half*>(in), out, n); },
    [](const uint16_t* in, float* out, int64_t n) { to_float(reinterpret_cast<const BFloat16*>(in), out, n); },
    [](const float* in, uint16_t* out, int64_t n) { from_float(in, reinterpret_cast<Half*>(out), n); },
    [](const float* in, uint16_t* out, int64_t n) { from_float(in, reinterpret_cast<BFloat16*>(out), n); },
};
}  // namespace CANDELABRA_ISA_NAMESPACE

// Small contiguous operands take a fast path without geometry and threads.
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
        if (out.numel > 1)
          repeat_element(repeated[k], each.data, itemsize(each.dtype), out.numel), pointers[k] = repeated[k];
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
