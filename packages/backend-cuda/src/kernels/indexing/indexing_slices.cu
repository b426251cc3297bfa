// One index for a whole slice of elements: index_select, index_add, index_copy, index_fill, index,
// index_put, take, embedding and its gradient.
#include <algorithm>
#include <limits>

#include "candelabra/arguments/indexing.hpp"
#include "drivers/move.hpp"
#include "drivers/scatter_add.hpp"

namespace candelabra::cuda {
namespace {

constexpr int threads = 256;

unsigned blocks_of(int64_t count) {
  return static_cast<unsigned>(divide_up(count, threads));
}

// A tensor descriptor that owns its sizes and strides. A tensor without dimensions gets one of size
// 1.
struct View {
  int64_t sizes[max_dims], strides[max_dims];
  cb_tensor tensor;

  explicit View(const cb_tensor& original) : View(original, 0, original.ndim) {
    if (original.ndim == 0) append(1, 1);
  }
  // Dimensions [first, first + count) of the original.
  View(const cb_tensor& original, int first, int count) : tensor(original) {
    tensor.sizes = sizes;
    tensor.strides = strides;
    tensor.ndim = 0;
    tensor.numel = 1;
    for (int d = first; d < first + count; ++d) append(original.sizes[d], original.strides[d]);
  }
  void append(int64_t size, int64_t stride) {
    sizes[tensor.ndim] = size;
    strides[tensor.ndim++] = stride;
    tensor.numel *= size;
  }
  View(const View&) = delete;
  View& operator=(const View&) = delete;
};

// The indices of each dimension of a tensor. The `dense` tensor of an operator (its result or its
// source) has the dimensions of the indices, from `index_dim` on, and the dimensions of the tensor
// that are not indexed.
struct Indexed {
  const cb_tensor& tensor;
  const cb_tensor* indices[max_dims] = {};
  const cb_tensor* shape = nullptr;  // one of the indices: all have one shape
  int count = 0, index_dim = 0;
  bool wraps = true;                                      // negative indices count from the end
  int64_t slices = 1;                                     // slices of the tensor
  int64_t skipped = std::numeric_limits<int64_t>::min();  // an index whose slices are left out

  Indexed(const cb_tensor& of, std::span<const cb_tensor* const> given) : tensor(of) {
    int first = -1, last = -1;
    bool adjacent = true;
    for (int d = 0; d < static_cast<int>(given.size()); ++d) {
      if (!given[static_cast<size_t>(d)]) continue;
      add(d, given[static_cast<size_t>(d)]);
      if (first < 0) first = d;
      if (last >= 0 && d != last + 1) adjacent = false;
      last = d;
    }
    index_dim = adjacent && first >= 0 ? first : 0;
  }
  Indexed(const cb_tensor& of, int64_t dim, const cb_tensor& index, bool from_the_end)
      : tensor(of), wraps(from_the_end) {
    add(static_cast<int>(dim), &index);
    index_dim = static_cast<int>(dim);
  }

  int64_t number() const { return shape->numel; }
  // Appends the dimensions of the dense tensor with the strides of the indexed one; 0 in those of
  // the indices.
  void append_dense(View& view, const cb_tensor& dense) const {
    int kept = 0;
    for (int d = 0; d < dense.ndim; ++d) {
      if (d >= index_dim && d < index_dim + shape->ndim) {
        view.append(dense.sizes[d], 0);
        continue;
      }
      while (indices[kept]) ++kept;
      view.append(dense.sizes[d], tensor.strides[kept++]);
    }
  }
  // Appends the dimensions of the dense tensor with the strides of an index. Where `index` is null
  // the strides are those of contiguous indices.
  void append_dense_index(View& view, const cb_tensor& dense, const cb_tensor* index) const {
    int64_t steps[max_dims], step = 1;
    for (int d = shape->ndim - 1; d >= 0; --d) steps[d] = step, step *= shape->sizes[d];
    for (int d = 0; d < dense.ndim; ++d) {
      const int own = d - index_dim;
      view.append(dense.sizes[d], own < 0 || own >= shape->ndim ? 0 : index ? index->strides[own] : steps[own]);
    }
  }

 private:
  void add(int dim, const cb_tensor* index) {
    indices[dim] = shape = index;
    ++count;
    slices *= tensor.sizes[dim];
    if (tensor.sizes[dim] == 0 && index->numel > 0)
      throw failure(CB_INDEX_ERROR, "index is out of bounds for dimension %d with size 0", dim);
  }
};

// ---- gather

struct Checks {
  int64_t size;
  FaultSink sink;
  int dim;
  bool wraps, needed;  // not needed: the indices are offsets, checked already
};

template <typename U>
__global__ void __launch_bounds__(threads)
    gather_kernel(U* out, const U* from, const int64_t* numbers, int64_t step, const __grid_constant__ Checks checks,
                  const __grid_constant__ Indexer<3> indexer) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= indexer.count) return;
  uint32_t at[3];
  indexer.at(i, at);
  int64_t number = numbers[at[1]];
  if (checks.needed) number = checks.sink.checked(number, checks.dim, checks.size, checks.wraps);
  out[at[0]] = from[at[2] + number * step];
}

