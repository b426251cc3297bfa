// An opened file: its programs, the memory that they run in, and the results of the last run.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "candelabra_run.h"
#include "host_services.hpp"
#include "program.hpp"

namespace candelabra::runner {

class Session {
 public:
  // Throws Failure.
  Session(const std::string& path, const cr_options& options);

  size_t program_count() const { return programs_.programs.size(); }
  cr_signature signature(size_t index) const;
  // Runs the program that takes these inputs, and returns its results. Throws Failure.
  std::span<const cr_tensor> run(std::span<const cr_tensor> inputs);

 private:
  // The descriptors of a program's inputs and outputs, for users.
  struct Interface {
    std::vector<cr_tensor> inputs, outputs;
  };

  size_t find(std::span<const cr_tensor> inputs) const;
  void take_inputs(const Program& program, std::span<const cr_tensor> inputs);
  std::byte* base_of(const Buffer& buffer) const;
  void execute(const Program& program, Call& call);
  void execute_kernel(const Program& program, Call& call);

  Archive archive_;
  const Backend* backend_ = nullptr;
  Programs programs_;
  std::vector<Interface> interfaces_;
  Memory arena_;
  std::vector<std::span<std::byte>> memory_;  // of the arena and of what is stored
  std::vector<Memory> copied_;                // inputs whose memory is not aligned, or which results are in
  std::vector<const std::byte*> inputs_;      // of the run
  Frame frame_;
  std::vector<char> message_;
};

}  // namespace candelabra::runner
