// Exchanging what two tensors are, as torch.utils.swap_tensors() does: the Python objects stay.
#include <unordered_map>

#include "python/errors.hpp"
#include "tensor/tensor.hpp"
#include "tensor/tensor_type.hpp"

namespace candelabra {

std::atomic<bool> any_swapped{false};

namespace {

// The numbers of tensors that were swapped. Others have their addresses, which are even.
std::unordered_map<const TensorObject*, uint64_t>& numbers() {
  static std::unordered_map<const TensorObject*, uint64_t> made;
  return made;
}

void give_new_number(const TensorObject* tensor) {
  static uint64_t last = 1;
  numbers()[tensor] = last += 2;
}

void check_weak_references(const TensorObject* tensor, const char* name) {
  check(!tensor->weakrefs, PyExc_RuntimeError, "Cannot swap ", name, " because it has weakref associated with it");
}

// Instances of both classes are laid out alike: one may become the other.
bool are_alike(const PyTypeObject* a, const PyTypeObject* b) {
  return a->tp_basicsize == b->tp_basicsize && a->tp_dictoffset == b->tp_dictoffset &&
         a->tp_basicsize == tensor_type->tp_basicsize;
}

void swap_members(TensorObject* a, TensorObject* b) {
  std::swap(a->storage, b->storage);
  std::swap(a->offset, b->offset);
  std::swap(a->numel, b->numel);
  std::swap(a->sizes, b->sizes);
  std::swap(a->strides, b->strides);
  std::swap(a->dtype, b->dtype);
  std::swap(a->contiguous, b->contiguous);
  std::swap(a->requires_grad, b->requires_grad);
  std::swap(a->retains_grad, b->retains_grad);
  std::swap(a->inference, b->inference);
  std::swap(a->unrecorded_view, b->unrecorded_view);
  std::swap(a->one_of_views, b->one_of_views);
  std::swap(a->output_number, b->output_number);
  std::swap(a->history, b->history);
  std::swap(a->grad, b->grad);
  std::swap(a->grad_fn, b->grad_fn);
  std::swap(a->base, b->base);
  std::swap(a->shape, b->shape);
  std::swap(a->dict, b->dict);
}

}  // namespace

// Hooks of gradients stay, because the tape knows a leaf by its object.
PyObject* swap_with(PyObject* self, PyObject* other) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    check(is_tensor(other), PyExc_TypeError, "_swap(): expected a Tensor, not ", Py_TYPE(other)->tp_name);
    TensorObject *a = as_tensor(self), *b = as_tensor(other);
    if (a == b) Py_RETURN_NONE;
    check_weak_references(a, "t1");
    check_weak_references(b, "t2");
    PyTypeObject *type = Py_TYPE(self), *type_of_other = Py_TYPE(other);
    check(type == type_of_other || are_alike(type, type_of_other), PyExc_RuntimeError,
          "Cannot swap t1 and t2 if they have different slots");
    swap_members(a, b);
    Py_SET_TYPE(self, type_of_other);
    Py_SET_TYPE(other, type);
    track(a);
    track(b);
    give_new_number(a);
    give_new_number(b);
    any_swapped = true;
    Py_RETURN_NONE;
  });
}

PyObject* number_of(PyObject* self) {
  const auto found = numbers().find(as_tensor(self));
  return found == numbers().end() ? PyLong_FromVoidPtr(self) : PyLong_FromUnsignedLongLong(found->second);
}

void forget_number(const TensorObject* tensor) {
  numbers().erase(tensor);
}

}  // namespace candelabra
