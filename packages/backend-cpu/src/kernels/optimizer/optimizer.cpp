// Fused optimizer steps over many parameters: parameter, gradient and state of an element are read
// and written once. Half precision is computed as float32 in registers. Steps that CUDA shares are
// in candelabra/formulas/optimizer.hpp. The formulas are those of torch/optim (the single-tensor
// forms).
#include <array>
#include <cmath>
#include <vector>

#include "candelabra/arguments/optimizer.hpp"
#include "candelabra/positions.hpp"
#include "drivers/iterate.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "memory/gather.hpp"
#include "simd/half_registers.hpp"
#include "simd/vec_math.hpp"
#include "threads/parallel.hpp"

// After the functions of vectors, which its formulas call.
#include "candelabra/formulas/optimizer.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using namespace formulas;

constexpr int64_t chunk = 1024;

// The N operands of one parameter: parameter, gradient, then the states of the step.
template <int N>
using Operands = std::array<const cb_tensor*, N>;

// `lists` are the positions of the arguments that hold the operands.
template <int N>
std::vector<Operands<N>> collect(const Call& call, const std::array<int, N>& lists) {
  std::vector<Operands<N>> all(call.tensors(lists[0]).size());
  for (int k = 0; k < N; ++k) {
    auto list = call.tensors(lists[k]);
    for (size_t i = 0; i < list.size(); ++i) all[i][k] = list[i];
  }
  return all;
}

// One register of each operand.
template <typename V, int N>
using Registers = std::array<V, N>;

// Whether all operands are dense in the same order of elements, as those of a transposed parameter
// are.
template <int N>
bool is_dense(const Geometry<N>& g) {
  for (int k = 0; k < N; ++k)
    if (g.ndim > 1 || (g.ndim == 1 && g.strides[k][0] != 1)) return false;
  return true;
}

// Operand 1, the gradient, is only read.
template <typename V, int N, typename T, typename Step>
[[gnu::always_inline]] inline void step_register(T* const* at, int64_t i, int64_t n, const Step& step) {
  Registers<V, N> registers;
  for (int k = 0; k < N; ++k) registers[k] = load_some(at[k] + i, n);
  step(registers);
  for (int k = 0; k < N; ++k)
    if (k != 1) store_some(registers[k], at[k] + i, n);
}
template <int N, typename T, typename Step>
void step_all(T* const* at, int64_t n, const Step& step) {
  using V = math::Vec<compute_t<T>>;
  int64_t i = 0;
  for (; i + V::size <= n; i += V::size) step_register<V, N>(at, i, V::size, step);
  if (i < n) step_register<V, N>(at, i, n - i, step);
}

template <int N, typename T, typename Step>
void update_range(const Operands<N>& operands, int64_t begin, int64_t end, const Step& step) {
  T* at[N];
  Geometry<N> g = geometry<N>(operands);
  if (is_dense(g)) {
    for (int k = 0; k < N; ++k) at[k] = mutable_data<T>(*operands[k]) + begin;
    return step_all<N>(at, end - begin, step);
  }
  alignas(64) T buffers[N][chunk];
  for (int k = 0; k < N; ++k) at[k] = buffers[k];
  for (int64_t first = begin; first < end; first += chunk) {
    int64_t n = std::min(chunk, end - first), done = 0;
    for_each_run(g, first, first + n, [&](const int64_t* offsets, int64_t m) {
      for (int k = 0; k < N; ++k)
        gather(buffers[k] + done, data<T>(*operands[k]) + offsets[k], g.strides[k][0], sizeof(T), m);
      done += m;
    });
    step_all<N>(at, n, step);
    done = 0;
    for_each_run(g, first, first + n, [&](const int64_t* offsets, int64_t m) {
      for (int k = 0; k < N; ++k) {
        if (k == 1) continue;
        T* to = mutable_data<T>(*operands[k]) + offsets[k];
        for (int64_t i = 0; i < m; ++i) to[i * g.strides[k][0]] = buffers[k][done + i];
      }
      done += m;
    });
  }
}

// Divides the elements of all parameters among threads. make<V>() returns the step on registers V.
template <int N, typename Make>
void update(const Call& call, const std::array<int, N>& lists, const Make& make) {
  auto all = collect<N>(call, lists);
  std::vector<int64_t> ends(all.size());
  int64_t total = 0;
  for (size_t i = 0; i < all.size(); ++i) ends[i] = total += all[i][0]->numel;
  parallel_for(total, light_grain / 4, [&](int64_t begin, int64_t end) {
    size_t i = static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin());
    while (begin < end) {
      int64_t start = i ? ends[i - 1] : 0, stop = std::min(end, ends[i]);
      if (stop > begin)
        dispatch<FloatTypes>(all[i][0]->dtype, [&]<typename T>() {
          update_range<N, T>(all[i], begin - start, stop - start, make.template operator()<math::Vec<compute_t<T>>>());
        });
      begin = stop;
      ++i;
    }
  });
}

