#pragma once

#include "device/random.hpp"
#include "dispatch/call.hpp"

namespace candelabra {

// Calls a Python kernel. docs/internals/operators-in-python.md describes the protocol.
void call_python_kernel(Call& call, PyObject* function);
// Calls the decomposition of a primitive with the arguments as a kernel would get them; returns
// what it returns.
Ref<> call_decomposition(Call& call, PyObject* function);

// Reserves random numbers for a call of an operator tagged random. Returns the generator's state
// before the call, and advances the generator by what the call may use.
GeneratorState take_random_numbers(Call& call);
// Undoes it for a kernel that has declined the call: the next attempt gets the same numbers.
void return_random_numbers(Call& call, GeneratorState taken);

}  // namespace candelabra
