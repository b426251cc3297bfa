// Translates the statuses of NVIDIA's libraries to the ABI's, with a message that names the action.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "kernels.hpp"

namespace candelabra::cuda {

// Throws if a call of the CUDA runtime failed: check(cudaMemcpyAsync(...), "copying to the
// device").
[[noreturn, gnu::cold]] void raise_cuda(cudaError_t error, const char* doing);
inline void check(cudaError_t error, const char* doing) {
  if (error != cudaSuccess) [[unlikely]]
    raise_cuda(error, doing);
}

// The same for the driver's functions.
[[noreturn, gnu::cold]] void raise_driver(CUresult result, const char* doing);
inline void check(CUresult result, const char* doing) {
  if (result != CUDA_SUCCESS) [[unlikely]]
    raise_driver(result, doing);
}

// Throws for a failure of a library: raise_library("cuBLAS", "cublasLtMatmul", status,
// "CUBLAS_STATUS_NOT_SUPPORTED").
[[noreturn, gnu::cold]] void raise_library(const char* library, const char* function, int status, const char* text);

// Whether CANDELABRA_LAUNCH_BLOCKING=1 makes every launch wait for its kernel.
bool launch_blocking();

// The message of this thread's last failure outside a kernel, and the wrapper of all functions of
// the table.
const char* last_message();
void set_last_message(const char* text) noexcept;
int32_t report_outside_kernel() noexcept;

template <typename F>
int32_t guarded(F&& f) noexcept {
  try {
    f();
    return CB_OK;
  } catch (...) {
    return report_outside_kernel();
  }
}

}  // namespace candelabra::cuda
