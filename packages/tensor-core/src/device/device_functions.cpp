// Python functions for what every backend has: its description, memory, threads and the default
// device.
#include <pybind11/stl.h>

#include <cstring>
#include <vector>

#include "device/host_services.hpp"
#include "operators/operator.hpp"
#include "python/bindings.hpp"
#include "python/gil.hpp"

namespace candelabra {

namespace {

// A text of the backend, which may have any bytes, at most `capacity` of them.
py::str decoded(const char* characters, size_t capacity = 1 << 20) {
  const auto length = static_cast<Py_ssize_t>(strnlen(characters, capacity));
  return py::str(stolen(PyUnicode_DecodeUTF8(characters, length, "replace")));
}

py::dict backend_info(Device device) {
  const DeviceType& type = device_type(device);
  const cb_backend& table = *type.table;
  py::list kernels;
  for (Operator* op : all_operators()) {
    if (op->kernels[device.type].there()) kernels.append(op->schema.name);
  }
  py::dict info;
  info["device_type"] = type.name;
  info["distribution"] = type.distribution;
  info["version"] = decoded(table.version ? table.version : "");
  info["abi_major"] = type.original ? type.original->abi_major : table.abi_major;
  info["abi_minor"] = type.original ? type.original->abi_minor : table.abi_minor;
  info["device_count"] = type.device_count;
  info["capabilities"] = table.capabilities;
  info["kernels"] = kernels;
  info["compiled"] = type.original != nullptr;
  const char* description = table.describe ? table.describe() : nullptr;
  info["description"] = description ? py::object(decoded(description)) : py::none();
  return info;
}

py::dict memory_statistics(Device device) {
  const DeviceType& type = device_type(device);
  cb_memory_statistics statistics{};
  statistics.size = sizeof statistics;
  const int32_t status = type.table->memory_statistics(device.index, &statistics);
  if (status != CB_OK) raise_backend_failure(type, "memory_statistics", status);
  py::dict result;
  result["allocated"] = statistics.allocated;
  result["allocated_peak"] = statistics.allocated_peak;
  result["reserved"] = statistics.reserved;
  result["reserved_peak"] = statistics.reserved_peak;
  result["allocation_count"] = statistics.allocation_count;
  result["cache_hit_count"] = statistics.cache_hit_count;
  return result;
}

py::dict device_properties(Device device) {
  const DeviceType& type = device_type(device);
  cb_device_properties properties{};
  properties.size = sizeof properties;
  if (type.table->device_properties) {
    const int32_t status = type.table->device_properties(device.index, &properties);
    if (status != CB_OK) raise_backend_failure(type, "device_properties", status);
  }
  py::dict result;
  result["name"] = properties.name[0] ? decoded(properties.name, sizeof properties.name) : py::str(type.name);
  result["total_memory"] = properties.total_memory;
  result["free_memory"] = properties.free_memory;
  result["processor_count"] = properties.processor_count;
  result["architecture"] = properties.architecture;
  return result;
}

void synchronize(Device device) {
  const DeviceType& type = device_type(device);
  int32_t status;
  {
    const GilReleased released;
    status = type.table->synchronize(device.index);
  }
  if (status != CB_OK) raise_backend_failure(type, "synchronize", status);
}

// Empty if the device is usable.
py::str device_status(Device device) {
  char message[1024] = {};
  const int32_t status = device_type(device).table->device_status(device.index, message, sizeof message);
  message[sizeof message - 1] = 0;
  if (status == CB_OK) return "";
  return decoded(*message ? message : text("status ", status).c_str());
}

void reset_device(Device device) {
  const DeviceType& type = device_type(device);
  const int32_t status = type.table->reset_device(device.index);
  if (status != CB_OK) raise_backend_failure(type, "reset_device", status);
}

bool supports(Device device, const std::string& operator_name, const std::vector<py::object>& dtypes) {
  Operator* op = find_operator(operator_name);
  check(op, PyExc_ValueError, "supports(): there is no operator '", operator_name, "'");
  const Kernel& kernel = op->kernel_table()[device.type];
  if (!kernel.there()) return false;
  std::vector<int32_t> numbers;
  for (const py::object& each : dtypes) numbers.push_back(static_cast<int32_t>(dtype_from_object(each.ptr())));
  for (const int32_t number : numbers)
    if (!(kernel.known_dtypes >> number & 1)) return false;
  if (!numbers.empty() && !(kernel.dtypes >> numbers.front() & 1)) return false;
  const auto ask = device_type(device).table->supports;
  return !ask || !kernel.compiled ||
         ask(device.index, operator_name.c_str(), numbers.data(), static_cast<int32_t>(numbers.size())) != 0;
}

void set_memory_limit(Device device, Int64Argument limit) {
  const DeviceType& type = device_type(device);
  const int32_t status = type.table->set_memory_limit(device.index, limit);
  if (status != CB_OK) raise_backend_failure(type, "set_memory_limit", status);
}

void set_num_threads(py::handle device, IntArgument count) {
  check(count > 0, PyExc_RuntimeError, "set_num_threads expects a positive integer");
  const DeviceType& type = device_type(device_from_object(device.ptr()));
  const int32_t status = type.table->set_thread_count(count);
  if (status != CB_OK) raise_backend_failure(type, "set_num_threads", status);
}

// The backend's extension "flush_denormal": a pointer to int32_t (*)(int32_t on), which returns a
// cb_status.
bool set_flush_denormal(Device device, TruthArgument on) {
  const DeviceType& type = device_type(device);
  const void* extension = type.table->extension ? type.table->extension("flush_denormal") : nullptr;
  if (!extension) return false;
  const int32_t status = (*static_cast<int32_t (*const*)(int32_t)>(extension))(on);
  if (status != CB_OK) raise_backend_failure(type, "set_flush_denormal", status);
  return true;
}

}  // namespace

void register_device_functions(py::module_& module) {
  using namespace py::literals;
  module.def("backend_info", backend_info, "device"_a, "What is known of the backend of a device type.");
  module.def("memory_statistics", memory_statistics, "device"_a, "The memory statistics of a device.");
  module.def("device_properties", device_properties, "device"_a, "The properties of a device.");
  module.def(
      "empty_cache", [](Device device) { device_type(device).table->empty_cache(device.index); }, "device"_a,
      "Give cached memory of a device back to the system.");
  module.def(
      "reset_peak_statistics", [](Device device) { device_type(device).table->reset_peak_statistics(device.index); },
      "device"_a, "Start the peaks of the memory statistics anew.");
  module.def("synchronize", synchronize, "device"_a, "Wait for everything queued on a device.");
  module.def("device_status", device_status, "device"_a,
             "The error that has made a device unusable, or an empty string.");
  module.def("reset_device", reset_device, "device"_a, "Make a lost device usable again.");
  module.def("supports", supports, "device"_a, "operator_name"_a, "dtypes"_a,
             "Whether a device has a kernel of an operator for these dtypes of its tensor arguments.");
  module.def("set_backend_option", set_backend_option, "device_type"_a, "name"_a, "value"_a,
             "Set what cb_host.option() returns.");
  module.def("set_memory_limit", set_memory_limit, "device"_a, "limit"_a, "Bound the memory of a device.");
  module.def(
      "get_num_threads", [](Device device) { return device_type(device).table->thread_count(); }, "device"_a,
      "How many threads a backend computes with.");
  module.def("set_num_threads", set_num_threads, "device"_a, "count"_a,
             "Set how many threads a backend computes with.");
  module.def("set_flush_denormal", set_flush_denormal, "device"_a, "on"_a,
             "Set whether a backend takes denormal numbers for zero; returns whether it can.");
  module.def(
      "set_default_device",
      [](py::handle device) {
        set_default_device(device.is_none() ? device_from_text("cpu") : device_from_object(device.ptr()));
      },
      "device"_a, "Set the device of tensors made without device=.");
}

}  // namespace candelabra
