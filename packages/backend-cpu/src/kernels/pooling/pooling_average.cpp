// Average pooling. One and two spatial dimensions are treated as three.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "candelabra/arguments/pooling.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "kernels/pooling/pooling_planes.hpp"
#include "kernels/reduction/reduce_sum.hpp"
#include "memory/allocator.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using namespace pooling;

// The divisor of the sum over a window.
struct Divisor {
  bool count_padding;
  int64_t fixed;  // 0: none

  // `rows`: the number of input rows in the window, and `padded_rows` with the padding.
  int64_t of(int64_t rows, int64_t padded_rows, const Window& columns) const {
    if (fixed) return fixed;
    return count_padding ? padded_rows * columns.padded : rows * columns.count;
  }
};

// The sum of contiguous elements. Independent lanes let the compiler vectorize it.
template <int64_t Lanes, typename C>
C sum_in_lanes(const C* values, int64_t n) {
  std::array<C, Lanes> sums{};
  int64_t i = 0;
  for (; i + Lanes <= n; i += Lanes)
    for (int64_t lane = 0; lane < Lanes; ++lane) sums[lane] += values[i + lane];
  C rest{0};
  for (; i < n; ++i) rest += values[i];
  for (int64_t half = Lanes / 2; half > 0; half /= 2)
    for (int64_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  return sums[0] + rest;
}
template <typename C>
C sum_block(const C* values, int64_t n) {
  return n < 256 ? sum_in_lanes<8>(values, n) : sum_in_lanes<64>(values, n);
}

template <int64_t Stride, typename C>
void add_row(const C* row, int64_t stride, int64_t n, C* sums) {
  const int64_t step = Stride ? Stride : stride;
#pragma omp simd
  for (int64_t x = 0; x < n; ++x) sums[x] += row[x * step];
}

// The sums of the windows along a row.
template <typename C>
void sum_windows(const C* row, const Axis& columns, C* sums) {
  if (!columns.regular) {
    for (int64_t x = 0; x < columns.outputs(); ++x) {
      const Window& window = columns.windows[x];
      C sum{0};
      for (int64_t j = 0; j < window.count; ++j) sum += row[window.first + j];
      sums[x] = sum;
    }
    return;
  }
  std::fill_n(sums, columns.outputs(), C{0});
  for (int64_t k = 0; k < columns.kernel; ++k) {
    const ValidOutputs valid(columns, k);
    auto add = columns.stride == 1 ? add_row<1, C> : columns.stride == 2 ? add_row<2, C> : add_row<0, C>;
    add(row + valid.first, columns.stride, valid.end - valid.begin, sums + valid.begin);
  }
}

// The divisors of an output row; 1 for an empty window, whose sum is 0.
template <typename C>
void compute_divisors(const Axis& columns, const Divisor& divisor, int64_t rows, int64_t padded_rows, C* by) {
  for (int64_t x = 0; x < columns.outputs(); ++x) {
    const Window& window = columns.windows[x];
    by[x] = rows == 0 || window.count == 0 ? C{1} : static_cast<C>(divisor.of(rows, padded_rows, window));
  }
}

// Caches the divisors of an output row. They change only with the number of input rows in its
// windows.
template <typename C>
class Divisors {
 public:
  Divisors(const Axes& axes, const Divisor& divisor) : axes_(axes), divisor_(divisor), by_(axes.columns.outputs()) {}
  const C* of(int64_t rows, int64_t padded_rows) {
    if (rows != rows_ || padded_rows != padded_) {
      compute_divisors(axes_.columns, divisor_, rows, padded_rows, by_.data());
      rows_ = rows;
      padded_ = padded_rows;
    }
    return by_.data();
  }

 private:
  const Axes& axes_;
  const Divisor& divisor_;
  Scratch<C> by_;
  int64_t rows_ = -1, padded_ = -1;
};

template <typename C>
[[gnu::always_inline]] inline void divide(C* values, const C* by, int64_t n) {
#pragma omp simd
  for (int64_t x = 0; x < n; ++x) values[x] /= by[x];
}

// Whether each window consists of whole, consecutive input rows.
inline bool has_whole_row_windows(const Axes& axes, const InputRows& input_rows) {
  if (axes.columns.outputs() != 1 || axes.columns.inputs == 0 || axes.columns.windows[0].count != axes.columns.inputs)
    return false;
  for (int64_t y = 0; y < axes.output_rows(); ++y) {
    const auto rows = input_rows.of(y);
    for (size_t i = 1; i < rows.size(); ++i)
      if (rows[i] != rows[i - 1] + 1) return false;
  }
  return true;
}

template <typename T>
void average_by_planes(const T* in, const Layout& input, const Axes& axes, const InputRows& input_rows,
                       const Divisor& divisor, T* out, const Layout& output) {
  using C = compute_t<T>;
  const int64_t width = axes.columns.inputs, outputs = axes.columns.outputs();
  const bool whole_rows = has_whole_row_windows(axes, input_rows);
  parallel_for(input.plane_count(), grain_for(axes.work()), [&](int64_t begin, int64_t end) {
    Scratch<C> buffer(plane_buffer_size<T>(input)), row_sum(width), sums(outputs);
    Divisors<C> divisors(axes, divisor);
    for (int64_t p = begin; p < end; ++p) {
      const C* plane = load_plane<T>(in + input.plane_offset(p), input, buffer.data());
      for (int64_t y = 0; y < axes.output_rows(); ++y) {
        const auto rows = input_rows.of(y);
        const auto count = static_cast<int64_t>(rows.size());
        const C* by = divisors.of(count, input_rows.padded[y]);
        T* values = out + output.plane_offset(p) + output.row_offset(y);
        if (whole_rows && count) {
          *values = T(sum_block<C>(plane + rows[0] * width, count * width) / by[0]);
          continue;
        }
        // Whole rows are summed first, then windows along that sum.
        const C* row = row_sum.data();
        if (count == 1) {
          row = plane + rows[0] * width;
        } else {
          std::fill_n(row_sum.data(), width, C{0});
          for (const int64_t at : rows) add_row<1>(plane + at * width, 1, width, row_sum.data());
        }
        if constexpr (!is_half_v<T>)
          if (output.strides[4] == 1) {
            sum_windows<C>(row, axes.columns, values);
            divide(values, by, outputs);
            continue;
          }
        sum_windows<C>(row, axes.columns, sums.data());
        divide(sums.data(), by, outputs);
        for (int64_t x = 0; x < outputs; ++x) values[x * output.strides[4]] = T(sums[x]);
      }
    }
  });
}

// One output for all channels, which are contiguous.
template <typename T>
void average_of_pixels(const T* sample, const Layout& input, std::span<const int64_t> rows, const Axis& columns,
                       const Window& window, compute_t<T> divided_by, T* to) {
  if constexpr (is_integer_v<T>) {
    const int64_t channels = input.sizes[1];
    std::fill_n(to, channels, T{0});
    for_each_pixel(sample, input, rows, columns, window,
                   [=](int64_t, const T* pixel) { add_row<1>(pixel, 1, channels, to); });
    for (int64_t c = 0; c < channels; ++c) to[c] /= divided_by;
  } else {
    using R = math::Vec<compute_t<T>>;
    for_channel_registers<compute_t<T>>(input.sizes[1], [&]<int K>(int64_t c, int64_t n) {
      R sums[K];
      for (R& sum : sums) sum = R(compute_t<T>{0});
      for_each_pixel(sample + c, input, rows, columns, window, [&](int64_t, const T* pixel) {
        for (int k = 0; k < K; ++k) sums[k] = sums[k] + load_some(pixel + k * R::size, n);
      });
      for (int k = 0; k < K; ++k) store_some<T>(sums[k] / R(divided_by), to + c + k * R::size, n);
    });
  }
}

template <typename T>
void average_by_channels(const T* in, const Layout& input, const Axes& axes, const InputRows& input_rows,
                         const Divisor& divisor, T* out, const Layout& output) {
  using C = compute_t<T>;
  const int64_t channels = input.sizes[1], height = axes.output_rows(), width = axes.columns.outputs();
  const int64_t work = axes.work() / std::max<int64_t>(1, height) * channels;
  const bool in_place = output.strides[1] == 1;
  parallel_for(input.sizes[0] * height, grain_for(work), [&](int64_t begin, int64_t end) {
    Scratch<T> buffer(in_place ? 0 : channels);
    Divisors<C> divisors(axes, divisor);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t y = item % height;
      const T* sample = in + item / height * input.strides[0];
      T* row = out + item / height * output.strides[0] + output.row_offset(y);
      const auto rows = input_rows.of(y);
      const C* by = divisors.of(static_cast<int64_t>(rows.size()), input_rows.padded[y]);
      for (int64_t x = 0; x < width; ++x) {
        T* to = in_place ? row + x * output.strides[4] : buffer.data();
        average_of_pixels<T>(sample, input, rows, axes.columns, axes.columns.windows[x], by[x], to);
        if (in_place) continue;
        for (int64_t c = 0; c < channels; ++c) row[x * output.strides[4] + c * output.strides[1]] = buffer[c];
      }
    }
  });
}

