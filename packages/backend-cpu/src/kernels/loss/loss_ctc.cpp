// _ctc_loss, _ctc_loss_backward: connectionist temporal classification (Graves et al. 2006).
//
// The labels of a sample with a blank before, between and after them are 2 * length + 1 states.
// alpha[t, s] and beta[t, s] are the log probabilities of all paths that lead to and from state s
// at time t.
#include <cmath>
#include <limits>
#include <vector>

#include "candelabra/arguments/loss.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "memory/allocator.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

template <typename T>
constexpr T never = -std::numeric_limits<T>::infinity();

// log(exp(a) + exp(b) + exp(c)) without overflow.
template <typename T>
T log_sum(T a, T b, T c) {
  const T largest = std::max(std::max(a, b), c);
  if (largest == never<T>) return a + b + c;  // keeps NaN
  return largest + std::log(std::exp(a - largest) + std::exp(b - largest) + std::exp(c - largest));
}

// The offset of each sample's labels. `targets` is a matrix with one row per sample, or all labels
// concatenated.
std::vector<int64_t> label_starts(const cb_tensor& targets, std::span<const int64_t> lengths) {
  const auto samples = static_cast<int64_t>(lengths.size());
  std::vector<int64_t> starts(lengths.size());
  int64_t at = 0;
  for (int64_t n = 0; n < samples; ++n) {
    starts[n] = at;
    at += targets.ndim == 2 ? targets.sizes[1] : lengths[n];
  }
  return starts;
}

// The states of one sample.
struct States {
  const int64_t* labels;
  int64_t count;
  int64_t blank;
  int64_t symbol(int64_t s) const { return s % 2 ? labels[s / 2] : blank; }
  // Whether a path may skip the blank before state s, which it may only between two different
  // labels.
  bool skips(int64_t s) const { return s % 2 && s > 1 && labels[s / 2] != labels[s / 2 - 1]; }
};

void check_labels(const int64_t* labels, int64_t count, int64_t classes) {
  for (int64_t i = 0; i < count; ++i)
    if (static_cast<uint64_t>(labels[i]) >= static_cast<uint64_t>(classes))
      throw failure(CB_INDEX_ERROR, "ctc_loss(): target %lld is out of bounds for %lld classes",
                    static_cast<long long>(labels[i]), static_cast<long long>(classes));
}

template <typename T>
void forward(Call& call, const arguments::CtcLoss& args) {
  const cb_tensor &scores = *args.log_probs, &targets = *args.targets;
  cb_tensor &losses = call.output(0), &alphas = call.output(1);
  const auto input_lengths = args.input_lengths, target_lengths = args.target_lengths;
  const int64_t blank = args.blank, samples = scores.sizes[1], classes = scores.sizes[2];
  const int64_t times = alphas.sizes[1], width = alphas.sizes[2];
  const std::vector<int64_t> starts = label_starts(targets, target_lengths);
  for (int64_t n = 0; n < samples; ++n) check_labels(data<int64_t>(targets) + starts[n], target_lengths[n], classes);
  parallel_for(samples, grain_for(times * width * 16), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const States states{data<int64_t>(targets) + starts[n], 2 * target_lengths[n] + 1, blank};
      auto score = [&](int64_t t, int64_t s) {
        return data<T>(scores)[t * scores.strides[0] + n * scores.strides[1] + states.symbol(s) * scores.strides[2]];
      };
      T* alpha = data<T>(alphas) + n * times * width;
      std::fill_n(alpha, times * width, never<T>);
      const int64_t length = input_lengths[n];
      if (length == 0) {
        // Without input only an empty target is possible.
        data<T>(losses)[n] = states.count == 1 ? T(0) : std::numeric_limits<T>::infinity();
        continue;
      }
      alpha[0] = score(0, 0);
      if (states.count > 1) alpha[1] = score(0, 1);
      for (int64_t t = 1; t < length; ++t) {
        const T* before = alpha + (t - 1) * width;
        for (int64_t s = 0; s < states.count; ++s)
          alpha[t * width + s] = score(t, s) + log_sum(before[s], s > 0 ? before[s - 1] : never<T>,
                                                       states.skips(s) ? before[s - 2] : never<T>);
      }
      const T* last = alpha + (length - 1) * width;
      data<T>(losses)[n] =
          -log_sum(last[states.count - 1], states.count > 1 ? last[states.count - 2] : never<T>, never<T>);
    }
  });
}

