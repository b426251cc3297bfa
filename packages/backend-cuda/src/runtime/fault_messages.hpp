// Failures found by kernels whose message is not that of an index: told under a title instead of
// the operator's name.
#pragma once

#include <string>

#include "runtime/faults.hpp"

namespace candelabra::cuda {

// Reports with FaultKind::Custom raise RuntimeError "TITLE: TEXT", where {index} and {size} of the
// text stand for what was reported. Both are literals.
FaultSink message_sink(const Call& call, const char* title, const char* text);

// A failure that the host has found while nobody was calling: the next operator or synchronization
// of the device raises it.
void report_failure(int device, const std::string& text);

}  // namespace candelabra::cuda
