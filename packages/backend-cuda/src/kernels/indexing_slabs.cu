// One index for a whole slab of elements: index_select, index_add, index_copy, index_fill, index, index_put, take, embedding and
// its gradient.
#include <algorithm>
#include <limits>

#include "additions.hpp"
#include "move.hpp"

namespace candelabra::cuda {
namespace {

constexpr int threads = 256;

unsigned blocks_of(int64_t count) {
  return static_cast<unsigned>(divide_up(count, threads));
}

// A tensor's descriptor with sizes and strides of its own; one of no dimensions is seen with one of size 1.
struct View {
  int64_t sizes[max_dims], strides[max_dims];
  cb_tensor tensor;

  explicit View(const cb_tensor& original) : View(original, 0, original.ndim) {
    if (original.ndim == 0) append(1, 1);
  }
  // Some of its dimensions.
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

// Which dimensions of a tensor are indexed by what, and where the dimensions of the indices are in the tensor that goes with it:
// the dense one, which has those and the tensor's others.
struct Indexed {
  const cb_tensor& tensor;
  const cb_tensor* indices[max_dims] = {};
  const cb_tensor* shape = nullptr;  // one of the indices: all have one shape
  int count = 0, place = 0;
  bool wraps = true;
  int64_t places = 1;                                     // how many there are to be indexed
  int64_t dropped = std::numeric_limits<int64_t>::min();  // a number whose slabs are left out

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
    place = adjacent && first >= 0 ? first : 0;
  }
  Indexed(const cb_tensor& of, int64_t dim, const cb_tensor& index, bool from_the_end) : tensor(of), wraps(from_the_end) {
    add(static_cast<int>(dim), &index);
    place = static_cast<int>(dim);
  }

  int64_t number() const { return shape->numel; }
  // The dimensions of the dense tensor, with the strides that the indexed one has there: 0 in those of the indices.
  void spread(View& view, const cb_tensor& dense) const {
    int kept = 0;
    for (int d = 0; d < dense.ndim; ++d) {
      if (d >= place && d < place + shape->ndim) {
        view.append(dense.sizes[d], 0);
        continue;
      }
      while (indices[kept]) ++kept;
      view.append(dense.sizes[d], tensor.strides[kept++]);
    }
  }
  // The same with the strides of an index, or, where that is null, with the numbers of its elements.
  void spread_numbers(View& view, const cb_tensor& dense, const cb_tensor* index) const {
    int64_t steps[max_dims], step = 1;
    for (int d = shape->ndim - 1; d >= 0; --d) steps[d] = step, step *= shape->sizes[d];
    for (int d = 0; d < dense.ndim; ++d) {
      const int own = d - place;
      view.append(dense.sizes[d], own < 0 || own >= shape->ndim ? 0 : index ? index->strides[own] : steps[own]);
    }
  }

 private:
  void add(int dim, const cb_tensor* index) {
    indices[dim] = shape = index;
    ++count;
    places *= tensor.sizes[dim];
    if (tensor.sizes[dim] == 0 && index->numel > 0)
      throw failure(CB_INDEX_ERROR, "index is out of bounds for dimension %d with size 0", dim);
  }
};

// ---- reading

struct Checks {
  int64_t size;
  FaultSink sink;
  int dim;
  bool wraps, needed;  // not needed: the numbers are offsets that were checked before
};

template <typename U>
__global__ void __launch_bounds__(threads)
    read_kernel(U* out, const U* from, const int64_t* numbers, int64_t step, const __grid_constant__ Checks checks,
                const __grid_constant__ Indexer<3> indexer) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= indexer.count) return;
  uint32_t at[3];
  indexer.at(i, at);
  int64_t number = numbers[at[1]];
  if (checks.needed) number = checks.sink.checked(number, checks.dim, checks.size, checks.wraps);
  out[at[0]] = from[at[2] + number * step];
}

