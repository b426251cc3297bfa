// Groups of elementwise instructions, which run tile by tile through the backend's kernels, so that
// what one computes is in the cache when the next reads it.
#pragma once

#include "candelabra/compile.h"
#include "record/claimed_groups.hpp"
#include "record/expansions.hpp"
#include "record/program.hpp"

namespace candelabra {

// A tensor, or a number in its place, as an instruction of a group uses it.
struct TiledTensor {
  const cb_tensor* tensor = nullptr;
  int value = -1;   // among the instruction's values; -1: its output
  int buffer = -1;  // -1: a number
  int64_t offset = 0;
  int64_t step = 0;          // in bytes from one element to the next; 0: it is one for all
  bool is_expanded = false;  // a row that repeats
  int expansion = -1;        // of an expanded tensor: which of the tiling's
  // Of a buffer that only the group uses, and of an expansion: where it is in the memory of tiles.
  int64_t scratch = -1;
};

struct TiledCall {
  const Instruction* instruction = nullptr;
  std::vector<TiledTensor> tensors;
};

struct Tiling {
  int64_t numel = 0;
  int64_t length = 0;  // of a tile, in elements
  size_t scratch_bytes = 0;
  std::vector<TiledCall> calls;
  std::vector<Expansion> expansions;
  std::vector<CompiledRun> runs;  // in the order of the calls
  bool is_compiled = false;       // whether the runs are, which happens when the group first runs
};

// The tensors of an instruction: its values, then its output.
std::vector<TiledTensor> tiled_tensors(const Instruction& instruction);

// The backend's service, or null if it runs no tiles.
const cb_compile* tile_service(Device device);

}  // namespace candelabra
