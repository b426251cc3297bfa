// Optimizer steps over many parameters in one pass: parameter, gradient and state of an element are read and written once, half
// precisions as float32 in registers. The formulas are PyTorch's (torch/optim, the single-tensor forms).
#include <array>
#include <cmath>
#include <vector>

#include "dtypes.hpp"
#include "gather.hpp"
#include "half_registers.hpp"
#include "iterate.hpp"
#include "kernels.hpp"
#include "parallel.hpp"
#include "vec_math.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

constexpr int64_t chunk = 1024;

// The operands of one parameter: parameter, gradient, then the states that the step has. N of them.
template <int N>
using Operands = std::array<const cb_tensor*, N>;

template <int N>
std::vector<Operands<N>> collect(const Call& call, const std::array<int, N>& arguments) {
  auto parameters = call.tensors(arguments[0]);
  std::vector<Operands<N>> all(parameters.size());
  for (int k = 0; k < N; ++k) {
    auto list = call.tensors(arguments[k]);
    if (list.size() != parameters.size())
      throw failure(CB_RUNTIME_ERROR, "%s: %zu parameters, but argument %d has %zu tensors", call.raw()->operator_name,
                    parameters.size(), arguments[k], list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      if (!list[i])
        throw failure(CB_RUNTIME_ERROR, "%s: tensor %zu of argument %d is missing", call.raw()->operator_name, i, arguments[k]);
      if (list[i]->dtype != parameters[i]->dtype)
        throw failure(CB_NOT_IMPLEMENTED, "%s: parameter, gradient and state must have one dtype", call.raw()->operator_name);
      if (!same_sizes(*list[i], *parameters[i]))
        throw failure(CB_RUNTIME_ERROR, "%s: parameter %zu, its gradient and its state must have the same sizes",
                      call.raw()->operator_name, i);
      all[i][k] = list[i];
    }
  }
  return all;
}

// One register of each operand.
template <typename V, int N>
using Registers = std::array<V, N>;

// Whether all operands lie side by side in one order, as those of a transposed parameter do.
template <int N>
bool side_by_side(const Geometry<N>& g) {
  for (int k = 0; k < N; ++k)
    if (g.ndim > 1 || (g.ndim == 1 && g.strides[k][0] != 1)) return false;
  return true;
}

