// Optimizer steps over many parameters in one pass: parameter, gradient and state of an element are read and written once.
// The formulas are PyTorch's (torch/optim, the single-tensor forms).
#include <array>
#include <cmath>
#include <vector>

#include "bring.hpp"
#include "candelabra/math.hpp"
#include "dtypes.hpp"
#include "iterate.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

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

// Whether all operands lie side by side in one order, as those of a transposed parameter do.
template <int N>
bool side_by_side(const Geometry<N>& g) {
  for (int k = 0; k < N; ++k)
    if (g.ndim > 1 || (g.ndim == 1 && g.strides[k][0] != 1)) return false;
  return true;
}

// step(n, pointers): n elements of contiguous C arrays. Operand 1, the gradient, is only read.
template <int N, typename T, typename Step>
void update_range(const Operands<N>& operands, int64_t begin, int64_t end, const Step& step) {
  using C = compute_t<T>;
  C* pointers[N];
  Geometry<N> g = geometry<N>(operands);
  if (!is_half_v<T> && side_by_side(g)) {
    for (int k = 0; k < N; ++k) pointers[k] = mutable_data<C>(*operands[k]) + begin;
    return step(end - begin, pointers);
  }
  alignas(64) C buffers[N][chunk];
  for (int k = 0; k < N; ++k) pointers[k] = buffers[k];
  for (int64_t first = begin; first < end; first += chunk) {
    int64_t n = std::min(chunk, end - first), done = 0;
    for_each_run(g, first, first + n, [&](const int64_t* offsets, int64_t m) {
      for (int k = 0; k < N; ++k) bring(data<T>(*operands[k]) + offsets[k], g.strides[k][0], m, buffers[k] + done);
      done += m;
    });
    step(n, pointers);
    done = 0;
    for_each_run(g, first, first + n, [&](const int64_t* offsets, int64_t m) {
      for (int k = 0; k < N; ++k)
        if (k != 1) bring_back(buffers[k] + done, m, mutable_data<T>(*operands[k]) + offsets[k], g.strides[k][0]);
      done += m;
    });
  }
}

// All parameters as one range of elements, divided among threads. make<C>() gives the step for the computing type C.
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
          update_range<N, T>(all[i], begin - start, stop - start, make.template operator()<compute_t<T>>());
        });
      begin = stop;
      ++i;
    }
  });
}

// The gradient to go down, with the weight decay that is a part of it. Without one the parameter, which may be infinite, is left
// out.
template <typename C>
struct Downhill {
  C sign, decay;
  bool decays;

  Downhill(double weight_decay, bool maximize)
      : sign(maximize ? C(-1) : C(1)), decay(static_cast<C>(weight_decay)), decays(weight_decay != 0) {}
  C operator()(C gradient, C parameter) const { return decays ? sign * gradient + decay * parameter : sign * gradient; }
};

// The larger number, NaN if one of them is NaN.
template <typename C>
C larger(C a, C b) {
  return a > b || a != a ? a : b;
}

double counted(const Call& call, int argument) {
  auto step = static_cast<double>(call.integer(argument));
  if (step < 1) throw failure(CB_VALUE_ERROR, "%s: step counts from 1, but got %g", call.raw()->operator_name, step);
  return step;
}

void fused_sgd(Call& call) {
  double lr = call.real(3), decay = call.real(4), momentum = call.real(5), dampening = call.real(6);
  bool nesterov = call.boolean(7), maximize = call.boolean(8), first = call.boolean(9);
  if (call.tensors(2).empty() || momentum == 0) {
    return update<2>(call, {0, 1}, [=]<typename C>() {
      C rate = static_cast<C>(lr);
      Downhill<C> downhill(decay, maximize);
      return [=](int64_t n, C* const* a) {
        C* p = a[0];
        const C* g = a[1];
#pragma omp simd
        for (int64_t i = 0; i < n; ++i) p[i] -= rate * downhill(g[i], p[i]);
      };
    });
  }
  update<3>(call, {0, 1, 2}, [=]<typename C>() {
    Downhill<C> downhill(decay, maximize);
    C rate = static_cast<C>(lr), keep = first ? C(0) : static_cast<C>(momentum), add = first ? C(1) : static_cast<C>(1 - dampening),
      ahead = static_cast<C>(momentum);
    return [=](int64_t n, C* const* a) {
      C *p = a[0], *buffer = a[2];
      const C* g = a[1];
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) {
        C d = downhill(g[i], p[i]);
        C b = add * d + (first ? C(0) : keep * buffer[i]);  // the buffer holds nothing yet, perhaps NaN
        buffer[i] = b;
        p[i] -= rate * (nesterov ? d + ahead * b : b);
      }
    };
  });
}

