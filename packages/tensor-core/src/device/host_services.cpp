#include "device/host_services.hpp"

#include <Python.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include "device/thread_pool.hpp"
#include "dispatch/kernel_call.hpp"
#include "python/gil.hpp"

namespace candelabra {

namespace {

// Copies a text to a buffer of the backend; returns enum cb_status.
int32_t copy_text(const std::string& text, char* buffer, uint64_t capacity) {
  if (!buffer || text.size() >= capacity) return CB_VALUE_ERROR;
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  return CB_OK;
}

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

// ---- directories for compiled programs

std::string file_name_of(const char* text) {
  std::string name = text && *text ? text : "none";
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-' && c != '_') c = '_';
  if (name == "." || name == "..") name = "_";
  return name.substr(0, 200);
}

std::filesystem::path cache_root() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::filesystem::path(value ? value : "");
  };
  if (const auto root = variable("CANDELABRA_CACHE_DIR"); !root.empty()) return root;
  if (const auto root = variable("XDG_CACHE_HOME"); root.is_absolute()) return root / "candelabra";
  if (const auto home = variable("HOME"); home.is_absolute()) return home / ".cache" / "candelabra";
  return {};
}

int32_t cache_directory(const cb_backend* backend, const char* key, char* path, uint64_t capacity) {
  try {
    const std::filesystem::path root = cache_root();
    if (root.empty() || !backend) return CB_RUNTIME_ERROR;
    const std::string owner = file_name_of(backend->device_type) + "-" + file_name_of(backend->version);
    const std::filesystem::path directory = std::filesystem::absolute(root) / owner / file_name_of(key);
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (!std::filesystem::is_directory(directory)) return CB_RUNTIME_ERROR;
    return copy_text(directory.string(), path, capacity);
  } catch (...) {
    return CB_RUNTIME_ERROR;
  }
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

std::string option_key(const std::string& device_type, const std::string& name, char separator, int (*convert)(int)) {
  std::string key = device_type + separator + name;
  std::ranges::transform(key, key.begin(),
                         [&](char c) { return static_cast<char>(convert(static_cast<unsigned char>(c))); });
  return key;
}

int32_t option(const char* device_type, const char* name, char* value, uint64_t capacity) {
  if (!device_type || !name) return CB_VALUE_ERROR;
  try {
    {
      const std::lock_guard locked(options().mutex);
      const auto found = options().values.find(option_key(device_type, name, '.', std::tolower));
      if (found != options().values.end()) return copy_text(found->second, value, capacity);
    }
    const char* variable = std::getenv(("CANDELABRA_" + option_key(device_type, name, '_', std::toupper)).c_str());
    return variable ? copy_text(variable, value, capacity) : CB_NOT_IMPLEMENTED;
  } catch (...) {
    return CB_RUNTIME_ERROR;
  }
}

}  // namespace

void set_backend_option(const std::string& device_type, const std::string& name, const std::string& value) {
  const std::lock_guard locked(options().mutex);
  options().values[option_key(device_type, name, '.', std::tolower)] = value;
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
    .cache_directory = cache_directory,
    .option = option,
};

}  // namespace candelabra
