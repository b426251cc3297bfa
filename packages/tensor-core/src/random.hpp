// Generators of random numbers: a seed and a count of the Philox blocks that were drawn (candelabra/random.hpp has the numbers).
#pragma once

#include <Python.h>

#include <cstdint>

#include "device.hpp"

namespace candelabra {

struct GeneratorState {
  uint64_t seed = 0;
  uint64_t offset = 0;  // the next block
};

// The state of this generator (or of the device's own when null or None). Throws where it belongs to another device type. A caller
// reads seed and offset and adds to offset the number of blocks it takes.
GeneratorState& generator_state(PyObject* generator_or_null, Device device);
bool is_generator(PyObject* object);

bool init_random(PyObject* module);

}  // namespace candelabra
