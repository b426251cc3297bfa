// The extension module candelabra._C.
#include <Python.h>

#include "device/random.hpp"
#include "dispatch/dispatch_hook.hpp"
#include "dispatch/overridable.hpp"
#include "dispatch/torch_dispatch.hpp"
#include "dispatch/torch_function.hpp"
#include "interop/interop.hpp"
#include "operators/fast_path.hpp"
#include "operators/operator.hpp"
#include "python/bindings.hpp"
#include "record/recorder.hpp"
#include "shapes/shapes.hpp"
#include "tensor/tensor_type.hpp"

namespace {

using namespace candelabra;

PyObject* get_default_dtype(PyObject*, PyObject*) {
  return Py_NewRef(dtype_object(default_dtype()));
}

Dtype result_type(const py::args& operands) {
  Promotion promotion;
  check(!operands.empty(), PyExc_TypeError, "result_type() needs at least one tensor or number");
  for (const py::handle operand : operands) {
    PyObject* object = operand.ptr();
    if (is_tensor(object)) {
      promotion.add_tensor(as_tensor(object)->dtype, as_tensor(object)->ndim() == 0);
    } else {
      promotion.add_number(scalar_argument(object).kind);
    }
  }
  return promotion.result();
}

// Called for every tensor that is made without dtype=.
PyMethodDef dtype_functions[] = {
    {"get_default_dtype", get_default_dtype, METH_NOARGS, "The default dtype of floating-point tensors."},
    {nullptr, nullptr, 0, nullptr},
};

// What an operator call passes through, and functions about as short as a call through pybind11:
// these use CPython's API.
void populate_hot_path(PyObject* module) {
  init_tensor_methods();
  bool done = init_dtype(module) && init_size(module) && init_memory_format(module) && init_tensor(module) &&
              init_operator(module) && init_fast_path(module) && init_grad_switch(module) &&
              init_gradient_buckets(module) && init_out_arguments(module) && init_random(module);
  for (PyMethodDef* functions :
       {dtype_functions, device_functions, grad_functions, gradient_functions, tape_functions, leaf_edge_functions,
        data_functions, numpy_functions, random_functions, dispatch_hook_functions, torch_function_functions,
        torch_dispatch_functions, record_functions}) {
    done = done && PyModule_AddFunctions(module, functions) == 0;
  }
  if (!done || !init_torch_function(module) || !init_torch_dispatch(module) || !init_overridable(module) ||
      !init_replayer(module))
    throw PythonError();
}

// Functions that the Python packages set once. Their translation units do without pybind11.
void register_settings(py::module_& module) {
  using namespace py::literals;
  module.def(
      "set_fill_uninitialized_memory", [](TruthArgument fills) { shapes::set_fill_uninitialized_memory(fills != 0); },
      "fills"_a, "Set whether empty() and Tensor(sizes) fill the memory that they return.");
  module.def(
      "set_legacy_constructor", [](py::handle function) { set_legacy_constructor(function.ptr()); }, "function"_a,
      "Set the function that handles Tensor(...) for keywords, storages, and anything but sizes, a sequence or a "
      "tensor.");
  module.def(
      "set_view_history", [](py::handle function) { set_view_history(function.ptr()); }, "function"_a,
      "Set the function that gives a view the history that follows from its base's.");
  module.def(
      "set_autograd_loader", [](py::handle function) { set_autograd_loader(function.ptr()); }, "load"_a,
      "Set the function called before a tensor requires grad, by any number of threads at once, until it has "
      "returned True.");
}

PyModuleDef definition;

PyObject* create_module() {
  PYBIND11_ENSURE_INTERNALS_READY
  // Single-phase initialization: the types are static.
  auto module = py::module_::create_extension_module("candelabra._C", "Candelabra's tensor core.", &definition);
  register_errors(module);
  register_devices(module);
  register_storage(module);
  populate_hot_path(module.ptr());
  register_dtypes(module);
  register_device_functions(module);
  register_accelerator(module);
  register_accelerator_memory(module);
  register_accelerator_graphs(module);
  register_collectives(module);
  register_shared_memory(module);
  register_record(module);
  register_dlpack(module);
  register_settings(module);
  module.attr("ABI_MAJOR") = CB_ABI_MAJOR;
  module.attr("ABI_MINOR") = CB_ABI_MINOR;
  return module.ptr();
}

}  // namespace

void candelabra::register_dtypes(py::module_& module) {
  using namespace py::literals;
  module.def("set_default_dtype", set_default_dtype, "dtype"_a, "Set the default dtype of floating-point tensors.");
  module.def("promote_types", promote, "a"_a, "b"_a, "The smallest dtype that both dtypes can be converted to.");
  module.def("can_cast", can_cast, "source"_a, "target"_a,
             "Whether a result of the first dtype can be stored in the second.");
  module.def("result_type", result_type, "The result dtype of an operation on these tensors and numbers.");
}

PyMODINIT_FUNC PyInit__C() {
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(
        PyExc_ImportError,
        "candelabra cannot be imported in a sub-interpreter: its types, settings and backends belong to the "
        "process. Import it in the main interpreter, or use processes (candelabra.multiprocessing)");
    return nullptr;
  }
  return guarded<>(static_cast<PyObject*>(nullptr), create_module);
}
