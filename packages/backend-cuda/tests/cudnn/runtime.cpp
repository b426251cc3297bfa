// Stubs of the functions of the backend and the CUDA runtime that the plan code refers to. Nothing
// runs here.
#define CANDELABRA_KERNEL_DEFINITIONS
#include <cstdio>
#include <cstdlib>

#include "drivers/move.hpp"
#include "runtime/device.hpp"
#include "runtime/error.hpp"
#include "runtime/launch.hpp"

namespace candelabra::cuda {

void raise_library(const char* library, const char* function, int status, const char* text) {
  throw failure(CB_RUNTIME_ERROR, "%s: %s failed with status %d (%s)", library, function, status, text);
}
void raise_cuda(cudaError_t error, const char* doing) {
  throw failure(CB_RUNTIME_ERROR, "%s: CUDA error %d", doing, static_cast<int>(error));
}
bool is_capturing(cudaStream_t) {
  return false;
}
Workspace::Workspace(const Call&, size_t) {}
Workspace::~Workspace() = default;
void fill_bytes(const Call&, void*, int, size_t) {}
void copy_bytes(const Call&, void*, const void*, size_t) {}
void move_elements(const Call&, const cb_tensor&, const cb_tensor&) {}

}  // namespace candelabra::cuda

extern "C" {
cudaError_t cudaFree(void*) {
  return cudaErrorNoDevice;
}
cudaError_t cudaEventCreate(cudaEvent_t*) {
  return cudaErrorNoDevice;
}
cudaError_t cudaEventDestroy(cudaEvent_t) {
  return cudaErrorNoDevice;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) {
  return cudaErrorNoDevice;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
  return cudaErrorNoDevice;
}
cudaError_t cudaEventElapsedTime(float*, cudaEvent_t, cudaEvent_t) {
  return cudaErrorNoDevice;
}
}
