// PyTorch's protocol __torch_function__: classes that take over the functions of the package when
// an argument is of theirs, and modes that take over all calls of a thread.
#pragma once

#include <Python.h>

#include <atomic>
#include <optional>

#include "tensor/tensor.hpp"

namespace candelabra {

// How many modes there are on all threads. Without any, a call pays for one comparison.
extern std::atomic<int> torch_function_modes;

// The subclass of Tensor that was last found not to take over functions: mostly that of parameters.
struct PlainSubclass {
  PyTypeObject* type;
  unsigned int version;  // of the type, which changes with its attributes
};
extern PlainSubclass plain_subclass;
inline bool is_plain(const PyTypeObject* type) {
  return type == tensor_type || (type == plain_subclass.type && type->tp_version_tag == plain_subclass.version);
}

// Whether an argument is an object of a class that takes over functions, or a sequence of such.
bool overrides_functions(PyObject* argument);

// Whether an object's class takes over functions, and this thread asks classes.
bool takes_over(PyObject* object);

// Whether a function must ask its arguments first. Plain tensors and numbers pay for comparisons
// of their types.
inline bool may_be_overridden(PyObject* const* arguments, Py_ssize_t count) {
  if (torch_function_modes.load(std::memory_order_relaxed) > 0) [[unlikely]]
    return true;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyTypeObject* const type = Py_TYPE(arguments[i]);
    if (is_plain(type) || type == &PyFloat_Type || type == &PyLong_Type || type == &PyBool_Type) continue;
    if (overrides_functions(arguments[i])) return true;
  }
  return false;
}

// Lets the modes and the arguments' classes compute a call of `function`, with arguments as
// PyObject_Vectorcall has them. Nothing if nobody takes the call over, which then goes on as usual;
// null with an exception set where one was raised.
std::optional<PyObject*> call_overrides(PyObject* function, PyObject* const* arguments, Py_ssize_t count,
                                        PyObject* names);

// The same for an attribute, method or slot of Tensor named `name`. `accessor` is __get__ or
// __set__ for an attribute; else null.
std::optional<PyObject*> call_overrides_of_tensor(const char* name, const char* accessor, PyObject* const* arguments,
                                                  Py_ssize_t count, PyObject* names);
inline bool may_be_overridden(PyObject* self) {
  return !is_plain(Py_TYPE(self)) || torch_function_modes.load(std::memory_order_relaxed) > 0;
}

// An instance of a subclass that has the place of `tensor` on the tape.
TensorRef as_subclass(TensorRef tensor, PyTypeObject* type);

// No override is asked as long as this object lives.
class FunctionOverridesDisabled {
 public:
  FunctionOverridesDisabled();
  ~FunctionOverridesDisabled();
  FunctionOverridesDisabled(const FunctionOverridesDisabled&) = delete;
  FunctionOverridesDisabled& operator=(const FunctionOverridesDisabled&) = delete;

 private:
  int before_;
};

// Functions of the module; ends with an empty entry.
extern PyMethodDef torch_function_functions[];
// Tensor.__torch_function__, the default implementation.
PyObject* tensor_torch_function(PyObject* cls, PyObject* arguments, PyObject* keywords);
// Call once the functions are in the module.
bool init_torch_function(PyObject* module);

}  // namespace candelabra
