// native_batch_norm and its gradient: statistics per channel, over all other dimensions.
//
// The input is (N, C, ...) with any strides. Channels-first memory has runs of one channel,
// channels-last memory runs across all channels. One loop serves both: it iterates over input,
// output and a vector of C elements expanded to their sizes.
#include <cmath>

#include "candelabra/arguments/normalization.hpp"
#include "kernels/normalization/normalize.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using reduce::Moments;

// A vector with one element per channel: expanded to the sizes of the input, or of size 1 in all
// other dimensions.
struct Channels {
  int64_t sizes[max_dims];
  int64_t strides[max_dims] = {};
  cb_tensor tensor;

  explicit Channels(const cb_tensor& input, bool expanded) : tensor(input) {
    for (int d = 0; d < input.ndim; ++d) sizes[d] = expanded || d == 1 ? input.sizes[d] : 1;
    strides[1] = 1;
    tensor.sizes = sizes;
    tensor.strides = strides;
    tensor.data = nullptr;
    if (!expanded) tensor.numel = input.sizes[1];
  }
  Channels(const Channels&) = delete;
};

void store_moments(const Moments* results, int64_t count, int64_t, char* to, int64_t stride, const void*) {
  for (int64_t i = 0; i < count; ++i) reinterpret_cast<Moments*>(to)[i * stride] = results[i];
}

template <typename T>
void forward(Call& call, const arguments::NativeBatchNorm& args) {
  using V = compute_t<T>;
  const cb_tensor& input = *args.input;
  const cb_tensor *running_mean = args.running_mean, *running_var = args.running_var;
  cb_tensor &out = call.output(0), &mean_out = call.output(1), &rstd_out = call.output(2);
  bool training = args.training;
  double momentum = args.momentum, eps = args.eps;
  int64_t channels = input.sizes[1];
  Scratch<double> means(channels), variances(channels);

  if (training) {
    Scratch<Moments> moments(channels);
    Channels results(input, false);
    results.tensor.data = moments.data();
    reduce::run<reduce::Variance<V>>(input, results.tensor, reduce::source_of<T, V>(input),
                                     {reinterpret_cast<char*>(moments.data()), sizeof(Moments), store_moments});
    double count = channels ? static_cast<double>(input.numel / channels) : 0;
    for (int64_t c = 0; c < channels; ++c) {
      means[c] = moments[c].mean;
      variances[c] = moments[c].squares / count;
    }
    if (running_mean) {
      Vector<double> before(running_mean, channels, 0);
      write_vector(*running_mean, [&](int64_t c) { return (1 - momentum) * before[c] + momentum * means[c]; });
    }
    if (running_var) {
      Vector<double> before(running_var, channels, 1);
      write_vector(*running_var,
                   [&](int64_t c) { return (1 - momentum) * before[c] + momentum * moments[c].squares / (count - 1); });
    }
  } else {
    Vector<double> mean(running_mean, channels, 0), variance(running_var, channels, 1);
    std::copy_n(mean.data(), channels, means.data());
    std::copy_n(variance.data(), channels, variances.data());
  }
  auto rstd = [&](int64_t c) { return 1 / std::sqrt(variances[c] + eps); };
  write_vector(mean_out, [&](int64_t c) { return means[c]; });
  write_vector(rstd_out, rstd);

  Vector<V> weight(args.weight, channels, V(1)), bias(args.bias, channels, V(0));
  Scratch<V> center(channels), scale(channels);
  for (int64_t c = 0; c < channels; ++c) {
    center[c] = static_cast<V>(means[c]);
    scale[c] = static_cast<V>(rstd(c) * static_cast<double>(weight[c]));
  }
  const auto normalized = [](auto value, auto mean, auto factor, auto shift) {
    return (value - mean) * factor + shift;
  };
  Channels expanded(input, true);
  auto g = geometry<3>({&out, &input, &expanded.tensor});
  parallel_for(g.numel, light_grain / 2, [&](int64_t begin, int64_t end) {
    for_each_run(g, begin, end, [&](const int64_t* at, int64_t n) {
      const T* x = data<T>(input) + at[1];
      T* y = data<T>(out) + at[0];
      const V *m = center.data() + at[2], *s = scale.data() + at[2], *b = bias.data() + at[2];
      int64_t out_stride = g.strides[0][0], in_stride = g.strides[1][0], channel_stride = g.strides[2][0];
      if (out_stride == 1 && in_stride == 1 && channel_stride == 0) {
        transform_registers(n, normalized, y, x, *m, *s, *b);
      } else if (out_stride == 1 && in_stride == 1 && channel_stride == 1) {
        transform_registers(n, normalized, y, x, m, s, b);
      } else {
        for (int64_t i = 0; i < n; ++i) {
          int64_t c = i * channel_stride;
          y[i * out_stride] = static_cast<T>(normalized(static_cast<V>(x[i * in_stride]), m[c], s[c], b[c]));
        }
      }
    });
  });
}

// The least number of elements per partial sum. The partition does not depend on the number of
// threads.
constexpr int64_t piece_elements = 65536;

