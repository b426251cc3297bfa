// Calls of compiled kernels: the descriptors that they get, their errors, and the services that
// take the call.
#pragma once

#include "device/random.hpp"
#include "dispatch/call.hpp"

namespace candelabra {

struct Kernel;

// Calls a compiled kernel, whose outputs have memory. Throws what it reports.
void call_kernel(Call& call, const Kernel& kernel);

// A recorded call with complete descriptors, which a program replays (record/program.cpp).
struct ReplayedCall {
  const Operator& op;
  const Kernel& kernel;
  Device device;
  cb_tensor* outputs;
  int output_count;
  const cb_value* arguments;
  int argument_count;
  const uint64_t* content_versions;  // null unless the kernel reads them
  GeneratorState random;
  bool is_unlocked;
};
void replay_kernel(const ReplayedCall& call);

// The dtype that the kernel computes in: of the first tensor argument as the kernel sees it, or of
// the first output.
Dtype leading_dtype(const Call& call);
// For a kernel that does not compute this call. Throws Declined if the operator has a decomposition
// or the device type has the CPU fallback, else NotImplementedError.
[[noreturn]] void decline(Call& call);
// Throws NotImplementedError, with the dtype that the kernel would compute in.
[[noreturn]] void raise_not_implemented(Call& call);
// Declines the call if it has a dtype that the kernel does not have.
void check_supported(Call& call, const Kernel& kernel);

// Of cb_host.
int32_t allocate_output(cb_call* call, int32_t index, int32_t ndim, const int64_t* sizes);
int32_t allocate_workspace(cb_call* call, uint64_t bytes, cb_memory* result);
int32_t is_cancelled(cb_call* call);

}  // namespace candelabra
