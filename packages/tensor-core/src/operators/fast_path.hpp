// Fast paths: callables that pass the most common calls directly to an operator, without running
// Python code.
#pragma once

#include "operators/operator.hpp"

namespace candelabra {

// Replaces a Python function. A call goes to the operator if it matches the schema, its arguments
// have the required numbers of dimensions, and the device has a kernel. It returns the operator's
// first result only. All other calls go to the Python function.
struct FastPath {
  PyObject_HEAD vectorcallfunc vectorcall;
  Operator* op;
  PyObject* function;
  PyObject* appended;  // a tuple of arguments appended to a call with a single one; or null
  PyObject* dict;
  PyObject* weakrefs;
  int count;              // number of entries of `dimensions`
  int32_t dimensions[4];  // required numbers of dimensions of the first arguments

  bool fits(int i, const TensorObject& tensor) const { return tensor.ndim() == dimensions[i]; }
  // If the device has no kernel for a composite operator, the Python function has a better
  // implementation.
  bool is_for(const TensorObject& first) const {
    return (op->tags & (tag_composite | tag_core)) != tag_composite || op->kernels[first.storage->device.type].there();
  }
  void check(const Call& call) const;  // throws SchemaMismatch
};

bool init_fast_path(PyObject* module);

}  // namespace candelabra
