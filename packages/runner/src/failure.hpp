// Failures inside the library, which the functions of candelabra_run.h turn into a status and a
// message.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

#include "candelabra_run.h"

namespace candelabra::runner {

class Failure : public std::runtime_error {
 public:
  Failure(cr_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  cr_status status() const { return status_; }

 private:
  cr_status status_;
};

template <typename... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

template <typename... Parts>
[[noreturn]] void fail(cr_status status, const Parts&... parts) {
  throw Failure(status, text(parts...));
}

// Of what a file claims.
template <typename... Parts>
void require(bool holds, const Parts&... parts) {
  if (!holds) [[unlikely]]
    fail(CR_FILE_ERROR, parts...);
}

}  // namespace candelabra::runner
