// The dtypes that an operator refuses: the fact `refuses` of its catalogue row.
#pragma once

#include <Python.h>

#include <array>
#include <string>

namespace candelabra {

// How an operator refuses a category of dtypes.
struct Refusal {
  PyObject* exception = nullptr;  // null: the operator takes these dtypes
  std::string message;            // empty: that of shapes::not_implemented()
};

// For bool, integers, floats and complex numbers, in the order of enum cb_scalar_kind.
using Refusals = std::array<Refusal, 4>;

// Reads {category: (exception, message) or None}. None is the message of shapes::not_implemented().
// The exceptions live as long as the process.
Refusals parse_refusals(const std::string& operator_name, PyObject* refuses);

}  // namespace candelabra
