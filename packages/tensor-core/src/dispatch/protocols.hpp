// What __torch_function__ and __torch_dispatch__ share: stacks of modes, and the order in which
// classes are asked.
#pragma once

#include <vector>

#include "dispatch/torch_function.hpp"

namespace candelabra {

// The modes of one thread, the innermost last.
class ModeStack {
 public:
  bool is_empty() const { return !modes_ || PyList_GET_SIZE(modes_) == 0; }

  // The functions that Python calls; null with an exception set where one was raised.
  PyObject* push(PyObject* mode) {
    if (!modes_) modes_ = PyList_New(0);
    if (!modes_ || PyList_Append(modes_, mode) < 0) return nullptr;
    ++torch_function_modes;
    Py_RETURN_NONE;
  }
  PyObject* pop(const char* message) {
    if (is_empty()) {
      PyErr_SetString(PyExc_RuntimeError, message);
      return nullptr;
    }
    const Py_ssize_t last = PyList_GET_SIZE(modes_) - 1;
    PyObject* const mode = Py_NewRef(PyList_GET_ITEM(modes_, last));
    PyList_SetSlice(modes_, last, last + 1, nullptr);
    --torch_function_modes;
    return mode;
  }
  PyObject* as_tuple() const { return modes_ ? PyList_AsTuple(modes_) : PyTuple_New(0); }

 private:
  friend class InnermostMode;
  PyObject* modes_ = nullptr;  // a list, made at the first mode and kept for the thread's life
};

// Takes the innermost mode off the stack for as long as this object lives: what a mode calls goes
// to the modes around it.
class InnermostMode {
 public:
  explicit InnermostMode(const ModeStack& stack) : modes_(stack.modes_) {
    const Py_ssize_t last = PyList_GET_SIZE(modes_) - 1;
    mode_ = Ref<>::borrow(PyList_GET_ITEM(modes_, last));
    if (PyList_SetSlice(modes_, last, last + 1, nullptr) < 0) throw PythonError();
  }
  InnermostMode(const InnermostMode&) = delete;
  InnermostMode& operator=(const InnermostMode&) = delete;
  ~InnermostMode() {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyList_Append(modes_, mode_.get());
    PyErr_Restore(type, value, trace);
  }
  PyObject* get() const { return mode_.get(); }

 private:
  PyObject* modes_;
  Ref<> mode_;
};

// Adds an object unless there is one of its class: an object of a subclass comes before those of
// its base classes.
inline void add_by_class(std::vector<Ref<>>& objects, PyObject* candidate) {
  PyTypeObject* const type = Py_TYPE(candidate);
  auto place = objects.end();
  for (auto other = objects.begin(); other != objects.end(); ++other) {
    if (Py_TYPE(other->get()) == type) return;
    if (place == objects.end() && PyType_IsSubtype(type, Py_TYPE(other->get()))) place = other;
  }
  objects.insert(place, Ref<>::borrow(candidate));
}

// The classes of objects, as the protocols' argument `types` has them.
inline Ref<> types_of(const std::vector<Ref<>>& objects) {
  Ref<> types = owned(PyTuple_New(static_cast<Py_ssize_t>(objects.size())));
  for (size_t i = 0; i < objects.size(); ++i) {
    PyTuple_SET_ITEM(types.get(), static_cast<Py_ssize_t>(i),
                     Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(objects[i].get()))));
  }
  return types;
}

}  // namespace candelabra
