// Optimizer steps over lists of parameters: the parameter, gradient and state of an element are
// read and written once. The formulas are those of the CPU backend's optimizer.cpp.
//
// A launch passes the addresses of up to `most_parameters` parameters by value, so that it can be
// captured in a graph.
#include <algorithm>
#include <array>
#include <cmath>

#include "candelabra/arguments/optimizer.hpp"
#include "candelabra/positions.hpp"
#include "drivers/elementwise.cuh"

namespace candelabra::cuda {
namespace {

constexpr int threads = 256;
constexpr uint32_t per_block = threads * 16;  // elements of one parameter for each block
constexpr int most_parameters = 48;

// Parameter, gradient, then the states of the step: N tensors.
template <int N>
using Operands = std::array<const cb_tensor*, N>;

// Parameters whose operands are dense with the same strides.
template <typename Step>
struct ListArguments {
  Step step;
  int count;
  void* data[most_parameters][Step::operands];
  int64_t sizes[most_parameters];
  uint32_t first_block[most_parameters];
};

// A step updates the values of one element. Operand 1, the gradient, is not written back.
template <typename Step, typename T>
__global__ void __launch_bounds__(threads) step_lists(const __grid_constant__ ListArguments<Step> a) {
  constexpr int operands = Step::operands, batch = 4;
  // Bisects for the last parameter that begins at this block or before
  int low = 0, high = a.count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (a.first_block[middle] <= blockIdx.x)
      low = middle;
    else
      high = middle - 1;
  }
  memory_t<T>* data[operands];
#pragma unroll
  for (int k = 0; k < operands; ++k) data[k] = static_cast<memory_t<T>*>(a.data[low][k]);
  const int64_t begin = static_cast<int64_t>(blockIdx.x - a.first_block[low]) * per_block;
  const int64_t end = begin + per_block < a.sizes[low] ? begin + per_block : a.sizes[low];
  for (int64_t i = begin + threadIdx.x; i < end; i += batch * threads) {
    compute_t<T> values[batch][operands];
#pragma unroll
    for (int j = 0; j < batch; ++j)
      if (i + j * threads < end)
#pragma unroll
        for (int k = 0; k < operands; ++k) values[j][k] = loaded<T>(data[k][i + j * threads]);
#pragma unroll
    for (int j = 0; j < batch; ++j) {
      if (i + j * threads >= end) break;
      a.step(values[j]);
#pragma unroll
      for (int k = 0; k < operands; ++k)
        if (k != 1) data[k][i + j * threads] = stored<T>(values[j][k]);
    }
  }
}

// One parameter with any strides.
template <typename Step>
struct StridedArguments {
  Step step;
  void* data[Step::operands];
  Indexer<Step::operands> elements;
};

template <typename Step, typename T>
__global__ void __launch_bounds__(threads) step_strided(const __grid_constant__ StridedArguments<Step> a) {
  constexpr int operands = Step::operands;
  for (int64_t i = first_index(); i < a.elements.count; i += index_step()) {
    uint32_t at[operands];
    a.elements.at_rolled(static_cast<uint32_t>(i), at);
    compute_t<T> values[operands];
#pragma unroll
    for (int k = 0; k < operands; ++k) values[k] = loaded<T>(static_cast<const memory_t<T>*>(a.data[k])[at[k]]);
    a.step(values);
#pragma unroll
    for (int k = 0; k < operands; ++k)
      if (k != 1) static_cast<memory_t<T>*>(a.data[k])[at[k]] = stored<T>(values[k]);
  }
}

// The operands of parameter i; `lists` are the positions of their lists in the schema.
template <int N>
Operands<N> operands_of(const Call& call, const std::array<int, N>& lists, size_t i) {
  Operands<N> operands;
  for (size_t k = 0; k < N; ++k) operands[k] = call.tensors(lists[k])[i];
  return operands;
}

// Steps the parameters of type T.
template <template <typename> typename Rule, typename T, int N>
void update_all(const Call& call, const std::array<int, N>& lists, const Rule<double>& rule) {
  using Step = Rule<compute_t<T>>;
  static_assert(sizeof(ListArguments<Step>) <= 4000 && Step::operands == N);
  const Step step(rule);
  const auto parameters = call.tensors(lists.front());
  ListArguments<Step> list{step, 0, {}, {}, {}};
  uint32_t blocks = 0;
  const auto send = [&] {
    launch(call, step_lists<Step, T>, blocks, threads, 0, list);
    list.count = 0;
    blocks = 0;
  };
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i]->dtype != dtype_v<T> || parameters[i]->numel == 0) continue;
    const Operands<N> operands = operands_of<N>(call, lists, i);
    const Geometry<N> g = geometry<N>(operands);
    if (!g.contiguous() || g.numel >= int64_t{1} << 40) {
      for_each_piece(g, [&](const Geometry<N>& piece, const std::array<int64_t, N>& offsets) {
        StridedArguments<Step> a{step, {}, Indexer<N>(piece)};
        for (size_t k = 0; k < N; ++k) a.data[k] = mutable_data<memory_t<T>>(*operands[k]) + offsets[k];
        launch(call, step_strided<Step, T>, grid_for(call, piece.numel, threads), threads, 0, a);
      });
      continue;
    }
    for (size_t k = 0; k < N; ++k) list.data[list.count][k] = operands[k]->data;
    list.sizes[list.count] = g.numel;
    list.first_block[list.count++] = blocks;
    blocks += static_cast<uint32_t>(divide_up(g.numel, per_block));
    if (list.count == most_parameters || blocks >= uint32_t{1} << 28) send();
  }
  if (list.count > 0) send();
}

