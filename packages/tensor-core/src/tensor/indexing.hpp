// tensor[key] and tensor[key] = value.
#pragma once

#include <Python.h>

namespace candelabra {

PyObject* tensor_getitem(PyObject* self, PyObject* key);
int tensor_setitem(PyObject* self, PyObject* key, PyObject* value);

}  // namespace candelabra
