// Recurrent layers by cuDNN: all layers and directions in one call.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "vendor/cudnn/cudnn.hpp"

namespace candelabra::cuda {

// A stack of recurrent layers, independent of its input.
struct RecurrentStack {
  int32_t dtype;  // enum cb_dtype
  cudnnRNNMode_t cell;
  bool has_biases, bidirectional, full_float32;  // full_float32: no TF32
  int64_t input, hidden, layers;                 // width of a row, width of the state, number of layers

  int64_t directions() const { return bidirectional ? 2 : 1; }
  auto operator<=>(const RecurrentStack&) const = default;
};

struct DestroyDescriptor {
  void operator()(cudnnRNNDescriptor_t raw) const;
  void operator()(cudnnRNNDataDescriptor_t raw) const;
  void operator()(cudnnTensorDescriptor_t raw) const;
  void operator()(cudnnDropoutDescriptor_t raw) const;
};
template <typename Raw>
using OwnedDescriptor = std::unique_ptr<std::remove_pointer_t<Raw>, DestroyDescriptor>;

// cuDNN's descriptor of layers, and the descriptor of no dropout that it refers to.
struct RecurrentDescriptor {
  OwnedDescriptor<cudnnDropoutDescriptor_t> dropout;
  OwnedDescriptor<cudnnRNNDescriptor_t> layers;  // null if cuDNN does not support the layers
};
// Without a handle (without a device) the descriptor can be inspected, but not run.
RecurrentDescriptor describe_layers(cudnnHandle_t handle, const RecurrentStack& stack);

// The rows of sequences, time step by time step: (T, N, width) without padding, or packed.
OwnedDescriptor<cudnnRNNDataDescriptor_t> describe_rows(int32_t dtype, const std::vector<int>& lengths, int64_t width);

// The kernels recurrent_stack, recurrent_stack_kept and recurrent_stack_backward. Return false,
// without having queued work, if cuDNN does not support the call or is turned off.
bool cudnn_recurrent_forward(const Call& call, bool training);
bool cudnn_recurrent_backward(const Call& call);

}  // namespace candelabra::cuda