template <template <typename> typename Rule, int N>
void update(const Call& call, const std::array<int, N>& lists, const Rule<double>& rule) {
  const auto parameters = call.tensors(lists.front());
  const auto any = [&](int32_t dtype) {
    return std::any_of(parameters.begin(), parameters.end(),
                       [&](const cb_tensor* each) { return each->dtype == dtype; });
  };
  for (const int32_t dtype : {CB_FLOAT16, CB_BFLOAT16, CB_FLOAT32, CB_FLOAT64})
    if (any(dtype)) dispatch<FloatTypes>(dtype, [&]<typename T>() { update_all<Rule, T, N>(call, lists, rule); });
}

// ---- the steps. a: parameter, gradient, states. Numbers are passed as double, used as compute_t.

// The gradient to descend, with weight decay. Without weight decay an infinite parameter must not
// make it NaN.
template <typename C>
__device__ C descent(C direction, C gradient, C decay, C parameter) {
  return decay == C(0) ? direction * gradient : direction * gradient + decay * parameter;
}

template <typename C>
struct Sgd {
  static constexpr int operands = 2;
  C rate, decay, direction;
  Sgd(double lr, double weight_decay, double sign)
      : rate(static_cast<C>(lr)), decay(static_cast<C>(weight_decay)), direction(static_cast<C>(sign)) {}
  template <typename D>
  explicit Sgd(const Sgd<D>& o) : Sgd(o.rate, o.decay, o.direction) {}
  __device__ void operator()(C* a) const { a[0] -= rate * descent(direction, a[1], decay, a[0]); }
};

template <typename C>
struct Momentum {
  static constexpr int operands = 3;
  C rate, decay, direction, keep, add, ahead;
  bool nesterov, first;
  Momentum(double lr, double weight_decay, double sign, double kept, double added, double momentum, bool looks_ahead,
           bool begins)
      : rate(static_cast<C>(lr)),
        decay(static_cast<C>(weight_decay)),
        direction(static_cast<C>(sign)),
        keep(static_cast<C>(kept)),
        add(static_cast<C>(added)),
        ahead(static_cast<C>(momentum)),
        nesterov(looks_ahead),
        first(begins) {}
  template <typename D>
  explicit Momentum(const Momentum<D>& o)
      : Momentum(o.rate, o.decay, o.direction, o.keep, o.add, o.ahead, o.nesterov, o.first) {}
  __device__ void operator()(C* a) const {
    const C d = descent(direction, a[1], decay, a[0]);
    // At first the buffer is uninitialized
    const C buffer = add * d + (first ? C(0) : keep * a[2]);
    a[2] = buffer;
    a[0] -= rate * (nesterov ? d + ahead * buffer : buffer);
  }
};

