// Maximum pooling over one, two or three spatial dimensions, which are seen as three. Averages are in pooling_average.cpp.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "allocator.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "kernels/pooling_planes.hpp"
#include "kernels/reduce_extremum.hpp"
#include "parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using namespace pooling;

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

// The largest of some elements next to each other: the first one, or the last NaN.
template <typename C>
int64_t place_of_largest(const C* values, int64_t n) {
  const C largest = reduce::Extremum<C, true>::of(values, n);
  if (largest != largest) {
    int64_t at = n - 1;
    while (values[at] == values[at]) --at;
    return at;
  }
  constexpr int64_t block = 16;
  int64_t at = 0;
  for (; at + block <= n; at += block) {
    int found = 0;
#pragma omp simd reduction(| : found)
    for (int64_t k = 0; k < block; ++k) found |= values[at + k] == largest;
    if (found) break;
  }
  while (values[at] != largest) ++at;
  return at;
}

// Windows of all places and lengths: whole lines are compared first, then the columns of each window. Of equal values the one that
// comes first in the plane counts, and of NaN the last one.
template <typename C>
void max_adaptive_line(const C* plane, const Axis& columns, std::span<const int64_t> lines, C* best, int32_t* indices, C* down,
                       int32_t* down_at) {
  const int64_t width = columns.inputs;
  if (lines.size() == 1) {
    const C* line = plane + lines[0] * width;
    for (int64_t x = 0; x < columns.outputs(); ++x) {
      const Window& window = columns.windows[x];
      if (window.count == 0) continue;
      const int64_t at = window.first + place_of_largest(line + window.first, window.count);
      best[x] = line[at];
      indices[x] = static_cast<int32_t>(lines[0] * width + at);
    }
    return;
  }
  for (int64_t c = 0; c < width; ++c) {
    down[c] = lowest<C>();
    down_at[c] = static_cast<int32_t>(lines[0] * width + c);
  }
  for (const int64_t y : lines) compare_line<1>(plane + y * width, 1, width, static_cast<int32_t>(y * width), down, down_at);
  for (int64_t x = 0; x < columns.outputs(); ++x) {
    const Window& window = columns.windows[x];
    if (window.count == 0) continue;
    C largest = down[window.first];
    int32_t at = down_at[window.first];
    for (int64_t c = window.first + 1; c < window.first + window.count; ++c) {
      const C value = down[c];
      const bool both = value == largest || (value != value && largest != largest);
      const bool better = both ? (value != value ? down_at[c] > at : down_at[c] < at) : takes(value, largest);
      largest = better ? value : largest;
      at = better ? down_at[c] : at;
    }
    best[x] = largest;
    indices[x] = at;
  }
}

