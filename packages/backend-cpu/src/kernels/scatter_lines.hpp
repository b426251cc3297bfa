// Writing at positions along one dimension, for scatter and its relatives: one index for every element.
#pragma once

#include "../load.hpp"
#include "move.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// A RuntimeError, as PyTorch's gather and scatter raise; the other indexing operators raise IndexError.
[[noreturn, gnu::cold, gnu::noinline]] inline void out_of_bounds(int64_t index, int64_t dim, int64_t size) {
  throw failure(CB_RUNTIME_ERROR, "index %lld is out of bounds for dimension %lld with size %lld", static_cast<long long>(index),
                static_cast<long long>(dim), static_cast<long long>(size));
}

// A descriptor with other sizes and strides on the same memory.
struct Seen {
  int64_t sizes[max_dims];
  int64_t strides[max_dims];
  cb_tensor tensor;

  // `tensor` as far as `shape` goes; dimension `dim` (where it is not negative) is made of size 1.
  Seen(const cb_tensor& original, const cb_tensor& shape, int64_t dim) : tensor(original) {
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
  Seen(const Seen&) = delete;
};

inline void check_indices(const cb_tensor& index, int64_t dim, int64_t size) {
  auto g = geometry<1>({&index});
  parallel_for(g.numel, light_grain, [&](int64_t begin, int64_t end) {
    for_each_run(g, begin, end, [&](const int64_t* at, int64_t n) {
      const int64_t* numbers = data<int64_t>(index) + at[0];
      for (int64_t i = 0; i < n; ++i) {
        int64_t number = numbers[i * g.strides[0][0]];
        if (static_cast<uint64_t>(number) >= static_cast<uint64_t>(size)) out_of_bounds(number, dim, size);
      }
    });
  });
}

// Where several indices are equal, the last one is written last, and sums are made in the order of the index: work is shared out
// by lines along `dim`, which write apart from one another. write(T& of the output, const S& of the source).
template <typename T, typename S = T, typename F>
void scatter_lines(const cb_tensor& out, const cb_tensor& index, const cb_tensor& source, int64_t dim, F&& write) {
  if (index.numel == 0) return;
  int64_t count = index.ndim ? index.sizes[dim] : 1;
  auto step = [&](const cb_tensor& tensor) { return index.ndim && !(tensor.flags & CB_TENSOR_NUMBER) ? tensor.strides[dim] : 0; };
  int64_t out_step = step(out), index_step = step(index), source_step = step(source);
  Seen kept_out(out, index, dim), kept_index(index, index, dim), kept_source(source, index, dim);
  auto g = geometry<3>({&kept_index.tensor, &kept_out.tensor, &kept_source.tensor});
  int64_t index_stride = g.strides[0][0], out_stride = g.strides[1][0], source_stride = g.strides[2][0];
  bool along_dim = g.numel == 1 || std::abs(index_step) < std::abs(index_stride);
  T* to = mutable_data<T>(out);
  const S* from = data<S>(source);
  const int64_t* numbers = data<int64_t>(index);
  // Position k of n lines that lie side by side.
  auto across = [&](const int64_t* at, int64_t n, int64_t k) {
    const int64_t* number = numbers + at[0] + k * index_step;
    T* line = to + at[1];
    const S* value = from + at[2] + k * source_step;
    if (index_stride == 0 && out_stride == 1 && source_stride == 1) {  // one number for all of them
      line += *number * out_step;
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) write(line[i], value[i]);
    } else {
      for (int64_t i = 0; i < n; ++i) write(line[i * out_stride + number[i * index_stride] * out_step], value[i * source_stride]);
    }
  };
  parallel_for(g.numel, std::max<int64_t>(16, grain_for(count)), [&](int64_t begin, int64_t end) {
    if (along_dim) {
      for_each_run(g, begin, end, [&](const int64_t* at, int64_t n) {
        for (int64_t i = 0; i < n; ++i) {
          T* line = to + at[1] + i * out_stride;
          const int64_t* number = numbers + at[0] + i * index_stride;
          const S* value = from + at[2] + i * source_stride;
          for (int64_t k = 0; k < count; ++k) write(line[number[k * index_step] * out_step], value[k * source_step]);
        }
      });
    } else if (g.flat()) {
      const int64_t at[3] = {begin * index_stride, begin * out_stride, begin * source_stride};
      for (int64_t k = 0; k < count; ++k) across(at, end - begin, k);
    } else {
      for (int64_t k = 0; k < count; ++k) for_each_run(g, begin, end, [&](const int64_t* at, int64_t n) { across(at, n, k); });
    }
  });
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
