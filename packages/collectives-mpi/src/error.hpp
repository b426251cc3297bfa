// Failures inside the library. A function of the table turns them into a status and a message.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "candelabra/backend.h"

namespace candelabra::mpi {

struct Failure : std::runtime_error {
  Failure(int32_t status, const std::string& message) : std::runtime_error(message), status(status) {}
  int32_t status;
};

// A failure of a running operation: what it was, and why it ended.
struct OperationFailure : Failure {
  OperationFailure(int32_t status, const std::string& what, const std::string& reason, bool timed_out)
      : Failure(status, what + ": " + reason), reason(reason), timed_out(timed_out) {}
  std::string reason;
  bool timed_out;
};

struct LastFailure {
  std::string message;
  std::string reason;  // the message without the description of the operation
  bool timed_out = false;
};
inline thread_local LastFailure last_failure;

template <typename F>
int32_t guarded(F&& f) noexcept {
  try {
    f();
    return CB_OK;
  } catch (const OperationFailure& failure) {
    last_failure = {failure.what(), failure.reason, failure.timed_out};
    return failure.status;
  } catch (const Failure& failure) {
    last_failure = {failure.what(), failure.what(), false};
    return failure.status;
  } catch (const std::bad_alloc&) {
    last_failure = {"out of memory", "out of memory", false};
    return CB_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    last_failure = {error.what(), error.what(), false};
    return CB_RUNTIME_ERROR;
  }
}

}  // namespace candelabra::mpi
