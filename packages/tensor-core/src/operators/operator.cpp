// The operator object: a call is parsed (arguments.cpp), dispatched (dispatch.cpp) and recorded.
#include "operators/operator.hpp"

#include <structmember.h>

#include <algorithm>
#include <bit>

#include "device/random.hpp"
#include "dispatch/cpu_fallback.hpp"
#include "dispatch/dispatch_hook.hpp"
#include "dispatch/torch_dispatch.hpp"
#include "dispatch/torch_function.hpp"
#include "memory/copy_on_write.hpp"
#include "operators/arguments.hpp"
#include "operators/fast_path.hpp"
#include "tensor/tensor_type.hpp"

namespace candelabra {

PyTypeObject* operator_type = nullptr;

namespace {

PyObject* const failure = nullptr;

// Whether any operator has an autograd function: without one, nothing is recorded.
bool has_tape = false;

void take_out(Call& call, PyObject* out) {
  size_t results = call.op.schema.result_names.size();
  auto take = [&](size_t k, PyObject* tensor) {
    check(is_tensor(tensor), PyExc_TypeError, call.title(), "(): argument 'out' must be ",
          results > 1 ? "a tuple of Tensors" : "Tensor", ", not ", Py_TYPE(tensor)->tp_name);
    check(!requires_grad(as_tensor(tensor)) || !grad_mode.enabled, PyExc_RuntimeError, call.title(),
          "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
          "requires grad.");
    call.outputs[k].given = as_tensor(tensor);
  };
  if (results == 1 && is_tensor(out)) return take(0, out);
  check(PyTuple_Check(out) || PyList_Check(out), PyExc_TypeError, call.title(), "(): argument 'out' must be ",
        results > 1 ? "a tuple of Tensors" : "Tensor", ", not ", Py_TYPE(out)->tp_name);
  check(PySequence_Fast_GET_SIZE(out) == static_cast<Py_ssize_t>(results), PyExc_TypeError, call.title(),
        "(): argument 'out' must hold ", results, " tensors, not ", PySequence_Fast_GET_SIZE(out));
  for (size_t k = 0; k < results; ++k) take(k, PySequence_Fast_GET_ITEM(out, static_cast<Py_ssize_t>(k)));
}

Ref<> results_object(Call& call) {
  Operator& op = call.op;
  if (call.result) return std::move(call.result);
  if (op.schema.returns_nothing) return Ref<>::borrow(Py_None);
  if (call.output_count == 1 || call.first_alone) return Ref<>(call.outputs[0].tensor.release_object());
  Ref<> results = owned(op.result_type ? PyStructSequence_New(reinterpret_cast<PyTypeObject*>(op.result_type))
                                       : PyTuple_New(call.output_count));
  for (int k = 0; k < call.output_count; ++k) {
    PyObject* tensor = call.outputs[k].tensor.release_object();
    if (op.result_type) {
      PyStructSequence_SetItem(results.get(), k, tensor);
    } else {
      PyTuple_SET_ITEM(results.get(), k, tensor);
    }
  }
  return results;
}

// Copies the result of a function that computes an operator to out=, if it is given.
Ref<> give_result(Operator& op, Given& given, const Ref<>& result) {
  if (!given.out) return result;
  if (is_tensor(given.out)) {
    for (size_t i = 0; i < op.schema.parameters.size(); ++i) {
      if (is_tensor(given.values[i]))
        check_out_memory(op.message_name(), op.out_memory, *as_tensor(given.out), *as_tensor(given.values[i]));
    }
  }
  const char* name = op.message_name();
  if (is_tensor(result.get())) return give_to_out(name, given.out, result.get());
  const Ref<> written = give_to_outs(name, given.out, result.get());
  return op.result_type ? owned(PyObject_CallOneArg(op.result_type, written.get())) : Ref<>::borrow(written.get());
}

// Calls the decomposition with positional and keyword-only arguments as the schema orders them, and
// copies its result to out=.
Ref<> call_composite(Operator& op, Given& given) {
  const Schema& schema = op.schema;
  PyObject* function = op.composite;
  check(function, PyExc_NotImplementedError, op.message_name(),
        "(): the operator has no decomposition, and no kernel on this device");
  PyObject* arguments[max_arguments + 1];
  size_t count = schema.parameters.size();
  std::copy_n(given.values, count, arguments);
  const size_t keywords = count - schema.positional_count + (given.generator ? 1 : 0);
  Ref<> names;
  if (keywords > 0) {
    names = owned(PyTuple_New(static_cast<Py_ssize_t>(keywords)));
    for (size_t i = schema.positional_count; i < count; ++i) {
      PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(i) - schema.positional_count,
                       Py_NewRef(schema.parameters[i].interned));
    }
    if (given.generator) {
      arguments[count] = given.generator;
      PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(keywords) - 1,
                       owned(PyUnicode_FromString("generator")).release());
    }
  }
  return give_result(op, given, owned(PyObject_Vectorcall(function, arguments, schema.positional_count, names.get())));
}

