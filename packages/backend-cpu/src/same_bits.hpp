// Whether results of MKL's and oneDNN's routines that share their work by the number of threads must not change with it.
#pragma once

namespace candelabra::cpu {

// candelabra.use_deterministic_algorithms(True): those routines run on one thread.
bool wants_same_bits();

}  // namespace candelabra::cpu
