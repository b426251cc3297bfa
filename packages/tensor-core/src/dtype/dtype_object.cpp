// candelabra.dtype.
#include "candelabra/small_floats.hpp"
#include "dtype/dtype.hpp"
#include "python/errors.hpp"

namespace candelabra {

namespace {

struct DtypeObject {
  PyObject_HEAD Dtype value;
};

PyTypeObject* dtype_type = nullptr;
PyObject* objects[dtype_count];

Dtype value_of(PyObject* self) {
  return reinterpret_cast<DtypeObject*>(self)->value;
}

PyObject* dtype_repr(PyObject* self) {
  return PyUnicode_FromFormat("candelabra.%s", name(value_of(self)));
}
PyObject* dtype_reduce(PyObject* self, PyObject*) {
  return PyUnicode_FromString(name(value_of(self)));
}

// The format that finfo() is derived from; None for a dtype that is not float8.
PyObject* float8_format(PyObject* self, void*) {
  if (!is_float8(value_of(self))) Py_RETURN_NONE;
  const small_floats::Float8Format& format = small_floats::float8_format(static_cast<int32_t>(value_of(self)));
  return Py_BuildValue("(iiii)", format.exponent_bits, format.mantissa_bits, format.bias,
                       static_cast<int>(small_floats::largest_code(format)));
}

PyGetSetDef dtype_getset[] = {
    {"is_floating_point", [](PyObject* self, void*) { return PyBool_FromLong(is_floating(value_of(self))); }, nullptr,
     "Whether this is a real floating-point dtype.", nullptr},
    {"is_complex", [](PyObject* self, void*) { return PyBool_FromLong(is_complex(value_of(self))); }, nullptr,
     "Whether this is a complex dtype.", nullptr},
    {"is_signed", [](PyObject* self, void*) { return PyBool_FromLong(info(value_of(self)).is_signed); }, nullptr,
     "Whether values can be negative.", nullptr},
    {"itemsize", [](PyObject* self, void*) { return PyLong_FromLong(itemsize(value_of(self))); }, nullptr,
     "The size of an element in bytes.", nullptr},
    {"name", [](PyObject* self, void*) { return PyUnicode_FromString(name(value_of(self))); }, nullptr,
     "The name, such as ``float32``.", nullptr},
    {"_float8_format", float8_format, nullptr,
     "(exponent bits, mantissa bits, exponent bias, code of the largest number) of a float8 dtype, else None.",
     nullptr},
    {"_number", [](PyObject* self, void*) { return PyLong_FromLong(static_cast<long>(value_of(self))); }, nullptr,
     "The value of its enumerator in backend.h.", nullptr},
    // pickle stores a dtype as the name of a global of this module.
    {"__module__", [](PyObject*, void*) { return PyUnicode_FromString("candelabra"); }, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef dtype_methods[] = {
    {"__reduce__", dtype_reduce, METH_NOARGS, nullptr},
    {"to_real", [](PyObject* self, PyObject*) { return Py_NewRef(dtype_object(real_of(value_of(self)))); }, METH_NOARGS,
     "The dtype of the real part."},
    {"to_complex",
     [](PyObject* self, PyObject*) {
       return guarded<>(static_cast<PyObject*>(nullptr),
                        [&] { return Py_NewRef(dtype_object(complex_of(value_of(self)))); });
     },
     METH_NOARGS, "The complex dtype whose parts are of this dtype."},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot dtype_slots[] = {
    {Py_tp_repr, reinterpret_cast<void*>(dtype_repr)},
    {Py_tp_getset, dtype_getset},
    {Py_tp_methods, dtype_methods},
    {Py_tp_doc, const_cast<char*>("The element type of a tensor.")},
    {0, nullptr},
};
PyType_Spec dtype_spec = {"candelabra.dtype", sizeof(DtypeObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, dtype_slots};

}  // namespace

PyObject* dtype_object(Dtype dtype) {
  return objects[static_cast<int>(dtype)];
}
bool is_dtype_object(PyObject* object) {
  return Py_TYPE(object) == dtype_type;
}

Dtype dtype_from_object(PyObject* object) {
  if (is_dtype_object(object)) return value_of(object);
  if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) return Dtype::Float64;
  if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) return Dtype::Int64;
  if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) return Dtype::Bool;
  if (object == reinterpret_cast<PyObject*>(&PyComplex_Type)) return Dtype::Complex128;
  raise(PyExc_TypeError, "expected a candelabra.dtype, not ", Py_TYPE(object)->tp_name);
}

bool init_dtype(PyObject* module) {
  dtype_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&dtype_spec));
  if (!dtype_type || PyModule_AddObjectRef(module, "dtype", reinterpret_cast<PyObject*>(dtype_type)) < 0) return false;
  for (int i = 0; i < dtype_count; ++i) {
    DtypeObject* object = PyObject_New(DtypeObject, dtype_type);
    if (!object) return false;
    object->value = static_cast<Dtype>(i);
    objects[i] = reinterpret_cast<PyObject*>(object);
    if (PyModule_AddObjectRef(module, dtype_infos[i].name, objects[i]) < 0) return false;
  }
  return true;
}

}  // namespace candelabra
