// Writes at indexed positions along one dimension, for scatter and similar operators: one index per
// element.
#pragma once

#include <array>

#include "kernels/movement/move.hpp"
#include "simd/load.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// RuntimeError, as for PyTorch's gather and scatter; the other indexing operators raise IndexError.
[[noreturn, gnu::cold, gnu::noinline]] inline void out_of_bounds(int64_t index, int64_t dim, int64_t size) {
  throw failure(CB_RUNTIME_ERROR, "index %lld is out of bounds for dimension %lld with size %lld",
                static_cast<long long>(index), static_cast<long long>(dim), static_cast<long long>(size));
}

// A view: other sizes and strides on the same memory.
struct View {
  int64_t sizes[max_dims];
  int64_t strides[max_dims];
  cb_tensor tensor;

  // `original` narrowed to the sizes of `shape`, with size 1 in dimension `dim` unless `dim` is
  // negative.
  View(const cb_tensor& original, const cb_tensor& shape, int64_t dim) : tensor(original) {
    bool number = original.flags & CB_TENSOR_NUMBER;
    tensor.numel = 1;
    for (int d = 0; d < shape.ndim; ++d) {
      sizes[d] = d == dim ? 1 : shape.sizes[d];
      strides[d] = number ? 0 : original.strides[d];
      tensor.numel *= sizes[d];
    }
    tensor.ndim = shape.ndim;
    tensor.sizes = sizes;
    tensor.strides = strides;
  }
  View(const View&) = delete;
};

// Whether any of n indices is outside [0, size). For such an index the sign of `index | (size - 1 -
// index)` is set; size > 0.
[[gnu::always_inline]] inline bool any_out_of_range(const int64_t* numbers, int64_t stride, int64_t n, int64_t size) {
  int64_t outside = 0;
  if (stride == 1) {
#pragma omp simd reduction(| : outside)
    for (int64_t i = 0; i < n; ++i) outside |= numbers[i] | (size - 1 - numbers[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) outside |= numbers[i * stride] | (size - 1 - numbers[i * stride]);
  }
  return outside < 0;
}

[[gnu::cold, gnu::noinline]] inline void raise_out_of_bounds(const int64_t* numbers, int64_t stride, int64_t n,
                                                             int64_t dim, int64_t size) {
  for (int64_t i = 0; i < n; ++i)
    if (static_cast<uint64_t>(numbers[i * stride]) >= static_cast<uint64_t>(size))
      out_of_bounds(numbers[i * stride], dim, size);
}

inline void check_indices(const cb_tensor& index, int64_t dim, int64_t size) {
  auto g = geometry<1>({&index});
  parallel_for(g.numel, light_grain, [&](int64_t begin, int64_t end) {
    for_each_run(g, begin, end, [&](const int64_t* at, int64_t n) {
      const int64_t* numbers = data<int64_t>(index) + at[0];
      const int64_t stride = g.strides[0][0];
      if (any_out_of_range(numbers, stride, n, size)) raise_out_of_bounds(numbers, stride, n, dim, size);
    });
  });
}

// The slices along a dimension of an index and of three tensors that it refers to.
struct Lines {
  int64_t count, step[4];  // elements of an index slice; strides along the dimension
  Geometry<4> g;
  bool along;  // the stride along a slice is smaller than that between slices

  Lines(const cb_tensor& index, const std::array<const cb_tensor*, 3>& tensors, int64_t dim) {
    count = index.ndim ? index.sizes[dim] : 1;
    const auto step_of = [&](const cb_tensor& tensor) {
      return index.ndim && !(tensor.flags & CB_TENSOR_NUMBER) ? tensor.strides[dim] : 0;
    };
    step[0] = step_of(index);
    for (int k = 0; k < 3; ++k) step[k + 1] = step_of(*tensors[k]);
    View numbers(index, index, dim), first(*tensors[0], index, dim), second(*tensors[1], index, dim),
        third(*tensors[2], index, dim);
    g = geometry<4>({&numbers.tensor, &first.tensor, &second.tensor, &third.tensor});
    along = g.numel == 1 || std::abs(step[0]) < std::abs(g.strides[0][0]);
  }

  // Calls one_by_one(at, n) for n slices to be processed one after the other, or block(at, n) for n
  // slices to be processed together. Blocks are narrow enough for `bytes` of each slice to stay in
  // the L2 cache.
  template <typename Along, typename Block>
  void for_each(int64_t bytes, Along&& one_by_one, Block&& block) const {
    if (along) {
      parallel_for(g.numel, grain_for(2 * count),
                   [&](int64_t begin, int64_t end) { for_each_run(g, begin, end, one_by_one); });
      return;
    }
    // Blocks are as wide as the cache and the number of threads allow, because wide blocks read
    // longer runs of memory.
    constexpr int64_t cache = 512 * 1024, narrowest = 16;
    int64_t width = std::max(narrowest, cache / std::max<int64_t>(bytes, 1));
    const int64_t share = (g.numel + thread_count() - 1) / thread_count();
    width = std::min({width, g.sizes[0], std::max(narrowest, share)});
    const int64_t blocks = (g.sizes[0] + width - 1) / width, units = blocks * (g.numel / g.sizes[0]);
    parallel_for(units, grain_for(2 * count * width), [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t first = unit % blocks * width;
        Position<4> at(g, unit / blocks * g.sizes[0] + first);
        block(static_cast<const int64_t*>(at.offsets), std::min(width, g.sizes[0] - first));
      }
    });
  }
};

