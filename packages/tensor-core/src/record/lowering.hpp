// A recording as plain data, from which candelabra.export writes programs that need no Python.
#pragma once

#include "python/bindings.hpp"
#include "record/recorder.hpp"

namespace candelabra {

// ("kernel", operator, enum cb_kernel_flags, outputs, arguments), ("copy", to, from, bytes) or
// ("fill", to, bytes, pattern) of each instruction. Throws ValueError where one has no kernel of a
// backend, draws random numbers or takes numbers of an optimizer.
py::list lowered_instructions(const Recorder& recording);
// (bytes, whether it is from before the recording, whether it is written, the host's values or
// None) of each buffer.
py::list lowered_buffers(const Recorder& recording);

}  // namespace candelabra
