#include "host_services.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>

#include "failure.hpp"

namespace candelabra::run {

namespace {

int32_t copy_text(const std::string& source, char* target, uint64_t capacity) {
  if (source.size() >= capacity) return CB_VALUE_ERROR;
  std::memcpy(target, source.c_str(), source.size() + 1);
  return CB_OK;
}

int32_t allocate_output(cb_call* call, int32_t, int32_t, const int64_t*) {
  std::snprintf(call->error, call->error_capacity, "the shape of a result depends on data");
  return CB_NOT_IMPLEMENTED;
}

int32_t allocate_workspace(cb_call* call, uint64_t bytes, cb_memory* result) {
  Frame& frame = *reinterpret_cast<Frame*>(call);
  try {
    const Memory& memory = frame.workspaces.emplace_back(*frame.backend, bytes);
    *result = {memory.address(), 0, memory.address(), 0};
    return CB_OK;
  } catch (...) {
    std::snprintf(call->error, call->error_capacity, "out of memory: %llu bytes",
                  static_cast<unsigned long long>(bytes));
    return CB_OUT_OF_MEMORY;
  }
}

int32_t is_cancelled(cb_call*) {
  return 0;
}

// The runner has no threads; a backend for the host has its own.
void parallel_for(int64_t begin, int64_t end, int64_t, void (*body)(void* context, int64_t begin, int64_t end),
                  void* context) {
  if (begin < end) body(context, begin, end);
}

void log_line(const char* device_type, int32_t level, const char* message) {
  if (level >= CB_LOG_WARNING) std::fprintf(stderr, "candelabra.backends.%s: %s\n", device_type, message);
}

std::string file_name_of(const char* given) {
  std::string name = given && *given ? given : "none";
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-' && c != '_') c = '_';
  if (name == "." || name == "..") name = "_";
  return name.substr(0, 200);
}

std::filesystem::path cache_root() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::filesystem::path(value ? value : "");
  };
  if (const auto root = variable("CANDELABRA_CACHE_DIR"); !root.empty()) return root;
  if (const auto root = variable("XDG_CACHE_HOME"); root.is_absolute()) return root / "candelabra";
  if (const auto home = variable("HOME"); home.is_absolute()) return home / ".cache" / "candelabra";
  return {};
}

// The core's own directories: kernels that a process with Python has chosen by measuring are those
// that run here, with the same bits.
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

int32_t option(const char* device_type, const char* name, char* value, uint64_t capacity) {
  if (!device_type || !name) return CB_VALUE_ERROR;
  try {
    std::string key = std::string(device_type) + "_" + name;
    std::ranges::transform(key, key.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    const char* const found = std::getenv(("CANDELABRA_" + key).c_str());
    return found ? copy_text(found, value, capacity) : CB_NOT_IMPLEMENTED;
  } catch (...) {
    return CB_RUNTIME_ERROR;
  }
}

}  // namespace

const cb_host& host_services() {
  static const cb_host services = {
      .size = sizeof(cb_host),
      .abi_major = CB_ABI_MAJOR,
      .abi_minor = CB_ABI_MINOR,
      .allocate_output = allocate_output,
      .allocate_workspace = allocate_workspace,
      .is_cancelled = is_cancelled,
      .parallel_for = parallel_for,
      .log = log_line,
      .cache_directory = cache_directory,
      .option = option,
  };
  return services;
}

}  // namespace candelabra::run
