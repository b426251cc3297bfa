// Graphs of elementwise operators as one loop of machine code.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compile/compiled_graph.hpp"
#include "compile/loop_code.hpp"

namespace candelabra::cpu {

// Where the code of a text comes from: LLVM, or what another process has saved. Throws Failure.
using CodeSource = std::function<std::shared_ptr<const LoopCode>(std::string text)>;

class LoopGraph final : public CompiledGraph {
 public:
  // Throws Failure.
  LoopGraph(const cb_graph& graph, const CodeSource& source);
  void run(const cb_graph_run& run) const override;
  void add_codes(std::vector<const LoopCode*>& codes) const override { codes.push_back(code_.get()); }

 private:
  void run_rest(void* const* addresses, int64_t begin, int64_t end) const;

  std::shared_ptr<const LoopCode> code_;
  LoopFunction function_ = nullptr;
  int64_t per_iteration_ = 0;
  // By input and by output: bytes from one element to the next.
  std::vector<int64_t> input_steps_, output_steps_;
  std::vector<std::array<std::byte, 8>> numbers_;
  std::vector<bool> is_streamed_;  // by output
  bool has_streams_ = false;
};

}  // namespace candelabra::cpu
