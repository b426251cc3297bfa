// Walks over trees of modules, for what is done to every parameter between two steps of training.
#include <Python.h>

#include <algorithm>
#include <vector>

#include "tensor/tensor_type.hpp"

namespace candelabra {

namespace {

// The dictionary of this name in an object's own; null where there is none.
PyObject* table_of(PyObject* instance_dict, PyObject* name) {
  PyObject* table = PyDict_GetItemWithError(instance_dict, name);
  if (!table && PyErr_Occurred()) throw PythonError();
  return table && PyDict_Check(table) ? table : nullptr;
}

// clear_gradients(module, named_modules): forgets the gradients of the parameters of a module and
// of all below it. A module that is met twice, on any way, is walked once. Where one has another
// function of that name, which says what is below it, nothing is done and False returned.
PyObject* clear_gradients(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    check(count == 2, PyExc_TypeError, "clear_gradients(module, named_modules)");
    PyObject* const root = arguments[0];
    static constinit InternedOnce named_modules("named_modules");
    static constinit InternedOnce parameters("_parameters");
    static constinit InternedOnce modules("_modules");
    // The gradients are given up behind the walk: what that runs may change the tables.
    std::vector<Ref<>> cleared;
    std::vector<TensorRef> found;
    std::vector<Ref<>> waiting{Ref<>::borrow(root)};
    std::vector<PyObject*> seen{root};  // sorted
    while (!waiting.empty()) {
      const Ref<> kept = std::move(waiting.back());
      PyObject* module = kept.get();
      waiting.pop_back();
      const Ref<> below = owned(PyObject_GetAttr(reinterpret_cast<PyObject*>(Py_TYPE(module)), named_modules.get()));
      if (below.get() != arguments[1]) return Py_NewRef(Py_False);
      const Ref<> dict = owned(PyObject_GenericGetDict(module, nullptr));
      PyObject *name, *entry;
      Py_ssize_t at = 0;
      if (PyObject* table = table_of(dict.get(), parameters.get())) {
        while (PyDict_Next(table, &at, &name, &entry)) {
          if (is_tensor(entry) && as_tensor(entry)->grad) found.push_back(TensorRef::borrow(as_tensor(entry)));
        }
      }
      at = 0;
      PyObject* table = table_of(dict.get(), modules.get());
      while (table && PyDict_Next(table, &at, &name, &entry)) {
        if (entry == Py_None) continue;
        const auto place = std::lower_bound(seen.begin(), seen.end(), entry);
        if (place != seen.end() && *place == entry) continue;
        seen.insert(place, entry);
        waiting.push_back(Ref<>::borrow(entry));
      }
    }
    for (const TensorRef& parameter : found) {
      if (parameter->grad) cleared.emplace_back(std::exchange(parameter->grad, nullptr));
    }
    return Py_NewRef(Py_True);
  });
}

}  // namespace

PyMethodDef gradient_functions[] = {
    {"clear_gradients", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(clear_gradients)), METH_FASTCALL,
     "clear_gradients(module, named_modules)\n\nForget the gradients of the parameters of a module and of all below "
     "it; False "
     "where "
     "one of them has another function named_modules."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace candelabra
