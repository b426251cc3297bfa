// _ctc_loss, _ctc_loss_backward: connectionist temporal classification (Graves et al. 2006).
// The labels of a sample, with a blank before, between and after them, are 2 * length + 1 states.
// alpha and beta are the log probabilities of all paths to and from a state at a time step.
//
// One block iterates over the time steps of a sample; its threads share the states. The gradient
// sums the paths through equal labels in the order of the labels: each label stores the position of
// the next equal one.
#include <algorithm>

#include "candelabra/arguments/loss.hpp"
#include "runtime/launch.hpp"

namespace candelabra::cuda {
namespace {

template <typename T>
constexpr T never = -std::numeric_limits<T>::infinity();

// log(exp(a) + exp(b) + exp(c)) without overflow.
template <typename T>
__device__ T log_sum(T a, T b, T c) {
  const T larger = a > b ? a : b, largest = larger > c ? larger : c;
  if (largest == never<T>) return a + b + c;  // NaN if one of them is NaN
  return largest + ::cuda::std::log(::cuda::std::exp(a - largest) + ::cuda::std::exp(b - largest) +
                                    ::cuda::std::exp(c - largest));
}
template <typename T>
__device__ T log_sum(T a, T b) {
  return log_sum(a, b, never<T>);
}

struct Sample {
  // Position of the first label, number of labels, length of the input
  int64_t start, labels, times;
};
// Samples are passed to kernels by value, in batches.
constexpr int sample_batch = 128;
struct Samples {
  Sample of[sample_batch];
  int64_t first;
};

// Calls f(samples, count) for each batch of samples.
template <typename F>
void for_samples(const cb_tensor& targets, std::span<const int64_t> times, std::span<const int64_t> lengths, F&& f) {
  Samples some{};
  int filled = 0;
  int64_t start = 0;
  const auto count = static_cast<int64_t>(lengths.size());
  for (int64_t n = 0; n < count; ++n) {
    const auto at = static_cast<size_t>(n);
    some.of[filled++] = {start, lengths[at], times[at]};
    start += targets.ndim == 2 ? targets.sizes[1] : lengths[at];
    if (filled < sample_batch && n + 1 < count) continue;
    f(static_cast<const Samples&>(some), filled);
    some.first += filled;
    filled = 0;
  }
}

template <typename T>
struct Problem {
  const T* scores;
  int64_t time_step, sample_step, class_step;
  const int64_t* targets;
  int64_t classes, blank;
  int64_t times, width;  // of alpha: (samples, times, width)
  FaultSink sink;