void fused_sgd(Call& call) {
  namespace at = positions::fused_sgd;
  const arguments::FusedSgd args(call);
  const double lr = args.lr, decay = args.weight_decay, momentum = args.momentum;
  const double sign = args.maximize ? -1 : 1;
  if (args.momentum_buffers.empty() || momentum == 0)
    return update<Sgd, 2>(call, {at::params, at::grads}, Sgd<double>(lr, decay, sign));
  update<Momentum, 3>(call, {at::params, at::grads, at::momentum_buffers},
                      Momentum<double>(lr, decay, sign, args.first ? 0 : momentum, args.first ? 1 : 1 - args.dampening,
                                       momentum, args.nesterov, args.first));
}

template <bool Amsgrad>
struct AdamOf {
  template <typename C>
  struct Rule {
    static constexpr int operands = Amsgrad ? 5 : 4;
    C rate, root, epsilon, weight1, keep2, weight2, direction, shrink, pull;
    Rule(double rate_, double root_, double epsilon_, double weight1_, double keep2_, double weight2_,
         double direction_, double shrink_, double pull_)
        : rate(static_cast<C>(rate_)),
          root(static_cast<C>(root_)),
          epsilon(static_cast<C>(epsilon_)),
          weight1(static_cast<C>(weight1_)),
          keep2(static_cast<C>(keep2_)),
          weight2(static_cast<C>(weight2_)),
          direction(static_cast<C>(direction_)),
          shrink(static_cast<C>(shrink_)),
          pull(static_cast<C>(pull_)) {}
    template <typename D>
    explicit Rule(const Rule<D>& o)
        : Rule(o.rate, o.root, o.epsilon, o.weight1, o.keep2, o.weight2, o.direction, o.shrink, o.pull) {}
    __device__ void operator()(C* a) const {
      const C d = descent(direction, a[1], pull, a[0]);
      const C mean = a[2] + weight1 * (d - a[2]);
      const C square = keep2 * a[3] + weight2 * d * d;
      C largest = square;
      if constexpr (Amsgrad) {
        if (a[4] > square || a[4] != a[4]) largest = a[4];  // keeps NaN
        a[4] = largest;
      }
      a[2] = mean;
      a[3] = square;
      a[0] = a[0] * shrink - rate * mean / (::cuda::std::sqrt(largest) / root + epsilon);
    }
  };
};

void fused_adam(Call& call) {
  namespace at = positions::fused_adam;
  const arguments::FusedAdam args(call);
  const double lr = args.lr, beta1 = args.beta1, beta2 = args.beta2, decay = args.weight_decay;
  const double sign = args.maximize ? -1 : 1, step = static_cast<double>(args.step);
  const auto rule = [&]<typename R>(R*) {
    return R(lr / (1 - std::pow(beta1, step)), std::sqrt(1 - std::pow(beta2, step)), args.eps, 1 - beta1, beta2,
             1 - beta2, sign, args.decoupled ? 1 - lr * decay : 1, args.decoupled ? 0 : decay);
  };
  if (args.amsgrad)
    update<AdamOf<true>::Rule, 5>(call, {at::params, at::grads, at::exp_avgs, at::exp_avg_sqs, at::max_exp_avg_sqs},
                                  rule(static_cast<AdamOf<true>::Rule<double>*>(nullptr)));
  else
    update<AdamOf<false>::Rule, 4>(call, {at::params, at::grads, at::exp_avgs, at::exp_avg_sqs},
                                   rule(static_cast<AdamOf<false>::Rule<double>*>(nullptr)));
}

