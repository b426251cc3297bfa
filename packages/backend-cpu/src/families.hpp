// All kernels of one instruction set, in families.cpp, which CMakeLists.txt writes.
#pragma once

#include "kernels.hpp"

namespace candelabra::cpu {

void register_avx2(KernelTable& table);
void register_avx512(KernelTable& table);

}  // namespace candelabra::cpu
