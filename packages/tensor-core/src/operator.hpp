// The operator object: a CPython callable that parses by its schema and runs.
#pragma once

#include <array>
#include <string>

#include "call.hpp"
#include "out_arguments.hpp"
#include "schema.hpp"

namespace candelabra {

struct Kernel {
  cb_kernel compiled = nullptr;
  PyObject* python = nullptr;  // a callable
  const cb_backend* backend = nullptr;
  bool reads_contents = false;  // cb_call.contents is for it
  bool converts = false;        // takes tensors of any dtype for that of its result
  bool channels_last = false;   // takes tensors with the channels innermost in memory
  bool there() const { return compiled || python; }
};

namespace shapes {
struct ElementwiseTraits;
}
// What the elementwise shape rules treat specially about the operator of this name
// (shapes/elementwise.cpp). Never null.
const shapes::ElementwiseTraits* find_elementwise_traits(std::string_view operator_name);

struct Operator {
  PyObject_HEAD vectorcallfunc vectorcall;
  Schema schema;
  uint32_t tags;
  ShapeRule shape;
  const shapes::ElementwiseTraits* traits;  // never null; an in-place variant has those of its operator
  std::array<Kernel, max_device_types> kernels;
  PyObject* composite;         // the decomposition, for operators tagged composite
  PyObject* fallback;          // called with the same arguments when they do not fit the schema: other spellings of the call
  PyObject* recorder;          // recorder(result, *arguments) -> result, after the kernel; set by candelabra.autograd
  PyObject* inplace_recorder;  // on in-place operators: inplace_recorder(operator, *arguments) -> result, instead of the kernel
  PyObject* implementation;  // of custom operators: implementation(device, *arguments) -> result, where there is no compiled kernel
  PyObject* allocator;       // of custom operators: allocator(*arguments) -> the results of a compiled kernel, to be written
  PyObject* doc;
  PyObject* dict;
  Operator* inplace;       // the in-place variant of this operator
  Operator* functional;    // of an in-place variant: the operator it belongs to
  PyObject* result_type;   // a structseq type where results are named, else null
  bool changes_arguments;  // any Tensor(a!), in-place variants included
  bool returns_self;       // in-place variants, and operators such as fill_ that return the Tensor(a!) they were given first
  bool elementwise;        // reads element i of its inputs only for element i of the result, so that the two may be one memory
  bool exact_out;          // out= must have the dtype of the result
  OutMemory out_memory;

  // Operators with `returns_self` change and return this argument.
  static constexpr int self_position = 0;

  const std::array<Kernel, max_device_types>& kernel_table() const { return functional ? functional->kernels : kernels; }
};

extern PyTypeObject* operator_type;

// Borrowed; null when there is none of that name.
Operator* find_operator(std::string_view name);
// Every operator of the catalogue, in-place variants not counted, in the order of declaration.
const std::vector<Operator*>& all_operators();

struct Front;

// How a call comes in.
struct Manner {
  bool record = true;
  bool counted = true;           // whether the change of an argument is
  const Front* front = nullptr;  // what handed the call on, if something did
};
// Calls an operator as Python does. New reference; throws SchemaMismatch (arguments.hpp) where the arguments do not fit.
Ref<> call_operator(Operator& op, PyObject* const* arguments, Py_ssize_t count, PyObject* names, Manner manner);
// Calls an operator with these Python arguments, recording where the tape is on. New reference; throws.
Ref<> call_operator(Operator& op, std::initializer_list<PyObject*> arguments);

bool init_operator(PyObject* module);

}  // namespace candelabra
