// Two emulated devices, errors, and the driver's functions.
#include <cuda.h>

#include <sys/mman.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "machine.hpp"
#include "memory.hpp"

namespace emulation {

MachineMutex& machine_mutex() {
  static auto* one = new MachineMutex();
  return *one;
}

bool is_set(const char* variable) {
  const char* text = std::getenv(variable);
  return text && *text && std::strcmp(text, "0") != 0;
}

namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local cudaError_t explained = cudaSuccess;
thread_local std::string explanation;
thread_local int device_of_thread = 0;
thread_local int device_of_work = 0;
bool peers[device_count][device_count] = {};

struct Name {
  cudaError_t error;
  const char *name, *text;
};
constexpr Name names[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorSystemNotReady, "cudaErrorSystemNotReady", "system not yet initialized"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    {cudaErrorIllegalInstruction, "cudaErrorIllegalInstruction", "an illegal instruction was encountered"},
    {cudaErrorDeviceUninitialized, "cudaErrorDeviceUninitialized", "invalid device context"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorIllegalState, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
    {cudaErrorMapBufferObjectFailed, "cudaErrorMapBufferObjectFailed", "mapping of buffer object failed"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
};

// The simulated state of the driver, from CANDELABRA_EMULATION_DRIVER: none, old or broken.
bool driver_is(const char* state) {
  const char* text = std::getenv("CANDELABRA_EMULATION_DRIVER");
  return text && std::strcmp(text, state) == 0;
}

int capability() {
  const char* text = std::getenv("CANDELABRA_EMULATION_CAPABILITY");
  return text ? std::atoi(text) : 90;
}

}  // namespace

int& current_device() {
  return device_of_thread;
}
int& running_device() {
  return device_of_work;
}
bool is_peer(int device, int peer) {
  return peers[device][peer];
}

cudaError_t failed(cudaError_t error) {
  last_error = error;
  return error;
}
cudaError_t failed(cudaError_t error, const std::string& text) {
  explained = error;
  explanation = text;
  return failed(error);
}

}  // namespace emulation

using namespace emulation;

extern "C" {

cudaError_t cudaGetLastError() {
  return std::exchange(last_error, cudaSuccess);
}
cudaError_t cudaPeekAtLastError() {
  return last_error;
}
const char* cudaGetErrorName(cudaError_t error) {
  for (const Name& each : names)
    if (each.error == error) return each.name;
  return "unrecognized error code";
}
const char* cudaGetErrorString(cudaError_t error) {
  if (error == explained && !explanation.empty()) return explanation.c_str();
  for (const Name& each : names)
    if (each.error == error) return each.text;
  return "unrecognized error code";
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  if (driver_is("none") || driver_is("old")) return failed(cudaErrorInsufficientDriver);
  if (driver_is("broken")) return failed(cudaErrorSystemNotReady);
  if (const char* text = std::getenv("CANDELABRA_EMULATION_DEVICES"))
    *count = std::atoi(text);
  else
    *count = device_count;
  return *count > 0 ? cudaSuccess : failed(cudaErrorNoDevice);
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= device_count) return failed(cudaErrorInvalidDevice);
  current_device() = device;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = driver_is("none") ? 0 : driver_is("old") ? 12040 : CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* result, int device) {
  if (device < 0 || device >= device_count) return failed(cudaErrorInvalidDevice);
  *result = {};
  std::snprintf(result->name, sizeof result->name, "Emulated device");
  result->totalGlobalMem = total_memory();
  result->sharedMemPerBlock = shared_by_default;
  result->sharedMemPerBlockOptin = shared_at_most;
  result->sharedMemPerMultiprocessor = 228 * 1024;
  result->regsPerBlock = result->regsPerMultiprocessor = 65536;
  result->warpSize = 32;
  result->maxThreadsPerBlock = 1024;
  result->maxThreadsPerMultiProcessor = 2048;
  result->maxThreadsDim[0] = result->maxThreadsDim[1] = 1024;
  result->maxThreadsDim[2] = 64;
  result->maxGridSize[0] = 0x7fffffff;
  result->maxGridSize[1] = result->maxGridSize[2] = 65535;
  result->major = capability() / 10;
  result->minor = capability() % 10;
  result->multiProcessorCount = multiprocessors;
  result->l2CacheSize = 4 << 20;
  result->unifiedAddressing = 1;
  result->asyncEngineCount = 1;
  result->pciBusID = device + 1;
  for (int i = 0; i < 16; ++i) result->uuid.bytes[i] = static_cast<char>(i * 16 + device);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device < 0 || device >= device_count) return failed(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = multiprocessors;
      return cudaSuccess;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = 2048;
      return cudaSuccess;
    case cudaDevAttrMaxThreadsPerBlock:
      *value = 1024;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = shared_by_default;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = shared_at_most;
      return cudaSuccess;
    case cudaDevAttrL2CacheSize:
      *value = 4 << 20;
      return cudaSuccess;
    case cudaDevAttrClockRate:
      *value = 1000000;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = capability() / 10;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = capability() % 10;
      return cudaSuccess;
    default:
      return failed(cudaErrorNotSupported,
                    "emulation: device attribute " + std::to_string(static_cast<int>(attribute)) + " is unknown");
  }
}

