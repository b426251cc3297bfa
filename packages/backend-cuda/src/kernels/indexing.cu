// gather, scatter, scatter_add: one index for every element.
#include "additions.hpp"
#include "move.hpp"

namespace candelabra::cuda {
namespace {

constexpr int threads = 256;

// A tensor as far as an index reaches, seen without the dimension that is indexed: stride 0 there. `step` is the stride it had.
struct Seen {
  int64_t strides[max_dims];
  int64_t step = 0;
  cb_tensor tensor;

  Seen(const cb_tensor& original, const cb_tensor& index, int64_t dim) : tensor(original) {
    for (int d = 0; d < index.ndim; ++d) {
      strides[d] = is_number(original) || d == dim ? 0 : original.strides[d];
      if (d == dim && !is_number(original)) step = original.strides[d];
    }
    tensor.ndim = index.ndim;
    tensor.sizes = index.sizes;
    tensor.strides = strides;
    tensor.numel = index.numel;
  }
  Seen(const Seen&) = delete;
  Seen& operator=(const Seen&) = delete;
};

// The strides that a tensor of these sizes has without gaps: numbers of its elements.
struct Numbered {
  int64_t strides[max_dims];
  cb_tensor tensor;

  explicit Numbered(const cb_tensor& of) : tensor(of) {
    int64_t step = 1;
    for (int d = of.ndim - 1; d >= 0; --d) strides[d] = step, step *= of.sizes[d];
    tensor.strides = strides;
  }
  Numbered(const Numbered&) = delete;
  Numbered& operator=(const Numbered&) = delete;
};

// What a kernel checks the numbers along a dimension with.
struct Along {
  int64_t size;
  int dim;
  FaultSink sink;

  Along(const Call& call, const cb_tensor& indexed, int64_t along)
      : size(indexed.ndim ? indexed.sizes[along] : 1), dim(static_cast<int>(along)), sink(fault_sink(call)) {
    if (size == 0)
      throw failure(CB_RUNTIME_ERROR, "index is out of bounds for dimension %lld with size 0", static_cast<long long>(along));
  }
#ifdef __CUDACC__
  __device__ int64_t checked(int64_t number) const { return sink.checked(number, dim, size, false, FaultKind::RuntimeIndex); }
#endif
};

unsigned blocks_of(int64_t count) {
  return static_cast<unsigned>(divide_up(count, threads));
}

template <typename U>
__global__ void __launch_bounds__(threads)
    gather_kernel(U* out, const U* self, const int64_t* numbers, int64_t step, const __grid_constant__ Along along,
                  const __grid_constant__ Indexer<3> indexer) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= indexer.count) return;
  uint32_t at[3];
  indexer.at(i, at);
  out[at[0]] = self[at[2] + along.checked(numbers[at[1]]) * step];
}

void gather(Call& call) {
  const cb_tensor &self = call.tensor(0), &index = call.tensor(2), &out = call.output();
  if (index.numel == 0) return;
  const Along along(call, self, call.integer(1));
  const Seen from(self, index, call.integer(1));
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    for_each_piece(geometry<3>({&out, &index, &from.tensor}), [&](const Geometry<3>& piece, const std::array<int64_t, 3>& offsets) {
      launch(call, gather_kernel<U>, blocks_of(piece.numel), threads, 0, static_cast<U*>(out.data) + offsets[0],
             data<U>(self) + offsets[2], data<int64_t>(index) + offsets[1], from.step, along, Indexer<3>(piece));
    });
  });
}

// Of the elements that go to one place, the last along the dimension is to stay there. Each says its number in the piece, and the
// largest is kept; whoever finds his own then writes. Within a line, numbers grow along the dimension.
__global__ void __launch_bounds__(threads)
    claim_kernel(uint32_t* winners, const int64_t* numbers, int64_t step, const __grid_constant__ Along along,
                 const __grid_constant__ Indexer<4> indexer) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= indexer.count) return;
  uint32_t at[4];
  indexer.at(i, at);
  atomicMax(winners + at[3] + along.checked(numbers[at[0]]) * step, i + 1);
}

// winners null: all elements that are written are the same one. source null: that is `value`.
template <typename U>
__global__ void __launch_bounds__(threads)
    scatter_kernel(U* out, int64_t step, const U* source, const __grid_constant__ ElementBits value, const uint32_t* winners,
                   int64_t winner_step, const int64_t* numbers, const __grid_constant__ Along along,
                   const __grid_constant__ Indexer<4> indexer) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= indexer.count) return;
  uint32_t at[4];
  indexer.at(i, at);
  const int64_t number = numbers[at[0]];
  if (number < 0 || number >= along.size) {
    along.checked(number);
    return;
  }
  if (winners && winners[at[3] + number * winner_step] != i + 1) return;
  out[at[1] + number * step] = source ? source[at[2]] : value.as<U>();
}

