// native_batch_norm and its gradient: statistics of each channel, over all other dimensions.
//
// Operands are channels-last or row-major, like the output; others are copied into the output's
// memory format.
#include <cstdint>
#include <vector>

#include "candelabra/arguments/normalization.hpp"
#include "drivers/normalize.cuh"
#include "drivers/reduce.cuh"

namespace candelabra::cuda {
namespace {

using normalize::block_sum;
using normalize::Contiguous;
using normalize::Pair;

constexpr int threads = normalize::threads;

// A view of a tensor (N, C, ...) in the memory format of the output: itself, or with the channels
// moved last.
class Ordered {
 public:
  Ordered(const cb_tensor& tensor, bool channels_last) : tensor_(tensor) {
    for (int d = 0; d < tensor.ndim; ++d) add(tensor, d == 0 || !channels_last ? d : d + 1 < tensor.ndim ? d + 1 : 1);
    tensor_.sizes = sizes_.data();
    tensor_.strides = strides_.data();
  }
  Ordered(const Ordered&) = delete;
  Ordered& operator=(const Ordered&) = delete;
  const cb_tensor& tensor() const { return tensor_; }

 private:
  void add(const cb_tensor& tensor, int d) {
    sizes_.push_back(tensor.sizes[d]);
    strides_.push_back(tensor.strides[d]);
  }
  cb_tensor tensor_;
  std::vector<int64_t> sizes_, strides_;
};

// The sizes of the output. In memory, runs of `inner` elements belong to one channel; channels take
// turns.
struct Shape {
  int64_t batch, channels, plane, inner, numel;
  bool channels_last;

  explicit Shape(const cb_tensor& out) : batch(out.sizes[0]), channels(out.sizes[1]), plane(1), numel(out.numel) {
    for (int d = 2; d < out.ndim; ++d) plane *= out.sizes[d];
    channels_last = !is_contiguous(out) || plane == 1;
    inner = channels_last ? 1 : plane;
  }
  double count() const { return static_cast<double>(batch * plane); }
};

// Calls f(element, channel) for the elements of a thread; divides in 32 bits where the sizes allow
// it.
template <typename F>
__device__ void for_elements(int64_t numel, int64_t inner, int64_t channels, F&& f) {
  if (numel <= INT32_MAX) {
    for (auto i = static_cast<uint32_t>(first_index()); i < static_cast<uint32_t>(numel);
         i += static_cast<uint32_t>(index_step()))
      f(static_cast<int64_t>(i),
        static_cast<int64_t>(i / static_cast<uint32_t>(inner) % static_cast<uint32_t>(channels)));
  } else {
    for (int64_t i = first_index(); i < numel; i += index_step()) f(i, i / inner % channels);
  }
}

// ---- statistics

// Values of float32 and narrower types: sums of values and of squares in float64, whose rounding
// error is negligible. Values of float64: the formulas of Welford (1962) and of Chan, Golub and
// LeVeque (1983).
template <typename T>
struct Moments {
  using Element = T;
  using V = compute_t<T>;
  struct Acc {
    double count, mean, squares;  // narrow types: mean is the sum, squares the sum of squares
  };
  using Results = Types<double, double>;  // mean, sum of squared deviations
  static constexpr bool ordered = false;
  static constexpr bool wide = std::is_same_v<T, double>;

