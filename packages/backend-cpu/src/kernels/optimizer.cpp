// Optimizer steps over many parameters in one pass: parameter, gradient and state of an element are read and written once.
// The formulas are PyTorch's (torch/optim, the single-tensor forms).
#include <array>
#include <cmath>
#include <vector>

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

// step(n, pointers): n elements of contiguous C arrays. Operand 1, the gradient, is only read.
template <int N, typename T, typename Step>
void update_range(const Operands<N>& operands, bool contiguous, int64_t begin, int64_t end, const Step& step) {
  using C = compute_t<T>;
  C* pointers[N];
  if (contiguous && !is_half_v<T>) {
    for (int k = 0; k < N; ++k) pointers[k] = mutable_data<C>(*operands[k]) + begin;
    return step(end - begin, pointers);
  }
  alignas(64) C buffers[N][chunk];
  for (int k = 0; k < N; ++k) pointers[k] = buffers[k];
  Geometry<N> g = geometry<N>(operands);
  for (int64_t first = begin; first < end; first += chunk) {
    int64_t n = std::min(chunk, end - first), done = 0;
    for_each_run(g, first, first + n, [&](const int64_t* offsets, int64_t m) {
      for (int k = 0; k < N; ++k) {
        const T* from = data<T>(*operands[k]) + offsets[k];
        for (int64_t i = 0; i < m; ++i) buffers[k][done + i] = from[i * g.strides[k][0]];
      }
      done += m;
    });
    step(n, pointers);
    done = 0;
    for_each_run(g, first, first + n, [&](const int64_t* offsets, int64_t m) {
      for (int k = 0; k < N; ++k) {
        if (k == 1) continue;
        T* to = mutable_data<T>(*operands[k]) + offsets[k];
        for (int64_t i = 0; i < m; ++i) to[i * g.strides[k][0]] = T(buffers[k][done + i]);
      }
      done += m;
    });
  }
}

// All parameters as one range of elements, divided among threads. make<C>() gives the step for the computing type C.
template <int N, typename Make>
void update(const Call& call, const std::array<int, N>& arguments, const Make& make) {
  auto all = collect<N>(call, arguments);
  std::vector<int64_t> ends(all.size());
  std::vector<char> contiguous(all.size());
  int64_t total = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    ends[i] = total += all[i][0]->numel;
    contiguous[i] = 1;
    for (const cb_tensor* each : all[i]) contiguous[i] &= is_contiguous(*each);
  }
  parallel_for(total, light_grain / 4, [&](int64_t begin, int64_t end) {
    size_t i = static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin());
    while (begin < end) {
      int64_t start = i ? ends[i - 1] : 0, stop = std::min(end, ends[i]);
      if (stop > begin)
        dispatch<FloatTypes>(all[i][0]->dtype, [&]<typename T>() {
          update_range<N, T>(all[i], contiguous[i], begin - start, stop - start, make.template operator()<compute_t<T>>());
        });
      begin = stop;
      ++i;
    }
  });
}

void fused_sgd(Call& call) {
  double lr = call.real(3), decay = call.real(4), momentum = call.real(5), dampening = call.real(6);
  bool nesterov = call.boolean(7), first = call.boolean(9);
  double sign = call.boolean(8) ? -1 : 1;
  if (call.tensors(2).empty() || momentum == 0) {
    return update<2>(call, {0, 1}, [=]<typename C>() {
      C rate = static_cast<C>(lr), weight_decay = static_cast<C>(decay), direction = static_cast<C>(sign);
      return [=](int64_t n, C* const* a) {
        C* p = a[0];
        const C* g = a[1];
#pragma omp simd
        for (int64_t i = 0; i < n; ++i) p[i] -= rate * (direction * g[i] + weight_decay * p[i]);
      };
    });
  }
  update<3>(call, {0, 1, 2}, [=]<typename C>() {
    C rate = static_cast<C>(lr), weight_decay = static_cast<C>(decay), direction = static_cast<C>(sign);
    C keep = first ? C(0) : static_cast<C>(momentum), add = first ? C(1) : static_cast<C>(1 - dampening),
      ahead = static_cast<C>(momentum);
    return [=](int64_t n, C* const* a) {
      C *p = a[0], *buffer = a[2];
      const C* g = a[1];
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) {
        C d = direction * g[i] + weight_decay * p[i];
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
  bool decoupled = call.boolean(10);
  double sign = call.boolean(12) ? -1 : 1, step = static_cast<double>(call.integer(13));
  if (step < 1) throw failure(CB_VALUE_ERROR, "fused_adam_: step counts from 1, but got %g", step);
  double correction1 = 1 - std::pow(beta1, step), correction2 = std::sqrt(1 - std::pow(beta2, step));
  auto make = [=]<typename C>() {
    C rate = static_cast<C>(lr / correction1), root = static_cast<C>(correction2), epsilon = static_cast<C>(eps);
    C weight1 = static_cast<C>(1 - beta1), keep2 = static_cast<C>(beta2), weight2 = static_cast<C>(1 - beta2);
    C direction = static_cast<C>(sign), shrink = static_cast<C>(decoupled ? 1 - lr * decay : 1),
      pull = static_cast<C>(decoupled ? 0 : decay);
    return [=](int64_t n, C* const* a) {
      C *p = a[0], *m = a[2], *v = a[3], *top = a[Amsgrad ? 4 : 3];
      const C* g = a[1];
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) {
        C parameter = p[i];
        C d = direction * g[i] + pull * parameter;
        parameter *= shrink;
        C mean = m[i] + weight1 * (d - m[i]);
        C square = keep2 * v[i] + weight2 * d * d;
        C largest = Amsgrad && top[i] > square ? top[i] : square;
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
  double sign = call.boolean(11) ? -1 : 1;
  auto make = [=]<typename C>() {
    C rate = static_cast<C>(lr), keep = static_cast<C>(alpha), weight = static_cast<C>(1 - alpha), epsilon = static_cast<C>(eps);
    C pull = static_cast<C>(decay), inertia = static_cast<C>(momentum), direction = static_cast<C>(sign);
    return [=](int64_t n, C* const* a) {
      C *p = a[0], *squares = a[2], *means = a[Centered ? 3 : 2], *buffer = a[Momentum ? (Centered ? 4 : 3) : 2];
      const C* g = a[1];
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) {
        C d = direction * g[i] + pull * p[i];
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
  double sign = call.boolean(7) ? -1 : 1, step = static_cast<double>(call.integer(8));
  update<3>(call, {0, 1, 2}, [=]<typename C>() {
    C rate = static_cast<C>(lr / (1 + (step - 1) * lr_decay)), pull = static_cast<C>(decay), epsilon = static_cast<C>(eps);
    C direction = static_cast<C>(sign);
    return [=](int64_t n, C* const* a) {
      C *p = a[0], *sums = a[2];
      const C* g = a[1];
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) {
        C d = direction * g[i] + pull * p[i];
        C sum = sums[i] + d * d;
        sums[i] = sum;
        p[i] -= rate * d / (math::sqrt(sum) + epsilon);
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
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
