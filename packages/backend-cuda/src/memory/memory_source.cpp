#include "memory/memory_source.hpp"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/device.hpp"
#include "runtime/driver.hpp"
#include "runtime/error.hpp"

namespace candelabra::cuda {

namespace {

class CudaSource : public MemorySource {
 public:
  explicit CudaSource(int device) : device_(device) {
    const DeviceGuard guard(device);
    size_t free_bytes = 0, total = 0;
    check(cudaMemGetInfo(&free_bytes, &total), "asking for the device's memory");
    total_ = static_cast<int64_t>(total);
  }

  void* allocate(size_t bytes) override {
    const DeviceGuard guard(device_);
    const RelaxedCapture relaxed;
    void* memory = nullptr;
    const cudaError_t error = cudaMalloc(&memory, bytes);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      return nullptr;
    }
    check(error, "cudaMalloc");
    return memory;
  }
  void free(void* memory, size_t) override {
    const DeviceGuard guard(device_);
    check(cudaFree(memory), "cudaFree");
  }

  size_t granularity() const override {
    if (!driver().has_virtual_memory()) return 0;
    if (!granularity_) {
      const CUmemAllocationProp properties = allocation_properties();
      size_t value = 0;
      check(driver().granularity(&value, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
            "cuMemGetAllocationGranularity");
      // Pages of 2 MiB at least, to need few handles.
      granularity_ = std::max<size_t>(value, size_t{2} << 20);
    }
    return granularity_;
  }
  void* reserve(size_t bytes) override {
    const DeviceGuard guard(device_);
    CUdeviceptr address = 0;
    check(driver().address_reserve(&address, bytes, 0, 0, 0), "cuMemAddressReserve");
    return reinterpret_cast<void*>(address);
  }
  bool map(void* at, size_t bytes) override {
    const DeviceGuard guard(device_);
    const RelaxedCapture relaxed;
    const CUmemAllocationProp properties = allocation_properties();
    const size_t page = granularity();
    // Each page has its own handle, so that it can be freed alone.
    for (size_t done = 0; done < bytes; done += page) {
      CUmemGenericAllocationHandle handle = 0;
      const CUresult result = driver().create(&handle, page, &properties, 0);
      if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        if (done) unmap(at, done);
        return false;
      }
      check(result, "cuMemCreate");
      const CUdeviceptr address = reinterpret_cast<CUdeviceptr>(at) + done;
      check(driver().map(address, page, 0, handle, 0), "cuMemMap");
      check(driver().release(handle), "cuMemRelease");  // the mapping keeps the memory
    }
    CUmemAccessDesc access{};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    check(driver().set_access(reinterpret_cast<CUdeviceptr>(at), bytes, &access, 1), "cuMemSetAccess");
    return true;
  }
  void unmap(void* at, size_t bytes) override {
    const DeviceGuard guard(device_);
    const size_t page = granularity();
    for (size_t done = 0; done < bytes; done += page)
      check(driver().unmap(reinterpret_cast<CUdeviceptr>(at) + done, page), "cuMemUnmap");
  }
  void release(void* at, size_t bytes) override {
    const DeviceGuard guard(device_);
    check(driver().address_free(reinterpret_cast<CUdeviceptr>(at), bytes), "cuMemAddressFree");
  }

  int64_t total_bytes() const override { return total_; }
  int64_t free_bytes() const override {
    const DeviceGuard guard(device_);
    size_t free_bytes = 0, total = 0;
    check(cudaMemGetInfo(&free_bytes, &total), "asking for the device's memory");
    return static_cast<int64_t>(free_bytes);
  }

  EventId record(StreamId stream) override {
    const DeviceGuard guard(device_);
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
    check(cudaEventRecord(event, static_cast<cudaStream_t>(stream)), "cudaEventRecord");
    return event;
  }
  bool done(EventId event) override {
    const cudaError_t error = cudaEventQuery(static_cast<cudaEvent_t>(event));
    if (error == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    check(error, "cudaEventQuery");
    return true;
  }
  void wait(EventId event) override {
    check(cudaEventSynchronize(static_cast<cudaEvent_t>(event)), "cudaEventSynchronize");
  }
  void destroy(EventId event) override { cudaEventDestroy(static_cast<cudaEvent_t>(event)); }
  bool is_captured(StreamId stream) const override { return is_capturing(static_cast<cudaStream_t>(stream)); }
  void synchronize() override {
    const DeviceGuard guard(device_);
    check(cudaDeviceSynchronize(), "waiting for the device");
  }

 private:
  // Allocation is not stream work: it is allowed while this thread captures a stream.
  class RelaxedCapture {
   public:
    RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;
    ~RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }

   private:
    cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  };

  CUmemAllocationProp allocation_properties() const {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device_;
    return properties;
  }

  const int device_;
  int64_t total_ = 0;
  mutable size_t granularity_ = 0;
};

// One per device, created at first use and never destroyed.
std::vector<std::atomic<Allocator*>>& allocators() {
  static auto* made = new std::vector<std::atomic<Allocator*>>(static_cast<size_t>(device_count()));
  return *made;
}
std::mutex allocators_mutex;
std::optional<bool> wanted_caching;  // guarded by the mutex

}  // namespace

std::unique_ptr<MemorySource> make_cuda_source(int device) {
  return std::make_unique<CudaSource>(device);
}

Allocator& allocator(int device) {
  if (device < 0 || device >= device_count()) throw failure(CB_RUNTIME_ERROR, "there is no CUDA device %d", device);
  std::atomic<Allocator*>& slot = allocators()[static_cast<size_t>(device)];
  if (Allocator* found = slot.load(std::memory_order_acquire)) return *found;
  const std::lock_guard lock(allocators_mutex);
  if (!slot.load(std::memory_order_relaxed)) {
    AllocatorOptions options = AllocatorOptions::parse(std::getenv("CANDELABRA_CUDA_ALLOC_CONF"));
    options.caching = wanted_caching.value_or(options.caching);
    slot.store(std::make_unique<Allocator>(device, make_cuda_source(device), options).release(),
               std::memory_order_release);
  }
  return *slot.load(std::memory_order_relaxed);
}

void set_caching(bool enabled) {
  const std::lock_guard lock(allocators_mutex);
  wanted_caching = enabled;
  for (const auto& slot : allocators())
    if (Allocator* found = slot.load(std::memory_order_acquire)) found->set_caching(enabled);
}

bool has_allocator(int device) {
  return device >= 0 && device < device_count() &&
         allocators()[static_cast<size_t>(device)].load(std::memory_order_acquire);
}

}  // namespace candelabra::cuda
