// The check of kernel calls by the core's shape rules, which are linked into this library.
#pragma once

#include <string_view>

#include "program.hpp"

namespace candelabra::runner {

// Throws Failure unless the core calls the kernel with these arguments and outputs for some call of
// its operator. Their tensors lie in their buffers already, and are of the kinds that the kernel
// reads.
void check_call(const Kernel& kernel, const Call& call, const Program& program);

// Whether an operator writes all of its first argument without reading what that held.
bool overwrites_self(std::string_view operator_name);

}  // namespace candelabra::runner
