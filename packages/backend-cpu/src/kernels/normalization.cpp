// Layer, root-mean-square and group normalization with their gradients: statistics for each row of contiguous input, and parameters
// that run along the row (layer norm) or belong to its channels (group norm).
#include <cmath>

#include "../channel_registers.hpp"
#include "normalize.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using reduce::Moments;

// Mean and squared distances of a block of 2048 values at most, in their own precision: distances are taken from a guess at the
// mean, which is then corrected by their own mean, so that little is lost whatever the mean is.
template <typename V>
void take_block(Moments& moments, const V* values, int64_t n) {
  const int64_t half = n / 2;
  const V* second = values + half;
  V first_sum = 0, second_sum = 0;
#pragma omp simd reduction(+ : first_sum, second_sum)
  for (int64_t i = 0; i < half; ++i) {
    first_sum += values[i];
    second_sum += second[i];
  }
  if (n % 2) first_sum += values[n - 1];
  V guess = (first_sum + second_sum) / static_cast<V>(n);
  // Beyond the range of the sum.
  if (!std::isfinite(guess)) guess = static_cast<V>(reduce::sum_of<double>(values, n) / static_cast<double>(n));
  V a = 0, b = 0, c = 0, d = 0;
#pragma omp simd reduction(+ : a, b, c, d)
  for (int64_t i = 0; i < half; ++i) {
    V da = values[i] - guess, db = second[i] - guess;
    a += da * da;
    b += db * db;
    c += da;
    d += db;
  }
  if (n % 2) {
    V last = values[n - 1] - guess;
    a += last * last;
    c += last;
  }
  const double count = static_cast<double>(n), shift = static_cast<double>(c + d) / count;
  moments.add(count, static_cast<double>(guess) + shift,
              std::max(static_cast<double>(a + b) - count * shift * shift, std::isnan(a + b) ? NAN : 0.0));
}

template <typename T>
Moments moments_of(const T* row, int64_t n) {
  Moments result;
  for (int64_t i = 0; i < n; i += reduce::block_length) {
    int64_t count = std::min(reduce::block_length, n - i);
    if constexpr (is_half_v<T>) {
      alignas(64) float buffer[reduce::block_length];
      to_float(row + i, buffer, count);
      take_block(result, buffer, count);
    } else {
      take_block(result, row + i, count);
    }
  }
  return result;
}

template <typename T>
void write_moments(const Moments& moments, int64_t n, double eps, int64_t row, cb_tensor& mean, cb_tensor& rstd) {
  using V = compute_t<T>;  // statistics of half precision are float32
  data<V>(mean)[row] = static_cast<V>(moments.mean);
  data<V>(rstd)[row] = static_cast<V>(1 / std::sqrt(moments.squares / static_cast<double>(n) + eps));
}

void need_gapless(const cb_tensor& tensor, const char* what) {
  if (!is_contiguous(tensor)) throw failure(CB_RUNTIME_ERROR, "%s must be contiguous", what);
}

int64_t row_length(std::span<const int64_t> normalized_shape) {
  int64_t n = 1;
  for (int64_t size : normalized_shape) n *= size;
  return n;
}

// ---- layer norm

