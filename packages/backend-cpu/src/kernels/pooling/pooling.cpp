// Max pooling. One and two spatial dimensions are treated as three. Average pooling is in
// pooling_average.cpp.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "candelabra/arguments/pooling.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "kernels/pooling/pooling_planes.hpp"
#include "kernels/reduction/reduce_aminmax.hpp"
#include "memory/allocator.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using namespace pooling;

// Whether a value replaces the maximum so far. NaN always does.
template <typename C>
[[gnu::always_inline]] inline bool is_better(C value, C best) {
  return value > best || value != value;
}

template <typename C>
constexpr C lowest() {
  return std::numeric_limits<C>::has_infinity ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::lowest();
}

// Compares one input row with a row of windows, for one position within the windows. A constant
// stride lets the compiler load whole vectors.
template <int64_t Stride, typename C>
void compare_row(const C* row, int64_t stride, int64_t n, int32_t index, C* best, int32_t* indices) {
  int64_t step = Stride ? Stride : stride;
#pragma omp simd
  for (int64_t x = 0; x < n; ++x) {
    C value = row[x * step];
    bool better = is_better(value, best[x]);
    best[x] = better ? value : best[x];
    indices[x] = better ? index + static_cast<int32_t>(x * step) : indices[x];
  }
}

// The index of the first maximum, or of the last NaN.
template <typename C>
int64_t index_of_maximum(const C* values, int64_t n) {
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

// Adaptive windows: the maximum of each column over the rows comes first, then the maximum of each
// window over its columns. Of equal values the first in the plane wins, and of NaN the last.
template <typename C>
void max_adaptive_row(const C* plane, const Axis& columns, std::span<const int64_t> rows, C* best, int32_t* indices,
                      C* column_max, int32_t* column_at) {
  const int64_t width = columns.inputs;
  if (rows.size() == 1) {
    const C* row = plane + rows[0] * width;
    for (int64_t x = 0; x < columns.outputs(); ++x) {
      const Window& window = columns.windows[x];
      if (window.count == 0) continue;
      const int64_t at = window.first + index_of_maximum(row + window.first, window.count);
      best[x] = row[at];
      indices[x] = static_cast<int32_t>(rows[0] * width + at);
    }
    return;
  }
  for (int64_t c = 0; c < width; ++c) {
    column_max[c] = lowest<C>();
    column_at[c] = static_cast<int32_t>(rows[0] * width + c);
  }
  for (const int64_t y : rows)
    compare_row<1>(plane + y * width, 1, width, static_cast<int32_t>(y * width), column_max, column_at);
  for (int64_t x = 0; x < columns.outputs(); ++x) {
    const Window& window = columns.windows[x];
    if (window.count == 0) continue;
    C largest = column_max[window.first];
    int32_t at = column_at[window.first];
    for (int64_t c = window.first + 1; c < window.first + window.count; ++c) {
      const C value = column_max[c];
      const bool is_tie = value == largest || (value != value && largest != largest);
      const bool better = is_tie ? (value != value ? column_at[c] > at : column_at[c] < at) : is_better(value, largest);
      largest = better ? value : largest;
      at = better ? column_at[c] : at;
    }
    best[x] = largest;
    indices[x] = at;
  }
}

// One output row of a plane from the input rows in its windows.
template <typename C>
void max_row(const C* plane, const Axis& columns, std::span<const int64_t> rows, C* best, int32_t* indices,
             C* column_max, int32_t* column_at) {
  const int64_t width = columns.inputs;
  for (int64_t x = 0; x < columns.outputs(); ++x) {
    const Window& window = columns.windows[x];
    best[x] = lowest<C>();
    indices[x] = window.count && !rows.empty() ? static_cast<int32_t>(rows[0] * width + window.first) : -1;
  }
  if (rows.empty()) return;
  if (!columns.regular) return max_adaptive_row(plane, columns, rows, best, indices, column_max, column_at);
  for (const int64_t y : rows) {
    for (int64_t k = 0; k < columns.kernel; ++k) {
      const ValidOutputs valid(columns, k);
      const int64_t first = y * width + valid.first, stride = columns.stride;
      auto compare = stride == 1 ? compare_row<1, C> : stride == 2 ? compare_row<2, C> : compare_row<0, C>;
      compare(plane + first, stride, valid.end - valid.begin, static_cast<int32_t>(first), best + valid.begin,
              indices + valid.begin);
    }
  }
}

template <typename T>
void max_by_planes(const T* in, const Layout& input, const Axes& axes, const InputRows& input_rows, T* out,
                   const Layout& output, int64_t* positions, const Layout& indices) {
  using C = compute_t<T>;
  int64_t width = axes.columns.outputs();
  parallel_for(input.plane_count(), grain_for(2 * axes.work()), [&](int64_t begin, int64_t end) {
    const int64_t adaptive_columns = axes.columns.regular ? 0 : axes.columns.inputs;
    Scratch<C> buffer(plane_buffer_size<T>(input)), best(width), column_max(adaptive_columns);
    Scratch<int32_t> at(width), column_at(adaptive_columns);
    for (int64_t p = begin; p < end; ++p) {
      const C* plane = load_plane<T>(in + input.plane_offset(p), input, buffer.data());
      for (int64_t y = 0; y < axes.output_rows(); ++y) {
        max_row<C>(plane, axes.columns, input_rows.of(y), best.data(), at.data(), column_max.data(), column_at.data());
        T* values = out + output.plane_offset(p) + output.row_offset(y);
        int64_t* to_indices = positions + indices.plane_offset(p) + indices.row_offset(y);
        for (int64_t x = 0; x < width; ++x) values[x * output.strides[4]] = T(best[x]);
        for (int64_t x = 0; x < width; ++x) to_indices[x * indices.strides[4]] = at[x];
      }
    }
  });
}

// ---- Maximum without indices: first over the rows, then over the columns of that maximum

template <typename C>
[[gnu::always_inline]] inline C larger(C value, C best) {
  return is_better(value, best) ? value : best;
}

template <int64_t Stride, typename C>
void accumulate_max(const C* row, int64_t stride, int64_t n, C* best) {
  const int64_t step = Stride ? Stride : stride;
#pragma omp simd
  for (int64_t x = 0; x < n; ++x) best[x] = larger(row[x * step], best[x]);
}

template <typename C>
void max_of_windows(const C* row, const Axis& columns, C* best) {
  std::fill_n(best, columns.outputs(), lowest<C>());
  if (!columns.regular) {
    for (int64_t x = 0; x < columns.outputs(); ++x) {
      const Window& window = columns.windows[x];
      C value = best[x];
      for (int64_t at = window.first; at < window.first + window.count; ++at) value = larger(row[at], value);
      best[x] = value;
    }
    return;
  }
  for (int64_t k = 0; k < columns.kernel; ++k) {
    const ValidOutputs valid(columns, k);
    auto accumulate = columns.stride == 1   ? accumulate_max<1, C>
                      : columns.stride == 2 ? accumulate_max<2, C>
                                            : accumulate_max<0, C>;
    accumulate(row + valid.first, columns.stride, valid.end - valid.begin, best + valid.begin);
  }
}

template <typename T>
void max_values(const T* in, const Layout& input, const Axes& axes, const InputRows& input_rows, T* out,
                const Layout& output) {
  using C = compute_t<T>;
  const int64_t width = axes.columns.inputs, outputs = axes.columns.outputs();
  parallel_for(input.plane_count(), grain_for(axes.work()), [&](int64_t begin, int64_t end) {
    Scratch<C> buffer(plane_buffer_size<T>(input)), column_max(width), best(outputs);
    for (int64_t p = begin; p < end; ++p) {
      const C* plane = load_plane<T>(in + input.plane_offset(p), input, buffer.data());
      for (int64_t y = 0; y < axes.output_rows(); ++y) {
        const auto rows = input_rows.of(y);
        const C* row = column_max.data();
        if (rows.size() == 1) {
          row = plane + rows[0] * width;
        } else {
          std::fill_n(column_max.data(), width, lowest<C>());
          for (const int64_t at : rows) accumulate_max<1>(plane + at * width, 1, width, column_max.data());
        }
        T* values = out + output.plane_offset(p) + output.row_offset(y);
        if constexpr (!is_half_v<T>)
          if (output.strides[4] == 1) {
            max_of_windows<C>(row, axes.columns, values);
            continue;
          }
        max_of_windows<C>(row, axes.columns, best.data());
        for (int64_t x = 0; x < outputs; ++x) values[x * output.strides[4]] = T(best[x]);
      }
    }
  });
}

// One output for all channels, which are contiguous. `indices` may be null. Its initial value is
// `none`, for windows in which no value exceeds the lowest one.
template <typename T>
void max_of_pixels(const T* sample, const Layout& input, std::span<const int64_t> rows, const Axis& columns,
                   const Window& window, int64_t none, T* to, int64_t* indices) {
  using C = compute_t<T>;
  if constexpr (is_integer_v<T>) {
    const int64_t channels = input.sizes[1];
    std::fill_n(to, channels, lowest<T>());
    if (indices) std::fill_n(indices, channels, none);
    for_each_pixel(sample, input, rows, columns, window, [=](int64_t index, const T* pixel) {
      if (!indices) return accumulate_max<1>(pixel, 1, channels, to);
#pragma omp simd
      for (int64_t c = 0; c < channels; ++c) {
        const bool better = is_better(pixel[c], to[c]);
        to[c] = better ? pixel[c] : to[c];
        indices[c] = better ? index : indices[c];
      }
    });
  } else {
    // Indices are integers of the lane's width, kept as the bits of a floating-point register.
    using R = math::Vec<C>;
    using Index = std::conditional_t<sizeof(C) == 4, int32_t, int64_t>;
    const auto as_bits = [](int64_t index) { return R(std::bit_cast<C>(static_cast<Index>(index))); };
    const auto better_lanes = [](R value, R best) { return (value > best) | (value != value); };
    for_channel_registers<C>(input.sizes[1], [&]<int K>(int64_t c, int64_t n) {
      R best[K], at[K];
      for (R& value : best) value = R(lowest<C>());
      if (!indices) {
        for_each_pixel(sample + c, input, rows, columns, window, [&](int64_t, const T* pixel) {
          for (int k = 0; k < K; ++k) {
            const R value = load_some(pixel + k * R::size, n);
            best[k] = select(better_lanes(value, best[k]), value, best[k]);
          }
        });
      } else {
        for (R& index : at) index = as_bits(none);
        for_each_pixel(sample + c, input, rows, columns, window, [&](int64_t here, const T* pixel) {
          const R index = as_bits(here);
          for (int k = 0; k < K; ++k) {
            const R value = load_some(pixel + k * R::size, n);
            const auto better = better_lanes(value, best[k]);
            best[k] = select(better, value, best[k]);
            at[k] = select(better, index, at[k]);
          }
        });
        for (int k = 0; k < K; ++k) {
          alignas(64) C bits[R::size];
          at[k].store(bits);
          for (int64_t i = 0; i < n; ++i) indices[c + k * R::size + i] = std::bit_cast<Index>(bits[i]);
        }
      }
      for (int k = 0; k < K; ++k) store_some<T>(best[k], to + c + k * R::size, n);
    });
  }
}

// `positions` may be null: then only values are computed.
template <typename T>
void max_by_channels(const T* in, const Layout& input, const Axes& axes, const InputRows& input_rows, T* out,
                     const Layout& output, int64_t* positions, const Layout* indices) {
  const int64_t channels = input.sizes[1], height = axes.output_rows(), width = axes.columns.outputs();
  const int64_t work = 2 * axes.work() / std::max<int64_t>(1, height) * channels;
  const bool in_place = output.strides[1] == 1 && (!positions || indices->strides[1] == 1);
  parallel_for(input.sizes[0] * height, grain_for(work), [&](int64_t begin, int64_t end) {
    Scratch<T> buffer(in_place ? 0 : channels);
    Scratch<int64_t> index_buffer(in_place || !positions ? 0 : channels);
    for (int64_t row = begin; row < end; ++row) {
      const int64_t sample = row / height, y = row % height;
      const T* from = in + sample * input.strides[0];
      T* values = out + sample * output.strides[0] + output.row_offset(y);
      int64_t* at = positions ? positions + sample * indices->strides[0] + indices->row_offset(y) : nullptr;
      const int64_t at_stride = positions ? indices->strides[4] : 0;
      const auto rows = input_rows.of(y);
      for (int64_t x = 0; x < width; ++x, values += output.strides[4], at += at_stride) {
        const Window& window = axes.columns.windows[x];
        const int64_t none = rows.empty() || window.count == 0 ? -1 : rows[0] * axes.columns.inputs + window.first;
        if (in_place) {
          max_of_pixels<T>(from, input, rows, axes.columns, window, none, values, at);
          continue;
        }
        max_of_pixels<T>(from, input, rows, axes.columns, window, none, buffer.data(),
                         positions ? index_buffer.data() : nullptr);
        for (int64_t c = 0; c < channels; ++c) values[c * output.strides[1]] = buffer[c];
        if (!positions) continue;
        for (int64_t c = 0; c < channels; ++c) at[c * indices->strides[1]] = index_buffer[c];
      }
    }
  });
}

template <typename Types>
void max_of(Call& call, const cb_tensor& self, const Layout& input, const Layout& output, const Axes& axes) {
  if (input.plane_size() > std::numeric_limits<int32_t>::max())
    throw failure(CB_RUNTIME_ERROR, "%s: a plane of %lld elements is too large", call.raw()->operator_name,
                  static_cast<long long>(input.plane_size()));
  const InputRows input_rows(axes);
  cb_tensor &out = call.output(0), &indices = call.output(1);
  const Layout index_layout(indices);
  dispatch<Types>(out.dtype, [&]<typename T>() {
    const T* from = data<T>(self);
    T* to = mutable_data<T>(out);
    if (input.is_channels_last())
      max_by_channels<T>(from, input, axes, input_rows, to, output, mutable_data<int64_t>(indices), &index_layout);
    else
      max_by_planes<T>(from, input, axes, input_rows, to, output, mutable_data<int64_t>(indices), index_layout);
  });
}

void max_pool(Call& call) {
  const arguments::MaxPool args(call);
  Layout input(*args.self), output(call.output(0));
  max_of<RealTypes>(call, *args.self, input, output,
                    regular_axes(input, output, args.kernel_size, args.stride, args.padding, args.dilation));
}

void max_pool_values(Call& call) {
  const arguments::MaxPoolValues args(call);
  const Layout input(*args.self), output(call.output());
  const Axes axes = regular_axes(input, output, args.kernel_size, args.stride, args.padding, args.dilation);
  const InputRows input_rows(axes);
  dispatch<RealTypes>(call.output().dtype, [&]<typename T>() {
    const T* from = data<T>(*args.self);
    T* to = mutable_data<T>(call.output());
    if (input.is_channels_last())
      max_by_channels<T>(from, input, axes, input_rows, to, output, nullptr, nullptr);
    else
      max_values<T>(from, input, axes, input_rows, to, output);
  });
}

void adaptive_max_pool(Call& call) {
  const arguments::AdaptiveMaxPool args(call);
  Layout input(*args.self), output(call.output(0));
  max_of<FloatTypes>(call, *args.self, input, output, adaptive_axes(input, output));
}

[[noreturn]] [[gnu::cold]] void raise_out_of_bounds(int64_t index, int64_t inputs) {
  throw failure(CB_INDEX_ERROR, "max_pool_backward(): index %lld is out of bounds for a plane of %lld elements",
                static_cast<long long>(index), static_cast<long long>(inputs));
}

template <typename T>
void max_backward_by_channels(const T* grad, const Layout& from, const int64_t* indices, const Layout& index_layout,
                              T* out, const Layout& to) {
  int64_t inputs = to.plane_size();
  for_channel_blocks(to, inputs + 4 * from.plane_size(), [&](int64_t sample, int64_t first, int64_t end) {
    T* plane = out + sample * to.strides[0];
    clear_channels(plane, to, first, end);
    for (int64_t y = 0; y < from.row_count(); ++y)
      for (int64_t x = 0; x < from.sizes[4]; ++x) {
        const T* values = grad + sample * from.strides[0] + from.row_offset(y) + x * from.strides[4];
        const int64_t* at =
            indices + sample * index_layout.strides[0] + index_layout.row_offset(y) + x * index_layout.strides[4];
        for (int64_t c = first; c < end; ++c) {
          int64_t index = at[c * index_layout.strides[1]];
          if (index == -1) continue;
          if (index < 0 || index >= inputs) [[unlikely]]
            raise_out_of_bounds(index, inputs);
          plane[index * to.strides[4] + c] += values[c * from.strides[1]];
        }
      }
  });
}

void max_pool_backward(Call& call) {
  const arguments::MaxPoolBackward args(call);
  const cb_tensor &grad = *args.grad, &indices = *args.indices;
  cb_tensor& out = call.output();
  Layout from(grad), index_layout(indices), to(out);
  int64_t outputs = from.plane_size(), inputs = to.plane_size(), width = from.sizes[4];
  dispatch<FloatTypes>(out.dtype, [&]<typename T>() {
    using C = compute_t<T>;
    if constexpr (!is_half_v<T>)  // half precision needs float32 sums
      if (to.is_channels_last() && to.has_uniform_planes())
        return max_backward_by_channels<T>(data<T>(grad), from, data<int64_t>(indices), index_layout,
                                           mutable_data<T>(out), to);
    parallel_for(to.plane_count(), grain_for(inputs + 4 * outputs), [&](int64_t begin, int64_t end) {
      Scratch<C> buffer(plane_buffer_size<T>(to));
      for (int64_t p = begin; p < end; ++p) {
        T* plane = mutable_data<T>(out) + to.plane_offset(p);
        C* sums = open_plane<T>(plane, to, buffer.data());
        const T* values = data<T>(grad) + from.plane_offset(p);
        const int64_t* at = data<int64_t>(indices) + index_layout.plane_offset(p);
        for (int64_t y = 0; y < from.row_count(); ++y) {
          const T* row = values + from.row_offset(y);
          const int64_t* row_indices = at + index_layout.row_offset(y);
          for (int64_t x = 0; x < width; ++x) {
            const int64_t index = row_indices[x * index_layout.strides[4]];
            if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(inputs)) [[unlikely]] {
              if (index == -1) continue;  // a window entirely in the padding
              raise_out_of_bounds(index, inputs);
            }
            sums[index] += static_cast<C>(row[x * from.strides[4]]);
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
