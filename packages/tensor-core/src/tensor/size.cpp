// candelabra.Size: the shape of a tensor, a tuple of ints with numel().
#include <string>

#include "interop/interop.hpp"

namespace candelabra {

namespace {

PyTypeObject size_type = {};  // filled in by init_size

// A free list of deallocated Size objects, by length, for the next tensor.shape. A Size holds only
// ints, so it cannot be part of a reference cycle, and the garbage collector need not track it.
class SizeFreeList {
 public:
  PyObject* pop(Py_ssize_t length) {
    if (length == 0 || length > max_length || counts_[length] == 0) return nullptr;
    PyObject* size = slots_[length][--counts_[length]];
    Py_SET_REFCNT(size, 1);
    return size;
  }
  // Returns whether the list took it.
  bool push(PyObject* size, Py_ssize_t length) {
    if (length == 0 || length > max_length || counts_[length] == max_count) return false;
    slots_[length][counts_[length]++] = size;
    return true;
  }

 private:
  static constexpr Py_ssize_t max_length = 6;
  static constexpr int max_count = 16;
  PyObject* slots_[max_length + 1][max_count];
  int counts_[max_length + 1] = {};
};
SizeFreeList free_sizes;

// A Size with this many null entries, or null if out of memory.
PyObject* new_size(Py_ssize_t length) {
  PyObject* made = free_sizes.pop(length);
  if (!made) {
    PyTupleObject* tuple = PyObject_GC_NewVar(PyTupleObject, &size_type, length);
    if (!tuple) return nullptr;
    for (Py_ssize_t i = 0; i < length; ++i) tuple->ob_item[i] = nullptr;
    made = reinterpret_cast<PyObject*>(tuple);
  }
#if PY_VERSION_HEX >= 0x030E0000  // tuples cache their hash
  reinterpret_cast<PyTupleObject*>(made)->ob_hash = -1;
#endif
  return made;
}

// Subclasses call this from their own deallocation.
void size_dealloc(PyObject* self) {
  const Py_ssize_t length = PyTuple_GET_SIZE(self);
  if (!Py_IS_TYPE(self, &size_type)) return PyTuple_Type.tp_dealloc(self);
  if (PyObject_GC_IsTracked(self)) PyObject_GC_UnTrack(self);
  for (Py_ssize_t i = 0; i < length; ++i) {
    Py_XDECREF(PyTuple_GET_ITEM(self, i));
    PyTuple_SET_ITEM(self, i, nullptr);
  }
  if (!free_sizes.push(self, length)) PyObject_GC_Del(self);
}

PyObject* size_from_tuple(PyObject* tuple) {
  // Converts a plain tuple, returned by a method of tuple, to a Size. Steals the reference; passes
  // null through.
  if (!tuple || !PyTuple_CheckExact(tuple)) return tuple;
  const Ref<> plain(tuple);
  const Py_ssize_t count = PyTuple_GET_SIZE(tuple);
  PyObject* result = new_size(count);
  if (!result) return nullptr;
  for (Py_ssize_t i = 0; i < count; ++i) PyTuple_SET_ITEM(result, i, Py_NewRef(PyTuple_GET_ITEM(tuple, i)));
  return result;
}

PyObject* size_new(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  const Ref<> made(PyTuple_Type.tp_new(type, arguments, keywords));
  if (!made) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(made.get()); ++i) {
    PyObject* entry = PyTuple_GET_ITEM(made.get(), i);
    if (PyLong_Check(entry)) continue;
    PyObject* integer = PyIndex_Check(entry) ? PyNumber_Index(entry) : nullptr;
    if (!integer) {
      PyErr_Clear();
      PyErr_Format(PyExc_TypeError, "candelabra.Size() takes an iterable of 'int' (item %zd is '%.200s')", i,
                   Py_TYPE(entry)->tp_name);
      return nullptr;
    }
    // Not PyTuple_SetItem, which rejects a tuple with more than one reference. This tuple is not
    // shared yet.
    PyTuple_SET_ITEM(made.get(), i, integer);
    Py_DECREF(entry);
  }
  return Py_NewRef(made.get());
}

PyObject* size_repr(PyObject* self) {
  std::string text = "candelabra.Size([";
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
    const Ref<> entry(PyObject_Repr(PyTuple_GET_ITEM(self, i)));
    const char* characters = entry ? PyUnicode_AsUTF8(entry.get()) : nullptr;
    if (!characters) return nullptr;
    if (i) text += ", ";
    text += characters;
  }
  text += "])";
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

PyObject* size_subscript(PyObject* self, PyObject* key) {
  return size_from_tuple(PyTuple_Type.tp_as_mapping->mp_subscript(self, key));
}
PyObject* size_repeat(PyObject* self, Py_ssize_t times) {
  // For `size * 1`, tuple returns the object itself only for exact tuples. So this is always a new
  // plain tuple.
  return size_from_tuple(PyTuple_Type.tp_as_sequence->sq_repeat(self, times));
}

// Handles both operand orders, so that (1,) + size is a Size too.
PyObject* size_add(PyObject* left, PyObject* right) {
  if (!PyTuple_Check(left) || !PyTuple_Check(right)) Py_RETURN_NOTIMPLEMENTED;
  return size_from_tuple(PyTuple_Type.tp_as_sequence->sq_concat(left, right));
}

PyObject* size_numel(PyObject* self, PyObject*) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    Ref<> total = owned(PyLong_FromLong(1));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
      total = owned(PyNumber_Multiply(total.get(), PyTuple_GET_ITEM(self, i)));
    }
    return total.release();
  });
}

