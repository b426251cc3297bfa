// Fronts: functions that hand the calls most programs make straight to an operator, without a step of Python.
#pragma once

#include "operator.hpp"

namespace candelabra {

// A callable in the place of a Python function. A call that fits the operator's schema and has arguments of the right numbers of
// dimensions, on a device that has a kernel, is the operator's, with its first result alone; all others are the function's.
struct Front {
  PyObject_HEAD vectorcallfunc vectorcall;
  Operator* op;
  PyObject* function;
  PyObject* appended;  // a tuple of arguments that stand behind the only one of a call; or null
  PyObject* dict;
  PyObject* weakrefs;
  int count;              // of `dimensions`
  int32_t dimensions[4];  // that the first arguments must have

  bool fits(int i, const TensorObject& tensor) const { return tensor.ndim() == dimensions[i]; }
  // Where a device has no kernel for a composite operator, the function knows what is best without one.
  bool is_for(const TensorObject& first) const {
    return (op->tags & (tag_composite | tag_core)) != tag_composite || op->kernels[first.storage->device.type].there();
  }
  void check(const Call& call) const;  // throws SchemaMismatch
};

bool init_front(PyObject* module);

}  // namespace candelabra
