// Named ranges and marks for NVIDIA's profilers (NVTX). Without a profiler they cost a load and a
// comparison.
#pragma once

#include <cstdint>

namespace candelabra::cuda {

void range_push(const char* text) noexcept;
void range_pop() noexcept;
void mark(const char* text) noexcept;
uint64_t range_start(const char* text) noexcept;
void range_end(uint64_t range) noexcept;
// Starts or stops recording in a profiler that waits for it (nsys --capture-range=cudaProfilerApi).
void record_profile(bool is_recording);

}  // namespace candelabra::cuda
