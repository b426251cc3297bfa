// Average pooling over one, two or three spatial dimensions, which are seen as three.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "allocator.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "kernels/pooling_planes.hpp"
#include "kernels/reduce_sum.hpp"
#include "parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using namespace pooling;

// What the sum over a window is divided by.
struct Divisor {
  bool count_padding;
  int64_t fixed;  // 0: none

  // `lines`: how many lines a window has, and how many with the padding.
  int64_t of(int64_t lines, int64_t padded_lines, const Window& columns) const {
    if (fixed) return fixed;
    return count_padding ? padded_lines * columns.padded : lines * columns.count;
  }
};

// The sum of elements without gaps, in lanes that become vectors.
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
void add_line(const C* line, int64_t stride, int64_t n, C* sums) {
  const int64_t step = Stride ? Stride : stride;
#pragma omp simd
  for (int64_t x = 0; x < n; ++x) sums[x] += line[x * step];
}

// The sums of the windows along a line.
template <typename C>
void add_windows(const C* line, const Axis& columns, C* sums) {
  if (!columns.regular) {
    for (int64_t x = 0; x < columns.outputs(); ++x) {
      const Window& window = columns.windows[x];
      C sum{0};
      for (int64_t j = 0; j < window.count; ++j) sum += line[window.first + j];
      sums[x] = sum;
    }
    return;
  }
  std::fill_n(sums, columns.outputs(), C{0});
  for (int64_t k = 0; k < columns.kernel; ++k) {
    const Reach reach(columns, k);
    auto add = columns.stride == 1 ? add_line<1, C> : columns.stride == 2 ? add_line<2, C> : add_line<0, C>;
    add(line + reach.first, columns.stride, reach.end - reach.begin, sums + reach.begin);
  }
}

// What each sum of a line is divided by; 1 where the window is empty, whose sum is 0.
template <typename C>
void find_divisors(const Axis& columns, const Divisor& divisor, int64_t lines, int64_t padded_lines, C* by) {
  for (int64_t x = 0; x < columns.outputs(); ++x) {
    const Window& window = columns.windows[x];
    by[x] = lines == 0 || window.count == 0 ? C{1} : static_cast<C>(divisor.of(lines, padded_lines, window));
  }
}

// Divisors of a line, found again only where its windows have another number of lines than those of the one before.
template <typename C>
class Divisors {
 public:
  Divisors(const Axes& axes, const Divisor& divisor) : axes_(axes), divisor_(divisor), by_(axes.columns.outputs()) {}
  const C* of(int64_t lines, int64_t padded_lines) {
    if (lines != lines_ || padded_lines != padded_) {
      find_divisors(axes_.columns, divisor_, lines, padded_lines, by_.data());
      lines_ = lines;
      padded_ = padded_lines;
    }
    return by_.data();
  }

 private:
  const Axes& axes_;
  const Divisor& divisor_;
  Scratch<C> by_;
  int64_t lines_ = -1, padded_ = -1;
};

template <typename C>
[[gnu::always_inline]] inline void divide(C* values, const C* by, int64_t n) {
#pragma omp simd
  for (int64_t x = 0; x < n; ++x) values[x] /= by[x];
}

// Whether each window takes whole lines that lie one after another.
inline bool takes_whole_lines(const Axes& axes, const Lines& lines) {
  if (axes.columns.outputs() != 1 || axes.columns.inputs == 0 || axes.columns.windows[0].count != axes.columns.inputs) return false;
  for (int64_t y = 0; y < axes.lines(); ++y) {
    const auto some = lines.of(y);
    for (size_t i = 1; i < some.size(); ++i)
      if (some[i] != some[i - 1] + 1) return false;
  }
  return true;
}

