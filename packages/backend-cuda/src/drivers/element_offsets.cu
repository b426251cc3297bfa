#include "drivers/element_offsets.hpp"

namespace candelabra::cuda {
namespace {

constexpr int threads = 256;

// Writes the key, the output offset and the source offset of each element.
__global__ void __launch_bounds__(threads)
    place_kernel(uint64_t* keys, int64_t* to, int64_t* from, const int64_t* numbers, int64_t key_step, int64_t to_step,
                 int64_t key_first, int64_t to_first, int64_t from_first, int64_t places,
                 const __grid_constant__ Along along, const __grid_constant__ Indexer<4> indexer) {
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

cb_tensor as_far_as(const cb_tensor& source, const cb_tensor& index) {
  cb_tensor seen = source;
  seen.sizes = index.sizes;
  seen.numel = index.numel;
  seen.ndim = index.ndim;
  return seen;
}

}  // namespace

ElementOffsets::ElementOffsets(const Call& call, const cb_tensor& out, const cb_tensor& index, const cb_tensor& source,
                               int64_t dim)
    : call_(call),
      index_(index),
      places_(out.numel),
      along_(call, out, dim),
      numbered_(out),
      to_(out, index, dim),
      key_(numbered_.tensor, index, dim) {
  const cb_tensor from = as_far_as(source, index);
  geometry_ = cuda::geometry<4>({&index, &to_.tensor, &from, &key_.tensor});
}

void ElementOffsets::write(const DeterministicScatterAdd& scatter_add, int64_t first, const Geometry<4>& piece,
                           const std::array<int64_t, 4>& offsets) const {
  launch(call_, place_kernel, static_cast<unsigned>(divide_up(piece.numel, threads)), threads, 0,
         scatter_add.keys() + first, scatter_add.to() + first, scatter_add.from() + first,
         data<int64_t>(index_) + offsets[0], key_.step, to_.step, offsets[3], offsets[1], offsets[2], places_, along_,
         Indexer<4>(piece));
}

Geometry<2> one_element() {
  Geometry<2> element{};
  element.numel = 1;
  element.sizes[0] = 1;
  element.strides[0][0] = element.strides[1][0] = 1;
  return element;
}

}  // namespace candelabra::cuda