Ref<> call_autograd_function(PyObject* autograd_function, PyObject* first, Given& given, size_t count) {
  PyObject* arguments[max_arguments + 2];
  PyObject** end = arguments;
  *end++ = first;
  end = std::copy_n(given.values, count, end);
  if (!given.generator) return owned(PyObject_Vectorcall(autograd_function, arguments, count + 1, nullptr));
  static constinit LookedUpOnce names;
  PyObject* const keywords = names.get([] {
    const Ref<> generator = owned(PyUnicode_InternFromString("generator"));
    return owned(PyTuple_Pack(1, generator.get()));
  });
  *end = given.generator;
  return owned(PyObject_Vectorcall(autograd_function, arguments, count + 1, keywords));
}

// Calls `change` with each tensor that the operator writes to.
template <typename Change>
void for_each_changed(const Call& call, const Given& given, Change change) {
  for (uint32_t left = call.op.changed_arguments; left; left &= left - 1) {
    const int i = std::countr_zero(left);
    if (is_tensor(given.values[i])) {
      change(as_tensor(given.values[i]));
    } else if (call.arguments[i].kind == ArgumentKind::Tensors) {
      for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(given.values[i]); ++k)
        change(as_tensor(PySequence_Fast_GET_ITEM(given.values[i], k)));
    }
  }
}

// Refuses inference tensors, and gives copy-on-write storages memory of their own.
void prepare_changed(const Call& call, const Given& given) {
  for_each_changed(call, given, [&](TensorObject* changed) {
    check(!changed->inference || grad_mode.inference, PyExc_RuntimeError, call.title(),
          "(): Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a "
          "normal tensor before doing inplace update.");
    make_writable(changed->storage);
  });
}

void bump_versions(Call& call, const Given& given) {
  for (int k = 0; given.out && k < call.output_count; ++k) {
    if (call.outputs[k].given) ++call.outputs[k].given->storage->version;
  }
  for_each_changed(call, given, [](TensorObject* changed) { ++changed->storage->version; });
}

// The base's gradient is not defined after such a change.
void refuse_unrecorded_view(const Call& call, bool requires_grad) {
  const TensorObject& self = call.tensor(Operator::self_position);
  if (!(self.unrecorded_view || self.one_of_views) || !self.base) return;
  if (!(requires_grad || as_tensor(self.base)->requires_grad)) return;
  const bool is_custom = self.grad_fn && PyObject_HasAttrString(self.grad_fn, "_function") &&
                         PyLong_AsLong(owned(PyObject_GetAttrString(self.grad_fn, "_outputs")).get()) == 1;
  const char* const reason =
      is_custom
          ? "This view was created inside a custom Function (or because an input was returned as-is), whose backward "
            "the change would go around. You can fix this by cloning its output."
          : "This view is the output of a function that returns multiple views. Such functions do not allow the "
            "output views to be modified inplace. You should replace the inplace operation by an out-of-place one.";
  if (self.one_of_views && self.grad_fn) {
    const std::string_view node = Py_TYPE(self.grad_fn)->tp_name;
    raise(PyExc_RuntimeError, "Output ", self.output_number, " of ", node.substr(0, node.find("Backward")),
          " is a view and is being modified inplace. ", reason);
  }
  raise(PyExc_RuntimeError, call.title(),
        "(): A view was created in no_grad mode and is being modified inplace with grad mode enabled; views of "
        "inference mode are refused too. ",
        self.one_of_views ? reason
                          : "Move both the view and the inplace operation either inside or outside of the block.");
}

