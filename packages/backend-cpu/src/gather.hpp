// Elements that lie apart, brought side by side.
#pragma once

#include <cstdint>

namespace candelabra::cpu {

// n elements of `itemsize` bytes, `stride` elements apart: a stride of 0 repeats one.
void gather(void* out, const void* in, int64_t stride, int64_t itemsize, int64_t n);

}  // namespace candelabra::cpu
