// Operands of groups (tiles.hpp) that are broadcast over a part of the dimensions. A tile of them is
// written out in the memory of tiles, so that kernels and compiled runs read one element for each
// of the output.
#pragma once

#include <cstddef>

#include "candelabra/backend.h"
#include "tensor/dims.hpp"

namespace candelabra {

struct Expansion {
  int buffer = -1;
  int64_t offset = 0, itemsize = 0;
  // Dimensions in the order of the output's memory, the innermost last, those of one run merged.
  // Strides in elements.
  Dims sizes, strides;
  // Where the elements lie in a row that repeats: how many they are. Their tiles are written once.
  // Otherwise 0.
  int64_t period = 0;
  int64_t scratch = -1;  // where it lies in the memory of tiles

  bool is_same(const Expansion& other) const {
    return buffer == other.buffer && offset == other.offset && itemsize == other.itemsize && sizes == other.sizes &&
           strides == other.strides;
  }
  // Elements in the memory of tiles, for tiles of this length.
  int64_t capacity(int64_t length) const { return length + period; }
};

// Whether a tensor has the output's sizes, and repeats its elements so often that a tile of them is
// quick to write.
bool is_broadcast_like(const cb_tensor& tensor, const cb_tensor& output);

// The dimensions of a broadcast operand, as the elements of the dense output follow one another.
Expansion expansion_of(const cb_tensor& tensor, const cb_tensor& output);

// Writes the elements [begin, end) of the output's order to `to`.
void expand(const Expansion& expansion, const char* from, int64_t begin, int64_t end, char* to);

}  // namespace candelabra
