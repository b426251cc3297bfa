// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.
// Arguments of the operators of the family convolution, for kernels:
//
//   const arguments::Convolution args(call);
//
// A tensor or number that was not given is a null pointer; other optional arguments are std::optional.
#ifndef CANDELABRA_ARGUMENTS_CONVOLUTION_HPP
#define CANDELABRA_ARGUMENTS_CONVOLUTION_HPP

#include <optional>
#include <span>
#include <string_view>

#include "candelabra/kernel.hpp"

namespace candelabra::arguments {

// convolution(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] padding=0, int[] dilation=1, int groups=1) -> Tensor
struct Convolution {
  const cb_tensor* input;
  const cb_tensor* weight;
  const cb_tensor* bias;
  std::span<const int64_t> stride;
  std::span<const int64_t> padding;
  std::span<const int64_t> dilation;
  int64_t groups;

  explicit Convolution(const kernel::Call& call)
      : input(call.optional_tensor(0)),
        weight(call.optional_tensor(1)),
        bias(call.optional_tensor(2)),
        stride(call.ints(3)),
        padding(call.ints(4)),
        dilation(call.ints(5)),
        groups(call.integer(6)) {}
};

// convolution_backward_input(Tensor grad, Tensor weight, int[] input_size, int[] stride, int[] padding, int[] dilation, int groups) -> Tensor
struct ConvolutionBackwardInput {
  const cb_tensor* grad;
  const cb_tensor* weight;
  std::span<const int64_t> input_size;
  std::span<const int64_t> stride;
  std::span<const int64_t> padding;
  std::span<const int64_t> dilation;
  int64_t groups;

  explicit ConvolutionBackwardInput(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        weight(call.optional_tensor(1)),
        input_size(call.ints(2)),
        stride(call.ints(3)),
        padding(call.ints(4)),
        dilation(call.ints(5)),
        groups(call.integer(6)) {}
};

// convolution_backward_weight(Tensor grad, Tensor input, int[] weight_size, int[] stride, int[] padding, int[] dilation, int groups) -> Tensor
struct ConvolutionBackwardWeight {
  const cb_tensor* grad;
  const cb_tensor* input;
  std::span<const int64_t> weight_size;
  std::span<const int64_t> stride;
  std::span<const int64_t> padding;
  std::span<const int64_t> dilation;
  int64_t groups;

  explicit ConvolutionBackwardWeight(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        input(call.optional_tensor(1)),
        weight_size(call.ints(2)),
        stride(call.ints(3)),
        padding(call.ints(4)),
        dilation(call.ints(5)),
        groups(call.integer(6)) {}
};

}  // namespace candelabra::arguments

#endif  // CANDELABRA_ARGUMENTS_CONVOLUTION_HPP