template <typename T>
void layer_norm_of(Call& call) {
  using V = compute_t<T>;
  const cb_tensor& input = call.tensor(0);
  cb_tensor &out = call.output(0), &mean = call.output(1), &rstd = call.output(2);
  double eps = call.real(4);
  int64_t n = row_length(call.ints(1));
  int64_t rows = mean.numel;
  if (rows == 0) return;
  Vector<V> weight(call.optional_tensor(2), n, V(1)), bias(call.optional_tensor(3), n, V(0));
  parallel_for(rows, grain_for(4 * n), [&](int64_t begin, int64_t end) {
    // Lines of the next row are asked for while this one is written: memory is never waited for in one go.
    constexpr int64_t line = 64 / static_cast<int64_t>(sizeof(V));
    const auto normalize = [&](const V* from, V* to, int64_t first, int64_t count, V center, V scale, const T* next) {
      const V *w = weight.data() + first, *b = bias.data() + first;
      int64_t i = 0;
      for (; i + 4 * line <= count; i += 4 * line) {
        for (int64_t k = 0; k < 4; ++k) __builtin_prefetch(next + i + k * line);
#pragma omp simd
        for (int64_t j = i; j < i + 4 * line; ++j) to[j] = (from[j] - center) * scale * w[j] + b[j];
      }
      for (; i < count; ++i) to[i] = (from[i] - center) * scale * w[i] + b[i];
    };
    for (int64_t r = begin; r < end; ++r) {
      const T *x = data<T>(input) + r * n, *next = r + 1 < end ? x + n : x;
      T* to = data<T>(out) + r * n;
      if constexpr (is_half_v<T>) {
        if (n <= reduce::block_length) {
          // Converted once for both.
          alignas(64) float row[reduce::block_length];
          Moments moments;
          to_float(x, row, n);
          if (n > 0) take_block(moments, row, n);
          write_moments<T>(moments, n, eps, r, mean, rstd);
          normalize(row, row, 0, n, data<V>(mean)[r], data<V>(rstd)[r], next);
          from_float(row, to, n);
          continue;
        }
      }
      write_moments<T>(moments_of(x, n), n, eps, r, mean, rstd);
      const V center = data<V>(mean)[r], scale = data<V>(rstd)[r];
      transform(
          n,
          [&](const V* from, V* values, int64_t first, int64_t count) {
            normalize(from, values, first, count, center, scale, next + first);
          },
          to, x);
    }
  });
}

// The gradients of the parameters are summed over chunks of rows, at most so many of them, whatever the number of threads.
constexpr int64_t most_chunks = 64;
constexpr int64_t least_rows = 8;
// So many terms are added in the precision of the values, their sums in double.
constexpr int64_t exact_together = 1024;
constexpr int64_t rows_together = 32;

// grad_input = rstd (h - mean(h) - xhat mean(h xhat)), h = grad weight; grad_weight = sum over rows of grad xhat.
template <typename T>
void layer_norm_backward_of(Call& call) {
  using V = compute_t<T>;
  const cb_tensor &grad = call.tensor(0), &input = call.tensor(1), &mean = call.tensor(3), &rstd = call.tensor(4);
  cb_tensor &out = call.output(0), &grad_weight = call.output(1), &grad_bias = call.output(2);
  need_gapless(grad, "native_layer_norm_backward: grad");
  need_gapless(input, "native_layer_norm_backward: input");
  int64_t n = row_length(call.ints(2)), rows = mean.numel;
  bool parameters = grad_weight.numel != 0 || grad_bias.numel != 0;
  Vector<V> weight(call.optional_tensor(5), n, V(1));
  Vector<double> centers(&mean, rows, 0), scales(&rstd, rows, 1);
  int64_t chunk = std::max(least_rows, (rows + most_chunks - 1) / most_chunks);
  int64_t chunks = (rows + chunk - 1) / chunk;
  Scratch<double> partial(parameters ? chunks * 2 * n : 0);
  int64_t grain = std::max<int64_t>(1, grain_for(8 * n) / chunk);
  parallel_for(chunks, grain, [&](int64_t begin, int64_t end) {
    Scratch<V> few(parameters ? 2 * n : 0);
    for (int64_t c = begin; c < end; ++c) {
      double* to_weight = partial.data() + (parameters ? c * 2 * n : 0);
      if (parameters) std::fill_n(to_weight, 2 * n, 0.0);
      const int64_t last = std::min((c + 1) * chunk, rows);
      for (int64_t r = c * chunk; r < last; ++r) {
        if (parameters && (r - c * chunk) % rows_together == 0) std::fill_n(few.data(), 2 * n, V(0));
        const T *x = data<T>(input) + r * n, *dy = data<T>(grad) + r * n;
        double center = centers[r], scale = scales[r], sum = 0, product = 0;
        V m = static_cast<V>(center), s = static_cast<V>(scale);
        consume(
            n,
            [&](const V* d, const V* v, int64_t first, int64_t count) {
              const V* w = weight.data() + first;
              V *gw = few.data() + first, *gb = gw + n;
              for (int64_t i0 = 0; i0 < count; i0 += exact_together) {
                const int64_t end_of_piece = std::min(count, i0 + exact_together);
                V a = 0, b = 0;
                if (parameters) {
#pragma omp simd reduction(+ : a, b)
                  for (int64_t i = i0; i < end_of_piece; ++i) {
                    V h = d[i] * w[i], distance = v[i] - m;
                    a += h;
                    b += h * distance;
                    gw[i] += d[i] * (distance * s);
                    gb[i] += d[i];
                  }
                } else {
#pragma omp simd reduction(+ : a, b)
                  for (int64_t i = i0; i < end_of_piece; ++i) {
                    V h = d[i] * w[i];
                    a += h;
                    b += h * (v[i] - m);
                  }
                }
                sum += static_cast<double>(a);
                product += static_cast<double>(b);
              }
            },
            dy, x);
        V shift = static_cast<V>(sum / static_cast<double>(n));
        V slope = static_cast<V>(product * scale * scale / static_cast<double>(n));
        transform(
            n,
            [&](const V* d, const V* v, V* to, int64_t first, int64_t count) {
              const V* w = weight.data() + first;
#pragma omp simd
              for (int64_t i = 0; i < count; ++i) to[i] = s * ((d[i] * w[i] - shift) - (v[i] - m) * slope);
            },
            data<T>(out) + r * n, dy, x);
        if (parameters && (r + 1 == last || (r + 1 - c * chunk) % rows_together == 0))
#pragma omp simd
          for (int64_t i = 0; i < 2 * n; ++i) to_weight[i] += static_cast<double>(few[i]);
      }
    }
  });
  auto summed = [&](int64_t at) {
    double sum = 0;
    for (int64_t c = 0; c < chunks; ++c) sum += partial[c * 2 * n + at];
    return sum;
  };
  write_vector(grad_weight, [&](int64_t i) { return summed(i); });
  write_vector(grad_bias, [&](int64_t i) { return summed(n + i); });
}

