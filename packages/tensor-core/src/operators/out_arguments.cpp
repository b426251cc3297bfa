#include "operators/out_arguments.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "operators/operator.hpp"

namespace candelabra {

namespace {

PyObject* const failure = nullptr;

struct OutRules {
  std::set<std::string, std::less<>> exact, whole, apart, any_dtype;
  OutMemory memory(std::string_view name) const {
    return apart.contains(name) ? OutMemory::Apart : whole.contains(name) ? OutMemory::Whole : OutMemory::Any;
  }
};
OutRules& out_rules() {
  static OutRules rules;
  return rules;
}

void check_given(const char* operator_name, PyObject* out, PyObject* result) {
  check(is_tensor(out) && is_tensor(result), PyExc_TypeError, operator_name, "(): argument 'out' must be Tensor, not ",
        Py_TYPE(out)->tp_name);
  TensorObject *to = as_tensor(out), *from = as_tensor(result);
  check_out_dtype(operator_name, from->dtype, to->dtype);
  check(!grad_mode.enabled || !(requires_grad(to) || requires_grad(from)), PyExc_RuntimeError, operator_name,
        "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
        "requires grad.");
}

}  // namespace

bool needs_exact_out(std::string_view operator_name) {
  return out_rules().exact.contains(operator_name);
}

OutMemory out_memory_of(std::string_view operator_name) {
  return out_rules().memory(operator_name);
}

void check_out_dtype(const char* operator_name, Dtype result, Dtype out) {
  check(result == out || !out_rules().exact.contains(operator_name), PyExc_RuntimeError, operator_name,
        "(): Expected out tensor to have dtype ", name(result), ", but got ", name(out),
        " instead: Expected object of scalar type ", info(result).type_name, " but got scalar type ",
        info(out).type_name, " for argument 'out' (expected scalar_type ", info(result).type_name, " but found ",
        info(out).type_name, ")");
  check(can_cast(result, out) || out_rules().any_dtype.contains(operator_name), PyExc_RuntimeError, "result type ",
        info(result).type_name, " can't be cast to the desired output type ", info(out).type_name);
}

void check_out_memory(const char* operator_name, OutMemory rule, const TensorObject& out, const TensorObject& input) {
  if (rule == OutMemory::Any || input.storage != out.storage || input.numel == 0 || out.numel == 0) return;
  const bool alike = input.sizes == out.sizes ? input.strides == out.strides : input.contiguous && out.contiguous;
  const bool same = input.data() == out.data() && input.dtype == out.dtype && input.numel == out.numel && alike;
  check(same ? rule == OutMemory::Whole : !share_memory_partly(input, out), PyExc_RuntimeError, overlaps_written,
        " (out= of ", operator_name, "())");
}

Ref<> give_to_out(const char* operator_name, PyObject* out, PyObject* result) {
  check_given(operator_name, out, result);
  TensorObject *to = as_tensor(out), *from = as_tensor(result);
  if (to == from) return Ref<>::borrow(out);
  resize_output(operator_name, *to, from->sizes);
  copy_into(to, from);
  ++to->storage->version;
  return Ref<>::borrow(out);
}

Ref<> give_to_outs(const char* operator_name, PyObject* outs, PyObject* results) {
  check(PyTuple_Check(outs) || PyList_Check(outs), PyExc_TypeError, operator_name,
        "(): argument 'out' must be a tuple of Tensors, not ", Py_TYPE(outs)->tp_name);
  const Ref<> given = owned(PySequence_Tuple(outs)), made = owned(PySequence_Tuple(results));
  const Py_ssize_t count = PyTuple_GET_SIZE(made.get());
  check(PyTuple_GET_SIZE(given.get()) == count, PyExc_TypeError, operator_name, "(): argument 'out' must hold ", count,
        " tensors, not ", PyTuple_GET_SIZE(given.get()));
  for (Py_ssize_t i = 0; i < count; ++i)
    check_given(operator_name, PyTuple_GET_ITEM(given.get(), i), PyTuple_GET_ITEM(made.get(), i));
  Ref<> written = owned(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    Ref<> one = give_to_out(operator_name, PyTuple_GET_ITEM(given.get(), i), PyTuple_GET_ITEM(made.get(), i));
    PyTuple_SET_ITEM(written.get(), i, one.release());
  }
  return written;
}

namespace {

// The arguments of give_to_out() and give_to_outs(): name, out, result, and the inputs to check for
// shared memory.
struct OutArguments {
  const char* operator_name;
  PyObject *out, *result;

  bool parse(PyObject* arguments) {
    const Ref<> first(PyTuple_GetSlice(arguments, 0, 3));
    return first && PyArg_ParseTuple(first.get(), "sOO", &operator_name, &out, &result);
  }
  void check_inputs(PyObject* arguments) const {
    const OutMemory rule = out_rules().memory(operator_name);
    auto check_one = [&](PyObject* given) {
      if (!is_tensor(given)) return;
      for (Py_ssize_t i = 3; i < PyTuple_GET_SIZE(arguments); ++i) {
        PyObject* input = PyTuple_GET_ITEM(arguments, i);
        if (is_tensor(input)) check_out_memory(operator_name, rule, *as_tensor(given), *as_tensor(input));
      }
    };
    if (!PyTuple_Check(out) && !PyList_Check(out)) return check_one(out);
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(out); ++k) check_one(PySequence_Fast_GET_ITEM(out, k));
  }
};

PyObject* give_to_out_function(PyObject*, PyObject* arguments) {
  OutArguments call;
  if (!call.parse(arguments)) return nullptr;
  return guarded<>(failure, [&] {
    call.check_inputs(arguments);
    return give_to_out(call.operator_name, call.out, call.result).release();
  });
}

PyObject* give_to_outs_function(PyObject*, PyObject* arguments) {
  OutArguments call;
  if (!call.parse(arguments)) return nullptr;
  return guarded<>(failure, [&] {
    call.check_inputs(arguments);
    return give_to_outs(call.operator_name, call.out, call.result).release();
  });
}

PyObject* declare_out_rule(PyObject*, PyObject* arguments) {
  return guarded<>(failure, [&]() -> PyObject* {
    const char *name = nullptr, *words = nullptr;
    if (!PyArg_ParseTuple(arguments, "ss:declare_out_rule", &name, &words)) return nullptr;
    for (std::string_view rest = words; !rest.empty();) {
      const std::string_view word = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
      OutRules& rules = out_rules();
      auto* const operators = word == "exact"       ? &rules.exact
                              : word == "whole"     ? &rules.whole
                              : word == "apart"     ? &rules.apart
                              : word == "any_dtype" ? &rules.any_dtype
                                                    : nullptr;
      check(operators, PyExc_ValueError, name, ": no out= rule is called ", word,
            "; there are exact, whole, apart and any_dtype");
      operators->insert(name);
    }
    return Py_NewRef(Py_None);
  });
}

PyMethodDef out_functions[] = {
    {"give_to_out", give_to_out_function, METH_VARARGS,
     "give_to_out(name, out, result)\n\nResize out like this operator's result, copy the result to it, and return it."},
    {"give_to_outs", give_to_outs_function, METH_VARARGS,
     "give_to_outs(name, outs, results)\n\nThe same for several results; all are checked before the first is written."},
    {"declare_out_rule", declare_out_rule, METH_VARARGS,
     "declare_out_rule(name, rule)\n\nAdd rules for the out= of an operator: any of the words exact, whole, apart, "
     "any_dtype, "
     "separated by "
     "spaces."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool init_out_arguments(PyObject* module) {
  return PyModule_AddFunctions(module, out_functions) == 0;
}

}  // namespace candelabra
