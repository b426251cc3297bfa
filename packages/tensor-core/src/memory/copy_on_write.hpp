// Storages that share memory until one of them is written to: what `Tensor._lazy_clone` makes.
//
// Whatever writes to memory, or gives out its address, calls make_writable() before it reads the
// address.
#pragma once

#include "memory/storage.hpp"

namespace pybind11 {
class module_;
}

namespace candelabra {

// Gives the storage memory of its own: that it shares, where no other storage does any longer, or a
// copy.
[[gnu::cold]] void take_own_memory(Storage& storage);
// Whether the storage shares memory that it must not write to.
bool is_copy_on_write(Storage* storage);

inline void make_writable(Storage* storage) {
  // Memory of the core's own, which nearly all storages have, needs no function to be freed.
  if (storage->release && is_copy_on_write(storage)) [[unlikely]]
    take_own_memory(*storage);
}

void register_copy_on_write(pybind11::module_& module);

}  // namespace candelabra
