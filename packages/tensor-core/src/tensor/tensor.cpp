// The Tensor type: creation, deallocation, and constructors of new tensors.
#include "tensor/tensor.hpp"
#include "dispatch/watched_members.hpp"

#include "dispatch/call.hpp"
#include "interop/interop.hpp"
#include "shapes/shapes.hpp"
#include "tensor/indexing.hpp"
#include "tensor/tensor_type.hpp"

namespace candelabra {

PyTypeObject* tensor_type = nullptr;
thread_local GradMode grad_mode;

namespace {

// A free list of tensors of exactly this type: every operator result needs one.
constexpr int free_limit = 256;
TensorObject* free_list[free_limit];
int free_count = 0;

void construct(TensorObject* tensor) {
  tensor->storage = nullptr;
  new (&tensor->sizes) Dims();
  new (&tensor->strides) Dims();
  tensor->requires_grad = tensor->retains_grad = false;
  tensor->inference = grad_mode.inference;
  tensor->unrecorded_view = tensor->one_of_views = false;
  tensor->output_number = 0;
  tensor->history = 0;
  tensor->grad = tensor->grad_fn = tensor->base = tensor->hooks = tensor->dict = tensor->weakrefs = tensor->shape =
      nullptr;
}

// The garbage collector does not track a new tensor. track() is called once it refers to other
// objects.
TensorObject* allocate() {
  if (free_count > 0) {
    TensorObject* tensor = free_list[--free_count];
    PyObject_Init(as_object(tensor), tensor_type);
    construct(tensor);
    return tensor;
  }
  TensorObject* tensor = PyObject_GC_New(TensorObject, tensor_type);
  if (!tensor) throw PythonError();
  construct(tensor);
  return tensor;
}

int tensor_clear(PyObject* self) {
  TensorObject* tensor = as_tensor(self);
  Py_CLEAR(tensor->grad);
  Py_CLEAR(tensor->grad_fn);
  Py_CLEAR(tensor->base);
  Py_CLEAR(tensor->hooks);
  Py_CLEAR(tensor->dict);
  return 0;
}

int tensor_traverse(PyObject* self, visitproc visit, void* arg) {
  TensorObject* tensor = as_tensor(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(tensor->grad);
  Py_VISIT(tensor->grad_fn);
  Py_VISIT(tensor->base);
  Py_VISIT(tensor->hooks);
  Py_VISIT(tensor->dict);
  return 0;
}

void tensor_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  // Frees a chain of tensors and autograd nodes of any length without recursion.
  Py_TRASHCAN_BEGIN(self, tensor_dealloc);
  TensorObject* tensor = as_tensor(self);
  if (tensor->weakrefs) PyObject_ClearWeakRefs(self);
  if (any_swapped.load(std::memory_order_relaxed)) [[unlikely]]
    forget_number(tensor);
  tensor_clear(self);
  Py_CLEAR(tensor->shape);
  if (tensor->storage) release(std::exchange(tensor->storage, nullptr));
  tensor->sizes.~Dims();
  tensor->strides.~Dims();
  if (type == tensor_type && free_count < free_limit) {
    free_list[free_count++] = tensor;
  } else {
    type->tp_free(self);
  }
  Py_DECREF(type);
  Py_TRASHCAN_END;
}

// Called for unusual arguments of Tensor(...); set from Python.
PyObject* legacy_constructor = nullptr;

bool is_usual(PyObject* first) {
  return is_tensor(first) || PyLong_CheckExact(first) || PyList_Check(first) || PyTuple_Check(first) ||
         is_size_object(first);
}

// Tensor(), Tensor(2, 3), Tensor([1., 2.]), Tensor(tensor): PyTorch's legacy constructor, which
// uses the default dtype.
PyObject* tensor_new(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    Py_ssize_t count = PyTuple_GET_SIZE(arguments);
    TensorRef data;
    PyObject* first = count == 1 ? PyTuple_GET_ITEM(arguments, 0) : nullptr;
    // The legacy constructor fills new memory where that is asked for.
    if (shapes::fill_uninitialized_memory() || (keywords && PyDict_GET_SIZE(keywords) > 0) ||
        (first && !is_usual(first))) {
      check(legacy_constructor, PyExc_TypeError, "Tensor() takes sizes, a sequence or a tensor");
      const Ref<> made = owned(PyObject_Call(legacy_constructor, arguments, keywords));
      check(is_tensor(made.get()), PyExc_TypeError, "the legacy constructor returned no tensor");
      data = TensorRef::borrow(as_tensor(made.get()));
    } else if (first && is_tensor(first)) {
      data = make_alias(as_tensor(first));
    } else if (first && !PyLong_Check(first) && !is_size_object(first)) {
      data = tensor_from_data(first, default_dtype(), std::nullopt);
    } else {
      Dims sizes;
      if (first && is_size_object(first)) {
        arguments = first;
        count = PyTuple_GET_SIZE(arguments);
      } else if (count == 0) {
        sizes.push_back(0);
      }
      for (Py_ssize_t i = 0; i < count; ++i) {
        long long size = PyLong_AsLongLong(PyTuple_GET_ITEM(arguments, i));
        if (size == -1 && PyErr_Occurred()) throw PythonError();
        check(size >= 0, PyExc_RuntimeError, "Trying to create tensor with negative dimension ", size);
        sizes.push_back(size);
      }
      data = empty(sizes, default_dtype(), default_device());
    }
    return type == tensor_type ? data.release_object() : make_subclass(type, data.get()).release_object();
  });
}

