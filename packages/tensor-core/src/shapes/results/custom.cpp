// Custom operators, which programs define by candelabra.library, without a formula: only the schema
// is known. A Python function allocates the results that a compiled kernel writes.
#include <algorithm>
#include <array>

#include "memory/storage.hpp"
#include "operators/operator.hpp"
#include "python/recursion.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

namespace {

// Calls function(first, *arguments), without `first` if it is null. Keyword-only parameters are
// passed by name.
Ref<> call_with(PyObject* function, PyObject* first, const Call& call) {
  const Schema& schema = call.op.schema;
  std::array<PyObject*, max_arguments + 1> values;
  size_t count = 0;
  if (first) values[count++] = first;
  for (int i = 0; i < call.argument_count; ++i) values[count++] = call.arguments[i].object;
  const auto keywords = static_cast<size_t>(call.argument_count - schema.positional_count);
  Ref<> names;
  if (keywords > 0) {
    names = owned(PyTuple_New(static_cast<Py_ssize_t>(keywords)));
    for (size_t k = 0; k < keywords; ++k) {
      PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(k),
                       Py_NewRef(schema.parameters[static_cast<size_t>(schema.positional_count) + k].interned));
    }
  }
  return owned(PyObject_Vectorcall(function, values.data(), count - keywords, names.get()));
}

// Calls visit(tensor, i) for each tensor of each argument i, until a call returns true.
template <typename Visit>
bool any_tensor(const Call& call, Visit visit) {
  for (int i = 0; i < call.argument_count; ++i) {
    const Argument& argument = call.arguments[i];
    if (argument.is_tensor() && visit(*argument.tensor, i)) return true;
    if (argument.kind != ArgumentKind::Tensors) continue;
    for (int k = 0; k < argument.count; ++k) {
      if (argument.tensors[k] && visit(*argument.tensors[k], i)) return true;
    }
  }
  return false;
}

// A compiled kernel can access one device's memory only.
void check_devices(const Call& call) {
  any_tensor(call, [&](const TensorObject& tensor, int i) {
    check(tensor.device() == call.device, PyExc_RuntimeError, call.title(),
          "(): Expected all tensors to be on the same device, but found at least two devices, ", to_text(call.device),
          " and ", to_text(tensor.device()), " (argument '", call.op.schema.parameters[static_cast<size_t>(i)].name,
          "'); move one with .to(device)");
    return false;
  });
}

// Different storages may share memory, for instance by way of a NumPy array.
bool overlap(const Storage& a, const Storage& b) {
  if (&a == &b) return true;
  const auto *first = static_cast<const char*>(a.data), *second = static_cast<const char*>(b.data);
  return a.device == b.device && a.bytes > 0 && b.bytes > 0 && first < second + b.bytes && second < first + a.bytes;
}

bool belongs_to_arguments(const Call& call, const TensorObject& tensor) {
  return any_tensor(call,
                    [&](const TensorObject& argument, int) { return overlap(*argument.storage, *tensor.storage); });
}

// Checks that a kernel in Python kept to its schema: it mutates only the named arguments (by their
// version counters), and its results do not alias arguments or one another.
class SchemaChecker {
 public:
  explicit SchemaChecker(const Call& call) : call_(call) {
    any_tensor(call, [&](const TensorObject& tensor, int i) {
      const bool may_change = any_tensor(call, [&](const TensorObject& other, int k) {
        return call.op.schema.parameters[static_cast<size_t>(k)].mutated && overlap(*other.storage, *tensor.storage);
      });
      if (!may_change) unchanged_.push_back({tensor.storage, tensor.storage->version, i});
      return false;
    });
  }

  void check_arguments() const {
    for (const Version& expected : unchanged_) {
      if (expected.storage->version == expected.version) continue;
      const std::string& name = call_.op.schema.parameters[static_cast<size_t>(expected.argument)].name;
      raise(PyExc_RuntimeError, call_.title(), "(): the kernel changed argument '", name,
            "' in place, which the operator's schema does not say. Name it in mutates_args (as \"Tensor(a!) ", name,
            "\" in a schema), or have the kernel change a clone; the schema: ", call_.op.schema.text);
    }
  }

