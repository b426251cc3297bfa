// Attention by cuDNN: half precisions, in shapes that its fused kernels have.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "vendor/cudnn/cudnn.hpp"

namespace candelabra::cuda {

// A tensor (N, H, rows, columns).
struct AttentionTensor {
  const void* data = nullptr;
  std::array<int64_t, 4> sizes{}, strides{};
};

struct CudnnAttention {
  int32_t dtype;  // enum cb_dtype
  bool backward, causal;
  AttentionTensor query, key, value, output, logarithms;  // the last: (N, H, L, 1), float32
  AttentionTensor grad, grad_query, grad_key, grad_value;
};

// Queue _scaled_dot_product_attention or _scaled_dot_product_attention_backward; false where cuDNN
// has no engine for the call, or is not to be used.
bool cudnn_attention_forward(const Call& call);
bool cudnn_attention_backward(const Call& call);

// The plans that would be chosen from, for a device in use or one that is described.
std::vector<cudnn::Plan> attention_plans(const cudnn::Target& target, const CudnnAttention& attention,
                                         const cudnn::Wishes& wishes, size_t most);

}  // namespace candelabra::cuda
