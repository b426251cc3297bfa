// What a kernel is written with: its arguments, how it fails, and the table it is entered in.
//
// kernels/FAMILY.cpp defines, in namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE, kernels `void add(Call& call)` and one
// `void register_FAMILY(KernelTable& table)`. CMake compiles the file once per instruction set (or once, see CMakeLists.txt) and
// writes the list of families. Everything of a family but its register function stays in an unnamed namespace.
#pragma once

#include "candelabra/kernel.hpp"

namespace candelabra::cpu {

using kernel::Call;
using kernel::Failure;
using kernel::failure;
using kernel::is_contiguous;
using kernel::not_implemented;
using kernel::report_exception;
using kernel::same_sizes;
using KernelTable = kernel::KernelTable<Call, kernel::Guarded>;

}  // namespace candelabra::cpu
