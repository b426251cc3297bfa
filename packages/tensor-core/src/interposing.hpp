// Interposers: what sees every call of an operator on a thread before it runs. Transformations of functions (vmap, jvp, grad) and
// the profiler of candelabra.autograd are made with it.
#pragma once

#include <Python.h>

#include <atomic>

namespace candelabra {

// How many threads have one: where there is none, a call pays for one comparison.
extern std::atomic<int> interposers;
// This thread's, or null. Borrowed.
PyObject* thread_interposer();

inline PyObject* interposer() {
  return interposers.load(std::memory_order_relaxed) == 0 ? nullptr : thread_interposer();
}

// Whether an object was made by make_wrapper: it may be more than its memory shows, and is asked for its value.
bool is_wrapper(PyObject* object);

extern PyMethodDef interposing_functions[];

}  // namespace candelabra
