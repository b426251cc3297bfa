#include "dispatch/torch_function.hpp"

#include <vector>

#include "dispatch/protocols.hpp"
#include "dispatch/torch_dispatch.hpp"
#include "interop/interop.hpp"
#include "operators/operator.hpp"
#include "python/recursion.hpp"
#include "tensor/tensor_type.hpp"

namespace candelabra {

std::atomic<int> torch_function_modes{0};
PlainSubclass plain_subclass{};

namespace {

PyObject* const failure = nullptr;

enum class Overrides : int { Enabled, SubclassesDisabled, AllDisabled };

struct ThreadState {
  Overrides overrides = Overrides::Enabled;
  ModeStack modes;
  bool skips_next = false;  // the next call asks no class
};
constinit thread_local ThreadState state;

constinit InternedOnce protocol{"__torch_function__"};

PyObject* disabled_implementation = nullptr;

bool type_overrides(PyTypeObject* type) {
  if (is_plain(type)) return false;
  PyObject* const found = _PyType_Lookup(type, protocol.get());
  // A class that computes operators takes functions over only by a method of its own.
  const bool inherits = found && type_dispatches(type) && found == _PyType_Lookup(tensor_type, protocol.get());
  if (found && found != disabled_implementation && !inherits) return true;
  if (type->tp_version_tag && PyType_IsSubtype(type, tensor_type) && !type_dispatches(type))
    plain_subclass = {type, type->tp_version_tag};
  return false;
}

bool is_number_or_text(PyTypeObject* type) {
  return type == &PyFloat_Type || type == &PyLong_Type || type == &PyBool_Type || type == &PyUnicode_Type ||
         type == &PyComplex_Type;
}

constexpr Py_ssize_t most_numbers = 8;

// Calls visit(element) for the objects of an argument that may override: the argument, or the
// elements of a sequence. Of a sequence of numbers, such as a size, only the first ones are looked
// at. Stops where visit returns true.
template <typename Visit>
bool any_candidate(PyObject* argument, Visit visit) {
  PyTypeObject* const type = Py_TYPE(argument);
  if (type == tensor_type || is_number_or_text(type) || argument == Py_None) return false;
  if (!PyTuple_Check(argument) && !PyList_Check(argument)) return visit(argument);
  if (type != &PyTuple_Type && type != &PyList_Type && visit(argument)) return true;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(argument); ++i) {
    PyObject* const element = PySequence_Fast_GET_ITEM(argument, i);
    PyTypeObject* const kind = Py_TYPE(element);
    if (is_plain(kind) || element == Py_None) continue;
    if (kind == &PyList_Type || kind == &PyTuple_Type) return false;
    if (is_number_or_text(kind)) {
      if (i + 1 >= most_numbers) return false;
    } else if (visit(element)) {
      return true;
    }
  }
  return false;
}

// The arguments that override, one of each class; those of subclasses before their base classes'.
std::vector<Ref<>> overriding(PyObject* const* arguments, Py_ssize_t count) {
  std::vector<Ref<>> found;
  if (state.overrides != Overrides::Enabled) return found;
  const auto add = [&](PyObject* candidate) {
    if (type_overrides(Py_TYPE(candidate))) add_by_class(found, candidate);
    return false;
  };
  for (Py_ssize_t i = 0; i < count; ++i) any_candidate(arguments[i], add);
  return found;
}

Ref<> tuple_of(PyObject* const* objects, Py_ssize_t count) {
  Ref<> tuple = owned(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(objects[i]));
  return tuple;
}

Ref<> keywords_of(PyObject* const* values, PyObject* names) {
  Ref<> keywords = owned(PyDict_New());
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i) {
    if (PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(names, i), values[i]) < 0) throw PythonError();
  }
  return keywords;
}

bool has_modes() {
  return !state.modes.is_empty() && state.overrides != Overrides::AllDisabled;
}

// One call as the protocol hands it over.
struct Overridden {
  PyObject* function;
  Ref<> types, arguments, keywords;

  Ref<> ask(PyObject* object) const {
    const Ref<> method = owned(PyObject_GetAttr(object, protocol.get()));
    PyObject* const values[] = {function, types.get(), arguments.get(), keywords.get()};
    return owned(PyObject_Vectorcall(method.get(), values, std::size(values), nullptr));
  }
};

