// Maximum and average pooling over one, two or three spatial dimensions, which are seen as three.
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
#include "kernels/reduce_sum.hpp"
#include "parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using namespace pooling;

// ---- planes

// A plane of the input as contiguous elements of the type to compute in.
template <typename T>
const compute_t<T>* load_plane(const T* plane, const Layout& layout, compute_t<T>* room) {
  const int64_t width = layout.sizes[4];
  if constexpr (!is_half_v<T>)
    if (layout.has_contiguous_planes()) return plane;
  for (int64_t y = 0; y < layout.lines(); ++y) {
    const T* row = plane + layout.line(y);
    if constexpr (is_half_v<T>)
      if (layout.strides[4] == 1) {
        to_float(row, room + y * width, width);
        continue;
      }
    for (int64_t x = 0; x < width; ++x) room[y * width + x] = static_cast<compute_t<T>>(row[x * layout.strides[4]]);
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
  const int64_t width = layout.sizes[4];
  for (int64_t y = 0; y < layout.lines(); ++y) {
    T* row = plane + layout.line(y);
    for (int64_t x = 0; x < width; ++x) row[x * layout.strides[4]] = T(sums[y * width + x]);
  }
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

// A line of outputs of one plane, made of some lines of the input.
template <typename C>
void max_line(const C* plane, const Axis& columns, std::span<const int64_t> lines, C* best, int32_t* indices) {
  const int64_t width = columns.inputs;
  for (int64_t x = 0; x < columns.outputs(); ++x) {
    const Window& window = columns.windows[x];
    best[x] = lowest<C>();
    indices[x] = window.count && !lines.empty() ? static_cast<int32_t>(lines[0] * width + window.first) : -1;
  }
  for (const int64_t y : lines) {
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
      const Reach reach(columns, k);
      const int64_t first = y * width + reach.first, stride = columns.stride;
      auto compare = stride == 1 ? compare_line<1, C> : stride == 2 ? compare_line<2, C> : compare_line<0, C>;
      compare(plane + first, stride, reach.end - reach.begin, static_cast<int32_t>(first), best + reach.begin,
              indices + reach.begin);
    }
  }
}

template <typename T>
void max_by_planes(const T* in, const Layout& input, const Axes& axes, const Lines& lines, T* out, const Layout& output,
                   int64_t* positions, const Layout& indices) {
  using C = compute_t<T>;
  int64_t width = axes.columns.outputs();
  parallel_for(input.planes(), grain_for(2 * axes.work()), [&](int64_t begin, int64_t end) {
    Scratch<C> room(plane_room<T>(input)), best(width);
    Scratch<int32_t> at(width);
    for (int64_t p = begin; p < end; ++p) {
      const C* plane = load_plane<T>(in + input.plane(p), input, room.data());
      for (int64_t y = 0; y < axes.lines(); ++y) {
        max_line<C>(plane, axes.columns, lines.of(y), best.data(), at.data());
        T* values = out + output.plane(p) + output.line(y);
        int64_t* places = positions + indices.plane(p) + indices.line(y);
        for (int64_t x = 0; x < width; ++x) values[x * output.strides[4]] = T(best[x]);
        for (int64_t x = 0; x < width; ++x) places[x * indices.strides[4]] = at[x];
      }
    }
  });
}

// ---- maximum without positions: down first, whole lines at once, then along the line that this gives

template <typename C>
[[gnu::always_inline]] inline C larger(C value, C best) {
  return takes(value, best) ? value : best;
}

template <int64_t Stride, typename C>
void raise_line(const C* line, int64_t stride, int64_t n, C* best) {
  const int64_t step = Stride ? Stride : stride;
#pragma omp simd
  for (int64_t x = 0; x < n; ++x) best[x] = larger(line[x * step], best[x]);
}

template <typename C>
void raise_windows(const C* line, const Axis& columns, C* best) {
  std::fill_n(best, columns.outputs(), lowest<C>());
  if (!columns.regular) {
    for (int64_t x = 0; x < columns.outputs(); ++x) {
      const Window& window = columns.windows[x];
      C value = best[x];
      for (int64_t at = window.first; at < window.first + window.count; ++at) value = larger(line[at], value);
      best[x] = value;
    }
    return;
  }
  for (int64_t k = 0; k < columns.kernel; ++k) {
    const Reach reach(columns, k);
    auto raise = columns.stride == 1 ? raise_line<1, C> : columns.stride == 2 ? raise_line<2, C> : raise_line<0, C>;
    raise(line + reach.first, columns.stride, reach.end - reach.begin, best + reach.begin);
  }
}

template <typename T>
void max_values(const T* in, const Layout& input, const Axes& axes, const Lines& lines, T* out, const Layout& output) {
  using C = compute_t<T>;
  const int64_t width = axes.columns.inputs, outputs = axes.columns.outputs();
  parallel_for(input.planes(), grain_for(axes.work()), [&](int64_t begin, int64_t end) {
    Scratch<C> room(plane_room<T>(input)), down(width), best(outputs);
    for (int64_t p = begin; p < end; ++p) {
      const C* plane = load_plane<T>(in + input.plane(p), input, room.data());
      for (int64_t y = 0; y < axes.lines(); ++y) {
        const auto some = lines.of(y);
        const C* line = down.data();
        if (some.size() == 1) {
          line = plane + some[0] * width;
        } else {
          std::fill_n(down.data(), width, lowest<C>());
          for (const int64_t at : some) raise_line<1>(plane + at * width, 1, width, down.data());
        }
        T* values = out + output.plane(p) + output.line(y);
        if constexpr (!is_half_v<T>)
          if (output.strides[4] == 1) {
            raise_windows<C>(line, axes.columns, values);
            continue;
          }
        raise_windows<C>(line, axes.columns, best.data());
        for (int64_t x = 0; x < outputs; ++x) values[x * output.strides[4]] = T(best[x]);
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
void store_channels(const compute_t<T>* from, int64_t channels, T* to, int64_t stride) {
  if constexpr (is_half_v<T>)
    if (stride == 1) return from_float(from, to, channels);
  for (int64_t c = 0; c < channels; ++c) to[c * stride] = T(from[c]);
}

// `positions` null: values alone.
template <typename T>
void max_by_channels(const T* in, const Layout& input, const Axes& axes, const Lines& lines, T* out, const Layout& output,
                     int64_t* positions, const Layout* indices) {
  using C = compute_t<T>;
  const int64_t channels = input.sizes[1], height = axes.lines(), width = axes.columns.outputs();
  const int64_t work = 2 * axes.work() / std::max<int64_t>(1, height) * channels;
  parallel_for(input.sizes[0] * height, grain_for(work), [&](int64_t begin, int64_t end) {
    Scratch<C> best(channels), room(is_half_v<T> ? channels : 0);
    Scratch<int32_t> at(channels);
    for (int64_t row = begin; row < end; ++row) {
      const int64_t sample = row / height, y = row % height;
      const auto some = lines.of(y);
      for (int64_t x = 0; x < width; ++x) {
        const Window& columns = axes.columns.windows[x];
        const bool empty = some.empty() || columns.count == 0;
        std::fill_n(best.data(), channels, lowest<C>());
        if (positions)
          std::fill_n(at.data(), channels, empty ? -1 : static_cast<int32_t>(some[0] * axes.columns.inputs + columns.first));
        for (const int64_t iy : some)
          for (int64_t j = 0; j < columns.count; ++j) {
            const int64_t ix = columns.first + j * axes.columns.step;
            const C* pixel =
                load_channels<T>(in + sample * input.strides[0] + input.line(iy) + ix * input.strides[4], channels, room.data());
            C* largest = best.data();
            if (!positions) {
              raise_line<1>(pixel, 1, channels, largest);
              continue;
            }
            const auto place = static_cast<int32_t>(iy * axes.columns.inputs + ix);
            int32_t* where = at.data();
#pragma omp simd
            for (int64_t c = 0; c < channels; ++c) {
              bool better = takes(pixel[c], largest[c]);
              largest[c] = better ? pixel[c] : largest[c];
              where[c] = better ? place : where[c];
            }
          }
        T* values = out + sample * output.strides[0] + output.line(y) + x * output.strides[4];
        store_channels<T>(best.data(), channels, values, output.strides[1]);
        if (!positions) continue;
        int64_t* places = positions + sample * indices->strides[0] + indices->line(y) + x * indices->strides[4];
        for (int64_t c = 0; c < channels; ++c) places[c * indices->strides[1]] = at[c];
      }
    }
  });
}

template <typename Types>
void max_of(Call& call, const Layout& input, const Layout& output, const Axes& axes) {
  if (input.plane_size() > std::numeric_limits<int32_t>::max())
    throw failure(CB_RUNTIME_ERROR, "%s: a plane of %lld elements is too large", call.raw()->operator_name,
                  static_cast<long long>(input.plane_size()));
  const Lines lines(axes);
  cb_tensor &out = call.output(0), &indices = call.output(1);
  const Layout places(indices);
  dispatch<Types>(out.dtype, [&]<typename T>() {
    const T* from = data<T>(call.tensor(0));
    T* to = mutable_data<T>(out);
    if (input.has_neighbouring_channels())
      max_by_channels<T>(from, input, axes, lines, to, output, mutable_data<int64_t>(indices), &places);
    else
      max_by_planes<T>(from, input, axes, lines, to, output, mutable_data<int64_t>(indices), places);
  });
}

void max_pool(Call& call) {
  Layout input(call.tensor(0)), output(call.output(0));
  max_of<RealTypes>(call, input, output, regular_axes(input, output, call.ints(1), call.ints(2), call.ints(3), call.ints(4)));
}

void max_pool_values(Call& call) {
  const Layout input(call.tensor(0)), output(call.output());
  const Axes axes = regular_axes(input, output, call.ints(1), call.ints(2), call.ints(3), call.ints(4));
  const Lines lines(axes);
  dispatch<RealTypes>(call.output().dtype, [&]<typename T>() {
    const T* from = data<T>(call.tensor(0));
    T* to = mutable_data<T>(call.output());
    if (input.has_neighbouring_channels())
      max_by_channels<T>(from, input, axes, lines, to, output, nullptr, nullptr);
    else
      max_values<T>(from, input, axes, lines, to, output);
  });
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
  for (int64_t y = 0; y < layout.lines(); ++y)
    for (int64_t x = 0; x < layout.sizes[4]; ++x)
      std::fill_n(sample + layout.line(y) + x * layout.strides[4] + first, end - first, T{0});
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
    for (int64_t y = 0; y < from.lines(); ++y)
      for (int64_t x = 0; x < from.sizes[4]; ++x) {
        const T* values = grad + sample * from.strides[0] + from.line(y) + x * from.strides[4];
        const int64_t* at = indices + sample * places.strides[0] + places.line(y) + x * places.strides[4];
        for (int64_t c = first; c < end; ++c) {
          int64_t index = at[c * places.strides[1]];
          if (index == -1) continue;
          if (index < 0 || index >= inputs) [[unlikely]]
            refuse_index(index, inputs);
          plane[index * to.strides[4] + c] += values[c * from.strides[1]];
        }
      }
  });
}

void max_pool_backward(Call& call) {
  const cb_tensor &grad = call.tensor(0), &indices = call.tensor(1);
  cb_tensor& out = call.output();
  Layout from(grad), places(indices), to(out);
  int64_t outputs = from.plane_size(), inputs = to.plane_size(), width = from.sizes[4];
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
        for (int64_t y = 0; y < from.lines(); ++y) {
          const T* line = values + from.line(y);
          const int64_t* places_of_line = at + places.line(y);
          for (int64_t x = 0; x < width; ++x) {
            const int64_t index = places_of_line[x * places.strides[4]];
            if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(inputs)) [[unlikely]] {
              if (index == -1) continue;  // of a window that lies in the padding as a whole
              refuse_index(index, inputs);
            }
            sums[index] += static_cast<C>(line[x * from.strides[4]]);
          }
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

template <typename T>
void average_by_channels(const T* in, const Layout& input, const Axes& axes, const Lines& lines, const Divisor& divisor, T* out,
                         const Layout& output) {
  using C = compute_t<T>;
  const int64_t channels = input.sizes[1], height = axes.lines(), width = axes.columns.outputs();
  const int64_t work = axes.work() / std::max<int64_t>(1, height) * channels;
  parallel_for(input.sizes[0] * height, grain_for(work), [&](int64_t begin, int64_t end) {
    Scratch<C> sums(channels), room(is_half_v<T> ? channels : 0);
    Divisors<C> divisors(axes, divisor);
    for (int64_t row = begin; row < end; ++row) {
      const int64_t sample = row / height, y = row % height;
      const auto some = lines.of(y);
      const C* by = divisors.of(static_cast<int64_t>(some.size()), lines.padded[y]);
      for (int64_t x = 0; x < width; ++x) {
        const Window& columns = axes.columns.windows[x];
        std::fill_n(sums.data(), channels, C{0});
        for (const int64_t iy : some)
          for (int64_t ix = columns.first; ix < columns.first + columns.count; ++ix) {
            const C* pixel =
                load_channels<T>(in + sample * input.strides[0] + input.line(iy) + ix * input.strides[4], channels, room.data());
            add_line<1>(pixel, 1, channels, sums.data());
          }
        C* total = sums.data();
        const C divided_by = by[x];
#pragma omp simd
        for (int64_t c = 0; c < channels; ++c) total[c] /= divided_by;
        store_channels<T>(total, channels, out + sample * output.strides[0] + output.line(y) + x * output.strides[4],
                          output.strides[1]);
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

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
