// cuFFT: the functions in use, and plans of batched transforms that are kept.
#pragma once

#include <cufft.h>

#include <array>
#include <cstdint>

#include "kernels.hpp"

namespace candelabra::cuda {

// `batches` transforms over the last `rank` dimensions of contiguous memory.
struct FourierTransform {
  cufftType type;
  int rank;                      // 1 to 3
  std::array<int64_t, 3> sizes;  // of the signal, outermost first
  int64_t batches;
  auto operator<=>(const FourierTransform&) const = default;
};

// Queues the transform, without any scale. Complex ones may be in place. A transform from complex
// to real spoils its input.
void transform(const Call& call, const FourierTransform& what, void* in, void* out, bool forward);

// How many plans all threads keep; and have each thread give up its own before its next transform.
int transform_plans();
void clear_transform_plans();

}  // namespace candelabra::cuda
