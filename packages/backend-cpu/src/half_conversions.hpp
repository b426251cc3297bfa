// float16 and bfloat16 to float32 and back, in blocks, as the instruction set of the kernels has it.
#pragma once

#include <cstdint>

namespace candelabra::cpu {

// On the bits, for the types are each instruction set's own.
struct HalfConversions {
  void (*widen_half)(const uint16_t*, float*, int64_t);
  void (*widen_bfloat16)(const uint16_t*, float*, int64_t);
  void (*narrow_half)(const float*, uint16_t*, int64_t);
  void (*narrow_bfloat16)(const float*, uint16_t*, int64_t);
};
// Those that the driver of elementwise kernels uses; before a kernel runs.
void use_half_conversions(const HalfConversions& conversions);

}  // namespace candelabra::cpu
