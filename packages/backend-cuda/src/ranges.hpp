// Named ranges and marks for NVIDIA's profilers (NVTX). Outside of a profiler they cost a load and a comparison.
#pragma once

namespace candelabra::cuda {

void range_push(const char* text) noexcept;
void range_pop() noexcept;
void mark(const char* text) noexcept;

}  // namespace candelabra::cuda
