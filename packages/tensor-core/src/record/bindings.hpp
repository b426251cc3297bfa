// The Python objects of programs.
#pragma once

#include <memory>

#include "record/program.hpp"

namespace candelabra {

PyObject* program_object(const std::shared_ptr<Program>& program);  // new reference; throws
std::shared_ptr<Program> program_from_object(PyObject* object);     // throws TypeError

}  // namespace candelabra
