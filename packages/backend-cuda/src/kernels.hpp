// What a kernel is written with: its arguments, how it fails, and the table it is entered in.
//
// kernels/FAMILY.cu defines, in namespace candelabra::cuda, functions `void add(Call& call)` that
// queue work on call.stream(), and one `void register_FAMILY(KernelTable& table)`. CMake writes the
// list of families from the files. Everything of a family but its register function stays in an
// unnamed namespace.
#pragma once

#include <cuda_runtime_api.h>

#include "candelabra/kernel.hpp"

namespace candelabra::cuda {

using kernel::Failure;
using kernel::failure;
using kernel::is_contiguous;
using kernel::not_implemented;
using kernel::report_exception;
using kernel::same_sizes;

// The call that a kernel queues its work for.
class Call : public kernel::Call {
 public:
  using kernel::Call::Call;

  int device() const { return raw()->device_index; }
  cudaStream_t stream() const { return static_cast<cudaStream_t>(raw()->stream); }
};

// Sets the call's device, runs the kernel, and checks for failures: of the launch always, of the
// execution if CANDELABRA_LAUNCH_BLOCKING=1.
int32_t run_kernel(cb_call* raw, void (*kernel)(Call&)) noexcept;

// The C entry of a kernel.
template <void (*Kernel)(Call&)>
struct Entry {
  static int32_t run(cb_call* raw) noexcept { return run_kernel(raw, Kernel); }
};
using KernelTable = kernel::KernelTable<Call, Entry>;

}  // namespace candelabra::cuda
