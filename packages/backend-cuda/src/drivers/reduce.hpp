// The host side that all reductions share: which elements belong to a result, which threads load
// them, and where partial results are stored. Compiled once, not for each operation.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

#include <cuda_runtime_api.h>

#include "drivers/iterate.hpp"
#include "kernels.hpp"

namespace candelabra::cuda::reduction {

constexpr int threads = 256;
constexpr int64_t least_work = 4096;  // elements that pay for a block of their own
// Blocks per multiprocessor where several blocks share a result: a multiple of the six or eight
// that are resident at a time.
constexpr int64_t blocks_per_multiprocessor = 24;

// The geometry of a reduction. An output dimension of size 1 is reduced if the input's is larger.
template <int Outs>
struct Plan {
  Geometry<1 + Outs> kept;  // indexes results; operands: the input and the outputs
  Geometry<1> reduced;      // indexes the input elements of one result
  int64_t results = 1;
  int64_t length = 1;
  bool inner = true;  // rows

  Plan(const cb_tensor& in, const std::array<const cb_tensor*, Outs>& outs, Order order) {
    const bool all = outs[0]->ndim != in.ndim;
    int kept_count = 0, reduced_count = 0;
    for (int d = in.ndim - 1; d >= 0; --d) {
      if (all || outs[0]->sizes[d] != in.sizes[d]) {
        length *= in.sizes[d];
        if (in.sizes[d] == 1) continue;
        reduced.sizes[reduced_count] = in.sizes[d];
        reduced.strides[0][reduced_count++] = in.strides[d];
      } else {
        results *= in.sizes[d];
        if (in.sizes[d] == 1) continue;
        kept.sizes[kept_count] = in.sizes[d];
        kept.strides[0][kept_count] = in.strides[d];
        for (int k = 0; k < Outs; ++k) kept.strides[1 + k][kept_count] = outs[static_cast<size_t>(k)]->strides[d];
        ++kept_count;
      }
    }
    kept.numel = results;
    reduced.numel = length;
    kernel::merge_dims(kept, results ? kept_count : 0, Order::Any);
    kernel::merge_dims(reduced, length ? reduced_count : 0, order);
    if (length == 0) reduced.sizes[0] = 0;
    const auto distance = [](int64_t stride) { return stride == 0 ? INT64_MAX : std::abs(stride); };
    inner = kept_count == 0 || (length > 1 && distance(reduced.strides[0][0]) <= distance(kept.strides[0][0]));
  }
};

// Elements that a thread loads at a time from contiguous memory.
constexpr int vector_of(size_t itemsize) {
  return static_cast<int>(16 / itemsize);
}

// The kernel's argument.
template <int Outs>
struct Part {
  const void* in;
  void* outs[Outs];
  Indexer<1 + Outs> kept;
  Indexer<1> reduced;
  int64_t first;            // index within a result of this piece's first element
  int64_t length;           // elements of a result over all pieces
  uint32_t chunk;           // elements of a result per block
  uint32_t first_chunk;     // of this piece, among the chunks of all pieces
  uint32_t chunks;          // of all pieces
  uint32_t results_in_all;  // stride of chunks in `partial`
  uint32_t first_result;    // of this piece
  void* partial;            // null: blocks write the results
};

enum class Kind { Columns, Rows, PackedRows, Merge };
struct Shape {
  Kind kind;
  dim3 blocks;
  dim3 threads;
};

template <int Outs>
struct Task {
  const cb_tensor* in;
  std::array<const cb_tensor*, Outs> outs;
  std::array<int, Outs> out_sizes;  // bytes per element
  int in_size;
  size_t accumulator_size;
  bool ordered;
};

template <int Outs, typename... Results>
void describe(Task<Outs>& task, Types<Results...>) {
  task.out_sizes = {static_cast<int>(sizeof(memory_t<Results>))...};
}

template <int Outs>
using Launcher = void (*)(const Call& call, const void* op, const Part<Outs>& part, const Shape& shape);
// For one and two outputs.
template <int Outs>
void run_parts(const Call& call, const Task<Outs>& task, Launcher<Outs> launcher, const void* op);

}  // namespace candelabra::cuda::reduction
