// Maximum and average pooling over one or two spatial dimensions. One spatial dimension is seen as two with a height of 1.
//
// Two ways through memory: plane by plane (a plane that is not contiguous, or of a half precision, is first gathered as a
// contiguous one of the type to compute in), and, where channels lie next to each other, all channels of a pixel at once.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "allocator.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "kernels/pooling_windows.hpp"
#include "parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using namespace pooling;

// ---- planes

// A plane of the input as contiguous elements of the type to compute in.
template <typename T>
const compute_t<T>* load_plane(const T* plane, const Layout& layout, compute_t<T>* room) {
  int64_t height = layout.sizes[2], width = layout.sizes[3];
  if constexpr (!is_half_v<T>)
    if (layout.has_contiguous_planes()) return plane;
  for (int64_t y = 0; y < height; ++y) {
    const T* row = plane + y * layout.strides[2];
    if constexpr (is_half_v<T>)
      if (layout.strides[3] == 1) {
        to_float(row, room + y * width, width);
        continue;
      }
    for (int64_t x = 0; x < width; ++x) room[y * width + x] = static_cast<compute_t<T>>(row[x * layout.strides[3]]);
  }
  return room;
}

// Elements that load_plane needs room for.
template <typename T>
int64_t plane_room(const Layout& layout) {
  return is_half_v<T> || !layout.has_contiguous_planes() ? layout.plane_size() : 0;
}

// A plane of zeros to add to: the result's own memory where that is contiguous and of the right type, else room that is stored
// after.
template <typename T>
compute_t<T>* open_plane(T* plane, const Layout& layout, compute_t<T>* room) {
  compute_t<T>* sums = room;
  if constexpr (!is_half_v<T>)
    if (layout.has_contiguous_planes()) sums = plane;
  std::fill_n(sums, layout.plane_size(), compute_t<T>{0});
  return sums;
}
template <typename T>
void close_plane(const compute_t<T>* sums, T* plane, const Layout& layout) {
  if (static_cast<const void*>(sums) == static_cast<const void*>(plane)) return;
  int64_t width = layout.sizes[3];
  for (int64_t y = 0; y < layout.sizes[2]; ++y)
    for (int64_t x = 0; x < width; ++x) plane[y * layout.strides[2] + x * layout.strides[3]] = T(sums[y * width + x]);
}

// ---- maximum

// Whether a value takes the place of the largest one until now: NaN wins, and stays.
template <typename C>
[[gnu::always_inline]] inline bool takes(C value, C best) {
  return value > best || value != value;
}

template <typename C>
constexpr C lowest() {
  return std::numeric_limits<C>::has_infinity ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::lowest();
}

// One line of the input against a row of windows, for one place in their width. Stride is a constant for the usual ones, so that
// the compiler loads whole vectors.
template <int64_t Stride, typename C>
void compare_line(const C* line, int64_t stride, int64_t n, int32_t index, C* best, int32_t* indices) {
  int64_t step = Stride ? Stride : stride;
#pragma omp simd
  for (int64_t x = 0; x < n; ++x) {
    C value = line[x * step];
    bool better = takes(value, best[x]);
    best[x] = better ? value : best[x];
    indices[x] = better ? index + static_cast<int32_t>(x * step) : indices[x];
  }
}

// A row of outputs of one plane, windows at equal distances.
template <typename C>
void max_row(const C* plane, const Axes& axes, const Window& rows, C* best, int32_t* indices) {
  const Axis& columns = axes.columns;
  int64_t width = columns.inputs;
  for (int64_t x = 0; x < columns.outputs(); ++x) {
    const Window& window = columns.windows[x];
    best[x] = lowest<C>();
    indices[x] = window.count && rows.count ? static_cast<int32_t>(rows.first * width + window.first) : -1;
  }
  for (int64_t i = 0; i < rows.count; ++i) {
    int64_t y = rows.first + i * axes.rows.step;
    if (!columns.regular) {
      for (int64_t x = 0; x < columns.outputs(); ++x) {
        const Window& window = columns.windows[x];
        for (int64_t at = window.first; at < window.first + window.count; ++at)
          if (takes(plane[y * width + at], best[x])) {
            best[x] = plane[y * width + at];
            indices[x] = static_cast<int32_t>(y * width + at);
          }
      }
      continue;
    }
    for (int64_t k = 0; k < columns.kernel; ++k) {
      int64_t offset = k * columns.step - columns.padding, stride = columns.stride;
      int64_t begin = offset < 0 ? std::min((-offset + stride - 1) / stride, columns.outputs()) : 0;
      int64_t end = offset >= width ? begin : std::clamp((width - 1 - offset) / stride + 1, begin, columns.outputs());
      int64_t first = y * width + begin * stride + offset;
      auto compare = stride == 1 ? compare_line<1, C> : stride == 2 ? compare_line<2, C> : compare_line<0, C>;
      compare(plane + first, stride, end - begin, static_cast<int32_t>(first), best + begin, indices + begin);
    }
  }
}

