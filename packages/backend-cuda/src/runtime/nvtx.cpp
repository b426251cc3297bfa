#include "runtime/nvtx.hpp"

#include "runtime/error.hpp"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define CANDELABRA_HAS_NVTX 1
#else
#define CANDELABRA_HAS_NVTX 0
#endif

// Functions of the CUDA runtime. Declared here, because their header is in a separate PyPI package
// that nothing else needs.
extern "C" cudaError_t cudaProfilerStart(void);
extern "C" cudaError_t cudaProfilerStop(void);

namespace candelabra::cuda {

void record_profile(bool is_recording) {
  if (is_recording)
    check(cudaProfilerStart(), "having the profiler record");
  else
    check(cudaProfilerStop(), "having the profiler stop");
}

#if CANDELABRA_HAS_NVTX

void range_push(const char* text) noexcept {
  nvtxRangePushA(text);
}
void range_pop() noexcept {
  nvtxRangePop();
}
void mark(const char* text) noexcept {
  nvtxMarkA(text);
}
uint64_t range_start(const char* text) noexcept {
  return nvtxRangeStartA(text);
}
void range_end(uint64_t range) noexcept {
  nvtxRangeEnd(range);
}

#else

// Without NVTX's headers, profilers show kernels but no named ranges.
void range_push(const char*) noexcept {}
void range_pop() noexcept {}
void mark(const char*) noexcept {}
uint64_t range_start(const char*) noexcept {
  return 0;
}
void range_end(uint64_t) noexcept {}

#endif

}  // namespace candelabra::cuda