  __device__ Acc identity() const { return {0, 0, 0}; }
  __device__ void take(Acc& acc, V value, int64_t) const {
    const auto x = static_cast<double>(value);
    if constexpr (wide) {
      acc.count += 1;
      const double before = x - acc.mean;
      acc.mean += before / acc.count;
      acc.squares += before * (x - acc.mean);
    } else {
      acc.mean += x;
      acc.squares += x * x;
    }
  }
  __device__ Acc merge(const Acc& a, const Acc& b) const {
    if constexpr (wide) {
      const double count = a.count + b.count;
      if (count == 0) return a;
      const double distance = b.mean - a.mean;
      return {count, a.mean + distance * (b.count / count),
              a.squares + b.squares + distance * distance * (a.count * (b.count / count))};
    } else {
      return {0, a.mean + b.mean, a.squares + b.squares};
    }
  }
  __device__ void finish(const Acc& acc, int64_t length, double* mean, double* squares) const {
    if constexpr (wide) {
      *mean = acc.mean;
      *squares = acc.squares;
    } else {
      const double center = acc.mean / static_cast<double>(length), rest = acc.squares - acc.mean * center;
      *mean = center;
      *squares = rest < 0 ? 0 : rest;
    }
  }
};

// The output of reduce(): a tensor with the dimensions of the input and one element for each
// channel.
class PerChannel {
 public:
  PerChannel(const cb_tensor& input, double* memory)
      : tensor_(input), sizes_(static_cast<size_t>(input.ndim), 1), strides_(sizes_.size(), 0) {
    sizes_[1] = input.sizes[1];
    strides_[1] = 1;
    tensor_.data = memory;
    tensor_.dtype = CB_FLOAT64;
    tensor_.numel = input.sizes[1];
    tensor_.sizes = sizes_.data();
    tensor_.strides = strides_.data();
  }
  PerChannel(const PerChannel&) = delete;
  PerChannel& operator=(const PerChannel&) = delete;
  const cb_tensor& tensor() const { return tensor_; }

