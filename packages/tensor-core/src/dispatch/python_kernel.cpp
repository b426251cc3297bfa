// Kernels that are Python callables: conversion of a call's arguments and outputs to Python
// objects.
#include "dispatch/python_kernel.hpp"

#include <bit>

#include "device/random.hpp"
#include "dispatch/dispatch_hook.hpp"
#include "dispatch/outputs.hpp"
#include "operators/operator.hpp"
#include "record/refuse.hpp"

namespace candelabra {

namespace {

// The view that a compiled kernel would get through the descriptor.
Ref<> view_of(const Argument& argument) {
  const cb_tensor& descriptor = *argument.descriptor;
  TensorObject* tensor = argument.tensor;
  auto ndim = static_cast<size_t>(descriptor.ndim);
  TensorRef view = make_tensor(retain(tensor->storage), tensor->dtype, Dims(std::span(descriptor.sizes, ndim)),
                               Dims(std::span(descriptor.strides, ndim)),
                               static_cast<int64_t>(descriptor.offset) / itemsize(tensor->dtype));
  return Ref<>(view.release_object());
}

template <typename Element, typename Convert>
Ref<> tuple_of(const Element* elements, int32_t count, Convert convert) {
  Ref<> tuple = owned(PyTuple_New(count));
  for (int32_t k = 0; k < count; ++k) PyTuple_SET_ITEM(tuple.get(), k, owned(convert(elements[k])).release());
  return tuple;
}

Ref<> argument_object(const Argument& argument) {
  switch (argument.kind) {
    case ArgumentKind::Tensor:
      return argument.descriptor ? view_of(argument) : Ref<>::borrow(as_object(argument.tensor));
    case ArgumentKind::Number:
      // The number after conversion to the computation's dtype.
      return owned(
          scalar_object(load_scalar(static_cast<Dtype>(argument.descriptor->dtype), argument.descriptor->data)));
    case ArgumentKind::Tensors:
      return tuple_of(argument.tensors, argument.count,
                      [](TensorObject* tensor) { return Py_NewRef(tensor ? as_object(tensor) : Py_None); });
    case ArgumentKind::Scalar:
      return owned(scalar_object(argument.scalar));
    case ArgumentKind::Int:
      return owned(PyLong_FromLongLong(argument.i));
    case ArgumentKind::Bool:
      return owned(PyBool_FromLong(argument.i != 0));
    case ArgumentKind::Float:
      return owned(PyFloat_FromDouble(argument.f));
    case ArgumentKind::Ints:
      return tuple_of(argument.ints, argument.count, [](int64_t value) { return PyLong_FromLongLong(value); });
    case ArgumentKind::Floats:
      return tuple_of(argument.floats, argument.count, [](double value) { return PyFloat_FromDouble(value); });
    case ArgumentKind::String:
      return owned(PyUnicode_FromString(argument.string));
    case ArgumentKind::Dtype:
      return Ref<>::borrow(dtype_object(argument.dtype));
    default:
      return Ref<>::borrow(Py_None);
  }
}

// An output that includes the reduced dimensions.
Ref<> output_object(const Output& output) {
  TensorObject* tensor = output.tensor.get();
  if (!output.inserted) return Ref<>::borrow(as_object(tensor));
  Dims sizes = tensor->sizes, strides = tensor->strides;
  for (int i = 0; i < max_dims; ++i) {
    if (output.inserted >> i & 1) {
      sizes.insert(i, 1);
      strides.insert(i, 0);
    }
  }
  return Ref<>(make_tensor(retain(tensor->storage), tensor->dtype, std::move(sizes), std::move(strides), tensor->offset)
                   .release_object());
}

// allocate(*sizes), for kernels whose result shape depends on data.
PyObject* allocate(PyObject* self, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    auto* call = static_cast<Call*>(PyCapsule_GetPointer(self, "candelabra.call"));
    if (!call) return nullptr;
    Output& output = call->outputs[0];
    check(!output.tensor, PyExc_RuntimeError, call->name(), "(): allocate() was called twice");
    const Py_ssize_t ndim = PyTuple_GET_SIZE(arguments);
    check(ndim <= max_dims, backend_error, device_type(call->device).distribution, ": the kernel of ", call->name(),
          " asked for an output of ", ndim, " dimensions; there are at most ", max_dims);
    Dims sizes;
    for (Py_ssize_t i = 0; i < ndim; ++i) {
      long long size = PyLong_AsLongLong(PyTuple_GET_ITEM(arguments, i));
      if (size == -1 && PyErr_Occurred()) return nullptr;
      sizes.push_back(size);
    }
    check_chosen_sizes(*call, 0, sizes);
    output.sizes = std::move(sizes);
    output.tensor = empty(output.sizes, output.dtype, call->device);
    return Py_NewRef(as_object(output.tensor.get()));
  });
}

