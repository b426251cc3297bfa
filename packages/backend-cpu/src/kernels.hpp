// Arguments, errors and the registration table of kernels.
//
// kernels/FAMILY.cpp defines kernels such as `void add(Call& call)` and one `void
// register_FAMILY(KernelTable& table)`, in namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE.
// CMake compiles the file once per instruction set (or once, see CMakeLists.txt) and generates the
// list of families. Everything but the register function stays in an unnamed namespace.
#pragma once

#include "candelabra/kernel.hpp"
#include "threads/interruption.hpp"

namespace candelabra::cpu {

using kernel::Call;
using kernel::Failure;
using kernel::failure;
using kernel::is_contiguous;
using kernel::not_implemented;
using kernel::report_exception;
using kernel::same_sizes;

// The C entry point of a kernel, whose loops can be interrupted.
template <void (*Kernel)(Call&)>
struct Interruptible {
  static int32_t run(cb_call* raw) noexcept {
    const RunningKernel running(raw);
    return kernel::Guarded<Kernel>::run(raw);
  }
};

using KernelTable = kernel::KernelTable<Call, Interruptible>;

}  // namespace candelabra::cpu
