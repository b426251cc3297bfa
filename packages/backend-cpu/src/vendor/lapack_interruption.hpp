// Interruption of LAPACK's long factorizations, which MKL reports the progress of.
#pragma once

namespace candelabra::cpu {

// Registers the callback with MKL, for the process.
void watch_lapack();

}  // namespace candelabra::cpu
