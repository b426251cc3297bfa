// The arguments of a call: collected in the order of the schema, then parsed into a Call.
#pragma once

#include <vector>

#include "operator.hpp"

namespace candelabra {

// The arguments do not fit the schema: another spelling of the call may (Operator::fallback).
struct SchemaMismatch : Error {
  using Error::Error;
};
template <typename... Parts>
[[noreturn]] void mismatch(const Parts&... parts) {
  throw SchemaMismatch(PyExc_TypeError, text(parts...));
}

// What the caller gave, in the order of the schema. Borrowed.
struct Given {
  PyObject* values[max_arguments];
  PyObject* out = nullptr;
  PyObject* generator = nullptr;
  Ref<> spread;  // owns the tuple made of view(2, 3)
  std::vector<Ref<>> frozen;

  // Others may change a list during the call (an __index__, another thread while a kernel runs): the call goes by a tuple.
  PyObject* freeze(PyObject* list) { return PyList_Check(list) ? frozen.emplace_back(owned(PyList_AsTuple(list))).get() : list; }
};

// Puts positional and keyword arguments in the order of the schema, with defaults. Throws SchemaMismatch.
void collect(Operator& op, Given& given, PyObject* const* arguments, Py_ssize_t count, PyObject* names);
// Fills call.arguments from what was collected. Returns whether a tensor among them requires grad. Throws SchemaMismatch.
bool parse(Call& call, Given& given);

}  // namespace candelabra
