// Checks that --strict adds to kernels: shared memory is overwritten between blocks, and blocks are
// as small as __launch_bounds__ promises.
#pragma once

#include "cuda_language.hpp"

extern "C" {
extern uint64_t emulated_block_number;  // counts all blocks of this process
}

namespace emulation {

// The first thread of a block that reaches a declaration overwrites the memory.
inline void fresh(uint64_t& block, void* memory, size_t bytes) {
  if (block == emulated_block_number) return;
  block = emulated_block_number;
  std::memset(memory, 0xf7, bytes);
}

inline void within(unsigned threads, EMULATION_SITE) {
  if (emulated_block_size.x * emulated_block_size.y * emulated_block_size.z > threads)
    trap("a block of more threads than __launch_bounds__ says", {file, line});
}

}  // namespace emulation
