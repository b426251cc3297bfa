// The operator object: a Python callable that parses its arguments by its schema and runs the
// kernel.
#pragma once

#include <array>
#include <string>

#include "dispatch/call.hpp"
#include "operators/out_arguments.hpp"
#include "operators/refusals.hpp"
#include "operators/schema.hpp"

namespace candelabra {

struct Kernel {
  cb_kernel compiled = nullptr;
  PyObject* python = nullptr;  // a callable
  const cb_backend* backend = nullptr;
  uint32_t flags = 0;                    // enum cb_kernel_flags
  bool is_restricted = false;            // there are dtypes that the kernel does not get
  uint64_t dtypes = ~uint64_t{0};        // mask: the dtypes that it computes in
  uint64_t known_dtypes = ~uint64_t{0};  // mask: the dtypes of its minor version of the ABI
  bool there() const { return compiled || python; }
};

struct Operator {
  PyObject_HEAD vectorcallfunc vectorcall;
  Schema schema;
  uint32_t tags;
  ShapeRule shape;
  std::array<Kernel, max_device_types> kernels;
  PyObject* composite;  // the decomposition of operators tagged composite
  // of a primitive, for devices without a kernel: decomposition(*arguments as kernels get them) ->
  // results
  PyObject* decomposition;
  PyObject* fallback;  // for arguments that do not match the schema: alternative signatures
  // the autograd function, set by candelabra.autograd and called after the kernel:
  // autograd_function(result,
  // *arguments) -> result
  PyObject* autograd_function;
  // the autograd function of in-place operators, called instead of the kernel:
  // inplace_autograd_function(operator, *arguments) -> result
  PyObject* inplace_autograd_function;
  // for custom operators without a compiled kernel: implementation(device, *arguments) -> result
  PyObject* implementation;
  // for custom operators with a compiled kernel: allocator(*arguments) -> the results to write
  PyObject* allocator;
  PyObject* doc;
  PyObject* dict;
  Operator* inplace;           // the in-place variant of this operator
  Operator* functional;        // on an in-place variant: the operator it belongs to
  PyObject* result_type;       // a structseq type if results are named, else null
  uint32_t changed_arguments;  // bit mask: which are Tensor(a!), those of in-place variants included
  // in-place variants, and operators such as fill_ that return their first Tensor(a!)
  bool returns_self;
  // element i of the result depends only on element i of the inputs, so they may share memory
  bool elementwise;
  bool exact_out;  // out= must have the dtype of the result
  OutMemory out_memory;
  Refusals refusals;  // an in-place variant has those of its operator
  std::string title;  // what messages call it: the fact `title` of its row, else its name

  // Operators with `returns_self` change and return this argument.
  static constexpr int self_position = 0;

  // What messages call it. An in-place variant has a name of its own.
  const char* message_name() const { return functional ? schema.name.c_str() : title.c_str(); }

  const std::array<Kernel, max_device_types>& kernel_table() const {
    return functional ? functional->kernels : kernels;
  }
};

extern PyTypeObject* operator_type;

// Borrowed; null if there is no such operator.
Operator* find_operator(std::string_view name);
Operator& required_operator(const char* name);  // throws if there is no such operator
// All operators of the catalogue, without in-place variants, in declaration order.
const std::vector<Operator*>& all_operators();

struct FastPath;

// Options of a call.
struct Manner {
  bool record = true;
  bool counted = true;                  // whether to bump the version of modified arguments
  const FastPath* fast_path = nullptr;  // the fast path that made the call, if any
  bool overridable = false;             // modes or arguments' classes may compute the operator
};
// Calls an operator like a call from Python. New reference. Throws SchemaMismatch (arguments.hpp)
// if the arguments do not match.
Ref<> call_operator(Operator& op, PyObject* const* arguments, Py_ssize_t count, PyObject* names, Manner manner);
// Calls an operator with these Python arguments; autograd records it if enabled. New reference;
// throws.
Ref<> call_operator(Operator& op, std::initializer_list<PyObject*> arguments);

// What the vectorcall slot of an operator holds.
PyObject* operator_vectorcall(PyObject* self, PyObject* const* arguments, size_t flags, PyObject* names);

bool init_operator(PyObject* module);
// operator_registry.cpp, called by init_operator()
bool init_operator_registry(PyObject* module);

}  // namespace candelabra
