#include "runtime/device.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/driver.hpp"
#include "runtime/error.hpp"

namespace candelabra::cuda {

namespace {

// Architectures that this library has code for, "80;90;100", and the one whose PTX newer devices
// can compile (0: none).
constexpr const char* architectures = CANDELABRA_CUDA_ARCHITECTURES;
constexpr int portable_architecture = CANDELABRA_CUDA_PTX;

std::vector<DeviceTraits>& all_traits() {
  static auto* traits =
      new std::vector<DeviceTraits>();  // never destroyed: memory may be freed later than static destructors run
  return *traits;
}
std::atomic<bool> forked{false};

bool has_code_for(int capability) {
  if (portable_architecture && capability >= portable_architecture) return true;
  for (const char* at = architectures; *at;) {
    char* end;
    const int each = static_cast<int>(std::strtol(at, &end, 10));
    if (each / 10 == capability / 10 && each <= capability) return true;
    at = end;
    while (*at && (*at < '0' || *at > '9')) ++at;
  }
  return false;
}

std::string in_words(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

[[noreturn]] void raise_no_devices(cudaError_t error) {
  int installed = 0, own = 0;
  cudaDriverGetVersion(&installed);
  cudaRuntimeGetVersion(&own);
  cudaGetLastError();
  if (installed == 0)
    throw failure(CB_RUNTIME_ERROR,
                  "no NVIDIA driver (libcuda.so.1 was not found or does not answer); use device='cpu', or install one");
  if (error == cudaErrorInsufficientDriver)
    throw failure(CB_RUNTIME_ERROR,
                  "the NVIDIA driver is too old: it knows CUDA %s, candelabra-backend-cuda was built for CUDA %s; "
                  "update the driver",
                  in_words(installed).c_str(), in_words(own).c_str());
  if (error == cudaErrorNoDevice || error == cudaSuccess) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    throw failure(CB_RUNTIME_ERROR, "no NVIDIA device: the driver sees none%s%s",
                  visible ? " (CUDA_VISIBLE_DEVICES=" : "", visible ? (std::string(visible) + ")").c_str() : "");
  }
  throw failure(CB_RUNTIME_ERROR, "the NVIDIA driver does not start: %s: %s", cudaGetErrorName(error),
                cudaGetErrorString(error));
}

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, device), "reading an attribute of a device");
  return value;
}

template <typename F>
void find(F& function, const char* name) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult result{};
  if (cudaGetDriverEntryPointByVersion(name, &address, 12000, cudaEnableDefault, &result) == cudaSuccess &&
      result == cudaDriverEntryPointSuccess)
    function = reinterpret_cast<F>(address);
  else
    cudaGetLastError();
}

}  // namespace

const Driver& driver() {
  static const Driver found = [] {
    Driver d;
    find(d.address_reserve, "cuMemAddressReserve");
    find(d.address_free, "cuMemAddressFree");
    find(d.create, "cuMemCreate");
    find(d.release, "cuMemRelease");
    find(d.map, "cuMemMap");
    find(d.unmap, "cuMemUnmap");
    find(d.set_access, "cuMemSetAccess");
    find(d.granularity, "cuMemGetAllocationGranularity");
    return d;
  }();
  return found;
}

void initialize_devices() {
  if (!all_traits().empty()) return;
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) raise_no_devices(error);
  std::vector<DeviceTraits> found(static_cast<size_t>(count));
  int usable = 0;
  for (int device = 0; device < count; ++device) {
    DeviceTraits& traits = found[static_cast<size_t>(device)];
    traits.multiprocessors = attribute(cudaDevAttrMultiProcessorCount, device);
    traits.threads_per_multiprocessor = attribute(cudaDevAttrMaxThreadsPerMultiProcessor, device);
    traits.max_shared_per_block = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    traits.l2_bytes = attribute(cudaDevAttrL2CacheSize, device);
    traits.capability = attribute(cudaDevAttrComputeCapabilityMajor, device) * 10 +
                        attribute(cudaDevAttrComputeCapabilityMinor, device);
    traits.supported = has_code_for(traits.capability);
    usable += traits.supported;
  }
  if (usable == 0)
    throw failure(
        CB_RUNTIME_ERROR,
        "no device that this build has kernels for: device 0 has compute capability %d.%d, the kernels are for %s%s",
        found[0].capability / 10, found[0].capability % 10, architectures, portable_architecture ? " and newer" : "");
  all_traits() = std::move(found);
}

