// Layer, root-mean-square and group normalization with their gradients. Each row of the contiguous
// input has its statistics. The affine parameters are those of each element of a row (layer norm)
// or of each channel (group norm).
#include <cstdint>

#include "candelabra/arguments/normalization.hpp"
#include "candelabra/math.hpp"
#include "drivers/normalize.cuh"

namespace candelabra::cuda {
namespace {

using normalize::block_sum;
using normalize::Contiguous;
using normalize::Pair;

// The index of the affine parameters of element i of a row.
struct AlongRow {
  __device__ int64_t operator()(int64_t, int64_t i) const { return i; }
};
struct OfChannel {
  int64_t groups, width, plane;  // width: channels of a group; plane: elements of a channel
  __device__ int64_t operator()(int64_t row, int64_t i) const { return row % groups * width + i / plane; }
};

// One block computes one row: the mean, the squared deviations, the result. Repeated reads of the
// row hit the L1 cache.
template <typename T, bool Centered, typename Which>
__global__ void __launch_bounds__(1024)
    normalize_rows(const memory_t<T>* input, const memory_t<T>* weight, const memory_t<T>* bias, memory_t<T>* out,
                   compute_t<T>* mean, compute_t<T>* rstd, int64_t n, double eps, const Which which) {
  using V = compute_t<T>;
  const int64_t row = blockIdx.x;
  const memory_t<T>* x = input + row * n;
  memory_t<T>* y = out + row * n;
  V center = 0;
  if constexpr (Centered) {
    Pair<V> sum{V(0), V(0)};
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum.first += loaded<T>(x[i]);
    center = block_sum(sum).first / static_cast<V>(n);
  }
  // The mean deviation corrects the rounding error of the mean.
  Pair<V> sums{V(0), V(0)};
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    const V distance = loaded<T>(x[i]) - center;
    sums.first += distance * distance;
    sums.second += distance;
  }
  sums = block_sum(sums);
  V squares = sums.first;
  if constexpr (Centered) {
    const V shift = sums.second / static_cast<V>(n);
    center += shift;
    const V corrected = squares - shift * sums.second;
    squares = corrected < V(0) ? V(0) : corrected;
  }
  const auto scale = static_cast<V>(1 / ::sqrt(static_cast<double>(squares) / static_cast<double>(n) + eps));
  if (threadIdx.x == 0) {
    if (mean) mean[row] = center;
    rstd[row] = scale;
  }
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    const int64_t at = which(row, i);
    V value = (loaded<T>(x[i]) - center) * scale;
    if (weight) value *= loaded<T>(weight[at]);
    if (bias) value += loaded<T>(bias[at]);
    y[i] = stored<T>(value);
  }
}

// grad_input = rstd (h - mean(h) - xhat mean(h xhat)) with h = grad weight. Without centering
// mean(h) is left out.
template <typename T, bool Centered, typename Which>
__global__ void __launch_bounds__(1024)
    differentiate_rows(const memory_t<T>* grad, const memory_t<T>* input, const memory_t<T>* weight,
                       const compute_t<T>* mean, const compute_t<T>* rstd, memory_t<T>* out, int64_t n,
                       const Which which) {
  using V = compute_t<T>;
  const int64_t row = blockIdx.x;
  const memory_t<T>*x = input + row * n, *dy = grad + row * n;
  const V center = Centered ? mean[row] : V(0), scale = rstd[row];
  const auto at_input = [&](int64_t i) {
    const V gradient = loaded<T>(dy[i]);
    return weight ? gradient * loaded<T>(weight[which(row, i)]) : gradient;
  };
  Pair<V> sums{V(0), V(0)};
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    const V h = at_input(i);
    if constexpr (Centered) sums.first += h;
    sums.second += h * ((loaded<T>(x[i]) - center) * scale);
  }
  sums = block_sum(sums);
  const V shift = sums.first / static_cast<V>(n), slope = sums.second / static_cast<V>(n);
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    const V normalized = (loaded<T>(x[i]) - center) * scale;
    out[row * n + i] = stored<T>(scale * (at_input(i) - shift - normalized * slope));
  }
}

int64_t row_length(std::span<const int64_t> normalized_shape) {
  int64_t n = 1;
  for (int64_t size : normalized_shape) n *= size;
  return n;
}

// Throws if there are more rows than the x dimension of a grid allows.
unsigned blocks_of(int64_t rows) {
  if (rows > INT32_MAX)
    throw failure(CB_RUNTIME_ERROR, "normalization of %lld rows is not possible on CUDA", static_cast<long long>(rows));
  return static_cast<unsigned>(rows);
}

