// cat, stack, flip, tril, triu.
#include <algorithm>

#include "candelabra/arguments/joining.hpp"
#include "drivers/move.hpp"
#include "runtime/launch.hpp"

namespace candelabra::cuda {
namespace {

constexpr int threads = 256;

char* address(const cb_tensor& tensor, int64_t element) {
  return static_cast<char*>(tensor.data) + element * itemsize(tensor.dtype);
}

void cat(Call& call) {
  const arguments::Cat args(call);
  const cb_tensor& out = call.output();
  const int64_t dim = args.dim;
  int64_t at = 0;
  for (const cb_tensor* part : args.tensors) {
    cb_tensor destination = *part;
    destination.data = address(out, at * out.strides[dim]);
    destination.strides = out.strides;
    move_elements(call, destination, *part);
    at += part->sizes[dim];
  }
}

void stack(Call& call) {
  const arguments::Stack args(call);
  const cb_tensor& out = call.output();
  const int64_t dim = args.dim;
  int64_t strides[max_dims], at = 0;
  for (int d = 0, kept = 0; d < out.ndim; ++d)
    if (d != dim) strides[kept++] = out.strides[d];
  for (const cb_tensor* part : args.tensors) {
    cb_tensor destination = *part;
    destination.data = address(out, at++ * out.strides[dim]);
    destination.strides = strides;
    move_elements(call, destination, *part);
  }
}

// Copies a view of the input with negative strides.
void flip(Call& call) {
  const arguments::Flip args(call);
  const cb_tensor &in = *args.self, &out = call.output();
  if (out.numel == 0) return;
  int64_t strides[max_dims], last = 0;
  std::copy_n(in.strides, in.ndim, strides);
  for (const int64_t d : args.dims) {
    last += (in.sizes[d] - 1) * in.strides[d];
    strides[d] = -in.strides[d];
  }
  cb_tensor reversed = in;
  reversed.data = address(in, last);
  reversed.strides = strides;
  move_elements(call, out, reversed);
}

// Element i of a piece is element first + i of the tensor, in row-major order. The columns up to
// the diagonal (Lower), or from the diagonal on, are kept.
template <typename U, bool Lower>
__global__ void __launch_bounds__(threads)
    triangle_kernel(U* out, const U* in, int64_t first, int64_t rows, int64_t columns, int64_t diagonal,
                    const __grid_constant__ Indexer<2> indexer) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= indexer.count) return;
  uint32_t at[2];
  indexer.at(i, at);
  const int64_t element = first + i, row = element / columns, distance = element - row * columns - row % rows;
  const bool kept = Lower ? distance <= diagonal : distance >= diagonal;
  out[at[0]] = kept ? in[at[1]] : U{};
}

// tril, triu: the same arguments.
template <bool Lower>
void triangle(Call& call) {
  const arguments::Tril args(call);
  const cb_tensor &in = *args.self, &out = call.output();
  if (out.numel == 0) return;
  const int last = out.ndim - 1;
  const int64_t rows = out.sizes[last - 1], columns = out.sizes[last], diagonal = args.diagonal;
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    int64_t first = 0;
    for_each_piece(
        geometry<2>({&out, &in}, Order::RowMajor),
        [&](const Geometry<2>& piece, const std::array<int64_t, 2>& offsets) {
          launch(call, triangle_kernel<U, Lower>, static_cast<unsigned>(divide_up(piece.numel, threads)), threads, 0,
                 static_cast<U*>(out.data) + offsets[0], static_cast<const U*>(in.data) + offsets[1], first, rows,
                 columns, diagonal, Indexer<2>(piece));
          first += piece.numel;
        },
        Pieces::InOrder);
  });
}

}  // namespace

void register_joining(KernelTable& table) {
  table.add<cat>("cat");
  table.add<stack>("stack");
  table.add<flip>("flip");
  table.add<triangle<true>>("tril");
  table.add<triangle<false>>("triu");
}

}  // namespace candelabra::cuda