// Operand 1, the gradient, is only read.
template <typename V, int N, typename T, typename Step>
void step_register(T* const* at, int64_t i, int64_t n, const Step& step) {
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
  if (side_by_side(g)) {
    for (int k = 0; k < N; ++k) at[k] = mutable_data<T>(*operands[k]) + begin;
    return step_all<N>(at, end - begin, step);
  }
  alignas(64) T buffers[N][chunk];
  for (int k = 0; k < N; ++k) at[k] = buffers[k];
  for (int64_t first = begin; first < end; first += chunk) {
    int64_t n = std::min(chunk, end - first), done = 0;
    for_each_run(g, first, first + n, [&](const int64_t* offsets, int64_t m) {
      for (int k = 0; k < N; ++k) gather(buffers[k] + done, data<T>(*operands[k]) + offsets[k], g.strides[k][0], sizeof(T), m);
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

// All parameters as one range of elements, divided among threads. make<V>() gives the step of registers V.
template <int N, typename Make>
void update(const Call& call, const std::array<int, N>& arguments, const Make& make) {
  auto all = collect<N>(call, arguments);
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

// A number in all places of a register.
template <typename V>
V filled(double value) {
  return V(static_cast<typename V::Element>(value));
}

// The gradient to go down, with the weight decay that is a part of it. Without one the parameter, which may be infinite, is left
// out.
template <typename V>
struct Downhill {
  V sign, decay;
  bool decays;

  Downhill(double weight_decay, bool maximize)
      : sign(filled<V>(maximize ? -1 : 1)), decay(filled<V>(weight_decay)), decays(weight_decay != 0) {}
  V operator()(V gradient, V parameter) const { return decays ? fma(decay, parameter, sign * gradient) : sign * gradient; }
};

// The larger numbers, NaN where one of them is NaN.
template <typename V>
V larger(V a, V b) {
  return select(a != a, a, greatest(a, b));
}

// The running averages of the gradient and of its square that Adam and its relatives keep.
template <typename V>
struct Averages {
  V weight1, keep2, weight2;

  Averages(double beta1, double beta2) : weight1(filled<V>(1 - beta1)), keep2(filled<V>(beta2)), weight2(filled<V>(1 - beta2)) {}
  void take(V gradient, V& mean, V& square) const {
    mean = fma(weight1, gradient - mean, mean);
    square = fma(keep2, square, weight2 * gradient * gradient);
  }
};

double counted(const Call& call, int argument) {
  auto step = static_cast<double>(call.integer(argument));
  if (step < 1) throw failure(CB_VALUE_ERROR, "%s: step counts from 1, but got %g", call.raw()->operator_name, step);
  return step;
}

void fused_sgd(Call& call) {
  double lr = call.real(3), decay = call.real(4), momentum = call.real(5), dampening = call.real(6);
  bool nesterov = call.boolean(7), maximize = call.boolean(8), first = call.boolean(9);
  if (call.tensors(2).empty() || momentum == 0) {
    return update<2>(call, {0, 1}, [=]<typename V>() {
      V rate = filled<V>(lr);
      Downhill<V> downhill(decay, maximize);
      return [=](Registers<V, 2>& a) { a[0] = fnma(rate, downhill(a[1], a[0]), a[0]); };
    });
  }
  update<3>(call, {0, 1, 2}, [=]<typename V>() {
    V rate = filled<V>(lr), keep = filled<V>(momentum), add = filled<V>(1 - dampening);
    Downhill<V> downhill(decay, maximize);
    return [=](Registers<V, 3>& a) {
      auto& [p, g, buffer] = a;
      V d = downhill(g, p);
      buffer = first ? d : fma(keep, buffer, add * d);  // the first time it holds nothing yet, perhaps NaN
      p = fnma(rate, nesterov ? fma(keep, buffer, d) : buffer, p);
    };
  });
}

template <bool Amsgrad>
void adam_step(Call& call) {
  double lr = call.real(5), beta1 = call.real(6), beta2 = call.real(7), eps = call.real(8), decay = call.real(9);
  bool decoupled = call.boolean(10), maximize = call.boolean(12);
  double step = counted(call, 13);
  double correction1 = 1 - std::pow(beta1, step), correction2 = std::sqrt(1 - std::pow(beta2, step));
  constexpr int count = Amsgrad ? 5 : 4;
  auto make = [=]<typename V>() {
    V rate = filled<V>(lr / correction1), scale = filled<V>(1 / correction2), epsilon = filled<V>(eps);
    Averages<V> averages(beta1, beta2);
    V shrink = filled<V>(decoupled ? 1 - lr * decay : 1);
    Downhill<V> downhill(decoupled ? 0 : decay, maximize);
    return [=](Registers<V, count>& a) {
      V d = downhill(a[1], a[0]);
      averages.take(d, a[2], a[3]);
      V mean = a[2], square = a[3];
      if constexpr (Amsgrad) square = a[4] = larger(a[4], square);
      a[0] = a[0] * shrink - rate * mean / fma(scale, math::sqrt(square), epsilon);
    };
  };
  if constexpr (Amsgrad)
    update<5>(call, {0, 1, 2, 3, 4}, make);
  else
    update<4>(call, {0, 1, 2, 3}, make);
}
void fused_adam(Call& call) {
  call.boolean(11) ? adam_step<true>(call) : adam_step<false>(call);
}

// The states that a step has follow the square averages: the gradient averages (centered), the momentum buffers (momentum).
template <bool Centered, bool Momentum>
void rmsprop_step(Call& call) {
  double lr = call.real(5), alpha = call.real(6), eps = call.real(7), decay = call.real(8), momentum = call.real(9);
  bool maximize = call.boolean(11);
  constexpr int count = 3 + Centered + Momentum;
  auto make = [=]<typename V>() {
    V rate = filled<V>(lr), keep = filled<V>(alpha), weight = filled<V>(1 - alpha), epsilon = filled<V>(eps);
    V inertia = filled<V>(momentum);
    Downhill<V> downhill(decay, maximize);
    return [=](Registers<V, count>& a) {
      V d = downhill(a[1], a[0]);
      V spread = a[2] = fma(keep, a[2], weight * d * d);
      if constexpr (Centered) {
        V mean = a[3] = fma(weight, d - a[3], a[3]);
        spread = fnma(mean, mean, spread);
      }
      V change = d / (math::sqrt(spread) + epsilon);
      if constexpr (Momentum) change = a[count - 1] = fma(inertia, a[count - 1], change);
      a[0] = fnma(rate, change, a[0]);
    };
  };
  if constexpr (Centered && Momentum)
    update<5>(call, {0, 1, 2, 3, 4}, make);
  else if constexpr (Centered)
    update<4>(call, {0, 1, 2, 3}, make);
  else if constexpr (Momentum)
    update<4>(call, {0, 1, 2, 4}, make);
  else
    update<3>(call, {0, 1, 2}, make);
}
void fused_rmsprop(Call& call) {
  bool momentum = call.real(9) > 0, centered = call.boolean(10);
  if (centered) return momentum ? rmsprop_step<true, true>(call) : rmsprop_step<true, false>(call);
  return momentum ? rmsprop_step<false, true>(call) : rmsprop_step<false, false>(call);
}

void fused_adagrad(Call& call) {
  double lr = call.real(3), lr_decay = call.real(4), decay = call.real(5), eps = call.real(6);
  bool maximize = call.boolean(7);
  double step = static_cast<double>(call.integer(8));
  update<3>(call, {0, 1, 2}, [=]<typename V>() {
    V rate = filled<V>(lr / (1 + (step - 1) * lr_decay)), epsilon = filled<V>(eps);
    Downhill<V> downhill(decay, maximize);
    return [=](Registers<V, 3>& a) {
      auto& [p, g, sum] = a;
      V d = downhill(g, p);
      sum = fma(d, d, sum);
      p = p - rate * d / (math::sqrt(sum) + epsilon);
    };
  });
}

void fused_adamax(Call& call) {
  double lr = call.real(4), beta1 = call.real(5), beta2 = call.real(6), eps = call.real(7), decay = call.real(8);
  bool maximize = call.boolean(9);
  double correction = 1 - std::pow(beta1, counted(call, 10));
  update<4>(call, {0, 1, 2, 3}, [=]<typename V>() {
    V rate = filled<V>(lr / correction), weight = filled<V>(1 - beta1), keep = filled<V>(beta2), epsilon = filled<V>(eps);
    Downhill<V> downhill(decay, maximize);
    return [=](Registers<V, 4>& a) {
      auto& [p, g, mean, most] = a;
      V d = downhill(g, p);
      mean = fma(weight, d - mean, mean);
      most = larger(keep * most, abs(d) + epsilon);
      p = p - rate * mean / most;
    };
  });
}

void fused_nadam(Call& call) {
  double lr = call.real(4), beta1 = call.real(5), beta2 = call.real(6), eps = call.real(7), decay = call.real(8);
  double momentum = call.real(9), next_momentum = call.real(10), product = call.real(11);
  bool decoupled = call.boolean(12), maximize = call.boolean(13);
  double correction = 1 - std::pow(beta2, counted(call, 14));
  double of_gradient = lr * (1 - momentum) / (1 - product), of_mean = lr * next_momentum / (1 - product * next_momentum);
  update<4>(call, {0, 1, 2, 3}, [=]<typename V>() {
    V gradient_rate = filled<V>(of_gradient), mean_rate = filled<V>(of_mean), epsilon = filled<V>(eps);
    Averages<V> averages(beta1, beta2);
    V scale = filled<V>(1 / std::sqrt(correction)), shrink = filled<V>(decoupled ? 1 - lr * decay : 1);
    Downhill<V> downhill(decoupled ? 0 : decay, maximize);
    return [=](Registers<V, 4>& a) {
      auto& [p, g, mean, square] = a;
      V d = downhill(g, p);
      averages.take(d, mean, square);
      p = p * shrink - fma(gradient_rate, d, mean_rate * mean) / fma(scale, math::sqrt(square), epsilon);
    };
  });
}

// Rectified steps are Adam's times a number, those before are steps along the mean.
void fused_radam(Call& call) {
  double lr = call.real(4), beta1 = call.real(5), beta2 = call.real(6), eps = call.real(7), decay = call.real(8);
  bool decoupled = call.boolean(9), maximize = call.boolean(10);
  double step = counted(call, 11), power = std::pow(beta2, step), most = 2 / (1 - beta2) - 1;
  double length = most - 2 * step * power / (1 - power), scale = lr / (1 - std::pow(beta1, step));
  bool rectified = length > 5;
  if (rectified) scale *= std::sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)) * std::sqrt(1 - power);
  update<4>(call, {0, 1, 2, 3}, [=]<typename V>() {
    V rate = filled<V>(scale), epsilon = filled<V>(eps), shrink = filled<V>(decoupled ? 1 - lr * decay : 1);
    Averages<V> averages(beta1, beta2);
    Downhill<V> downhill(decoupled ? 0 : decay, maximize);
    return [=](Registers<V, 4>& a) {
      auto& [p, g, mean, square] = a;
      V d = downhill(g, p);
      averages.take(d, mean, square);
      V change = rate * mean;
      if (rectified) change = change / (math::sqrt(square) + epsilon);
      p = p * shrink - change;
    };
  });
}

void fused_adadelta(Call& call) {
  double lr = call.real(4), rho = call.real(5), eps = call.real(6), decay = call.real(7);
  bool maximize = call.boolean(8);
  update<4>(call, {0, 1, 2, 3}, [=]<typename V>() {
    V rate = filled<V>(lr), keep = filled<V>(rho), weight = filled<V>(1 - rho), epsilon = filled<V>(eps);
    Downhill<V> downhill(decay, maximize);
    return [=](Registers<V, 4>& a) {
      auto& [p, g, squares, changes] = a;
      V d = downhill(g, p);
      squares = fma(keep, squares, weight * d * d);
      V change = math::sqrt((changes + epsilon) / (squares + epsilon)) * d;
      changes = fma(keep, changes, weight * change * change);
      p = fnma(rate, change, p);
    };
  });
}

// NaN has no sign, as in PyTorch: it takes no step, and no size changes for it.
void fused_rprop(Call& call) {
  double eta_minus = call.real(4), eta_plus = call.real(5), least_size = call.real(6), most = call.real(7);
  bool maximize = call.boolean(8);
  update<4>(call, {0, 1, 2, 3}, [=]<typename V>() {
    V shrink = filled<V>(eta_minus), grow = filled<V>(eta_plus), smallest = filled<V>(least_size), largest = filled<V>(most);
    V zero = filled<V>(0), one = filled<V>(1);
    Downhill<V> downhill(0, maximize);
    return [=](Registers<V, 4>& a) {
      auto& [p, g, before, size] = a;
      V d = downhill(g, p), agreement = d * before;
      auto turned = agreement < zero;
      size = size * select(turned, shrink, select(zero < agreement, grow, one));
      size = least(largest, greatest(smallest, size));  // NaN stays
      before = d = select(turned, zero, d);
      p = fnma(select(zero < d, one, select(d < zero, -one, zero)), size, p);
    };
  });
}

void fused_asgd(Call& call) {
  double lambda = call.real(3), eta = call.real(4), mu = call.real(5), decay = call.real(6);
  bool maximize = call.boolean(7), starts = mu == 1;
  update<3>(call, {0, 1, 2}, [=]<typename V>() {
    V shrink = filled<V>(1 - lambda * eta), rate = filled<V>(eta), weight = filled<V>(mu);
    Downhill<V> downhill(decay, maximize);
    return [=](Registers<V, 3>& a) {
      auto& [p, g, mean] = a;
      p = fnma(rate, downhill(g, p), p * shrink);
      mean = starts ? p : fma(weight, p - mean, mean);
    };
  });
}

}  // namespace

void register_optimizer(KernelTable& table) {
  table.add<fused_sgd>("fused_sgd_");
  table.add<fused_adam>("fused_adam_");
  table.add<fused_rmsprop>("fused_rmsprop_");
  table.add<fused_adagrad>("fused_adagrad_");
  table.add<fused_adamax>("fused_adamax_");
  table.add<fused_nadam>("fused_nadam_");
  table.add<fused_radam>("fused_radam_");
  table.add<fused_adadelta>("fused_adadelta_");
  table.add<fused_rprop>("fused_rprop_");
  table.add<fused_asgd>("fused_asgd_");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