template <typename T, bool Centered, typename Which>
void forward(const Call& call, const cb_tensor& input, const cb_tensor* weight, const cb_tensor* bias, cb_tensor* mean,
             const cb_tensor& rstd, int64_t n, double eps, const Which& which) {
  using V = compute_t<T>;
  if (rstd.numel == 0) return;
  const Contiguous x(call, &input), w(call, weight), b(call, bias);
  launch(call, normalize_rows<T, Centered, Which>, blocks_of(rstd.numel),
         static_cast<unsigned>(normalize::threads_for(n)), 0, x.as<T>(), w.as<T>(), b.as<T>(),
         static_cast<memory_t<T>*>(call.output(0).data), mean ? static_cast<V*>(mean->data) : nullptr,
         static_cast<V*>(rstd.data), n, eps, which);
}

void layer_norm(Call& call) {
  const arguments::NativeLayerNorm args(call);
  const int64_t n = row_length(args.normalized_shape);
  dispatch<FloatTypes>(args.input->dtype, [&]<typename T>() {
    forward<T, true>(call, *args.input, args.weight, args.bias, &call.output(1), call.output(2), n, args.eps,
                     AlongRow{});
  });
}
void rms_norm(Call& call) {
  const arguments::FusedRmsNorm args(call);
  const int64_t n = row_length(args.normalized_shape);
  dispatch<FloatTypes>(args.input->dtype, [&]<typename T>() {
    forward<T, false>(call, *args.input, args.weight, nullptr, nullptr, call.output(1), n, args.eps, AlongRow{});
  });
}

// The gradients of layer and root-mean-square normalization; `mean` is null for the latter.
template <typename T, bool Centered>
void backward_of_rows(const Call& call, const cb_tensor& grad, const cb_tensor& input, const cb_tensor* mean,
                      const cb_tensor& rstd, const cb_tensor* weight, int64_t n, const cb_tensor& grad_weight,
                      const cb_tensor* grad_bias) {
  using V = compute_t<T>;
  const int64_t rows = rstd.numel;
  const Contiguous dy(call, &grad), x(call, &input), m(call, mean), s(call, &rstd), w(call, weight);
  const auto* centers = reinterpret_cast<const V*>(m.as<V>());
  const auto* scales = reinterpret_cast<const V*>(s.as<V>());
  if (rows && n)
    launch(call, differentiate_rows<T, Centered, AlongRow>, blocks_of(rows),
           static_cast<unsigned>(normalize::threads_for(n)), 0, dy.as<T>(), x.as<T>(), w.as<T>(), centers, scales,
           static_cast<memory_t<T>*>(call.output(0).data), n, AlongRow{});
  const bool to_weight = grad_weight.numel != 0, to_bias = grad_bias && grad_bias->numel != 0;
  if (!to_weight && !to_bias) return;
  const int64_t chunk = normalize::rows_of_chunk(rows), chunks = divide_up(rows, chunk);
  const Workspace partial(call, static_cast<size_t>(chunks * n) * sizeof(Pair<V>));
  const dim3 blocks(static_cast<unsigned>(divide_up(n, normalize::tile_columns)), static_cast<unsigned>(chunks));
  launch(call, normalize::column_sums<T, false>, blocks, dim3(normalize::tile_columns, normalize::tile_rows), 0,
         dy.as<T>(), x.as<T>(), Centered ? centers : nullptr, scales, rows, n, chunk, partial.as<Pair<V>>());
  launch(call, normalize::chunk_sums<T>, static_cast<unsigned>(divide_up(n, normalize::threads)), normalize::threads, 0,
         partial.as<Pair<V>>(), chunks, n, to_weight ? static_cast<memory_t<T>*>(grad_weight.data) : nullptr,
         to_bias ? static_cast<memory_t<T>*>(grad_bias->data) : nullptr);
}

void layer_norm_backward(Call& call) {
  const arguments::NativeLayerNormBackward args(call);
  const int64_t n = row_length(args.normalized_shape);
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    backward_of_rows<T, true>(call, *args.grad, *args.input, args.mean, *args.rstd, args.weight, n, call.output(1),
                              &call.output(2));
  });
}
void rms_norm_backward(Call& call) {
  const arguments::FusedRmsNormBackward args(call);
  const int64_t n = row_length(args.normalized_shape);
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    backward_of_rows<T, false>(call, *args.grad, *args.input, nullptr, *args.rstd, args.weight, n, call.output(1),
                               nullptr);
  });
}

