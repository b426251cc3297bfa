#include "dispatch/torch_dispatch.hpp"

#include <structmember.h>

#include <vector>

#include "dispatch/protocols.hpp"
#include "dispatch/torch_function.hpp"
#include "tensor/tensor_type.hpp"

namespace candelabra {

namespace {

PyObject* const failure = nullptr;

constinit InternedOnce protocol{"__torch_dispatch__"};
constinit InternedOnce device_key{"_device_stood_for"};
PyObject* disabled_implementation = nullptr;
// Whether neither modes nor classes of this thread are asked.
thread_local bool is_disabled = false;

constinit thread_local ModeStack modes;

// Neither modes nor classes are asked for as long as this object lives.
class DispatchDisabled {
 public:
  DispatchDisabled() : before_(is_disabled) { is_disabled = true; }
  DispatchDisabled(const DispatchDisabled&) = delete;
  DispatchDisabled& operator=(const DispatchDisabled&) = delete;
  ~DispatchDisabled() { is_disabled = before_; }

 private:
  bool before_;
};

// The tensors that compute operators, one of each class; those of subclasses first.
std::vector<Ref<>> dispatching(const Given& given, size_t count) {
  std::vector<Ref<>> found;
  const auto add = [&](PyObject* candidate) {
    PyTypeObject* const type = Py_TYPE(candidate);
    if (is_tensor(candidate) && type != tensor_type && type_dispatches(type)) add_by_class(found, candidate);
  };
  const auto add_all = [&](PyObject* value) {
    if (!value) return;
    if (!PyTuple_Check(value) && !PyList_Check(value)) return add(value);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) add(PySequence_Fast_GET_ITEM(value, i));
  };
  for (size_t i = 0; i < count; ++i) add_all(given.values[i]);
  add_all(given.out);
  return found;
}

// Whether an argument is what the operator assumes without it.
bool is_default(const Operator& op, const Given& given, size_t i) {
  return given.values[i] == op.schema.parameters[i].default_value;
}

// The arguments as the program may have written them: without those that have their defaults.
Ref<> positional_of(const Operator& op, const Given& given) {
  auto count = static_cast<size_t>(op.schema.positional_count);
  while (count > 0 && is_default(op, given, count - 1)) --count;
  Ref<> arguments = owned(PyTuple_New(static_cast<Py_ssize_t>(count)));
  for (size_t i = 0; i < count; ++i)
    PyTuple_SET_ITEM(arguments.get(), static_cast<Py_ssize_t>(i), Py_NewRef(given.values[i]));
  return arguments;
}

Ref<> keywords_of(const Operator& op, const Given& given) {
  Ref<> keywords = owned(PyDict_New());
  const auto set = [&](PyObject* name, PyObject* value) {
    if (PyDict_SetItem(keywords.get(), name, value) < 0) throw PythonError();
  };
  for (size_t i = static_cast<size_t>(op.schema.positional_count); i < op.schema.parameters.size(); ++i) {
    if (!is_default(op, given, i)) set(op.schema.parameters[i].interned, given.values[i]);
  }
  if (given.out) set(owned(PyUnicode_FromString("out")).get(), given.out);
  if (given.generator) set(owned(PyUnicode_FromString("generator")).get(), given.generator);
  return keywords;
}

Ref<> ask(PyObject* object, PyObject* op, PyObject* types, PyObject* arguments, PyObject* keywords) {
  const Ref<> method = owned(PyObject_GetAttr(object, protocol.get()));
  PyObject* const values[] = {op, types, arguments, keywords};
  const NoGrad below_autograd;
  const FunctionOverridesDisabled below_functions;
  return owned(PyObject_Vectorcall(method.get(), values, std::size(values), nullptr));
}

// What the protocol names the operator: an overload of ATen's, or the operator if ATen has none.
Ref<> overload_of(Operator& op, PyObject* arguments, PyObject* keywords) {
  static PyObject* const choose = [] {
    const Ref<> module = owned(PyImport_ImportModule("candelabra.library.aten_dispatch"));
    return owned(PyObject_GetAttrString(module.get(), "overload_of")).release();
  }();
  PyObject* const values[] = {reinterpret_cast<PyObject*>(&op), arguments, keywords};
  return owned(PyObject_Vectorcall(choose, values, std::size(values), nullptr));
}

// What a handler returned for operators that return tensors. None stands for an undefined one.
Ref<> checked(const Operator& op, Ref<> result) {
  PyObject* const value = result.get();
  const bool fits = is_tensor(value) || value == Py_None || PyTuple_Check(value) || PyList_Check(value) ||
                    PyNumber_Check(value) || op.schema.result_names.empty();
  check(fits, PyExc_RuntimeError, "Unable to cast Python instance of type ", Py_TYPE(value)->tp_name,
        ", which __torch_dispatch__ returned for ", op.schema.name, ", to a Tensor");
  return result;
}

Dims dims_of(PyObject* sequence) {
  // A tuple: an __index__ may change a list.
  const Ref<> entries = owned(PySequence_Tuple(sequence));
  Dims dims;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(entries.get()); ++i) {
    const long long entry = PyLong_AsLongLong(PyTuple_GET_ITEM(entries.get(), i));
    if (entry == -1 && PyErr_Occurred()) throw PythonError();
    dims.push_back(entry);
  }
  return dims;
}