// ---- division by the root of the mean of squares

template <typename T>
void rms_norm_of(Call& call) {
  using V = compute_t<T>;
  const cb_tensor& input = call.tensor(0);
  cb_tensor &out = call.output(0), &rstd = call.output(1);
  const double eps = call.real(3);
  const int64_t n = row_length(call.ints(1)), rows = rstd.numel;
  Vector<V> weight(call.optional_tensor(2), n, V(1));
  parallel_for(rows, grain_for(3 * n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* x = data<T>(input) + r * n;
      double squares = 0;
      consume(n, [&](const V* v, int64_t, int64_t count) { squares += reduce::sum_of<double, reduce::Of::squares>(v, count); }, x);
      const V scale = static_cast<V>(1 / std::sqrt(squares / static_cast<double>(n) + eps));
      data<V>(rstd)[r] = scale;
      transform(
          n,
          [&](const V* from, V* to, int64_t first, int64_t count) {
            const V* w = weight.data() + first;
#pragma omp simd
            for (int64_t i = 0; i < count; ++i) to[i] = from[i] * scale * w[i];
          },
          data<T>(out) + r * n, x);
    }
  });
}

// grad_input = rstd (h - xhat mean(h xhat)), h = grad weight; grad_weight = sum over rows of grad xhat.
template <typename T>
void rms_norm_backward_of(Call& call) {
  using V = compute_t<T>;
  const cb_tensor &grad = call.tensor(0), &input = call.tensor(1), &rstd = call.tensor(3);
  cb_tensor &out = call.output(0), &grad_weight = call.output(1);
  const int64_t n = row_length(call.ints(2)), rows = rstd.numel;
  const bool parameters = grad_weight.numel != 0;
  Vector<V> weight(call.optional_tensor(4), n, V(1));
  const int64_t chunk = std::max(least_rows, (rows + most_chunks - 1) / most_chunks), chunks = (rows + chunk - 1) / chunk;
  Scratch<double> partial(parameters ? chunks * n : 0);
  const int64_t grain = std::max<int64_t>(1, grain_for(6 * n) / chunk);
  parallel_for(chunks, grain, [&](int64_t begin, int64_t end) {
    Scratch<V> few(parameters ? n : 0);
    for (int64_t c = begin; c < end; ++c) {
      double* to_weight = partial.data() + (parameters ? c * n : 0);
      if (parameters) std::fill_n(to_weight, n, 0.0);
      const int64_t last = std::min((c + 1) * chunk, rows);
      for (int64_t r = c * chunk; r < last; ++r) {
        if (parameters && (r - c * chunk) % rows_together == 0) std::fill_n(few.data(), n, V(0));
        const T *x = data<T>(input) + r * n, *dy = data<T>(grad) + r * n;
        const V s = data<V>(rstd)[r];
        double product = 0;
        consume(
            n,
            [&](const V* d, const V* v, int64_t first, int64_t count) {
              const V* w = weight.data() + first;
              V* gw = few.data() + first;
              for (int64_t i0 = 0; i0 < count; i0 += exact_together) {
                const int64_t end_of_piece = std::min(count, i0 + exact_together);
                V b = 0;
                if (parameters) {
#pragma omp simd reduction(+ : b)
                  for (int64_t i = i0; i < end_of_piece; ++i) {
                    const V normalized = d[i] * (v[i] * s);
                    b += normalized * w[i];
                    gw[i] += normalized;
                  }
                } else {
#pragma omp simd reduction(+ : b)
                  for (int64_t i = i0; i < end_of_piece; ++i) b += d[i] * (v[i] * s) * w[i];
                }
                product += static_cast<double>(b);
              }
            },
            dy, x);
        const V slope = static_cast<V>(product / static_cast<double>(n)) * s;
        transform(
            n,
            [&](const V* d, const V* v, V* to, int64_t first, int64_t count) {
              const V* w = weight.data() + first;
#pragma omp simd
              for (int64_t i = 0; i < count; ++i) to[i] = s * (d[i] * w[i] - v[i] * slope);
            },
            data<T>(out) + r * n, dy, x);
        if (parameters && (r + 1 == last || (r + 1 - c * chunk) % rows_together == 0))
#pragma omp simd
          for (int64_t i = 0; i < n; ++i) to_weight[i] += static_cast<double>(few[i]);
      }
    }
  });
  write_vector(grad_weight, [&](int64_t at) {
    double sum = 0;
    for (int64_t c = 0; c < chunks; ++c) sum += partial[c * n + at];
    return sum;
  });
}