// ---- group norm

struct Groups {
  int64_t batch, channels, groups, plane = 1;  // plane: elements of one channel of one sample
  Groups(const cb_tensor& input, int64_t groups) : batch(input.sizes[0]), channels(input.sizes[1]), groups(groups) {
    for (int d = 2; d < input.ndim; ++d) plane *= input.sizes[d];
  }
  int64_t width() const { return channels / groups; }
  int64_t length() const { return width() * plane; }
  OfChannel which() const { return {groups, width(), std::max<int64_t>(1, plane)}; }
};

void group_norm(Call& call) {
  const arguments::NativeGroupNorm args(call);
  const Groups shape(*args.input, args.num_groups);
  dispatch<FloatTypes>(args.input->dtype, [&]<typename T>() {
    forward<T, true>(call, *args.input, args.weight, args.bias, &call.output(1), call.output(2), shape.length(),
                     args.eps, shape.which());
  });
}

// One block sums grad xhat and grad over one channel of one sample.
template <typename T>
__global__ void __launch_bounds__(normalize::threads)
    sums_of_planes(const memory_t<T>* grad, const memory_t<T>* input, const compute_t<T>* mean,
                   const compute_t<T>* rstd, int64_t plane, int64_t width, Pair<compute_t<T>>* sums) {
  using V = compute_t<T>;
  const int64_t at = blockIdx.x, group = at / width;
  const memory_t<T>*x = input + at * plane, *dy = grad + at * plane;
  const V center = mean[group], scale = rstd[group];
  Pair<V> sum{V(0), V(0)};
  for (int64_t i = threadIdx.x; i < plane; i += blockDim.x) {
    const V gradient = loaded<T>(dy[i]);
    sum.first += gradient * ((loaded<T>(x[i]) - center) * scale);
    sum.second += gradient;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) sums[at] = sum;
}

void group_norm_backward(Call& call) {
  const arguments::NativeGroupNormBackward args(call);
  const cb_tensor &grad = *args.grad, &input = *args.input, &mean = *args.mean, &rstd = *args.rstd;
  const cb_tensor &grad_weight = call.output(1), &grad_bias = call.output(2);
  const Groups shape(input, args.num_groups);
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using V = compute_t<T>;
    const Contiguous dy(call, &grad), x(call, &input), m(call, &mean), s(call, &rstd), w(call, args.weight);
    const auto* centers = reinterpret_cast<const V*>(m.as<V>());
    const auto* scales = reinterpret_cast<const V*>(s.as<V>());
    if (input.numel)
      launch(call, differentiate_rows<T, true, OfChannel>, blocks_of(rstd.numel),
             static_cast<unsigned>(normalize::threads_for(shape.length())), 0, dy.as<T>(), x.as<T>(), w.as<T>(),
             centers, scales, static_cast<memory_t<T>*>(call.output(0).data), shape.length(), shape.which());
    if (grad_weight.numel == 0 && grad_bias.numel == 0) return;
    const int64_t planes = shape.batch * shape.channels;
    const Workspace sums(call, static_cast<size_t>(planes) * sizeof(Pair<V>));
    launch(call, sums_of_planes<T>, blocks_of(planes), normalize::threads, 0, dy.as<T>(), x.as<T>(), centers, scales,
           shape.plane, shape.width(), sums.as<Pair<V>>());
    // Each sample is one chunk of partial sums.
    launch(call, normalize::chunk_sums<T>, static_cast<unsigned>(divide_up(shape.channels, normalize::threads)),
           normalize::threads, 0, sums.as<Pair<V>>(), shape.batch, shape.channels,
           grad_weight.numel ? static_cast<memory_t<T>*>(grad_weight.data) : nullptr,
           grad_bias.numel ? static_cast<memory_t<T>*>(grad_bias.data) : nullptr);
  });
}

}  // namespace

void register_normalization(KernelTable& table) {
  table.add<layer_norm>("native_layer_norm");
  table.add<layer_norm_backward>("native_layer_norm_backward");
  table.add<rms_norm>("_fused_rms_norm");
  table.add<rms_norm_backward>("_fused_rms_norm_backward");
  table.add<group_norm>("native_group_norm");
  table.add<group_norm_backward>("native_group_norm_backward");
}

}  // namespace candelabra::cuda
