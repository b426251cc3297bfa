#pragma once

#include "call.hpp"
#include "random.hpp"

namespace candelabra {

// Calls a Python kernel as docs/architecture.md, "Python kernels", says.
void call_python_kernel(Call& call, PyObject* function);

// What an operator tagged random draws from: the generator's state before the call, which is moved on by what the call may use.
GeneratorState take_random_numbers(Call& call);

}  // namespace candelabra
