#include "ranges.hpp"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define CANDELABRA_HAS_NVTX 1
#else
#define CANDELABRA_HAS_NVTX 0
#endif

namespace candelabra::cuda {

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

#else

// Built without NVTX's headers: profilers show kernels without names of ranges.
void range_push(const char*) noexcept {}
void range_pop() noexcept {}
void mark(const char*) noexcept {}

#endif

}  // namespace candelabra::cuda
