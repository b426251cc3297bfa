// cross_entropy_forward and cross_entropy_backward, fused: scores (N, C) and classes (N) without a
// matrix of log-probabilities in memory.
//
// A row is read once: each thread keeps a running maximum and the sum of exp(x - maximum); the
// threads' results are merged (Milakov and Gimelshein 2018). The maximum of a row and the logarithm
// of its sum are the statistics that the gradient needs.
#include <limits>

#include "candelabra/math.hpp"
#include "candelabra/positions.hpp"
#include "kernels/loss/weighted_mean.cuh"

namespace candelabra::cuda {
namespace {

using namespace weighted_mean;

// Above this number of classes a block computes a row, else a warp.
constexpr int64_t most_warp_classes = 1024;

template <typename T>
struct Rows {
  const memory_t<T>* scores;
  const int64_t* target;
  const memory_t<T>* weight;  // null: every class counts once
  int64_t target_stride, weight_stride, count, classes, ignored;
  FaultSink sink;

  Rows(const Call& call, const cb_tensor& x, const cb_tensor& targets, const cb_tensor* weights, int64_t ignore_index)
      : scores(data<memory_t<T>>(x)),
        target(data<int64_t>(targets)),
        weight(weights ? data<memory_t<T>>(*weights) : nullptr),
        target_stride(targets.strides[0]),
        weight_stride(weights ? weights->strides[0] : 0),
        count(x.sizes[0]),
        classes(x.sizes[1]),
        ignored(ignore_index),
        sink(fault_sink(call)) {}

  // The class of a row; -1 for ignore_index and for an invalid class, which one thread reports.
  __device__ int64_t target_of(int64_t row, bool reports) const {
    const int64_t number = target[row * target_stride];
    if (number == ignored) return -1;
    if (number >= 0 && number < classes) return number;
    if (reports) sink.report(FaultKind::TargetRange, number, 1, classes);
    return -1;
  }
  __device__ double weight_of(int64_t number) const {
    return weight ? static_cast<double>(loaded<T>(weight[number * weight_stride])) : 1.0;
  }
};

// The assignment of rows to threads.
template <bool Wide>
struct Share {
  static constexpr int lanes = Wide ? threads : 32;
  static constexpr int rows_a_block = threads / lanes;
  int lane = static_cast<int>(threadIdx.x) % lanes;
  int64_t first = static_cast<int64_t>(blockIdx.x) * rows_a_block + threadIdx.x / lanes;
  int64_t step = static_cast<int64_t>(gridDim.x) * rows_a_block;
};

template <typename C>
struct Exponentials {
  C largest = -std::numeric_limits<C>::infinity(), sum = 0;