// The transpose of sum_windows: adds parts[x] to every element of window x.
template <typename C>
void scatter_windows(const C* parts, const Axis& columns, C* row) {
  if (columns.regular && columns.stride == 1) {
    for (int64_t k = 0; k < columns.kernel; ++k) {
      const ValidOutputs valid(columns, k);
      add_row<1>(parts + valid.begin, 1, valid.end - valid.begin, row + valid.first);
    }
    return;
  }
  if (columns.regular) {
    for (int64_t k = 0; k < columns.kernel; ++k) {
      const ValidOutputs valid(columns, k);
      C* to = row + valid.first;
      for (int64_t x = valid.begin; x < valid.end; ++x, to += columns.stride) *to += parts[x];
    }
    return;
  }
  for (int64_t x = 0; x < columns.outputs(); ++x) {
    const Window& window = columns.windows[x];
    for (int64_t j = 0; j < window.count; ++j) row[window.first + j] += parts[x];
  }
}

// Every element of a window gets an equal share of its gradient.
template <typename T>
void average_backward_by_planes(const T* grad, const Layout& from, const Axes& axes, const InputRows& input_rows,
                                const Divisor& divisor, T* out, const Layout& to) {
  using C = compute_t<T>;
  const int64_t width = axes.columns.inputs, outputs = axes.columns.outputs();
  parallel_for(to.plane_count(), grain_for(axes.work()), [&](int64_t begin, int64_t end) {
    Scratch<C> buffer(plane_buffer_size<T>(to)), row(width), parts(outputs);
    Divisors<C> divisors(axes, divisor);
    for (int64_t p = begin; p < end; ++p) {
      T* plane = out + to.plane_offset(p);
      C* sums = open_plane<T>(plane, to, buffer.data());
      for (int64_t y = 0; y < axes.output_rows(); ++y) {
        const auto rows = input_rows.of(y);
        if (rows.empty()) continue;
        const C* by = divisors.of(static_cast<int64_t>(rows.size()), input_rows.padded[y]);
        const T* values = grad + from.plane_offset(p) + from.row_offset(y);
        for (int64_t x = 0; x < outputs; ++x) parts[x] = static_cast<C>(values[x * from.strides[4]]);
        divide(parts.data(), by, outputs);
        if (rows.size() == 1) {
          scatter_windows<C>(parts.data(), axes.columns, sums + rows[0] * width);
          continue;
        }
        std::fill_n(row.data(), width, C{0});
        scatter_windows<C>(parts.data(), axes.columns, row.data());
        for (const int64_t at : rows) add_row<1>(static_cast<const C*>(row.data()), 1, width, sums + at * width);
      }
      close_plane<T>(sums, plane, to);
    }
  });
}