// Adds one indexed dimension to the numbers (`keys`) and offsets of the slices. A slice that is out
// of range or skipped gets the number `slices`.
__global__ void __launch_bounds__(threads)
    find_slices_kernel(uint64_t* keys, int64_t* to, int64_t* from, int64_t first, int64_t from_first, bool begins,
                       const int64_t* numbers, int64_t step, int64_t skipped, uint64_t slices,
                       const __grid_constant__ Checks checks, const __grid_constant__ Indexer<2> indexer) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= indexer.count) return;
  uint32_t at[2];
  indexer.at(i, at);
  const int64_t number = numbers[at[0]], j = first + i;
  const int64_t kept = checks.sink.checked(number, checks.dim, checks.size, checks.wraps);
  const bool there = (kept == number || (checks.wraps && kept == number + checks.size)) && number != skipped;
  const uint64_t before = begins ? 0 : keys[j];
  keys[j] =
      there && before != slices ? before * static_cast<uint64_t>(checks.size) + static_cast<uint64_t>(kept) : slices;
  to[j] = (begins ? 0 : to[j]) + kept * step;
  if (from) from[j] = from_first + at[1];
}

// Finds the numbers and offsets of the slices of all indices. `from` gets the offsets of the slices
// of `dense`; both may be null.
void find_slices(const Call& call, const Indexed& indexed, uint64_t* keys, int64_t* to, int64_t* from,
                 const cb_tensor* dense) {
  const View dense_slices(dense ? *dense : *indexed.shape, dense ? indexed.index_dim : 0, indexed.shape->ndim);
  bool begins = true;
  // The number of a skipped slice stays as it is in later dimensions: no partial number reaches
  // `slices`.
  for (int d = 0; d < indexed.tensor.ndim; ++d) {
    const cb_tensor* index = indexed.indices[d];
    if (!index) continue;
    const Checks checks{indexed.tensor.sizes[d], fault_sink(call), d, indexed.wraps, true};
    int64_t first = 0;
    for_each_piece(
        geometry<2>({index, &dense_slices.tensor}, Order::RowMajor),
        [&](const Geometry<2>& piece, const std::array<int64_t, 2>& offsets) {
          launch(call, find_slices_kernel, blocks_of(piece.numel), threads, 0, keys, to, from, first, offsets[1],
                 begins, data<int64_t>(*index) + offsets[0], indexed.tensor.strides[d], indexed.skipped,
                 static_cast<uint64_t>(indexed.slices), checks, Indexer<2>(piece));
          first += piece.numel;
        },
        Pieces::InOrder);
    begins = false;
  }
}

void gather_slices(const Call& call, const Indexed& indexed, const cb_tensor& out) {
  const int64_t n = indexed.number();
  if (n == 0) return;
  Workspace memory;
  const cb_tensor* index = indexed.shape;
  Checks checks{0, {}, 0, indexed.wraps, indexed.count == 1};
  int64_t step = 1;
  const int64_t* numbers = nullptr;
  if (indexed.count == 1) {
    while (!indexed.indices[checks.dim]) ++checks.dim;
    checks.size = indexed.tensor.sizes[checks.dim];
    checks.sink = fault_sink(call);
    step = indexed.tensor.strides[checks.dim];
    numbers = data<int64_t>(*index);
  } else {
    memory = Workspace(call, static_cast<size_t>(16 * n));
    auto* offsets = memory.as<int64_t>(static_cast<size_t>(8 * n));
    find_slices(call, indexed, memory.as<uint64_t>(), offsets, nullptr, nullptr);
    numbers = offsets;
    index = nullptr;
  }
  if (out.numel == 0) return;
  View self(indexed.tensor, 0, 0), rows(*indexed.shape, 0, 0);
  indexed.append_dense(self, out);
  indexed.append_dense_index(rows, out, index);
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    for_each_piece(geometry<3>({&out, &rows.tensor, &self.tensor}), [&](const Geometry<3>& piece,
                                                                        const std::array<int64_t, 3>& offsets) {
      launch(call, gather_kernel<U>, blocks_of(piece.numel), threads, 0, static_cast<U*>(out.data) + offsets[0],
             data<U>(indexed.tensor) + offsets[2], numbers + offsets[1], step, checks, Indexer<3>(piece));
    });
  });
}