// ---- group norm

struct Groups {
  int64_t batch, channels, groups, plane;  // plane: elements of one channel of one sample
  Groups(const cb_tensor& input, int64_t groups) : batch(input.sizes[0]), channels(input.sizes[1]), groups(groups), plane(1) {
    for (int d = 2; d < input.ndim; ++d) plane *= input.sizes[d];
  }
  int64_t width() const { return channels / groups; }  // channels of a group
  int64_t length() const { return width() * plane; }   // elements of a group
};

// Pixels of all channels one after another.
bool is_channels_last(const cb_tensor& tensor) {
  if (tensor.ndim < 3) return false;
  int64_t step = tensor.sizes[1];
  for (int d = tensor.ndim - 1; d >= 2; --d) {
    if (tensor.sizes[d] != 1 && tensor.strides[d] != step) return false;
    step *= tensor.sizes[d];
  }
  return (tensor.sizes[1] == 1 || tensor.strides[1] == 1) && (tensor.sizes[0] == 1 || tensor.strides[0] == step);
}

// Adds the moments of each channel over some pixels. Distances are taken from the mean of the first few, which is near enough that
// little is lost whatever the mean is. `room` is for three numbers a channel.
template <typename T>
void take_pixels(Moments* moments, const T* pixels, int64_t channels, int64_t count, compute_t<T>* room) {
  using V = compute_t<T>;
  using R = math::Vec<V>;
  V *guesses = room, *sums = guesses + channels, *squares = sums + channels;
  std::fill_n(room, 3 * channels, V(0));
  const int64_t few = std::min<int64_t>(count, 16);
  const R share = V(1) / static_cast<V>(few);
  // So many pixels are read again for the next channels before they leave the first cache.
  constexpr int64_t near_bytes = 16384;
  const int64_t near = std::max<int64_t>(8, near_bytes / (channels * static_cast<int64_t>(sizeof(T))));
  const auto over = [&](int64_t begin, int64_t end, auto&& take) {
    for_channel_registers<V>(channels, [&]<int K>(int64_t c, int64_t n) {
      R guess[K], sum[K], square[K];
      for (int k = 0; k < K; ++k) {
        const int64_t at = c + k * R::size;
        guess[k] = load_some(guesses + at, n), sum[k] = load_some(sums + at, n), square[k] = load_some(squares + at, n);
      }
      for (int64_t p = begin; p < end; ++p)
        for (int k = 0; k < K; ++k) take(load_some(pixels + p * channels + c + k * R::size, n), guess[k], sum[k], square[k]);
      for (int k = 0; k < K; ++k) {
        const int64_t at = c + k * R::size;
        store_some<V>(guess[k], guesses + at, n), store_some<V>(sum[k], sums + at, n), store_some<V>(square[k], squares + at, n);
      }
    });
  };
  over(0, few, [=](R value, R& guess, R&, R&) { guess = fma(value, share, guess); });
  for (int64_t begin = 0; begin < count; begin += near)
    over(begin, std::min(begin + near, count), [](R value, R& guess, R& sum, R& square) {
      const R distance = value - guess;
      sum = sum + distance;
      square = fma(distance, distance, square);
    });
  const double total = static_cast<double>(count);
  for (int64_t c = 0; c < channels; ++c) {
    const double shift = static_cast<double>(sums[c]) / total;
    moments[c].add(total, static_cast<double>(guesses[c]) + shift,
                   std::max(static_cast<double>(squares[c]) - total * shift * shift, 0.0));  // NaN stays
  }
}

