#include "drivers/mixed_blocks.hpp"

#include <algorithm>

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

namespace {

constexpr int64_t largest_element = 16;

constexpr int64_t chunk = 512;

// Conversion to a widened dtype rounds to it, although the loop gets the loop dtype.
void round_to(int32_t dtype, void* values, int64_t n) {
  alignas(64) std::byte narrowed[chunk * 4];
  narrow(dtype, values, narrowed, n);
  widen(dtype, narrowed, values, n);
}

struct Operand {
  Blocks convert;  // without a loop if the operand has the computation's dtype
  int64_t size;    // bytes of an element as the block driver passes it
};

struct Mixed {
  const Blocks& blocks;
  int count;
  int32_t dtype;  // the output's
  int64_t out_size;
  Operand operands[max_block_inputs];

  void convert(int k, void* to, const void* from, int64_t n) const {
    const Blocks& conversion = operands[k].convert;
    conversion.loop(to, &from, n, conversion.context);
    if (is_widened_dtype(dtype)) round_to(dtype, to, n);
  }

  static void loop(void* out, const void* const* in, int64_t n, const void* context) {
    const Mixed& self = *static_cast<const Mixed*>(context);
    alignas(64) std::byte converted[max_block_inputs][chunk * largest_element];
    const void* pointers[max_block_inputs];
    for (int64_t done = 0; done < n; done += chunk) {
      const int64_t m = std::min(chunk, n - done);
      for (int k = 0; k < self.count; ++k) {
        pointers[k] = static_cast<const std::byte*>(in[k]) + done * self.operands[k].size;
        if (!self.operands[k].convert.loop) continue;
        self.convert(k, converted[k], pointers[k], m);
        pointers[k] = converted[k];
      }
      self.blocks.loop(static_cast<std::byte*>(out) + done * self.out_size, pointers, m, self.blocks.context);
    }
  }
};

}  // namespace

void run_mixed(const Blocks& blocks, cb_tensor& out, const cb_tensor* const* in, int count) {
  if (out.numel == 0) return;
  const int32_t computed = loop_dtype(out.dtype);
  Mixed mixed{blocks, count, out.dtype, itemsize(computed), {}};
  alignas(16) std::byte elements[max_block_inputs][largest_element];
  cb_tensor ones[max_block_inputs];
  const cb_tensor* operands[max_block_inputs];
  for (int k = 0; k < count; ++k) {
    const cb_tensor& each = *in[k];
    operands[k] = &each;
    mixed.operands[k].size = itemsize(loop_dtype(each.dtype));
    if (each.dtype == out.dtype || (each.flags & CB_TENSOR_NUMBER)) continue;
    mixed.operands[k].convert = conversion(computed, loop_dtype(each.dtype));
    if (!is_constant(each)) continue;
    // Converted once, not once per block.
    const void* element = each.data;
    float wide[2];
    if (is_widened_dtype(each.dtype)) widen(each.dtype, element, wide, 1), element = wide;
    mixed.convert(k, elements[k], element, 1);
    mixed.operands[k] = {{}, itemsize(computed)};
    ones[k] = each;
    ones[k].data = elements[k];
    ones[k].dtype = computed;
    operands[k] = &ones[k];
  }
  run_blocks({Mixed::loop, &mixed, blocks.work + 1}, out, operands, count);
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
