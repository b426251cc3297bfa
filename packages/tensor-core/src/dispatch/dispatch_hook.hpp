// Dispatch hooks, which see every operator call on a thread before it runs. The function transforms
// (vmap, jvp, grad) and the profiler of candelabra.autograd use them.
#pragma once

#include <Python.h>

#include <atomic>

namespace candelabra {

// How many threads have a hook. Without any, a call pays for one comparison.
extern std::atomic<int> dispatch_hooks;
// This thread's hook, or null. Borrowed.
PyObject* thread_dispatch_hook();

inline PyObject* dispatch_hook() {
  return dispatch_hooks.load(std::memory_order_relaxed) == 0 ? nullptr : thread_dispatch_hook();
}

// Removes this thread's hook for a scope.
class NoDispatchHook {
 public:
  NoDispatchHook();
  NoDispatchHook(const NoDispatchHook&) = delete;
  NoDispatchHook& operator=(const NoDispatchHook&) = delete;
  ~NoDispatchHook();

 private:
  PyObject* before_;  // owned
};

// Whether an object was made by make_wrapper. Its memory may not be its whole value, so callers ask
// the object for the value.
bool is_wrapper(PyObject* object);

extern PyMethodDef dispatch_hook_functions[];

}  // namespace candelabra
