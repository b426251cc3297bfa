// Attributes and methods of Tensor that are about the tensor itself, not operators.
#include <vector>

#include "dispatch/call.hpp"
#include "dispatch/torch_dispatch.hpp"
#include "dispatch/torch_function.hpp"
#include "interop/interop.hpp"
#include "memory/copy_on_write.hpp"
#include "operators/operator.hpp"
#include "record/refuse.hpp"
#include "tensor/tensor_type.hpp"

namespace candelabra {

namespace {

PyObject* const failure = nullptr;
PyObject* autograd_loader = nullptr;
// Whether this thread runs the loader, which must not be started again from inside.
thread_local bool is_loading_autograd = false;
PyObject* view_history = nullptr;  // candelabra.autograd's function that gives a view its history

PyObject* none_or(PyObject* object) {
  return Py_NewRef(object ? object : Py_None);
}

int not_deletable(const char* name) {
  PyErr_Format(PyExc_RuntimeError, "cannot delete '%s' of a Tensor", name);
  return -1;
}

void set_requires_grad(TensorObject* self, bool value) {
  if (requires_grad(self) == value) return;
  check(!value || is_differentiable(self->dtype), PyExc_RuntimeError,
        "Only Tensors of floating point and complex dtype can require gradients, not ", name(self->dtype));
  check(value || self->is_leaf(), PyExc_RuntimeError,
        "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
        "subgraph that "
        "doesn't "
        "require differentiation use var_no_grad = var.detach().");
  check(!value || !self->inference || grad_mode.inference, PyExc_RuntimeError,
        "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  if (value) load_autograd();
  self->requires_grad = value;
}

int set_requires_grad_attribute(PyObject* self, PyObject* value, void*) {
  if (!value) return not_deletable("requires_grad");
  return guarded<>(-1, [&] {
    check(PyBool_Check(value), PyExc_TypeError, "requires_grad must be a bool, not ", Py_TYPE(value)->tp_name);
    TensorObject* tensor = as_tensor(self);
    check(value == Py_False || is_differentiable(tensor->dtype), PyExc_RuntimeError,
          "only Tensors of floating point and complex dtype can require gradients, not ", name(tensor->dtype));
    set_requires_grad(tensor, value == Py_True);
    return 0;
  });
}

// Where the memory is, or where a tensor made by _make_wrapper_subclass() says that it is.
Device apparent_device(TensorObject* tensor) {
  PyObject* const stood_for = device_stood_for(tensor);
  return stood_for ? device_from_object(stood_for) : tensor->device();
}

int set_grad(PyObject* self, PyObject* value, void*) {
  return guarded<>(-1, [&] {
    TensorObject* tensor = as_tensor(self);
    if (!value || value == Py_None) {
      Py_CLEAR(tensor->grad);
      return 0;
    }
    check(is_tensor(value), PyExc_TypeError, "assigned grad expected to be a Tensor or None but got grad of type ",
          Py_TYPE(value)->tp_name);
    TensorObject* grad = as_tensor(value);
    check(value != self, PyExc_RuntimeError, "can't assign Variable as its own grad");
    check(grad->sizes == tensor->sizes, PyExc_RuntimeError, "attempting to assign a gradient of size '",
          to_text(grad->sizes), "' to a tensor of size '", to_text(tensor->sizes),
          "'. Please ensure that the gradient and the tensor are the same size: assigned grad has data of a different "
          "size");
    check(grad->dtype == tensor->dtype, PyExc_RuntimeError,
          "assigned grad has data of a different type: ", name(grad->dtype), " instead of ", name(tensor->dtype));
    const Device device = apparent_device(tensor), device_of_grad = apparent_device(grad);
    check(device_of_grad == device, PyExc_RuntimeError,
          "assigned grad has data located on a different device: ", to_text(device_of_grad), " instead of ",
          to_text(device));
    track(tensor);
    Py_XSETREF(tensor->grad, Py_NewRef(value));
    return 0;
  });
}

// t.data: the same memory, apart from the tape and with a version counter of its own.
PyObject* get_data(PyObject* self, void*) {
  return guarded<>(failure, [&] {
    TensorObject* tensor = as_tensor(self);
    return make_tensor(alias_storage(tensor->storage), tensor->dtype, tensor->sizes, tensor->strides, tensor->offset)
        .release_object();
  });
}

int set_data(PyObject* self, PyObject* value, void*) {
  if (!value) return not_deletable("data");
  return guarded<>(-1, [&] {
    check(is_tensor(value), PyExc_TypeError, "Variable data has to be a tensor, but got ", Py_TYPE(value)->tp_name);
    TensorObject* tensor = as_tensor(self);
    TensorObject* data = as_tensor(value);
    check(!tensor->requires_grad || is_differentiable(data->dtype), PyExc_RuntimeError,
          "data set to a tensor that requires gradients must be floating point or complex dtype, not ",
          name(data->dtype));
    Storage* old = std::exchange(tensor->storage, retain(data->storage));
    tensor->dtype = data->dtype;
    set_geometry(*tensor, data->sizes, data->strides, data->offset);
    release(old);
    return 0;
  });
}

int set_retains_grad(PyObject* self, PyObject* value, void*) {
  if (!value) return not_deletable("retains_grad");
  as_tensor(self)->retains_grad = value == Py_True;
  return 0;
}

int set_hooks(PyObject* self, PyObject* value, void*) {
  TensorObject* tensor = as_tensor(self);
  if (!value || value == Py_None) {
    Py_CLEAR(tensor->hooks);
  } else {
    track(tensor);
    Py_XSETREF(tensor->hooks, Py_NewRef(value));
  }
  return 0;
}

PyObject* size(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded<>(failure, [&]() -> PyObject* {
    TensorObject* tensor = as_tensor(self);
    Py_ssize_t total = count + (names ? PyTuple_GET_SIZE(names) : 0);
    check(total <= 1, PyExc_TypeError, "size() takes at most one argument, dim");
    if (total == 0 || arguments[0] == Py_None) return shape_object(*tensor);
    long long dim = PyLong_AsLongLong(arguments[0]);
    if (dim == -1 && PyErr_Occurred()) return nullptr;
    return PyLong_FromLongLong(tensor->sizes[wrap_dim(dim, tensor->ndim(), false)]);
  });
}

PyObject* stride(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded<>(failure, [&]() -> PyObject* {
    TensorObject* tensor = as_tensor(self);
    Py_ssize_t total = count + (names ? PyTuple_GET_SIZE(names) : 0);
    check(total <= 1, PyExc_TypeError, "stride() takes at most one argument, dim");
    if (total == 1 && arguments[0] != Py_None) {
      long long dim = PyLong_AsLongLong(arguments[0]);
      if (dim == -1 && PyErr_Occurred()) return nullptr;
      return PyLong_FromLongLong(tensor->strides[wrap_dim(dim, tensor->ndim(), false)]);
    }
    Ref<> result = owned(PyTuple_New(tensor->ndim()));
    for (int i = 0; i < tensor->ndim(); ++i) {
      PyTuple_SET_ITEM(result.get(), i, owned(PyLong_FromLongLong(tensor->strides[i])).release());
    }
    return result.release();
  });
}

PyObject* is_contiguous(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded<>(failure, [&]() -> PyObject* {
    Py_ssize_t total = count + (names ? PyTuple_GET_SIZE(names) : 0);
    check(total <= 1, PyExc_TypeError, "is_contiguous() takes at most one argument, memory_format");
    MemoryFormat format = total == 1 ? memory_format_from_object(arguments[0]) : MemoryFormat::Contiguous;
    return PyBool_FromLong(is_in_format(*as_tensor(self), format));
  });
}

PyObject* requires_grad_(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded<>(failure, [&]() -> PyObject* {
    Py_ssize_t total = count + (names ? PyTuple_GET_SIZE(names) : 0);
    check(total <= 1, PyExc_TypeError, "requires_grad_() takes at most one argument, requires_grad");
    bool value = true;
    if (total == 1) {
      check(count == 1 || PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "requires_grad") == 0,
            PyExc_TypeError, "requires_grad_() got an unexpected keyword argument: it takes requires_grad");
      check(PyBool_Check(arguments[0]), PyExc_TypeError,
            "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not ",
            Py_TYPE(arguments[0])->tp_name);
      value = arguments[0] == Py_True;
    }
    set_requires_grad(as_tensor(self), value);
    return Py_NewRef(self);
  });
}

PyObject* set_history(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  if (count < 1 || count > 2) {
    PyErr_SetString(PyExc_TypeError, "_set_history(node, output_number=0)");
    return nullptr;
  }
  TensorObject* tensor = as_tensor(self);
  long number = 0;
  if (count == 2) {
    number = PyLong_AsLong(arguments[1]);
    if (number == -1 && PyErr_Occurred()) return nullptr;
  }
  track(tensor);
  if (tensor->base) tensor->history = as_tensor(tensor->base)->history;
  Py_XSETREF(tensor->grad_fn, Py_NewRef(arguments[0]));
  tensor->output_number = static_cast<int32_t>(number);
  tensor->requires_grad = true;
  tensor->unrecorded_view = false;
  Py_RETURN_NONE;
}

PyObject* clear_history(PyObject* self, PyObject*) {
  TensorObject* tensor = as_tensor(self);
  if (tensor->base) tensor->history = as_tensor(tensor->base)->history;
  Py_CLEAR(tensor->grad_fn);
  tensor->output_number = 0;
  tensor->requires_grad = false;
  Py_RETURN_NONE;
}

PyObject* make_subclass_method(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded<>(failure, [&]() -> PyObject* {
    const Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
    const bool fits = named == 0 || (named == 1 && count == 2 &&
                                     PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "require_grad") == 0);
    count += named;
    check(fits && count >= 2 && count <= 3, PyExc_TypeError, "_make_subclass(cls, data, require_grad=False)");
    check(PyType_Check(arguments[0]) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(arguments[0]), tensor_type),
          PyExc_TypeError, "_make_subclass(): cls must be a subclass of Tensor");
    check(is_tensor(arguments[1]), PyExc_TypeError, "_make_subclass(): data must be a Tensor, not ",
          Py_TYPE(arguments[1])->tp_name);
    TensorRef made = make_subclass(reinterpret_cast<PyTypeObject*>(arguments[0]), as_tensor(arguments[1]));
    if (PyObject* const device = device_stood_for(as_tensor(arguments[1]))) stand_for_device(made.get(), device);
    if (count == 3) {
      int truth = PyObject_IsTrue(arguments[2]);
      if (truth < 0) return nullptr;
      if (truth) set_requires_grad(made.get(), true);
    }
    return made.release_object();
  });
}