// Prefetches the cache lines of a row of elements.
template <typename T>
[[gnu::always_inline]] inline void prefetch_row(const T* row, int64_t n) {
  constexpr int64_t each = 64 / sizeof(T) ? 64 / sizeof(T) : 1;
  for (int64_t i = 0; i < n; i += each) __builtin_prefetch(row + i);
}

// Strides of elements along a slice (step) and between slices (side).
struct ScatterSteps {
  int64_t count;  // indices along a slice
  int64_t index_step, out_step, source_step;
  int64_t index_side, out_side, source_side;
};

// The loops over n slices: one after the other, or together.
struct ScatterLoops {
  using Loop = void (*)(const ScatterSteps& steps, void* to, const int64_t* numbers, const void* from, int64_t n,
                        const void* write);
  int64_t out_size, source_size;  // bytes of an element
  Loop slices, block;
};

template <typename T, typename S, typename F>
void scatter_to_slices(const ScatterSteps& steps, void* to, const int64_t* numbers, const void* from, int64_t n,
                       const void* function) {
  const F write = *static_cast<const F*>(function);  // a copy keeps its members in registers
  const auto [count, index_step, out_step, source_step, index_side, out_side, source_side] = steps;
  for (int64_t i = 0; i < n; ++i) {
    T* slice = static_cast<T*>(to) + i * out_side;
    const int64_t* number = numbers + i * index_side;
    const S* value = static_cast<const S*>(from) + i * source_side;
    if (index_step == 1 && out_step == 1 && source_step == 1)
      for (int64_t k = 0; k < count; ++k) write(slice[number[k]], value[k]);
    else
      for (int64_t k = 0; k < count; ++k) write(slice[number[k * index_step] * out_step], value[k * source_step]);
  }
}

template <typename T, typename S, typename F>
void scatter_to_block(const ScatterSteps& steps, void* to, const int64_t* numbers, const void* from, int64_t n,
                      const void* function) {
  const F write = *static_cast<const F*>(function);  // a copy keeps its members in registers
  const auto [count, index_step, out_step, source_step, index_side, out_side, source_side] = steps;
  constexpr int64_t ahead = 4;
  T* block = static_cast<T*>(to);
  for (int64_t k = 0; k < count; ++k) {
    const int64_t* number = numbers + k * index_step;
    const S* value = static_cast<const S*>(from) + k * source_step;
    if (index_side == 0 && out_side == 1 && source_side == 1) {  // one index for all slices
      T* row = block + *number * out_step;
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) write(row[i], value[i]);
    } else if (index_side == 1 && out_side == 1 && source_side == 1) {
      if (k + ahead < count) prefetch_row(number + ahead * index_step, n), prefetch_row(value + ahead * source_step, n);
      for (int64_t i = 0; i < n; ++i) write(block[i + number[i] * out_step], value[i]);
    } else {
      for (int64_t i = 0; i < n; ++i)
        write(block[i * out_side + number[i * index_side] * out_step], value[i * source_side]);
    }
  }
}

