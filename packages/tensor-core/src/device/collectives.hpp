// Python functions for collectives, on which candelabra.communication is built.
#pragma once

#include <Python.h>

namespace candelabra {

extern PyMethodDef collective_functions[];

}  // namespace candelabra
