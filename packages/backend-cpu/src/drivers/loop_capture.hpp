// Takes the loops of elementwise kernels instead of running them (drivers/blocks.hpp), so that the
// loops of several kernels can run block by block, one after the other.
#pragma once

#include "drivers/blocks.hpp"

namespace candelabra::cpu {

class LoopCapture {
 public:
  // A kernel of this thread has called run_blocks(). What the arguments point to lives until this
  // returns, and then the kernel goes on as if the output had been computed.
  virtual void captured(const Blocks& blocks, cb_tensor& out, const cb_tensor* const* in, int count) = 0;

 protected:
  ~LoopCapture() = default;
};

// Of this thread: who takes the loops, or null.
LoopCapture*& loop_capture();

}  // namespace candelabra::cpu
