// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.
// Arguments of the operators of the family pooling, for kernels:
//
//   const arguments::MaxPool args(call);
//
// A tensor or number that was not given is a null pointer; other optional arguments are std::optional.
#ifndef CANDELABRA_ARGUMENTS_POOLING_HPP
#define CANDELABRA_ARGUMENTS_POOLING_HPP

#include <optional>
#include <span>
#include <string_view>

#include "candelabra/kernel.hpp"

namespace candelabra::arguments {

// max_pool(Tensor self, int[] kernel_size, int[] stride, int[] padding, int[] dilation, bool ceil_mode) -> (Tensor output, Tensor indices)
struct MaxPool {
  const cb_tensor* self;
  std::span<const int64_t> kernel_size;
  std::span<const int64_t> stride;
  std::span<const int64_t> padding;
  std::span<const int64_t> dilation;
  bool ceil_mode;

  explicit MaxPool(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        kernel_size(call.ints(1)),
        stride(call.ints(2)),
        padding(call.ints(3)),
        dilation(call.ints(4)),
        ceil_mode(call.boolean(5)) {}
};

// max_pool_values(Tensor self, int[] kernel_size, int[] stride, int[] padding, int[] dilation, bool ceil_mode) -> Tensor
struct MaxPoolValues {
  const cb_tensor* self;
  std::span<const int64_t> kernel_size;
  std::span<const int64_t> stride;
  std::span<const int64_t> padding;
  std::span<const int64_t> dilation;
  bool ceil_mode;

  explicit MaxPoolValues(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        kernel_size(call.ints(1)),
        stride(call.ints(2)),
        padding(call.ints(3)),
        dilation(call.ints(4)),
        ceil_mode(call.boolean(5)) {}
};

// adaptive_max_pool(Tensor self, int[] output_size) -> (Tensor output, Tensor indices)
struct AdaptiveMaxPool {
  const cb_tensor* self;
  std::span<const int64_t> output_size;

  explicit AdaptiveMaxPool(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        output_size(call.ints(1)) {}
};

// max_pool_backward(Tensor grad, Tensor indices, int[] input_size) -> Tensor
struct MaxPoolBackward {
  const cb_tensor* grad;
  const cb_tensor* indices;
  std::span<const int64_t> input_size;

  explicit MaxPoolBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        indices(call.optional_tensor(1)),
        input_size(call.ints(2)) {}
};

// avg_pool(Tensor self, int[] kernel_size, int[] stride, int[] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor
struct AvgPool {
  const cb_tensor* self;
  std::span<const int64_t> kernel_size;
  std::span<const int64_t> stride;
  std::span<const int64_t> padding;
  bool ceil_mode;
  bool count_include_pad;
  std::optional<int64_t> divisor_override;

  explicit AvgPool(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        kernel_size(call.ints(1)),
        stride(call.ints(2)),
        padding(call.ints(3)),
        ceil_mode(call.boolean(4)),
        count_include_pad(call.boolean(5)),
        divisor_override(call.optional_integer(6)) {}
};

// avg_pool_backward(Tensor grad, int[] input_size, int[] kernel_size, int[] stride, int[] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor
struct AvgPoolBackward {
  const cb_tensor* grad;
  std::span<const int64_t> input_size;
  std::span<const int64_t> kernel_size;
  std::span<const int64_t> stride;
  std::span<const int64_t> padding;
  bool ceil_mode;
  bool count_include_pad;
  std::optional<int64_t> divisor_override;

  explicit AvgPoolBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        input_size(call.ints(1)),
        kernel_size(call.ints(2)),
        stride(call.ints(3)),
        padding(call.ints(4)),
        ceil_mode(call.boolean(5)),
        count_include_pad(call.boolean(6)),
        divisor_override(call.optional_integer(7)) {}
};

// adaptive_avg_pool(Tensor self, int[] output_size) -> Tensor
struct AdaptiveAvgPool {
  const cb_tensor* self;
  std::span<const int64_t> output_size;

  explicit AdaptiveAvgPool(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        output_size(call.ints(1)) {}
};

// adaptive_avg_pool_backward(Tensor grad, int[] input_size) -> Tensor
struct AdaptiveAvgPoolBackward {
  const cb_tensor* grad;
  std::span<const int64_t> input_size;

  explicit AdaptiveAvgPoolBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        input_size(call.ints(1)) {}
};

}  // namespace candelabra::arguments

#endif  // CANDELABRA_ARGUMENTS_POOLING_HPP