// ---- scatter

void check_number(int64_t n) {
  if (n > int64_t{0x7fffffff})
    throw failure(CB_RUNTIME_ERROR, "%lld indices are more than one call can take on CUDA (2147483647): index in parts",
                  static_cast<long long>(n));
}

// If several indices select the same slice, the last is written: `winners` gets the largest index
// number.
__global__ void __launch_bounds__(threads)
    claim_kernel(uint32_t* winners, const uint64_t* keys, uint64_t slices, uint32_t count) {
  const uint32_t j = blockIdx.x * threads + threadIdx.x;
  if (j < count && keys[j] != slices) atomicMax(winners + keys[j], j + 1);
}

struct Destinations {
  const uint64_t* keys;
  const int64_t* to;
  const uint32_t* winners;  // null where every element becomes `value`
  uint64_t slices;
};

// Where `source` is null every element becomes `value`.
template <typename U>
__global__ void __launch_bounds__(threads)
    scatter_kernel(U* out, const U* source, const __grid_constant__ ElementBits value, int64_t first,
                   const __grid_constant__ Destinations destinations, const __grid_constant__ Indexer<3> indexer) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= indexer.count) return;
  uint32_t at[3];
  indexer.at(i, at);
  const int64_t j = first + at[1];
  const uint64_t key = destinations.keys[j];
  if (key == destinations.slices || (destinations.winners && destinations.winners[key] != static_cast<uint32_t>(j + 1)))
    return;
  out[destinations.to[j] + at[0]] = source ? source[at[2]] : value.as<U>();
}

// Writes `value`, or where that is null the slices of `dense`. The sizes of `dense` hold in both
// cases.
void scatter_slices(const Call& call, const Indexed& indexed, const cb_tensor& dense, const ElementBits* value) {
  const int64_t n = indexed.number();
  if (n == 0) return;
  check_number(n);
  const size_t winner_bytes = value ? 0 : static_cast<size_t>(indexed.slices) * sizeof(uint32_t);
  const Workspace memory(call, static_cast<size_t>(16 * n)), winners(call, winner_bytes);
  auto* keys = memory.as<uint64_t>();
  auto* to = memory.as<int64_t>(static_cast<size_t>(8 * n));
  find_slices(call, indexed, keys, to, nullptr, nullptr);
  if (dense.numel == 0) return;
  if (!value) {
    fill_bytes(call, winners.data(), 0, winner_bytes);
    launch(call, claim_kernel, blocks_of(n), threads, 0, winners.as<uint32_t>(), keys,
           static_cast<uint64_t>(indexed.slices), static_cast<uint32_t>(n));
  }
  const Destinations destinations{keys, to, value ? nullptr : winners.as<uint32_t>(),
                                  static_cast<uint64_t>(indexed.slices)};
  View self(indexed.tensor, 0, 0), rows(*indexed.shape, 0, 0);
  indexed.append_dense(self, dense);
  indexed.append_dense_index(rows, dense, nullptr);
  const cb_tensor& read = value ? self.tensor : dense;
  dispatch_size(itemsize(indexed.tensor.dtype), [&]<typename U>() {
    for_each_piece(geometry<3>({&self.tensor, &rows.tensor, &read}), [&](const Geometry<3>& piece,
                                                                         const std::array<int64_t, 3>& offsets) {
      launch(call, scatter_kernel<U>, blocks_of(piece.numel), threads, 0,
             static_cast<U*>(indexed.tensor.data) + offsets[0], value ? nullptr : data<U>(dense) + offsets[2],
             value ? *value : ElementBits{}, offsets[1], destinations, Indexer<3>(piece));
    });
  });
}

void add_slices(const Call& call, const Indexed& indexed, const cb_tensor& dense, const cb_scalar& factor) {
  const int64_t n = indexed.number();
  if (n == 0) return;
  check_number(n);
  const DeterministicScatterAdd scatter_add(call, n, indexed.slices);
  find_slices(call, indexed, scatter_add.keys(), scatter_add.to(), scatter_add.from(), &dense);
  if (dense.numel == 0) return;
  View self(indexed.tensor, 0, 0), slice(dense, 0, 0);
  for (int d = 0, kept = 0; d < dense.ndim; ++d) {
    if (d >= indexed.index_dim && d < indexed.index_dim + indexed.shape->ndim) continue;
    while (indexed.indices[kept]) ++kept;
    self.append(dense.sizes[d], indexed.tensor.strides[kept++]);
    slice.append(dense.sizes[d], dense.strides[d]);
  }
  scatter_add.run(indexed.tensor, dense.data, geometry<2>({&self.tensor, &slice.tensor}), factor);
}

// ---- operators