// Offsets and numbers of places, one dimension after another; a place that is not there gets the number `places`.
__global__ void __launch_bounds__(threads)
    place_kernel(uint64_t* keys, int64_t* to, int64_t* from, int64_t first, int64_t from_first, bool begins, const int64_t* numbers,
                 int64_t step, int64_t dropped, uint64_t places, const __grid_constant__ Checks checks,
                 const __grid_constant__ Indexer<2> indexer) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= indexer.count) return;
  uint32_t at[2];
  indexer.at(i, at);
  const int64_t number = numbers[at[0]], j = first + i;
  const int64_t kept = checks.sink.checked(number, checks.dim, checks.size, checks.wraps);
  const bool there = (kept == number || (checks.wraps && kept == number + checks.size)) && number != dropped;
  const uint64_t before = begins ? 0 : keys[j];
  keys[j] = there && before != places ? before * static_cast<uint64_t>(checks.size) + static_cast<uint64_t>(kept) : places;
  to[j] = (begins ? 0 : to[j]) + kept * step;
  if (from) from[j] = from_first + at[1];
}

// The places of all indices. `dense`: where to write the offsets of its slabs, or null.
void find_places(const Call& call, const Indexed& indexed, uint64_t* keys, int64_t* to, int64_t* from, const cb_tensor* dense) {
  const View slabs(dense ? *dense : *indexed.shape, dense ? indexed.place : 0, indexed.shape->ndim);
  bool begins = true;
  // A number that was left out stands for itself until the last dimension: `places` is larger than any number on the way.
  for (int d = 0; d < indexed.tensor.ndim; ++d) {
    const cb_tensor* index = indexed.indices[d];
    if (!index) continue;
    const Checks checks{indexed.tensor.sizes[d], fault_sink(call), d, indexed.wraps, true};
    int64_t first = 0;
    for_each_piece(
        geometry<2>({index, &slabs.tensor}, Order::RowMajor),
        [&](const Geometry<2>& piece, const std::array<int64_t, 2>& offsets) {
          launch(call, place_kernel, blocks_of(piece.numel), threads, 0, keys, to, from, first, offsets[1], begins,
                 data<int64_t>(*index) + offsets[0], indexed.tensor.strides[d], indexed.dropped,
                 static_cast<uint64_t>(indexed.places), checks, Indexer<2>(piece));
          first += piece.numel;
        },
        Pieces::InOrder);
    begins = false;
  }
}

void read_slabs(const Call& call, const Indexed& indexed, const cb_tensor& out) {
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
    find_places(call, indexed, memory.as<uint64_t>(), offsets, nullptr, nullptr);
    numbers = offsets;
    index = nullptr;
  }
  if (out.numel == 0) return;
  View self(indexed.tensor, 0, 0), rows(*indexed.shape, 0, 0);
  indexed.spread(self, out);
  indexed.spread_numbers(rows, out, index);
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    for_each_piece(geometry<3>({&out, &rows.tensor, &self.tensor}),
                   [&](const Geometry<3>& piece, const std::array<int64_t, 3>& offsets) {
                     launch(call, read_kernel<U>, blocks_of(piece.numel), threads, 0, static_cast<U*>(out.data) + offsets[0],
                            data<U>(indexed.tensor) + offsets[2], numbers + offsets[1], step, checks, Indexer<3>(piece));
                   });
  });
}

// ---- writing

void check_number(int64_t n) {
  if (n > int64_t{0x7fffffff})
    throw failure(CB_RUNTIME_ERROR, "%lld indices are more than one call can take on CUDA (2147483647): index in parts",
                  static_cast<long long>(n));
}

// Of slabs that go to one place the last one stays: the largest number is kept for each place.
__global__ void __launch_bounds__(threads) claim_kernel(uint32_t* winners, const uint64_t* keys, uint64_t places, uint32_t count) {
  const uint32_t j = blockIdx.x * threads + threadIdx.x;
  if (j < count && keys[j] != places) atomicMax(winners + keys[j], j + 1);
}

