// A limit for recursion over objects of the program, which may hold themselves.
#pragma once

#include "python/errors.hpp"

namespace candelabra {

// Counts as a call of Python's while it lives. Throws RecursionError where those are too many.
class RecursiveCall {
 public:
  explicit RecursiveCall(const char* where) {
    if (Py_EnterRecursiveCall(where)) throw PythonError();
  }
  RecursiveCall(const RecursiveCall&) = delete;
  RecursiveCall& operator=(const RecursiveCall&) = delete;
  ~RecursiveCall() { Py_LeaveRecursiveCall(); }
};

}  // namespace candelabra
