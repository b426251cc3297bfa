// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.
// Arguments of the operators of the family loss, for kernels:
//
//   const arguments::NllLossForward args(call);
//
// A tensor or number that was not given is a null pointer; other optional arguments are std::optional.
#ifndef CANDELABRA_ARGUMENTS_LOSS_HPP
#define CANDELABRA_ARGUMENTS_LOSS_HPP

#include <optional>
#include <span>
#include <string_view>

#include "candelabra/kernel.hpp"

namespace candelabra::arguments {

// nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index) -> (Tensor output, Tensor total_weight)
struct NllLossForward {
  const cb_tensor* self;
  const cb_tensor* target;
  const cb_tensor* weight;
  int64_t reduction;
  int64_t ignore_index;

  explicit NllLossForward(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        target(call.optional_tensor(1)),
        weight(call.optional_tensor(2)),
        reduction(call.integer(3)),
        ignore_index(call.integer(4)) {}
};

// nll_loss_backward(Tensor grad, Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index, Tensor total_weight) -> Tensor
struct NllLossBackward {
  const cb_tensor* grad;
  const cb_tensor* self;
  const cb_tensor* target;
  const cb_tensor* weight;
  int64_t reduction;
  int64_t ignore_index;
  const cb_tensor* total_weight;

  explicit NllLossBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        self(call.optional_tensor(1)),
        target(call.optional_tensor(2)),
        weight(call.optional_tensor(3)),
        reduction(call.integer(4)),
        ignore_index(call.integer(5)),
        total_weight(call.optional_tensor(6)) {}
};

// cross_entropy_forward(Tensor input, Tensor target, Tensor? weight=None, *, int ignore_index=-100, str reduction='mean') -> (Tensor output, Tensor total_weight, Tensor statistics)
struct CrossEntropyForward {
  const cb_tensor* input;
  const cb_tensor* target;
  const cb_tensor* weight;
  int64_t ignore_index;
  int64_t reduction;

  explicit CrossEntropyForward(const kernel::Call& call)
      : input(call.optional_tensor(0)),
        target(call.optional_tensor(1)),
        weight(call.optional_tensor(2)),
        ignore_index(call.integer(3)),
        reduction(call.integer(4)) {}
};

// cross_entropy_backward(Tensor grad, Tensor input, Tensor target, Tensor? weight, int ignore_index, str reduction, Tensor total_weight, Tensor statistics) -> Tensor
struct CrossEntropyBackward {
  const cb_tensor* grad;
  const cb_tensor* input;
  const cb_tensor* target;
  const cb_tensor* weight;
  int64_t ignore_index;
  int64_t reduction;
  const cb_tensor* total_weight;
  const cb_tensor* statistics;

  explicit CrossEntropyBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        input(call.optional_tensor(1)),
        target(call.optional_tensor(2)),
        weight(call.optional_tensor(3)),
        ignore_index(call.integer(4)),
        reduction(call.integer(5)),
        total_weight(call.optional_tensor(6)),
        statistics(call.optional_tensor(7)) {}
};

// _ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank, bool zero_infinity) -> (Tensor loss, Tensor log_alpha)
struct CtcLoss {
  const cb_tensor* log_probs;
  const cb_tensor* targets;
  std::span<const int64_t> input_lengths;
  std::span<const int64_t> target_lengths;
  int64_t blank;
  bool zero_infinity;

  explicit CtcLoss(const kernel::Call& call)
      : log_probs(call.optional_tensor(0)),
        targets(call.optional_tensor(1)),
        input_lengths(call.ints(2)),
        target_lengths(call.ints(3)),
        blank(call.integer(4)),
        zero_infinity(call.boolean(5)) {}
};

// _ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, Tensor loss, Tensor log_alpha, int blank, bool zero_infinity) -> Tensor
struct CtcLossBackward {
  const cb_tensor* grad;
  const cb_tensor* log_probs;
  const cb_tensor* targets;
  std::span<const int64_t> input_lengths;
  std::span<const int64_t> target_lengths;
  const cb_tensor* loss;
  const cb_tensor* log_alpha;
  int64_t blank;
  bool zero_infinity;

  explicit CtcLossBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        log_probs(call.optional_tensor(1)),
        targets(call.optional_tensor(2)),
        input_lengths(call.ints(3)),
        target_lengths(call.ints(4)),
        loss(call.optional_tensor(5)),
        log_alpha(call.optional_tensor(6)),
        blank(call.integer(7)),
        zero_infinity(call.boolean(8)) {}
};

// squared_error(Tensor self, Tensor target) -> Tensor
struct SquaredError {
  const cb_tensor* self;
  const cb_tensor* target;

  explicit SquaredError(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        target(call.optional_tensor(1)) {}
};

// squared_error_backward(Tensor grad, Tensor self, Tensor target) -> Tensor
struct SquaredErrorBackward {
  const cb_tensor* grad;
  const cb_tensor* self;
  const cb_tensor* target;

  explicit SquaredErrorBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        self(call.optional_tensor(1)),
        target(call.optional_tensor(2)) {}
};

// huber_error(Tensor self, Tensor target, Scalar delta=1, Scalar scale=1) -> Tensor
struct HuberError {
  const cb_tensor* self;
  const cb_tensor* target;
  const cb_scalar* delta;
  const cb_scalar* scale;

  explicit HuberError(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        target(call.optional_tensor(1)),
        delta(call.optional_scalar(2)),
        scale(call.optional_scalar(3)) {}
};

// huber_error_backward(Tensor grad, Tensor self, Tensor target, Scalar delta=1, Scalar scale=1) -> Tensor
struct HuberErrorBackward {
  const cb_tensor* grad;
  const cb_tensor* self;
  const cb_tensor* target;
  const cb_scalar* delta;
  const cb_scalar* scale;

  explicit HuberErrorBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        self(call.optional_tensor(1)),
        target(call.optional_tensor(2)),
        delta(call.optional_scalar(3)),
        scale(call.optional_scalar(4)) {}
};

// logits_cross_entropy(Tensor self, Tensor target) -> Tensor
struct LogitsCrossEntropy {
  const cb_tensor* self;
  const cb_tensor* target;

  explicit LogitsCrossEntropy(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        target(call.optional_tensor(1)) {}
};

// logits_cross_entropy_backward(Tensor grad, Tensor self, Tensor target) -> Tensor
struct LogitsCrossEntropyBackward {
  const cb_tensor* grad;
  const cb_tensor* self;
  const cb_tensor* target;

  explicit LogitsCrossEntropyBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        self(call.optional_tensor(1)),
        target(call.optional_tensor(2)) {}
};

// probability_cross_entropy(Tensor self, Tensor target) -> Tensor
struct ProbabilityCrossEntropy {
  const cb_tensor* self;
  const cb_tensor* target;

  explicit ProbabilityCrossEntropy(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        target(call.optional_tensor(1)) {}
};

// probability_cross_entropy_backward(Tensor grad, Tensor self, Tensor target) -> Tensor
struct ProbabilityCrossEntropyBackward {
  const cb_tensor* grad;
  const cb_tensor* self;
  const cb_tensor* target;

  explicit ProbabilityCrossEntropyBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        self(call.optional_tensor(1)),
        target(call.optional_tensor(2)) {}
};

}  // namespace candelabra::arguments

#endif  // CANDELABRA_ARGUMENTS_LOSS_HPP
