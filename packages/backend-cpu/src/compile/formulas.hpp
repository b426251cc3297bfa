// The operators that are compiled, with their formulas in LLVM's intermediate representation. Each
// is the one of candelabra/formulas/ that the kernel computes.
#pragma once

#include <string>
#include <vector>

#include "compile/loop_text.hpp"

namespace candelabra::cpu {

// A node of a graph, with the names of its operands.
struct NodeText {
  const cb_graph_node& node;
  VectorText& to;
  const std::vector<std::string>& names;  // of the operands, by argument; empty for others

  const std::string& operand(int i) const { return names[static_cast<size_t>(i)]; }
  bool has(int i) const { return node.arguments[i].kind == CB_TENSOR; }
  double scalar(int i) const { return node.arguments[i].as.scalar->re; }
};

// Whether a node is compiled, exactly or at all.
bool is_compiled(const cb_graph_node& node, const cb_graph& graph);

// Writes the formula of a compiled node. Returns the name of the result.
std::string formula_text(const NodeText& node);

}  // namespace candelabra::cpu
