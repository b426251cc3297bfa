// Operators for the shape rules, from the rows of the catalogue.
#pragma once

#include <memory>

#include "operators/operator.hpp"
#include "program.hpp"

namespace candelabra::runner {

// The operator of a kernel. Its kernel on the device type 0 has the flags of the backend's. Throws
// Failure if no kernel has such a name.
std::unique_ptr<Operator> operator_of(const Kernel& kernel);

}  // namespace candelabra::runner
