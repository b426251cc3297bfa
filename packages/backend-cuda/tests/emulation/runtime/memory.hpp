// Declarations that the driver's functions and the runtime's share.
#pragma once

#include "machine.hpp"

namespace emulation {

constexpr size_t virtual_page = size_t{2} << 20;

size_t total_memory();  // of a device: CANDELABRA_EMULATION_MEMORY in MiB
bool take_budget(int device, size_t bytes);
void give_budget(int device, size_t bytes);
void note_allocation(const Allocation& allocation);
void forget_allocation(const void* base);

}  // namespace emulation
