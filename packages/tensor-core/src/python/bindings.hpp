// Functions of the module that pybind11 registers: casters of the core's types, and one function
// per file that registers what it defines. What an operator call passes through uses CPython's API
// instead: Tensor, operators, arguments, indexing and the tape.
#pragma once

#include <pybind11/pybind11.h>

#include <type_traits>

#include "device/device.hpp"
#include "dtype/dtype.hpp"
#include "memory/storage.hpp"
#include "python/errors.hpp"
#include "tensor/tensor.hpp"

namespace candelabra {

namespace py = pybind11;

// The address of a stream, an event, a pool or the like: an int in Python.
struct Address {
  void* value = nullptr;
};

// Arguments that PyArg_Parse converts, by the unit of its format. An int out of range is an
// OverflowError, a null character in a str is a ValueError, and any object has a truth value.
// pybind11's casters raise TypeError for the first and the last, and accept the second.
template <typename T, char unit>
struct Parsed {
  T value{};
  operator T() const { return value; }
};
using IntArgument = Parsed<int, 'i'>;
using Int64Argument = Parsed<long long, 'L'>;
using Uint64Argument = Parsed<unsigned long long, 'K'>;  // takes the low 64 bits, as 'K' does
using SizeArgument = Parsed<Py_ssize_t, 'n'>;
using TruthArgument = Parsed<int, 'p'>;
using TextArgument = Parsed<const char*, 's'>;
using OptionalTextArgument = Parsed<const char*, 'z'>;  // null for None

// Owns a new reference from the C API; throws PythonError where it is null.
inline py::object stolen(PyObject* object) {
  return py::reinterpret_steal<py::object>(owned(object).release());
}

// The Python object of a new storage, which holds the only reference to it.
inline py::object object_of_new(Storage* storage) {
  PyObject* object = storage_object(storage);
  release(storage);
  return stolen(object);
}

void register_errors(py::module_& module);            // errors.cpp
void register_dtypes(py::module_& module);            // module.cpp
void register_devices(py::module_& module);           // device.cpp
void register_device_functions(py::module_& module);  // device_functions.cpp
void register_accelerator(py::module_& module);       // accelerator.cpp
void register_accelerator_memory(py::module_& module);
void register_accelerator_graphs(py::module_& module);
void register_collectives(py::module_& module);
void register_storage(py::module_& module);
void register_shared_memory(py::module_& module);
void register_dlpack(py::module_& module);
void register_record(py::module_& module);

}  // namespace candelabra

namespace pybind11::detail {

template <>
struct type_caster<candelabra::Device> {
  PYBIND11_TYPE_CASTER(candelabra::Device, const_name("device"));
  bool load(handle source, bool) {
    value = candelabra::device_from_object(source.ptr());
    return true;
  }
  static handle cast(candelabra::Device device, return_value_policy, handle) {
    return candelabra::owned(candelabra::device_object(device)).release();
  }
};

template <>
struct type_caster<candelabra::Dtype> {
  PYBIND11_TYPE_CASTER(candelabra::Dtype, const_name("dtype"));
  bool load(handle source, bool) {
    value = candelabra::dtype_from_object(source.ptr());
    return true;
  }
  static handle cast(candelabra::Dtype dtype, return_value_policy, handle) {
    return Py_NewRef(candelabra::dtype_object(dtype));
  }
};

template <>
struct type_caster<candelabra::Address> {
  PYBIND11_TYPE_CASTER(candelabra::Address, const_name("int"));
  bool load(handle source, bool) {
    value.value = PyLong_AsVoidPtr(source.ptr());
    if (!value.value && PyErr_Occurred()) throw candelabra::PythonError();
    return true;
  }
  static handle cast(candelabra::Address address, return_value_policy, handle) {
    return candelabra::owned(PyLong_FromVoidPtr(address.value)).release();
  }
};

template <typename T, char unit>
struct type_caster<candelabra::Parsed<T, unit>> {
  using Argument = candelabra::Parsed<T, unit>;
  static constexpr auto type_name() {
    if constexpr (unit == 'p')
      return const_name("bool");
    else if constexpr (unit == 'z')
      return const_name("str | None");
    else
      return const_name<std::is_pointer_v<T>>("str", "int");
  }
  PYBIND11_TYPE_CASTER(Argument, type_name());
  bool load(handle source, bool) {
    static constexpr char format[] = {unit, '\0'};
    if (!PyArg_Parse(source.ptr(), format, &value.value)) throw candelabra::PythonError();
    return true;
  }
};

// An argument Storage*, which is never null.
template <>
struct type_caster<candelabra::Storage> {
  static constexpr auto name = const_name("Storage");
  template <typename>
  using cast_op_type = candelabra::Storage*;
  bool load(handle source, bool) {
    value_ = candelabra::storage_from_object(source.ptr());
    return true;
  }
  operator candelabra::Storage*() const { return value_; }

 private:
  candelabra::Storage* value_ = nullptr;
};

}  // namespace pybind11::detail