cudaError_t cudaDeviceCanAccessPeer(int* result, int device, int peer) {
  if (device < 0 || device >= device_count || peer < 0 || peer >= device_count) return failed(cudaErrorInvalidDevice);
  *result = device != peer;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  const Lock lock(machine_mutex());
  if (flags || peer < 0 || peer >= device_count || peer == current_device()) return failed(cudaErrorInvalidDevice);
  if (std::exchange(peers[current_device()][peer], true)) return failed(cudaErrorPeerAccessAlreadyEnabled);
  return cudaSuccess;
}

// ---- the driver's virtual memory functions

namespace {

struct Mapped {
  size_t bytes;
};

CUresult address_reserve(CUdeviceptr* address, size_t bytes, size_t, CUdeviceptr, unsigned long long) {
  void* found = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(found);
  return CUDA_SUCCESS;
}
CUresult address_free(CUdeviceptr address, size_t bytes) {
  return munmap(reinterpret_cast<void*>(address), bytes) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult create(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* properties,
                unsigned long long) {
  const Lock lock(machine_mutex());
  if (bytes % virtual_page || properties->location.id < 0 || properties->location.id >= device_count)
    return CUDA_ERROR_INVALID_VALUE;
  if (!take_budget(properties->location.id, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = bytes << 8 | static_cast<unsigned>(properties->location.id);
  return CUDA_SUCCESS;
}
CUresult release(CUmemGenericAllocationHandle) {
  return CUDA_SUCCESS;  // every allocation is mapped, and lives as long as the mapping
}
CUresult map(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
             unsigned long long) {
  const Lock lock(machine_mutex());
  if (offset || bytes != handle >> 8) return CUDA_ERROR_INVALID_VALUE;
  void* at = reinterpret_cast<void*>(address);
  if (mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
    return CUDA_ERROR_OUT_OF_MEMORY;
  note_allocation({static_cast<char*>(at), bytes, static_cast<int>(handle & 0xff), false});
  return CUDA_SUCCESS;
}
CUresult unmap(CUdeviceptr address, size_t bytes) {
  const Lock lock(machine_mutex());
  void* at = reinterpret_cast<void*>(address);
  const Allocation* found = allocation_of(at);
  if (!found || found->base != at || found->bytes != bytes) return CUDA_ERROR_INVALID_VALUE;
  give_budget(found->device, bytes);
  forget_allocation(at);
  mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return CUDA_SUCCESS;
}
CUresult set_access(CUdeviceptr address, size_t bytes, const CUmemAccessDesc*, size_t) {
  return mprotect(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE) ? CUDA_ERROR_INVALID_VALUE
                                                                                   : CUDA_SUCCESS;
}
CUresult granularity(size_t* bytes, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
  *bytes = virtual_page;
  return CUDA_SUCCESS;
}

}  // namespace

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** address, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  const struct {
    const char* name;
    void* address;
  } known[] = {
      {"cuMemAddressReserve", reinterpret_cast<void*>(address_reserve)},
      {"cuMemAddressFree", reinterpret_cast<void*>(address_free)},
      {"cuMemCreate", reinterpret_cast<void*>(create)},
      {"cuMemRelease", reinterpret_cast<void*>(release)},
      {"cuMemMap", reinterpret_cast<void*>(map)},
      {"cuMemUnmap", reinterpret_cast<void*>(unmap)},
      {"cuMemSetAccess", reinterpret_cast<void*>(set_access)},
      {"cuMemGetAllocationGranularity", reinterpret_cast<void*>(granularity)},
  };
  for (const auto& each : known) {
    if (std::strcmp(each.name, symbol)) continue;
    *address = each.address;
    if (result) *result = cudaDriverEntryPointSuccess;
    return cudaSuccess;
  }
  *address = nullptr;
  if (result) *result = cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

}  // extern "C"
