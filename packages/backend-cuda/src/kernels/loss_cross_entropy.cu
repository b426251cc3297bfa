// cross_entropy_forward and cross_entropy_backward: of scores (N, C) and classes (N), without a matrix of logarithms between them.
//
// A row is read once: each thread keeps the largest value it has met and the sum of exp(x - largest), and these are put together
// (Milakov and Gimelshein 2018). What is kept of a row, its largest value and the logarithm of the sum, is all that backward needs.
#include <limits>

#include "candelabra/math.hpp"
#include "normalize.cuh"

namespace candelabra::cuda {
namespace {

using normalize::block_sum;
using normalize::Pair;

enum Reduction : int64_t { None = 0, Mean = 1, Sum = 2 };

constexpr int threads = 256;
// Rows of more classes are a block's, others a warp's.
constexpr int64_t most_of_a_warp = 1024;

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

  // The class of a row; -1 where it is passed over or is not a class, which one thread reports.
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

// Which threads have which rows.
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

  // NaN, and what comes of infinity less infinity, go on in the sum.
  __device__ void take(C x) {
    if (x > largest) {
      sum = sum * math::exp(largest - x) + (x - x + C(1));
      largest = x;
    } else if (x != -std::numeric_limits<C>::infinity()) {
      sum += math::exp(x - largest);
    }
  }
  __device__ void merge(C other, C its_sum) {
    const C most = largest > other ? largest : other;
    // Of nothing but -infinity so far the sum is 0, whatever it is scaled by.
    const C mine = largest == most ? C(1) : math::exp(largest - most);
    const C its = other == most ? C(1) : math::exp(other - most);
    sum = sum * mine + its_sum * its;
    largest = most;
  }
};

// What the threads of a row found; right in the first of them.
template <bool Wide, typename C>
__device__ Exponentials<C> together(Exponentials<C> found) {
#pragma unroll
  for (int by = 16; by > 0; by /= 2) {
    const C other = __shfl_down_sync(0xffffffffu, found.largest, by), sum = __shfl_down_sync(0xffffffffu, found.sum, by);
    found.merge(other, sum);
  }
  if constexpr (Wide) {
    constexpr int warps = threads / 32;
    __shared__ C largest[warps], sums[warps];
    __syncthreads();  // what an earlier row left has been read
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
  memory_t<T>* out;  // one for each row, or null
  int64_t out_stride;
  compute_t<T>* kept;  // largest values, then logarithms
  Pair<double>* partial;
};

// Sums of losses and of weights, one pair a block.
template <typename T, bool Wide>
__global__ void __launch_bounds__(threads) forward_kernel(const __grid_constant__ Forward<T> a) {
  using C = compute_t<T>;
  const Share<Wide> share;
  Pair<double> sums{0, 0};
  for (int64_t row = share.first; row < a.rows.count; row += share.step) {
    const memory_t<T>* x = a.rows.scores + row * a.rows.classes;
    Exponentials<C> found;
    for (int64_t k = share.lane; k < a.rows.classes; k += Share<Wide>::lanes) found.take(loaded<T>(x[k]));
    found = together<Wide>(found);
    if (share.lane != 0) continue;
    const bool any = a.rows.classes > 0;
    const C largest = any ? found.largest : C(0), logarithm = any ? math::log(found.sum) : C(0);
    a.kept[row] = largest;
    a.kept[a.rows.count + row] = logarithm;
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

// One block puts the sums together.
template <typename T>
__global__ void __launch_bounds__(threads)
    total_kernel(const Pair<double>* partial, int64_t count, bool mean, memory_t<T>* out, memory_t<T>* total) {
  Pair<double> sums{0, 0};
  for (int64_t i = threadIdx.x; i < count; i += threads) {
    sums.first += partial[i].first;
    sums.second += partial[i].second;
  }
  sums = block_sum(sums);
  if (threadIdx.x != 0) return;
  if (out) *out = stored<T>(static_cast<compute_t<T>>(mean ? sums.first / sums.second : sums.first));
  *total = stored<T>(static_cast<compute_t<T>>(sums.second));
}

template <typename T>
struct Backward {
  Rows<T> rows;
  memory_t<T>* out;
  const memory_t<T>* grad;
  int64_t grad_stride;       // 0 where there is one for all rows
  const memory_t<T>* total;  // null: the mean is not asked for
  const compute_t<T>* kept;
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
      factor = static_cast<C>(a.rows.weight_of(number) * scale * static_cast<double>(loaded<T>(a.grad[row * a.grad_stride])));
      largest = a.kept[row];
      logarithm = a.kept[a.rows.count + row];
    }
    for (int64_t k = share.lane; k < a.rows.classes; k += Share<Wide>::lanes) {
      C here = 0;
      if (number >= 0) here = factor * (math::exp((loaded<T>(a.rows.scores[start + k]) - largest) - logarithm) - C(k == number));
      a.out[start + k] = stored<T>(here);
    }
  }
}

// Calls what is given with whether rows are wide, and with blocks for them.
template <typename F>
void by_width(const Call& call, const cb_tensor& scores, F&& queue) {
  const int64_t rows = scores.sizes[0];
  if (scores.sizes[1] > most_of_a_warp)
    queue(std::true_type{}, grid_for(call, rows * Share<true>::lanes, threads));
  else
    queue(std::false_type{}, grid_for(call, rows * Share<false>::lanes, threads));
}

template <typename T>
void forward(const Call& call) {
  using Element = memory_t<T>;
  const cb_tensor& scores = call.tensor(0);
  const cb_tensor& out = call.output(0);
  const int64_t reduction = call.integer(4);
  const bool each = reduction == None;
  by_width(call, scores, [&](auto wide, unsigned blocks) {
    const Workspace partial(call, blocks * sizeof(Pair<double>));
    const Forward<T> a{Rows<T>(call, scores, call.tensor(1), call.optional_tensor(2), call.integer(3)),
                       each ? mutable_data<Element>(out) : nullptr, each ? out.strides[0] : 0,
                       mutable_data<compute_t<T>>(call.output(2)), partial.as<Pair<double>>()};
    launch(call, forward_kernel<T, decltype(wide)::value>, blocks, threads, 0, a);
    launch(call, total_kernel<T>, 1, threads, 0, static_cast<const Pair<double>*>(a.partial), static_cast<int64_t>(blocks),
           reduction == Mean, each ? nullptr : mutable_data<Element>(out), mutable_data<Element>(call.output(1)));
  });
}

template <typename T>
void backward(const Call& call) {
  using Element = memory_t<T>;
  const cb_tensor &grad = call.tensor(0), &scores = call.tensor(1);
  const int64_t reduction = call.integer(5);
  if (call.output(0).numel == 0) return;
  by_width(call, scores, [&](auto wide, unsigned blocks) {
    const Backward<T> a{Rows<T>(call, scores, call.tensor(2), call.optional_tensor(3), call.integer(4)),
                        mutable_data<Element>(call.output(0)),
                        data<Element>(grad),
                        reduction == None ? grad.strides[0] : 0,
                        reduction == Mean ? data<Element>(call.tensor(6)) : nullptr,
                        data<compute_t<T>>(call.tensor(7))};
    launch(call, backward_kernel<T, decltype(wide)::value>, blocks, threads, 0, a);
  });
}

void cross_entropy_forward(Call& call) {
  dispatch<FloatTypes>(call.tensor(0).dtype, [&]<typename T>() { forward<T>(call); });
}
void cross_entropy_backward(Call& call) {
  dispatch<FloatTypes>(call.tensor(1).dtype, [&]<typename T>() { backward<T>(call); });
}

}  // namespace

void register_loss_cross_entropy(KernelTable& table) {
  table.add<cross_entropy_forward>("cross_entropy_forward");
  table.add<cross_entropy_backward>("cross_entropy_backward");
}

}  // namespace candelabra::cuda