  // x - x + 1 is 1, or NaN if x is infinite or NaN: NaN propagates through the sum.
  __device__ void accumulate(C x) {
    if (x > largest) {
      sum = sum * math::exp(largest - x) + (x - x + C(1));
      largest = x;
    } else if (x != -std::numeric_limits<C>::infinity()) {
      sum += math::exp(x - largest);
    }
  }
  __device__ void merge(C other, C its_sum) {
    const C most = largest > other ? largest : other;
    // While all values are -infinity the sum is 0: the factor 1 avoids exp(NaN).
    const C mine = largest == most ? C(1) : math::exp(largest - most);
    const C its = other == most ? C(1) : math::exp(other - most);
    sum = sum * mine + its_sum * its;
    largest = most;
  }
};

// Merges the results of the threads of a row; valid in the first of them.
template <bool Wide, typename C>
__device__ Exponentials<C> merged(Exponentials<C> found) {
#pragma unroll
  for (int by = 16; by > 0; by /= 2) {
    const C other = __shfl_down_sync(0xffffffffu, found.largest, by),
            sum = __shfl_down_sync(0xffffffffu, found.sum, by);
    found.merge(other, sum);
  }
  if constexpr (Wide) {
    constexpr int warps = threads / 32;
    __shared__ C largest[warps], sums[warps];
    __syncthreads();  // the results of the previous row have been read
    if (threadIdx.x % 32 == 0) {
      largest[threadIdx.x / 32] = found.largest;
      sums[threadIdx.x / 32] = found.sum;
    }
    __syncthreads();
    if (threadIdx.x == 0)
      for (int w = 1; w < warps; ++w) found.merge(largest[w], sums[w]);
  }
  return found;
}

template <typename T>
struct Forward {
  Rows<T> rows;
  memory_t<T>* out;  // one element for each row; null with a reduction
  int64_t out_stride;
  compute_t<T>* statistics;  // (2, N): maxima, then logarithms of the sums
  Pair<double>* partial;
};

// Sums losses and weights: one pair for each block.
template <typename T, bool Wide>
__global__ void __launch_bounds__(threads) forward_kernel(const __grid_constant__ Forward<T> a) {
  using C = compute_t<T>;
  const Share<Wide> share;
  Pair<double> sums{0, 0};
  for (int64_t row = share.first; row < a.rows.count; row += share.step) {
    const memory_t<T>* x = a.rows.scores + row * a.rows.classes;
    Exponentials<C> found;
    for (int64_t k = share.lane; k < a.rows.classes; k += Share<Wide>::lanes) found.accumulate(loaded<T>(x[k]));
    found = merged<Wide>(found);
    if (share.lane != 0) continue;
    const bool any = a.rows.classes > 0;
    const C largest = any ? found.largest : C(0), logarithm = any ? math::log(found.sum) : C(0);
    a.statistics[row] = largest;
    a.statistics[a.rows.count + row] = logarithm;
    const int64_t number = a.rows.target_of(row, true);
    double here = 0;
    if (number >= 0) {
      const double w = a.rows.weight_of(number);
      here = -w * static_cast<double>((loaded<T>(x[number]) - largest) - logarithm);
      sums.first += here;
      sums.second += w;
    }
    if (a.out) a.out[row * a.out_stride] = stored<T>(static_cast<C>(here));
  }
  sums = block_sum(sums);
  if (threadIdx.x == 0) a.partial[blockIdx.x] = sums;
}

template <typename T>
struct Backward {
  Rows<T> rows;
  memory_t<T>* out;
  const memory_t<T>* grad;
  int64_t grad_stride;       // 0 with a reduction: one gradient for all rows
  const memory_t<T>* total;  // null if the reduction is not mean
  const compute_t<T>* statistics;
};

// grad * weight * (softmax - 1 at the class of the row)
template <typename T, bool Wide>
__global__ void __launch_bounds__(threads) backward_kernel(const __grid_constant__ Backward<T> a) {
  using C = compute_t<T>;
  const Share<Wide> share;
  const double scale = a.total ? 1 / static_cast<double>(loaded<T>(*a.total)) : 1.0;
  for (int64_t row = share.first; row < a.rows.count; row += share.step) {
    const int64_t number = a.rows.target_of(row, share.lane == 0), start = row * a.rows.classes;
    C factor = 0, largest = 0, logarithm = 0;
    if (number >= 0) {
      factor = static_cast<C>(a.rows.weight_of(number) * scale *
                              static_cast<double>(loaded<T>(a.grad[row * a.grad_stride])));
      largest = a.statistics[row];
      logarithm = a.statistics[a.rows.count + row];
    }
    for (int64_t k = share.lane; k < a.rows.classes; k += Share<Wide>::lanes) {
      C here = 0;
      if (number >= 0)
        here = factor * (math::exp((loaded<T>(a.rows.scores[start + k]) - largest) - logarithm) - C(k == number));
      a.out[start + k] = stored<T>(here);
    }
  }
}

// Calls queue(wide, blocks); `wide` is std::true_type where a block computes a row.
template <typename F>
void by_width(const Call& call, const cb_tensor& scores, F&& queue) {
  const int64_t rows = scores.sizes[0];
  if (scores.sizes[1] > most_warp_classes)
    queue(std::true_type{}, grid_for(call, rows * Share<true>::lanes, threads));
  else
    queue(std::false_type{}, grid_for(call, rows * Share<false>::lanes, threads));
}

template <typename T>
void forward(const Call& call) {
  using Element = memory_t<T>;
  namespace at = positions::cross_entropy_forward;
  const cb_tensor& scores = call.tensor(at::input);
  const cb_tensor& out = call.output(0);
  const int64_t reduction = call.integer(at::reduction);
  const bool each = reduction == None;
  by_width(call, scores, [&](auto wide, unsigned blocks) {
    const Workspace partial(call, blocks * sizeof(Pair<double>));
    const Forward<T> a{Rows<T>(call, scores, call.tensor(at::target), call.optional_tensor(at::weight),
                               call.integer(at::ignore_index)),
                       each ? mutable_data<Element>(out) : nullptr, each ? out.strides[0] : 0,
                       mutable_data<compute_t<T>>(call.output(2)), partial.as<Pair<double>>()};
    launch(call, forward_kernel<T, decltype(wide)::value>, blocks, threads, 0, a);
    launch(call, total_kernel<T>, 1, threads, 0, static_cast<const Pair<double>*>(a.partial),
           static_cast<int64_t>(blocks), reduction == Mean, each ? nullptr : mutable_data<Element>(out),
           mutable_data<Element>(call.output(1)));
  });
}

template <typename T>
void backward(const Call& call) {
  using Element = memory_t<T>;
  namespace at = positions::cross_entropy_backward;
  const cb_tensor &grad = call.tensor(at::grad), &scores = call.tensor(at::input);
  const int64_t reduction = call.integer(at::reduction);
  if (call.output(0).numel == 0) return;
  by_width(call, scores, [&](auto wide, unsigned blocks) {
    const Backward<T> a{Rows<T>(call, scores, call.tensor(at::target), call.optional_tensor(at::weight),
                                call.integer(at::ignore_index)),
                        mutable_data<Element>(call.output(0)),
                        data<Element>(grad),
                        reduction == None ? grad.strides[0] : 0,
                        reduction == Mean ? data<Element>(call.tensor(at::total_weight)) : nullptr,
                        data<compute_t<T>>(call.tensor(at::statistics))};
    launch(call, backward_kernel<T, decltype(wide)::value>, blocks, threads, 0, a);
  });
}

void cross_entropy_forward(Call& call) {
  dispatch<FloatTypes>(call.tensor(positions::cross_entropy_forward::input).dtype,
                       [&]<typename T>() { forward<T>(call); });
}
void cross_entropy_backward(Call& call) {
  dispatch<FloatTypes>(call.tensor(positions::cross_entropy_backward::input).dtype,
                       [&]<typename T>() { backward<T>(call); });
}

}  // namespace

void register_loss_cross_entropy(KernelTable& table) {
  table.add<cross_entropy_forward>("cross_entropy_forward");
  table.add<cross_entropy_backward>("cross_entropy_backward");
}

}  // namespace candelabra::cuda