template <typename T>
void average_backward_by_channels(const T* grad, const Layout& from, const Axes& axes, const InputRows& input_rows,
                                  const Divisor& divisor, T* out, const Layout& to) {
  for_channel_blocks(to, axes.work(), [&](int64_t sample, int64_t first, int64_t end) {
    std::array<T, channel_block> parts;
    Divisors<T> divisors(axes, divisor);
    T* plane = out + sample * to.strides[0];
    clear_channels(plane, to, first, end);
    for (int64_t y = 0; y < axes.output_rows(); ++y) {
      const auto rows = input_rows.of(y);
      if (rows.empty()) continue;
      const T* by = divisors.of(static_cast<int64_t>(rows.size()), input_rows.padded[y]);
      for (int64_t x = 0; x < axes.columns.outputs(); ++x) {
        const Window& columns = axes.columns.windows[x];
        const T* values = grad + sample * from.strides[0] + from.row_offset(y) + x * from.strides[4];
        for (int64_t c = first; c < end; ++c) parts[c - first] = values[c * from.strides[1]] / by[x];
        for (const int64_t iy : rows)
          for (int64_t ix = columns.first; ix < columns.first + columns.count; ++ix)
            add_row<1>(static_cast<const T*>(parts.data()), 1, end - first,
                       plane + to.row_offset(iy) + ix * to.strides[4] + first);
      }
    }
  });
}

