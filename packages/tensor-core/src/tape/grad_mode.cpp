// The base types of candelabra.no_grad and enable_grad: context managers that set the thread's grad
// mode.
#include <Python.h>

#include <vector>

#include "tensor/tensor_type.hpp"

namespace candelabra {

namespace {

// A stack of previous grad modes, because a context manager may be entered again while it is
// active.
class ModeStack {
 public:
  void push(bool value) {
    if (depth_ < inline_depth) {
      bits_ = (bits_ & ~(uint64_t{1} << depth_)) | uint64_t{value} << depth_;
    } else {
      deeper_.push_back(value);
    }
    ++depth_;
  }
  bool empty() const { return depth_ == 0; }
  bool pop() {
    --depth_;
    if (depth_ < inline_depth) return bits_ >> depth_ & 1;
    const bool value = deeper_.back();
    deeper_.pop_back();
    return value;
  }

 private:
  static constexpr size_t inline_depth = 64;
  size_t depth_ = 0;
  uint64_t bits_ = 0;
  std::vector<bool> deeper_;
};

struct Switch {
  PyObject_HEAD ModeStack previous;
};

Switch& as_switch(PyObject* object) {
  return *reinterpret_cast<Switch*>(object);
}

// no_grad(function) is a decorator, which Python code implements.
PyObject* switch_new(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  static const char* const names[] = {"function", nullptr};
  PyObject* function = Py_None;
  const bool given = PyTuple_GET_SIZE(arguments) > 0 || (keywords && PyDict_GET_SIZE(keywords) > 0);
  if (given && !PyArg_ParseTupleAndKeywords(arguments, keywords, "|O", const_cast<char**>(names), &function))
    return nullptr;
  if (function != Py_None) return PyObject_CallMethod(reinterpret_cast<PyObject*>(type), "_decorate", "O", function);
  PyObject* made = type->tp_alloc(type, 0);
  if (made) new (&as_switch(made).previous) ModeStack();
  return made;
}

void switch_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  as_switch(self).previous.~ModeStack();
  type->tp_free(self);
  Py_DECREF(type);
}

template <bool recording>
PyObject* enter(PyObject* self, PyObject*) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    as_switch(self).previous.push(grad_mode.enabled);
    grad_mode.enabled = recording;
    return Py_NewRef(Py_None);
  });
}

PyObject* leave(PyObject* self, PyObject* const*, Py_ssize_t) {
  ModeStack& previous = as_switch(self).previous;
  if (previous.empty()) {
    PyErr_SetString(PyExc_RuntimeError, "__exit__(): the block was not entered");
    return nullptr;
  }
  grad_mode.enabled = previous.pop();
  Py_RETURN_NONE;
}

template <bool recording>
bool add_type(PyObject* module, const char* qualified, const char* name) {
  static PyMethodDef methods[] = {
      {"__enter__", enter<recording>, METH_NOARGS, nullptr},
      {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(leave)), METH_FASTCALL, nullptr},
      {nullptr, nullptr, 0, nullptr},
  };
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(switch_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(switch_dealloc)},
      {Py_tp_methods, methods},
      {0, nullptr},
  };
  PyType_Spec spec = {qualified, sizeof(Switch), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  const Ref<> type(PyType_FromSpec(&spec));
  return type && PyModule_AddObjectRef(module, name, type.get()) == 0;
}

}  // namespace

bool init_grad_switch(PyObject* module) {
  return add_type<false>(module, "candelabra._C.RecordingOff", "RecordingOff") &&
         add_type<true>(module, "candelabra._C.RecordingOn", "RecordingOn");
}

}  // namespace candelabra
