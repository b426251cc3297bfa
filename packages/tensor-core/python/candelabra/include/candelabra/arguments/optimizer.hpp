// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.
// Arguments of the operators of the family optimizer, for kernels:
//
//   const arguments::FusedSgd args(call);
//
// A tensor or number that was not given is a null pointer; other optional arguments are std::optional.
#ifndef CANDELABRA_ARGUMENTS_OPTIMIZER_HPP
#define CANDELABRA_ARGUMENTS_OPTIMIZER_HPP

#include <optional>
#include <span>
#include <string_view>

#include "candelabra/kernel.hpp"

namespace candelabra::arguments {

// _fused_sgd_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] momentum_buffers, float lr, float weight_decay, float momentum, float dampening, bool nesterov, bool maximize, bool first) -> ()
struct FusedSgd {
  std::span<const cb_tensor* const> params;
  std::span<const cb_tensor* const> grads;
  std::span<const cb_tensor* const> momentum_buffers;
  double lr;
  double weight_decay;
  double momentum;
  double dampening;
  bool nesterov;
  bool maximize;
  bool first;

  explicit FusedSgd(const kernel::Call& call)
      : params(call.tensors(0)),
        grads(call.tensors(1)),
        momentum_buffers(call.tensors(2)),
        lr(call.real(3)),
        weight_decay(call.real(4)),
        momentum(call.real(5)),
        dampening(call.real(6)),
        nesterov(call.boolean(7)),
        maximize(call.boolean(8)),
        first(call.boolean(9)) {}
};

// _fused_adam_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] exp_avgs, Tensor(c!)[] exp_avg_sqs, Tensor(d!)[] max_exp_avg_sqs, float lr, float beta1, float beta2, float eps, float weight_decay, bool decoupled, bool amsgrad, bool maximize, int step) -> ()
struct FusedAdam {
  std::span<const cb_tensor* const> params;
  std::span<const cb_tensor* const> grads;
  std::span<const cb_tensor* const> exp_avgs;
  std::span<const cb_tensor* const> exp_avg_sqs;
  std::span<const cb_tensor* const> max_exp_avg_sqs;
  double lr;
  double beta1;
  double beta2;
  double eps;
  double weight_decay;
  bool decoupled;
  bool amsgrad;
  bool maximize;
  int64_t step;

  explicit FusedAdam(const kernel::Call& call)
      : params(call.tensors(0)),
        grads(call.tensors(1)),
        exp_avgs(call.tensors(2)),
        exp_avg_sqs(call.tensors(3)),
        max_exp_avg_sqs(call.tensors(4)),
        lr(call.real(5)),
        beta1(call.real(6)),
        beta2(call.real(7)),
        eps(call.real(8)),
        weight_decay(call.real(9)),
        decoupled(call.boolean(10)),
        amsgrad(call.boolean(11)),
        maximize(call.boolean(12)),
        step(call.integer(13)) {}
};

// _fused_rmsprop_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] square_avgs, Tensor(c!)[] grad_avgs, Tensor(d!)[] momentum_buffers, float lr, float alpha, float eps, float weight_decay, float momentum, bool centered, bool maximize) -> ()
struct FusedRmsprop {
  std::span<const cb_tensor* const> params;
  std::span<const cb_tensor* const> grads;
  std::span<const cb_tensor* const> square_avgs;
  std::span<const cb_tensor* const> grad_avgs;
  std::span<const cb_tensor* const> momentum_buffers;
  double lr;
  double alpha;
  double eps;
  double weight_decay;
  double momentum;
  bool centered;
  bool maximize;

  explicit FusedRmsprop(const kernel::Call& call)
      : params(call.tensors(0)),
        grads(call.tensors(1)),
        square_avgs(call.tensors(2)),
        grad_avgs(call.tensors(3)),
        momentum_buffers(call.tensors(4)),
        lr(call.real(5)),
        alpha(call.real(6)),
        eps(call.real(7)),
        weight_decay(call.real(8)),
        momentum(call.real(9)),
        centered(call.boolean(10)),
        maximize(call.boolean(11)) {}
};

// _fused_adagrad_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] state_sums, float lr, float lr_decay, float weight_decay, float eps, bool maximize, int step) -> ()
struct FusedAdagrad {
  std::span<const cb_tensor* const> params;
  std::span<const cb_tensor* const> grads;
  std::span<const cb_tensor* const> state_sums;
  double lr;
  double lr_decay;
  double weight_decay;
  double eps;
  bool maximize;
  int64_t step;

  explicit FusedAdagrad(const kernel::Call& call)
      : params(call.tensors(0)),
        grads(call.tensors(1)),
        state_sums(call.tensors(2)),
        lr(call.real(3)),
        lr_decay(call.real(4)),
        weight_decay(call.real(5)),
        eps(call.real(6)),
        maximize(call.boolean(7)),
        step(call.integer(8)) {}
};

// _fused_adamax_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] exp_avgs, Tensor(c!)[] exp_infs, float lr, float beta1, float beta2, float eps, float weight_decay, bool maximize, int step) -> ()
struct FusedAdamax {
  std::span<const cb_tensor* const> params;
  std::span<const cb_tensor* const> grads;
  std::span<const cb_tensor* const> exp_avgs;
  std::span<const cb_tensor* const> exp_infs;
  double lr;
  double beta1;
  double beta2;
  double eps;
  double weight_decay;
  bool maximize;
  int64_t step;