// `numbers` are what the step is made from.
template <typename Rule, int N, typename Numbers>
void update_by(const Call& call, const std::array<int, N>& lists, const Numbers& numbers) {
  update<N>(call, lists, [&]<typename V>() { return typename Rule::template Step<V>(numbers); });
}

void fused_sgd(Call& call) {
  namespace at = positions::fused_sgd;
  const arguments::FusedSgd args(call);
  if (args.momentum_buffers.empty() || args.momentum == 0)
    return update_by<Sgd, 2>(call, {at::params, at::grads}, args);
  update_by<SgdWithMomentum, 3>(call, {at::params, at::grads, at::momentum_buffers}, args);
}

void fused_adam(Call& call) {
  namespace at = positions::fused_adam;
  const arguments::FusedAdam args(call);
  const AdamNumbers numbers(args);
  if (args.amsgrad)
    update_by<Adam<true>, 5>(call, {at::params, at::grads, at::exp_avgs, at::exp_avg_sqs, at::max_exp_avg_sqs},
                             numbers);
  else
    update_by<Adam<false>, 4>(call, {at::params, at::grads, at::exp_avgs, at::exp_avg_sqs}, numbers);
}

void fused_rmsprop(Call& call) {
  namespace at = positions::fused_rmsprop;
  const arguments::FusedRmsprop args(call);
  const bool has_momentum = args.momentum > 0;
  if (args.centered && has_momentum)
    update_by<Rmsprop<true, true>, 5>(
        call, {at::params, at::grads, at::square_avgs, at::grad_avgs, at::momentum_buffers}, args);
  else if (args.centered)
    update_by<Rmsprop<true, false>, 4>(call, {at::params, at::grads, at::square_avgs, at::grad_avgs}, args);
  else if (has_momentum)
    update_by<Rmsprop<false, true>, 4>(call, {at::params, at::grads, at::square_avgs, at::momentum_buffers}, args);
  else
    update_by<Rmsprop<false, false>, 3>(call, {at::params, at::grads, at::square_avgs}, args);
}

void fused_adagrad(Call& call) {
  namespace at = positions::fused_adagrad;
  update_by<Adagrad, 3>(call, {at::params, at::grads, at::state_sums}, arguments::FusedAdagrad(call));
}

void fused_adamax(Call& call) {
  namespace at = positions::fused_adamax;
  const arguments::FusedAdamax args(call);
  double lr = args.lr, beta1 = args.beta1, beta2 = args.beta2, eps = args.eps, decay = args.weight_decay;
  bool maximize = args.maximize;
  double correction = 1 - std::pow(beta1, static_cast<double>(args.step));
  update<4>(call, {at::params, at::grads, at::exp_avgs, at::exp_infs}, [=]<typename V>() {
    V rate = filled<V>(lr / correction), weight = filled<V>(1 - beta1), keep = filled<V>(beta2),
      epsilon = filled<V>(eps);
    DecayedGradient<V> decayed(decay, maximize);
    return [=](Registers<V, 4>& a) {
      auto& [p, g, mean, infinity_norm] = a;
      V d = decayed(g, p);
      mean = fma(weight, d - mean, mean);
      infinity_norm = maximum(keep * infinity_norm, abs(d) + epsilon);
      p = p - rate * mean / infinity_norm;
    };
  });
}

void fused_nadam(Call& call) {
  namespace at = positions::fused_nadam;
  const arguments::FusedNadam args(call);
  double lr = args.lr, beta1 = args.beta1, beta2 = args.beta2, eps = args.eps, decay = args.weight_decay;
  double momentum = args.momentum, next_momentum = args.next_momentum, product = args.mu_product;
  bool decoupled = args.decoupled, maximize = args.maximize;
  double correction = 1 - std::pow(beta2, static_cast<double>(args.step));
  double of_gradient = lr * (1 - momentum) / (1 - product),
         of_mean = lr * next_momentum / (1 - product * next_momentum);
  update<4>(call, {at::params, at::grads, at::exp_avgs, at::exp_avg_sqs}, [=]<typename V>() {
    V gradient_rate = filled<V>(of_gradient), mean_rate = filled<V>(of_mean), epsilon = filled<V>(eps);
    Averages<V> averages(beta1, beta2);
    V scale = filled<V>(1 / std::sqrt(correction)), shrink = filled<V>(decoupled ? 1 - lr * decay : 1);
    DecayedGradient<V> decayed(decoupled ? 0 : decay, maximize);
    return [=](Registers<V, 4>& a) {
      auto& [p, g, mean, square] = a;
      V d = decayed(g, p);
      averages.update(d, mean, square);
      p = p * shrink - fma(gradient_rate, d, mean_rate * mean) / fma(scale, math::sqrt(square), epsilon);
    };
  });
}

