// Device types, devices, and the registry of backends behind them.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "candelabra/backend.h"

namespace candelabra {

constexpr int max_device_types = 16;

// A device: the number of its type in the registry, and its index within the type.
struct Device {
  int8_t type = -1;
  int8_t index = 0;
  bool operator==(const Device&) const = default;
};

// What the registry knows of a device type that has been loaded.
struct DeviceType {
  std::string name;
  std::string distribution;              // for messages: "candelabra-backend-cpu 0.1.0"
  const cb_backend* table = nullptr;     // complete: defaults stand where the backend gave nothing
  const cb_backend* original = nullptr;  // as the backend exported it; null for a backend of Python kernels only
  int device_count = 1;
  bool has(uint64_t capability) const { return (table->capabilities & capability) != 0; }
};

DeviceType& device_type(int type);
inline DeviceType& device_type(Device device) {
  return device_type(device.type);
}
int device_type_count();
// The number of a loaded device type or -1; never loads one.
int find_device_type(std::string_view name);

// "cpu" or "cuda:1", as printed.
std::string to_text(Device device);
// Loads the backend of this name if need be (by way of Python: candelabra.backends.load); throws what it raises.
Device device_from_text(std::string_view text);
Device default_device();
void set_default_device(Device device);

PyObject* device_object(Device device);  // new reference
bool is_device_object(PyObject* object);
Device device_from_object(PyObject* object);  // device instance, str, or int (index of the default accelerator type); throws

bool init_device(PyObject* module);

// The services given to backends; allocate_output is in dispatch.cpp.
extern const cb_host host_services;

extern PyMethodDef device_functions[];

// Raises the exception for a failed table function (not a kernel) of this device type.
[[noreturn]] void raise_backend_failure(const DeviceType& type, const char* what, int32_t status);

}  // namespace candelabra