struct Places {
  const uint64_t* keys;
  const int64_t* to;
  const uint32_t* winners;  // null where all slabs are the same
  uint64_t places;
};

// source null: every element becomes `value`.
template <typename U>
__global__ void __launch_bounds__(threads)
    write_kernel(U* out, const U* source, const __grid_constant__ ElementBits value, int64_t first,
                 const __grid_constant__ Places places, const __grid_constant__ Indexer<3> indexer) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= indexer.count) return;
  uint32_t at[3];
  indexer.at(i, at);
  const int64_t j = first + at[1];
  const uint64_t key = places.keys[j];
  if (key == places.places || (places.winners && places.winners[key] != static_cast<uint32_t>(j + 1))) return;
  out[places.to[j] + at[0]] = source ? source[at[2]] : value.as<U>();
}

// `value` is written where it is given, else the slabs of `dense`, whose sizes count either way.
void write_slabs(const Call& call, const Indexed& indexed, const cb_tensor& dense, const ElementBits* value) {
  const int64_t n = indexed.number();
  if (n == 0) return;
  check_number(n);
  const size_t winner_bytes = value ? 0 : static_cast<size_t>(indexed.places) * sizeof(uint32_t);
  const Workspace memory(call, static_cast<size_t>(16 * n)), winners(call, winner_bytes);
  auto* keys = memory.as<uint64_t>();
  auto* to = memory.as<int64_t>(static_cast<size_t>(8 * n));
  find_places(call, indexed, keys, to, nullptr, nullptr);
  if (dense.numel == 0) return;
  if (!value) {
    fill_bytes(call, winners.data(), 0, winner_bytes);
    launch(call, claim_kernel, blocks_of(n), threads, 0, winners.as<uint32_t>(), keys, static_cast<uint64_t>(indexed.places),
           static_cast<uint32_t>(n));
  }
  const Places places{keys, to, value ? nullptr : winners.as<uint32_t>(), static_cast<uint64_t>(indexed.places)};
  View self(indexed.tensor, 0, 0), rows(*indexed.shape, 0, 0);
  indexed.spread(self, dense);
  indexed.spread_numbers(rows, dense, nullptr);
  const cb_tensor& read = value ? self.tensor : dense;
  dispatch_size(itemsize(indexed.tensor.dtype), [&]<typename U>() {
    for_each_piece(geometry<3>({&self.tensor, &rows.tensor, &read}), [&](const Geometry<3>& piece,
                                                                         const std::array<int64_t, 3>& offsets) {
      launch(call, write_kernel<U>, blocks_of(piece.numel), threads, 0, static_cast<U*>(indexed.tensor.data) + offsets[0],
             value ? nullptr : data<U>(dense) + offsets[2], value ? *value : ElementBits{}, offsets[1], places, Indexer<3>(piece));
    });
  });
}

void add_slabs(const Call& call, const Indexed& indexed, const cb_tensor& dense, const cb_scalar& factor) {
  const int64_t n = indexed.number();
  if (n == 0) return;
  check_number(n);
  const Additions additions(call, n, indexed.places);
  find_places(call, indexed, additions.keys(), additions.to(), additions.from(), &dense);
  if (dense.numel == 0) return;
  View self(indexed.tensor, 0, 0), slab(dense, 0, 0);
  for (int d = 0, kept = 0; d < dense.ndim; ++d) {
    if (d >= indexed.place && d < indexed.place + indexed.shape->ndim) continue;
    while (indexed.indices[kept]) ++kept;
    self.append(dense.sizes[d], indexed.tensor.strides[kept++]);
    slab.append(dense.sizes[d], dense.strides[d]);
  }
  additions.run(indexed.tensor, dense.data, geometry<2>({&self.tensor, &slab.tensor}), factor);
}

// ---- operators

void index_select(Call& call) {
  const View self(call.tensor(0)), index(call.tensor(2)), out(call.output());
  read_slabs(call, Indexed(self.tensor, call.integer(1), index.tensor, false), out.tensor);
}