// Where the gradient of this tensor goes: None, the tensor itself (a leaf), its node, or a pair of
// the node and the number of the result.
PyObject* get_edge(PyObject* self, void*) {
  return tensor_edge(self);
}

PyObject* get_grad(PyObject* self, void*) {
  const TensorObject* tensor = as_tensor(self);
  if (!tensor->grad && tensor->grad_fn && tensor->requires_grad && !tensor->retains_grad) [[unlikely]] {
    const bool failed = guarded<>(true, [] {
      warn(
          "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
          "populated "
          "during "
          "autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use "
          ".retain_grad() on "
          "the "
          "non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor "
          "instead.");
      return false;
    });
    if (failed) return nullptr;
  }
  return none_or(tensor->grad);
}

PyObject* get_version(PyObject* self, void*) {
  TensorObject* tensor = as_tensor(self);
  if (!tensor->inference) [[likely]]
    return PyLong_FromUnsignedLong(tensor->storage->version);
  PyErr_SetString(PyExc_RuntimeError,
                  "Inference tensors do not track version counter. Inference tensors cannot be saved for backward. "
                  "Please do not use Tensors created in inference mode in computation tracked by autograd. To work "
                  "around this, you can make a clone "
                  "to get a normal tensor and use it in autograd, or use `candelabra.no_grad()` instead of "
                  "`candelabra.inference_mode()`.");
  return nullptr;
}

