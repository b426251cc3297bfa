// Group normalization with its gradient: statistics per group of channels of a sample, parameters
// per channel.
//
// In contiguous memory a group is one row. In channels-last memory statistics are computed per
// channel and then combined into groups.
#include "candelabra/arguments/normalization.hpp"
#include "kernels/normalization/normalize_moments.hpp"
#include "simd/channel_registers.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

struct Groups {
  int64_t batch, channels, groups, plane;  // plane: elements of one channel of one sample
  Groups(const cb_tensor& input, int64_t groups)
      : batch(input.sizes[0]), channels(input.sizes[1]), groups(groups), plane(1) {
    for (int d = 2; d < input.ndim; ++d) plane *= input.sizes[d];
  }
  int64_t width() const { return channels / groups; }  // channels of a group
  int64_t length() const { return width() * plane; }   // elements of a group

  // Channels-last sums are made per block of pixels. Blocks do not depend on the number of threads.
  static constexpr int64_t block_pixels = 256;
  int64_t blocks() const { return (plane + block_pixels - 1) / block_pixels; }
};

// Whether the channels of a pixel are contiguous, and the pixels follow one another.
bool is_channels_last(const cb_tensor& tensor) {
  if (tensor.ndim < 3) return false;
  int64_t step = tensor.sizes[1];
  for (int d = tensor.ndim - 1; d >= 2; --d) {
    if (tensor.sizes[d] != 1 && tensor.strides[d] != step) return false;
    step *= tensor.sizes[d];
  }
  return (tensor.sizes[1] == 1 || tensor.strides[1] == 1) && (tensor.sizes[0] == 1 || tensor.strides[0] == step);
}

// Adds the moments of each channel over `count` pixels. Deviations are taken from the mean of the
// first few pixels, so that a large mean costs no accuracy. `workspace` holds three values per
// channel.
template <typename T>
void add_pixels(Moments* moments, const T* pixels, int64_t channels, int64_t count, compute_t<T>* workspace) {
  using V = compute_t<T>;
  using R = math::Vec<V>;
  V *estimates = workspace, *sums = estimates + channels, *squares = sums + channels;
  std::fill_n(workspace, 3 * channels, V(0));
  const int64_t few = std::min<int64_t>(count, 16);
  const R share = V(1) / static_cast<V>(few);
  // Pixels are read again for each register of channels: this many stay in the L1 cache.
  constexpr int64_t cached_bytes = 16384;
  const int64_t cached = std::max<int64_t>(8, cached_bytes / (channels * static_cast<int64_t>(sizeof(T))));
  const auto over = [&](int64_t begin, int64_t end, auto&& accumulate) {
    for_channel_registers<V>(channels, [&]<int K>(int64_t c, int64_t n) {
      R estimate[K], sum[K], square[K];
      for (int k = 0; k < K; ++k) {
        const int64_t at = c + k * R::size;
        estimate[k] = load_some(estimates + at, n), sum[k] = load_some(sums + at, n),
        square[k] = load_some(squares + at, n);
      }
      for (int64_t p = begin; p < end; ++p)
        for (int k = 0; k < K; ++k)
          accumulate(load_some(pixels + p * channels + c + k * R::size, n), estimate[k], sum[k], square[k]);
      for (int k = 0; k < K; ++k) {
        const int64_t at = c + k * R::size;
        store_some<V>(estimate[k], estimates + at, n), store_some<V>(sum[k], sums + at, n),
            store_some<V>(square[k], squares + at, n);
      }
    });
  };
  over(0, few, [=](R value, R& estimate, R&, R&) { estimate = fma(value, share, estimate); });
  for (int64_t begin = 0; begin < count; begin += cached)
    over(begin, std::min(begin + cached, count), [](R value, R& estimate, R& sum, R& square) {
      const R distance = value - estimate;
      sum = sum + distance;
      square = fma(distance, distance, square);
    });
  const double total = static_cast<double>(count);
  for (int64_t c = 0; c < channels; ++c) {
    const double shift = static_cast<double>(sums[c]) / total;
    moments[c].add(total, static_cast<double>(estimates[c]) + shift,
                   std::max(static_cast<double>(squares[c]) - total * shift * shift, 0.0));  // NaN stays
  }
}

// For numbers and registers.
constexpr auto normalized = [](auto value, auto center, auto factor, auto shift) {
  return (value - center) * factor + shift;
};

