// Python's global lock: left for work that needs no Python, and taken by threads that come from
// elsewhere. While the interpreter ends, Python ends daemon threads that want the lock by unwinding
// their stacks (pthread_exit()), through destructors and frames that must not be left so. Here such
// a thread sleeps instead, until the process has ended, as Python 3.14 has it.
#pragma once

#include <Python.h>

namespace candelabra {

// PyEval_RestoreThread(); does not return while the interpreter ends.
void restore_thread(PyThreadState* state) noexcept;

// Without the lock for as long as it lives, if `release` is true.
class GilReleased {
 public:
  explicit GilReleased(bool release = true) : state_(release ? PyEval_SaveThread() : nullptr) {}
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;
  ~GilReleased() {
    if (state_) restore_thread(state_);
  }

 private:
  PyThreadState* state_;
};

// With the lock for as long as it lives, on any thread.
class GilHeld {
 public:
  GilHeld() noexcept;
  GilHeld(const GilHeld&) = delete;
  GilHeld& operator=(const GilHeld&) = delete;
  ~GilHeld() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

// Whether the exception that a handler caught is the unwinding of a thread that Python ends; if so,
// does not return. Call inside catch (...).
void stay_if_thread_ends() noexcept;

}  // namespace candelabra