PyMethodDef allocate_definition = {"allocate", allocate, METH_VARARGS,
                                   "allocate(*sizes)\n\nAllocate the result with these sizes, and return it."};

Ref<> first_argument(Call& call, Ref<>& capsule) {
  if (call.op.tags & tag_data_dependent) {
    capsule = owned(PyCapsule_New(&call, "candelabra.call", nullptr));
    return owned(PyCFunction_New(&allocate_definition, capsule.get()));
  }
  if (call.output_count == 0) return Ref<>::borrow(Py_None);
  if (call.output_count == 1) return output_object(call.outputs[0]);
  Ref<> outputs = owned(PyTuple_New(call.output_count));
  for (int k = 0; k < call.output_count; ++k)
    PyTuple_SET_ITEM(outputs.get(), k, output_object(call.outputs[k]).release());
  return outputs;
}

// The arguments as the kernel sees them, after `first`. Without it they are those of a
// decomposition, which also gets the device.
Ref<> arguments_tuple(Call& call, Ref<> first) {
  const int before = first ? 1 : 0;
  Ref<> arguments = owned(PyTuple_New(call.argument_count + before));
  if (first) PyTuple_SET_ITEM(arguments.get(), 0, first.release());
  for (int i = 0; i < call.argument_count; ++i) {
    const bool is_device = call.op.schema.parameters[static_cast<size_t>(i)].type == ParameterType::Device;
    Ref<> object = is_device && before == 0 ? owned(device_object(call.device)) : argument_object(call[i]);
    PyTuple_SET_ITEM(arguments.get(), i + before, object.release());
  }
  return arguments;
}

// Calls a function with the random numbers reserved for the call, without recording. Null with a
// Python error if it raises.
Ref<> call_unrecorded(Call& call, PyObject* function, const Ref<>& arguments) {
  Ref<> keywords;
  if (call.op.tags & tag_random) {
    refuse_recording("a decomposition or a kernel in Python takes random numbers");
    const GeneratorState taken = take_random_numbers(call);
    keywords = owned(Py_BuildValue("{s:K,s:K}", "seed", static_cast<unsigned long long>(taken.seed), "offset",
                                   static_cast<unsigned long long>(taken.offset)));
  }
  const NoGrad no_grad;
  return Ref<>(PyObject_Call(function, arguments.get(), keywords.get()));
}

}  // namespace

void call_python_kernel(Call& call, PyObject* function) {
  refuse_recording("a kernel in Python computes");
  Ref<> capsule;
  const Ref<> arguments = arguments_tuple(call, first_argument(call, capsule));
  const Ref<> result = call_unrecorded(call, function, arguments);
  // a kernel that kept allocate() gets an error when it calls it later
  if (capsule) PyCapsule_SetName(capsule.get(), "candelabra.finished_call");
  if (!result) {
    // numpy() and the buffer protocol raise these for memory that the host cannot read.
    const bool may_lack_address =
        !device_type(call.device).has(CB_CAP_HOST_MEMORY) &&
        (PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_BufferError));
    note_python_error(text("in the kernel of ", call.name(), " for device ", to_text(call.device), ", from ",
                           device_type(call.device).distribution,
                           may_lack_address
                               ? "; the host cannot read the memory of this device: a kernel in Python reads "
                                 "a tensor by a.to(\"cpu\") and writes one by out.copy_()"
                               : ""));
    throw PythonError();
  }
  if (call.op.tags & tag_data_dependent) {
    check(static_cast<bool>(call.outputs[0].tensor), PyExc_RuntimeError, call.name(),
          "(): the kernel did not call allocate()");
  }
}

Ref<> call_decomposition(Call& call, PyObject* function) {
  const Ref<> arguments = arguments_tuple(call, Ref<>());
  Ref<> result;
  {
    // The hooks of this thread have seen the call; its parts are not theirs.
    const NoDispatchHook unhooked;
    result = call_unrecorded(call, function, arguments);
  }
  if (!result) {
    note_python_error(text("in the decomposition of ", call.name(), " for device ", to_text(call.device)));
    throw PythonError();
  }
  return result;
}

}  // namespace candelabra