  explicit FusedAdamax(const kernel::Call& call)
      : params(call.tensors(0)),
        grads(call.tensors(1)),
        exp_avgs(call.tensors(2)),
        exp_infs(call.tensors(3)),
        lr(call.real(4)),
        beta1(call.real(5)),
        beta2(call.real(6)),
        eps(call.real(7)),
        weight_decay(call.real(8)),
        maximize(call.boolean(9)),
        step(call.integer(10)) {}
};

// _fused_nadam_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] exp_avgs, Tensor(c!)[] exp_avg_sqs, float lr, float beta1, float beta2, float eps, float weight_decay, float momentum, float next_momentum, float mu_product, bool decoupled, bool maximize, int step) -> ()
struct FusedNadam {
  std::span<const cb_tensor* const> params;
  std::span<const cb_tensor* const> grads;
  std::span<const cb_tensor* const> exp_avgs;
  std::span<const cb_tensor* const> exp_avg_sqs;
  double lr;
  double beta1;
  double beta2;
  double eps;
  double weight_decay;
  double momentum;
  double next_momentum;
  double mu_product;
  bool decoupled;
  bool maximize;
  int64_t step;

  explicit FusedNadam(const kernel::Call& call)
      : params(call.tensors(0)),
        grads(call.tensors(1)),
        exp_avgs(call.tensors(2)),
        exp_avg_sqs(call.tensors(3)),
        lr(call.real(4)),
        beta1(call.real(5)),
        beta2(call.real(6)),
        eps(call.real(7)),
        weight_decay(call.real(8)),
        momentum(call.real(9)),
        next_momentum(call.real(10)),
        mu_product(call.real(11)),
        decoupled(call.boolean(12)),
        maximize(call.boolean(13)),
        step(call.integer(14)) {}
};

// _fused_radam_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] exp_avgs, Tensor(c!)[] exp_avg_sqs, float lr, float beta1, float beta2, float eps, float weight_decay, bool decoupled, bool maximize, int step) -> ()
struct FusedRadam {
  std::span<const cb_tensor* const> params;
  std::span<const cb_tensor* const> grads;
  std::span<const cb_tensor* const> exp_avgs;
  std::span<const cb_tensor* const> exp_avg_sqs;
  double lr;
  double beta1;
  double beta2;
  double eps;
  double weight_decay;
  bool decoupled;
  bool maximize;
  int64_t step;

  explicit FusedRadam(const kernel::Call& call)
      : params(call.tensors(0)),
        grads(call.tensors(1)),
        exp_avgs(call.tensors(2)),
        exp_avg_sqs(call.tensors(3)),
        lr(call.real(4)),
        beta1(call.real(5)),
        beta2(call.real(6)),
        eps(call.real(7)),
        weight_decay(call.real(8)),
        decoupled(call.boolean(9)),
        maximize(call.boolean(10)),
        step(call.integer(11)) {}
};

// _fused_adadelta_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] square_avgs, Tensor(c!)[] acc_deltas, float lr, float rho, float eps, float weight_decay, bool maximize) -> ()
struct FusedAdadelta {
  std::span<const cb_tensor* const> params;
  std::span<const cb_tensor* const> grads;
  std::span<const cb_tensor* const> square_avgs;
  std::span<const cb_tensor* const> acc_deltas;
  double lr;
  double rho;
  double eps;
  double weight_decay;
  bool maximize;

  explicit FusedAdadelta(const kernel::Call& call)
      : params(call.tensors(0)),
        grads(call.tensors(1)),
        square_avgs(call.tensors(2)),
        acc_deltas(call.tensors(3)),
        lr(call.real(4)),
        rho(call.real(5)),
        eps(call.real(6)),
        weight_decay(call.real(7)),
        maximize(call.boolean(8)) {}
};

// _fused_rprop_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] prevs, Tensor(c!)[] step_sizes, float eta_minus, float eta_plus, float step_size_min, float step_size_max, bool maximize) -> ()
struct FusedRprop {
  std::span<const cb_tensor* const> params;
  std::span<const cb_tensor* const> grads;
  std::span<const cb_tensor* const> prevs;
  std::span<const cb_tensor* const> step_sizes;
  double eta_minus;
  double eta_plus;
  double step_size_min;
  double step_size_max;
  bool maximize;

  explicit FusedRprop(const kernel::Call& call)
      : params(call.tensors(0)),
        grads(call.tensors(1)),
        prevs(call.tensors(2)),
        step_sizes(call.tensors(3)),
        eta_minus(call.real(4)),
        eta_plus(call.real(5)),
        step_size_min(call.real(6)),
        step_size_max(call.real(7)),
        maximize(call.boolean(8)) {}
};

// _fused_asgd_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] axs, float lambd, float eta, float mu, float weight_decay, bool maximize) -> ()
struct FusedAsgd {
  std::span<const cb_tensor* const> params;
  std::span<const cb_tensor* const> grads;
  std::span<const cb_tensor* const> axs;
  double lambd;
  double eta;
  double mu;
  double weight_decay;
  bool maximize;

  explicit FusedAsgd(const kernel::Call& call)
      : params(call.tensors(0)),
        grads(call.tensors(1)),
        axs(call.tensors(2)),
        lambd(call.real(3)),
        eta(call.real(4)),
        mu(call.real(5)),
        weight_decay(call.real(6)),
        maximize(call.boolean(7)) {}
};

}  // namespace candelabra::arguments

#endif  // CANDELABRA_ARGUMENTS_OPTIMIZER_HPP
