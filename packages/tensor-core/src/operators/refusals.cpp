#include "operators/refusals.hpp"

#include <algorithm>
#include <string_view>

#include "python/errors.hpp"

namespace candelabra {

Refusals parse_refusals(const std::string& operator_name, PyObject* refuses) {
  static constexpr std::array<std::string_view, 4> categories{"bool", "integer", "float", "complex"};
  Refusals refusals;
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(refuses, &at, &key, &value);) {
    const char* category = PyUnicode_AsUTF8(key);
    if (!category) throw PythonError();
    const auto found = std::ranges::find(categories, std::string_view(category));
    check(found != categories.end(), PyExc_ValueError, operator_name, ": refuses bool, integer, float or complex, not ",
          category);
    Refusal& refusal = refusals[static_cast<size_t>(found - categories.begin())];
    if (value == Py_None) {
      refusal.exception = Py_NewRef(PyExc_NotImplementedError);
      continue;
    }
    const char* message;
    if (!PyArg_ParseTuple(value, "Os", &refusal.exception, &message)) throw PythonError();
    Py_INCREF(refusal.exception);
    refusal.message = message;
  }
  return refusals;
}

}  // namespace candelabra
