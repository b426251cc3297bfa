#include "kernels.hpp"

#include <cstring>

namespace candelabra::cpu {

Failure failure(cb_status status, const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return Failure(status, text);
}

Failure not_implemented() {
  return Failure(CB_NOT_IMPLEMENTED, "");
}

static void write_message(cb_call* call, const char* text) noexcept {
  if (call->error && call->error_capacity) std::snprintf(call->error, call->error_capacity, "%s", text);
}

int32_t report_exception(cb_call* call) noexcept {
  try {
    throw;
  } catch (const Failure& error) {
    if (*error.what()) write_message(call, error.what());
    return error.status();
  } catch (const std::bad_alloc&) {
    write_message(call, "out of memory in a kernel's own bookkeeping");
    return CB_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    char text[1024];
    std::snprintf(text, sizeof text, "%s: %s", call->operator_name, error.what());
    write_message(call, text);
    return CB_RUNTIME_ERROR;
  } catch (...) {
    write_message(call, "unknown exception in a kernel");
    return CB_RUNTIME_ERROR;
  }
}

}  // namespace candelabra::cpu