template <typename T>
void group_norm_channels_last(Call& call, const arguments::NativeGroupNorm& args, const Groups& shape) {
  using V = compute_t<T>;
  const T* from = data<T>(*args.input);
  T* to = data<T>(call.output(0));
  cb_tensor &mean = call.output(1), &rstd = call.output(2);
  const double eps = args.eps;
  const int64_t channels = shape.channels, width = shape.width();
  Vector<V> weight(args.weight, channels, V(1)), bias(args.bias, channels, V(0));
  const int64_t blocks = shape.blocks();
  Scratch<Moments> partial(shape.batch * blocks * channels);
  parallel_for(shape.batch * blocks, grain_for(3 * Groups::block_pixels * channels), [&](int64_t begin, int64_t end) {
    Scratch<V> workspace(3 * channels);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t sample = i / blocks, first = i % blocks * Groups::block_pixels;
      Moments* moments = partial.data() + i * channels;
      std::fill_n(moments, channels, Moments{});
      add_pixels(moments, from + (sample * shape.plane + first) * channels, channels,
                 std::min(Groups::block_pixels, shape.plane - first), workspace.data());
    }
  });
  Scratch<V> centers(shape.batch * channels), factors(shape.batch * channels);
  parallel_for(shape.batch * shape.groups, grain_for(16 * blocks * width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t sample = row / shape.groups, first = row % shape.groups * width;
      Moments all;
      for (int64_t p = sample * blocks; p < (sample + 1) * blocks; ++p)
        for (int64_t c = first; c < first + width; ++c) {
          const Moments& some = partial[p * channels + c];
          all.add(some.count, some.mean, some.squares);
        }
      write_moments<T>(all, shape.length(), eps, row, mean, rstd);
      for (int64_t c = first; c < first + width; ++c) {
        centers[sample * channels + c] = data<V>(mean)[row];
        factors[sample * channels + c] = data<V>(rstd)[row] * weight[c];
      }
    }
  });
  parallel_for(shape.batch * shape.plane, grain_for(2 * channels), [&](int64_t begin, int64_t end) {
    for (int64_t pixel = begin; pixel < end;) {
      const int64_t sample = pixel / shape.plane, last = std::min((sample + 1) * shape.plane, end);
      const V *center = centers.data() + sample * channels, *factor = factors.data() + sample * channels,
              *shift = bias.data();
      for (; pixel < last; ++pixel)
        transform_registers(channels, normalized, to + pixel * channels, from + pixel * channels, center, factor,
                            shift);
    }
  });
}

template <typename T>
void group_norm_of(Call& call, const arguments::NativeGroupNorm& args) {
  using V = compute_t<T>;
  const cb_tensor& input = *args.input;
  cb_tensor &out = call.output(0), &mean = call.output(1), &rstd = call.output(2);
  Groups shape(input, args.num_groups);
  double eps = args.eps;
  if (!is_contiguous(input) && is_channels_last(input) && is_channels_last(out))
    return group_norm_channels_last<T>(call, args, shape);
  Vector<V> weight(args.weight, shape.channels, V(1)), bias(args.bias, shape.channels, V(0));
  parallel_for(shape.batch * shape.groups, grain_for(4 * shape.length()), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* x = data<T>(input) + row * shape.length();
      T* y = data<T>(out) + row * shape.length();
      write_moments<T>(moments_of(x, shape.length()), shape.length(), eps, row, mean, rstd);
      V center = data<V>(mean)[row], scale = data<V>(rstd)[row];
      for (int64_t k = 0; k < shape.width(); ++k) {
        int64_t channel = row % shape.groups * shape.width() + k;
        transform_registers(shape.plane, normalized, y + k * shape.plane, x + k * shape.plane, center,
                            scale * weight[channel], bias[channel]);
      }
    }
  });
}

// The sums of a group of one sample, weighted, from those of its channels. `sums` begins with its
// first channel, which is channel `first` of the weight. The FMAs are explicit, so that all callers
// round alike.
template <typename V>
GradientSums sums_of_group(const GradientSums* sums, const Vector<V>& weight, int64_t first, int64_t width) {
  GradientSums group;
  for (int64_t k = 0; k < width; ++k) {
    const double w = static_cast<double>(weight[first + k]);
    group.grad = std::fma(w, sums[k].grad, group.grad);
    group.product = std::fma(w, sums[k].product, group.product);
  }
  return group;
}

