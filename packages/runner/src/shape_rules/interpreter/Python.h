// What the sources of the shape rules name of CPython's headers, for a build without the
// interpreter: types that are declared and never made, and the exceptions as addresses.
#pragma once

#include <cstddef>
#include <cstdint>

using Py_ssize_t = ptrdiff_t;

struct PyTypeObject {
  const char* tp_name;
};
struct PyObject {
  PyTypeObject* type;
};
struct PyMethodDef;
struct PyGetSetDef;
struct PyThreadState;
struct Py_buffer;
using vectorcallfunc = PyObject* (*)(PyObject*, PyObject* const*, size_t, PyObject*);

#define PyObject_HEAD PyObject ob_base;

extern PyObject* const PyExc_IndexError;
extern PyObject* const PyExc_NotImplementedError;
extern PyObject* const PyExc_RuntimeError;
extern PyObject* const PyExc_TypeError;
extern PyObject* const PyExc_ValueError;

inline PyTypeObject* Py_TYPE(PyObject* object) {
  return object->type;
}
// No object is owned: tensors live as long as the check of a call.
inline void Py_XINCREF(PyObject*) {}
inline void Py_XDECREF(PyObject*) {}

// Named by inline functions that no shape rule calls.
PyObject* PyList_AsTuple(PyObject* list);
bool PyList_Check(PyObject* object);
bool PyType_IsSubtype(PyTypeObject* type, PyTypeObject* base);
PyObject* PyUnicode_InternFromString(const char* text);
