#include "device/streams.hpp"

#include <array>
#include <cstring>
#include <vector>

namespace candelabra {

namespace {

// By device type and index. Most threads never set one.
thread_local std::array<std::vector<void*>, max_device_types> streams;
thread_local std::array<int8_t, max_device_types> indices{};

}  // namespace

void* current_stream(Device device) {
  const std::vector<void*>& of_type = streams[static_cast<size_t>(device.type)];
  const auto index = static_cast<size_t>(device.index);
  return index < of_type.size() ? of_type[index] : nullptr;
}

void set_current_stream(Device device, void* stream) {
  std::vector<void*>& of_type = streams[static_cast<size_t>(device.type)];
  const auto index = static_cast<size_t>(device.index);
  if (of_type.size() <= index) of_type.resize(index + 1);
  of_type[index] = stream;
}

int current_index(int type) {
  return indices[static_cast<size_t>(type)];
}

void set_current_index(int type, int index) {
  indices[static_cast<size_t>(type)] = static_cast<int8_t>(index);
}

const cb_accelerator& accelerator_of(const DeviceType& type) {
  // Guarded by the GIL. Backend tables live as long as the process.
  static std::vector<std::pair<const cb_backend*, cb_accelerator>> known;
  static const cb_accelerator nothing{};
  if (!type.original || !type.original->extension) return nothing;
  for (const auto& [backend, table] : known) {
    if (backend == type.original) return table;
  }
  cb_accelerator table{};
  if (const void* given = type.table->extension ? type.table->extension("accelerator") : nullptr) {
    const auto* original = static_cast<const cb_accelerator*>(given);
    std::memcpy(&table, original, std::min<size_t>(original->size, sizeof table));
    table.size = sizeof table;
  }
  known.reserve(max_device_types);  // keeps references valid
  return known.emplace_back(type.original, table).second;
}

}  // namespace candelabra