template <typename Read>
PyObject* after_following(PyObject* self, Read read) {
  return guarded<>(failure, [&]() -> PyObject* {
    follow_base(as_tensor(self));
    return read(as_tensor(self));
  });
}

PyObject* is_like(PyObject* self, PyObject* other) {
  if (!is_tensor(other)) Py_RETURN_FALSE;
  TensorObject *a = as_tensor(self), *b = as_tensor(other);
  return PyBool_FromLong(a->dtype == b->dtype && a->sizes == b->sizes && a->device() == b->device());
}

bool same_layout(const TensorObject& grad, const TensorObject& leaf) {
  if (!is_dense_and_non_overlapping(leaf)) return grad.contiguous;
  for (int i = 0; i < leaf.ndim(); ++i) {
    if (leaf.sizes[i] > 1 && grad.strides[i] != leaf.strides[i]) return false;
  }
  return true;
}

PyObject* is_exclusive(PyObject* self, PyObject* other) {
  if (!is_tensor(other)) Py_RETURN_FALSE;
  const TensorObject &grad = *as_tensor(self), &leaf = *as_tensor(other);
  return PyBool_FromLong(is_gradient_for(grad, leaf) && is_exclusive_for(grad, leaf));
}

PyObject* bump_history(PyObject* self, PyObject*) {
  ++as_tensor(self)->history;
  Py_RETURN_NONE;
}