PyObject* tuple_of(const Given& given, size_t count) {
  PyObject* values = owned(PyTuple_New(static_cast<Py_ssize_t>(count))).release();
  for (size_t i = 0; i < count; ++i) PyTuple_SET_ITEM(values, static_cast<Py_ssize_t>(i), Py_NewRef(given.values[i]));
  return values;
}

// Computes an operator by its decomposition.
Ref<> decompose(Call& call, Given& given, bool recording) {
  Operator& op = call.op;
  if (op.functional) {  // computed out of place, then copied
    Ref<> result = call_composite(*op.functional, given);
    TensorObject* self = call[Operator::self_position].tensor;
    copy_into(self, as_tensor(result.get()));
    ++self->storage->version;
    return Ref<>::borrow(given.values[Operator::self_position]);
  }
  if (!recording || !op.autograd_function) return call_composite(op, given);
  // The operator's own gradient formula is shorter than the decomposition's tape, and keeps what
  // the tape loses (the padding row of an embedding).
  Ref<> result;
  {
    const NoGrad no_grad;
    result = call_composite(op, given);
  }
  PyObject** const end = given.values + op.schema.parameters.size();
  const bool handed_through = std::find(given.values, end, result.get()) != end;
  return handed_through
             ? call_composite(op, given)
             : call_autograd_function(op.autograd_function, result.get(), given, op.schema.parameters.size());
}

// Computes an operator that has neither a kernel nor a decomposition on the CPU.
Ref<> fall_back_to_cpu(Call& call, Given& given, Manner manner, bool recording) {
  Operator& op = call.op;
  const Ref<> values(tuple_of(given, op.schema.parameters.size()));
  const Ref<> result = give_result(op, given, compute_on_cpu(op, values.get(), given.generator, call.device));
  if (manner.counted) bump_versions(call, given);
  if (!recording || !op.autograd_function) return result;
  return call_autograd_function(op.autograd_function, result.get(), given, op.schema.parameters.size());
}

// Whether an argument, or an entry of one, is a tensor of which `asks` is true.
template <typename Asks>
bool any_tensor(const Given& given, size_t count, Asks asks) {
  const auto found = [&](PyObject* value) { return is_tensor(value) && asks(value); };
  for (size_t i = 0; i < count; ++i) {
    PyObject* const value = given.values[i];
    if (found(value)) return true;
    if (!PyTuple_Check(value) && !PyList_Check(value)) continue;
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(value); ++k)
      if (found(PySequence_Fast_GET_ITEM(value, k))) return true;
  }
  return false;
}

bool any_requires_grad(const Given& given, size_t count) {
  return any_tensor(given, count, [](PyObject* value) { return requires_grad(as_tensor(value)); });
}

// Lets modes and classes compute the operator; autograd records it. Its arguments are not parsed:
// a class may know devices that are not there.
std::optional<Ref<>> dispatch_overridable(Operator& op, Given& given, bool record) {
  const size_t parameters = op.schema.parameters.size();
  const bool recording = has_tape && record && grad_mode.enabled && !(op.tags & tag_nondifferentiable) &&
                         any_requires_grad(given, parameters);
  // These are made of other operators, which are recorded and dispatched one by one.
  if (recording && (op.inplace_autograd_function || !op.autograd_function)) return std::nullopt;
  std::optional<Ref<>> result = call_torch_dispatch(op, given);
  if (!result || !recording) return result;
  return call_autograd_function(op.autograd_function, result->get(), given, parameters);
}

Ref<> call_dispatch_hook(PyObject* function, Operator& op, const Given& given, bool record) {
  const Ref<> kept = Ref<>::borrow(function);
  const Ref<> values(tuple_of(given, op.schema.parameters.size()));
  PyObject* arguments[] = {reinterpret_cast<PyObject*>(&op), values.get(), given.out ? given.out : Py_None,
                           given.generator ? given.generator : Py_None, record ? Py_True : Py_False};
  return owned(PyObject_Vectorcall(function, arguments, std::size(arguments), nullptr));
}

}  // namespace