 private:
  cb_tensor tensor_;
  std::vector<int64_t> sizes_, strides_;
};

template <typename R>
struct Running {
  memory_t<R>* data;  // null: not given
  int64_t stride;
};
template <typename R>
Running<R> running(const cb_tensor* tensor) {
  return {tensor ? static_cast<memory_t<R>*>(tensor->data) : nullptr, tensor ? tensor->strides[0] : 0};
}

template <typename V>
struct Affine {
  V center, factor, shift;
};

// Computes the affine transform of each channel from the batch statistics, or from the running
// statistics where `squares` is null; updates the running statistics.
template <typename T, typename R>
__global__ void __launch_bounds__(threads)
    finish_statistics(const double* batch_mean, const double* squares, double count, Running<R> running_mean,
                      Running<R> running_var, double momentum, double eps, const memory_t<T>* weight,
                      const memory_t<T>* bias, int64_t channels, compute_t<T>* mean, compute_t<T>* rstd,
                      Affine<compute_t<T>>* affine) {
  using V = compute_t<T>;
  using Wide = compute_t<R>;
  const int64_t c = first_index();
  if (c >= channels) return;
  double center, variance;
  if (squares) {
    center = batch_mean[c];
    variance = squares[c] / count;
    if (running_mean.data) {
      auto& to = running_mean.data[c * running_mean.stride];
      to = stored<R>(static_cast<Wide>((1 - momentum) * static_cast<double>(loaded<R>(to)) + momentum * center));
    }
    if (running_var.data) {
      auto& to = running_var.data[c * running_var.stride];
      to = stored<R>(
          static_cast<Wide>((1 - momentum) * static_cast<double>(loaded<R>(to)) + momentum * squares[c] / (count - 1)));
    }
  } else {
    center = static_cast<double>(loaded<R>(running_mean.data[c * running_mean.stride]));
    variance = static_cast<double>(loaded<R>(running_var.data[c * running_var.stride]));
  }
  const double inverse = 1 / ::sqrt(variance + eps);
  mean[c] = static_cast<V>(center);
  rstd[c] = static_cast<V>(inverse);
  affine[c] = {static_cast<V>(center),
               static_cast<V>(inverse * (weight ? static_cast<double>(loaded<T>(weight[c])) : 1.0)),
               bias ? loaded<T>(bias[c]) : V(0)};
}

template <typename T>
__global__ void __launch_bounds__(threads)
    normalize_elements(const memory_t<T>* in, memory_t<T>* out, const Affine<compute_t<T>>* affine, int64_t numel,
                       int64_t inner, int64_t channels) {
  for_elements(numel, inner, channels, [&](int64_t i, int64_t c) {
    const Affine<compute_t<T>> by = affine[c];
    out[i] = stored<T>((loaded<T>(in[i]) - by.center) * by.factor + by.shift);
  });
}

template <typename T>
void forward(const Call& call) {
  using V = compute_t<T>;
  const arguments::NativeBatchNorm args(call);
  const cb_tensor &input = *args.input, &out = call.output(0);
  const cb_tensor *running_mean = args.running_mean, *running_var = args.running_var;
  const bool training = args.training;
  const Shape shape(out);
  if (shape.channels == 0) return;
  const auto channels = static_cast<size_t>(shape.channels);
  const Workspace statistics(call, 2 * channels * sizeof(double)), affine(call, channels * sizeof(Affine<V>));
  auto* means = statistics.as<double>();
  double* squares = training ? means + channels : nullptr;
  if (training) {
    const PerChannel to_mean(input, means), to_squares(input, squares);
    reduce(call, Moments<T>{}, input, std::array<const cb_tensor*, 2>{&to_mean.tensor(), &to_squares.tensor()});
  }
  const Contiguous weight(call, args.weight), bias(call, args.bias);
  const auto run_statistics = [&]<typename R>() {
    launch(call, finish_statistics<T, R>, static_cast<unsigned>(divide_up(shape.channels, threads)), threads, 0, means,
           squares, shape.count(), running<R>(running_mean), running<R>(running_var), args.momentum, args.eps,
           weight.as<T>(), bias.as<T>(), shape.channels, static_cast<V*>(call.output(1).data),
           static_cast<V*>(call.output(2).data), affine.as<Affine<V>>());
  };
  const cb_tensor* some = running_mean ? running_mean : running_var;
  // Running statistics of half precision input may be float32.
  if (!some || some->dtype == input.dtype)
    run_statistics.template operator()<T>();
  else
    run_statistics.template operator()<V>();
  if (shape.numel == 0) return;
  const Ordered ordered(input, shape.channels_last);
  const Contiguous x(call, &ordered.tensor());
  launch(call, normalize_elements<T>, grid_for(call, shape.numel, threads), threads, 0, x.as<T>(),
         static_cast<memory_t<T>*>(out.data), affine.as<Affine<V>>(), shape.numel, shape.inner, shape.channels);
}

// ---- the gradient

// One block sums grad xhat and grad over one channel of one sample.
template <typename T>
__global__ void __launch_bounds__(threads)
    sums_of_planes(const memory_t<T>* grad, const memory_t<T>* input, const compute_t<T>* mean,
                   const compute_t<T>* rstd, int64_t plane, int64_t channels, Pair<compute_t<T>>* sums) {
  using V = compute_t<T>;
  const int64_t at = blockIdx.x, channel = at % channels;
  const memory_t<T>*x = input + at * plane, *dy = grad + at * plane;
  const V center = mean[channel], scale = rstd[channel];
  Pair<V> sum{V(0), V(0)};
  for (int64_t i = threadIdx.x; i < plane; i += blockDim.x) {
    const V gradient = loaded<T>(dy[i]);
    sum.first += gradient * ((loaded<T>(x[i]) - center) * scale);
    sum.second += gradient;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) sums[at] = sum;
}

// grad_input = factor (grad - shift - (x - center) slope)
template <typename V>
struct Coefficients {
  V center, factor, shift, slope;
};

template <typename T>
__global__ void __launch_bounds__(threads)
    finish_gradient(const Pair<compute_t<T>>* partial, int64_t chunks, double count, bool training,
                    const memory_t<T>* weight, const compute_t<T>* mean, const compute_t<T>* rstd, int64_t channels,
                    memory_t<T>* grad_weight, memory_t<T>* grad_bias, Coefficients<compute_t<T>>* coefficients) {
  using V = compute_t<T>;
  const int64_t c = first_index();
  if (c >= channels) return;
  double products = 0, grads = 0;
  for (int64_t k = 0; k < chunks; ++k) {
    products += static_cast<double>(partial[k * channels + c].first);
    grads += static_cast<double>(partial[k * channels + c].second);
  }
  if (grad_weight) grad_weight[c] = stored<T>(static_cast<V>(products));
  if (grad_bias) grad_bias[c] = stored<T>(static_cast<V>(grads));
  const V scale = rstd[c];
  // The running statistics do not depend on the input.
  coefficients[c] = {mean[c], scale * (weight ? loaded<T>(weight[c]) : V(1)),
                     training ? static_cast<V>(grads / count) : V(0),
                     training ? static_cast<V>(products / count) * scale : V(0)};
}

template <typename T>
__global__ void __launch_bounds__(threads)
    differentiate_elements(const memory_t<T>* grad, const memory_t<T>* input, memory_t<T>* out,
                           const Coefficients<compute_t<T>>* coefficients, int64_t numel, int64_t inner,
                           int64_t channels) {
  for_elements(numel, inner, channels, [&](int64_t i, int64_t c) {
    const Coefficients<compute_t<T>> by = coefficients[c];
    out[i] = stored<T>(by.factor * ((loaded<T>(grad[i]) - by.shift) - (loaded<T>(input[i]) - by.center) * by.slope));
  });
}

template <typename T>
void backward(const Call& call) {
  using V = compute_t<T>;
  const arguments::NativeBatchNormBackward args(call);
  const cb_tensor &out = call.output(0), &grad_weight = call.output(1), &grad_bias = call.output(2);
  const Shape shape(out);
  if (shape.channels == 0) return;
  const Ordered ordered_grad(*args.grad, shape.channels_last), ordered_input(*args.input, shape.channels_last);
  const Contiguous dy(call, &ordered_grad.tensor()), x(call, &ordered_input.tensor()), weight(call, args.weight),
      m(call, args.mean), s(call, args.rstd);
  const auto* mean = reinterpret_cast<const V*>(m.as<V>());
  const auto* rstd = reinterpret_cast<const V*>(s.as<V>());
  const int64_t rows = shape.batch * shape.plane;
  const int64_t chunk = normalize::rows_of_chunk(rows),
                chunks = shape.channels_last ? divide_up(rows, chunk) : shape.batch;
  const Workspace partial(call, static_cast<size_t>(chunks * shape.channels) * sizeof(Pair<V>));
  const Workspace coefficients(call, static_cast<size_t>(shape.channels) * sizeof(Coefficients<V>));
  auto* sums = partial.as<Pair<V>>();
  if (shape.numel == 0) {
    if (chunks) fill_bytes(call, sums, 0, partial.bytes());
  } else if (shape.channels_last) {
    const dim3 blocks(static_cast<unsigned>(divide_up(shape.channels, normalize::tile_columns)),
                      static_cast<unsigned>(chunks));
    launch(call, normalize::column_sums<T, true>, blocks, dim3(normalize::tile_columns, normalize::tile_rows), 0,
           dy.as<T>(), x.as<T>(), mean, rstd, rows, shape.channels, chunk, sums);
  } else {
    const int64_t planes = shape.batch * shape.channels;
    if (planes > INT32_MAX)
      throw failure(CB_RUNTIME_ERROR, "native_batch_norm_backward: more than 2^31 planes are not possible on CUDA");
    launch(call, sums_of_planes<T>, static_cast<unsigned>(planes), threads, 0, dy.as<T>(), x.as<T>(), mean, rstd,
           shape.plane, shape.channels, sums);
  }
  launch(call, finish_gradient<T>, static_cast<unsigned>(divide_up(shape.channels, threads)), threads, 0, sums, chunks,
         shape.count(), args.training, weight.as<T>(), mean, rstd, shape.channels,
         grad_weight.numel ? static_cast<memory_t<T>*>(grad_weight.data) : nullptr,
         grad_bias.numel ? static_cast<memory_t<T>*>(grad_bias.data) : nullptr, coefficients.as<Coefficients<V>>());
  if (shape.numel == 0) return;
  launch(call, differentiate_elements<T>, grid_for(call, shape.numel, threads), threads, 0, dy.as<T>(), x.as<T>(),
         static_cast<memory_t<T>*>(out.data), coefficients.as<Coefficients<V>>(), shape.numel, shape.inner,
         shape.channels);
}

void batch_norm(Call& call) {
  dispatch<FloatTypes>(arguments::NativeBatchNorm(call).input->dtype, [&]<typename T>() { forward<T>(call); });
}
void batch_norm_backward(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() { backward<T>(call); });
}

}  // namespace

void register_normalization_batch(KernelTable& table) {
  table.add<batch_norm>("native_batch_norm");
  table.add<batch_norm_backward>("native_batch_norm_backward");
}

}  // namespace candelabra::cuda