template <typename T>
void group_norm_of_pixels(Call& call, const Groups& shape) {
  using V = compute_t<T>;
  const T* from = data<T>(call.tensor(0));
  T* to = data<T>(call.output(0));
  cb_tensor &mean = call.output(1), &rstd = call.output(2);
  const double eps = call.real(4);
  const int64_t channels = shape.channels, width = shape.width();
  Vector<V> weight(call.optional_tensor(1), channels, V(1)), bias(call.optional_tensor(2), channels, V(0));
  // Pixels whose moments are taken together, whatever the number of threads.
  constexpr int64_t together = 256;
  const int64_t pieces = (shape.plane + together - 1) / together;
  Scratch<Moments> partial(shape.batch * pieces * channels);
  parallel_for(shape.batch * pieces, grain_for(3 * together * channels), [&](int64_t begin, int64_t end) {
    Scratch<V> room(3 * channels);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t sample = i / pieces, first = i % pieces * together;
      Moments* moments = partial.data() + i * channels;
      std::fill_n(moments, channels, Moments{});
      take_pixels(moments, from + (sample * shape.plane + first) * channels, channels, std::min(together, shape.plane - first),
                  room.data());
    }
  });
  Scratch<V> centers(shape.batch * channels), factors(shape.batch * channels);
  parallel_for(shape.batch * shape.groups, grain_for(16 * pieces * width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t sample = row / shape.groups, first = row % shape.groups * width;
      Moments all;
      for (int64_t p = sample * pieces; p < (sample + 1) * pieces; ++p)
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
      const V *center = centers.data() + sample * channels, *factor = factors.data() + sample * channels, *shift = bias.data();
      for (; pixel < last; ++pixel)
        transform_registers(
            channels, [](auto value, auto c, auto f, auto b) { return (value - c) * f + b; }, to + pixel * channels,
            from + pixel * channels, center, factor, shift);
    }
  });
}

template <typename T>
void group_norm_of(Call& call) {
  using V = compute_t<T>;
  const cb_tensor& input = call.tensor(0);
  cb_tensor &out = call.output(0), &mean = call.output(1), &rstd = call.output(2);
  Groups shape(input, call.integer(3));
  double eps = call.real(4);
  if (!is_contiguous(input) && is_channels_last(input) && is_channels_last(out)) return group_norm_of_pixels<T>(call, shape);
  need_gapless(input, "native_group_norm: input");
  Vector<V> weight(call.optional_tensor(1), shape.channels, V(1)), bias(call.optional_tensor(2), shape.channels, V(0));
  parallel_for(shape.batch * shape.groups, grain_for(4 * shape.length()), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* x = data<T>(input) + row * shape.length();
      T* y = data<T>(out) + row * shape.length();
      write_moments<T>(moments_of(x, shape.length()), shape.length(), eps, row, mean, rstd);
      V center = data<V>(mean)[row], scale = data<V>(rstd)[row];
      for (int64_t k = 0; k < shape.width(); ++k) {
        int64_t channel = row % shape.groups * shape.width() + k;
        transform_registers(
            shape.plane, [](auto value, auto c, auto f, auto b) { return (value - c) * f + b; }, y + k * shape.plane,
            x + k * shape.plane, center, scale * weight[channel], bias[channel]);
      }
    }
  });
}