PyObject* push_mode(PyObject*, PyObject* mode) {
  return modes.push(mode);
}

PyObject* pop_mode(PyObject*, PyObject*) {
  return modes.pop("there is no torch dispatch mode to leave");
}

PyObject* get_modes(PyObject*, PyObject*) {
  return modes.as_tuple();
}

PyObject* set_enabled(PyObject*, PyObject* enabled) {
  const int wanted = PyObject_IsTrue(enabled);
  if (wanted == -1) return nullptr;
  const bool before = !is_disabled;
  is_disabled = wanted == 0;
  return PyBool_FromLong(before);
}

// What super().__torch_dispatch__() does: the operator computes on the memory of its arguments.
PyObject* call_disabled(PyObject*, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"func", "types", "args", "kwargs", nullptr};
  PyObject *function, *types, *values = nullptr, *given = nullptr;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO|OO:__torch_dispatch__", const_cast<char**>(names),
                                   &function, &types, &values, &given))
    return nullptr;
  return guarded<>(failure, [&] {
    const Ref<> positional = owned(values ? PySequence_Tuple(values) : PyTuple_New(0));
    const NoGrad below_autograd;
    const DispatchDisabled below_dispatch;
    return owned(PyObject_Call(function, positional.get(), given && given != Py_None ? given : nullptr)).release();
  });
}

}  // namespace

bool type_dispatches(PyTypeObject* type) {
  PyObject* const found = _PyType_Lookup(type, protocol.get());
  return found && found != disabled_implementation;
}

std::optional<Ref<>> call_torch_dispatch(Operator& op, const Given& given) {
  if (is_disabled) return std::nullopt;
  const std::vector<Ref<>> classes = dispatching(given, op.schema.parameters.size());
  if (classes.empty() && modes.is_empty()) return std::nullopt;
  const Ref<> types = types_of(classes), arguments = positional_of(op, given), keywords = keywords_of(op, given);
  const Ref<> overload = overload_of(op, arguments.get(), keywords.get());
  PyObject* const function = overload.get();
  if (!modes.is_empty()) {
    const InnermostMode innermost(modes);
    Ref<> result = ask(innermost.get(), function, types.get(), arguments.get(), keywords.get());
    if (result.get() != Py_NotImplemented) return checked(op, std::move(result));
  }
  for (const Ref<>& object : classes) {
    Ref<> result = ask(object.get(), function, types.get(), arguments.get(), keywords.get());
    if (result.get() != Py_NotImplemented) return checked(op, std::move(result));
  }
  raise(PyExc_TypeError, "Multiple dispatch failed for 'candelabra.ops.", op.schema.name,
        "'; all __torch_dispatch__ handlers returned NotImplemented");
}

Ref<> dispatched_item(TensorObject* tensor) {
  PyObject* const self = as_object(tensor);
  Ref<> op = owned(PyImport_ImportModule("candelabra.library.aten"));
  for (const char* name : {"ATEN", "_local_scalar_dense", "default"}) {
    op = owned(PyObject_GetAttrString(op.get(), name));
  }
  const Ref<> types = owned(PyTuple_Pack(1, Py_TYPE(self))), arguments = owned(PyTuple_Pack(1, self));
  const Ref<> keywords = owned(PyDict_New());
  Ref<> value = ask(self, op.get(), types.get(), arguments.get(), keywords.get());
  check(value.get() != Py_NotImplemented, PyExc_TypeError,
        "Multiple dispatch failed for 'candelabra.ops.aten._local_scalar_dense'; all __torch_dispatch__ handlers "
        "returned NotImplemented");
  return value;
}

PyObject* device_stood_for(TensorObject* tensor) {
  if (!is_meta(tensor->device()) || !tensor->dict) return nullptr;
  return PyDict_GetItem(tensor->dict, device_key.get());
}

void stand_for_device(TensorObject* tensor, PyObject* device) {
  const Ref<> dict = owned(PyObject_GenericGetDict(as_object(tensor), nullptr));
  if (PyDict_SetItem(dict.get(), device_key.get(), device) < 0) throw PythonError();
  track(tensor);
}

