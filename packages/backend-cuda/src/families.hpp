// Registers all kernels. Implemented in families.cpp, which CMakeLists.txt generates.
#pragma once

#include "kernels.hpp"

namespace candelabra::cuda {

void register_families(KernelTable& table);

}  // namespace candelabra::cuda