Ref<> call_operator(Operator& op, PyObject* const* arguments, Py_ssize_t count, PyObject* names, Manner manner) {
  const bool record = manner.record;
  Given given;
  collect(op, given, arguments, count, names);
  PyObject* const hook = dispatch_hook();
  // Autocast and the functorch layers are above the modes and classes that compute operators: these
  // see cast arguments and plain batches.
  if (manner.overridable) [[unlikely]] {
    if (hook) {
      Ref<> result = call_dispatch_hook(hook, op, given, record);
      if (result.get() != Py_NotImplemented) return result;
    }
    if (std::optional<Ref<>> result = dispatch_overridable(op, given, record)) return *std::move(result);
  }
  Call call(op);
  call.in_place = op.functional != nullptr;
  call.generator = given.generator;
  bool requires_grad = parse(call, given);
  if (manner.fast_path) manner.fast_path->check(call);
  if (hook && !manner.overridable) [[unlikely]] {
    Ref<> result = call_dispatch_hook(hook, op, given, record);
    if (result.get() != Py_NotImplemented) return result;
  }
  prepare_changed(call, given);
  if (op.returns_self && record && grad_mode.enabled) refuse_unrecorded_view(call, requires_grad);
  const bool recording = has_tape && record && requires_grad && grad_mode.enabled && !(op.tags & tag_nondifferentiable);
  size_t parameters = op.schema.parameters.size();
  if (recording) {
    if (op.inplace_autograd_function)
      return call_autograd_function(op.inplace_autograd_function, reinterpret_cast<PyObject*>(&op), given, parameters);
    check(!given.out, PyExc_RuntimeError, op.message_name(),
          "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
          "requires grad.");
  }
  if (op.tags & tag_composite) {
    const Operator& base = op.functional ? *op.functional : op;
    resolve_device(call);
    // The core computes an operator tagged core itself only where nothing is recorded.
    const bool computed = (op.tags & tag_core) ? !recording : base.kernels[call.device.type].there();
    if (!computed || (recording && !op.autograd_function)) {
      // The operator's own errors come before the decomposition writes anything.
      if (!computed && !(op.tags & tag_core) && !op.functional && !given.out) op.shape(call);
      return decompose(call, given, recording);
    }
  }
  if (op.returns_self) call.outputs[0].given = call[Operator::self_position].tensor;
  if (given.out) take_out(call, given.out = given.freeze(given.out));
  call.first_alone = manner.fast_path && !recording;
  try {
    run(call);
  } catch (const Declined&) {
    if (op.tags & tag_composite) return decompose(call, given, recording);
    return fall_back_to_cpu(call, given, manner, recording);
  }
  if (manner.counted) bump_versions(call, given);
  Ref<> result = results_object(call);
  if (recording && op.autograd_function)
    return call_autograd_function(op.autograd_function, result.get(), given, parameters);
  return result;
}

