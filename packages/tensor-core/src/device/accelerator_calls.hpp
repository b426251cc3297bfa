// Shared by the accelerator_*.cpp files: checks for features that a backend may lack, and
// conversion of addresses from Python ints.
#pragma once

#include "device/streams.hpp"
#include "interop/interop.hpp"

namespace candelabra {

inline void require(bool is_available, const DeviceType& type, const char* what) {
  check(is_available, PyExc_NotImplementedError, "the device type '", type.name, "' (", type.distribution, ") has no ",
        what);
}

inline void succeed(const DeviceType& type, const char* what, int32_t status) {
  if (status != CB_OK) [[unlikely]]
    raise_backend_failure(type, what, status);
}

inline void* address_of(PyObject* object) {
  void* address = PyLong_AsVoidPtr(object);
  if (!address && PyErr_Occurred()) throw PythonError();
  return address;
}

// Parses (device, address) and returns f(device, type, address).
template <typename F>
PyObject* with_address(PyObject* arguments, const char* format, F&& f) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject *device_argument, *address;
    if (!PyArg_ParseTuple(arguments, format, &device_argument, &address)) return nullptr;
    const Device device = device_from_object(device_argument);
    return f(device, device_type(device), address_of(address));
  });
}

template <typename F>
int32_t unlocked(F&& f) {
  int32_t status;
  Py_BEGIN_ALLOW_THREADS;
  status = f();
  Py_END_ALLOW_THREADS;
  return status;
}

}  // namespace candelabra
