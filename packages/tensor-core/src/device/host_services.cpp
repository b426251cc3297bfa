#include "device/host_services.hpp"

#include <Python.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <mutex>

#include "candelabra/host_directories.hpp"
#include "device/thread_pool.hpp"
#include "dispatch/kernel_call.hpp"
#include "python/gil.hpp"

namespace candelabra {

namespace {

// ---- log

void log(const char* device_type, int32_t level, const char* message) {
  // A thread of the backend may still run while the interpreter ends.
  if (!Py_IsInitialized()) return;
  const GilHeld held;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* logging = PyImport_ImportModule("logging");
  PyObject* text = PyUnicode_DecodeUTF8(message ? message : "",
                                        message ? static_cast<Py_ssize_t>(std::strlen(message)) : 0, "replace");
  PyObject* name = PyUnicode_FromFormat("candelabra.backends.%s", device_type ? device_type : "unknown");
  PyObject* logger = logging && name ? PyObject_CallMethod(logging, "getLogger", "O", name) : nullptr;
  PyObject* done = logger && text ? PyObject_CallMethod(logger, "log", "isO", level, "%s", text) : nullptr;
  // A backend cannot handle an exception of a log handler, and a failed log must not fail its work.
  if (!done) PyErr_WriteUnraisable(nullptr);
  for (PyObject* object : {done, logger, name, text, logging}) Py_XDECREF(object);
  PyErr_Restore(type, value, traceback);
}

// ---- options

struct Options {
  std::mutex mutex;
  std::map<std::string, std::string> values;  // "TYPE.NAME", lower case
};
Options& options() {
  static Options made;
  return made;
}

std::string option_key(const std::string& device_type, const std::string& name) {
  std::string key = device_type + "." + name;
  std::ranges::transform(key, key.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return key;
}

int32_t option(const char* device_type, const char* name, char* value, uint64_t capacity) {
  if (!device_type || !name) return CB_VALUE_ERROR;
  try {
    const std::lock_guard locked(options().mutex);
    const auto found = options().values.find(option_key(device_type, name));
    if (found != options().values.end()) return host::copy_text(found->second, value, capacity);
  } catch (...) {
    return CB_RUNTIME_ERROR;
  }
  return host::option_of_environment(device_type, name, value, capacity);
}

}  // namespace

void set_backend_option(const std::string& device_type, const std::string& name, const std::string& value) {
  const std::lock_guard locked(options().mutex);
  options().values[option_key(device_type, name)] = value;
}

const cb_host host_services = {
    .size = sizeof(cb_host),
    .abi_major = CB_ABI_MAJOR,
    .abi_minor = CB_ABI_MINOR,
    .allocate_output = allocate_output,
    .allocate_workspace = allocate_workspace,
    .is_cancelled = is_cancelled,
    .parallel_for = parallel_for,
    .log = log,
    .cache_directory = host::cache_directory,
    .option = option,
};

}  // namespace candelabra
