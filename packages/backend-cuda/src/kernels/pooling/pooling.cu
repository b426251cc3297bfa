// Pooling: the maximum or the mean of windows, and the gradients. One thread gathers one element of
// the result.
#include <algorithm>
#include <limits>

#include "candelabra/arguments/pooling.hpp"
#include "drivers/move.hpp"
#include "drivers/scatter_add.hpp"

namespace candelabra::cuda {
namespace {

constexpr int threads = 256;

struct Window {
  int64_t first, count, padded;  // padded: the count including padding
};

// One spatial dimension. A kernel of 0 means adaptive pooling.
struct Axis {
  int64_t inputs = 1, outputs = 1, kernel = 1, stride = 1, padding = 0, dilation = 1;

  __device__ Window window(int64_t o) const {
    if (kernel == 0) {
      const int64_t first = o * inputs / outputs, count = ((o + 1) * inputs + outputs - 1) / outputs - first;
      return {first, count, count};
    }
    const int64_t start = o * stride - padding, skipped = start < 0 ? (-start + dilation - 1) / dilation : 0;
    const int64_t first = start + skipped * dilation,
                  reached = first >= inputs ? 0 : (inputs - 1 - first) / dilation + 1;
    // With ceil_mode a window may extend beyond the padding; that part is not counted.
    return {first, max(int64_t{0}, min(kernel - skipped, reached)), min(start + kernel, inputs + padding) - start};
  }
  // The windows [first, end) that contain an input element; requires dilation 1.
  __device__ void windows_of(int64_t i, int64_t& first, int64_t& end) const {
    if (kernel == 0) {
      first = i * outputs / inputs;
      end = ((i + 1) * outputs + inputs - 1) / inputs;
      return;
    }
    const int64_t padded = i + padding;
    first = padded < kernel ? 0 : (padded - kernel) / stride + 1;
    end = min(outputs, padded / stride + 1);
  }
};

// (N, C, D, H, W); missing spatial dimensions come first, with size 1.
struct Layout {
  int64_t sizes[5], strides[5];

  explicit Layout(const cb_tensor& t) {
    const int missing = 5 - t.ndim;
    for (int d = 0; d < 5; ++d) {
      const int own = d < 2 ? d : d - missing;
      const bool there = d < 2 || own >= 2;
      sizes[d] = there ? t.sizes[own] : 1;
      strides[d] = there ? t.strides[own] : 0;
    }
  }
  __device__ void unravel(int64_t number, int64_t (&at)[5]) const {
    for (int d = 4; d > 0; --d) {
      const int64_t rest = number / sizes[d];
      at[d] = number - rest * sizes[d];
      number = rest;
    }
    at[0] = number;
  }
  __device__ int64_t offset(const int64_t (&at)[5]) const {
    int64_t sum = 0;
    for (int d = 0; d < 5; ++d) sum += at[d] * strides[d];
    return sum;
  }
  __device__ int64_t plane(const int64_t (&at)[5]) const { return at[0] * strides[0] + at[1] * strides[1]; }
};

struct Pooling {
  Layout in, out, indices;  // out and indices have one element for each window of `in`
  Axis axes[3];
  int64_t numel;
  bool count_padding = false;
  int64_t divisor = 0;  // 0: the size of the window

