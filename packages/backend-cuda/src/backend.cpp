// The table of functions that the core loads.
#include "candelabra/backend.h"

#include <cstdio>
#include <cstring>
#include <string>

#include "families.hpp"
#include "memory/allocator.hpp"
#include "memory/copy.hpp"
#include "runtime/accelerator.hpp"
#include "runtime/device.hpp"
#include "runtime/error.hpp"
#include "runtime/event.hpp"
#include "runtime/faults.hpp"
#include "runtime/settings.hpp"
#include "runtime/stream.hpp"
#include "runtime/sync_debug.hpp"
#include "vendor/cudnn/cudnn.hpp"
#include "vendor/cufft/cufft.hpp"
#include "vendor/libraries.hpp"

namespace candelabra::cuda {
namespace {

cudaStream_t as_stream(void* stream) {
  return static_cast<cudaStream_t>(stream);
}
cudaEvent_t as_event(void* event) {
  return static_cast<cudaEvent_t>(event);
}

int32_t initialize() {
  return guarded([] { initialize_devices(); });
}

int32_t count_devices(int32_t* count) {
  *count = device_count();
  return CB_OK;
}

int32_t device_properties(int32_t device, cb_device_properties* result) {
  return guarded([&] { read_properties(device, *result); });
}

int32_t synchronize(int32_t device) {
  return guarded([&] {
    const DeviceGuard guard(device);
    check(cudaDeviceSynchronize(), "waiting for the device");
    raise_fault_of(device);
  });
}

// An error that destroyed the context is returned by every call of the runtime.
int32_t device_status(int32_t device, char* message, uint64_t capacity) {
  const int32_t status = guarded([&] {
    const DeviceGuard guard(device);
    size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "asking for the state of the device");
  });
  if (capacity) std::snprintf(message, capacity, "%s", status == CB_OK ? "" : last_message());
  return status == CB_OK ? CB_OK : CB_DEVICE_LOST;
}

// CUDA could not do it alone: after a fault in a kernel, only a new process can use the device
// again. And cudaDeviceReset() would invalidate memory and handles of other libraries.
int32_t reset_device(int32_t) {
  set_last_message(
      "a CUDA device cannot be reset from within the process: a fault in a kernel ends CUDA for the whole process, and "
      "resetting the device would invalidate the memory, streams and handles of every library that uses it. Save what "
      "is in host memory and start a new process");
  return CB_NOT_IMPLEMENTED;
}

int32_t allocate_memory(int32_t device, cb_allocation* allocation) {
  return guarded([&] {
    if (in_forked_child()) const DeviceGuard refused(device);
    // Only accesses the device if more memory is needed.
    allocation->address = allocator(device).allocate(allocation->bytes, allocation->stream);
  });
}

void deallocate_memory(int32_t device, void* memory, uint64_t) {
  // In a forked child, and after a failure that destroyed the context, the memory is not freed.
  if (!in_forked_child() && has_allocator(device)) guarded([&] { allocator(device).deallocate(memory); });
}

int32_t statistics(int32_t device, cb_memory_statistics* result) {
  return guarded([&] {
    if (has_allocator(device)) allocator(device).statistics(*result);
  });
}

const char* describe() {
  thread_local std::string text;
  text = std::string("architectures: ") + CANDELABRA_CUDA_ARCHITECTURES + (CANDELABRA_CUDA_PTX ? " and newer" : "");
  const std::string loaded = loaded_libraries();
  if (!loaded.empty()) text += "\nlibraries: " + loaded;
  return text.c_str();
}

const void* extension(const char* name) {
  static const int32_t dlpack_device_type = 2;
  if (std::strcmp(name, "accelerator") == 0) return accelerator_table();
  if (std::strcmp(name, "dlpack_device_type") == 0) return &dlpack_device_type;
  return nullptr;
}

const KernelTable& kernels() {
  static const KernelTable table = [] {
    KernelTable made;
    register_families(made);
    return made;
  }();
  return table;
}

cb_backend make_table() {
  cb_backend table{};
  table.size = sizeof(cb_backend);
  table.abi_major = CB_ABI_MAJOR;
  table.abi_minor = 0;  // no kernel has the dtypes of 2.1: the core refuses them
  table.device_type = "cuda";
  table.version = CANDELABRA_VERSION;
  table.capabilities = CB_CAP_STREAMS | CB_CAP_EVENTS | CB_CAP_ASYNCHRONOUS | CB_CAP_PINNED_MEMORY |
                       CB_CAP_PEER_ACCESS | CB_CAP_IPC | CB_CAP_GRAPHS |
                       (accelerator_table()->collectives ? CB_CAP_COLLECTIVES : 0);
  kernels().write_to(table);
  table.initialize = initialize;
  table.last_error = last_message;
  table.device_count = count_devices;
  table.device_properties = device_properties;
  table.synchronize = synchronize;
  table.device_status = device_status;
  table.reset_device = reset_device;
  table.allocate = allocate_memory;
  table.deallocate = deallocate_memory;
  table.copy_from_host = [](int32_t device, const cb_memory* to, const void* from, uint64_t bytes, void* stream) {
    return guarded([&] { copy_from_host(device, to->address, from, bytes, as_stream(stream)); });
  };
  table.copy_to_host = [](int32_t device, void* to, const cb_memory* from, uint64_t bytes, void* stream) {
    return guarded([&] { copy_to_host(device, to, from->address, bytes, as_stream(stream)); });
  };
  table.copy_within = [](int32_t device, const cb_memory* to, const cb_memory* from, uint64_t bytes, void* stream) {
    return guarded([&] { copy_within(device, to->address, from->address, bytes, as_stream(stream)); });
  };
  table.memory_statistics = statistics;
  table.reset_peak_statistics = [](int32_t device) { guarded([&] { allocator(device).reset_peaks(); }); };
  table.empty_cache = [](int32_t device) {
    guarded([&] {
      if (has_allocator(device)) allocator(device).empty_cache();
    });
  };
  table.set_memory_limit = [](int32_t device, int64_t bytes) {
    return guarded([&] { allocator(device).set_limit(bytes); });
  };
  table.after_fork_in_child = devices_after_fork;
  table.stream_create = [](int32_t device, int32_t priority, void** result) {
    return guarded([&] { *result = stream_create(device, priority); });
  };
  table.stream_destroy = [](int32_t device, void* stream) {
    guarded([&] { stream_destroy(device, as_stream(stream)); });
  };
  table.stream_synchronize = [](int32_t device, void* stream) {
    return guarded([&] { stream_synchronize(device, as_stream(stream)); });
  };
  table.stream_query = [](int32_t device, void* stream, int32_t* done) {
    return guarded([&] { *done = stream_query(device, as_stream(stream)); });
  };
  table.stream_record_memory = [](int32_t device, void* memory, void* stream) {
    return guarded([&] { allocator(device).record_stream(memory, stream); });
  };
  table.event_create = [](int32_t device, int32_t flags, void** result) {
    return guarded([&] { *result = event_create(device, flags); });
  };
  table.event_destroy = [](int32_t device, void* event) { event_destroy(device, as_event(event)); };
  table.event_record = [](int32_t device, void* event, void* stream) {
    return guarded([&] { event_record(device, as_event(event), as_stream(stream)); });
  };
  table.event_wait = [](int32_t device, void* event, void* stream) {
    return guarded([&] { event_wait(device, as_event(event), as_stream(stream)); });
  };
  table.event_synchronize = [](int32_t device, void* event) {
    return guarded([&] { event_synchronize(device, as_event(event)); });
  };
  table.event_query = [](int32_t device, void* event, int32_t* done) {
    return guarded([&] { *done = event_query(device, as_event(event)); });
  };
  table.event_elapsed = [](int32_t device, void* start, void* end, double* milliseconds) {
    return guarded([&] { *milliseconds = event_elapsed(device, as_event(start), as_event(end)); });
  };
  table.extension = extension;
  table.describe = describe;
  return table;
}

}  // namespace
}  // namespace candelabra::cuda

