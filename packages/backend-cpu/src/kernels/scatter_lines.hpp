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
  parallel_for(g.numel, std::max<int64_t>(16, grain_for(count)), [&](int64_t begin, int64_t end) {
    auto one = [&](const int64_t* at, int64_t i, int64_t k) {
      int64_t number = data<int64_t>(index)[at[0] + i * index_stride + k * index_step];
      write(mutable_data<T>(out)[at[1] + i * out_stride + number * out_step],
            data<S>(source)[at[2] + i * source_stride + k * source_step]);
    };
    if (along_dim) {
      for_each_run(g, begin, end, [&](const int64_t* at, int64_t n) {
        for (int64_t i = 0; i < n; ++i)
          for (int64_t k = 0; k < count; ++k) one(at, i, k);
      });
    } else {
      for (int64_t k = 0; k < count; ++k)
        for_each_run(g, begin, end, [&](const int64_t* at, int64_t n) {
          for (int64_t i = 0; i < n; ++i) one(at, i, k);
        });
    }
  });
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
