// The device of this backend: its memory, and how the host reaches it.
#ifndef DEVICE_HPP
#define DEVICE_HPP

#include "candelabra/backend.h"

namespace device {

// Sets the functions of the table that manage memory.
void write_to(cb_backend& table);

// Where kernels find a position of a storage.
char* address(const void* storage, uint64_t offset);

}  // namespace device

#endif
