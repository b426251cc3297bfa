// The driver of all elementwise kernels. A kernel is one loop over contiguous arrays. The driver
// calls it on blocks that fit in L1: it gathers strided operands, widens half, float8 and complex32
// elements and narrows the results, broadcasts scalars, divides the work among threads, and stores
// large results non-temporally. One loop per operator and dtype is compiled, not one per
// combination of strides.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "candelabra/small_floats.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"

namespace candelabra::cpu {

// Computes n elements. `in` holds one pointer per input. `out` may equal an input.
using BlockLoop = void (*)(void* out, const void* const* in, int64_t n, const void* context);

struct Blocks {
  BlockLoop loop;
  const void* context = nullptr;  // passed to the loop
  int64_t work = 1;               // cost of an element, in additions
  bool halves_as_float = true;    // the loop gets the loop dtype of widened dtypes (below)
};

// The dtypes that loops do not get: the driver converts them to their loop dtype and back.
constexpr uint64_t float8_dtypes = CB_DTYPE_BIT(CB_FLOAT8_E8M0FNU + 1) - CB_DTYPE_BIT(CB_FLOAT8_E4M3FN);
constexpr uint64_t complex32_dtype = CB_DTYPE_BIT(CB_COMPLEX32);
constexpr uint64_t widened_dtypes =
    CB_DTYPE_BIT(CB_FLOAT16) | CB_DTYPE_BIT(CB_BFLOAT16) | float8_dtypes | complex32_dtype;
inline bool is_widened_dtype(int32_t dtype) {
  return widened_dtypes >> dtype & 1;
}
// The dtype that a loop sees for elements of `dtype`.
inline int32_t loop_dtype(int32_t dtype) {
  if (!is_widened_dtype(dtype)) return dtype;
  return dtype == CB_COMPLEX32 ? CB_COMPLEX64 : CB_FLOAT32;
}

constexpr int max_block_inputs = 3;
constexpr int64_t tiny_elements = 256;

// Operands may have any strides. All have the sizes of the output.
void run_blocks(const Blocks& blocks, cb_tensor& out, const cb_tensor* const* in, int count);

// `value` points to one element of `itemsize` bytes.
void repeat_element(void* out, const void* value, int64_t itemsize, int64_t n);

// Conversions of arrays of widened dtypes to their loop dtype and back. The pointers are to raw
// bits, because Half and BFloat16 are distinct types in each instruction set's namespace.
struct WideningConversions {
  void (*half_to_float)(const uint16_t*, float*, int64_t);
  void (*bfloat16_to_float)(const uint16_t*, float*, int64_t);
  void (*half_from_float)(const float*, uint16_t*, int64_t);
  void (*bfloat16_from_float)(const float*, uint16_t*, int64_t);
  void (*float8_to_float)(int32_t dtype, const uint8_t*, float*, int64_t);
  void (*float8_from_float)(int32_t dtype, const float*, uint8_t*, int64_t);
};
// Sets the conversions that the driver uses. Called before any kernel runs.
void use_widening_conversions(const WideningConversions& conversions);
// Convert n elements of a widened dtype to its loop dtype, and back.
void widen(int32_t dtype, const void* in, void* out, int64_t n);
void narrow(int32_t dtype, const void* in, void* out, int64_t n);

inline namespace CANDELABRA_ISA_NAMESPACE {
inline void float8_to_float(int32_t dtype, const uint8_t* in, float* out, int64_t n) {
  small_floats::dispatch_float8(dtype, [&]<int32_t Format>() {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = small_floats::float8_to_float<Format>(in[i]);
  });
}
inline void float8_from_float(int32_t dtype, const float* in, uint8_t* out, int64_t n) {
  small_floats::dispatch_float8(dtype, [&]<int32_t Format>() {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = small_floats::float8_from_float<Format>(in[i]);
  });
}

inline constexpr WideningConversions widening_conversions = {
    [](const uint16_t* in, float* out, int64_t n) { to_float(reinterpret_cast<const Half*>(in), out, n); },
    [](const uint16_t* in, float* out, int64_t n) { to_float(reinterpret_cast<const BFloat16*>(in), out, n); },
    [](const float* in, uint16_t* out, int64_t n) { from_float(in, reinterpret_cast<Half*>(out), n); },
    [](const float* in, uint16_t* out, int64_t n) { from_float(in, reinterpret_cast<BFloat16*>(out), n); },
    float8_to_float,
    float8_from_float,
};
}  // namespace CANDELABRA_ISA_NAMESPACE

// Small contiguous operands take a fast path without geometry and threads.
template <size_t N>
inline void run(const Blocks& blocks, cb_tensor& out, const std::array<const cb_tensor*, N>& in) {
  static_assert(N <= max_block_inputs);
  if (out.numel <= tiny_elements && is_contiguous(out)) {
    alignas(64) std::byte repeated[N][tiny_elements * 16];
    const void* pointers[N];
    bool simple = !(blocks.halves_as_float && is_widened_dtype(out.dtype));
    for (size_t k = 0; k < N && simple; ++k) {
      const cb_tensor& each = *in[k];
      simple = !(blocks.halves_as_float && is_widened_dtype(each.dtype));
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
