// cuFFT: the functions in use, and cached plans of batched transforms.
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

// Queues the transform, without scaling. Complex transforms may be in place. A transform from
// complex to real clobbers its input.
void transform(const Call& call, const FourierTransform& what, void* in, void* out, bool forward);

// The number of plans that all threads cache; and a request that each thread frees its plans before
// its next transform.
int transform_plans();
void clear_transform_plans();

}  // namespace candelabra::cuda
