// Layer and root-mean-square normalization with their gradients. The input is contiguous;
// statistics are per row, parameters per element of a row.
#include "candelabra/arguments/normalization.hpp"
#include "kernels/normalization/normalize_moments.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

int64_t row_length(std::span<const int64_t> normalized_shape) {
  int64_t n = 1;
  for (int64_t size : normalized_shape) n *= size;
  return n;
}

// ---- layer norm

template <typename T>
void layer_norm_of(Call& call) {
  using V = compute_t<T>;
  const arguments::NativeLayerNorm args(call);
  const cb_tensor& input = *args.input;
  cb_tensor &out = call.output(0), &mean = call.output(1), &rstd = call.output(2);
  double eps = args.eps;
  int64_t n = row_length(args.normalized_shape);
  int64_t rows = mean.numel;
  if (rows == 0) return;
  Vector<V> weight(args.weight, n, V(1)), bias(args.bias, n, V(0));
  parallel_for(rows, grain_for(4 * n), [&](int64_t begin, int64_t end) {
    // The next row is prefetched while this one is written.
    constexpr int64_t cache_line = 64 / static_cast<int64_t>(sizeof(V));
    const auto normalize = [&](const V* from, V* to, int64_t first, int64_t count, V center, V scale, const T* next) {
      const V *w = weight.data() + first, *b = bias.data() + first;
      int64_t i = 0;
      for (; i + 4 * cache_line <= count; i += 4 * cache_line) {
        for (int64_t k = 0; k < 4; ++k) __builtin_prefetch(next + i + k * cache_line);
#pragma omp simd
        for (int64_t j = i; j < i + 4 * cache_line; ++j) to[j] = (from[j] - center) * scale * w[j] + b[j];
      }
      for (; i < count; ++i) to[i] = (from[i] - center) * scale * w[i] + b[i];
    };
    for (int64_t r = begin; r < end; ++r) {
      const T *x = data<T>(input) + r * n, *next = r + 1 < end ? x + n : x;
      T* to = data<T>(out) + r * n;
      if constexpr (is_half_v<T>) {
        if (n <= reduce::block_length) {
          // A short row is converted once for both passes.
          alignas(64) float row[reduce::block_length];
          Moments moments;
          to_float(x, row, n);
          if (n > 0) add_block(moments, row, n);
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

// Parameter gradients are summed over chunks of rows. The chunks do not depend on the number of
// threads.
constexpr int64_t most_chunks = 64;
constexpr int64_t least_rows = 8;
// This many terms are summed in the compute dtype, and those sums in double.
constexpr int64_t terms_per_sum = 1024;
constexpr int64_t rows_per_sum = 32;

// Sums over a row: h = grad weight, and h times the distance from the mean.
struct RowSums {
  double h = 0, product = 0;
};

// Adds `count` elements of a row to its sums, and what they contribute to the gradients of the
// parameters, unless those are null.
template <typename V>
void add_terms(const V* grad, const V* x, const V* weight, V mean, V rstd, int64_t count, V* grad_weight, V* grad_bias,
               RowSums& sums) {
  for (int64_t begin = 0; begin < count; begin += terms_per_sum) {
    const int64_t end = std::min(count, begin + terms_per_sum);
    V a = 0, b = 0;
    if (grad_weight) {
#pragma omp simd reduction(+ : a, b)
      for (int64_t i = begin; i < end; ++i) {
        V h = grad[i] * weight[i], distance = x[i] - mean;
        a += h;
        b += h * distance;
        grad_weight[i] += grad[i] * (distance * rstd);
        grad_bias[i] += grad[i];
      }
    } else {
#pragma omp simd reduction(+ : a, b)
      for (int64_t i = begin; i < end; ++i) {
        V h = grad[i] * weight[i];
        a += h;
        b += h * (x[i] - mean);
      }
    }
    sums.h += static_cast<double>(a);
    sums.product += static_cast<double>(b);
  }
}

// grad_input = rstd (h - mean(h) - xhat mean(h xhat)), h = grad weight; grad_weight = sum over rows
// of grad xhat.
template <typename T>
void layer_norm_backward_of(Call& call) {
  using V = compute_t<T>;
  const arguments::NativeLayerNormBackward args(call);
  const cb_tensor &grad = *args.grad, &input = *args.input, &mean = *args.mean, &rstd = *args.rstd;
  cb_tensor &out = call.output(0), &grad_weight = call.output(1), &grad_bias = call.output(2);
  int64_t n = row_length(args.normalized_shape), rows = mean.numel;
  bool parameters = grad_weight.numel != 0 || grad_bias.numel != 0;
  Vector<V> weight(args.weight, n, V(1));
  Vector<double> centers(&mean, rows, 0), scales(&rstd, rows, 1);
  int64_t chunk = std::max(least_rows, (rows + most_chunks - 1) / most_chunks);
  int64_t chunks = (rows + chunk - 1) / chunk;
  Scratch<double> partial(parameters ? chunks * 2 * n : 0);
  int64_t grain = std::max<int64_t>(1, grain_for(8 * n) / chunk);
  parallel_for(chunks, grain, [&](int64_t begin, int64_t end) {
    Scratch<V> partial_sums(parameters ? 2 * n : 0);
    for (int64_t c = begin; c < end; ++c) {
      double* to_weight = partial.data() + (parameters ? c * 2 * n : 0);
      if (parameters) std::fill_n(to_weight, 2 * n, 0.0);
      const int64_t last = std::min((c + 1) * chunk, rows);
      for (int64_t r = c * chunk; r < last; ++r) {
        if (parameters && (r - c * chunk) % rows_per_sum == 0) std::fill_n(partial_sums.data(), 2 * n, V(0));
        const T *x = data<T>(input) + r * n, *dy = data<T>(grad) + r * n;
        double center = centers[r], scale = scales[r];
        RowSums sums;
        V m = static_cast<V>(center), s = static_cast<V>(scale);
        consume(
            n,
            [&](const V* d, const V* v, int64_t first, int64_t count) {
              V* gw = parameters ? partial_sums.data() + first : nullptr;
              add_terms(d, v, weight.data() + first, m, s, count, gw, gw ? gw + n : nullptr, sums);
            },
            dy, x);
        V shift = static_cast<V>(sums.h / static_cast<double>(n));
        V slope = static_cast<V>(sums.product * scale * scale / static_cast<double>(n));
        transform(
            n,
            [&](const V* d, const V* v, V* to, int64_t first, int64_t count) {
              const V* w = weight.data() + first;
#pragma omp simd
              for (int64_t i = 0; i < count; ++i) to[i] = s * ((d[i] * w[i] - shift) - (v[i] - m) * slope);
            },
            data<T>(out) + r * n, dy, x);
        if (parameters && (r + 1 == last || (r + 1 - c * chunk) % rows_per_sum == 0))
#pragma omp simd
          for (int64_t i = 0; i < 2 * n; ++i) to_weight[i] += static_cast<double>(partial_sums[i]);
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

// ---- RMS norm

template <typename T>
void rms_norm_of(Call& call) {
  using V = compute_t<T>;
  const arguments::FusedRmsNorm args(call);
  const cb_tensor& input = *args.input;
  cb_tensor &out = call.output(0), &rstd = call.output(1);
  const double eps = args.eps;
  const int64_t n = row_length(args.normalized_shape), rows = rstd.numel;
  Vector<V> weight(args.weight, n, V(1));
  parallel_for(rows, grain_for(3 * n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* x = data<T>(input) + r * n;
      double squares = 0;
      consume(
          n,
          [&](const V* v, int64_t, int64_t count) { squares += reduce::sum_of<double, reduce::Of::squares>(v, count); },
          x);
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

// grad_input = rstd (h - xhat mean(h xhat)), h = grad weight; grad_weight = sum over rows of grad
// xhat.
template <typename T>
void rms_norm_backward_of(Call& call) {
  using V = compute_t<T>;
  const arguments::FusedRmsNormBackward args(call);
  const cb_tensor &grad = *args.grad, &input = *args.input, &rstd = *args.rstd;
  cb_tensor &out = call.output(0), &grad_weight = call.output(1);
  const int64_t n = row_length(args.normalized_shape), rows = rstd.numel;
  const bool parameters = grad_weight.numel != 0;
  Vector<V> weight(args.weight, n, V(1));
  const int64_t chunk = std::max(least_rows, (rows + most_chunks - 1) / most_chunks),
                chunks = (rows + chunk - 1) / chunk;
  Scratch<double> partial(parameters ? chunks * n : 0);
  const int64_t grain = std::max<int64_t>(1, grain_for(6 * n) / chunk);
  parallel_for(chunks, grain, [&](int64_t begin, int64_t end) {
    Scratch<V> partial_sums(parameters ? n : 0);
    for (int64_t c = begin; c < end; ++c) {
      double* to_weight = partial.data() + (parameters ? c * n : 0);
      if (parameters) std::fill_n(to_weight, n, 0.0);
      const int64_t last = std::min((c + 1) * chunk, rows);
      for (int64_t r = c * chunk; r < last; ++r) {
        if (parameters && (r - c * chunk) % rows_per_sum == 0) std::fill_n(partial_sums.data(), n, V(0));
        const T *x = data<T>(input) + r * n, *dy = data<T>(grad) + r * n;
        const V s = data<V>(rstd)[r];
        double product = 0;
        consume(
            n,
            [&](const V* d, const V* v, int64_t first, int64_t count) {
              const V* w = weight.data() + first;
              V* gw = partial_sums.data() + first;
              for (int64_t i0 = 0; i0 < count; i0 += terms_per_sum) {
                const int64_t end_of_piece = std::min(count, i0 + terms_per_sum);
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
        if (parameters && (r + 1 == last || (r + 1 - c * chunk) % rows_per_sum == 0))
#pragma omp simd
          for (int64_t i = 0; i < n; ++i) to_weight[i] += static_cast<double>(partial_sums[i]);
      }
    }
  });
  write_vector(grad_weight, [&](int64_t at) {
    double sum = 0;
    for (int64_t c = 0; c < chunks; ++c) sum += partial[c * n + at];
    return sum;
  });
}

void layer_norm(Call& call) {
  const cb_tensor& input = *arguments::NativeLayerNorm(call).input;
  dispatch<FloatTypes>(input.dtype, [&]<typename T>() { layer_norm_of<T>(call); });
}
void layer_norm_backward(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() { layer_norm_backward_of<T>(call); });
}
void rms_norm(Call& call) {
  dispatch<FloatTypes>(arguments::FusedRmsNorm(call).input->dtype, [&]<typename T>() { rms_norm_of<T>(call); });
}
void rms_norm_backward(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() { rms_norm_backward_of<T>(call); });
}

}  // namespace

void register_normalization(KernelTable& table) {
  table.add<layer_norm>("native_layer_norm");
  table.add<layer_norm_backward>("native_layer_norm_backward");
  table.add<rms_norm>("_fused_rms_norm");
  table.add<rms_norm_backward>("_fused_rms_norm_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
