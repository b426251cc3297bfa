#include "host_services.hpp"

#include <cstdio>

#include "candelabra/host_directories.hpp"

namespace candelabra::runner {

namespace {

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
      .cache_directory = host::cache_directory,
      .option = host::option_of_environment,
  };
  return services;
}

}  // namespace candelabra::runner
