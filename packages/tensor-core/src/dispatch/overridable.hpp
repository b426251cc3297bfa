// Functions in Python that __torch_function__ may take over.
#pragma once

#include <Python.h>

namespace candelabra {

// Adds OverridableFunction, which stands for a function of the package: a call first asks the
// overrides of its arguments, then goes to the function. Where that raises AttributeError, its
// checker is called with the arguments, and may raise a better error.
bool init_overridable(PyObject* module);

}  // namespace candelabra
