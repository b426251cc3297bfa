// The Python objects of programs.
#pragma once

#include <memory>

#include "record/program.hpp"

namespace candelabra {

std::shared_ptr<Program> program_from_object(PyObject* object);  // throws TypeError

}  // namespace candelabra
