#include "dispatch/dispatch_hook.hpp"

#include <algorithm>
#include <vector>

#include "tensor/tensor.hpp"
#include "tensor/tensor_type.hpp"

namespace candelabra {

std::atomic<int> dispatch_hooks{0};

namespace {

PyObject* const failure = nullptr;

struct Slot {
  Ref<> callable;
  // A thread that ends with a hook set must decrement the count.
  ~Slot() {
    if (callable.release()) --dispatch_hooks;
  }
};
thread_local Slot slot;

// The classes that make_wrapper has instantiated; there are only a few.
std::vector<PyTypeObject*>& wrapper_types() {
  static std::vector<PyTypeObject*> types;
  return types;
}

// Sets this thread's hook, which may be null, and returns the previous one.
Ref<> exchange_hook(Ref<> hook) {
  Ref<> before = std::exchange(slot.callable, std::move(hook));
  dispatch_hooks += (slot.callable ? 1 : 0) - (before ? 1 : 0);
  return before;
}

PyObject* set_dispatch_hook(PyObject*, PyObject* callable) {
  if (callable != Py_None && !PyCallable_Check(callable)) {
    PyErr_Format(PyExc_TypeError, "expected a callable or None, not %s", Py_TYPE(callable)->tp_name);
    return nullptr;
  }
  Ref<> before = exchange_hook(callable == Py_None ? Ref<>() : Ref<>::borrow(callable));
  return before ? before.release() : Py_NewRef(Py_None);
}

// Creates an instance of a subclass on the memory of `data`, as a view of `base`. Drops one
// dimension by taking the first element along it.
PyObject* make_wrapper(PyObject*, PyObject* arguments) {
  return guarded<>(failure, [&]() -> PyObject* {
    PyObject *type, *data, *base;
    int dropped;
    if (!PyArg_ParseTuple(arguments, "O!O!iO:make_wrapper", &PyType_Type, &type, tensor_type, &data, &dropped, &base))
      return nullptr;
    check(PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), tensor_type), PyExc_TypeError,
          "make_wrapper(): cls must be a subclass of Tensor");
    check(base == Py_None || is_tensor(base), PyExc_TypeError, "make_wrapper(): base must be a Tensor or None");
    const TensorObject& source = *as_tensor(data);
    check(dropped >= -1 && dropped < source.ndim(), PyExc_IndexError, "make_wrapper(): there is no dimension ",
          dropped);
    TensorRef made = make_subclass(reinterpret_cast<PyTypeObject*>(type), as_tensor(data));
    if (!is_wrapper(as_object(made.get()))) {
      Py_INCREF(type);
      wrapper_types().push_back(reinterpret_cast<PyTypeObject*>(type));
    }
    if (dropped >= 0) {
      Dims sizes = source.sizes, strides = source.strides;
      sizes.erase(dropped);
      strides.erase(dropped);
      set_geometry(*made.get(), std::move(sizes), std::move(strides), source.offset);
    }
    if (base != Py_None) {
      TensorObject* root = as_tensor(base);
      made->base = Py_NewRef(root->base ? root->base : base);
      made->history = as_tensor(made->base)->history;
    }
    return made.release_object();
  });
}

}  // namespace

NoDispatchHook::NoDispatchHook() : before_(dispatch_hook() ? exchange_hook(Ref<>()).release() : nullptr) {}

NoDispatchHook::~NoDispatchHook() {
  if (before_) exchange_hook(Ref<>(before_));
}

PyObject* thread_dispatch_hook() {
  return slot.callable.get();
}

bool is_wrapper(PyObject* object) {
  return std::ranges::find(wrapper_types(), Py_TYPE(object)) != wrapper_types().end();
}

PyMethodDef dispatch_hook_functions[] = {
    {"set_dispatch_hook", set_dispatch_hook, METH_O,
     "set_dispatch_hook(callable)\n\nSet this thread's dispatch hook. Every operator call first calls "
     "callable(operator, "
     "arguments, out, generator, record); if that returns NotImplemented, the operator runs. None removes the hook. "
     "Returns "
     "the previous hook."},
    {"make_wrapper", make_wrapper, METH_VARARGS,
     "make_wrapper(cls, data, dropped, base)\n\nAn instance of a subclass on the memory of data, as a view of base. "
     "Drops "
     "dimension `dropped` by taking its first element; -1 drops none."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace candelabra
