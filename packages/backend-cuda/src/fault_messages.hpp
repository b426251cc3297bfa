// Failures found by kernels whose message is not that of an index: told under a title instead of the operator's name.
#pragma once

#include "faults.hpp"

namespace candelabra::cuda {

// Reports with FaultKind::Custom raise RuntimeError "TITLE: TEXT", where {index} and {size} of the text stand for what was
// reported. Both are literals.
FaultSink message_sink(const Call& call, const char* title, const char* text);

}  // namespace candelabra::cuda
