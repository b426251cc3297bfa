#include "operators/arguments.hpp"

#include <algorithm>
#include <string_view>

#include "dispatch/dispatch_hook.hpp"
#include "tensor/tensor_type.hpp"

namespace candelabra {

namespace {

bool same_name(PyObject* a, PyObject* b) {
  return a == b || PyUnicode_Compare(a, b) == 0;
}

// NumPy's names for PyTorch's, which PyTorch takes as well.
const char* other_name(PyObject* name) {
  if (PyUnicode_CompareWithASCIIString(name, "input") == 0) return "self";
  if (PyUnicode_CompareWithASCIIString(name, "axis") == 0) return "dim";
  if (PyUnicode_CompareWithASCIIString(name, "keepdims") == 0) return "keepdim";
  if (PyUnicode_CompareWithASCIIString(name, "self") == 0) return "input";
  if (PyUnicode_CompareWithASCIIString(name, "x1") == 0) return "self";
  if (PyUnicode_CompareWithASCIIString(name, "x2") == 0) return "other";
  return nullptr;
}

bool is_out(PyObject* name) {
  static constinit InternedOnce out("out");
  return name == out.get() || PyUnicode_CompareWithASCIIString(name, "out") == 0;
}

int find_parameter(const Schema& schema, PyObject* name) {
  static constinit InternedOnce out("out");
  int count = static_cast<int>(schema.parameters.size());
  for (int i = 0; i < count; ++i) {
    if (schema.parameters[i].interned == name) return i;
  }
  if (name == out.get()) return -1;  // the names of parameters are interned, too
  for (int i = 0; i < count; ++i) {
    if (same_name(schema.parameters[i].interned, name)) return i;
  }
  if (const char* other = other_name(name)) {
    for (int i = 0; i < count; ++i) {
      if (schema.parameters[i].name == other) return i;
    }
  }
  return -1;
}

bool is_integer(PyObject* object) {
  return PyLong_Check(object) || (!PyFloat_Check(object) && PyIndex_Check(object) && !is_tensor(object));
}

void collect_keywords(Operator& op, Given& given, PyObject* const* values, PyObject* names) {
  const Schema& schema = op.schema;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(names); ++k) {
    PyObject* name = PyTuple_GET_ITEM(names, k);
    int i = find_parameter(schema, name);
    if (i >= 0) {
      if (given.values[i])
        candelabra::mismatch(op.message_name(), "() got multiple values for argument '", schema.parameters[i].name,
                             "'");
      given.values[i] = values[k];
    } else if (is_out(name) && !(op.tags & (tag_no_out | tag_view | tag_core)) && !op.returns_self) {
      if (values[k] != Py_None) given.out = values[k];
    } else if (PyUnicode_CompareWithASCIIString(name, "generator") == 0 && (op.tags & tag_random)) {
      if (values[k] != Py_None) given.generator = values[k];
    } else {
      candelabra::mismatch(op.message_name(), "() got an unexpected keyword argument '", PyUnicode_AsUTF8(name),
                           "'; its schema: ", schema.text);
    }
  }
}

// Of sizes alone: nothing but the parser reads them, and one number is a list to it.
bool is_factory(const Schema& schema) {
  return schema.positional_count == 1;
}

// What documentation calls a parameter.
const char* documented(const Parameter& parameter) {
  return parameter.name == "self" ? "input" : parameter.name.c_str();
}

[[noreturn]] void wrong_type(const Operator& op, int i, const char* expected, PyObject* got) {
  std::string advice;
  if (PyUnicode_Check(got) && std::string_view(expected) == "candelabra.dtype") {
    const char* written = PyUnicode_AsUTF8(got);
    if (!written) throw PythonError();
    advice = text("; dtypes are attributes: candelabra.float32, not '", written, "'");
  }
  candelabra::mismatch(op.message_name(), "(): argument '", documented(op.schema.parameters[i]), "' (position ", i + 1,
                       ") must be ", expected, ", not ", Py_TYPE(got)->tp_name, advice);
}

int64_t parse_integer(const Operator& op, int i, PyObject* value) {
  if (PyLong_Check(value)) {
    long long result = PyLong_AsLongLong(value);
    if (result == -1 && PyErr_Occurred()) throw PythonError();
    return result;
  }
  const bool no_integer = is_tensor(value) && (as_tensor(value)->numel != 1 || !is_integral(as_tensor(value)->dtype));
  if (!PyFloat_Check(value) && PyIndex_Check(value) && !no_integer) {
    Ref<> index = owned(PyNumber_Index(value));
    long long result = PyLong_AsLongLong(index.get());
    if (result == -1 && PyErr_Occurred()) throw PythonError();
    return result;
  }
  wrong_type(op, i, "int", value);
}

bool holds_plain_integers(PyObject* list) {
  for (Py_ssize_t k = 0; k < PyList_GET_SIZE(list); ++k) {
    if (!PyLong_Check(PyList_GET_ITEM(list, k))) return false;
  }
  return true;
}

void parse_integers(Call& call, int i, const Parameter& parameter, PyObject* value) {
  Argument& argument = call[i];
  argument.kind = ArgumentKind::Ints;
  // var(True) does not mean dimension 1.
  if (PyBool_Check(value) && parameter.type == ParameterType::Ints)
    wrong_type(call.op, i, "int or a list of ints", value);
  if (is_integer(value)) {  // one number for a list: of its fixed length, or of one
    int count = std::max(parameter.fixed_length, 1);
    int64_t* integers = call.arena.make<int64_t>(count);
    std::fill_n(integers, count, parse_integer(call.op, i, value));
    argument.ints = integers;
    argument.count = count;
    return;
  }
  if (!PyTuple_Check(value) && !PyList_Check(value)) {
    if (!PySequence_Check(value) || PyUnicode_Check(value) || is_tensor(value)) {
      wrong_type(call.op, i, parameter.type == ParameterType::Bools ? "a list of bools" : "a list of ints", value);
    }
    Ref<> list = owned(PySequence_Tuple(value));
    parse_integers(call, i, parameter, list.get());
    return;
  }
  if (PyList_Check(value) && !holds_plain_integers(value)) {  // their __index__ may change the list
    Ref<> fixed = owned(PyList_AsTuple(value));
    return parse_integers(call, i, parameter, fixed.get());
  }
  Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
  if (parameter.fixed_length > 1 && count == 1)
    return parse_integers(call, i, parameter, PySequence_Fast_GET_ITEM(value, 0));
  int64_t* integers = call.arena.make<int64_t>(static_cast<size_t>(count));
  for (Py_ssize_t k = 0; k < count; ++k) integers[k] = parse_integer(call.op, i, PySequence_Fast_GET_ITEM(value, k));
  argument.ints = integers;
  argument.count = static_cast<int32_t>(count);
}

double parse_float(const Operator& op, int i, PyObject* value) {
  if (PyFloat_Check(value)) return PyFloat_AS_DOUBLE(value);
  if (PyBool_Check(value) || PyComplex_Check(value) || PyUnicode_Check(value) || !PyNumber_Check(value))
    wrong_type(op, i, "float", value);
  double result = PyFloat_AsDouble(value);
  if (result == -1.0 && PyErr_Occurred()) throw PythonError();
  return result;
}

void parse_tensors(Call& call, int i, const Parameter& parameter, PyObject* value, bool& requires_grad) {
  if (!PyTuple_Check(value) && !PyList_Check(value)) wrong_type(call.op, i, "a tuple or list of Tensors", value);
  Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
  TensorObject** tensors = call.arena.make<TensorObject*>(static_cast<size_t>(count));
  for (Py_ssize_t k = 0; k < count; ++k) {
    PyObject* element = PySequence_Fast_GET_ITEM(value, k);
    if (is_tensor(element)) {
      tensors[k] = as_tensor(element);
      requires_grad |= candelabra::requires_grad(tensors[k]);
    } else if (element == Py_None && parameter.optional_elements) {
      tensors[k] = nullptr;
    } else {
      candelabra::mismatch(call.title(), "(): argument '", parameter.name, "' (position ", i + 1,
                           ") must be a tuple or list of Tensors, but element ", k, " is a ",
                           Py_TYPE(element)->tp_name);
    }
  }
  Argument& argument = call[i];
  argument.kind = ArgumentKind::Tensors;
  argument.tensors = tensors;
  argument.count = static_cast<int32_t>(count);
}

void parse_other(Call& call, int i, const Parameter& parameter, PyObject* value) {
  Argument& argument = call[i];
  switch (parameter.type) {
    case ParameterType::Scalar:
      // The number of a tensor of a transformation is not all that there is to it.
      if ((call.op.tags & tag_wrapped_numbers) && is_tensor(value) && is_wrapper(value)) {
        wrong_type(call.op, i, "Number", value);
      }
      // A tensor of one element stands for its number, as in PyTorch.
      if (is_tensor(value) && as_tensor(value)->numel == 1 && !requires_grad(as_tensor(value))) {
        argument.scalar = item(as_tensor(value));
      } else if (is_number(value)) {
        argument.scalar = scalar_argument(value);
      } else {
        wrong_type(call.op, i, "Number", value);
      }
      argument.kind = ArgumentKind::Scalar;
      break;
    case ParameterType::Int:
      if (PyBool_Check(value)) wrong_type(call.op, i, "int", value);
      argument.i = parse_integer(call.op, i, value);
      argument.kind = ArgumentKind::Int;
      break;
    case ParameterType::Float:
      argument.f = parse_float(call.op, i, value);
      argument.kind = ArgumentKind::Float;
      break;
    case ParameterType::Bool: {
      if (!PyBool_Check(value) && !PyLong_Check(value)) wrong_type(call.op, i, "bool", value);
      argument.i = PyObject_IsTrue(value);
      argument.kind = ArgumentKind::Bool;
      break;
    }
    case ParameterType::Str: {
      if (!PyUnicode_Check(value)) wrong_type(call.op, i, "str", value);
      argument.string = PyUnicode_AsUTF8(value);
      if (!argument.string) throw PythonError();
      argument.kind = ArgumentKind::String;
      break;
    }
    case ParameterType::Ints:
    case ParameterType::Bools:
      parse_integers(call, i, parameter, value);
      break;
    case ParameterType::Floats: {
      Ref<> list = Ref<>(PySequence_Tuple(value));
      if (!list) {
        PyErr_Clear();
        wrong_type(call.op, i, "a list of floats", value);
      }
      Py_ssize_t count = PyTuple_GET_SIZE(list.get());
      double* floats = call.arena.make<double>(static_cast<size_t>(count));
      for (Py_ssize_t k = 0; k < count; ++k) floats[k] = parse_float(call.op, i, PyTuple_GET_ITEM(list.get(), k));
      argument.floats = floats;
      argument.count = static_cast<int32_t>(count);
      argument.kind = ArgumentKind::Floats;
      break;
    }
    case ParameterType::Dtype:
      if (!is_dtype_object(value) && !PyType_Check(value)) wrong_type(call.op, i, "candelabra.dtype", value);
      argument.dtype = dtype_from_object(value);
      argument.kind = ArgumentKind::Dtype;
      break;
    case ParameterType::Device:
      argument.device = device_from_object(value);
      argument.kind = ArgumentKind::Device;
      break;
    case ParameterType::MemoryFormat:
      if (!is_memory_format_object(value)) wrong_type(call.op, i, "candelabra.memory_format", value);
      argument.memory_format = memory_format_from_object(value);
      argument.kind = ArgumentKind::MemoryFormat;
      break;
    case ParameterType::Object:
      break;
    default:
      wrong_type(call.op, i, "of a known type", value);
  }
}

}  // namespace

