// Random generators: a seed and the number of Philox blocks drawn so far. candelabra/random.hpp
// computes the numbers.
#pragma once

#include <Python.h>

#include <cstdint>

#include "device/device.hpp"

namespace candelabra {

struct GeneratorState {
  uint64_t seed = 0;
  uint64_t offset = 0;  // index of the next block
};

// The state of this generator, or of the device's default generator for null or None. Throws if the
// generator belongs to another device type. The caller adds the number of blocks it uses to
// `offset`.
GeneratorState& generator_state(PyObject* generator_or_null, Device device);
bool is_generator(PyObject* object);

bool init_random(PyObject* module);

}  // namespace candelabra