void index_add(Call& call) {
  const View index(call.tensor(2)), source(call.tensor(3)), out(call.output());
  begin_as(call, call.output(), call.tensor(0));
  add_slabs(call, Indexed(out.tensor, call.integer(1), index.tensor, false), source.tensor, call.scalar(4));
}

void index_copy(Call& call) {
  const View index(call.tensor(2)), source(call.tensor(3)), out(call.output());
  begin_as(call, call.output(), call.tensor(0));
  write_slabs(call, Indexed(out.tensor, call.integer(1), index.tensor, false), source.tensor, nullptr);
}

void index_fill(Call& call) {
  const View index(call.tensor(2)), out(call.output());
  begin_as(call, call.output(), call.tensor(0));
  const auto dim = static_cast<int>(call.integer(1));
  View filled(out.tensor, 0, 0);  // as many slabs as there are indices
  for (int d = 0; d < out.tensor.ndim; ++d) filled.append(d == dim ? index.tensor.numel : out.sizes[d], 0);
  const ElementBits value = bits_of_scalar(call.scalar(3), out.tensor.dtype);
  write_slabs(call, Indexed(out.tensor, dim, index.tensor, true), filled.tensor, &value);
}

void index(Call& call) {
  const cb_tensor &self = call.tensor(0), &out = call.output();
  const Indexed indexed(self, call.tensors(1));
  if (!indexed.shape) return move_elements(call, out, self);
  read_slabs(call, indexed, out);
}

void index_put(Call& call) {
  const cb_tensor &self = call.tensor(0), &values = call.tensor(2), &out = call.output();
  const bool accumulate = call.boolean(3);
  const Indexed indexed(out, call.tensors(1));
  if (!indexed.shape && !accumulate) return move_elements(call, out, values);
  begin_as(call, out, self);
  if (indexed.shape && accumulate) return add_slabs(call, indexed, values, no_factor());
  if (indexed.shape) return write_slabs(call, indexed, values, nullptr);
  if (out.numel == 0) return;
  const Additions all(call, 1, 1);  // one slab, at the beginning of both
  fill_bytes(call, all.keys(), 0, sizeof(uint64_t));
  fill_bytes(call, all.to(), 0, sizeof(int64_t));
  fill_bytes(call, all.from(), 0, sizeof(int64_t));
  all.run(out, values.data, geometry<2>({&out, &values}), no_factor());
}

// self as a line: where its elements are not a step apart, in a copy.
void take(Call& call) {
  const cb_tensor &self = call.tensor(0), &out = call.output();
  if (out.numel == 0) return;
  View line(self, 0, 0);
  const Geometry<1> g = geometry<1>({&self}, Order::RowMajor);
  Workspace copy;
  if (!g.flat()) {
    copy = Workspace(call, static_cast<size_t>(self.numel * itemsize(self.dtype)));
    View dense(self);
    int64_t step = 1;
    for (int d = self.ndim - 1; d >= 0; --d) dense.strides[d] = step, step *= self.sizes[d];
    dense.tensor.data = line.tensor.data = copy.data();
    move_elements(call, dense.tensor, self);
  }
  line.append(self.numel, g.flat() ? g.strides[0][0] : 1);
  read_slabs(call, Indexed(line.tensor, 0, call.tensor(1), true), out);
}

void embedding(Call& call) {
  read_slabs(call, Indexed(call.tensor(0), 0, call.tensor(1), false), call.output());
}

void embedding_backward(Call& call) {
  const cb_tensor &grad = call.tensor(0), &out = call.output();
  if (!is_floating_dtype(out.dtype) && !is_complex_dtype(out.dtype)) throw not_implemented();
  clear(call, out);
  Indexed indexed(out, 0, call.tensor(1), false);
  if (call.integer(3) >= 0) indexed.dropped = call.integer(3);
  add_slabs(call, indexed, grad, no_factor());
}

}  // namespace

void register_indexing_slabs(KernelTable& table) {
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