PyObject* bump_version(PyObject* self, PyObject*) {
  ++as_tensor(self)->storage->version;
  Py_RETURN_NONE;
}

PyMethodDef own_methods[] = {
    {"size", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(size)), METH_FASTCALL | METH_KEYWORDS,
     "size($self, dim=None)\n--\n\nThe sizes, or the size of one dimension."},
    {"stride", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(stride)), METH_FASTCALL | METH_KEYWORDS,
     "stride($self, dim=None)\n--\n\nThe strides in elements, or the stride of one dimension."},
    {"is_contiguous", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(is_contiguous)),
     METH_FASTCALL | METH_KEYWORDS,
     "is_contiguous($self, memory_format=None)\n--\n\nWhether the elements lie in order and without gaps."},
    {"requires_grad_", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(requires_grad_)),
     METH_FASTCALL | METH_KEYWORDS,
     "requires_grad_($self, requires_grad=True)\n--\n\nSet whether operations on this tensor are recorded; returns the "
     "tensor."},
    {"storage_offset", [](PyObject* self, PyObject*) { return PyLong_FromLongLong(as_tensor(self)->offset); },
     METH_NOARGS, "storage_offset($self)\n--\n\nPosition of the first element in the storage, in elements."},
    {"numel", [](PyObject* self, PyObject*) { return PyLong_FromLongLong(as_tensor(self)->numel); }, METH_NOARGS,
     "numel($self)\n--\n\nThe number of elements."},
    {"dim", [](PyObject* self, PyObject*) { return PyLong_FromLong(as_tensor(self)->ndim()); }, METH_NOARGS,
     "dim($self)\n--\n\nThe number of dimensions."},
    {"element_size", [](PyObject* self, PyObject*) { return PyLong_FromLong(itemsize(as_tensor(self)->dtype)); },
     METH_NOARGS, "element_size($self)\n--\n\nBytes of one element."},
    {"_swap", swap_with, METH_O,
     "_swap($self, other, /)\n--\n\nExchange what two tensors are: memory, geometry, place on the tape, attributes and "
     "class."},
    {"data_ptr",
     [](PyObject* self, PyObject*) {
       TensorObject* tensor = as_tensor(self);
       refuse_recording("data_ptr() gives out the address of a tensor");
       make_writable(tensor->storage);
       root_storage(tensor->storage)->is_address_known = true;
       return PyLong_FromVoidPtr(tensor->numel && !is_meta(tensor->device()) ? tensor->data() : nullptr);
     },
     METH_NOARGS, "data_ptr($self)\n--\n\nAddress of the first element on its device."},
    {"untyped_storage", [](PyObject* self, PyObject*) { return storage_object(as_tensor(self)->storage); }, METH_NOARGS,
     "untyped_storage($self)\n--\n\nThe storage that this tensor views."},
    {"is_floating_point",
     [](PyObject* self, PyObject*) { return PyBool_FromLong(is_floating(as_tensor(self)->dtype)); }, METH_NOARGS,
     "is_floating_point($self)\n--\n\nWhether the dtype is a real floating-point one."},
    {"is_complex", [](PyObject* self, PyObject*) { return PyBool_FromLong(is_complex(as_tensor(self)->dtype)); },
     METH_NOARGS, "is_complex($self)\n--\n\nWhether the dtype is complex."},
    {"is_signed", [](PyObject* self, PyObject*) { return PyBool_FromLong(info(as_tensor(self)->dtype).is_signed); },
     METH_NOARGS, "is_signed($self)\n--\n\nWhether values may be negative."},
    {"is_inference", [](PyObject* self, PyObject*) { return PyBool_FromLong(as_tensor(self)->inference); }, METH_NOARGS,
     "is_inference($self)\n--\n\nWhether the tensor was made in inference mode."},
    {"_mark_one_of_views",
     [](PyObject* self, PyObject*) {
       as_tensor(self)->one_of_views = true;
       return Py_NewRef(self);
     },
     METH_NOARGS, "For functions that return several views: this is one of them. Returns the tensor."},
    {"_is_view", [](PyObject* self, PyObject*) { return PyBool_FromLong(as_tensor(self)->base != nullptr); },
     METH_NOARGS, "_is_view($self, /)\n--\n\nWhether the tensor is a view of another."},
    {"_set_history", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(set_history)), METH_FASTCALL,
     "_set_history(node, output_number=0)\n\nFor the tape: this tensor is a result of that node."},
    {"_clear_history", clear_history, METH_NOARGS, "For the tape: this tensor is a leaf that requires no grad."},
    {"_is_like", is_like, METH_O, "_is_like(other)\n\nWhether other is a tensor of the same sizes, dtype and device."},
    {"_is_exclusive", is_exclusive, METH_O,
     "_is_exclusive(leaf)\n\nFor the tape: whether this may become the gradient of leaf without a copy: nobody else "
     "sees its "
     "memory, and it is "
     "laid out like leaf."},
    {"_detached",
     [](PyObject* self, PyObject*) {
       return guarded<>(failure, [&] {
         TensorObject* const tensor = as_tensor(self);
         return (may_be_overridden(self) ? detached_subclass(tensor) : make_alias(tensor)).release_object();
       });
     },
     METH_NOARGS, "For the tape: the same memory and version counter, without a place on the tape."},
    {"_bump_history", bump_history, METH_NOARGS,
     "For the tape: views of this tensor have to work out their history anew."},
    {"_bump_version", bump_version, METH_NOARGS, "For the tape: count a change of the memory."},
    {"__torch_function__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(tensor_torch_function)),
     METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "__torch_function__(func, types, args=(), kwargs=None)\n\nCall func without overrides, and return its results as "
     "instances of the class."},
    {"_make_wrapper_subclass", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(make_wrapper_subclass)),
     METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "_make_wrapper_subclass(cls, size, *, strides, storage_offset, dtype, device, requires_grad, ...)\n\nAn instance "
     "of a subclass without memory, whose __torch_dispatch__ computes all operators."},
    {"_make_subclass", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(make_subclass_method)),
     METH_FASTCALL | METH_KEYWORDS | METH_STATIC,
     "_make_subclass(cls, data, require_grad=False)\n\nAn instance of a subclass on the memory of data."},
};

