// Register all kernels of one instruction set. CMakeLists.txt generates the definitions in
// families.cpp.
#pragma once

#include "kernels.hpp"

namespace candelabra::cpu {

void register_avx2(KernelTable& table);
void register_avx512(KernelTable& table);

}  // namespace candelabra::cpu