template <typename T>
void max_by_planes(const T* in, const Layout& input, const Axes& axes, T* out, const Layout& output, int64_t* positions,
                   const Layout& indices) {
  using C = compute_t<T>;
  int64_t width = axes.columns.outputs();
  parallel_for(input.planes(), grain_for(2 * axes.work()), [&](int64_t begin, int64_t end) {
    Scratch<C> room(plane_room<T>(input)), best(width);
    Scratch<int32_t> at(width);
    for (int64_t p = begin; p < end; ++p) {
      const C* plane = load_plane<T>(in + input.plane(p), input, room.data());
      for (int64_t y = 0; y < axes.rows.outputs(); ++y) {
        max_row<C>(plane, axes, axes.rows.windows[y], best.data(), at.data());
        T* values = out + output.plane(p) + y * output.strides[2];
        int64_t* places = positions + indices.plane(p) + y * indices.strides[2];
        for (int64_t x = 0; x < width; ++x) values[x * output.strides[3]] = T(best[x]);
        for (int64_t x = 0; x < width; ++x) places[x * indices.strides[3]] = at[x];
      }
    }
  });
}

// Elements of one pixel, as the type to compute in.
template <typename T>
const compute_t<T>* load_channels(const T* pixel, int64_t channels, compute_t<T>* room) {
  if constexpr (is_half_v<T>) {
    to_float(pixel, room, channels);
    return room;
  } else {
    return pixel;
  }
}

template <typename T>
void max_by_channels(const T* in, const Layout& input, const Axes& axes, T* out, const Layout& output, int64_t* positions,
                     const Layout& indices) {
  using C = compute_t<T>;
  int64_t channels = input.sizes[1], height = axes.rows.outputs(), width = axes.columns.outputs();
  parallel_for(input.sizes[0] * height, grain_for(2 * axes.work() / std::max<int64_t>(1, height) * channels),
               [&](int64_t begin, int64_t end) {
                 Scratch<C> best(channels), room(is_half_v<T> ? channels : 0);
                 Scratch<int32_t> at(channels);
                 for (int64_t row = begin; row < end; ++row) {
                   int64_t sample = row / height, y = row % height;
                   const Window& rows = axes.rows.windows[y];
                   for (int64_t x = 0; x < width; ++x) {
                     const Window& columns = axes.columns.windows[x];
                     bool empty = rows.count == 0 || columns.count == 0;
                     std::fill_n(best.data(), channels, lowest<C>());
                     std::fill_n(at.data(), channels,
                                 empty ? -1 : static_cast<int32_t>(rows.first * axes.columns.inputs + columns.first));
                     for (int64_t i = 0; i < rows.count; ++i)
                       for (int64_t j = 0; j < columns.count; ++j) {
                         int64_t iy = rows.first + i * axes.rows.step, ix = columns.first + j * axes.columns.step;
                         const C* pixel = load_channels<T>(
                             in + sample * input.strides[0] + iy * input.strides[2] + ix * input.strides[3], channels, room.data());
                         int32_t place = static_cast<int32_t>(iy * axes.columns.inputs + ix);
                         C* largest = best.data();
                         int32_t* where = at.data();
#pragma omp simd
                         for (int64_t c = 0; c < channels; ++c) {
                           bool better = takes(pixel[c], largest[c]);
                           largest[c] = better ? pixel[c] : largest[c];
                           where[c] = better ? place : where[c];
                         }
                       }
                     T* values = out + sample * output.strides[0] + y * output.strides[2] + x * output.strides[3];
                     int64_t* places = positions + sample * indices.strides[0] + y * indices.strides[2] + x * indices.strides[3];
                     for (int64_t c = 0; c < channels; ++c) values[c * output.strides[1]] = T(best[c]);
                     for (int64_t c = 0; c < channels; ++c) places[c * indices.strides[1]] = at[c];
                   }
                 }
               });
}