  Problem(const Call& call, const cb_tensor& log_probs, const cb_tensor& labels, const cb_tensor& alphas,
          int64_t blank_label)
      : scores(data<T>(log_probs)),
        time_step(log_probs.strides[0]),
        sample_step(log_probs.strides[1]),
        class_step(log_probs.strides[2]),
        targets(data<int64_t>(labels)),
        classes(log_probs.sizes[2]),
        blank(blank_label),
        times(alphas.sizes[1]),
        width(alphas.sizes[2]),
        sink(fault_sink(call)) {}

#ifdef __CUDACC__
  __device__ T score(int64_t t, int64_t n, int64_t symbol) const {
    return scores[t * time_step + n * sample_step + symbol * class_step];
  }
  __device__ int64_t label(int64_t at) const {
    const int64_t number = targets[at];
    if (number >= 0 && number < classes) return number;
    sink.report(FaultKind::TargetRange, number, 2, classes);
    return 0;
  }
  __device__ int64_t symbol(const Sample& sample, int64_t s) const {
    return s % 2 ? label(sample.start + s / 2) : blank;
  }
  // Whether a path may skip the blank before the state: between labels that differ.
  __device__ bool skips(const Sample& sample, int64_t s) const {
    return s % 2 && s > 1 && targets[sample.start + s / 2] != targets[sample.start + s / 2 - 1];
  }
#endif
};

constexpr int most_threads = 512;
int threads_of(int64_t width) {
  return static_cast<int>(std::clamp<int64_t>(divide_up(width, 32) * 32, 32, most_threads));
}

template <typename T>
__global__ void __launch_bounds__(most_threads)
    forward_kernel(const __grid_constant__ Problem<T> problem, const __grid_constant__ Samples samples, T* losses,
                   T* alphas) {
  const Sample& sample = samples.of[blockIdx.x];
  const int64_t n = samples.first + blockIdx.x, states = 2 * sample.labels + 1, width = problem.width;
  T* alpha = alphas + n * problem.times * width;
  for (int64_t t = 0; t < problem.times; ++t) {
    T* now = alpha + t * width;
    const T* before = now - width;
    for (int64_t s = threadIdx.x; s < width; s += blockDim.x) {
      T value = never<T>;
      if (t < sample.times && s < states) {
        const T here = problem.score(t, n, problem.symbol(sample, s));
        if (t == 0)
          value = s < 2 ? here : never<T>;
        else
          value = here + log_sum(before[s], s > 0 ? before[s - 1] : never<T>,
                                 problem.skips(sample, s) ? before[s - 2] : never<T>);
      }
      now[s] = value;
    }
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  if (sample.times == 0) {
    // With no time steps only an empty target has a path.
    losses[n] = states == 1 ? T(0) : std::numeric_limits<T>::infinity();
    return;
  }
  const T* last = alpha + (sample.times - 1) * width;
  losses[n] = -log_sum(last[states - 1], states > 1 ? last[states - 2] : never<T>);
}

template <typename T>
void forward(Call& call) {
  const arguments::CtcLoss args(call);
  const cb_tensor &scores = *args.log_probs, &targets = *args.targets;
  cb_tensor &losses = call.output(0), &alphas = call.output(1);
  const Problem<T> problem(call, scores, targets, alphas, args.blank);
  for_samples(targets, args.input_lengths, args.target_lengths, [&](const Samples& samples, int count) {
    launch(call, forward_kernel<T>, static_cast<unsigned>(count), static_cast<unsigned>(threads_of(problem.width)), 0,
           problem, samples, data<T>(losses), data<T>(alphas));
  });
}

// Computes paths (samples, times, width) = alpha + beta; `betas` holds two rows of beta for each
// sample. For each label, `following` is the next equal label (-1: none) and `begins` whether it is
// the first of its kind.
template <typename T>
__global__ void __launch_bounds__(most_threads)
    paths_kernel(const __grid_constant__ Problem<T> problem, const __grid_constant__ Samples samples, const T* alphas,
                 T* paths, T* betas, int64_t* following, bool* begins) {
  const Sample& sample = samples.of[blockIdx.x];
  const int64_t n = samples.first + blockIdx.x, states = 2 * sample.labels + 1, width = problem.width, most = width / 2;
  for (int64_t i = threadIdx.x; i < sample.labels; i += blockDim.x) {
    const int64_t mine = problem.targets[sample.start + i];
    int64_t next = i + 1, before = i - 1;
    while (next < sample.labels && problem.targets[sample.start + next] != mine) ++next;
    while (before >= 0 && problem.targets[sample.start + before] != mine) --before;
    following[n * most + i] = next < sample.labels ? next : -1;
    begins[n * most + i] = before < 0;
  }
  T *now = betas + 2 * n * width, *later = now + width;
  for (int64_t t = sample.times - 1; t >= 0; --t) {
    const int64_t row = (n * problem.times + t) * width;
    for (int64_t s = threadIdx.x; s < states; s += blockDim.x) {
      const T here = problem.score(t, n, problem.symbol(sample, s));
      T beta;
      if (t == sample.times - 1)
        beta = s >= states - 2 ? here : never<T>;
      else
        beta = here + log_sum(later[s], s + 1 < states ? later[s + 1] : never<T>,
                              s + 2 < states && problem.skips(sample, s + 2) ? later[s + 2] : never<T>);
      now[s] = beta;
      paths[row + s] = alphas[row + s] + beta;
    }
    __syncthreads();
    T* other = now;
    now = later;
    later = other;
  }
}

template <typename T>
struct GradientArguments {
  Problem<T> problem;
  const T *grad, *losses, *paths;
  int64_t grad_step;
  const int64_t* following;
  const bool* begins;
  T* out;
  int64_t rows, all_samples;  // rows: samples of the batch * time steps
  int batch;
  bool zero_infinity;

#ifdef __CUDACC__
  // As in PyTorch this is the gradient for the input of the log_softmax that made log_probs.
  __device__ T value(T factor, T loss, T x, T sum) const {
    return factor * (::cuda::std::exp(x) - ::cuda::std::exp(sum + loss - x));
  }
#endif
};

// One block computes one time step of a sample: all classes as if no path passed them, then the
// labels and the blank again.
template <typename T>
__global__ void __launch_bounds__(most_threads)
    gradient_kernel(const __grid_constant__ GradientArguments<T> a, const __grid_constant__ Samples samples) {
  for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    const int64_t t = row / a.batch, local = row - t * a.batch, n = samples.first + local;
    const Sample& sample = samples.of[local];
    const T loss = a.losses[n], factor = a.grad[n * a.grad_step];
    T* to = a.out + (t * a.all_samples + n) * a.problem.classes;
    const bool is_zero = t >= sample.times || (a.zero_infinity && loss == std::numeric_limits<T>::infinity());
    for (int64_t c = threadIdx.x; c < a.problem.classes; c += blockDim.x)
      to[c] = is_zero ? T(0) : a.value(factor, loss, a.problem.score(t, n, c), never<T>);
    __syncthreads();
    if (!is_zero) {
      const T* paths = a.paths + (n * a.problem.times + t) * a.problem.width;
      const int64_t first = n * (a.problem.width / 2);
      for (int64_t i = threadIdx.x; i < sample.labels; i += blockDim.x) {
        if (!a.begins[first + i]) continue;
        const int64_t symbol = a.problem.label(sample.start + i);
        if (symbol == a.problem.blank) continue;
        T sum = paths[2 * i + 1];
        for (int64_t next = a.following[first + i]; next >= 0; next = a.following[first + next])
          sum = log_sum(sum, paths[2 * next + 1]);
        to[symbol] = a.value(factor, loss, a.problem.score(t, n, symbol), sum);
      }
      if (threadIdx.x < 32) {  // one warp for the blank, which may also be a label
        T sum = never<T>;
        for (int64_t s = threadIdx.x; s <= 2 * sample.labels; s += 32)
          if (s % 2 == 0 || a.problem.targets[sample.start + s / 2] == a.problem.blank) sum = log_sum(sum, paths[s]);
        for (int delta = 16; delta > 0; delta /= 2) sum = log_sum(sum, __shfl_down_sync(0xffffffffu, sum, delta));
        if (threadIdx.x == 0) to[a.problem.blank] = a.value(factor, loss, a.problem.score(t, n, a.problem.blank), sum);
      }
    }
    __syncthreads();
  }
}

template <typename T>
void backward(Call& call) {
  const arguments::CtcLossBackward args(call);
  const cb_tensor &grad = *args.grad, &scores = *args.log_probs, &targets = *args.targets;
  const cb_tensor &losses = *args.loss, &alphas = *args.log_alpha;
  cb_tensor& out = call.output();
  if (out.numel == 0) return;
  const Problem<T> problem(call, scores, targets, alphas, args.blank);
  const int64_t all_samples = scores.sizes[1], labels = problem.width / 2 * all_samples;
  const Workspace paths(call, static_cast<size_t>(alphas.numel) * sizeof(T));
  const Workspace betas(call, static_cast<size_t>(2 * all_samples * problem.width) * sizeof(T));
  const Workspace following(call, static_cast<size_t>(labels) * sizeof(int64_t)),
      begins(call, static_cast<size_t>(labels));
  for_samples(targets, args.input_lengths, args.target_lengths, [&](const Samples& samples, int count) {
    launch(call, paths_kernel<T>, static_cast<unsigned>(count), static_cast<unsigned>(threads_of(problem.width)), 0,
           problem, samples, data<T>(alphas), paths.as<T>(), betas.as<T>(), following.as<int64_t>(), begins.as<bool>());
    const int64_t rows = count * problem.times;
    const GradientArguments<T> a{problem,           data<T>(grad),   data<T>(losses),
                                 paths.as<T>(),     grad.strides[0], following.as<int64_t>(),
                                 begins.as<bool>(), data<T>(out),    rows,
                                 all_samples,       count,           args.zero_infinity};
    const int threads = std::min(128, threads_of(std::max(problem.classes, problem.width)));
    launch(call, gradient_kernel<T>, static_cast<unsigned>(std::min<int64_t>(rows, 1 << 30)),
           static_cast<unsigned>(threads), 0, a, samples);
  });
}

void ctc_loss(Call& call) {
  dispatch<FullFloatTypes>(arguments::CtcLoss(call).log_probs->dtype, [&]<typename T>() { forward<T>(call); });
}
void ctc_loss_backward(Call& call) {
  dispatch<FullFloatTypes>(arguments::CtcLossBackward(call).log_probs->dtype, [&]<typename T>() { backward<T>(call); });
}

}  // namespace

void register_loss_ctc(KernelTable& table) {
  table.add<ctc_loss>("_ctc_loss");
  table.add<ctc_loss_backward>("_ctc_loss_backward");
}

}  // namespace candelabra::cuda