std::string name_of(PyObject* function) {
  const Ref<> name(PyObject_GetAttrString(function, "__name__"));
  PyErr_Clear();
  const char* text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  return text ? text : "function";
}

std::string text_of(PyObject* object) {
  const Ref<> shown(PyObject_Repr(object));
  const char* text = shown ? PyUnicode_AsUTF8(shown.get()) : nullptr;
  PyErr_Clear();
  return text ? text : "?";
}

[[noreturn]] void refuse(const Overridden& call, PyObject* mode, const std::vector<Ref<>>& classes) {
  std::string asked;
  if (mode) asked += text("\n\n  - mode object ", text_of(mode));
  for (const Ref<>& object : classes) {
    asked += text("\n\n  - tensor subclass ", text_of(reinterpret_cast<PyObject*>(Py_TYPE(object.get()))));
  }
  raise(PyExc_TypeError, "Multiple dispatch failed for 'candelabra.", name_of(call.function),
        "'; all __torch_function__ handlers returned NotImplemented:", asked);
}

std::optional<PyObject*> hand_over(PyObject* function, const std::vector<Ref<>>& classes, Ref<> arguments,
                                   Ref<> keywords) {
  if (classes.empty() && !has_modes()) return std::nullopt;
  const Overridden call{function, types_of(classes), std::move(arguments), std::move(keywords)};
  Ref<> mode;
  if (has_modes()) {
    const InnermostMode innermost(state.modes);
    mode = Ref<>::borrow(innermost.get());
    Ref<> result = call.ask(mode.get());
    if (result.get() != Py_NotImplemented) return result.release();
  }
  for (const Ref<>& object : classes) {
    Ref<> result = call.ask(object.get());
    if (result.get() != Py_NotImplemented) return result.release();
  }
  refuse(call, mode.get(), classes);
}

// ---- the default implementation

bool can_change_type(const PyTypeObject* type) {
  return type->tp_basicsize == tensor_type->tp_basicsize && type->tp_dictoffset == tensor_type->tp_dictoffset;
}

// Results as instances of the class, in tuples and lists too.
Ref<> converted(Ref<> result, PyTypeObject* type) {
  PyObject* const object = result.get();
  if (is_tensor(object)) {
    if (PyType_IsSubtype(Py_TYPE(object), type)) return result;
    return Ref<>(as_subclass(TensorRef(as_tensor(result.release())), type).release_object());
  }
  if (!PyTuple_Check(object) && !PyList_Check(object)) return result;
  const RecursiveCall nested(" in the results of a function");
  const Ref<> entries = owned(PySequence_List(object));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(entries.get()); ++i) {
    Ref<> entry = Ref<>::borrow(PyList_GET_ITEM(entries.get(), i));
    if (PyList_SetItem(entries.get(), i, converted(std::move(entry), type).release()) < 0) throw PythonError();
  }
  PyObject* const sequence_type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  // A named tuple takes its entries one by one.
  const Ref<> make(PyObject_GetAttrString(sequence_type, "_make"));
  if (!make) PyErr_Clear();
  return owned(PyObject_CallOneArg(make ? make.get() : sequence_type, entries.get()));
}

// Whether the result of a function stays as it is: a gradient and a base are tensors of their own.
bool keeps_class(PyObject* function) {
  static constinit LookedUpOnce getters;
  PyObject* const known = getters.get([] {
    Ref<> set = owned(PySet_New(nullptr));
    for (const char* name : {"_base", "grad"}) {
      const Ref<> attribute = owned(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), name));
      const Ref<> getter = owned(PyObject_GetAttrString(attribute.get(), "__get__"));
      if (PySet_Add(set.get(), getter.get()) < 0) throw PythonError();
    }
    return set;
  });
  const int found = PySet_Contains(known, function);
  if (found < 0) PyErr_Clear();  // a function that cannot be hashed
  return found > 0;
}

class SubclassesDisabled {
 public:
  SubclassesDisabled() : before_(state.overrides) {
    if (before_ == Overrides::Enabled) state.overrides = Overrides::SubclassesDisabled;
  }
  SubclassesDisabled(const SubclassesDisabled&) = delete;
  SubclassesDisabled& operator=(const SubclassesDisabled&) = delete;
  ~SubclassesDisabled() { state.overrides = before_; }

