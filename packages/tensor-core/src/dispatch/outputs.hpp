// The memory of results: new, the caller's (out=), or a temporary that is copied to the caller's.
#pragma once

#include "dispatch/call.hpp"

namespace candelabra {

// Gives an output that the shape rule has described a tensor for the kernel to write.
void prepare_output(Call& call, Output& output);
// Throws BackendError unless a kernel may choose these sizes for an output.
void check_chosen_sizes(const Call& call, int index, std::span<const int64_t> sizes);
// Copies the result to the caller's tensor, which is what is returned.
void finish_output(const Call& call, Output& output);

// Restores the sizes of empty out= tensors where the call fails.
class OutSizesGuard {
 public:
  explicit OutSizesGuard(Call& call) : call_(call) {
    for (int k = 0; k < call.output_count; ++k) {
      const TensorObject* given = call.outputs[k].given;
      if (given && given->numel == 0 && !(given->sizes == call.outputs[k].sizes))
        before_[k] = Before{given->sizes, given->strides};
    }
  }
  // Whether any out= tensor may be resized.
  static bool may_change(const Call& call) {
    for (int k = 0; k < call.output_count; ++k) {
      if (call.outputs[k].given && call.outputs[k].given->numel == 0) return true;
    }
    return false;
  }
  void restore() {
    for (int k = 0; k < call_.output_count; ++k) {
      if (before_[k])
        set_geometry(*call_.outputs[k].given, std::move(before_[k]->sizes), std::move(before_[k]->strides), 0);
    }
  }

 private:
  struct Before {
    Dims sizes, strides;
  };
  Call& call_;
  std::array<std::optional<Before>, max_outputs> before_;
};

}  // namespace candelabra