// `sums` are per channel of a sample, `scales` (rstd) per group of a sample.
void write_parameter_gradients(Call& call, const Groups& shape, const GradientSums* sums, const double* scales) {
  write_vector(call.output(1), [&](int64_t channel) {
    double total = 0;
    for (int64_t b = 0; b < shape.batch; ++b)
      total += sums[b * shape.channels + channel].product * scales[b * shape.groups + channel / shape.width()];
    return total;
  });
  write_vector(call.output(2), [&](int64_t channel) {
    double total = 0;
    for (int64_t b = 0; b < shape.batch; ++b) total += sums[b * shape.channels + channel].grad;
    return total;
  });
}

// Adds the sums of each channel over `count` pixels. `workspace` holds two values per channel.
template <typename T>
void add_gradients(GradientSums* totals, const T* grads, const T* pixels, const compute_t<T>* centers, int64_t channels,
                   int64_t count, compute_t<T>* workspace) {
  using V = compute_t<T>;
  using R = math::Vec<V>;
  // This many terms are summed in the compute dtype, and those sums in double.
  constexpr int64_t terms_per_sum = 32;
  V *sums = workspace, *products = workspace + channels;
  for (int64_t begin = 0; begin < count; begin += terms_per_sum) {
    const int64_t end = std::min(begin + terms_per_sum, count);
    for_channel_registers<V>(channels, [&]<int K>(int64_t c, int64_t n) {
      R center[K], sum[K], product[K];
      for (int k = 0; k < K; ++k) center[k] = load_some(centers + c + k * R::size, n), sum[k] = product[k] = R(V(0));
      for (int64_t p = begin; p < end; ++p)
        for (int k = 0; k < K; ++k) {
          const int64_t at = p * channels + c + k * R::size;
          const R grad = load_some(grads + at, n);
          sum[k] = sum[k] + grad;
          product[k] = fma(grad, load_some(pixels + at, n) - center[k], product[k]);
        }
      for (int k = 0; k < K; ++k) {
        store_some<V>(sum[k], sums + c + k * R::size, n);
        store_some<V>(product[k], products + c + k * R::size, n);
      }
    });
    for (int64_t c = 0; c < channels; ++c) {
      totals[c].grad += static_cast<double>(sums[c]);
      totals[c].product += static_cast<double>(products[c]);
    }
  }
}

template <typename T>
void group_norm_backward_channels_last(Call& call, const arguments::NativeGroupNormBackward& args,
                                       const Groups& shape) {
  using V = compute_t<T>;
  const T *grad = data<T>(*args.grad), *from = data<T>(*args.input);
  T* to = data<T>(call.output(0));
  const int64_t channels = shape.channels, width = shape.width(), rows = shape.batch * shape.groups;
  Vector<V> weight(args.weight, channels, V(1));
  Vector<double> means(args.mean, rows, 0), scales(args.rstd, rows, 1);
  // Per sample: centers, gradient factors, slopes, shifts.
  Scratch<V> coefficients(4 * shape.batch * channels);
  for (int64_t sample = 0; sample < shape.batch; ++sample)
    for (int64_t c = 0; c < channels; ++c)
      coefficients[4 * sample * channels + c] = static_cast<V>(means[sample * shape.groups + c / width]);

  const int64_t blocks = shape.blocks();
  Scratch<GradientSums> partial(shape.batch * blocks * channels);
  parallel_for(shape.batch * blocks, grain_for(4 * Groups::block_pixels * channels), [&](int64_t begin, int64_t end) {
    Scratch<V> workspace(2 * channels);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t sample = i / blocks, first = i % blocks * Groups::block_pixels,
                    at = (sample * shape.plane + first) * channels;
      GradientSums* sums = partial.data() + i * channels;
      std::fill_n(sums, channels, GradientSums{});
      add_gradients(sums, grad + at, from + at, coefficients.data() + 4 * sample * channels, channels,
                    std::min(Groups::block_pixels, shape.plane - first), workspace.data());
    }
  });
  Scratch<GradientSums> sums(shape.batch * channels);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t sample = row / shape.groups, first = row % shape.groups * width;
    V *center = coefficients.data() + 4 * sample * channels, *factor = center + channels, *slope = factor + channels,
      *shift = slope + channels;
    for (int64_t c = first; c < first + width; ++c) {
      GradientSums& all = sums[sample * channels + c] = {};
      for (int64_t p = sample * blocks; p < (sample + 1) * blocks; ++p) {
        all.grad += partial[p * channels + c].grad;
        all.product += partial[p * channels + c].product;
      }
    }
    const auto [sum, product] = sums_of_group(sums.data() + sample * channels + first, weight, first, width);
    const double scale = scales[row], length = static_cast<double>(shape.length());
    for (int64_t c = first; c < first + width; ++c) {
      factor[c] = static_cast<V>(scale) * weight[c];
      slope[c] = static_cast<V>(product * scale * scale * scale / length);
      shift[c] = static_cast<V>(scale * sum / length);
    }
  }
  parallel_for(shape.batch * shape.plane, grain_for(3 * channels), [&](int64_t begin, int64_t end) {
    for (int64_t pixel = begin; pixel < end; ++pixel) {
      const V *center = coefficients.data() + pixel / shape.plane * 4 * channels, *factor = center + channels,
              *slope = factor + channels, *shift = slope + channels;
      transform_registers(
          channels, [](auto g, auto x, auto m, auto f, auto s, auto b) { return g * f - ((x - m) * s + b); },
          to + pixel * channels, grad + pixel * channels, from + pixel * channels, center, factor, slope, shift);
    }
  });
  write_parameter_gradients(call, shape, sums.data(), scales.data());
}

