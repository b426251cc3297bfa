// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.
// Arguments of the operators of the family normalization, for kernels:
//
//   const arguments::NativeBatchNorm args(call);
//
// A tensor or number that was not given is a null pointer; other optional arguments are std::optional.
#ifndef CANDELABRA_ARGUMENTS_NORMALIZATION_HPP
#define CANDELABRA_ARGUMENTS_NORMALIZATION_HPP

#include <optional>
#include <span>
#include <string_view>

#include "candelabra/kernel.hpp"

namespace candelabra::arguments {

// native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!)? running_mean, Tensor(b!)? running_var, bool training, float momentum, float eps) -> (Tensor output, Tensor mean, Tensor rstd)
struct NativeBatchNorm {
  const cb_tensor* input;
  const cb_tensor* weight;
  const cb_tensor* bias;
  const cb_tensor* running_mean;
  const cb_tensor* running_var;
  bool training;
  double momentum;
  double eps;

  explicit NativeBatchNorm(const kernel::Call& call)
      : input(call.optional_tensor(0)),
        weight(call.optional_tensor(1)),
        bias(call.optional_tensor(2)),
        running_mean(call.optional_tensor(3)),
        running_var(call.optional_tensor(4)),
        training(call.boolean(5)),
        momentum(call.real(6)),
        eps(call.real(7)) {}
};

// native_batch_norm_backward(Tensor grad, Tensor input, Tensor? weight, Tensor mean, Tensor rstd, bool training) -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)
struct NativeBatchNormBackward {
  const cb_tensor* grad;
  const cb_tensor* input;
  const cb_tensor* weight;
  const cb_tensor* mean;
  const cb_tensor* rstd;
  bool training;

  explicit NativeBatchNormBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        input(call.optional_tensor(1)),
        weight(call.optional_tensor(2)),
        mean(call.optional_tensor(3)),
        rstd(call.optional_tensor(4)),
        training(call.boolean(5)) {}
};

// native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-5) -> (Tensor output, Tensor mean, Tensor rstd)
struct NativeLayerNorm {
  const cb_tensor* input;
  std::span<const int64_t> normalized_shape;
  const cb_tensor* weight;
  const cb_tensor* bias;
  double eps;

  explicit NativeLayerNorm(const kernel::Call& call)
      : input(call.optional_tensor(0)),
        normalized_shape(call.ints(1)),
        weight(call.optional_tensor(2)),
        bias(call.optional_tensor(3)),
        eps(call.real(4)) {}
};

// native_layer_norm_backward(Tensor grad, Tensor input, int[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight) -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)
struct NativeLayerNormBackward {
  const cb_tensor* grad;
  const cb_tensor* input;
  std::span<const int64_t> normalized_shape;
  const cb_tensor* mean;
  const cb_tensor* rstd;
  const cb_tensor* weight;

  explicit NativeLayerNormBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        input(call.optional_tensor(1)),
        normalized_shape(call.ints(2)),
        mean(call.optional_tensor(3)),
        rstd(call.optional_tensor(4)),
        weight(call.optional_tensor(5)) {}
};

// native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int num_groups, float eps) -> (Tensor output, Tensor mean, Tensor rstd)
struct NativeGroupNorm {
  const cb_tensor* input;
  const cb_tensor* weight;
  const cb_tensor* bias;
  int64_t num_groups;
  double eps;

  explicit NativeGroupNorm(const kernel::Call& call)
      : input(call.optional_tensor(0)),
        weight(call.optional_tensor(1)),
        bias(call.optional_tensor(2)),
        num_groups(call.integer(3)),
        eps(call.real(4)) {}
};

// native_group_norm_backward(Tensor grad, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, int num_groups) -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)
struct NativeGroupNormBackward {
  const cb_tensor* grad;
  const cb_tensor* input;
  const cb_tensor* mean;
  const cb_tensor* rstd;
  const cb_tensor* weight;
  int64_t num_groups;

  explicit NativeGroupNormBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        input(call.optional_tensor(1)),
        mean(call.optional_tensor(2)),
        rstd(call.optional_tensor(3)),
        weight(call.optional_tensor(4)),
        num_groups(call.integer(5)) {}
};

// _fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float eps) -> (Tensor output, Tensor rstd)
struct FusedRmsNorm {
  const cb_tensor* input;
  std::span<const int64_t> normalized_shape;
  const cb_tensor* weight;
  double eps;

  explicit FusedRmsNorm(const kernel::Call& call)
      : input(call.optional_tensor(0)),
        normalized_shape(call.ints(1)),
        weight(call.optional_tensor(2)),
        eps(call.real(3)) {}
};

// _fused_rms_norm_backward(Tensor grad, Tensor input, int[] normalized_shape, Tensor rstd, Tensor? weight) -> (Tensor grad_input, Tensor grad_weight)
struct FusedRmsNormBackward {
  const cb_tensor* grad;
  const cb_tensor* input;
  std::span<const int64_t> normalized_shape;
  const cb_tensor* rstd;
  const cb_tensor* weight;

  explicit FusedRmsNormBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        input(call.optional_tensor(1)),
        normalized_shape(call.ints(2)),
        rstd(call.optional_tensor(3)),
        weight(call.optional_tensor(4)) {}
};

}  // namespace candelabra::arguments

#endif  // CANDELABRA_ARGUMENTS_NORMALIZATION_HPP
