// Convolutions by cuDNN.
#pragma once

#include <array>
#include <cstdint>

#include "vendor/cudnn/cudnn.hpp"

namespace candelabra::cuda {

enum class ConvolutionKind { Forward, InputGradient, WeightGradient };

// (N, C, D, H, W); missing dimensions come first and have size 1.
struct ConvolutionTensor {
  const void* data;
  std::array<int64_t, 5> sizes, strides;
};

// The forward pass or one of the two gradients: computes the output, the input or the weight.
struct Convolution {
  ConvolutionKind kind;
  int32_t dtype;  // enum cb_dtype
  int spatial;    // 2 or 3: the last ones of the three dimensions
  ConvolutionTensor input, weight, output;
  std::array<int64_t, 3> stride, padding, dilation;
};

// Whether cuDNN is available and turned on.
bool uses_cudnn();

// Queues the convolution. Returns false if cuDNN does not support it or is turned off. Tensors are
// contiguous, row-major or channels-last.
bool cudnn_convolution(const Call& call, const Convolution& convolution);

// The candidate plans, for a real or a described device.
std::vector<cudnn::Plan> convolution_plans(const cudnn::Target& target, const Convolution& convolution,
                                           const cudnn::Constraints& constraints, size_t most);

}  // namespace candelabra::cuda