extern "C" CB_EXPORT const cb_backend* candelabra_backend(const cb_host*) {
  static const cb_backend table = candelabra::cuda::make_table();
  return &table;
}

// Called by the Python package, which knows where the environment has NVIDIA's libraries.
extern "C" CB_EXPORT void candelabra_cuda_set_library_folders(const char* folders) {
  candelabra::cuda::set_library_folders(folders);
}

// Likewise. Changes a setting of candelabra.backends.cuda or .cudnn, by its name in settings.hpp.
extern "C" CB_EXPORT void candelabra_cuda_set_switch(const char* name, int value) {
  if (std::strcmp(name, "cufft_clear") == 0) candelabra::cuda::clear_transform_plans();
  if (std::atomic<int>* found = candelabra::cuda::setting(name)) *found = value;
}
// Returns a number by name, such as the version of cuDNN; 0 for unknown names.
extern "C" CB_EXPORT int candelabra_cuda_ask(const char* name) {
  if (std::strcmp(name, "cudnn_version") == 0) return static_cast<int>(candelabra::cuda::cudnn::version());
  if (std::strcmp(name, "cufft_plans") == 0) return candelabra::cuda::transform_plans();
  return 0;
}
// Sets the function that warns of calls which wait for the device.
extern "C" CB_EXPORT void candelabra_cuda_set_warner(void (*warner)(const char*)) {
  candelabra::cuda::set_warner(warner);
}