// Instance attributes may form a reference cycle through the tensor.
int tensor_setattr(PyObject* self, PyObject* name, PyObject* value) {
  const int status = PyObject_GenericSetAttr(self, name, value);
  if (as_tensor(self)->dict) track(as_tensor(self));
  return status;
}

PyMemberDef tensor_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weakrefs), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(TensorObject, dict), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

}  // namespace

void track(TensorObject* tensor) {
  if (!PyObject_GC_IsTracked(as_object(tensor))) PyObject_GC_Track(as_object(tensor));
}

TensorRef make_subclass(PyTypeObject* type, TensorObject* data) {
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) throw PythonError();
  TensorObject* tensor = as_tensor(self);
  construct(tensor);
  tensor->storage = retain(data->storage);
  tensor->dtype = data->dtype;
  tensor->inference = data->inference;
  set_geometry(*tensor, data->sizes, data->strides, data->offset);
  return TensorRef(tensor);
}

void set_geometry(TensorObject& tensor, Dims sizes, Dims strides, int64_t offset) {
  // Shape rules need not ask: no tensor passes by here.
  check(sizes.size() <= max_dims, PyExc_RuntimeError, "a tensor has at most ", max_dims, " dimensions, not ",
        sizes.size());
  int64_t expected = 1;
  bool contiguous = true, overflow = false;
  for (int i = sizes.size() - 1; i >= 0; --i) {
    if (sizes[i] != 1) {
      contiguous &= strides[i] == expected;
      overflow |= __builtin_mul_overflow(expected, sizes[i], &expected);
    }
  }
  if (overflow) [[unlikely]]
    expected = product(sizes);  // throws unless the tensor is empty; nothing has been modified yet
  tensor.offset = offset;
  tensor.numel = expected;
  tensor.contiguous = contiguous || expected == 0;
  tensor.sizes = std::move(sizes);
  tensor.strides = std::move(strides);
}

TensorRef make_tensor(Storage* retained, Dtype dtype, Dims sizes, Dims strides, int64_t offset) {
  TensorObject* tensor;
  try {
    tensor = allocate();
  } catch (...) {
    release(retained);
    throw;
  }
  TensorRef made(tensor);
  tensor->storage = retained;
  tensor->dtype = dtype;
  set_geometry(*tensor, std::move(sizes), std::move(strides), offset);
  return made;
}