// The states after the mean squares: the mean gradients if Centered, the momentum buffers if
// WithMomentum.
template <bool Centered, bool WithMomentum>
struct RmspropOf {
  template <typename C>
  struct Rule {
    static constexpr int operands = 3 + Centered + WithMomentum;
    C rate, keep, weight, epsilon, pull, inertia, direction;
    Rule(double rate_, double keep_, double weight_, double epsilon_, double pull_, double inertia_, double direction_)
        : rate(static_cast<C>(rate_)),
          keep(static_cast<C>(keep_)),
          weight(static_cast<C>(weight_)),
          epsilon(static_cast<C>(epsilon_)),
          pull(static_cast<C>(pull_)),
          inertia(static_cast<C>(inertia_)),
          direction(static_cast<C>(direction_)) {}
    template <typename D>
    explicit Rule(const Rule<D>& o) : Rule(o.rate, o.keep, o.weight, o.epsilon, o.pull, o.inertia, o.direction) {}
    __device__ void operator()(C* a) const {
      const C d = descent(direction, a[1], pull, a[0]);
      const C square = keep * a[2] + weight * d * d;
      a[2] = square;
      C spread = square;
      if constexpr (Centered) {
        const C mean = a[3] + weight * (d - a[3]);
        a[3] = mean;
        spread = square - mean * mean;
      }
      C change = d / (::cuda::std::sqrt(spread) + epsilon);
      if constexpr (WithMomentum) {
        change += inertia * a[operands - 1];
        a[operands - 1] = change;
      }
      a[0] -= rate * change;
    }
  };
};

void fused_rmsprop(Call& call) {
  namespace at = positions::fused_rmsprop;
  const arguments::FusedRmsprop args(call);
  const double sign = args.maximize ? -1 : 1;
  const auto rule = [&]<typename R>(R*) {
    return R(args.lr, args.alpha, 1 - args.alpha, args.eps, args.weight_decay, args.momentum, sign);
  };
  const bool has_momentum = args.momentum > 0;
  if (args.centered) {
    if (has_momentum)
      return update<RmspropOf<true, true>::Rule, 5>(
          call, {at::params, at::grads, at::square_avgs, at::grad_avgs, at::momentum_buffers},
          rule(static_cast<RmspropOf<true, true>::Rule<double>*>(nullptr)));
    return update<RmspropOf<true, false>::Rule, 4>(call, {at::params, at::grads, at::square_avgs, at::grad_avgs},
                                                   rule(static_cast<RmspropOf<true, false>::Rule<double>*>(nullptr)));
  }
  if (has_momentum)
    return update<RmspropOf<false, true>::Rule, 4>(call, {at::params, at::grads, at::square_avgs, at::momentum_buffers},
                                                   rule(static_cast<RmspropOf<false, true>::Rule<double>*>(nullptr)));
  update<RmspropOf<false, false>::Rule, 3>(call, {at::params, at::grads, at::square_avgs},
                                           rule(static_cast<RmspropOf<false, false>::Rule<double>*>(nullptr)));
}

template <typename C>
struct Adagrad {
  static constexpr int operands = 3;
  C rate, pull, epsilon, direction;
  Adagrad(double lr, double decay, double eps, double sign)
      : rate(static_cast<C>(lr)),
        pull(static_cast<C>(decay)),
        epsilon(static_cast<C>(eps)),
        direction(static_cast<C>(sign)) {}
  template <typename D>
  explicit Adagrad(const Adagrad<D>& o) : Adagrad(o.rate, o.pull, o.epsilon, o.direction) {}
  __device__ void operator()(C* a) const {
    const C d = descent(direction, a[1], pull, a[0]);
    a[2] += d * d;
    a[0] -= rate * d / (::cuda::std::sqrt(a[2]) + epsilon);
  }
};

void fused_adagrad(Call& call) {
  namespace at = positions::fused_adagrad;
  const arguments::FusedAdagrad args(call);
  const double sign = args.maximize ? -1 : 1, step = static_cast<double>(args.step);
  update<Adagrad, 3>(call, {at::params, at::grads, at::state_sums},
                     Adagrad<double>(args.lr / (1 + (step - 1) * args.lr_decay), args.weight_decay, args.eps, sign));
}

}  // namespace

void register_optimizer(KernelTable& table) {
  table.add<fused_sgd>("_fused_sgd_");
  table.add<fused_adam>("_fused_adam_");
  table.add<fused_rmsprop>("_fused_rmsprop_");
  table.add<fused_adagrad>("_fused_adagrad_");
}

}  // namespace candelabra::cuda