void collect(Operator& op, Given& given, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  const Schema& schema = op.schema;
  int parameters = static_cast<int>(schema.parameters.size());
  int positional = schema.positional_count;
  int filled = static_cast<int>(std::min<Py_ssize_t>(count, positional));
  for (int i = 0; i < filled; ++i) given.values[i] = arguments[i];
  for (int i = filled; i < parameters; ++i) given.values[i] = nullptr;
  if (count > positional ||
      (schema.variadic_first_list && count == positional && is_integer(arguments[positional - 1]))) {
    int list = positional - 1;
    // Among several, a tensor without dimensions is a size as well.
    if (!schema.variadic_first_list ||
        !(is_integer(arguments[list]) || (count > positional && is_tensor(arguments[list])))) {
      candelabra::mismatch(op.message_name(), "() takes ", positional,
                           positional == 1 ? " positional argument but " : " positional arguments but ", count,
                           " were given; its schema: ", schema.text);
    }
    if (count > positional || !is_factory(schema)) {
      given.spread = owned(PyTuple_New(count - list));
      for (Py_ssize_t i = list; i < count; ++i) PyTuple_SET_ITEM(given.spread.get(), i - list, Py_NewRef(arguments[i]));
      given.values[list] = given.spread.get();
    }
  }
  if (names) collect_keywords(op, given, arguments + count, names);
  for (int i = 0; i < parameters; ++i) {
    if (given.values[i]) continue;
    given.values[i] = schema.parameters[i].default_value;
    if (given.values[i]) continue;
    // view() of a tensor without dimensions; dims have to be given
    if (schema.variadic_first_list && i == positional - 1 && schema.positional_count == 2 &&
        schema.parameters[i].name != "dims") {
      given.spread = owned(PyTuple_New(0));
      given.values[i] = given.spread.get();
      continue;
    }
    candelabra::mismatch(op.message_name(), "() missing required argument '", documented(schema.parameters[i]),
                         "'; its schema: ", schema.text);
  }
}