TensorRef empty(std::span<const int64_t> sizes, Dtype dtype, Device device) {
  Dims strides;
  int count = static_cast<int>(sizes.size());
  strides.resize(count);
  // Fast path: products of small sizes cannot overflow. Others are checked below.
  int64_t numel = 1;
  bool small = true;
  for (int i = count - 1; i >= 0; --i) {
    strides[i] = numel;
    int64_t size = sizes[i];
    small &= size < (int64_t{1} << 30) && numel < (int64_t{1} << 30);
    if (small) numel *= std::max<int64_t>(size, 1);
  }
  if (!small) {
    bool overflow = false;
    int64_t step = 1;
    for (int64_t size : sizes.subspan(1)) overflow |= __builtin_mul_overflow(step, std::max<int64_t>(size, 1), &step);
    const bool is_empty = std::ranges::find(sizes, 0) != sizes.end();
    check(!overflow || !is_empty, PyExc_RuntimeError, "Stride calculation overflowed with sizes=", shown(sizes));
    numel = 0;
    overflow |= !is_empty && __builtin_mul_overflow(step, sizes[0], &numel);
    int64_t bytes = 0;
    check(!overflow && !__builtin_mul_overflow(numel, int64_t{itemsize(dtype)}, &bytes), PyExc_RuntimeError,
          "Storage size calculation overflowed with sizes=", shown(sizes));
    strides = contiguous_strides(sizes);
  } else {
    for (int64_t size : sizes) {
      if (size == 0) numel = 0;
    }
  }
  Storage* storage = make_storage(device, static_cast<size_t>(numel) * itemsize(dtype));
  return make_tensor(storage, dtype, Dims(sizes), std::move(strides), 0);
}

TensorRef empty_strided(std::span<const int64_t> sizes, std::span<const int64_t> strides, Dtype dtype, Device device) {
  int64_t elements = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) {
      elements = 0;
      break;
    }
    int64_t reach;
    check(!__builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) &&
              !__builtin_add_overflow(elements, reach, &elements),
          PyExc_RuntimeError, "Storage size calculation overflowed with sizes=", shown(sizes),
          " and strides=", shown(strides));
  }
  int64_t bytes;
  check(!__builtin_mul_overflow(elements, int64_t{itemsize(dtype)}, &bytes), PyExc_RuntimeError,
        "Storage size calculation overflowed with sizes=", shown(sizes), " and strides=", shown(strides));
  return make_tensor(make_storage(device, static_cast<size_t>(bytes)), dtype, Dims(sizes), Dims(strides), 0);
}

TensorRef make_view(TensorObject* self, Dims sizes, Dims strides, int64_t offset) {
  TensorRef view = make_tensor(retain(self->storage), self->dtype, std::move(sizes), std::move(strides), offset);
  view->inference = self->inference;
  if (self->inference) return view;  // no tape follows its base
  view->base = Py_NewRef(self->base ? self->base : as_object(self));
  view->history = as_tensor(view->base)->history;
  view->unrecorded_view = self->unrecorded_view || !grad_mode.enabled || grad_mode.inference;
  view->one_of_views = self->one_of_views;
  track(view.get());
  return view;
}

TensorRef make_alias(TensorObject* self) {
  TensorRef alias = make_tensor(retain(self->storage), self->dtype, self->sizes, self->strides, self->offset);
  alias->inference = self->inference;
  return alias;
}