 private:
  Overrides before_;
};

// ---- functions of the module

PyObject* set_overrides(PyObject*, PyObject* value) {
  const long wanted = PyLong_AsLong(value);
  if (wanted == -1 && PyErr_Occurred()) return nullptr;
  if (wanted < 0 || wanted > static_cast<long>(Overrides::AllDisabled)) {
    PyErr_SetString(PyExc_ValueError, "set_torch_function_state(): 0, 1 or 2");
    return nullptr;
  }
  return PyLong_FromLong(static_cast<long>(std::exchange(state.overrides, static_cast<Overrides>(wanted))));
}

PyObject* get_overrides(PyObject*, PyObject*) {
  return PyLong_FromLong(static_cast<long>(state.overrides));
}

PyObject* push_mode(PyObject*, PyObject* mode) {
  return state.modes.push(mode);
}

PyObject* pop_mode(PyObject*, PyObject*) {
  return state.modes.pop("there is no torch function mode to leave");
}

PyObject* get_modes(PyObject*, PyObject*) {
  return state.modes.as_tuple();
}

// Whether one of these overrides, or a mode is on. Elements of sequences are not looked at.
bool any_overrides(PyObject* const* arguments, Py_ssize_t count) {
  if (std::exchange(state.skips_next, false)) return false;
  if (has_modes()) return true;
  if (state.overrides != Overrides::Enabled) return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (Py_TYPE(arguments[i]) != tensor_type && type_overrides(Py_TYPE(arguments[i]))) return true;
  }
  return false;
}

PyObject* has_torch_function(PyObject*, PyObject* relevant) {
  const Ref<> sequence(PySequence_Fast(relevant, "has_torch_function(): expected a sequence"));
  if (!sequence) return nullptr;
  return guarded<>(failure, [&] {
    return PyBool_FromLong(
        any_overrides(PySequence_Fast_ITEMS(sequence.get()), PySequence_Fast_GET_SIZE(sequence.get())));
  });
}

PyObject* has_torch_function_variadic(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return guarded<>(failure, [&] { return PyBool_FromLong(any_overrides(arguments, count)); });
}

PyObject* get_overriding_arguments(PyObject*, PyObject* relevant) {
  const Ref<> sequence(PySequence_Fast(relevant, "expected a sequence of arguments"));
  if (!sequence) return nullptr;
  return guarded<>(failure, [&] {
    const std::vector<Ref<>> found =
        overriding(PySequence_Fast_ITEMS(sequence.get()), PySequence_Fast_GET_SIZE(sequence.get()));
    Ref<> list = owned(PyList_New(static_cast<Py_ssize_t>(found.size())));
    for (size_t i = 0; i < found.size(); ++i)
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), Py_NewRef(found[i].get()));
    return list.release();
  });
}

// handle_torch_function(public_api, relevant_args, *args, **kwargs)
PyObject* handle_torch_function(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded<>(failure, [&]() -> PyObject* {
    check(count >= 2, PyExc_TypeError, "handle_torch_function(public_api, relevant_args, *args, **kwargs)");
    PyObject *const function = arguments[0], *const relevant = arguments[1];
    const Ref<> sequence = owned(PySequence_Fast(relevant, "relevant_args must be a sequence"));
    const std::vector<Ref<>> classes =
        overriding(PySequence_Fast_ITEMS(sequence.get()), PySequence_Fast_GET_SIZE(sequence.get()));
    const std::optional<PyObject*> result =
        hand_over(function, classes, tuple_of(arguments + 2, count - 2), keywords_of(arguments + count, names));
    if (result) return *result;
    raise(PyExc_TypeError, "no implementation found for '", name_of(function),
          "' on types that implement __torch_function__: []");
  });
}

// redispatch_function(func, types, args, kwargs): calls func without asking for this call.
PyObject* redispatch_function(PyObject*, PyObject* arguments) {
  PyObject *function, *types, *values, *names = Py_None;
  if (!PyArg_ParseTuple(arguments, "OOO|O:redispatch_function", &function, &types, &values, &names)) return nullptr;
  return guarded<>(failure, [&] {
    const Ref<> positional = owned(PySequence_Tuple(values));
    state.skips_next = true;
    PyObject* const result = PyObject_Call(function, positional.get(), names == Py_None ? nullptr : names);
    state.skips_next = false;
    return result;
  });
}