template <typename T>
void average_by_planes(const T* in, const Layout& input, const Axes& axes, const Lines& lines, const Divisor& divisor, T* out,
                       const Layout& output) {
  using C = compute_t<T>;
  const int64_t width = axes.columns.inputs, outputs = axes.columns.outputs();
  const bool whole_lines = takes_whole_lines(axes, lines);
  parallel_for(input.planes(), grain_for(axes.work()), [&](int64_t begin, int64_t end) {
    Scratch<C> room(plane_room<T>(input)), down(width), sums(outputs);
    Divisors<C> divisors(axes, divisor);
    for (int64_t p = begin; p < end; ++p) {
      const C* plane = load_plane<T>(in + input.plane(p), input, room.data());
      for (int64_t y = 0; y < axes.lines(); ++y) {
        const auto some = lines.of(y);
        const auto count = static_cast<int64_t>(some.size());
        const C* by = divisors.of(count, lines.padded[y]);
        T* values = out + output.plane(p) + output.line(y);
        if (whole_lines && count) {
          *values = T(sum_block<C>(plane + some[0] * width, count * width) / by[0]);
          continue;
        }
        // Down first: whole lines are added at once.
        const C* line = down.data();
        if (count == 1) {
          line = plane + some[0] * width;
        } else {
          std::fill_n(down.data(), width, C{0});
          for (const int64_t at : some) add_line<1>(plane + at * width, 1, width, down.data());
        }
        if constexpr (!is_half_v<T>)
          if (output.strides[4] == 1) {
            add_windows<C>(line, axes.columns, values);
            divide(values, by, outputs);
            continue;
          }
        add_windows<C>(line, axes.columns, sums.data());
        divide(sums.data(), by, outputs);
        for (int64_t x = 0; x < outputs; ++x) values[x * output.strides[4]] = T(sums[x]);
      }
    }
  });
}

// All channels of one output, next to each other.
template <typename T>
void average_of_pixels(const T* sample, const Layout& input, std::span<const int64_t> lines, const Axis& columns,
                       const Window& window, compute_t<T> divided_by, T* to) {
  if constexpr (is_integer_v<T>) {
    const int64_t channels = input.sizes[1];
    std::fill_n(to, channels, T{0});
    for_each_pixel(sample, input, lines, columns, window, [=](int64_t, const T* pixel) { add_line<1>(pixel, 1, channels, to); });
    for (int64_t c = 0; c < channels; ++c) to[c] /= divided_by;
  } else {
    using R = math::Vec<compute_t<T>>;
    for_channel_registers<compute_t<T>>(input.sizes[1], [&]<int K>(int64_t c, int64_t n) {
      R sums[K];
      for (R& sum : sums) sum = R(compute_t<T>{0});
      for_each_pixel(sample + c, input, lines, columns, window, [&](int64_t, const T* pixel) {
        for (int k = 0; k < K; ++k) sums[k] = sums[k] + load_some(pixel + k * R::size, n);
      });
      for (int k = 0; k < K; ++k) store_some<T>(sums[k] / R(divided_by), to + c + k * R::size, n);
    });
  }
}

template <typename T>
void average_by_channels(const T* in, const Layout& input, const Axes& axes, const Lines& lines, const Divisor& divisor, T* out,
                         const Layout& output) {
  using C = compute_t<T>;
  const int64_t channels = input.sizes[1], height = axes.lines(), width = axes.columns.outputs();
  const int64_t work = axes.work() / std::max<int64_t>(1, height) * channels;
  const bool in_place = output.strides[1] == 1;
  parallel_for(input.sizes[0] * height, grain_for(work), [&](int64_t begin, int64_t end) {
    Scratch<T> room(in_place ? 0 : channels);
    Divisors<C> divisors(axes, divisor);
    for (int64_t row = begin; row < end; ++row) {
      const int64_t y = row % height;
      const T* sample = in + row / height * input.strides[0];
      T* line = out + row / height * output.strides[0] + output.line(y);
      const auto some = lines.of(y);
      const C* by = divisors.of(static_cast<int64_t>(some.size()), lines.padded[y]);
      for (int64_t x = 0; x < width; ++x) {
        T* to = in_place ? line + x * output.strides[4] : room.data();
        average_of_pixels<T>(sample, input, some, axes.columns, axes.columns.windows[x], by[x], to);
        if (in_place) continue;
        for (int64_t c = 0; c < channels; ++c) line[x * output.strides[4] + c * output.strides[1]] = room[c];
      }
    }
  });
}

