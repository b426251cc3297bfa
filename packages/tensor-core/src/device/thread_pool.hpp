// The threads that host backends may share (cb_host.parallel_for).
#pragma once

#include <cstdint>

namespace candelabra {

// Runs body on [begin, end) in parts of at least `grain` elements, on the caller's thread and those
// of the pool. Returns when all parts are done. A call from inside a body runs serially.
void parallel_for(int64_t begin, int64_t end, int64_t grain, void (*body)(void*, int64_t, int64_t), void* context);

}  // namespace candelabra
