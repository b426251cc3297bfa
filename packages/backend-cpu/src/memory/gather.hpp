// Gathers strided elements into a contiguous buffer.
#pragma once

#include <cstdint>

namespace candelabra::cpu {

// Copies n elements of `itemsize` bytes that lie `stride` elements apart. A stride of 0 repeats one
// element.
void gather(void* out, const void* in, int64_t stride, int64_t itemsize, int64_t n);

}  // namespace candelabra::cpu
