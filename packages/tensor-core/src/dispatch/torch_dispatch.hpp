// PyTorch's protocol __torch_dispatch__: classes and modes that compute operators. They are asked
// after those of __torch_function__, and below autograd: the operator records the call.
#pragma once

#include <optional>

#include "operators/arguments.hpp"

namespace candelabra {

// Lets the modes and the arguments' classes compute a call. Nothing if nobody takes it over.
std::optional<Ref<>> call_torch_dispatch(Operator& op, const Given& given);

// Whether the objects of a type compute operators themselves.
bool type_dispatches(PyTypeObject* type);

// The device that a tensor made by _make_wrapper_subclass() stands for: a device object, borrowed;
// null for other tensors. Its own memory is on the device meta.
PyObject* device_stood_for(TensorObject* tensor);
void stand_for_device(TensorObject* tensor, PyObject* device);
// What the class of a tensor computes for _local_scalar_dense: the value of its only element.
Ref<> dispatched_item(TensorObject* tensor);
// The same memory without a place on the tape. A tensor whose class computes operators keeps its
// class and its attributes, which are its value.
TensorRef detached_subclass(TensorObject* tensor);

extern PyMethodDef torch_dispatch_functions[];
// Call once the functions are in the module.
bool init_torch_dispatch(PyObject* module);
// Tensor._make_wrapper_subclass(cls, size, ...)
PyObject* make_wrapper_subclass(PyObject*, PyObject* arguments, PyObject* keywords);

}  // namespace candelabra