template <bool Amsgrad>
void adam_step(Call& call) {
  double lr = call.real(5), beta1 = call.real(6), beta2 = call.real(7), eps = call.real(8), decay = call.real(9);
  bool decoupled = call.boolean(10), maximize = call.boolean(12);
  double step = counted(call, 13);
  double correction1 = 1 - std::pow(beta1, step), correction2 = std::sqrt(1 - std::pow(beta2, step));
  auto make = [=]<typename C>() {
    C rate = static_cast<C>(lr / correction1), root = static_cast<C>(correction2), epsilon = static_cast<C>(eps);
    C weight1 = static_cast<C>(1 - beta1), keep2 = static_cast<C>(beta2), weight2 = static_cast<C>(1 - beta2);
    C shrink = static_cast<C>(decoupled ? 1 - lr * decay : 1);
    Downhill<C> downhill(decoupled ? 0 : decay, maximize);
    return [=](int64_t n, C* const* a) {
      C *p = a[0], *m = a[2], *v = a[3], *top = a[Amsgrad ? 4 : 3];
      const C* g = a[1];
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) {
        C parameter = p[i];
        C d = downhill(g[i], parameter);
        parameter *= shrink;
        C mean = m[i] + weight1 * (d - m[i]);
        C square = keep2 * v[i] + weight2 * d * d;
        C largest = Amsgrad ? larger(top[i], square) : square;
        m[i] = mean;
        v[i] = square;
        if constexpr (Amsgrad) top[i] = largest;
        p[i] = parameter - rate * mean / (math::sqrt(largest) / root + epsilon);
      }
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
  auto make = [=]<typename C>() {
    C rate = static_cast<C>(lr), keep = static_cast<C>(alpha), weight = static_cast<C>(1 - alpha), epsilon = static_cast<C>(eps);
    C inertia = static_cast<C>(momentum);
    Downhill<C> downhill(decay, maximize);
    return [=](int64_t n, C* const* a) {
      C *p = a[0], *squares = a[2], *means = a[Centered ? 3 : 2], *buffer = a[Momentum ? (Centered ? 4 : 3) : 2];
      const C* g = a[1];
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) {
        C d = downhill(g[i], p[i]);
        C square = keep * squares[i] + weight * d * d;
        squares[i] = square;
        C spread = square;
        if constexpr (Centered) {
          C mean = means[i] + weight * (d - means[i]);
          means[i] = mean;
          spread = square - mean * mean;
        }
        C change = d / (math::sqrt(spread) + epsilon);
        if constexpr (Momentum) buffer[i] = change = inertia * buffer[i] + change;
        p[i] -= rate * change;
      }
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
  update<3>(call, {0, 1, 2}, [=]<typename C>() {
    C rate = static_cast<C>(lr / (1 + (step - 1) * lr_decay)), epsilon = static_cast<C>(eps);
    Downhill<C> downhill(decay, maximize);
    return [=](int64_t n, C* const* a) {
      C *p = a[0], *sums = a[2];
      const C* g = a[1];
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) {
        C d = downhill(g[i], p[i]);
        C sum = sums[i] + d * d;
        sums[i] = sum;
        p[i] -= rate * d / (math::sqrt(sum) + epsilon);
      }
    };
  });
}

void fused_adamax(Call& call) {
  double lr = call.real(4), beta1 = call.real(5), beta2 = call.real(6), eps = call.real(7), decay = call.real(8);
  bool maximize = call.boolean(9);
  double correction = 1 - std::pow(beta1, counted(call, 10));
  update<4>(call, {0, 1, 2, 3}, [=]<typename C>() {
    C rate = static_cast<C>(lr / correction), weight = static_cast<C>(1 - beta1), keep = static_cast<C>(beta2);
    C epsilon = static_cast<C>(eps);
    Downhill<C> downhill(decay, maximize);
    return [=](int64_t n, C* const* a) {
      C *p = a[0], *m = a[2], *most = a[3];
      const C* g = a[1];
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) {
        C d = downhill(g[i], p[i]);
        C mean = m[i] + weight * (d - m[i]), largest = larger(keep * most[i], math::abs(d) + epsilon);
        m[i] = mean;
        most[i] = largest;
        p[i] -= rate * mean / largest;
      }
    };
  });
}

