#include "dispatch/overridable.hpp"

#include <structmember.h>

#include <cstddef>

#include "dispatch/torch_function.hpp"

namespace candelabra {

namespace {

struct OverridableFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* checker;  // or null
  PyObject* shown;    // what overrides are given in place of this object, such as a property's getter; or null
  PyObject* weakrefs;
};

OverridableFunction& as_overridable(PyObject* object) {
  return *reinterpret_cast<OverridableFunction*>(object);
}

// Calls the checker after an AttributeError, which stays unless the checker raises.
void check_arguments(const OverridableFunction& self, PyObject* const* arguments, size_t flags, PyObject* names) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const Ref<> result(PyObject_Vectorcall(self.checker, arguments, PyVectorcall_NARGS(flags), names));
  if (result) return PyErr_Restore(type, value, trace);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
}

PyObject* overridable_vectorcall(PyObject* object, PyObject* const* arguments, size_t flags, PyObject* names) {
  const OverridableFunction& self = as_overridable(object);
  const Py_ssize_t count = PyVectorcall_NARGS(flags);
  if (may_be_overridden(arguments, names ? count + PyTuple_GET_SIZE(names) : count)) [[unlikely]] {
    if (const auto result = call_overrides(self.shown ? self.shown : object, arguments, count, names)) return *result;
  }
  PyObject* const result = PyObject_Vectorcall(self.function, arguments, flags, names);
  if (!result && self.checker && PyErr_ExceptionMatches(PyExc_AttributeError))
    check_arguments(self, arguments, flags, names);
  return result;
}

PyObject* overridable_new(PyTypeObject* type, PyObject* arguments, PyObject*) {
  PyObject *function, *checker = Py_None;
  if (!PyArg_ParseTuple(arguments, "O|O:OverridableFunction", &function, &checker)) return nullptr;
  PyObject* const made = type->tp_alloc(type, 0);
  if (!made) return nullptr;
  OverridableFunction& self = as_overridable(made);
  self.vectorcall = overridable_vectorcall;
  self.function = Py_NewRef(function);
  self.checker = checker == Py_None ? nullptr : Py_NewRef(checker);
  return made;
}

int overridable_traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(as_overridable(object).function);
  Py_VISIT(as_overridable(object).checker);
  Py_VISIT(as_overridable(object).shown);
  return 0;
}

int overridable_clear(PyObject* object) {
  Py_CLEAR(as_overridable(object).shown);
  return 0;
}

void overridable_dealloc(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  OverridableFunction& self = as_overridable(object);
  if (self.weakrefs) PyObject_ClearWeakRefs(object);
  Py_XDECREF(self.function);
  Py_XDECREF(self.checker);
  Py_XDECREF(self.shown);
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* overridable_bind(PyObject* object, PyObject* instance, PyObject*) {
  return instance && instance != Py_None ? PyMethod_New(object, instance) : Py_NewRef(object);
}

// Everything but its own members is the function's: name, docstring, signature, attributes.
PyObject* overridable_getattro(PyObject* object, PyObject* name) {
  static constinit InternedOnce wrapped{"__wrapped__"};
  static constinit InternedOnce reduce{"__reduce_ex__"};
  static constinit InternedOnce kind{"__class__"};
  static constinit InternedOnce get{"__get__"};
  static constinit InternedOnce call{"__call__"};
  const auto is = [name](InternedOnce& known) { return PyUnicode_Compare(name, known.get()) == 0; };
  if (is(wrapped)) return Py_NewRef(as_overridable(object).function);
  if (is(kind) || is(reduce) || is(get) || is(call)) return PyObject_GenericGetAttr(object, name);
  PyObject* const found = PyObject_GetAttr(as_overridable(object).function, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyErr_Clear();
  return PyObject_GenericGetAttr(object, name);
}

int overridable_setattro(PyObject* object, PyObject* name, PyObject* value) {
  return PyObject_SetAttr(as_overridable(object).function, name, value);
}

PyObject* overridable_repr(PyObject* object) {
  return PyObject_Repr(as_overridable(object).function);
}

// Pickled by name, like a Python function.
PyObject* overridable_reduce(PyObject* object, PyObject*) {
  return PyObject_GetAttrString(as_overridable(object).function, "__qualname__");
}

PyObject* show_as(PyObject* object, PyObject* shown) {
  Py_XSETREF(as_overridable(object).shown, Py_NewRef(shown));
  Py_RETURN_NONE;
}

PyMethodDef overridable_methods[] = {
    {"__reduce_ex__", overridable_reduce, METH_O, nullptr},
    {"_show_as", show_as, METH_O, "Set what overrides are given in place of this object."},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef overridable_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(OverridableFunction, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(OverridableFunction, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

}  // namespace

bool init_overridable(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(overridable_new)},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_descr_get, reinterpret_cast<void*>(overridable_bind)},
      {Py_tp_getattro, reinterpret_cast<void*>(overridable_getattro)},
      {Py_tp_setattro, reinterpret_cast<void*>(overridable_setattro)},
      {Py_tp_repr, reinterpret_cast<void*>(overridable_repr)},
      {Py_tp_traverse, reinterpret_cast<void*>(overridable_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(overridable_clear)},
      {Py_tp_dealloc, reinterpret_cast<void*>(overridable_dealloc)},
      {Py_tp_methods, overridable_methods},
      {Py_tp_members, overridable_members},
      {Py_tp_doc, const_cast<char*>("OverridableFunction(function, checker=None)\n\nA function that the classes of its "
                                    "arguments may take over by __torch_function__.")},
      {0, nullptr},
  };
  PyType_Spec spec = {
      "candelabra.OverridableFunction", sizeof(OverridableFunction), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, slots};
  const Ref<> type(PyType_FromSpec(&spec));
  return type && PyModule_AddObjectRef(module, "OverridableFunction", type.get()) == 0;
}

}  // namespace candelabra