template <typename T>
void group_norm_backward_of(Call& call, const arguments::NativeGroupNormBackward& args) {
  using V = compute_t<T>;
  const cb_tensor &grad = *args.grad, &input = *args.input, &mean = *args.mean, &rstd = *args.rstd;
  cb_tensor& out = call.output(0);
  Groups shape(input, args.num_groups);
  if (!is_contiguous(input) && is_channels_last(input) && is_channels_last(grad) && is_channels_last(out))
    return group_norm_backward_channels_last<T>(call, args, shape);
  int64_t rows = shape.batch * shape.groups;
  Vector<V> weight(args.weight, shape.channels, V(1));
  Vector<double> centers(&mean, rows, 0), scales(&rstd, rows, 1);
  Scratch<GradientSums> sums(shape.batch * shape.channels);  // per channel of a sample
  parallel_for(rows, grain_for(8 * shape.length()), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T *x = data<T>(input) + row * shape.length(), *dy = data<T>(grad) + row * shape.length();
      T* dx = data<T>(out) + row * shape.length();
      const int64_t first = row % shape.groups * shape.width();  // channel
      const double center = centers[row], scale = scales[row];
      for (int64_t k = 0; k < shape.width(); ++k) {
        GradientSums& here = sums[row * shape.width() + k] = {};
        consume(
            shape.plane, [&](const V* d, const V* v, int64_t, int64_t count) { here.add(d, v, center, count); },
            dy + k * shape.plane, x + k * shape.plane);
      }
      const auto [sum, product] = sums_of_group(sums.data() + row * shape.width(), weight, first, shape.width());
      double length = static_cast<double>(shape.length());
      V m = static_cast<V>(center), s = static_cast<V>(scale), shift = static_cast<V>(sum / length);
      V slope = static_cast<V>(product * scale * scale / length);
      for (int64_t k = 0; k < shape.width(); ++k) {
        V w = weight[first + k];
        transform(
            shape.plane,
            [=](const V* d, const V* v, V* to, int64_t, int64_t count) {
#pragma omp simd
              for (int64_t i = 0; i < count; ++i) to[i] = s * ((d[i] * w - shift) - (v[i] - m) * slope);
            },
            dx + k * shape.plane, dy + k * shape.plane, x + k * shape.plane);
      }
    }
  });
  write_parameter_gradients(call, shape, sums.data(), scales.data());
}

void group_norm(Call& call) {
  const arguments::NativeGroupNorm args(call);
  dispatch<FloatTypes>(args.input->dtype, [&]<typename T>() { group_norm_of<T>(call, args); });
}
void group_norm_backward(Call& call) {
  const arguments::NativeGroupNormBackward args(call);
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() { group_norm_backward_of<T>(call, args); });
}

}  // namespace

void register_normalization_group(KernelTable& table) {
  table.add<group_norm>("native_group_norm", CB_KERNEL_CHANNELS_LAST);
  table.add<group_norm_backward>("native_group_norm_backward", CB_KERNEL_CHANNELS_LAST);
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
