// The extension module candelabra._C.
#include <Python.h>

#include "device/collectives.hpp"
#include "device/random.hpp"
#include "device/streams.hpp"
#include "dispatch/dispatch_hook.hpp"
#include "interop/interop.hpp"
#include "operators/fast_path.hpp"
#include "operators/operator.hpp"
#include "tensor/tensor_type.hpp"

namespace {

using namespace candelabra;

PyObject* get_default_dtype(PyObject*, PyObject*) {
  return Py_NewRef(dtype_object(default_dtype()));
}

PyObject* set_default_dtype_function(PyObject*, PyObject* dtype) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    set_default_dtype(dtype_from_object(dtype));
    Py_RETURN_NONE;
  });
}

bool two_dtypes(PyObject* arguments, const char* format, Dtype& a, Dtype& b) {
  PyObject *first, *second;
  if (!PyArg_ParseTuple(arguments, format, &first, &second)) return false;
  a = dtype_from_object(first);
  b = dtype_from_object(second);
  return true;
}

PyObject* promote_types(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    Dtype a, b;
    if (!two_dtypes(arguments, "OO:promote_types", a, b)) return nullptr;
    return Py_NewRef(dtype_object(promote(a, b)));
  });
}

PyObject* can_cast_function(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    Dtype from, to;
    if (!two_dtypes(arguments, "OO:can_cast", from, to)) return nullptr;
    return PyBool_FromLong(can_cast(from, to));
  });
}

PyObject* result_type(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    Promotion promotion;
    check(PyTuple_GET_SIZE(arguments) > 0, PyExc_TypeError, "result_type() needs at least one tensor or number");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arguments); ++i) {
      PyObject* operand = PyTuple_GET_ITEM(arguments, i);
      if (is_tensor(operand)) {
        promotion.add_tensor(as_tensor(operand)->dtype, as_tensor(operand)->ndim() == 0);
      } else {
        promotion.add_number(scalar_from_object(operand).kind);
      }
    }
    return Py_NewRef(dtype_object(promotion.result()));
  });
}

PyMethodDef dtype_functions[] = {
    {"get_default_dtype", get_default_dtype, METH_NOARGS, "The default dtype of floating-point tensors."},
    {"set_default_dtype", set_default_dtype_function, METH_O, "Set the default dtype of floating-point tensors."},
    {"promote_types", promote_types, METH_VARARGS, "The smallest dtype that both dtypes can be converted to."},
    {"can_cast", can_cast_function, METH_VARARGS, "Whether a result of the first dtype can be stored in the second."},
    {"result_type", result_type, METH_VARARGS, "The result dtype of an operation on these tensors and numbers."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "candelabra._C",
                          "Candelabra's tensor core.",
                          -1,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

bool populate(PyObject* module) {
  init_tensor_methods();
  if (!init_errors(module) || !init_dtype(module) || !init_device(module) || !init_storage(module) ||
      !init_size(module) || !init_memory_format(module) || !init_tensor(module) || !init_operator(module) ||
      !init_front(module) || !init_grad_switch(module) || !init_out_arguments(module) || !init_random(module)) {
    return false;
  }
  for (PyMethodDef* functions :
       {dtype_functions, grad_functions, gradient_functions, tape_functions, data_functions, numpy_functions,
        dlpack_functions, random_functions, dispatch_hook_functions, shared_memory_functions, accelerator_functions,
        accelerator_memory_functions, accelerator_graph_functions, collective_functions}) {
    if (PyModule_AddFunctions(module, functions) < 0) return false;
  }
  return PyModule_AddIntConstant(module, "ABI_MAJOR", CB_ABI_MAJOR) == 0 &&
         PyModule_AddIntConstant(module, "ABI_MINOR", CB_ABI_MINOR) == 0;
}

}  // namespace

PyMODINIT_FUNC PyInit__C() {
  PyObject* module = PyModule_Create(&definition);
  if (module && !populate(module)) {
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