namespace {

// The values of the __slots__ of a class and of its bases below Tensor.
void copy_slots(PyTypeObject* type, PyObject* from, PyObject* to) {
  for (; type && type != tensor_type; type = type->tp_base) {
    for (const PyMemberDef* member = type->tp_members; member && member->name; ++member) {
      if (member->type != T_OBJECT_EX) continue;
      const auto slot = [&](PyObject* object) {
        return reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + member->offset);
      };
      Py_XSETREF(*slot(to), Py_XNewRef(*slot(from)));
    }
  }
}

}  // namespace

TensorRef detached_subclass(TensorObject* tensor) {
  PyTypeObject* const type = Py_TYPE(as_object(tensor));
  if (type == tensor_type || !type_dispatches(type)) return make_alias(tensor);
  TensorRef made = make_subclass(type, tensor);
  if (tensor->dict) {
    const Ref<> attributes = owned(PyDict_Copy(tensor->dict));
    if (PyObject_GenericSetDict(as_object(made.get()), attributes.get(), nullptr) < 0) throw PythonError();
  }
  copy_slots(type, as_object(tensor), as_object(made.get()));
  track(made.get());
  return made;
}

PyObject* make_wrapper_subclass(PyObject*, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"cls",
                                "size",
                                "strides",
                                "storage_offset",
                                "memory_format",
                                "dtype",
                                "layout",
                                "device",
                                "pin_memory",
                                "requires_grad",
                                "dispatch_sizes_strides_policy",
                                "dispatch_device",
                                "dispatch_layout",
                                nullptr};
  PyObject *type, *size, *strides = Py_None, *offset = Py_None, *format = Py_None, *dtype = Py_None, *layout = Py_None,
                         *device = Py_None;
  PyObject *policy = Py_None, *ignored = Py_None, *ignored_too = Py_None;
  int pinned = 0, requires_grad = 0;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!O|OOOOOOppOOO:_make_wrapper_subclass",
                                   const_cast<char**>(names), &PyType_Type, &type, &size, &strides, &offset, &format,
                                   &dtype, &layout, &device, &pinned, &requires_grad, &policy, &ignored, &ignored_too))
    return nullptr;
  return guarded<>(failure, [&] {
    auto* const cls = reinterpret_cast<PyTypeObject*>(type);
    check(PyType_IsSubtype(cls, tensor_type), PyExc_TypeError,
          "_make_wrapper_subclass(): cls must be a subclass of Tensor");
    check(type_dispatches(cls), PyExc_RuntimeError, cls->tp_name, " must define __torch_dispatch__");
    const Dims sizes = dims_of(size);
    const Dims steps = strides == Py_None ? contiguous_strides(sizes) : dims_of(strides);
    const Dtype kind = dtype == Py_None ? default_dtype() : dtype_from_object(dtype);
    const TensorRef memory = empty_strided(sizes, steps, kind, device_from_text("meta"));
    memory->offset = offset == Py_None ? 0 : PyLong_AsLongLong(offset);
    if (PyErr_Occurred()) throw PythonError();
    TensorRef wrapper = make_subclass(cls, memory.get());
    const Ref<> object = is_device_object(device)
                             ? Ref<>::borrow(device)
                             : owned(device_object(device == Py_None ? default_device() : device_from_object(device)));
    const Ref<> device_name = owned(PyObject_GetAttrString(object.get(), "type"));
    if (PyUnicode_CompareWithASCIIString(device_name.get(), "meta") != 0) {
      stand_for_device(wrapper.get(), object.get());
    }
    if (requires_grad) ask_for_gradients(wrapper.get());
    return wrapper.release_object();
  });
}

bool init_torch_dispatch(PyObject* module) {
  disabled_implementation = PyObject_GetAttrString(module, "_disabled_torch_dispatch_impl");
  return disabled_implementation &&
         PyObject_SetAttr(reinterpret_cast<PyObject*>(tensor_type), protocol.get(), disabled_implementation) == 0;
}

PyMethodDef torch_dispatch_functions[] = {
    {"_disabled_torch_dispatch_impl", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_disabled)),
     METH_VARARGS | METH_KEYWORDS,
     "_disabled_torch_dispatch_impl(func, types, args=(), kwargs=None)\n\nCall func without __torch_dispatch__. As the "
     "attribute of a class: its objects compute no operators."},
    {"push_torch_dispatch_mode", push_mode, METH_O, "Enter a mode on this thread."},
    {"pop_torch_dispatch_mode", pop_mode, METH_NOARGS, "Leave the innermost mode of this thread; returns it."},
    {"set_torch_dispatch_enabled", set_enabled, METH_O,
     "Set whether modes and classes of this thread are asked; returns whether they were before."},
    {"torch_dispatch_modes", get_modes, METH_NOARGS, "The modes of this thread, the innermost last."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace candelabra
