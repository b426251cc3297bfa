// The callable that candelabra.compile returns: it replays a program that fits the call, else it
// calls a Python function.
#include <Python.h>
#include <structmember.h>

#include <algorithm>
#include <cstddef>

#include "record/bindings.hpp"
#include "record/program.hpp"

namespace candelabra {

thread_local bool is_replaying = true;

namespace {

// The Python object has the program's references, as the collector of cycles sees them.
struct Replayed {
  Ref<> object;
  std::shared_ptr<Program> program;
};

struct ReplayerObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* dict;
  PyObject* weakrefs;
  // Most recently used first.
  std::vector<Replayed> programs;
};

ReplayerObject& of(PyObject* object) {
  return *reinterpret_cast<ReplayerObject*>(object);
}

PyObject* replayer_call(PyObject* self, PyObject* const* arguments, size_t flags, PyObject* names) {
  ReplayerObject& replayer = of(self);
  const Py_ssize_t count = PyVectorcall_NARGS(flags);
  if (is_replaying && !recorder()) {
    try {
      std::vector<TensorObject*> tensors;
      for (size_t k = 0; k < replayer.programs.size(); ++k) {
        // A guard may call Python, and another thread may replace the programs meanwhile.
        const Replayed kept = replayer.programs[k];
        Program* const program = kept.program.get();
        if (!program->accepts(arguments, count, names, tensors)) continue;
        if (program->is_running() || program->calls_left <= 0) break;
        if (k > 0 && k < replayer.programs.size() && replayer.programs[k].program == kept.program)
          std::rotate(replayer.programs.begin(), replayer.programs.begin() + static_cast<Py_ssize_t>(k),
                      replayer.programs.begin() + static_cast<Py_ssize_t>(k) + 1);
        --program->calls_left;
        return program->run(tensors);
      }
    } catch (...) {
      set_python_error();
      return nullptr;
    }
  }
  return PyObject_Vectorcall(replayer.function, arguments, static_cast<size_t>(count), names);
}

PyObject* replayer_new(PyTypeObject* type, PyObject* arguments, PyObject*) {
  PyObject* function;
  if (!PyArg_ParseTuple(arguments, "O:Replayer", &function)) return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  ReplayerObject& replayer = of(self);
  new (&replayer.programs) std::vector<Replayed>();
  replayer.vectorcall = replayer_call;
  replayer.function = Py_NewRef(function);
  return self;
}

int replayer_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(of(self).function);
  Py_VISIT(of(self).dict);
  return visit_each(of(self).programs, [&](const Replayed& one) { return visit_references(visit, arg, one.object); });
}

int replayer_clear(PyObject* self) {
  const std::vector<Replayed> given_up = std::exchange(of(self).programs, {});
  Py_CLEAR(of(self).dict);
  return 0;
}

void replayer_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  ReplayerObject& replayer = of(self);
  if (replayer.weakrefs) PyObject_ClearWeakRefs(self);
  std::destroy_at(&replayer.programs);
  Py_XDECREF(replayer.function);
  Py_XDECREF(replayer.dict);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* replayer_bind(PyObject* self, PyObject* instance, PyObject*) {
  return instance && instance != Py_None ? PyMethod_New(self, instance) : Py_NewRef(self);
}

PyObject* get_programs(PyObject* self, void*) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    Ref<> list = owned(PyList_New(0));
    for (const Replayed& one : of(self).programs)
      if (PyList_Append(list.get(), one.object.get()) < 0) throw PythonError();
    return list.release();
  });
}

int set_programs(PyObject* self, PyObject* value, void*) {
  return guarded<>(-1, [&] {
    check(value && PyList_Check(value), PyExc_TypeError, "programs must be a list");
    std::vector<Replayed> programs;
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(value); ++k)
      programs.push_back({Ref<>::borrow(PyList_GET_ITEM(value, k)), program_from_object(PyList_GET_ITEM(value, k))});
    std::swap(of(self).programs, programs);
    return 0;
  });
}

PyGetSetDef replayer_attributes[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {"programs", get_programs, set_programs, "The programs, most recently used first.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMemberDef replayer_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(ReplayerObject, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(ReplayerObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ReplayerObject, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

}  // namespace

bool init_replayer(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(replayer_new)},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_descr_get, reinterpret_cast<void*>(replayer_bind)},
      {Py_tp_traverse, reinterpret_cast<void*>(replayer_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(replayer_clear)},
      {Py_tp_dealloc, reinterpret_cast<void*>(replayer_dealloc)},
      {Py_tp_members, replayer_members},
      {Py_tp_getset, replayer_attributes},
      {Py_tp_doc,
       const_cast<char*>("Replayer(function)\n\nReplays a program that fits the call, else calls function.")},
      {0, nullptr},
  };
  PyType_Spec spec = {
      "candelabra.Replayer", sizeof(ReplayerObject), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, slots};
  PyObject* const type = PyType_FromSpec(&spec);
  return type && PyModule_AddObject(module, "Replayer", type) == 0;
}

}  // namespace candelabra