void index_select(Call& call) {
  const arguments::IndexSelect args(call);
  const View self(*args.self), index(*args.index), out(call.output());
  gather_slices(call, Indexed(self.tensor, args.dim, index.tensor, false), out.tensor);
}

void index_add(Call& call) {
  const arguments::IndexAdd args(call);
  const View index(*args.index), source(*args.source), out(call.output());
  initialize_from(call, call.output(), *args.self);
  add_slices(call, Indexed(out.tensor, args.dim, index.tensor, false), source.tensor, *args.alpha);
}

void index_copy(Call& call) {
  const arguments::IndexCopy args(call);
  const View index(*args.index), source(*args.source), out(call.output());
  initialize_from(call, call.output(), *args.self);
  scatter_slices(call, Indexed(out.tensor, args.dim, index.tensor, false), source.tensor, nullptr);
}

void index_fill(Call& call) {
  const arguments::IndexFill args(call);
  const View index(*args.index), out(call.output());
  initialize_from(call, call.output(), *args.self);
  const auto dim = static_cast<int>(args.dim);
  View filled(out.tensor, 0, 0);  // one slice for each index
  for (int d = 0; d < out.tensor.ndim; ++d) filled.append(d == dim ? index.tensor.numel : out.sizes[d], 0);
  const ElementBits value = bits_of_scalar(*args.value, out.tensor.dtype);
  scatter_slices(call, Indexed(out.tensor, dim, index.tensor, true), filled.tensor, &value);
}

void index(Call& call) {
  const arguments::Index args(call);
  const cb_tensor &self = *args.self, &out = call.output();
  const Indexed indexed(self, args.indices);
  if (!indexed.shape) return move_elements(call, out, self);
  gather_slices(call, indexed, out);
}

void index_put(Call& call) {
  const arguments::IndexPut args(call);
  const cb_tensor &self = *args.self, &values = *args.values, &out = call.output();
  const bool accumulate = args.accumulate;
  const Indexed indexed(out, args.indices);
  if (!indexed.shape && !accumulate) return move_elements(call, out, values);
  initialize_from(call, out, self);
  if (indexed.shape && accumulate) return add_slices(call, indexed, values, no_factor());
  if (indexed.shape) return scatter_slices(call, indexed, values, nullptr);
  if (out.numel == 0) return;
  const DeterministicScatterAdd scatter_add(call, 1, 1);  // without indices the whole tensor is one slice
  fill_bytes(call, scatter_add.keys(), 0, sizeof(uint64_t));
  fill_bytes(call, scatter_add.to(), 0, sizeof(int64_t));
  fill_bytes(call, scatter_add.from(), 0, sizeof(int64_t));
  scatter_add.run(out, values.data, geometry<2>({&out, &values}), no_factor());
}

// Indexes a 1-D view of self; self is copied where its elements have no constant stride.
void take(Call& call) {
  const arguments::Take args(call);
  const cb_tensor &self = *args.self, &out = call.output();
  if (out.numel == 0) return;
  View sequence(self, 0, 0);
  const Geometry<1> g = geometry<1>({&self}, Order::RowMajor);
  Workspace copy;
  if (!g.flat()) {
    copy = Workspace(call, static_cast<size_t>(self.numel * itemsize(self.dtype)));
    View dense(self);
    int64_t step = 1;
    for (int d = self.ndim - 1; d >= 0; --d) dense.strides[d] = step, step *= self.sizes[d];
    dense.tensor.data = sequence.tensor.data = copy.data();
    move_elements(call, dense.tensor, self);
  }
  sequence.append(self.numel, g.flat() ? g.strides[0][0] : 1);
  gather_slices(call, Indexed(sequence.tensor, 0, *args.index, true), out);
}

void embedding(Call& call) {
  const arguments::Embedding args(call);
  gather_slices(call, Indexed(*args.weight, 0, *args.indices, false), call.output());
}

void embedding_backward(Call& call) {
  const arguments::EmbeddingBackward args(call);
  const cb_tensor &grad = *args.grad, &out = call.output();
  if (!is_floating_dtype(out.dtype) && !is_complex_dtype(out.dtype)) throw not_implemented();
  clear(call, out);
  Indexed indexed(out, 0, *args.indices, false);
  if (args.padding_idx >= 0) indexed.skipped = args.padding_idx;
  add_slices(call, indexed, grad, no_factor());
}

}  // namespace

void register_indexing_slices(KernelTable& table) {
  table.add<index_select>("index_select");
  table.add<index_add>("index_add");
  table.add<index_copy>("index_copy");
  table.add<index_fill>("index_fill");
  table.add<index>("index");
  table.add<index_put>("index_put");
  table.add<take>("take");
  table.add<embedding>("embedding");
  table.add<embedding_backward>("embedding_backward");
}

}  // namespace candelabra::cuda