// Adds what each window gets to the elements of a line, of which each window takes those of its place.
template <typename C>
void spread_windows(const C* parts, const Axis& columns, C* line) {
  if (columns.regular && columns.stride == 1) {
    for (int64_t k = 0; k < columns.kernel; ++k) {
      const Reach reach(columns, k);
      add_line<1>(parts + reach.begin, 1, reach.end - reach.begin, line + reach.first);
    }
    return;
  }
  if (columns.regular) {
    for (int64_t k = 0; k < columns.kernel; ++k) {
      const Reach reach(columns, k);
      C* to = line + reach.first;
      for (int64_t x = reach.begin; x < reach.end; ++x, to += columns.stride) *to += parts[x];
    }
    return;
  }
  for (int64_t x = 0; x < columns.outputs(); ++x) {
    const Window& window = columns.windows[x];
    for (int64_t j = 0; j < window.count; ++j) line[window.first + j] += parts[x];
  }
}

// Every element of a window gets an equal part of its gradient.
template <typename T>
void average_backward_by_planes(const T* grad, const Layout& from, const Axes& axes, const Lines& lines, const Divisor& divisor,
                                T* out, const Layout& to) {
  using C = compute_t<T>;
  const int64_t width = axes.columns.inputs, outputs = axes.columns.outputs();
  parallel_for(to.planes(), grain_for(axes.work()), [&](int64_t begin, int64_t end) {
    Scratch<C> room(plane_room<T>(to)), along(width), parts(outputs);
    Divisors<C> divisors(axes, divisor);
    for (int64_t p = begin; p < end; ++p) {
      T* plane = out + to.plane(p);
      C* sums = open_plane<T>(plane, to, room.data());
      for (int64_t y = 0; y < axes.lines(); ++y) {
        const auto some = lines.of(y);
        if (some.empty()) continue;
        const C* by = divisors.of(static_cast<int64_t>(some.size()), lines.padded[y]);
        const T* values = grad + from.plane(p) + from.line(y);
        for (int64_t x = 0; x < outputs; ++x) parts[x] = static_cast<C>(values[x * from.strides[4]]);
        divide(parts.data(), by, outputs);
        if (some.size() == 1) {
          spread_windows<C>(parts.data(), axes.columns, sums + some[0] * width);
          continue;
        }
        std::fill_n(along.data(), width, C{0});
        spread_windows<C>(parts.data(), axes.columns, along.data());
        for (const int64_t at : some) add_line<1>(static_cast<const C*>(along.data()), 1, width, sums + at * width);
      }
      close_plane<T>(sums, plane, to);
    }
  });
}

template <typename T>
void average_backward_by_channels(const T* grad, const Layout& from, const Axes& axes, const Lines& lines, const Divisor& divisor,
                                  T* out, const Layout& to) {
  for_channel_blocks(to, axes.work(), [&](int64_t sample, int64_t first, int64_t end) {
    std::array<T, channel_block> parts;
    Divisors<T> divisors(axes, divisor);
    T* plane = out + sample * to.strides[0];
    clear_channels(plane, to, first, end);
    for (int64_t y = 0; y < axes.lines(); ++y) {
      const auto some = lines.of(y);
      if (some.empty()) continue;
      const T* by = divisors.of(static_cast<int64_t>(some.size()), lines.padded[y]);
      for (int64_t x = 0; x < axes.columns.outputs(); ++x) {
        const Window& columns = axes.columns.windows[x];
        const T* values = grad + sample * from.strides[0] + from.line(y) + x * from.strides[4];
        for (int64_t c = first; c < end; ++c) parts[c - first] = values[c * from.strides[1]] / by[x];
        for (const int64_t iy : some)
          for (int64_t ix = columns.first; ix < columns.first + columns.count; ++ix)
            add_line<1>(static_cast<const T*>(parts.data()), 1, end - first, plane + to.line(iy) + ix * to.strides[4] + first);
      }
    }
  });
}