PyObject* set_grad_enabled(PyObject*, PyObject* value) {
  int truth = PyObject_IsTrue(value);
  if (truth < 0) return nullptr;
  return PyBool_FromLong(std::exchange(grad_mode.enabled, truth != 0));
}

PyObject* set_inference_mode(PyObject*, PyObject* value) {
  int truth = PyObject_IsTrue(value);
  if (truth < 0) return nullptr;
  return PyBool_FromLong(std::exchange(grad_mode.inference, truth != 0));
}

}  // namespace

bool is_gradient_for(const TensorObject& grad, const TensorObject& leaf) {
  return Py_TYPE(&grad) == tensor_type && !grad.requires_grad && grad.dtype == leaf.dtype && grad.sizes == leaf.sizes &&
         grad.device() == leaf.device();
}

bool is_exclusive_for(const TensorObject& grad, const TensorObject& leaf) {
  // Nobody else sees the memory: neither another tensor, nor somebody who holds the base of this
  // view.
  const bool alone =
      grad.storage->references == 1 || (grad.storage->references == 2 && grad.base && Py_REFCNT(grad.base) == 1);
  return alone && same_layout(grad, leaf);
}

PyObject* tensor_edge(PyObject* self) {
  return guarded<>(failure, [&]() -> PyObject* {
    TensorObject* tensor = as_tensor(self);
    if (!requires_grad(tensor)) Py_RETURN_NONE;
    if (!tensor->grad_fn) return Py_NewRef(self);
    if (tensor->output_number == 0) return Py_NewRef(tensor->grad_fn);
    return Py_BuildValue("Oi", tensor->grad_fn, tensor->output_number);
  });
}

