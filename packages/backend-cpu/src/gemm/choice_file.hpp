// The choices of autotuning on disk: every process of a machine takes the library that the first
// one chose, so that runs repeat bit for bit. CANDELABRA_CPU_GEMM_CACHE=0 makes each process
// measure.
#pragma once

#include <string>

#include "candelabra/backend.h"

namespace candelabra::cpu {

// The core's services and this backend's table, by which the core knows the directory.
void set_choice_host(const cb_host* host, const cb_backend* table);

// What a process with the same processor, version, number of threads and settings has stored under
// this name, or empty.
std::string stored_choice(const std::string& name);

// Stores a choice, and returns what is stored then: of processes that measure at once, the first
// one decides, unless its choice is to be replaced. Returns `chosen` where nothing can be stored.
std::string store_choice(const std::string& name, const std::string& chosen, bool replaces);

}  // namespace candelabra::cpu