void fused_nadam(Call& call) {
  double lr = call.real(4), beta1 = call.real(5), beta2 = call.real(6), eps = call.real(7), decay = call.real(8);
  double momentum = call.real(9), next_momentum = call.real(10), product = call.real(11);
  bool decoupled = call.boolean(12), maximize = call.boolean(13);
  double correction = 1 - std::pow(beta2, counted(call, 14));
  double of_gradient = lr * (1 - momentum) / (1 - product), of_mean = lr * next_momentum / (1 - product * next_momentum);
  update<4>(call, {0, 1, 2, 3}, [=]<typename C>() {
    C gradient_rate = static_cast<C>(of_gradient), mean_rate = static_cast<C>(of_mean), epsilon = static_cast<C>(eps);
    C weight1 = static_cast<C>(1 - beta1), keep2 = static_cast<C>(beta2), weight2 = static_cast<C>(1 - beta2);
    C scale = static_cast<C>(1 / std::sqrt(correction)), shrink = static_cast<C>(decoupled ? 1 - lr * decay : 1);
    Downhill<C> downhill(decoupled ? 0 : decay, maximize);
    return [=](int64_t n, C* const* a) {
      C *p = a[0], *m = a[2], *v = a[3];
      const C* g = a[1];
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) {
        C d = downhill(g[i], p[i]);
        C mean = m[i] + weight1 * (d - m[i]);
        C square = keep2 * v[i] + weight2 * d * d;
        m[i] = mean;
        v[i] = square;
        p[i] = p[i] * shrink - (gradient_rate * d + mean_rate * mean) / (scale * math::sqrt(square) + epsilon);
      }
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
  update<4>(call, {0, 1, 2, 3}, [=]<typename C>() {
    C rate = static_cast<C>(scale), epsilon = static_cast<C>(eps), shrink = static_cast<C>(decoupled ? 1 - lr * decay : 1);
    C weight1 = static_cast<C>(1 - beta1), keep2 = static_cast<C>(beta2), weight2 = static_cast<C>(1 - beta2);
    Downhill<C> downhill(decoupled ? 0 : decay, maximize);
    return [=](int64_t n, C* const* a) {
      C *p = a[0], *m = a[2], *v = a[3];
      const C* g = a[1];
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) {
        C d = downhill(g[i], p[i]);
        C mean = m[i] + weight1 * (d - m[i]);
        C square = keep2 * v[i] + weight2 * d * d;
        m[i] = mean;
        v[i] = square;
        C change = rate * mean;
        if (rectified) change /= math::sqrt(square) + epsilon;
        p[i] = p[i] * shrink - change;
      }
    };
  });
}

void fused_adadelta(Call& call) {
  double lr = call.real(4), rho = call.real(5), eps = call.real(6), decay = call.real(7);
  bool maximize = call.boolean(8);
  update<4>(call, {0, 1, 2, 3}, [=]<typename C>() {
    C rate = static_cast<C>(lr), keep = static_cast<C>(rho), weight = static_cast<C>(1 - rho), epsilon = static_cast<C>(eps);
    Downhill<C> downhill(decay, maximize);
    return [=](int64_t n, C* const* a) {
      C *p = a[0], *squares = a[2], *changes = a[3];
      const C* g = a[1];
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) {
        C d = downhill(g[i], p[i]);
        C square = keep * squares[i] + weight * d * d;
        C change = math::sqrt((changes[i] + epsilon) / (square + epsilon)) * d;
        squares[i] = square;
        changes[i] = keep * changes[i] + weight * change * change;
        p[i] -= rate * change;
      }
    };
  });
}

// NaN has no sign, as in PyTorch: it takes no step, and no size changes for it.
void fused_rprop(Call& call) {
  double eta_minus = call.real(4), eta_plus = call.real(5), least = call.real(6), most = call.real(7);
  bool maximize = call.boolean(8);
  update<4>(call, {0, 1, 2, 3}, [=]<typename C>() {
    C shrink = static_cast<C>(eta_minus), grow = static_cast<C>(eta_plus);
    C smallest = static_cast<C>(least), largest = static_cast<C>(most);
    Downhill<C> downhill(0, maximize);
    return [=](int64_t n, C* const* a) {
      C *p = a[0], *before = a[2], *sizes = a[3];
      const C* g = a[1];
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) {
        C d = downhill(g[i], p[i]), agreement = d * before[i];
        C size = sizes[i] * (agreement > 0 ? grow : agreement < 0 ? shrink : C(1));
        size = size < smallest ? smallest : size;
        size = size > largest ? largest : size;
        d = agreement < 0 ? C(0) : d;
        sizes[i] = size;
        before[i] = d;
        p[i] -= (d > 0 ? C(1) : d < 0 ? C(-1) : C(0)) * size;
      }
    };
  });
}

void fused_asgd(Call& call) {
  double lambda = call.real(3), eta = call.real(4), mu = call.real(5), decay = call.real(6);
  bool maximize = call.boolean(7), starts = mu == 1;
  update<3>(call, {0, 1, 2}, [=]<typename C>() {
    C shrink = static_cast<C>(1 - lambda * eta), rate = static_cast<C>(eta), weight = static_cast<C>(mu);
    Downhill<C> downhill(decay, maximize);
    return [=](int64_t n, C* const* a) {
      C *p = a[0], *means = a[2];
      const C* g = a[1];
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) {
        C parameter = p[i] * shrink - rate * downhill(g[i], p[i]);
        means[i] = starts ? parameter : means[i] + weight * (parameter - means[i]);
        p[i] = parameter;
      }
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