template <typename Types>
void max_of(Call& call, const Layout& input, const Layout& output, const Axes& axes) {
  if (input.plane_size() > std::numeric_limits<int32_t>::max())
    throw failure(CB_RUNTIME_ERROR, "%s: a plane of %lld x %lld elements is too large", call.raw()->operator_name,
                  static_cast<long long>(input.sizes[2]), static_cast<long long>(input.sizes[3]));
  cb_tensor &out = call.output(0), &indices = call.output(1);
  dispatch<Types>(out.dtype, [&]<typename T>() {
    auto run = input.has_neighbouring_channels() ? max_by_channels<T> : max_by_planes<T>;
    run(data<T>(call.tensor(0)), input, axes, mutable_data<T>(out), output, mutable_data<int64_t>(indices), Layout(indices));
  });
}

void max_pool(Call& call) {
  Layout input(call.tensor(0)), output(call.output(0));
  max_of<RealTypes>(call, input, output, regular_axes(input, output, call.ints(1), call.ints(2), call.ints(3), call.ints(4)));
}

void adaptive_max_pool(Call& call) {
  Layout input(call.tensor(0)), output(call.output(0));
  max_of<FloatTypes>(call, input, output, adaptive_axes(input, output));
}

constexpr int64_t channel_block = 64;

// Calls body(sample, first, end) for blocks of neighbouring channels: nothing is added to one element by two threads.
template <typename F>
void for_channel_blocks(const Layout& layout, int64_t work, F&& body) {
  constexpr int64_t block = channel_block;
  int64_t channels = layout.sizes[1], blocks = (channels + block - 1) / block;
  parallel_for(layout.sizes[0] * blocks, grain_for(work * std::min(block, channels)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i / blocks, i % blocks * block, std::min(channels, (i % blocks + 1) * block));
  });
}

template <typename T>
void clear_channels(T* sample, const Layout& layout, int64_t first, int64_t end) {
  for (int64_t y = 0; y < layout.sizes[2]; ++y)
    for (int64_t x = 0; x < layout.sizes[3]; ++x)
      std::fill_n(sample + y * layout.strides[2] + x * layout.strides[3] + first, end - first, T{0});
}

[[noreturn]] [[gnu::cold]] void refuse_index(int64_t index, int64_t inputs) {
  throw failure(CB_INDEX_ERROR, "max_pool_backward(): index %lld is out of bounds for a plane of %lld elements",
                static_cast<long long>(index), static_cast<long long>(inputs));
}

template <typename T>
void max_backward_by_channels(const T* grad, const Layout& from, const int64_t* indices, const Layout& places, T* out,
                              const Layout& to) {
  int64_t inputs = to.plane_size();
  for_channel_blocks(to, inputs + 4 * from.plane_size(), [&](int64_t sample, int64_t first, int64_t end) {
    T* plane = out + sample * to.strides[0];
    clear_channels(plane, to, first, end);
    for (int64_t y = 0; y < from.sizes[2]; ++y)
      for (int64_t x = 0; x < from.sizes[3]; ++x) {
        const T* values = grad + sample * from.strides[0] + y * from.strides[2] + x * from.strides[3];
        const int64_t* at = indices + sample * places.strides[0] + y * places.strides[2] + x * places.strides[3];
        for (int64_t c = first; c < end; ++c) {
          int64_t index = at[c * places.strides[1]];
          if (index == -1) continue;
          if (index < 0 || index >= inputs) [[unlikely]]
            refuse_index(index, inputs);
          plane[index * to.strides[3] + c] += values[c * from.strides[1]];
        }
      }
  });
}

void max_pool_backward(Call& call) {
  const cb_tensor &grad = call.tensor(0), &indices = call.tensor(1);
  cb_tensor& out = call.output();
  Layout from(grad), places(indices), to(out);
  int64_t outputs = from.plane_size(), inputs = to.plane_size(), width = from.sizes[3];
  dispatch<FloatTypes>(out.dtype, [&]<typename T>() {
    using C = compute_t<T>;
    if constexpr (!is_half_v<T>)  // which add up in float32, in room of their own
      if (to.has_neighbouring_channels() && to.has_joined_planes())
        return max_backward_by_channels<T>(data<T>(grad), from, data<int64_t>(indices), places, mutable_data<T>(out), to);
    parallel_for(to.planes(), grain_for(inputs + 4 * outputs), [&](int64_t begin, int64_t end) {
      Scratch<C> room(plane_room<T>(to));
      for (int64_t p = begin; p < end; ++p) {
        T* plane = mutable_data<T>(out) + to.plane(p);
        C* sums = open_plane<T>(plane, to, room.data());
        const T* values = data<T>(grad) + from.plane(p);
        const int64_t* at = data<int64_t>(indices) + places.plane(p);
        for (int64_t y = 0; y < from.sizes[2]; ++y)
          for (int64_t x = 0; x < width; ++x) {
            int64_t index = at[y * places.strides[2] + x * places.strides[3]];
            if (index == -1) continue;  // of a window that lies in the padding as a whole
            if (index < 0 || index >= inputs) [[unlikely]]
              refuse_index(index, inputs);
            sums[index] += static_cast<C>(values[y * from.strides[2] + x * from.strides[3]]);
          }
        close_plane<T>(sums, plane, to);
      }
    });
  });
}

