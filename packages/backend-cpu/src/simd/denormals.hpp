// Flushing of denormal numbers, which are slow on some processors.
#pragma once

namespace candelabra::cpu {

// Sets whether all threads treat denormal operands and results as zero (parallel.cpp).
void set_flush_denormal(bool on);

}  // namespace candelabra::cpu
