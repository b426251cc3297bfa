// Graphs of elementwise operators as loops that run one after the other on blocks which fit the
// first cache: loops of kernels, and of machine code where LLVM compiles several operators in a
// row. A kernel's loop computes the kernel's bits.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compile/compiled_graph.hpp"
#include "compile/loop_graph.hpp"
#include "kernels.hpp"

namespace candelabra::cpu {

// The kernels that chains take loops from. Called before any graph is compiled.
void use_kernels_in_chains(std::span<const cb_kernel_entry> entries);

class BlockChain final : public CompiledGraph {
 public:
  // `is_code`: of which nodes LLVM makes code, if there are several in a row. Throws Failure where
  // accepts() is false for another node.
  BlockChain(const cb_graph& graph, const std::vector<bool>& is_code, const CodeSource& source);
  void run(const cb_graph_run& run) const override;
  void add_codes(std::vector<const LoopCode*>& codes) const override;

  // Whether the kernel of a node is one loop, and cannot fail.
  static bool accepts(const cb_graph_node& node, const cb_graph& graph);

 private:
  friend class ChainRun;

  struct Tensor {
    cb_tensor description{};  // without an address
    int64_t itemsize = 0;
    std::array<std::byte, 8> number{};
    bool is_number = false;
    bool is_repeated = false;  // one element for all
    int input = -1, output = -1;
    int slot = -1;  // of a computed one
    bool is_streamed = false;
  };
  // A kernel, or machine code.
  struct Step {
    std::vector<int> inputs, outputs;  // among the tensors, numbers excluded
    std::unique_ptr<LoopGraph> code;
    cb_kernel kernel = nullptr;
    std::string name;
    std::vector<cb_value> values;
    std::vector<std::pair<int, int>> tensors;  // (argument, tensor)
  };

  void add_tensor(const cb_tensor& tensor);
  void add_kernel(const cb_graph_node& node, const cb_graph& graph);
  void add_code(const cb_graph& graph, int begin, int end, const CodeSource& source);
  void place();

  std::vector<Tensor> tensors_;
  std::vector<Step> steps_;
  std::deque<cb_scalar> scalars_;
  std::deque<std::string> strings_;
  int slot_count_ = 0;
  int64_t block_ = 0;  // elements
};

}  // namespace candelabra::cpu
