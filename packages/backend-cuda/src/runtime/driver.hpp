// Functions of libcuda without an equivalent in the runtime library, loaded at first use. Nothing
// links against the driver, so that this library loads on machines without one.
#pragma once

#include <cuda.h>

namespace candelabra::cuda {

struct Driver {
  decltype(&cuMemAddressReserve) address_reserve = nullptr;
  decltype(&cuMemAddressFree) address_free = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;
  decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
  bool has_virtual_memory() const {
    return address_reserve && address_free && create && release && map && unmap && set_access && granularity;
  }
};

const Driver& driver();

}  // namespace candelabra::cuda