PyMethodDef size_methods[] = {
    {"numel", size_numel, METH_NOARGS, "numel() -> int\n\nThe number of elements of a tensor of this size."},
    {nullptr, nullptr, 0, nullptr},
};

PyNumberMethods size_number{};
PySequenceMethods size_sequence{};
PyMappingMethods size_mapping{};

}  // namespace

PyObject* size_object(std::span<const int64_t> sizes) {
  PyObject* result = new_size(static_cast<Py_ssize_t>(sizes.size()));
  if (!result) throw PythonError();
  for (size_t i = 0; i < sizes.size(); ++i) {
    PyObject* entry = PyLong_FromLongLong(sizes[i]);
    if (!entry) {
      Py_DECREF(result);
      throw PythonError();
    }
    PyTuple_SET_ITEM(result, static_cast<Py_ssize_t>(i), entry);
  }
  return result;
}

namespace {

bool has_sizes(PyObject* size, const Dims& sizes) {
  if (PyTuple_GET_SIZE(size) != sizes.size()) return false;
  for (int i = 0; i < sizes.size(); ++i) {
    if (PyLong_AsLongLong(PyTuple_GET_ITEM(size, i)) != sizes[i]) return false;
  }
  return true;
}

}  // namespace

PyObject* shape_object(TensorObject& tensor) {
  if (!tensor.shape || !has_sizes(tensor.shape, tensor.sizes)) Py_XSETREF(tensor.shape, size_object(tensor.sizes));
  return Py_NewRef(tensor.shape);
}

bool is_size_object(PyObject* object) {
  return PyObject_TypeCheck(object, &size_type);
}

bool init_size(PyObject* module) {
  size_number.nb_add = size_add;
  size_sequence.sq_repeat = size_repeat;
  size_mapping.mp_subscript = size_subscript;
  Py_SET_REFCNT(reinterpret_cast<PyObject*>(&size_type), 1);
  size_type.tp_name = "candelabra.Size";
  size_type.tp_doc = "The shape of a tensor: a tuple of ints with numel().";
  size_type.tp_basicsize = PyTuple_Type.tp_basicsize;
  size_type.tp_itemsize = PyTuple_Type.tp_itemsize;
  size_type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  size_type.tp_base = &PyTuple_Type;
  size_type.tp_new = size_new;
  size_type.tp_dealloc = size_dealloc;
  size_type.tp_repr = size_repr;
  size_type.tp_methods = size_methods;
  size_type.tp_as_number = &size_number;
  size_type.tp_as_sequence = &size_sequence;
  size_type.tp_as_mapping = &size_mapping;
  return PyType_Ready(&size_type) == 0 &&
         PyModule_AddObjectRef(module, "Size", reinterpret_cast<PyObject*>(&size_type)) == 0;
}

}  // namespace candelabra
