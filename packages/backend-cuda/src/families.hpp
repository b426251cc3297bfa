// All kernels, in families.cpp, which CMakeLists.txt writes.
#pragma once

#include "kernels.hpp"

namespace candelabra::cuda {

void register_families(KernelTable& table);

}  // namespace candelabra::cuda
