// Parts of groups (tiles.hpp) that the backend compiles into one function, which then runs in place
// of their kernels, tile by tile.
#pragma once

#include "candelabra/compile.h"
#include "record/recorder.hpp"

namespace candelabra {

struct Tiling;

// Consecutive calls of a group, of which the backend has claimed all.
struct CompiledRun {
  int begin = 0, end = 0;               // among the calls of the group
  std::vector<size_t> inputs, outputs;  // among the tensors of all calls, counted in their order
  std::shared_ptr<void> compiled;       // null until compile_runs()
};

// Whether the backend compiles graphs.
bool compiles_graphs(const cb_compile& service);

// Whether the backend would compile this operator, whose kernel then cannot fail either.
bool is_claimed(const Instruction& instruction, const cb_compile& service, bool is_exact);

// Asks the backend which calls of the group it would compile, and notes the runs of them.
void claim_runs(Tiling& tiling, const cb_compile& service, bool is_exact);

// Compiles the runs, and forgets those that the backend cannot compile. With the GIL.
void compile_runs(Tiling& tiling, const cb_compile& service, bool is_exact);

}  // namespace candelabra
