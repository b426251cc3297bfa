// Streams are command queues that execute in order; events are markers in them.
#ifndef CANDELABRA_OPENCL_STREAM_HPP
#define CANDELABRA_OPENCL_STREAM_HPP

#include "runtime/device.hpp"

namespace candelabra::opencl {

// Fills in the functions of streams and events.
void add_streams(cb_backend& table);

}  // namespace candelabra::opencl

#endif