  Pooling(const cb_tensor& input, const cb_tensor& output, const cb_tensor& index_tensor)
      : in(input), out(output), indices(index_tensor), numel(output.numel) {
    for (int d = 0; d < 3; ++d) axes[d].inputs = in.sizes[d + 2], axes[d].outputs = out.sizes[d + 2];
  }
  void set_regular(std::span<const int64_t> kernel, std::span<const int64_t> stride, std::span<const int64_t> padding,
                   std::span<const int64_t> dilation) {
    const size_t missing = 3 - kernel.size();
    for (size_t i = 0; i < kernel.size(); ++i) {
      Axis& axis = axes[missing + i];
      axis.kernel = kernel[i];
      axis.stride = stride[i];
      axis.padding = padding[i];
      axis.dilation = dilation.empty() ? 1 : dilation[i];
    }
  }
  void set_adaptive() {
    for (Axis& axis : axes) axis.kernel = 0;
  }
  void set_divisor(bool count_include_pad, std::optional<int64_t> divisor_override) {
    count_padding = count_include_pad;
    divisor = divisor_override.value_or(0);
  }
  __device__ int64_t divisor_of(const Window& d, const Window& h, const Window& w) const {
    if (divisor) return divisor;
    return count_padding ? d.padded * h.padded * w.padded : d.count * h.count * w.count;
  }
};

template <typename C>
constexpr C lowest() {
  return std::numeric_limits<C>::has_infinity ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::lowest();
}

// Finds the first of the largest elements. NaN is larger than all numbers; of several NaNs the last
// counts.
template <typename T>
__global__ void __launch_bounds__(threads) max_kernel(memory_t<T>* out, int64_t* indices, const memory_t<T>* in,
                                                      compute_t<T> identity, const __grid_constant__ Pooling p) {
  for (int64_t i = first_index(); i < p.numel; i += index_step()) {
    int64_t at[5];
    p.out.unravel(i, at);
    const Window wd = p.axes[0].window(at[2]), wh = p.axes[1].window(at[3]), ww = p.axes[2].window(at[4]);
    const memory_t<T>* plane = in + p.in.plane(at);
    compute_t<T> best = identity;
    int64_t index =
        wd.count && wh.count && ww.count ? (wd.first * p.axes[1].inputs + wh.first) * p.axes[2].inputs + ww.first : -1;
    for (int64_t d = 0; d < wd.count; ++d)
      for (int64_t h = 0; h < wh.count; ++h)
        for (int64_t w = 0; w < ww.count; ++w) {
          const int64_t z = wd.first + d * p.axes[0].dilation, y = wh.first + h * p.axes[1].dilation;
          const int64_t x = ww.first + w * p.axes[2].dilation;
          const compute_t<T> value = loaded<T>(plane[z * p.in.strides[2] + y * p.in.strides[3] + x * p.in.strides[4]]);
          if (value > best || value != value) best = value, index = (z * p.axes[1].inputs + y) * p.axes[2].inputs + x;
        }
    out[p.out.offset(at)] = stored<T>(best);
    if (indices) indices[p.indices.offset(at)] = index;
  }
}

template <typename List>
void run_max(Call& call, const cb_tensor& self, const Pooling& p, int64_t* indices) {
  if (p.numel == 0) return;
  dispatch<List>(call.output().dtype, [&]<typename T>() {
    launch(call, max_kernel<T>, grid_for(call, p.numel, threads), threads, 0, data<memory_t<T>>(call.output()), indices,
           data<memory_t<T>>(self), lowest<compute_t<T>>(), p);
  });
}

void max_pool(Call& call) {
  const arguments::MaxPool args(call);
  Pooling p(*args.self, call.output(), call.output(1));
  p.set_regular(args.kernel_size, args.stride, args.padding, args.dilation);
  run_max<RealTypes>(call, *args.self, p, data<int64_t>(call.output(1)));
}

void max_pool_values(Call& call) {
  const arguments::MaxPoolValues args(call);
  Pooling p(*args.self, call.output(), call.output());
  p.set_regular(args.kernel_size, args.stride, args.padding, args.dilation);
  run_max<RealTypes>(call, *args.self, p, nullptr);
}

void adaptive_max_pool(Call& call) {
  const arguments::AdaptiveMaxPool args(call);
  Pooling p(*args.self, call.output(), call.output(1));
  p.set_adaptive();
  run_max<FloatTypes>(call, *args.self, p, data<int64_t>(call.output(1)));
}

// Windows share elements, so that the gradient is a scatter-add in the order of the windows. A
// window that lies in the padding has index -1.
__global__ void __launch_bounds__(threads)
    pairs_kernel(uint64_t* keys, int64_t* to, int64_t* from, const int64_t* indices, int64_t begin, int64_t count,
                 int64_t elements, FaultSink sink, const __grid_constant__ Pooling p) {
  const int64_t inputs = p.in.sizes[2] * p.in.sizes[3] * p.in.sizes[4];
  for (int64_t j = first_index(); j < count; j += index_step()) {
    int64_t at[5];
    p.out.unravel(begin + j, at);
    const int64_t index = indices[p.indices.offset(at)];
    from[j] = p.out.offset(at);
    const int64_t kept = index == -1 ? 0 : sink.checked(index, 0, inputs, false, FaultKind::RuntimeIndex);
    keys[j] = static_cast<uint64_t>(kept == index ? (at[0] * p.in.sizes[1] + at[1]) * inputs + kept : elements);
    const int64_t row = kept / p.in.sizes[4], x = kept - row * p.in.sizes[4], z = row / p.in.sizes[3];
    to[j] = p.in.plane(at) + z * p.in.strides[2] + (row - z * p.in.sizes[3]) * p.in.strides[3] + x * p.in.strides[4];
  }
}

void max_pool_backward(Call& call) {
  const arguments::MaxPoolBackward args(call);
  const cb_tensor &grad = *args.grad, &indices = *args.indices, &out = call.output();
  if (out.numel == 0) return;
  clear(call, out);
  const Pooling p(out, grad, indices);
  Geometry<2> element{};
  element.numel = element.sizes[0] = element.strides[0][0] = element.strides[1][0] = 1;
  constexpr int64_t batch = int64_t{1} << 30;
  for (int64_t begin = 0; begin < grad.numel; begin += batch) {
    const int64_t count = std::min(batch, grad.numel - begin);
    const DeterministicScatterAdd scatter_add(call, count, out.numel);
    launch(call, pairs_kernel, grid_for(call, count, threads), threads, 0, scatter_add.keys(), scatter_add.to(),
           scatter_add.from(), data<int64_t>(indices), begin, count, out.numel, fault_sink(call), p);
    scatter_add.run(out, grad.data, element, no_factor());
  }
}

template <typename T>
__global__ void __launch_bounds__(threads)
    mean_kernel(memory_t<T>* out, const memory_t<T>* in, const __grid_constant__ Pooling p) {
  for (int64_t i = first_index(); i < p.numel; i += index_step()) {
    int64_t at[5];
    p.out.unravel(i, at);
    const Window wd = p.axes[0].window(at[2]), wh = p.axes[1].window(at[3]), ww = p.axes[2].window(at[4]);
    const memory_t<T>* plane = in + p.in.plane(at);
    compute_t<T> sum(0);
    for (int64_t z = wd.first; z < wd.first + wd.count; ++z)
      for (int64_t y = wh.first; y < wh.first + wh.count; ++y)
        for (int64_t x = ww.first; x < ww.first + ww.count; ++x)
          sum += loaded<T>(plane[z * p.in.strides[2] + y * p.in.strides[3] + x * p.in.strides[4]]);
    const int64_t by = p.divisor_of(wd, wh, ww);
    const bool empty = std::is_integral_v<T> && by == 0;
    out[p.out.offset(at)] = stored<T>(empty ? compute_t<T>(0) : sum / static_cast<compute_t<T>>(by));
  }
}

// p.out describes `grad`, which has one element for each window.
template <typename T>
__global__ void __launch_bounds__(threads)
    mean_backward_kernel(memory_t<T>* to, const memory_t<T>* grad, int64_t numel, const __grid_constant__ Pooling p) {
  for (int64_t i = first_index(); i < numel; i += index_step()) {
    int64_t at[5], first[3], end[3];
    p.in.unravel(i, at);
    for (int d = 0; d < 3; ++d) p.axes[d].windows_of(at[d + 2], first[d], end[d]);
    const memory_t<T>* plane = grad + p.out.plane(at);
    compute_t<T> sum(0);
    for (int64_t z = first[0]; z < end[0]; ++z)
      for (int64_t y = first[1]; y < end[1]; ++y)
        for (int64_t x = first[2]; x < end[2]; ++x) {
          const int64_t by = p.divisor_of(p.axes[0].window(z), p.axes[1].window(y), p.axes[2].window(x));
          const compute_t<T> part =
              loaded<T>(plane[z * p.out.strides[2] + y * p.out.strides[3] + x * p.out.strides[4]]);
          sum += part / static_cast<compute_t<T>>(by);
        }
    to[p.in.offset(at)] = stored<T>(sum);
  }
}

using AverageTypes = decltype(FloatTypes{} + Types<int64_t>{});

template <typename List>
void run_mean(Call& call, const cb_tensor& self, const Pooling& p) {
  if (p.numel == 0) return;
  dispatch<List>(call.output().dtype, [&]<typename T>() {
    launch(call, mean_kernel<T>, grid_for(call, p.numel, threads), threads, 0, data<memory_t<T>>(call.output()),
           data<memory_t<T>>(self), p);
  });
}
template <typename List>
void run_mean_backward(Call& call, const cb_tensor& grad, const Pooling& p) {
  const int64_t numel = call.output().numel;
  if (numel == 0) return;
  dispatch<List>(call.output().dtype, [&]<typename T>() {
    launch(call, mean_backward_kernel<T>, grid_for(call, numel, threads), threads, 0, data<memory_t<T>>(call.output()),
           data<memory_t<T>>(grad), numel, p);
  });
}

void avg_pool(Call& call) {
  const arguments::AvgPool args(call);
  Pooling p(*args.self, call.output(), call.output());
  p.set_divisor(args.count_include_pad, args.divisor_override);
  p.set_regular(args.kernel_size, args.stride, args.padding, {});
  run_mean<AverageTypes>(call, *args.self, p);
}

void avg_pool_backward(Call& call) {
  const arguments::AvgPoolBackward args(call);
  Pooling p(call.output(), *args.grad, *args.grad);
  p.set_divisor(args.count_include_pad, args.divisor_override);
  p.set_regular(args.kernel_size, args.stride, args.padding, {});
  run_mean_backward<AverageTypes>(call, *args.grad, p);
}

void adaptive_avg_pool(Call& call) {
  const arguments::AdaptiveAvgPool args(call);
  Pooling p(*args.self, call.output(), call.output());
  p.set_adaptive();
  run_mean<FloatTypes>(call, *args.self, p);
}

void adaptive_avg_pool_backward(Call& call) {
  const arguments::AdaptiveAvgPoolBackward args(call);
  Pooling p(call.output(), *args.grad, *args.grad);
  p.set_adaptive();
  run_mean_backward<FloatTypes>(call, *args.grad, p);
}

}  // namespace

void register_pooling(KernelTable& table) {
  table.add<max_pool>("max_pool");
  table.add<max_pool_values>("max_pool_values");
  table.add<adaptive_max_pool>("adaptive_max_pool");
  table.add<max_pool_backward>("max_pool_backward");
  table.add<avg_pool>("avg_pool");
  table.add<avg_pool_backward>("avg_pool_backward");
  table.add<adaptive_avg_pool>("adaptive_avg_pool");
  table.add<adaptive_avg_pool_backward>("adaptive_avg_pool_backward");
}

}  // namespace candelabra::cuda
