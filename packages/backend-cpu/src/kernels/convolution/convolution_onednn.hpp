// Convolutions over two or three spatial dimensions by oneDNN, in the memory layout that is
// fastest, not necessarily the given one.
#pragma once

#include <array>
#include <cstdint>

namespace candelabra::cpu {

// Sizes: input (batch, input_channels, input...), weight (output_channels, input_channels / groups,
// kernel...), output (batch, output_channels, output...). With `spatial` == 2 the depth is 1.
struct ConvolutionShape {
  int spatial;
  int64_t batch, groups;
  int64_t input_channels, output_channels;
  std::array<int64_t, 3> input, output, kernel;  // depth, height, width
  std::array<int64_t, 3> stride, padding, dilation;

  int64_t group_inputs() const { return input_channels / groups; }
  int64_t group_outputs() const { return output_channels / groups; }
  int64_t input_plane() const { return input[0] * input[1] * input[2]; }
  int64_t output_plane() const { return output[0] * output[1] * output[2]; }
  int64_t kernel_volume() const { return kernel[0] * kernel[1] * kernel[2]; }
};

// A tensor of five dimensions; strides in elements. `contents`: of a weight, the core's version
// number of its contents, or 0.
struct ConvolutionOperand {
  void* data;
  std::array<int64_t, 5> strides;
  uint64_t contents = 0;
};

// Which of the three tensors is computed from the other two.
enum class ConvolutionKind { forward, input_gradient, weight_gradient };

// `dtype` is CB_FLOAT32, CB_BFLOAT16 or CB_FLOAT16. `bias` (output_channels elements, contiguous)
// may be null and is used by forward only. False, with nothing written, if this processor has no
// instructions for the dtype, or oneDNN only its reference loops.
bool onednn_convolution(ConvolutionKind kind, int32_t dtype, const ConvolutionShape& shape,
                        const ConvolutionOperand& input, const ConvolutionOperand& weight, const void* bias,
                        const ConvolutionOperand& output);

}  // namespace candelabra::cpu