PyObject* call_without_classes(PyObject*, PyObject* arguments, PyObject* keywords) {
  PyObject *function = nullptr, *types = nullptr, *values = nullptr, *names = nullptr;
  if (!PyArg_UnpackTuple(arguments, "_disabled_torch_function_impl", 2, 4, &function, &types, &values, &names))
    return nullptr;
  if (keywords && PyDict_GET_SIZE(keywords) > 0) {
    PyErr_SetString(PyExc_TypeError, "_disabled_torch_function_impl() takes no keyword arguments");
    return nullptr;
  }
  const SubclassesDisabled disabled;
  const Ref<> nothing(values ? nullptr : PyTuple_New(0));
  return PyObject_Call(function, values ? values : nothing.get(), names == Py_None ? nullptr : names);
}

PyObject* as_subclass_function(PyObject*, PyObject* arguments) {
  PyObject *tensor, *type;
  if (!PyArg_ParseTuple(arguments, "O!O!:as_subclass", tensor_type, &tensor, &PyType_Type, &type)) return nullptr;
  return guarded<>(failure, [&] {
    const SubclassesDisabled disabled;
    return as_subclass(TensorRef::borrow(as_tensor(tensor)), reinterpret_cast<PyTypeObject*>(type)).release_object();
  });
}

PyCFunction with_keywords(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

}  // namespace

FunctionOverridesDisabled::FunctionOverridesDisabled() : before_(static_cast<int>(state.overrides)) {
  state.overrides = Overrides::AllDisabled;
}
FunctionOverridesDisabled::~FunctionOverridesDisabled() {
  state.overrides = static_cast<Overrides>(before_);
}

bool overrides_functions(PyObject* argument) {
  return any_candidate(argument, [](PyObject* candidate) {
    return type_overrides(Py_TYPE(candidate)) || type_dispatches(Py_TYPE(candidate));
  });
}

bool takes_over(PyObject* object) {
  return state.overrides == Overrides::Enabled && type_overrides(Py_TYPE(object));
}

std::optional<PyObject*> call_overrides(PyObject* function, PyObject* const* arguments, Py_ssize_t count,
                                        PyObject* names) {
  return guarded<>(std::optional<PyObject*>(nullptr), [&]() -> std::optional<PyObject*> {
    const Py_ssize_t keywords = names ? PyTuple_GET_SIZE(names) : 0;
    if (std::exchange(state.skips_next, false)) return std::nullopt;
    const std::vector<Ref<>> classes = overriding(arguments, count + keywords);
    if (classes.empty() && !has_modes()) return std::nullopt;
    return hand_over(function, classes, tuple_of(arguments, count), keywords_of(arguments + count, names));
  });
}

std::optional<PyObject*> call_overrides_of_tensor(const char* name, const char* accessor, PyObject* const* arguments,
                                                  Py_ssize_t count, PyObject* names) {
  return guarded<>(std::optional<PyObject*>(nullptr), [&]() -> std::optional<PyObject*> {
    const Py_ssize_t keywords = names ? PyTuple_GET_SIZE(names) : 0;
    if (std::exchange(state.skips_next, false)) return std::nullopt;
    const std::vector<Ref<>> classes = overriding(arguments, count + keywords);
    if (classes.empty() && !has_modes()) return std::nullopt;
    Ref<> function = Ref<>::borrow(PyDict_GetItemString(tensor_type->tp_dict, name));
    check(static_cast<bool>(function), PyExc_AttributeError, name);
    if (accessor) function = owned(PyObject_GetAttrString(function.get(), accessor));
    return hand_over(function.get(), classes, tuple_of(arguments, count), keywords_of(arguments + count, names));
  });
}

