// Attention by cuDNN, in half precision and in shapes that its fused kernels support.
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
  AttentionTensor query, key, value, output, logarithms;  // the last is the logsumexp: (N, H, L, 1), float32
  AttentionTensor grad, grad_query, grad_key, grad_value;
};

// Queue _scaled_dot_product_attention or its backward. Return false if cuDNN does not support the
// call or is turned off.
bool cudnn_attention_forward(const Call& call);
bool cudnn_attention_backward(const Call& call);

// The candidate plans, for a real or a described device.
std::vector<cudnn::Plan> attention_plans(const cudnn::Target& target, const CudnnAttention& attention,
                                         const cudnn::Constraints& constraints, size_t most);

}  // namespace candelabra::cuda
