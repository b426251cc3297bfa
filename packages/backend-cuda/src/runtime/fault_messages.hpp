// Faults that kernels report with a message of their own, under a title instead of the operator's
// name.
#pragma once

#include <string>

#include "runtime/faults.hpp"

namespace candelabra::cuda {

// Reports with FaultKind::Custom raise RuntimeError "TITLE: TEXT". {index} and {size} in the text
// stand for the reported numbers. Both strings are literals.
FaultSink message_sink(const Call& call, const char* title, const char* text);

// Records a failure that the host found outside a call. The next operator or synchronization on the
// device raises it.
void report_failure(int device, const std::string& text);

}  // namespace candelabra::cuda