TensorRef as_subclass(TensorRef tensor, PyTypeObject* type) {
  // A tensor that only the caller holds becomes an instance; of another, an alias does, which has
  // its own place on the tape.
  const bool is_fresh = Py_TYPE(as_object(tensor.get())) == tensor_type && Py_REFCNT(as_object(tensor.get())) == 1;
  if (!is_fresh) {
    if (requires_grad(tensor.get()) && grad_mode.enabled) {
      static Operator& view = required_operator("view");
      const Ref<> shape = owned(size_object(tensor->sizes));
      tensor = TensorRef(as_tensor(call_operator(view, {as_object(tensor.get()), shape.get()}).release()));
    } else {
      tensor = make_alias(tensor.get());
    }
  }
  if (type == tensor_type) return tensor;
  TensorObject* const self = tensor.get();
  if (!can_change_type(type) || Py_TYPE(as_object(self)) != tensor_type) {
    TensorRef made = make_subclass(type, self);
    made->requires_grad = self->requires_grad;
    made->output_number = self->output_number;
    made->history = self->history;
    made->grad_fn = Py_XNewRef(self->grad_fn);
    made->base = Py_XNewRef(self->base);
    return made;
  }
  Py_INCREF(type);
  Py_SET_TYPE(as_object(self), type);
  Py_DECREF(tensor_type);
  track(self);
  return tensor;
}

PyObject* tensor_torch_function(PyObject* cls, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"func", "types", "args", "kwargs", nullptr};
  PyObject *function, *types, *values = nullptr, *given = nullptr;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO|OO:__torch_function__", const_cast<char**>(names),
                                   &function, &types, &values, &given))
    return nullptr;
  return guarded<>(failure, [&]() -> PyObject* {
    const Ref<> classes = owned(PySequence_Tuple(types));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(classes.get()); ++i) {
      const int is_base = PyObject_IsSubclass(cls, PyTuple_GET_ITEM(classes.get(), i));
      if (is_base < 0) throw PythonError();
      if (!is_base) return Py_NewRef(Py_NotImplemented);
    }
    const Ref<> positional = owned(values ? PySequence_Tuple(values) : PyTuple_New(0));
    const SubclassesDisabled disabled;
    Ref<> result = owned(PyObject_Call(function, positional.get(), given == Py_None ? nullptr : given));
    if (cls == reinterpret_cast<PyObject*>(tensor_type) || keeps_class(function)) return result.release();
    return converted(std::move(result), reinterpret_cast<PyTypeObject*>(cls)).release();
  });
}

bool init_torch_function(PyObject* module) {
  disabled_implementation = PyObject_GetAttrString(module, "_disabled_torch_function_impl");
  return disabled_implementation != nullptr;
}

PyMethodDef torch_function_functions[] = {
    {"_disabled_torch_function_impl", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_without_classes)),
     METH_VARARGS | METH_KEYWORDS,
     "As the attribute __torch_function__ of a class: its objects take over no functions."},
    {"set_torch_function_state", set_overrides, METH_O,
     "Set whether this thread asks overrides: 0 all, 1 modes only, 2 none. Returns what it was."},
    {"torch_function_state", get_overrides, METH_NOARGS, "What set_torch_function_state() has set."},
    {"push_torch_function_mode", push_mode, METH_O, "Enter a mode on this thread."},
    {"pop_torch_function_mode", pop_mode, METH_NOARGS, "Leave the innermost mode of this thread; returns it."},
    {"torch_function_modes", get_modes, METH_NOARGS, "The modes of this thread, the innermost last."},
    {"has_torch_function", has_torch_function, METH_O,
     "Whether one of these arguments takes over functions, or a mode is on."},
    {"has_torch_function_variadic",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(has_torch_function_variadic)), METH_FASTCALL,
     "As has_torch_function, of any number of arguments."},
    {"overriding_arguments", get_overriding_arguments, METH_O,
     "The arguments that take over functions, one of each class, in the order in which they are asked."},
    {"handle_torch_function", with_keywords(handle_torch_function), METH_FASTCALL | METH_KEYWORDS,
     "handle_torch_function(public_api, relevant_args, *args, **kwargs)\n\nLet the overrides compute a call."},
    {"redispatch_function", redispatch_function, METH_VARARGS,
     "redispatch_function(func, types, args, kwargs)\n\nCall func without asking overrides for this call, but for the "
     "functions that it calls."},
    {"as_subclass", as_subclass_function, METH_VARARGS,
     "as_subclass(tensor, cls)\n\nAn instance of cls that shares the memory and the place on the tape."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace candelabra