void update_history(TensorObject* view) {
  view->history = as_tensor(view->base)->history;
  if (view_history) owned(PyObject_CallOneArg(view_history, as_object(view)));
}

void load_autograd() {
  if (!autograd_loader || is_loading_autograd) [[likely]]
    return;
  // The loader stays until it returns True. A thread that comes earlier calls it too, and waits in
  // Python's import lock: without the tape, its gradients would be lost without an error.
  struct Loading {
    Loading() { is_loading_autograd = true; }
    ~Loading() { is_loading_autograd = false; }
  };
  const Ref<> loader = Ref<>::borrow(autograd_loader);
  Ref<> done;
  {
    const Loading loading;
    done = owned(PyObject_CallNoArgs(loader.get()));
  }
  if (done.get() == Py_True && autograd_loader == loader.get()) Py_CLEAR(autograd_loader);
}

PyMethodDef grad_functions[] = {
    {"set_grad_enabled", set_grad_enabled, METH_O, "Turn recording on this thread on or off; returns what it was."},
    {"is_grad_enabled", [](PyObject*, PyObject*) { return PyBool_FromLong(grad_mode.enabled); }, METH_NOARGS,
     "Whether operations on this thread are recorded."},
    {"set_inference_mode", set_inference_mode, METH_O,
     "Turn inference mode of this thread on or off; returns what it was."},
    {"is_inference_mode_enabled", [](PyObject*, PyObject*) { return PyBool_FromLong(grad_mode.inference); },
     METH_NOARGS, "Whether inference mode is on in this thread."},
    {nullptr, nullptr, 0, nullptr},
};

void set_view_history(PyObject* function) {
  Py_XSETREF(view_history, Py_NewRef(function));
}

void set_autograd_loader(PyObject* load) {
  Py_XSETREF(autograd_loader, Py_NewRef(load));
}

void ask_for_gradients(TensorObject* tensor) {
  set_requires_grad(tensor, true);
}

static PyObject* get_dict(PyObject* self, void*) {
  track(as_tensor(self));
  return PyObject_GenericGetDict(self, nullptr);
}

static int set_dict(PyObject* self, PyObject* value, void*) {
  track(as_tensor(self));
  return PyObject_GenericSetDict(self, value, nullptr);
}