template <typename T>
void backward(Call& call, const arguments::CtcLossBackward& args) {
  const cb_tensor &grad = *args.grad, &scores = *args.log_probs, &targets = *args.targets;
  const cb_tensor &losses = *args.loss, &alphas = *args.log_alpha;
  cb_tensor& out = call.output();
  const auto input_lengths = args.input_lengths, target_lengths = args.target_lengths;
  const int64_t blank = args.blank, samples = scores.sizes[1], classes = scores.sizes[2];
  const bool zero_infinity = args.zero_infinity;
  const int64_t times = alphas.sizes[1], width = alphas.sizes[2];
  const std::vector<int64_t> starts = label_starts(targets, target_lengths);
  for (int64_t n = 0; n < samples; ++n) check_labels(data<int64_t>(targets) + starts[n], target_lengths[n], classes);
  std::fill_n(data<T>(out), out.numel, T(0));
  parallel_for(samples, grain_for(times * width * 16), [&](int64_t begin, int64_t end) {
    Scratch<T> later(width), now(width), paths(classes);
    for (int64_t n = begin; n < end; ++n) {
      const States states{data<int64_t>(targets) + starts[n], 2 * target_lengths[n] + 1, blank};
      const T loss = data<T>(losses)[n], factor = data<T>(grad)[n * grad.strides[0]];
      const int64_t length = input_lengths[n];
      if (length == 0 || (zero_infinity && loss == std::numeric_limits<T>::infinity())) continue;
      const T* alpha = data<T>(alphas) + n * times * width;
      auto score = [&](int64_t t, int64_t symbol) {
        return data<T>(scores)[t * scores.strides[0] + n * scores.strides[1] + symbol * scores.strides[2]];
      };
      T *next = later.data(), *beta = now.data();
      for (int64_t t = length - 1; t >= 0; --t) {
        for (int64_t s = 0; s < states.count; ++s) {
          const T here = score(t, states.symbol(s));
          if (t == length - 1)
            beta[s] = s >= states.count - 2 ? here : never<T>;
          else
            beta[s] = here + log_sum(next[s], s + 1 < states.count ? next[s + 1] : never<T>,
                                     s + 2 < states.count && states.skips(s + 2) ? next[s + 2] : never<T>);
        }
        // The log probability of all paths through each symbol.
        std::fill_n(paths.data(), classes, never<T>);
        for (int64_t s = 0; s < states.count; ++s) {
          T& sum = paths[states.symbol(s)];
          sum = log_sum(sum, alpha[t * width + s] + beta[s], never<T>);
        }
        T* to = data<T>(out) + (t * samples + n) * classes;
        // As in PyTorch, the scores are assumed to be normalized. The gradient is right once it has
        // passed log_softmax.
        for (int64_t c = 0; c < classes; ++c) {
          const T x = score(t, c);
          to[c] = factor * (std::exp(x) - std::exp(paths[c] + loss - x));
        }
        std::swap(next, beta);
      }
    }
  });
}

void ctc_loss(Call& call) {
  const arguments::CtcLoss args(call);
  dispatch<FullFloatTypes>(args.log_probs->dtype, [&]<typename T>() { forward<T>(call, args); });
}
void ctc_loss_backward(Call& call) {
  const arguments::CtcLossBackward args(call);
  dispatch<FullFloatTypes>(args.log_probs->dtype, [&]<typename T>() { backward<T>(call, args); });
}

}  // namespace

void register_loss_ctc(KernelTable& table) {
  table.add<ctc_loss>("_ctc_loss");
  table.add<ctc_loss_backward>("_ctc_loss_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
