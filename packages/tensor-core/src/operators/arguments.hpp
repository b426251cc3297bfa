// The arguments of a call: collected in schema order, then parsed into a Call.
#pragma once

#include <vector>

#include "operators/operator.hpp"

namespace candelabra {

// The arguments do not match the schema. Operator::fallback may still accept them.
struct SchemaMismatch : Error {
  using Error::Error;
};
template <typename... Parts>
[[noreturn]] void mismatch(const Parts&... parts) {
  throw SchemaMismatch(PyExc_TypeError, text(parts...));
}

// The caller's arguments in schema order. Borrowed references.
struct Given {
  PyObject* values[max_arguments];
  PyObject* out = nullptr;
  PyObject* generator = nullptr;
  Ref<> spread;  // owns the tuple made from view(2, 3)
  std::vector<Ref<>> frozen;

  // Replaces a list by a tuple, because an __index__ or another thread may change the list during
  // the call.
  PyObject* freeze(PyObject* list) {
    return PyList_Check(list) ? frozen.emplace_back(owned(PyList_AsTuple(list))).get() : list;
  }
};

// The number that an operator takes. As in PyTorch, a NumPy scalar that is neither an integer nor
// of one of Python's types is a float: also numpy.bool, and numpy.complex64, whose imaginary part
// is lost with NumPy's warning.
cb_scalar scalar_argument(PyObject* object);

// Puts positional and keyword arguments into schema order and adds defaults. Throws SchemaMismatch.
void collect(Operator& op, Given& given, PyObject* const* arguments, Py_ssize_t count, PyObject* names);
// Converts the collected arguments to call.arguments. Returns whether any tensor argument requires
// grad. Throws SchemaMismatch.
bool parse(Call& call, Given& given);

}  // namespace candelabra