void scatter(Call& call) {
  const cb_tensor &self = call.tensor(0), &index = call.tensor(2), &source = call.tensor(3), &out = call.output();
  const int64_t dim = call.integer(1);
  begin_as(call, out, self);
  if (index.numel == 0) return;
  const Along along(call, out, dim);
  const bool one_value = is_number(source);
  const ElementBits value = one_value ? bits_of_number(source, out.dtype) : ElementBits{};
  const Numbered places(out);
  const Seen to(out, index, dim), winner(places.tensor, index, dim);
  Numbered values(index);  // of a number: strides that nothing is read by
  cb_tensor from = one_value ? values.tensor : source;
  from.sizes = index.sizes;
  from.numel = index.numel;
  from.ndim = index.ndim;
  const size_t bytes = one_value ? 0 : static_cast<size_t>(out.numel) * sizeof(uint32_t);
  const Workspace winners(call, bytes);
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    for_each_piece(geometry<4>({&index, &to.tensor, &from, &winner.tensor}), [&](const Geometry<4>& piece,
                                                                                 const std::array<int64_t, 4>& offsets) {
      const Indexer<4> indexer(piece);
      const int64_t* numbers = data<int64_t>(index) + offsets[0];
      uint32_t* claimed = one_value ? nullptr : winners.as<uint32_t>() + offsets[3];
      if (claimed) {
        fill_bytes(call, winners.data(), 0, bytes);
        launch(call, claim_kernel, blocks_of(piece.numel), threads, 0, claimed, numbers, winner.step, along, indexer);
      }
      launch(call, scatter_kernel<U>, blocks_of(piece.numel), threads, 0, static_cast<U*>(out.data) + offsets[1], to.step,
             one_value ? nullptr : data<U>(source) + offsets[2], value, claimed, winner.step, numbers, along, indexer);
    });
  });
}

// Pair i of the additions is element i of the piece: its place in the output by number and by offset, and where it is read.
__global__ void __launch_bounds__(threads)
    place_kernel(uint64_t* keys, int64_t* to, int64_t* from, const int64_t* numbers, int64_t key_step, int64_t to_step,
                 int64_t key_first, int64_t to_first, int64_t from_first, int64_t places, const __grid_constant__ Along along,
                 const __grid_constant__ Indexer<4> indexer) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= indexer.count) return;
  uint32_t at[4];
  indexer.at(i, at);
  const int64_t number = numbers[at[0]];
  const int64_t kept = along.checked(number);
  keys[i] = static_cast<uint64_t>(kept == number ? key_first + at[3] + kept * key_step : places);
  to[i] = to_first + at[1] + kept * to_step;
  from[i] = from_first + at[2];
}

void scatter_add(Call& call) {
  const cb_tensor &self = call.tensor(0), &index = call.tensor(2), &source = call.tensor(3), &out = call.output();
  const int64_t dim = call.integer(1);
  begin_as(call, out, self);
  if (index.numel == 0) return;
  const Along along(call, out, dim);
  const Numbered places(out);
  const Seen to(out, index, dim), key(places.tensor, index, dim);
  cb_tensor from = source;
  from.sizes = index.sizes;
  from.numel = index.numel;
  from.ndim = index.ndim;
  Geometry<2> element{};
  element.numel = 1;
  element.sizes[0] = 1;
  element.strides[0][0] = element.strides[1][0] = 1;
  for_each_piece(geometry<4>({&index, &to.tensor, &from, &key.tensor}),
                 [&](const Geometry<4>& piece, const std::array<int64_t, 4>& offsets) {
                   const Additions additions(call, piece.numel, out.numel);
                   launch(call, place_kernel, blocks_of(piece.numel), threads, 0, additions.keys(), additions.to(),
                          additions.from(), data<int64_t>(index) + offsets[0], key.step, to.step, offsets[3], offsets[1],
                          offsets[2], out.numel, along, Indexer<4>(piece));
                   additions.run(out, from.data, element, no_factor());
                 });
}

}  // namespace

void register_indexing(KernelTable& table) {
  table.add<gather>("gather");
  table.add<scatter>("scatter");
  table.add<scatter_add>("scatter_add");
}

}  // namespace candelabra::cuda
