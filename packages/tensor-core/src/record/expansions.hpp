// Operands of groups (tiles.hpp) that are one row, which all rows of the output share, such as a
// bias. The row is repeated in the memory of tiles, so that kernels and compiled runs read one
// element for each of the output. Other broadcast operands end a group: to write each tile of them
// out takes longer than the kernel.
#pragma once

#include <cstddef>
#include <optional>

#include "candelabra/backend.h"

namespace candelabra {

struct Expansion {
  int buffer = -1;
  int64_t offset = 0, itemsize = 0;
  int64_t period = 0;    // elements of the row
  int64_t stride = 0;    // of the row, in elements
  int64_t scratch = -1;  // where it lies in the memory of tiles

  bool operator==(const Expansion& other) const = default;
  // Elements in the memory of tiles: any tile begins within the first row.
  int64_t capacity(int64_t length) const { return length + period; }
  // Bytes from there to element `begin` of the output.
  int64_t phase(int64_t begin) const { return begin % period * itemsize; }
};

// Empty where the tensor is no row that repeats in the memory of the dense output.
std::optional<Expansion> expansion_of(const cb_tensor& tensor, const cb_tensor& output);

// Repeats the row at `from`, to so many elements.
void expand(const Expansion& expansion, const char* from, int64_t capacity, char* to);

}  // namespace candelabra