template <typename T>
void group_norm_backward_of(Call& call) {
  using V = compute_t<T>;
  const cb_tensor &grad = call.tensor(0), &input = call.tensor(1), &mean = call.tensor(2), &rstd = call.tensor(3);
  cb_tensor &out = call.output(0), &grad_weight = call.output(1), &grad_bias = call.output(2);
  Groups shape(input, call.integer(5));
  need_gapless(grad, "native_group_norm_backward: grad");
  need_gapless(input, "native_group_norm_backward: input");
  int64_t rows = shape.batch * shape.groups;
  Vector<V> weight(call.optional_tensor(4), shape.channels, V(1));
  Vector<double> centers(&mean, rows, 0), scales(&rstd, rows, 1);
  Scratch<GradientSums> sums(shape.batch * shape.channels);  // of each channel of each sample
  parallel_for(rows, grain_for(8 * shape.length()), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T *x = data<T>(input) + row * shape.length(), *dy = data<T>(grad) + row * shape.length();
      T* dx = data<T>(out) + row * shape.length();
      double center = centers[row], scale = scales[row], sum = 0, product = 0;
      for (int64_t k = 0; k < shape.width(); ++k) {
        GradientSums here;
        consume(
            shape.plane, [&](const V* d, const V* v, int64_t, int64_t count) { here.add(d, v, center, count); },
            dy + k * shape.plane, x + k * shape.plane);
        double w = static_cast<double>(weight[row % shape.groups * shape.width() + k]);
        sum += w * here.grad;
        product += w * here.product;
        sums[row * shape.width() + k] = here;
      }
      double length = static_cast<double>(shape.length());
      V m = static_cast<V>(center), s = static_cast<V>(scale), shift = static_cast<V>(sum / length);
      V slope = static_cast<V>(product * scale * scale / length);
      for (int64_t k = 0; k < shape.width(); ++k) {
        V w = weight[row % shape.groups * shape.width() + k];
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
  write_vector(grad_weight, [&](int64_t channel) {
    double total = 0;
    for (int64_t b = 0; b < shape.batch; ++b)
      total += sums[b * shape.channels + channel].product * scales[b * shape.groups + channel / shape.width()];
    return total;
  });
  write_vector(grad_bias, [&](int64_t channel) {
    double total = 0;
    for (int64_t b = 0; b < shape.batch; ++b) total += sums[b * shape.channels + channel].grad;
    return total;
  });
}

void layer_norm(Call& call) {
  need_gapless(call.tensor(0), "native_layer_norm: input");
  dispatch<FloatTypes>(call.tensor(0).dtype, [&]<typename T>() { layer_norm_of<T>(call); });
}
void layer_norm_backward(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() { layer_norm_backward_of<T>(call); });
}
void rms_norm(Call& call) {
  dispatch<FloatTypes>(call.tensor(0).dtype, [&]<typename T>() { rms_norm_of<T>(call); });
}
void rms_norm_backward(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() { rms_norm_backward_of<T>(call); });
}
void group_norm(Call& call) {
  dispatch<FloatTypes>(call.tensor(0).dtype, [&]<typename T>() { group_norm_of<T>(call); });
}
void group_norm_backward(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() { group_norm_backward_of<T>(call); });
}

}  // namespace

void register_normalization(KernelTable& table) {
  table.add<layer_norm>("native_layer_norm");
  table.add<layer_norm_backward>("native_layer_norm_backward");
  table.add<rms_norm>("native_rms_norm");
  table.add<rms_norm_backward>("native_rms_norm_backward");
  table.add<group_norm>("native_group_norm");
  table.add<group_norm_backward>("native_group_norm_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
