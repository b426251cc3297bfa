// The words of a failure, which error.cpp has beside what needs the CUDA runtime.
#include "kernels.hpp"

namespace candelabra::cuda {

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

}  // namespace candelabra::cuda
