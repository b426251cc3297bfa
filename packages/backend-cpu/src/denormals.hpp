// Numbers too small to be normal, which some processors are slow with.
#pragma once

namespace candelabra::cpu {

// Whether all threads take denormal numbers for zero, as operands and as results (parallel.cpp).
void set_flush_denormal(bool on);

}  // namespace candelabra::cpu
