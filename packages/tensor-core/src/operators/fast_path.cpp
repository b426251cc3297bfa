#include "operators/fast_path.hpp"

#include <structmember.h>

#include <cstddef>

#include "dispatch/torch_function.hpp"
#include "operators/arguments.hpp"

namespace candelabra {

namespace {

PyTypeObject* fast_path_type = nullptr;

FastPath& as_fast_path(PyObject* object) {
  return *reinterpret_cast<FastPath*>(object);
}

// A check before parsing: a mismatch that is found later costs an exception.
bool may_fit(const FastPath& path, PyObject* const* arguments, Py_ssize_t count) {
  if (count > 0 && is_tensor(arguments[0]) && !path.is_for(*as_tensor(arguments[0]))) return false;
  const int seen = static_cast<int>(std::min<Py_ssize_t>(path.count, count));
  for (int i = 0; i < seen; ++i) {
    if (!is_tensor(arguments[i]) || !path.fits(i, *as_tensor(arguments[i]))) return false;
  }
  return true;
}

PyObject* fast_path_vectorcall(PyObject* self, PyObject* const* arguments, size_t flags, PyObject* names) {
  const FastPath& path = as_fast_path(self);
  const Py_ssize_t count = PyVectorcall_NARGS(flags);
  if (may_be_overridden(arguments, names ? count + PyTuple_GET_SIZE(names) : count)) [[unlikely]] {
    if (const auto result = call_overrides(self, arguments, count, names)) return *result;
    return PyObject_Vectorcall(path.function, arguments, count, names);
  }
  PyObject* const* given = arguments;
  Py_ssize_t given_count = count;
  PyObject* longer[max_arguments];
  if (path.appended) {
    if (count != 1 || names) return PyObject_Vectorcall(path.function, arguments, count, names);
    longer[0] = arguments[0];
    given_count += PyTuple_GET_SIZE(path.appended);
    std::copy_n(&PyTuple_GET_ITEM(path.appended, 0), given_count - 1, longer + 1);
    given = longer;
  }
  const auto parameters = static_cast<Py_ssize_t>(path.op->schema.parameters.size());
  if (given_count + (names ? PyTuple_GET_SIZE(names) : 0) <= parameters && may_fit(path, given, given_count))
      [[likely]] {
    try {
      Ref<> result = call_operator(*path.op, given, given_count, names, Manner{.fast_path = &path});
      return PyTuple_Check(result.get()) ? Py_NewRef(PyTuple_GET_ITEM(result.get(), 0)) : result.release();
    } catch (const SchemaMismatch&) {
      // Falls through to the Python function.
    } catch (...) {
      set_python_error();
      return nullptr;
    }
  }
  return PyObject_Vectorcall(path.function, arguments, count, names);
}

PyObject* fast_path_new(PyTypeObject* type, PyObject* arguments, PyObject*) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject *op, *function, *dimensions, *appended;
    if (!PyArg_ParseTuple(arguments, "O!OO!O!:FastPath", operator_type, &op, &function, &PyTuple_Type, &dimensions,
                          &PyTuple_Type, &appended)) {
      return nullptr;
    }
    const Py_ssize_t count = PyTuple_GET_SIZE(dimensions);
    check(count <= static_cast<Py_ssize_t>(std::size(FastPath{}.dimensions)), PyExc_ValueError,
          "FastPath(): too many dimensions");
    check(PyTuple_GET_SIZE(appended) < max_arguments, PyExc_ValueError, "FastPath(): too many arguments");
    const Ref<> made = owned(type->tp_alloc(type, 0));
    FastPath& path = as_fast_path(made.get());
    for (Py_ssize_t i = 0; i < count; ++i) {
      const long wanted = PyLong_AsLong(PyTuple_GET_ITEM(dimensions, i));
      if (wanted == -1 && PyErr_Occurred()) return nullptr;
      path.dimensions[i] = static_cast<int32_t>(wanted);
    }
    path.vectorcall = fast_path_vectorcall;
    path.count = static_cast<int>(count);
    path.op = reinterpret_cast<Operator*>(Py_NewRef(op));
    path.function = Py_NewRef(function);
    path.appended = PyTuple_GET_SIZE(appended) ? Py_NewRef(appended) : nullptr;
    return Py_NewRef(made.get());
  });
}

int fast_path_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_fast_path(self).function);
  Py_VISIT(as_fast_path(self).dict);
  return 0;
}

int fast_path_clear(PyObject* self) {
  Py_CLEAR(as_fast_path(self).dict);
  return 0;
}

void fast_path_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  FastPath& path = as_fast_path(self);
  if (path.weakrefs) PyObject_ClearWeakRefs(self);
  Py_XDECREF(reinterpret_cast<PyObject*>(path.op));
  Py_XDECREF(path.function);
  Py_XDECREF(path.appended);
  Py_XDECREF(path.dict);
  type->tp_free(self);
  Py_DECREF(type);
}

// Binds to an instance as a method, like a Python function.
PyObject* fast_path_bind(PyObject* self, PyObject* instance, PyObject*) {
  return instance && instance != Py_None ? PyMethod_New(self, instance) : Py_NewRef(self);
}

PyObject* fast_path_repr(PyObject* self) {
  return PyObject_Repr(as_fast_path(self).function);
}

// Pickled by name, like a Python function.
PyObject* fast_path_reduce(PyObject* self, PyObject*) {
  return PyObject_GetAttrString(as_fast_path(self).function, "__qualname__");
}

PyMethodDef fast_path_methods[] = {
    {"__reduce__", fast_path_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef fast_path_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(FastPath, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(FastPath, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(FastPath, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef fast_path_attributes[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

}  // namespace

void FastPath::check(const Call& call) const {
  if (call.arguments[0].is_tensor() && !is_for(*call.arguments[0].tensor))
    mismatch(call.name(), "(): without a kernel");
  for (int i = 0; i < count; ++i) {
    if (!call.arguments[i].is_tensor() || !fits(i, *call.arguments[i].tensor)) {
      mismatch(call.name(), "(): argument ", i + 1, " is no tensor of ", dimensions[i], " dimensions");
    }
  }
}

bool init_fast_path(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(fast_path_new)},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_descr_get, reinterpret_cast<void*>(fast_path_bind)},
      {Py_tp_repr, reinterpret_cast<void*>(fast_path_repr)},
      {Py_tp_traverse, reinterpret_cast<void*>(fast_path_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(fast_path_clear)},
      {Py_tp_dealloc, reinterpret_cast<void*>(fast_path_dealloc)},
      {Py_tp_methods, fast_path_methods},
      {Py_tp_members, fast_path_members},
      {Py_tp_getset, fast_path_attributes},
      {Py_tp_doc,
       const_cast<char*>("FastPath(operator, function, dimensions, appended)\n\nA function with a fast path: calls "
                         "that fit the operator go to it directly.")},
      {0, nullptr},
  };
  PyType_Spec spec = {
      "candelabra.FastPath", sizeof(FastPath), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, slots};
  fast_path_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return fast_path_type && PyModule_AddObjectRef(module, "FastPath", reinterpret_cast<PyObject*>(fast_path_type)) == 0;
}

}  // namespace candelabra