namespace {

PyObject* invoke(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names,
                 Manner manner) noexcept {
  Operator& op = *reinterpret_cast<Operator*>(self);
  try {
    return call_operator(op, arguments, count, names, manner).release();
  } catch (const SchemaMismatch&) {
    if (op.fallback) {
      PyObject* result = PyObject_Vectorcall(op.fallback, arguments, count, names);
      if (result != Py_NotImplemented) return result;
      Py_DECREF(result);  // no other spelling fits: the error of the schema stands
    }
    set_python_error();
  } catch (...) {
    set_python_error();
  }
  return nullptr;
}

// Without recording, in a decomposition too.
PyObject* operator_raw(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  bool enabled = std::exchange(grad_mode.enabled, false);
  PyObject* result =
      invoke(self, arguments, count, names, {.record = false, .overridable = may_be_overridden(arguments, count)});
  grad_mode.enabled = enabled;
  return result;
}

// For filling a new tensor: no tape holds it yet, so its version stays 0.
PyObject* operator_uncounted(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return invoke(self, arguments, count, names, {.counted = false, .overridable = may_be_overridden(arguments, count)});
}

// With the arguments as a dispatch hook gets them: one tuple of all, then out and generator.
PyObject* operator_again(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  return guarded<>(failure, [&]() -> PyObject* {
    Operator& op = *reinterpret_cast<Operator*>(self);
    enum { all_position, out_position, generator_position, expected_count };
    const size_t parameters = op.schema.parameters.size();
    PyObject* const all = count == expected_count ? arguments[all_position] : nullptr;
    check(all && PyTuple_Check(all) && static_cast<size_t>(PyTuple_GET_SIZE(all)) == parameters, PyExc_TypeError,
          "again(arguments, out, generator): arguments is a tuple of all ", parameters, " arguments of ",
          op.schema.name);
    PyObject* values[max_arguments + 2];
    for (size_t i = 0; i < parameters; ++i) values[i] = PyTuple_GET_ITEM(all, static_cast<Py_ssize_t>(i));
    const size_t positional = op.schema.positional_count;
    PyObject *const out = arguments[out_position], *const generator = arguments[generator_position];
    const bool has_out = out != Py_None, has_generator = generator != Py_None;
    Ref<> names;
    if (const size_t keywords = parameters - positional + has_out + has_generator) {
      names = owned(PyTuple_New(static_cast<Py_ssize_t>(keywords)));
      Py_ssize_t at = 0;
      for (size_t i = positional; i < parameters; ++i) {
        PyTuple_SET_ITEM(names.get(), at++, Py_NewRef(op.schema.parameters[i].interned));
      }
      size_t end = parameters;
      if (has_out) {
        values[end++] = out;
        PyTuple_SET_ITEM(names.get(), at++, owned(PyUnicode_FromString("out")).release());
      }
      if (has_generator) {
        values[end++] = generator;
        PyTuple_SET_ITEM(names.get(), at++, owned(PyUnicode_FromString("generator")).release());
      }
    }
    return invoke(self, values, static_cast<Py_ssize_t>(positional), names.get(),
                  {.overridable = may_be_overridden(values, static_cast<Py_ssize_t>(positional))});
  });
}

// Runs the shape rule alone, so that a decomposition raises the errors of the operator. Nothing is
// computed.
PyObject* operator_check(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  return guarded<>(failure, [&]() -> PyObject* {
    Operator& op = *reinterpret_cast<Operator*>(self);
    Given given;
    collect(op, given, arguments, count, nullptr);
    Call call(op);
    parse(call, given);
    resolve_device(call);
    op.shape(call);
    return Py_NewRef(Py_None);
  });
}

PyObject* operator_has_kernel(PyObject* self, PyObject* device) {
  return guarded<>(failure, [&] {
    Operator& op = *reinterpret_cast<Operator*>(self);
    return PyBool_FromLong(op.kernel_table()[device_from_object(device).type].there());
  });
}

// As a method: tensor.add(other). The type is a method descriptor, so a plain call makes no bound
// object.
PyObject* operator_bind(PyObject* self, PyObject* instance, PyObject*) {
  return instance && instance != Py_None ? PyMethod_New(self, instance) : Py_NewRef(self);
}

PyObject* operator_repr(PyObject* self) {
  return PyUnicode_FromFormat("<operator %s>", reinterpret_cast<Operator*>(self)->schema.text.c_str());
}

// A tuple with the same member of all parameters.
template <PyObject* Parameter::* member>
PyObject* of_parameters(PyObject* self, void*) {
  return guarded<>(failure, [&] {
    const Schema& schema = reinterpret_cast<Operator*>(self)->schema;
    Ref<> result = owned(PyTuple_New(static_cast<Py_ssize_t>(schema.parameters.size())));
    for (size_t i = 0; i < schema.parameters.size(); ++i) {
      PyTuple_SET_ITEM(result.get(), static_cast<Py_ssize_t>(i), Py_NewRef(schema.parameters[i].*member));
    }
    return result.release();
  });
}

template <PyObject* Operator::* slot>
PyObject* get_slot(PyObject* self, void*) {
  PyObject* value = reinterpret_cast<Operator*>(self)->*slot;
  return Py_NewRef(value ? value : Py_None);
}

template <PyObject* Operator::* slot>
int set_slot(PyObject* self, PyObject* value, void*) {
  PyObject*& target = reinterpret_cast<Operator*>(self)->*slot;
  if (value && value != Py_None && !PyCallable_Check(value)) {
    PyErr_Format(PyExc_TypeError, "expected a callable or None, not %s", Py_TYPE(value)->tp_name);
    return -1;
  }
  Py_XSETREF(target, value && value != Py_None ? Py_NewRef(value) : nullptr);
  return 0;
}

int set_autograd_function(PyObject* self, PyObject* value, void* closure) {
  if (set_slot<&Operator::autograd_function>(self, value, closure) < 0) return -1;
  has_tape |= reinterpret_cast<Operator*>(self)->autograd_function != nullptr;
  return 0;
}

// A custom operator is composite while it has a decomposition; in the catalogue a tag says so.
int set_composite(PyObject* self, PyObject* value, void* closure) {
  if (set_slot<&Operator::composite>(self, value, closure) < 0) return -1;
  Operator& op = *reinterpret_cast<Operator*>(self);
  if (op.schema.custom)
    op.tags = op.composite ? op.tags | tag_composite : op.tags & ~static_cast<uint32_t>(tag_composite);
  return 0;
}

int set_doc(PyObject* self, PyObject* value, void*) {
  Py_XSETREF(reinterpret_cast<Operator*>(self)->doc, value ? Py_NewRef(value) : nullptr);
  return 0;
}

PyObject* related(Operator* other) {
  return Py_NewRef(other ? reinterpret_cast<PyObject*>(other) : Py_None);
}

PyGetSetDef operator_attributes[] = {
    {"name",
     [](PyObject* self, void*) { return PyUnicode_FromString(reinterpret_cast<Operator*>(self)->schema.name.c_str()); },
     nullptr, "The operator's name.", nullptr},
    {"__name__",
     [](PyObject* self, void*) { return PyUnicode_FromString(reinterpret_cast<Operator*>(self)->schema.name.c_str()); },
     nullptr, nullptr, nullptr},
    {"__qualname__",
     [](PyObject* self, void*) { return PyUnicode_FromString(reinterpret_cast<Operator*>(self)->schema.name.c_str()); },
     nullptr, nullptr, nullptr},
    {"schema",
     [](PyObject* self, void*) { return PyUnicode_FromString(reinterpret_cast<Operator*>(self)->schema.text.c_str()); },
     nullptr, "The text it was declared with.", nullptr},
    {"tags", [](PyObject* self, void*) { return PyLong_FromUnsignedLong(reinterpret_cast<Operator*>(self)->tags); },
     nullptr, "The tags it was declared with.", nullptr},
    {"parameters", of_parameters<&Parameter::interned>, nullptr, "The names of its parameters, in order.", nullptr},
    {"parameter_types", of_parameters<&Parameter::written_type>, nullptr,
     "The types of its parameters as the schema has them.", nullptr},
    {"positional_count",
     [](PyObject* self, void*) { return PyLong_FromLong(reinterpret_cast<Operator*>(self)->schema.positional_count); },
     nullptr, "How many of its parameters are not keyword-only.", nullptr},
    {"elementwise",
     [](PyObject* self, void*) { return PyBool_FromLong(reinterpret_cast<Operator*>(self)->elementwise); }, nullptr,
     "Whether an element of the result depends on the same element of the inputs only.", nullptr},
    {"result_count",
     [](PyObject* self, void*) {
       return PyLong_FromSize_t(reinterpret_cast<Operator*>(self)->schema.result_names.size());
     },
     nullptr, "How many tensors it returns.", nullptr},
    {"inplace", [](PyObject* self, void*) { return related(reinterpret_cast<Operator*>(self)->inplace); }, nullptr,
     "The in-place variant, or None.", nullptr},
    {"functional", [](PyObject* self, void*) { return related(reinterpret_cast<Operator*>(self)->functional); },
     nullptr, "Of an in-place variant: the operator it belongs to; else None.", nullptr},
    {"composite", get_slot<&Operator::composite>, set_composite, "The decomposition, or None.", nullptr},
    {"decomposition", get_slot<&Operator::decomposition>, set_slot<&Operator::decomposition>,
     "Of a primitive, for devices without a kernel: decomposition(*arguments as kernels get them) -> results", nullptr},
    {"fallback", get_slot<&Operator::fallback>, set_slot<&Operator::fallback>,
     "Called where the arguments do not fit the schema.", nullptr},
    {"autograd_function", get_slot<&Operator::autograd_function>, set_autograd_function,
     "autograd_function(result, *arguments) -> result", nullptr},
    {"inplace_autograd_function", get_slot<&Operator::inplace_autograd_function>,
     set_slot<&Operator::inplace_autograd_function>, "inplace_autograd_function(operator, *arguments) -> result",
     nullptr},
    {"implementation", get_slot<&Operator::implementation>, set_slot<&Operator::implementation>,
     "Of a custom operator: implementation(device, *arguments) -> result", nullptr},
    {"allocator", get_slot<&Operator::allocator>, set_slot<&Operator::allocator>,
     "Of a custom operator: allocator(*arguments) -> results that a compiled kernel is to write", nullptr},
    {"result_type", get_slot<&Operator::result_type>, nullptr, "The type of several named results, or None.", nullptr},
    {"__doc__", get_slot<&Operator::doc>, set_doc, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// Pickled by name: an operator of the catalogue is an attribute of the package.
PyObject* operator_reduce(PyObject* self, PyObject*) {
  const Schema& schema = reinterpret_cast<Operator*>(self)->schema;
  if (!schema.custom) return PyUnicode_FromString(schema.name.c_str());
  const Ref<> library(PyImport_ImportModule("candelabra.library"));
  const Ref<> lookup(library ? PyObject_GetAttrString(library.get(), "operator_named") : nullptr);
  return lookup ? Py_BuildValue("O(s)", lookup.get(), schema.name.c_str()) : nullptr;
}

PyMethodDef operator_methods[] = {
    {"raw", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(operator_raw)), METH_FASTCALL | METH_KEYWORDS,
     "Call without recording on the tape."},
    {"uncounted", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(operator_uncounted)),
     METH_FASTCALL | METH_KEYWORDS, "Call without counting the change of a tensor that nobody else has seen yet."},
    {"again", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(operator_again)), METH_FASTCALL,
     "again(arguments, out, generator)\n\nCall with the arguments that a dispatch hook was given."},
    {"check", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(operator_check)), METH_FASTCALL,
     "Raise what a call with these arguments, given by position, would raise before it computes."},
    {"has_kernel", operator_has_kernel, METH_O, "Whether the backend of this device has a kernel for the operator."},
    {"__reduce__", operator_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef operator_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Operator, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Operator, dict), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

}  // namespace