// ---- average

// What the sum over a window is divided by.
struct Divisor {
  bool count_padding;
  int64_t fixed;  // 0: none

  int64_t of(const Window& rows, const Window& columns) const {
    if (fixed) return fixed;
    return count_padding ? rows.padded * columns.padded : rows.count * columns.count;
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

template <typename T>
void average_by_planes(const T* in, const Layout& input, const Axes& axes, const Divisor& divisor, T* out, const Layout& output) {
  using C = compute_t<T>;
  int64_t width = axes.columns.inputs;
  bool whole_lines = axes.columns.outputs() == 1 && axes.columns.windows[0].count == width && width > 0;
  parallel_for(input.planes(), grain_for(axes.work()), [&](int64_t begin, int64_t end) {
    Scratch<C> room(plane_room<T>(input)), sums(width);
    for (int64_t p = begin; p < end; ++p) {
      const C* plane = load_plane<T>(in + input.plane(p), input, room.data());
      for (int64_t y = 0; y < axes.rows.outputs(); ++y) {
        const Window& rows = axes.rows.windows[y];
        if (whole_lines && rows.count) {
          C sum = sum_block<C>(plane + rows.first * width, rows.count * width);
          out[output.plane(p) + y * output.strides[2]] = T(sum / static_cast<C>(divisor.of(rows, axes.columns.windows[0])));
          continue;
        }
        // Down first: whole lines are added at once.
        std::fill_n(sums.data(), width, C{0});
        for (int64_t i = 0; i < rows.count; ++i) {
          const C* line = plane + (rows.first + i) * width;
          C* total = sums.data();
#pragma omp simd
          for (int64_t x = 0; x < width; ++x) total[x] += line[x];
        }
        T* values = out + output.plane(p) + y * output.strides[2];
        for (int64_t x = 0; x < axes.columns.outputs(); ++x) {
          const Window& columns = axes.columns.windows[x];
          C sum{0};
          for (int64_t j = 0; j < columns.count; ++j) sum += sums[columns.first + j];
          bool empty = rows.count == 0 || columns.count == 0;
          values[x * output.strides[3]] = T(empty ? C{0} : sum / static_cast<C>(divisor.of(rows, columns)));
        }
      }
    }
  });
}

template <typename T>
void average_by_channels(const T* in, const Layout& input, const Axes& axes, const Divisor& divisor, T* out, const Layout& output) {
  using C = compute_t<T>;
  int64_t channels = input.sizes[1], height = axes.rows.outputs(), width = axes.columns.outputs();
  parallel_for(input.sizes[0] * height, grain_for(axes.work() / std::max<int64_t>(1, height) * channels),
               [&](int64_t begin, int64_t end) {
                 Scratch<C> sums(channels), room(is_half_v<T> ? channels : 0);
                 for (int64_t row = begin; row < end; ++row) {
                   int64_t sample = row / height, y = row % height;
                   const Window& rows = axes.rows.windows[y];
                   for (int64_t x = 0; x < width; ++x) {
                     const Window& columns = axes.columns.windows[x];
                     std::fill_n(sums.data(), channels, C{0});
                     for (int64_t iy = rows.first; iy < rows.first + rows.count; ++iy)
                       for (int64_t ix = columns.first; ix < columns.first + columns.count; ++ix) {
                         const C* pixel = load_channels<T>(
                             in + sample * input.strides[0] + iy * input.strides[2] + ix * input.strides[3], channels, room.data());
                         C* total = sums.data();
#pragma omp simd
                         for (int64_t c = 0; c < channels; ++c) total[c] += pixel[c];
                       }
                     bool empty = rows.count == 0 || columns.count == 0;
                     C by = empty ? C{1} : static_cast<C>(divisor.of(rows, columns));
                     T* values = out + sample * output.strides[0] + y * output.strides[2] + x * output.strides[3];
                     for (int64_t c = 0; c < channels; ++c) values[c * output.strides[1]] = T(sums[c] / by);
                   }
                 }
               });
}

// Every element of a window gets an equal part of its gradient.
template <typename T>
void average_backward_by_planes(const T* grad, const Layout& from, const Axes& axes, const Divisor& divisor, T* out,
                                const Layout& to) {
  using C = compute_t<T>;
  int64_t width = axes.columns.inputs;
  parallel_for(to.planes(), grain_for(axes.work()), [&](int64_t begin, int64_t end) {
    Scratch<C> room(plane_room<T>(to)), parts(width);
    for (int64_t p = begin; p < end; ++p) {
      T* plane = out + to.plane(p);
      C* sums = open_plane<T>(plane, to, room.data());
      for (int64_t y = 0; y < axes.rows.outputs(); ++y) {
        const Window& rows = axes.rows.windows[y];
        if (rows.count == 0) continue;
        std::fill_n(parts.data(), width, C{0});
        const T* values = grad + from.plane(p) + y * from.strides[2];
        for (int64_t x = 0; x < axes.columns.outputs(); ++x) {
          const Window& columns = axes.columns.windows[x];
          if (columns.count == 0) continue;
          C part = static_cast<C>(values[x * from.strides[3]]) / static_cast<C>(divisor.of(rows, columns));
          for (int64_t j = 0; j < columns.count; ++j) parts[columns.first + j] += part;
        }
        for (int64_t i = 0; i < rows.count; ++i) {
          C* line = sums + (rows.first + i) * width;
          const C* added = parts.data();
#pragma omp simd
          for (int64_t x = 0; x < width; ++x) line[x] += added[x];
        }
      }
      close_plane<T>(sums, plane, to);
    }
  });
}

template <typename T>
void average_backward_by_channels(const T* grad, const Layout& from, const Axes& axes, const Divisor& divisor, T* out,
                                  const Layout& to) {
  for_channel_blocks(to, axes.work(), [&](int64_t sample, int64_t first, int64_t end) {
    std::array<T, channel_block> parts;
    T* plane = out + sample * to.strides[0];
    clear_channels(plane, to, first, end);
    for (int64_t y = 0; y < axes.rows.outputs(); ++y)
      for (int64_t x = 0; x < axes.columns.outputs(); ++x) {
        const Window &rows = axes.rows.windows[y], &columns = axes.columns.windows[x];
        if (rows.count == 0 || columns.count == 0) continue;
        const T* values = grad + sample * from.strides[0] + y * from.strides[2] + x * from.strides[3];
        T by = static_cast<T>(divisor.of(rows, columns));
        for (int64_t c = first; c < end; ++c) parts[c - first] = values[c * from.strides[1]] / by;
        for (int64_t iy = rows.first; iy < rows.first + rows.count; ++iy)
          for (int64_t ix = columns.first; ix < columns.first + columns.count; ++ix) {
            T* pixel = plane + iy * to.strides[2] + ix * to.strides[3] + first;
#pragma omp simd
            for (int64_t c = 0; c < end - first; ++c) pixel[c] += parts[c];
          }
      }
  });
}

template <typename Types>
void average_of(Call& call, const Layout& input, const Layout& output, const Axes& axes, const Divisor& divisor) {
  cb_tensor& out = call.output();
  dispatch<Types>(out.dtype, [&]<typename T>() {
    auto run = input.has_neighbouring_channels() ? average_by_channels<T> : average_by_planes<T>;
    run(data<T>(call.tensor(0)), input, axes, divisor, mutable_data<T>(out), output);
  });
}

template <typename Types>
void average_backward_of(Call& call, const Layout& grad, const Layout& input, const Axes& axes, const Divisor& divisor) {
  cb_tensor& out = call.output();
  dispatch<Types>(out.dtype, [&]<typename T>() {
    auto run = average_backward_by_planes<T>;
    if constexpr (!is_half_v<T>)
      if (input.has_neighbouring_channels()) run = average_backward_by_channels<T>;
    run(data<T>(call.tensor(0)), grad, axes, divisor, mutable_data<T>(out), input);
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
  average_of<FloatTypes>(call, input, output, adaptive_axes(input, output), {false, 0});
}

void adaptive_avg_pool_backward(Call& call) {
  Layout grad(call.tensor(0)), input(call.output());
  average_backward_of<FloatTypes>(call, grad, input, adaptive_axes(input, grad), {false, 0});
}

}  // namespace

void register_pooling(KernelTable& table) {
  table.add<max_pool>("max_pool");
  table.add<adaptive_max_pool>("adaptive_max_pool");
  table.add<max_pool_backward>("max_pool_backward");
  table.add<avg_pool>("avg_pool");
  table.add<avg_pool_backward>("avg_pool_backward");
  table.add<adaptive_avg_pool>("adaptive_avg_pool");
  table.add<adaptive_avg_pool_backward>("adaptive_avg_pool_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