// The part of scatter_lines that does not depend on the operation and the dtype, so that it is
// compiled once.
inline void scatter_by(const ScatterLoops& loops, const void* write, const cb_tensor& out, const cb_tensor& index,
                       const cb_tensor& source, int64_t dim, const cb_tensor* self) {
  const bool out_of_place = self && self->data != out.data;
  bool reaches_all = out_of_place && index.numel != 0;
  for (int d = 0; d < index.ndim && reaches_all; ++d) reaches_all = d == dim || index.sizes[d] == out.sizes[d];
  if (out_of_place && !reaches_all) initialize_from(out, *self);
  if (index.numel == 0) return;
  const Lines lines(index, {&out, &source, reaches_all ? self : &out}, dim);
  const int64_t extent = out.ndim ? out.sizes[dim] : 1;
  const auto [index_step, out_step, source_step, self_step] = std::to_array(lines.step);
  const int64_t out_side = lines.g.strides[1][0], self_side = lines.g.strides[3][0];
  const ScatterSteps steps{lines.count, index_step,           out_step, source_step, lines.g.strides[0][0],
                           out_side,    lines.g.strides[2][0]};
  char* to = static_cast<char*>(out.data);
  const char* from = static_cast<const char*>(source.data);
  const int64_t* numbers = data<int64_t>(index);
  const auto write_to = [&](ScatterLoops::Loop loop, const int64_t* at, int64_t n) {
    loop(steps, to + at[1] * loops.out_size, numbers + at[0], from + at[2] * loops.source_size, n, write);
  };
  void (*move)(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) = nullptr;
  dispatch_size(loops.out_size, [&]<typename U>() {
    move = [](char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
      move_run(reinterpret_cast<U*>(to), to_stride, reinterpret_cast<const U*>(from), from_stride, n);
    };
  });
  const int64_t size = loops.out_size;
  const char* initial = reaches_all ? static_cast<const char*>(self->data) : nullptr;
  lines.for_each(
      extent * loops.out_size,
      [&](const int64_t* at, int64_t n) {
        if (!initial) return write_to(loops.slices, at, n);
        for (int64_t i = 0; i < n; ++i) {
          int64_t here[4];
          for (int k = 0; k < 4; ++k) here[k] = at[k] + i * lines.g.strides[k][0];
          move(to + here[1] * size, out_step, initial + here[3] * size, self_step, extent);
          write_to(loops.slices, here, 1);
        }
      },
      [&](const int64_t* at, int64_t n) {
        if (initial)
          for (int64_t k = 0; k < extent; ++k)
            move(to + (at[1] + k * out_step) * size, out_side, initial + (at[3] + k * self_step) * size, self_side, n);
        write_to(loops.block, at, n);
      });
}

// Calls write(T& output, const S& source) for each index. Threads share the slices along `dim`,
// which are independent, so that equal indices are written in the order of the index. If `self` is
// given, the output is initialized from it: slice by slice just before it is written, if the index
// covers all slices.
template <typename T, typename S = T, typename F>
void scatter_slices(const cb_tensor& out, const cb_tensor& index, const cb_tensor& source, int64_t dim, const F& write,
                    const cb_tensor* self = nullptr) {
  static constexpr ScatterLoops loops{sizeof(T), sizeof(S), scatter_to_slices<T, S, F>, scatter_to_block<T, S, F>};
  scatter_by(loops, &write, out, index, source, dim, self);
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