bool init_tensor(PyObject* module) {
  watch_attributes(tensor_attributes);
  watch_methods(tensor_methods);
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(tensor_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(tensor_dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(tensor_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(tensor_clear)},
      {Py_tp_members, tensor_members},
      {Py_tp_setattro, reinterpret_cast<void*>(tensor_setattr)},
      {Py_tp_getset, tensor_attributes},
      {Py_tp_methods, tensor_methods},
      {Py_tp_hash, reinterpret_cast<void*>(_Py_HashPointer)},
      {Py_tp_richcompare, reinterpret_cast<void*>(tensor_compare)},
      {Py_tp_iter, reinterpret_cast<void*>(tensor_iter)},
      {Py_mp_length, watched_slot<tensor_len, "__len__">()},
      {Py_mp_subscript, watched_slot<tensor_getitem, "__getitem__">()},
      {Py_mp_ass_subscript, watched_slot<tensor_setitem, "__setitem__">()},
      {Py_sq_contains, watched_slot<tensor_contains, "__contains__">()},
      {Py_bf_getbuffer, reinterpret_cast<void*>(tensor_getbuffer)},
      {Py_bf_releasebuffer, reinterpret_cast<void*>(tensor_releasebuffer)},
      {Py_nb_add, reinterpret_cast<void*>(number_slots::add)},
      {Py_nb_subtract, reinterpret_cast<void*>(number_slots::subtract)},
      {Py_nb_multiply, reinterpret_cast<void*>(number_slots::multiply)},
      {Py_nb_true_divide, reinterpret_cast<void*>(number_slots::true_divide)},
      {Py_nb_floor_divide, reinterpret_cast<void*>(number_slots::floor_divide)},
      {Py_nb_remainder, reinterpret_cast<void*>(number_slots::remainder)},
      {Py_nb_power, reinterpret_cast<void*>(number_slots::power)},
      {Py_nb_matrix_multiply, reinterpret_cast<void*>(number_slots::matrix_multiply)},
      {Py_nb_and, reinterpret_cast<void*>(number_slots::bitwise_and)},
      {Py_nb_or, reinterpret_cast<void*>(number_slots::bitwise_or)},
      {Py_nb_xor, reinterpret_cast<void*>(number_slots::bitwise_xor)},
      {Py_nb_lshift, reinterpret_cast<void*>(number_slots::left_shift)},
      {Py_nb_rshift, reinterpret_cast<void*>(number_slots::right_shift)},
      {Py_nb_negative, reinterpret_cast<void*>(number_slots::negative)},
      {Py_nb_positive, reinterpret_cast<void*>(number_slots::positive)},
      {Py_nb_absolute, reinterpret_cast<void*>(number_slots::absolute)},
      {Py_nb_invert, reinterpret_cast<void*>(number_slots::invert)},
      {Py_nb_inplace_add, reinterpret_cast<void*>(number_slots::inplace_add)},
      {Py_nb_inplace_subtract, reinterpret_cast<void*>(number_slots::inplace_subtract)},
      {Py_nb_inplace_multiply, reinterpret_cast<void*>(number_slots::inplace_multiply)},
      {Py_nb_inplace_true_divide, reinterpret_cast<void*>(number_slots::inplace_true_divide)},
      {Py_nb_inplace_floor_divide, reinterpret_cast<void*>(number_slots::inplace_floor_divide)},
      {Py_nb_inplace_remainder, reinterpret_cast<void*>(number_slots::inplace_remainder)},
      {Py_nb_inplace_power, reinterpret_cast<void*>(number_slots::inplace_power)},
      {Py_nb_inplace_and, reinterpret_cast<void*>(number_slots::inplace_and)},
      {Py_nb_inplace_or, reinterpret_cast<void*>(number_slots::inplace_or)},
      {Py_nb_inplace_xor, reinterpret_cast<void*>(number_slots::inplace_xor)},
      {Py_nb_bool, watched_slot<tensor_bool, "__bool__">()},
      {Py_nb_int, watched_slot<tensor_int, "__int__">()},
      {Py_nb_float, watched_slot<tensor_float, "__float__">()},
      {Py_nb_index, watched_slot<tensor_index, "__index__">()},
      {Py_tp_doc, const_cast<char*>("A multi-dimensional array of elements of one dtype on one device.")},
      {0, nullptr},
  };
  PyType_Spec spec = {"candelabra.Tensor", sizeof(TensorObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
  tensor_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return tensor_type && PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(tensor_type)) == 0;
}

void set_legacy_constructor(PyObject* function) {
  Py_XSETREF(legacy_constructor, Py_NewRef(function));
}

}  // namespace candelabra
