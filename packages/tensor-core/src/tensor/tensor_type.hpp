// The parts of the Tensor type that are in files of their own.
#pragma once

#include <structmember.h>

#include <atomic>

#include "tensor/tensor.hpp"

namespace candelabra {

extern PyGetSetDef tensor_attributes[];  // tensor_attributes.cpp
// tensor_attributes.cpp: its own methods and those of interop.hpp
extern PyMethodDef tensor_methods[];
void init_tensor_methods();  // fills tensor_methods; call before the type is created

// Call when a tensor starts to refer to other Python objects, so that the garbage collector finds
// cycles.
void track(TensorObject* tensor);
// Creates an instance of a subclass on the memory of `data`.
TensorRef make_subclass(PyTypeObject* type, TensorObject* data);

// swapping.cpp: exchanges what two tensors are; the number of a tensor, which a swap changes.
PyObject* swap_with(PyObject* self, PyObject* other);
PyObject* number_of(PyObject* self);
extern std::atomic<bool> any_swapped;
void forget_number(const TensorObject* tensor);

// Called the first time that requires_grad becomes true: loads candelabra.autograd, if it is
// installed.
void load_autograd();
// tensor.requires_grad = True
void ask_for_gradients(TensorObject* tensor);
// Functions of Python that candelabra and candelabra.autograd set (module.cpp).
void set_legacy_constructor(PyObject* function);
void set_view_history(PyObject* function);
void set_autograd_loader(PyObject* load);
extern PyMethodDef grad_functions[];
// The edge along which a tensor's gradient flows (Tensor._edge): new reference.
PyObject* tensor_edge(PyObject* self);
// Whether a tensor is a plain gradient of a leaf: of its dtype, shape and device, not recorded.
bool is_gradient_for(const TensorObject& grad, const TensorObject& leaf);
// Whether such a gradient may become the leaf's without a copy: nobody else sees its memory, and it
// is laid out like the leaf. The caller counts the references to the gradient itself.
bool is_exclusive_for(const TensorObject& grad, const TensorObject& leaf);
extern PyMethodDef tape_functions[];           // tape/tape_nodes.cpp
extern PyMethodDef leaf_edge_functions[];      // tape/leaf_edges.cpp
extern PyMethodDef gradient_functions[];       // tape/module_parameters.cpp
bool init_grad_switch(PyObject* module);       // tape/grad_mode.cpp
bool init_gradient_buckets(PyObject* module);  // tape/gradient_buckets.cpp

PyObject* tensor_compare(PyObject* a, PyObject* b, int operation);

// The operators behind Python's number slots (tensor_numbers.cpp).
namespace number_slots {
PyObject* add(PyObject*, PyObject*);
PyObject* subtract(PyObject*, PyObject*);
PyObject* multiply(PyObject*, PyObject*);
PyObject* true_divide(PyObject*, PyObject*);
PyObject* floor_divide(PyObject*, PyObject*);
PyObject* remainder(PyObject*, PyObject*);
PyObject* power(PyObject*, PyObject*, PyObject*);
PyObject* matrix_multiply(PyObject*, PyObject*);
PyObject* bitwise_and(PyObject*, PyObject*);
PyObject* bitwise_or(PyObject*, PyObject*);
PyObject* bitwise_xor(PyObject*, PyObject*);
PyObject* left_shift(PyObject*, PyObject*);
PyObject* right_shift(PyObject*, PyObject*);
PyObject* negative(PyObject*);
PyObject* positive(PyObject*);
PyObject* absolute(PyObject*);
PyObject* invert(PyObject*);
PyObject* inplace_add(PyObject*, PyObject*);
PyObject* inplace_subtract(PyObject*, PyObject*);
PyObject* inplace_multiply(PyObject*, PyObject*);
PyObject* inplace_true_divide(PyObject*, PyObject*);
PyObject* inplace_floor_divide(PyObject*, PyObject*);
PyObject* inplace_remainder(PyObject*, PyObject*);
PyObject* inplace_power(PyObject*, PyObject*, PyObject*);
PyObject* inplace_and(PyObject*, PyObject*);
PyObject* inplace_or(PyObject*, PyObject*);
PyObject* inplace_xor(PyObject*, PyObject*);
}  // namespace number_slots

}  // namespace candelabra