// Sums grad and grad * (x - mean) of each channel.
template <typename T>
void sum_channels(const cb_tensor& input, const cb_tensor& grad, const Channels& expanded, const Vector<double>& mean,
                  double* grads, double* products) {
  using V = compute_t<T>;
  const int64_t channels = input.sizes[1];
  auto g = geometry<3>({&input, &grad, &expanded.tensor});
  int64_t piece = std::max(piece_elements, 16 * channels);
  int64_t pieces = (g.numel + piece - 1) / piece;
  Scratch<double> partial(pieces * 2 * channels);
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      double* piece_grads = partial.data() + p * 2 * channels;
      double* piece_products = piece_grads + channels;
      std::fill_n(piece_grads, 2 * channels, 0.0);
      for_each_run(g, p * piece, std::min((p + 1) * piece, g.numel), [&](const int64_t* at, int64_t n) {
        const T* x = data<T>(input) + at[0];
        const T* dy = data<T>(grad) + at[1];
        int64_t in_stride = g.strides[0][0], grad_stride = g.strides[1][0], channel_stride = g.strides[2][0], c = at[2];
        if (in_stride == 1 && grad_stride == 1 && channel_stride == 0) {
          GradientSums sums;
          consume(n, [&](const V* d, const V* v, int64_t, int64_t count) { sums.add(d, v, mean[c], count); }, dy, x);
          piece_grads[c] += sums.grad;
          piece_products[c] += sums.product;
        } else if (in_stride == 1 && grad_stride == 1 && channel_stride == 1) {
          consume(
              n,
              [&](const V* d, const V* v, int64_t first, int64_t count) {
                double *to_grads = piece_grads + c + first, *to_products = piece_products + c + first;
                const double* means = mean.data() + c + first;
#pragma omp simd
                for (int64_t i = 0; i < count; ++i) {
                  double gradient = static_cast<double>(d[i]);
                  to_grads[i] += gradient;
                  to_products[i] += gradient * (static_cast<double>(v[i]) - means[i]);
                }
              },
              dy, x);
        } else {
          for (int64_t i = 0; i < n; ++i) {
            int64_t k = c + i * channel_stride;
            double gradient = static_cast<double>(dy[i * grad_stride]);
            piece_grads[k] += gradient;
            piece_products[k] += gradient * (static_cast<double>(x[i * in_stride]) - mean[k]);
          }
        }
      });
    }
  });
  for (int64_t c = 0; c < channels; ++c) {
    grads[c] = products[c] = 0;
    for (int64_t p = 0; p < pieces; ++p) {
      grads[c] += partial[p * 2 * channels + c];
      products[c] += partial[(p * 2 + 1) * channels + c];
    }
  }
}

template <typename T>
void backward(Call& call, const arguments::NativeBatchNormBackward& args) {
  using V = compute_t<T>;
  const cb_tensor &grad = *args.grad, &input = *args.input;
  cb_tensor& out = call.output(0);
  bool training = args.training;
  int64_t channels = input.sizes[1];
  Vector<V> weight(args.weight, channels, V(1));
  Vector<double> mean(args.mean, channels, 0), rstd(args.rstd, channels, 1);

  Channels expanded(input, true);
  Scratch<double> grads(channels), products(channels);
  sum_channels<T>(input, grad, expanded, mean, grads.data(), products.data());
  write_vector(call.output(1), [&](int64_t c) { return products[c] * rstd[c]; });
  write_vector(call.output(2), [&](int64_t c) { return grads[c]; });

  // grad_input = scale * (grad - shift - (x - mean) * slope). In evaluation the statistics are
  // constants, so that shift and slope are 0.
  Scratch<V> coefficients(4 * channels);
  V *center = coefficients.data(), *scale = center + channels, *shift = scale + channels, *slope = shift + channels;
  double count = channels ? static_cast<double>(input.numel / channels) : 1;
  for (int64_t c = 0; c < channels; ++c) {
    center[c] = static_cast<V>(mean[c]);
    scale[c] = static_cast<V>(rstd[c] * static_cast<double>(weight[c]));
    shift[c] = training ? static_cast<V>(grads[c] / count) : V(0);
    slope[c] = training ? static_cast<V>(products[c] * rstd[c] * rstd[c] / count) : V(0);
  }
  const auto gradient = [](auto value, auto grad, auto mean, auto factor, auto shift, auto slope) {
    return factor * ((grad - shift) - (value - mean) * slope);
  };
  auto h = geometry<4>({&out, &input, &grad, &expanded.tensor});
  parallel_for(h.numel, light_grain / 2, [&](int64_t begin, int64_t end) {
    for_each_run(h, begin, end, [&](const int64_t* at, int64_t n) {
      T* dx = data<T>(out) + at[0];
      const T* x = data<T>(input) + at[1];
      const T* dy = data<T>(grad) + at[2];
      int64_t s0 = h.strides[0][0], s1 = h.strides[1][0], s2 = h.strides[2][0], channel_stride = h.strides[3][0],
              c = at[3];
      bool contiguous = s0 == 1 && s1 == 1 && s2 == 1;
      if (contiguous && channel_stride == 0) {
        transform_registers(n, gradient, dx, x, dy, center[c], scale[c], shift[c], slope[c]);
      } else if (contiguous && channel_stride == 1) {
        transform_registers(n, gradient, dx, x, dy, static_cast<const V*>(center + c), static_cast<const V*>(scale + c),
                            static_cast<const V*>(shift + c), static_cast<const V*>(slope + c));
      } else {
        for (int64_t i = 0; i < n; ++i) {
          int64_t k = c + i * channel_stride;
          V v = static_cast<V>(x[i * s1]), d = static_cast<V>(dy[i * s2]);
          dx[i * s0] = static_cast<T>(gradient(v, d, center[k], scale[k], shift[k], slope[k]));
        }
      }
    });
  });
}

void batch_norm(Call& call) {
  const arguments::NativeBatchNorm args(call);
  dispatch<FloatTypes>(args.input->dtype, [&]<typename T>() { forward<T>(call, args); });
}
void batch_norm_backward(Call& call) {
  const arguments::NativeBatchNormBackward args(call);
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() { backward<T>(call, args); });
}

}  // namespace

void register_normalization_batch(KernelTable& table) {
  table.add<batch_norm>("native_batch_norm");
  table.add<batch_norm_backward>("native_batch_norm_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