// Not inlined, so that calls without overrides save no registers for it.
[[gnu::noinline]] static PyObject* call_overridden(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                                                   PyObject* names) {
  if (const auto result = call_overrides(self, arguments, count, names)) return *result;
  return invoke(self, arguments, count, names, {.overridable = true});
}

PyObject* operator_vectorcall(PyObject* self, PyObject* const* arguments, size_t flags, PyObject* names) {
  const Py_ssize_t count = PyVectorcall_NARGS(flags);
  if (may_be_overridden(arguments, names ? count + PyTuple_GET_SIZE(names) : count)) [[unlikely]]
    return call_overridden(self, arguments, count, names);
  return invoke(self, arguments, count, names, {});
}

Ref<> call_operator(Operator& op, std::initializer_list<PyObject*> arguments) {
  return owned(op.vectorcall(reinterpret_cast<PyObject*>(&op), arguments.begin(), arguments.size(), nullptr));
}

bool init_operator(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_descr_get, reinterpret_cast<void*>(operator_bind)},
      {Py_tp_repr, reinterpret_cast<void*>(operator_repr)},
      {Py_tp_getset, operator_attributes},
      {Py_tp_methods, operator_methods},
      {Py_tp_members, operator_members},
      {0, nullptr},
  };
  PyType_Spec spec = {"candelabra.Operator", sizeof(Operator), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR |
                          Py_TPFLAGS_DISALLOW_INSTANTIATION,
                      slots};
  operator_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return operator_type && PyModule_AddObjectRef(module, "Operator", reinterpret_cast<PyObject*>(operator_type)) == 0 &&
         init_operator_registry(module);
}

}  // namespace candelabra
