// Graphs of elementwise operators as machine code: the functions of cb_compile. The compiler is
// LLVM, which candelabra_backend_cpu.llvm provides where llvmlite is installed.
#pragma once

#include "candelabra/compile.h"

namespace candelabra::cpu {

// Compiles the text of loop_text(), and returns the address of the function of this name, or null.
// The code stays as long as the process.
using TextCompiler = void* (*)(const char* text, const char* name);

int32_t claim_graph(const cb_graph* graph, uint8_t* claimed);
// Throws Failure.
void* compile_graph(const cb_graph& graph);
void execute_graph(void* compiled, const cb_graph_run& run);
void destroy_graph(void* compiled);

}  // namespace candelabra::cpu
