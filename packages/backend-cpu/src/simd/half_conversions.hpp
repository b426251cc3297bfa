// Block conversions of float16 and bfloat16 to float32 and back, for the instruction set in use.
#pragma once

#include <cstdint>

namespace candelabra::cpu {

// The pointers are to raw bits, because Half and BFloat16 are distinct types in each instruction
// set's namespace.
struct HalfConversions {
  void (*widen_half)(const uint16_t*, float*, int64_t);
  void (*widen_bfloat16)(const uint16_t*, float*, int64_t);
  void (*narrow_half)(const float*, uint16_t*, int64_t);
  void (*narrow_bfloat16)(const float*, uint16_t*, int64_t);
};
// Sets the conversions that the elementwise driver uses. Called before any kernel runs.
void use_half_conversions(const HalfConversions& conversions);

}  // namespace candelabra::cpu