  void check_results(PyObject* result) {
    if (is_tensor(result)) return check_result(*as_tensor(result));
    if (!PyTuple_Check(result) && !PyList_Check(result)) return;
    const RecursiveCall nested(" in the results of an operator");
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(result); ++k)
      check_results(PySequence_Fast_GET_ITEM(result, k));
  }

 private:
  struct Version {
    const Storage* storage;
    decltype(Storage::version) version;
    int argument;
  };

  void check_result(const TensorObject& result) {
    const bool repeated =
        std::ranges::any_of(results_, [&](const Storage* other) { return overlap(*other, *result.storage); });
    check(
        !repeated && !belongs_to_arguments(call_, result), PyExc_RuntimeError, call_.title(),
        "(): The output of this custom operator (1) must not also be an input to this custom operator and (2) may not "
        "alias any "
        "inputs to this custom operator or other returns. The most common way to trigger this error is if we have y = "
        "custom_op(x) and y and x are the same Tensor. Please instead return a clone of the offending output tensor(s) "
        "(e.g. "
        "return x.clone()) or refactor the custom operator to not return y.");
    results_.push_back(result.storage);
  }

  const Call& call_;
  std::vector<Version> unchanged_;
  std::vector<const Storage*> results_;
};

// Adds one output. A tensor is its memory; a dtype means that the kernel asks for memory once it
// knows the sizes.
void take_result(Call& call, PyObject* allocated, size_t position) {
  if (is_dtype_object(allocated)) {
    check(call.op.tags & tag_data_dependent, PyExc_RuntimeError, call.title(), "(): the sizes of result ", position,
          " are not given, and the operator was not defined as one whose results depend on data");
    call.add_output(dtype_from_object(allocated), {});
    return;
  }
  check(is_tensor(allocated), PyExc_TypeError, call.title(), "(): what describes the results gave ",
        Py_TYPE(allocated)->tp_name, " for result ", position, ", not Tensor");
  TensorObject* tensor = as_tensor(allocated);
  check(tensor->device() == call.device, PyExc_RuntimeError, call.title(), "(): the kernel runs on ",
        to_text(call.device), ", but the memory for result ", position, " is on ", to_text(tensor->device()));
  check(!belongs_to_arguments(call, *tensor), PyExc_RuntimeError, call.title(), "(): result ", position,
        " must not share memory with an argument: the function that describes the results is to make new tensors");
  Output& output = call.add_output(tensor->dtype, tensor->sizes);
  output.tensor = TensorRef::borrow(tensor);
}

void allocate_results(Call& call) {
  const size_t expected = call.op.schema.result_names.size();
  if (expected == 0) return;
  check(expected <= max_outputs, PyExc_NotImplementedError, call.title(), "(): a compiled kernel has no more than ",
        max_outputs, " results, not ", expected);
  check(call.op.allocator, PyExc_RuntimeError, call.title(),
        "(): nothing says which shape the results have; register_fake() takes a function that makes them");
  const Ref<> results = call_with(call.op.allocator, nullptr, call);
  if (expected == 1 && !PyTuple_Check(results.get())) return take_result(call, results.get(), 0);
  check(PyTuple_Check(results.get()) && static_cast<size_t>(PyTuple_GET_SIZE(results.get())) == expected,
        PyExc_TypeError, call.title(), "(): what describes the results must give ", expected, " of them, not ",
        PyTuple_Check(results.get()) ? text(PyTuple_GET_SIZE(results.get()))
                                     : std::string(Py_TYPE(results.get())->tp_name));
  for (size_t k = 0; k < expected; ++k)
    take_result(call, PyTuple_GET_ITEM(results.get(), static_cast<Py_ssize_t>(k)), k);
}

}  // namespace

void custom(Call& call) {
  if (call.op.kernels[call.device.type].compiled) {
    check_devices(call);
    return allocate_results(call);
  }
  check(call.op.implementation, PyExc_NotImplementedError, call.title(), "(): no kernel is registered for device ",
        to_text(call.device), ", nor for any other");
  const Ref<> device(device_object(call.device));
  SchemaChecker checker(call);
  call.result = call_with(call.op.implementation, device.get(), call);
  checker.check_arguments();
  if (!call.op.schema.aliased_results) checker.check_results(call.result.get());
}

}  // namespace candelabra::shapes