// A line of outputs of one plane, made of some lines of the input.
template <typename C>
void max_line(const C* plane, const Axis& columns, std::span<const int64_t> lines, C* best, int32_t* indices, C* down,
              int32_t* down_at) {
  const int64_t width = columns.inputs;
  for (int64_t x = 0; x < columns.outputs(); ++x) {
    const Window& window = columns.windows[x];
    best[x] = lowest<C>();
    indices[x] = window.count && !lines.empty() ? static_cast<int32_t>(lines[0] * width + window.first) : -1;
  }
  if (lines.empty()) return;
  if (!columns.regular) return max_adaptive_line(plane, columns, lines, best, indices, down, down_at);
  for (const int64_t y : lines) {
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
    const int64_t beside = axes.columns.regular ? 0 : axes.columns.inputs;
    Scratch<C> room(plane_room<T>(input)), best(width), down(beside);
    Scratch<int32_t> at(width), down_at(beside);
    for (int64_t p = begin; p < end; ++p) {
      const C* plane = load_plane<T>(in + input.plane(p), input, room.data());
      for (int64_t y = 0; y < axes.lines(); ++y) {
        max_line<C>(plane, axes.columns, lines.of(y), best.data(), at.data(), down.data(), down_at.data());
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

// The largest values of all channels of one output, next to each other, and where they are; `places` null: values alone. `none` is
// the place where no value is above the lowest one.
template <typename T>
void max_of_pixels(const T* sample, const Layout& input, std::span<const int64_t> lines, const Axis& columns, const Window& window,
                   int64_t none, T* to, int64_t* places) {
  using C = compute_t<T>;
  if constexpr (is_integer_v<T>) {
    const int64_t channels = input.sizes[1];
    std::fill_n(to, channels, lowest<T>());
    if (places) std::fill_n(places, channels, none);
    for_each_pixel(sample, input, lines, columns, window, [=](int64_t place, const T* pixel) {
      if (!places) return raise_line<1>(pixel, 1, channels, to);
#pragma omp simd
      for (int64_t c = 0; c < channels; ++c) {
        const bool better = takes(pixel[c], to[c]);
        to[c] = better ? pixel[c] : to[c];
        places[c] = better ? place : places[c];
      }
    });
  } else {
    // Places are numbers of a register's own width, as bits.
    using R = math::Vec<C>;
    using Place = std::conditional_t<sizeof(C) == 4, int32_t, int64_t>;
    const auto as_bits = [](int64_t place) { return R(std::bit_cast<C>(static_cast<Place>(place))); };
    const auto is_better = [](R value, R best) { return (value > best) | (value != value); };
    for_channel_registers<C>(input.sizes[1], [&]<int K>(int64_t c, int64_t n) {
      R best[K], at[K];
      for (R& value : best) value = R(lowest<C>());
      if (!places) {
        for_each_pixel(sample + c, input, lines, columns, window, [&](int64_t, const T* pixel) {
          for (int k = 0; k < K; ++k) {
            const R value = load_some(pixel + k * R::size, n);
            best[k] = select(is_better(value, best[k]), value, best[k]);
          }
        });
      } else {
        for (R& place : at) place = as_bits(none);
        for_each_pixel(sample + c, input, lines, columns, window, [&](int64_t here, const T* pixel) {
          const R place = as_bits(here);
          for (int k = 0; k < K; ++k) {
            const R value = load_some(pixel + k * R::size, n);
            const auto better = is_better(value, best[k]);
            best[k] = select(better, value, best[k]);
            at[k] = select(better, place, at[k]);
          }
        });
        for (int k = 0; k < K; ++k) {
          alignas(64) C bits[R::size];
          at[k].store(bits);
          for (int64_t i = 0; i < n; ++i) places[c + k * R::size + i] = std::bit_cast<Place>(bits[i]);
        }
      }
      for (int k = 0; k < K; ++k) store_some<T>(best[k], to + c + k * R::size, n);
    });
  }
}

// `positions` null: values alone.
template <typename T>
void max_by_channels(const T* in, const Layout& input, const Axes& axes, const Lines& lines, T* out, const Layout& output,
                     int64_t* positions, const Layout* indices) {
  const int64_t channels = input.sizes[1], height = axes.lines(), width = axes.columns.outputs();
  const int64_t work = 2 * axes.work() / std::max<int64_t>(1, height) * channels;
  const bool in_place = output.strides[1] == 1 && (!positions || indices->strides[1] == 1);
  parallel_for(input.sizes[0] * height, grain_for(work), [&](int64_t begin, int64_t end) {
    Scratch<T> room(in_place ? 0 : channels);
    Scratch<int64_t> places(in_place || !positions ? 0 : channels);
    for (int64_t row = begin; row < end; ++row) {
      const int64_t sample = row / height, y = row % height;
      const T* from = in + sample * input.strides[0];
      T* values = out + sample * output.strides[0] + output.line(y);
      int64_t* at = positions ? positions + sample * indices->strides[0] + indices->line(y) : nullptr;
      const int64_t at_stride = positions ? indices->strides[4] : 0;
      const auto some = lines.of(y);
      for (int64_t x = 0; x < width; ++x, values += output.strides[4], at += at_stride) {
        const Window& window = axes.columns.windows[x];
        const int64_t none = some.empty() || window.count == 0 ? -1 : some[0] * axes.columns.inputs + window.first;
        if (in_place) {
          max_of_pixels<T>(from, input, some, axes.columns, window, none, values, at);
          continue;
        }
        max_of_pixels<T>(from, input, some, axes.columns, window, none, room.data(), positions ? places.data() : nullptr);
        for (int64_t c = 0; c < channels; ++c) values[c * output.strides[1]] = room[c];
        if (!positions) continue;
        for (int64_t c = 0; c < channels; ++c) at[c * indices->strides[1]] = places[c];
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

}  // namespace

void register_pooling(KernelTable& table) {
  table.add<max_pool>("max_pool");
  table.add<max_pool_values>("max_pool_values");
  table.add<adaptive_max_pool>("adaptive_max_pool");
  table.add<max_pool_backward>("max_pool_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