// The gradient of the mean of whole planes.
template <typename T>
void plane_mean_backward(const T* grad, const Layout& from, T* out, const Layout& to) {
  const int64_t size = to.plane_size();
  parallel_for(to.plane_count(), grain_for(size), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const auto value = static_cast<compute_t<T>>(grad[from.plane_offset(p)]) / static_cast<compute_t<T>>(size);
      std::fill_n(out + to.plane_offset(p), size, static_cast<T>(value));
    }
  });
}

template <typename Types>
void average_of(Call& call, const cb_tensor& self, const Layout& input, const Layout& output, const Axes& axes,
                const Divisor& divisor) {
  cb_tensor& out = call.output();
  const InputRows input_rows(axes);
  dispatch<Types>(out.dtype, [&]<typename T>() {
    auto run = input.is_channels_last() ? average_by_channels<T> : average_by_planes<T>;
    run(data<T>(self), input, axes, input_rows, divisor, mutable_data<T>(out), output);
  });
}

template <typename Types>
void average_backward_of(Call& call, const cb_tensor& grad, const Layout& grad_layout, const Layout& input,
                         const Axes& axes, const Divisor& divisor) {
  cb_tensor& out = call.output();
  const InputRows input_rows(axes);
  dispatch<Types>(out.dtype, [&]<typename T>() {
    auto run = average_backward_by_planes<T>;
    if constexpr (!is_half_v<T>)
      if (input.is_channels_last()) run = average_backward_by_channels<T>;
    run(data<T>(grad), grad_layout, axes, input_rows, divisor, mutable_data<T>(out), input);
  });
}

using AverageTypes = decltype(FloatTypes{} + Types<int64_t>{});

Divisor divisor_of(bool count_include_pad, std::optional<int64_t> divisor_override) {
  return {count_include_pad, divisor_override.value_or(0)};
}

void avg_pool(Call& call) {
  const arguments::AvgPool args(call);
  Layout input(*args.self), output(call.output());
  Divisor divisor = divisor_of(args.count_include_pad, args.divisor_override);
  average_of<AverageTypes>(call, *args.self, input, output,
                           regular_axes(input, output, args.kernel_size, args.stride, args.padding, {}), divisor);
}

void avg_pool_backward(Call& call) {
  const arguments::AvgPoolBackward args(call);
  Layout grad(*args.grad), input(call.output());
  Divisor divisor = divisor_of(args.count_include_pad, args.divisor_override);
  average_backward_of<AverageTypes>(call, *args.grad, grad, input,
                                    regular_axes(input, grad, args.kernel_size, args.stride, args.padding, {}),
                                    divisor);
}

void adaptive_avg_pool(Call& call) {
  const arguments::AdaptiveAvgPool args(call);
  Layout input(*args.self), output(call.output());
  // One output per plane is a mean over the plane.
  if (output.plane_size() == 1 && input.plane_size() != 0 && !input.is_channels_last())
    return dispatch<FloatTypes>(call.output().dtype,
                                [&]<typename T>() { reduce::sum_to<T, true>(*args.self, call.output()); });
  average_of<FloatTypes>(call, *args.self, input, output, adaptive_axes(input, output), {false, 0});
}

void adaptive_avg_pool_backward(Call& call) {
  const arguments::AdaptiveAvgPoolBackward args(call);
  Layout grad(*args.grad), input(call.output());
  if (grad.plane_size() == 1 && input.has_contiguous_planes())
    return dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
      plane_mean_backward(data<T>(*args.grad), grad, mutable_data<T>(call.output()), input);
    });
  average_backward_of<FloatTypes>(call, *args.grad, grad, input, adaptive_axes(input, grad), {false, 0});
}

}  // namespace

void register_pooling_average(KernelTable& table) {
  table.add<avg_pool>("avg_pool");
  table.add<avg_pool_backward>("avg_pool_backward");
  table.add<adaptive_avg_pool>("adaptive_avg_pool");
  table.add<adaptive_avg_pool_backward>("adaptive_avg_pool_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
