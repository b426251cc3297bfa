// The tables of backends: checks, defaults for what is absent, and what each version of the ABI
// knows.
#pragma once

#include <string>
#include <vector>

#include "candelabra/collectives.h"

namespace candelabra {

// Throws BackendError or BackendVersionError that names the distribution, if the core cannot use
// this table for this device type. Reads no field beyond the table's own size.
void check_table(const std::string& device_type, const std::string& distribution, const cb_backend* table);

// The same for the backend's extension "accelerator", which must have what the capabilities
// promise. Null is right if they promise nothing of it.
void check_accelerator_table(const std::string& device_type, const std::string& distribution, uint64_t capabilities,
                             const cb_accelerator* table);

// The same for the tables of a library of collectives; `path` is its file.
void check_collectives_library(const std::string& path, const cb_collectives_library* library);

// A copy in which every absent function that has a default has it.
cb_backend completed(const cb_backend& given);

// The complete table of a backend with Python kernels only: ordinary host memory.
cb_backend host_memory_backend(const char* device_type);

// The complete table of the device type meta: allocations have no memory, copies write nothing.
cb_backend meta_backend(const char* device_type);

// The entries of a checked table, each padded to the size that the core knows.
std::vector<cb_kernel_entry> kernel_entries(const cb_backend& table);

// Mask: the dtypes that a minor version of the ABI has.
uint64_t dtypes_of_minor(uint32_t minor);

}  // namespace candelabra
