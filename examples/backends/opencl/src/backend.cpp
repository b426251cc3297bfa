// The table of the backend: device type "opencl".
#define CANDELABRA_KERNEL_DEFINITIONS
#include "candelabra/kernel.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "families.hpp"
#include "runtime/allocator.hpp"
#include "runtime/device.hpp"
#include "runtime/stream.hpp"

namespace candelabra::opencl {

namespace {

const cb_host* given_host = nullptr;

int32_t initialize() {
  return guarded([] { initialize_devices(given_host); });
}

void shutdown() {
  for (const auto& device : devices()) cl.Finish(device->default_stream.queue.get());
}

int32_t device_count(int32_t* count) {
  *count = static_cast<int32_t>(devices().size());
  return CB_OK;
}

int32_t device_properties(int32_t index, cb_device_properties* result) {
  return guarded([&] {
    const Device& device = opencl::device(index);
    cb_device_properties properties = {};
    properties.size = std::min<uint64_t>(result->size, sizeof properties);
    std::strncpy(properties.name, device.name.c_str(), sizeof properties.name - 1);
    properties.total_memory = static_cast<int64_t>(device.global_memory);
    properties.processor_count = static_cast<int32_t>(device.processors);
    std::memcpy(result, &properties, properties.size);
  });
}

int32_t synchronize(int32_t index) {
  return guarded([&] { device(index).finish_all(); });
}

const char* describe() {
  static const std::string text = [] {
    std::string lines;
    for (const auto& device : devices())
      lines += "opencl:" + std::to_string(device->index) + " is " + device->name + " of " + device->platform + ", " +
               device->driver + (device->has_float64 ? "\n" : ", without float64\n");
    return lines;
  }();
  return text.c_str();
}

const void* extension(const char* name) {
  static constexpr int32_t dlpack_opencl = 4;
  return std::strcmp(name, "dlpack_device_type") == 0 ? &dlpack_opencl : nullptr;
}

cb_backend make_table() {
  static Table kernels;
  for (const auto add :
       {add_elementwise, add_copying, add_reduction, add_slices, add_indexing, add_advanced_indexing, add_linalg,
        add_random, add_convolution, add_pooling, add_normalization, add_attention, add_loss, add_optimizer})
    add(kernels);
  cb_backend table = {};
  table.size = sizeof table;
  table.abi_major = CB_ABI_MAJOR;
  table.abi_minor = CB_ABI_MINOR;
  table.device_type = "opencl";
  table.version = "0.1.0";
  table.capabilities = CB_CAP_ASYNCHRONOUS;
  kernels.write_to(table);
  table.initialize = initialize;
  table.shutdown = shutdown;
  table.last_error = last_error;
  table.device_count = device_count;
  table.device_properties = device_properties;
  table.synchronize = synchronize;
  table.after_fork_in_child = mark_forked;
  table.extension = extension;
  table.describe = describe;
  add_memory(table);
  add_streams(table);
  return table;
}

}  // namespace

}  // namespace candelabra::opencl

CB_EXPORT const cb_backend* candelabra_backend(const cb_host* host) {
  static const cb_backend table = candelabra::opencl::make_table();
  candelabra::opencl::given_host = host;
  return &table;
}
