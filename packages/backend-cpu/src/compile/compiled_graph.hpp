// Graphs of elementwise operators that run as one: the functions of cb_compile. Operators that LLVM
// can compile are machine code, where candelabra_backend_cpu.llvm has registered llvmlite. The
// others, and all without it, are the loops of their kernels.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "candelabra/compile.h"

namespace candelabra::cpu {

class LoopCode;

class CompiledGraph {
 public:
  virtual ~CompiledGraph() = default;
  // Throws Failure.
  virtual void run(const cb_graph_run& run) const = 0;
  // The codes in it, which a process of the same processor can load.
  virtual void add_codes(std::vector<const LoopCode*>& codes) const = 0;
};

// Compiles the text of loop_text(). Calls `accept` once with an object file, or, where it fails,
// not.
using AcceptObject = void (*)(void* context, const void* file, uint64_t bytes);
using TextCompiler = void (*)(const char* text, AcceptObject accept, void* context);

void claim_graph(const cb_graph& graph, uint8_t* claimed);
// These throw Failure.
std::unique_ptr<CompiledGraph> compile_graph(const cb_graph& graph);
std::vector<std::byte> saved_graph(const CompiledGraph& compiled);
// Where the saved code is that of the graph and of this processor.
std::unique_ptr<CompiledGraph> load_graph(const cb_graph& graph, std::span<const std::byte> saved);

}  // namespace candelabra::cpu
