#include "python/gil.hpp"

#include <cxxabi.h>
#include <unistd.h>

namespace candelabra {

namespace {

[[noreturn]] void sleep_until_exit() noexcept {
  for (;;) pause();
}

}  // namespace

void restore_thread(PyThreadState* state) noexcept {
  try {
    PyEval_RestoreThread(state);
  } catch (abi::__forced_unwind&) {
    sleep_until_exit();
  }
}

GilHeld::GilHeld() noexcept {
  try {
    state_ = PyGILState_Ensure();
  } catch (abi::__forced_unwind&) {
    sleep_until_exit();
  }
}

void stay_if_thread_ends() noexcept {
  try {
    throw;
  } catch (abi::__forced_unwind&) {
    sleep_until_exit();
  } catch (...) {  // an error, which the caller handles
  }
}

}  // namespace candelabra