int device_count() {
  return static_cast<int>(all_traits().size());
}

const DeviceTraits& device_traits(int device) {
  return all_traits()[static_cast<size_t>(device)];
}

void read_properties(int device, cb_device_properties& result) {
  const DeviceGuard guard(device);
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "reading the properties of a device");
  std::snprintf(result.name, sizeof result.name, "%.*s", static_cast<int>(sizeof result.name) - 1, properties.name);
  result.total_memory = static_cast<int64_t>(properties.totalGlobalMem);
  size_t free_bytes = 0, total_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &total_bytes), "asking for free memory");
  result.free_memory = static_cast<int64_t>(free_bytes);
  result.processor_count = properties.multiProcessorCount;
  result.architecture = properties.major * 10 + properties.minor;
}

void read_details(int device, cb_device_details& result) {
  const DeviceGuard guard(device);
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "reading the properties of a device");
  result.major = properties.major;
  result.minor = properties.minor;
  result.warp_size = properties.warpSize;
  result.threads_per_processor = properties.maxThreadsPerMultiProcessor;
  result.threads_per_block = properties.maxThreadsPerBlock;
  result.clock_khz = attribute(cudaDevAttrClockRate, device);
  result.l2_bytes = properties.l2CacheSize;
  result.shared_bytes_per_block = static_cast<int64_t>(properties.sharedMemPerBlock);
  result.shared_bytes_per_block_optin = static_cast<int64_t>(properties.sharedMemPerBlockOptin);
  result.shared_bytes_per_processor = static_cast<int64_t>(properties.sharedMemPerMultiprocessor);
  result.registers_per_processor = properties.regsPerMultiprocessor;
  result.is_integrated = properties.integrated;
  result.is_multi_gpu_board = properties.isMultiGpuBoard;
  result.pci_domain = properties.pciDomainID;
  result.pci_bus = properties.pciBusID;
  result.pci_device = properties.pciDeviceID;
  int32_t version = 0;
  check(cudaDriverGetVersion(&version), "asking for the version of the driver");
  result.driver_version = version;
  check(cudaRuntimeGetVersion(&version), "asking for the version of the runtime");
  result.runtime_version = version;
  std::memcpy(result.uuid, properties.uuid.bytes, sizeof result.uuid);
}

DeviceGuard::DeviceGuard(int device) {
  if (in_forked_child())
    throw failure(CB_RUNTIME_ERROR,
                  "Cannot re-initialize CUDA in forked subprocess: the parent had used it already. To use CUDA with "
                  "multiprocessing, "
                  "you must use the 'spawn' start method, or 'forkserver'");
  int current = -1;
  check(cudaGetDevice(&current), "asking for the current device");
  if (current == device) return;
  check(cudaSetDevice(device), "changing the device");
  before_ = current;
}

DeviceGuard::~DeviceGuard() {
  if (before_ >= 0) cudaSetDevice(before_);
}

bool is_capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t error = cudaStreamIsCapturing(stream, &status);
  // The default stream cannot be used while another stream is captured.
  if (error == cudaErrorStreamCaptureImplicit) {
    cudaGetLastError();
    return false;
  }
  check(error, "asking whether a stream is captured");
  return status != cudaStreamCaptureStatusNone;
}

void devices_after_fork() {
  if (device_count() > 0) forked = true;
}

bool in_forked_child() {
  return forked.load(std::memory_order_relaxed);
}

}  // namespace candelabra::cuda
