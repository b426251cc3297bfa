// Convolutions by cuDNN.
#pragma once

#include <array>
#include <cstdint>

#include "vendor/cudnn/cudnn.hpp"

namespace candelabra::cuda {

enum class ConvolutionKind { Forward, InputGradient, WeightGradient };

// (N, C, D, H, W); dimensions that a tensor lacks are in front and of size 1.
struct ConvolutionTensor {
  const void* data;
  std::array<int64_t, 5> sizes, strides;
};

// One of the three: what it makes is the output, the input or the weight.
struct Convolution {
  ConvolutionKind kind;
  int32_t dtype;  // enum cb_dtype
  int spatial;    // 2 or 3, the last of the three dimensions
  ConvolutionTensor input, weight, output;
  std::array<int64_t, 3> stride, padding, dilation;
};

// Whether cuDNN is there, and to be used.
bool uses_cudnn();

// Queues it; false where cuDNN has no engine for it, or is not to be used. Tensors are row-major or
// channels-last without gaps.
bool cudnn_convolution(const Call& call, const Convolution& convolution);

// The plans that would be chosen from, for a device in use or one that is described.
std::vector<cudnn::Plan> convolution_plans(const cudnn::Target& target, const Convolution& convolution,
                                           const cudnn::Wishes& wishes, size_t most);

}  // namespace candelabra::cuda