PyGetSetDef tensor_attributes[] = {
    {"_cdata", [](PyObject* self, void*) { return number_of(self); }, nullptr,
     "A number of the tensor's own, which a swap with another changes.", nullptr},
    {"shape", [](PyObject* self, void*) { return guarded<>(failure, [&] { return shape_object(*as_tensor(self)); }); },
     nullptr, "The sizes of the dimensions.", nullptr},
    {"dtype", [](PyObject* self, void*) { return Py_NewRef(dtype_object(as_tensor(self)->dtype)); }, nullptr,
     "The type of the elements.", nullptr},
    {"device",
     [](PyObject* self, void*) {
       PyObject* const device = device_stood_for(as_tensor(self));
       return device ? Py_NewRef(device) : device_object(as_tensor(self)->device());
     },
     nullptr, "Where the memory is.", nullptr},
    {"is_meta",
     [](PyObject* self, void*) {
       return PyBool_FromLong(is_meta(as_tensor(self)->device()) && !device_stood_for(as_tensor(self)));
     },
     nullptr, "Whether the tensor has no memory: it is on the device ``meta``.", nullptr},
    {"ndim", [](PyObject* self, void*) { return PyLong_FromLong(as_tensor(self)->ndim()); }, nullptr,
     "The number of dimensions.", nullptr},
    {"itemsize", [](PyObject* self, void*) { return PyLong_FromLong(itemsize(as_tensor(self)->dtype)); }, nullptr,
     "Bytes of one element.", nullptr},
    {"nbytes",
     [](PyObject* self, void*) {
       return PyLong_FromLongLong(as_tensor(self)->numel * itemsize(as_tensor(self)->dtype));
     },
     nullptr, "Bytes of all elements.", nullptr},
    {"requires_grad",
     [](PyObject* self, void*) {
       return after_following(self, [](TensorObject* it) { return PyBool_FromLong(it->requires_grad); });
     },
     set_requires_grad_attribute, "Whether operations on this tensor are recorded for gradients.", nullptr},
    {"grad", get_grad, set_grad, "The gradient, or None.", nullptr},
    {"_edge", get_edge, nullptr, "For the tape: where the gradient of this tensor goes.", nullptr},
    {"grad_fn",
     [](PyObject* self, void*) { return after_following(self, [](TensorObject* it) { return none_or(it->grad_fn); }); },
     nullptr, "The tape entry that made this tensor; None for a leaf.", nullptr},
    {"is_leaf",
     [](PyObject* self, void*) {
       return after_following(self, [](TensorObject* it) { return PyBool_FromLong(it->is_leaf()); });
     },
     nullptr, "Whether no recorded operation made this tensor.", nullptr},
    {"output_nr",
     [](PyObject* self, void*) {
       return after_following(self, [](TensorObject* it) { return PyLong_FromLong(it->output_number); });
     },
     nullptr, "Which result of grad_fn this is.", nullptr},
    {"retains_grad", [](PyObject* self, void*) { return PyBool_FromLong(as_tensor(self)->retains_grad); },
     set_retains_grad, "Whether backward() keeps the gradient of this tensor though it is no leaf.", nullptr},
    {"data", get_data, set_data, "The same memory, apart from the tape.", nullptr},
    {"_version", get_version, nullptr, "How often the memory was changed in place.", nullptr},
    {"_grad", [](PyObject* self, void*) { return none_or(as_tensor(self)->grad); }, set_grad,
     "grad, without the warning where the tensor is no leaf.", nullptr},
    {"_base", [](PyObject* self, void*) { return none_or(as_tensor(self)->base); }, nullptr,
     "The tensor this is a view of, or None.", nullptr},
    {"_hooks", [](PyObject* self, void*) { return none_or(as_tensor(self)->hooks); }, set_hooks,
     "Belongs to candelabra.autograd.", nullptr},
    {"__dict__", get_dict, set_dict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef tensor_methods[64] = {};  // watch_methods() has as many callers

void init_tensor_methods() {
  size_t count = 0;
  for (const PyMethodDef& method : own_methods) tensor_methods[count++] = method;
  for (const PyMethodDef* method = interop_methods; method->ml_name; ++method) tensor_methods[count++] = *method;
}

}  // namespace candelabra
