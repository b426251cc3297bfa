// Deterministic mode for MKL and oneDNN routines that split their work by the number of threads.
#pragma once

namespace candelabra::cpu {

// candelabra.use_deterministic_algorithms(True): such routines run on one thread.
bool is_deterministic();

}  // namespace candelabra::cpu
