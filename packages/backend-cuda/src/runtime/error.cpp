// Defines the functions of candelabra/kernel.hpp that are not inline.
#define CANDELABRA_KERNEL_DEFINITIONS
#include "runtime/error.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

#include "candelabra/accelerator.h"
#include "runtime/device.hpp"
#include "runtime/faults.hpp"

namespace candelabra::cuda {

namespace {

constexpr auto device_failure = static_cast<cb_status>(CB_ACCELERATOR_ERROR);

thread_local std::string message_of_thread;

// After one of these errors, every later call of this process on the device fails too.
bool poisons_the_context(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorECCUncorrectable:
      return true;
    default:
      return false;
  }
}

}  // namespace

void raise_cuda(cudaError_t error, const char* doing) {
  cudaGetLastError();  // clears an error that is not sticky, so that it is reported once
  if (error == cudaErrorMemoryAllocation) throw failure(CB_OUT_OF_MEMORY, "%s: out of memory (CUDA)", doing);
  if (poisons_the_context(error))
    throw failure(
        device_failure,
        "%s: CUDA error %s: %s. The failure is that of a kernel queued here or earlier%s; this process can no longer "
        "use the device",
        doing, cudaGetErrorName(error), cudaGetErrorString(error),
        launch_blocking() ? "" : " (CANDELABRA_LAUNCH_BLOCKING=1 says which)");
  throw failure(device_failure, "%s: CUDA error %s: %s", doing, cudaGetErrorName(error), cudaGetErrorString(error));
}

void raise_driver(CUresult result, const char* doing) {
  if (result == CUDA_ERROR_OUT_OF_MEMORY) throw failure(CB_OUT_OF_MEMORY, "%s: out of memory (CUDA driver)", doing);
  throw failure(device_failure, "%s: error %d of the CUDA driver", doing, static_cast<int>(result));
}

void raise_library(const char* library, const char* function, int status, const char* text) {
  throw failure(CB_RUNTIME_ERROR, "%s: %s failed with status %d (%s)", library, function, status,
                text ? text : "unknown");
}

bool launch_blocking() {
  static const bool value = [] {
    const char* text = std::getenv("CANDELABRA_LAUNCH_BLOCKING");
    return text && *text && std::strcmp(text, "0") != 0;
  }();
  return value;
}

const char* last_message() {
  return message_of_thread.c_str();
}

void set_last_message(const char* text) noexcept {
  try {
    message_of_thread = text;
  } catch (...) {
    message_of_thread.clear();
  }
}

int32_t report_outside_kernel() noexcept {
  try {
    throw;
  } catch (const Failure& error) {
    set_last_message(error.what());
    return error.status();
  } catch (const std::bad_alloc&) {
    message_of_thread.clear();  // formatting a message would need memory
    return CB_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    set_last_message(error.what());
    return CB_RUNTIME_ERROR;
  } catch (...) {
    set_last_message("unknown exception in the CUDA backend");
    return CB_RUNTIME_ERROR;
  }
}

int32_t run_kernel(cb_call* raw, void (*kernel)(Call&)) noexcept {
  try {
    const DeviceGuard guard(raw->device_index);
    if (!device_traits(raw->device_index).supported) [[unlikely]]
      throw failure(CB_RUNTIME_ERROR, "device %d has compute capability %d.%d, which this build has no kernels for",
                    raw->device_index, device_traits(raw->device_index).capability / 10,
                    device_traits(raw->device_index).capability % 10);
    raise_fault_of(raw->device_index);  // reported by a kernel that ran meanwhile
    Call call(raw);
    kernel(call);
    if (launch_blocking() && !is_capturing(call.stream())) [[unlikely]] {
      const cudaError_t error = cudaStreamSynchronize(call.stream());
      if (error != cudaSuccess) raise_cuda(error, raw->operator_name);
      raise_fault_of(raw->device_index);
    }
    return CB_OK;
  } catch (...) {
    return report_exception(raw);
  }
}

}  // namespace candelabra::cuda
