// gather, scatter, scatter_add: one index for each element.
#include "candelabra/arguments/indexing.hpp"
#include "drivers/element_offsets.hpp"
#include "drivers/move.hpp"
#include "drivers/scatter_add.hpp"

namespace candelabra::cuda {
namespace {

constexpr int threads = 256;

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
  const arguments::Gather args(call);
  const cb_tensor &self = *args.self, &index = *args.index, &out = call.output();
  if (index.numel == 0) return;
  const Along along(call, self, args.dim);
  const Seen from(self, index, args.dim);
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    for_each_piece(geometry<3>({&out, &index, &from.tensor}), [&](const Geometry<3>& piece,
                                                                  const std::array<int64_t, 3>& offsets) {
      launch(call, gather_kernel<U>, blocks_of(piece.numel), threads, 0, static_cast<U*>(out.data) + offsets[0],
             data<U>(self) + offsets[2], data<int64_t>(index) + offsets[1], from.step, along, Indexer<3>(piece));
    });
  });
}

// If several elements have the same index, the last along the dimension is written. atomicMax finds
// the largest element number for each destination; only that element is written then. Element
// numbers grow along `dim`.
__global__ void __launch_bounds__(threads)
    claim_kernel(uint32_t* winners, const int64_t* numbers, int64_t step, const __grid_constant__ Along along,
                 const __grid_constant__ Indexer<4> indexer) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= indexer.count) return;
  uint32_t at[4];
  indexer.at(i, at);
  atomicMax(winners + at[3] + along.checked(numbers[at[0]]) * step, i + 1);
}

// Where `winners` and `source` are null, every element written is `value`.
template <typename U>
__global__ void __launch_bounds__(threads)
    scatter_kernel(U* out, int64_t step, const U* source, const __grid_constant__ ElementBits value,
                   const uint32_t* winners, int64_t winner_step, const int64_t* numbers,
                   const __grid_constant__ Along along, const __grid_constant__ Indexer<4> indexer) {
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
  const arguments::Scatter args(call);
  const cb_tensor &self = *args.self, &index = *args.index, &source = *args.src, &out = call.output();
  const int64_t dim = args.dim;
  initialize_from(call, out, self);
  if (index.numel == 0) return;
  const Along along(call, out, dim);
  const bool is_scalar = is_number(source);
  const ElementBits value = is_scalar ? bits_of_number(source, out.dtype) : ElementBits{};
  const Numbered numbered(out);
  const Seen to(out, index, dim), winner(numbered.tensor, index, dim);
  Numbered values(index);  // a placeholder for a scalar source: it is never read
  cb_tensor from = is_scalar ? values.tensor : source;
  from.sizes = index.sizes;
  from.numel = index.numel;
  from.ndim = index.ndim;
  const size_t bytes = is_scalar ? 0 : static_cast<size_t>(out.numel) * sizeof(uint32_t);
  const Workspace winners(call, bytes);
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    for_each_piece(geometry<4>({&index, &to.tensor, &from, &winner.tensor}),
                   [&](const Geometry<4>& piece, const std::array<int64_t, 4>& offsets) {
                     const Indexer<4> indexer(piece);
                     const int64_t* numbers = data<int64_t>(index) + offsets[0];
                     uint32_t* piece_winners = is_scalar ? nullptr : winners.as<uint32_t>() + offsets[3];
                     if (piece_winners) {
                       fill_bytes(call, winners.data(), 0, bytes);
                       launch(call, claim_kernel, blocks_of(piece.numel), threads, 0, piece_winners, numbers,
                              winner.step, along, indexer);
                     }
                     launch(call, scatter_kernel<U>, blocks_of(piece.numel), threads, 0,
                            static_cast<U*>(out.data) + offsets[1], to.step,
                            is_scalar ? nullptr : data<U>(source) + offsets[2], value, piece_winners, winner.step,
                            numbers, along, indexer);
                   });
  });
}

void scatter_add(Call& call) {
  const arguments::ScatterAdd args(call);
  const cb_tensor &self = *args.self, &index = *args.index, &source = *args.src, &out = call.output();
  initialize_from(call, out, self);
  if (index.numel == 0) return;
  const ElementOffsets destinations(call, out, index, source, args.dim);
  for_each_piece(destinations.geometry(), [&](const Geometry<4>& piece, const std::array<int64_t, 4>& offsets) {
    const DeterministicScatterAdd scatter_add(call, piece.numel, out.numel);
    destinations.write(scatter_add, 0, piece, offsets);
    scatter_add.run(out, source.data, one_element(), no_factor());
  });
}

}  // namespace

void register_indexing(KernelTable& table) {
  table.add<gather>("gather");
  table.add<scatter>("scatter");
  table.add<scatter_add>("scatter_add");
}

}  // namespace candelabra::cuda