// Of the mean of a plane, each of whose elements gets the same.
template <typename T>
void spread_means(const T* grad, const Layout& from, T* out, const Layout& to) {
  const int64_t size = to.plane_size();
  parallel_for(to.planes(), grain_for(size), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const auto value = static_cast<compute_t<T>>(grad[from.plane(p)]) / static_cast<compute_t<T>>(size);
      std::fill_n(out + to.plane(p), size, static_cast<T>(value));
    }
  });
}

template <typename Types>
void average_of(Call& call, const Layout& input, const Layout& output, const Axes& axes, const Divisor& divisor) {
  cb_tensor& out = call.output();
  const Lines lines(axes);
  dispatch<Types>(out.dtype, [&]<typename T>() {
    auto run = input.has_neighbouring_channels() ? average_by_channels<T> : average_by_planes<T>;
    run(data<T>(call.tensor(0)), input, axes, lines, divisor, mutable_data<T>(out), output);
  });
}

template <typename Types>
void average_backward_of(Call& call, const Layout& grad, const Layout& input, const Axes& axes, const Divisor& divisor) {
  cb_tensor& out = call.output();
  const Lines lines(axes);
  dispatch<Types>(out.dtype, [&]<typename T>() {
    auto run = average_backward_by_planes<T>;
    if constexpr (!is_half_v<T>)
      if (input.has_neighbouring_channels()) run = average_backward_by_channels<T>;
    run(data<T>(call.tensor(0)), grad, axes, lines, divisor, mutable_data<T>(out), input);
  });
}

using AverageTypes = decltype(FloatTypes{} + Types<int64_t>{});

// `first` is the position of count_include_pad; divisor_override follows.
Divisor divisor_of(Call& call, int first) {
  Divisor divisor{call.boolean(first), call.given(first + 1) ? call.integer(first + 1) : 0};
  if (call.given(first + 1) && divisor.fixed == 0) throw failure(CB_RUNTIME_ERROR, "divisor must be not zero");
  return divisor;
}

void avg_pool(Call& call) {
  Layout input(call.tensor(0)), output(call.output());
  Divisor divisor = divisor_of(call, 5);
  average_of<AverageTypes>(call, input, output, regular_axes(input, output, call.ints(1), call.ints(2), call.ints(3), {}), divisor);
}

void avg_pool_backward(Call& call) {
  Layout grad(call.tensor(0)), input(call.output());
  Divisor divisor = divisor_of(call, 6);
  average_backward_of<AverageTypes>(call, grad, input, regular_axes(input, grad, call.ints(2), call.ints(3), call.ints(4), {}),
                                    divisor);
}

void adaptive_avg_pool(Call& call) {
  Layout input(call.tensor(0)), output(call.output());
  // Of whole planes it is a mean.
  if (output.plane_size() == 1 && input.plane_size() != 0 && !input.has_neighbouring_channels())
    return dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() { reduce::sum_to<T, true>(call.tensor(0), call.output()); });
  average_of<FloatTypes>(call, input, output, adaptive_axes(input, output), {false, 0});
}

void adaptive_avg_pool_backward(Call& call) {
  Layout grad(call.tensor(0)), input(call.output());
  if (grad.plane_size() == 1 && input.has_contiguous_planes())
    return dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
      spread_means(data<T>(call.tensor(0)), grad, mutable_data<T>(call.output()), input);
    });
  average_backward_of<FloatTypes>(call, grad, input, adaptive_axes(input, grad), {false, 0});
}

}  // namespace

void register_pooling_average(KernelTable& table) {
  table.add<avg_pool>("avg_pool");
  table.add<avg_pool_backward>("avg_pool_backward");
  table.add<adaptive_avg_pool>("adaptive_avg_pool");
  table.add<adaptive_avg_pool_backward>("adaptive_avg_pool_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
