// Python's way to collectives of several processes; candelabra.communication is written on these functions.
#pragma once

#include <Python.h>

namespace candelabra {

extern PyMethodDef collective_functions[];

}  // namespace candelabra
