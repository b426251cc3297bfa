// The CPU fallback: calls that a device type has neither a kernel nor a decomposition for, computed
// on the CPU by candelabra.backends.fallback.
#pragma once

#include "tensor/tensor.hpp"

namespace candelabra {

struct Operator;

// Computes a call on the CPU, without recording. `values` is a tuple of all arguments in the order
// of the schema. The results are on the device. Changes what the operator changes in place, and
// does not bump its version. Throws.
Ref<> compute_on_cpu(Operator& op, PyObject* values, PyObject* generator_or_null, Device device);

}  // namespace candelabra