// Whether a Python number may stand for this tensor argument.
static bool takes_number(const Call& call, int index) {
  return (call.op.tags & tag_numbers) && (index > 0 || !(call.in_place || (call.op.tags & tag_tensor_first)));
}

cb_scalar scalar_argument(PyObject* object) {
  const cb_scalar number = scalar_from_object(object);
  const bool is_kept = number.kind == CB_SCALAR_INT || number.kind == CB_SCALAR_FLOAT;
  if (is_kept || is_tensor(object) || PyLong_Check(object) || PyComplex_Check(object)) return number;
  return scalar_from_object(owned(PyNumber_Float(object)).get());
}

bool parse(Call& call, Given& given) {
  const Schema& schema = call.op.schema;
  bool requires_grad = false, any_tensor = false, any_number = false;
  int count = static_cast<int>(schema.parameters.size());
  call.argument_count = count;
  for (int i = 0; i < count; ++i) {
    PyObject* value = given.values[i];
    const Parameter& parameter = schema.parameters[i];
    Argument& argument = call[i];
    argument.reset(value);
    if (parameter.type == ParameterType::Tensor) {
      if (is_tensor(value)) [[likely]] {
        argument.kind = ArgumentKind::Tensor;
        argument.tensor = as_tensor(value);
        requires_grad |= candelabra::requires_grad(argument.tensor);
        any_tensor = true;
      } else if (value == Py_None && parameter.optional) {
        continue;
      } else if (takes_number(call, i) && is_number(value)) {
        argument.kind = ArgumentKind::Number;
        argument.scalar = scalar_argument(value);
        any_number = true;
      } else {
        wrong_type(call.op, i, takes_number(call, i) ? "Tensor or Number" : "Tensor", value);
      }
      continue;
    }
    if (value == Py_None && parameter.optional) continue;
    if (parameter.type == ParameterType::Tensors) {
      value = given.values[i] = given.freeze(value);
      parse_tensors(call, i, parameter, value, requires_grad);
    } else {
      parse_other(call, i, parameter, value);
    }
  }
  if (any_number && !any_tensor) wrong_type(call.op, 0, "Tensor", given.values[0]);
  return requires_grad;
}

}  // namespace candelabra