// A rectified step is a scaled Adam step. The first steps are not rectified and move along the mean
// gradient.
void fused_radam(Call& call) {
  namespace at = positions::fused_radam;
  const arguments::FusedRadam args(call);
  double lr = args.lr, beta1 = args.beta1, beta2 = args.beta2, eps = args.eps, decay = args.weight_decay;
  bool decoupled = args.decoupled, maximize = args.maximize;
  double step = static_cast<double>(args.step), power = std::pow(beta2, step), most = 2 / (1 - beta2) - 1;
  double length = most - 2 * step * power / (1 - power), scale = lr / (1 - std::pow(beta1, step));
  bool rectified = length > 5;
  if (rectified)
    scale *= std::sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)) * std::sqrt(1 - power);
  update<4>(call, {at::params, at::grads, at::exp_avgs, at::exp_avg_sqs}, [=]<typename V>() {
    V rate = filled<V>(scale), epsilon = filled<V>(eps), shrink = filled<V>(decoupled ? 1 - lr * decay : 1);
    Averages<V> averages(beta1, beta2);
    DecayedGradient<V> decayed(decoupled ? 0 : decay, maximize);
    return [=](Registers<V, 4>& a) {
      auto& [p, g, mean, square] = a;
      V d = decayed(g, p);
      averages.update(d, mean, square);
      V change = rate * mean;
      if (rectified) change = change / (math::sqrt(square) + epsilon);
      p = p * shrink - change;
    };
  });
}

void fused_adadelta(Call& call) {
  namespace at = positions::fused_adadelta;
  const arguments::FusedAdadelta args(call);
  double lr = args.lr, rho = args.rho, eps = args.eps, decay = args.weight_decay;
  bool maximize = args.maximize;
  update<4>(call, {at::params, at::grads, at::square_avgs, at::acc_deltas}, [=]<typename V>() {
    V rate = filled<V>(lr), keep = filled<V>(rho), weight = filled<V>(1 - rho), epsilon = filled<V>(eps);
    DecayedGradient<V> decayed(decay, maximize);
    return [=](Registers<V, 4>& a) {
      auto& [p, g, squares, changes] = a;
      V d = decayed(g, p);
      squares = fma(keep, squares, weight * d * d);
      V change = math::sqrt((changes + epsilon) / (squares + epsilon)) * d;
      changes = fma(keep, changes, weight * change * change);
      p = fnma(rate, change, p);
    };
  });
}

// As in PyTorch, a NaN gradient has no sign: neither the parameter nor its step size changes.
void fused_rprop(Call& call) {
  namespace at = positions::fused_rprop;
  const arguments::FusedRprop args(call);
  double eta_minus = args.eta_minus, eta_plus = args.eta_plus, size_min = args.step_size_min,
         size_max = args.step_size_max;
  bool maximize = args.maximize;
  update<4>(call, {at::params, at::grads, at::prevs, at::step_sizes}, [=]<typename V>() {
    V shrink = filled<V>(eta_minus), grow = filled<V>(eta_plus), smallest = filled<V>(size_min),
      largest = filled<V>(size_max);
    V zero = filled<V>(0), one = filled<V>(1);
    DecayedGradient<V> decayed(0, maximize);
    return [=](Registers<V, 4>& a) {
      auto& [p, g, before, size] = a;
      V d = decayed(g, p), agreement = d * before;
      auto sign_changed = agreement < zero;
      size = size * select(sign_changed, shrink, select(zero < agreement, grow, one));
      size = min(largest, max(smallest, size));  // keeps NaN
      before = d = select(sign_changed, zero, d);
      p = fnma(select(zero < d, one, select(d < zero, -one, zero)), size, p);
    };
  });
}

void fused_asgd(Call& call) {
  namespace at = positions::fused_asgd;
  const arguments::FusedAsgd args(call);
  double lambda = args.lambd, eta = args.eta, mu = args.mu, decay = args.weight_decay;
  bool maximize = args.maximize, starts = mu == 1;
  update<3>(call, {at::params, at::grads, at::axs}, [=]<typename V>() {
    V shrink = filled<V>(1 - lambda * eta), rate = filled<V>(eta), weight = filled<V>(mu);
    DecayedGradient<V> decayed(decay, maximize);
    return [=](Registers<V, 3>& a) {
      auto& [p, g, mean] = a;
      p = fnma(rate, decayed(g, p), p * shrink);
      mean = starts ? p : fma(weight, p - mean, mean);
    };
  });
}

}  // namespace

void register_optimizer(KernelTable& table) {
  table.add<fused_sgd>("_fused_sgd_");
  table.add<fused_adam>("_fused_adam_");
  table.add<fused_rmsprop>("_fused_rmsprop_");
  table.add<fused_adagrad>("_fused_adagrad_");
  table.add<fused_adamax>("_fused_adamax_");
  table.add<fused_nadam>("_fused_nadam_");
  table.add<fused_radam>("_fused_radam_");
  table.add<fused_adadelta>("_fused_adadelta_");
  table.add<fused_rprop>("_fused_rprop_");
  table.add<fused_asgd>("_fused_asgd_");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
