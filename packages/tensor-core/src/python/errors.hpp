// Errors: the core throws C++ exceptions, and guarded() converts them to Python exceptions. No
// other exception reaches Python.
#pragma once

#include <Python.h>

#include <exception>
#include <sstream>
#include <string>

namespace candelabra {

// Thrown when a Python exception is already set.
struct PythonError : std::exception {
  const char* what() const noexcept override { return "a Python exception is set"; }
};

// A message without the middle of what is longer than a reader wants: messages show arguments, of
// which a caller may have given any number.
std::string shortened(std::string message);

// A Python exception that is not yet set: its type, its message and a note that tracebacks show.
struct Error : std::exception {
  Error(PyObject* type, std::string message, std::string note = {})
      : type(type), message(shortened(std::move(message))), note(std::move(note)) {}
  const char* what() const noexcept override { return message.c_str(); }
  PyObject* type;  // borrowed; exception types live as long as the module
  std::string message;
  std::string note;  // may be empty
};

template <typename... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

template <typename... Parts>
[[noreturn]] void raise(PyObject* type, const Parts&... parts) {
  throw Error(type, text(parts...));
}
// Usage: check(ok, PyExc_IndexError, "select(): index ", index, " is out of range");
template <typename... Parts>
void check(bool condition, PyObject* type, const Parts&... parts) {
  if (!condition) [[unlikely]]
    raise(type, parts...);
}

extern PyObject* out_of_memory_error;  // candelabra.OutOfMemoryError, a RuntimeError
// candelabra.BackendError, a RuntimeError: no such device, broken plugin
extern PyObject* backend_error;
// candelabra.BackendVersionError, a BackendError: another ABI major
extern PyObject* backend_version_error;

// Issues a UserWarning at the line of the program that called Candelabra, so that Python shows it
// once per line. Throws if warnings are errors.
void warn(const std::string& message);

// The exception type for an enum cb_status.
PyObject* exception_of_status(int32_t status);

// Adds a note to the Python exception that is set.
void note_python_error(const std::string& text) noexcept;
// Converts the current C++ exception to a Python exception. Call inside catch (...).
void set_python_error() noexcept;

// Runs body() at the boundary to Python. Returns its result, or `failure` with a Python exception
// set.
template <typename Body, typename Result>
Result guarded(Result failure, Body&& body) noexcept {
  try {
    return body();
  } catch (...) {
    set_python_error();
    return failure;
  }
}

}  // namespace candelabra
