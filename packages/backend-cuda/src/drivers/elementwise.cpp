#include "drivers/elementwise.hpp"

#include <cstring>

#include "runtime/launch.hpp"

namespace candelabra::cuda::elementwise {

namespace {

// Writes a Python number in the type that the formula computes in.
void read_number(const cb_tensor& tensor, int size, bool as_float, unsigned char* value) {
  if (as_float) {
    const float number = number_of<float>(tensor);
    std::memcpy(value, &number, sizeof number);
  } else if (tensor.dtype == CB_BOOL) {
    *value = *static_cast<const uint8_t*>(tensor.data) != 0;
  } else {
    if (itemsize(tensor.dtype) != size)
      throw failure(CB_RUNTIME_ERROR, "a number of another dtype (%d) stands for a tensor", tensor.dtype);
    std::memcpy(value, tensor.data, static_cast<size_t>(size));
  }
}

// Whether every operand of the piece is aligned, and can be loaded `vec` elements at a time along
// dimension 0.
template <int N>
bool moves_packed(const Geometry<N>& piece, const Plan<N>& plan, void* const* data) {
  if (plan.vec == 1 || piece.sizes[0] % plan.vec != 0) return false;
  for (int k = 0; k < N; ++k) {
    const int64_t stride = piece.strides[k][0];
    if (stride == 0 && k >= plan.outs) continue;
    if (stride != 1) return false;
    if (reinterpret_cast<uintptr_t>(data[k]) % static_cast<uintptr_t>(plan.vec * plan.sizes[k]) != 0) return false;
    for (int d = 1; d < piece.ndim; ++d)
      if (piece.strides[k][d] % plan.vec != 0) return false;
  }
  return true;
}

template <int N>
void send(const Call& call, const Plan<N>& plan, Launcher<N> launcher, const void* op, const Geometry<N>& geometry,
          Piece<N>& piece, bool packed) {
  piece.indexer = Indexer<N>(geometry);
  if (packed) {
    Indexer<N>& packets = piece.indexer;
    packets.sizes[0] = Divider(geometry.sizes[0] / plan.vec);
    packets.count /= static_cast<uint32_t>(plan.vec);
    for (int k = 0; k < N; ++k) packets.strides[0][k] *= static_cast<uint32_t>(plan.vec);
  }
  launcher(call, op, piece, packed);
}

}  // namespace

void check_alignment(const cb_tensor& tensor, size_t size) {
  if (!is_number(tensor) && reinterpret_cast<uintptr_t>(tensor.data) % size != 0)
    throw failure(CB_RUNTIME_ERROR, "the memory of a tensor is not aligned to its elements of %zu bytes; clone() it",
                  size);
}

template <int N>
void run_pieces(const Call& call, const Plan<N>& plan, Launcher<N> launcher, const void* op) {
  const Geometry<N> whole = geometry<N>(plan.tensors);
  if (whole.numel == 0) return;
  Piece<N> piece{};
  for (int k = 0; k < N; ++k) {
    const cb_tensor& tensor = *plan.tensors[static_cast<size_t>(k)];
    check_alignment(tensor, static_cast<size_t>(plan.sizes[k]));
    if (is_number(tensor)) read_number(tensor, plan.sizes[k], plan.as_float[k], piece.values[k]);
  }
  for_each_piece(whole, [&](const Geometry<N>& part, const std::array<int64_t, N>& offsets) {
    for (int k = 0; k < N; ++k) {
      const cb_tensor& tensor = *plan.tensors[static_cast<size_t>(k)];
      piece.data[k] = is_number(tensor)
                          ? nullptr
                          : static_cast<char*>(tensor.data) + offsets[static_cast<size_t>(k)] * plan.sizes[k];
    }
    // If there are many full packets, the elements that do not fill one get a launch of their own.
    const int64_t rest = part.sizes[0] % plan.vec;
    if (rest != 0 && part.ndim == 1 && part.sizes[0] >= 65536) {
      Geometry<N> head = part;
      head.sizes[0] = head.numel = part.sizes[0] - rest;
      if (moves_packed(head, plan, piece.data)) {
        send(call, plan, launcher, op, head, piece, true);
        Geometry<N> tail = part;
        tail.sizes[0] = tail.numel = rest;
        for (int k = 0; k < N; ++k)
          if (piece.data[k])
            piece.data[k] = static_cast<char*>(piece.data[k]) + head.numel * part.strides[k][0] * plan.sizes[k];
        return send(call, plan, launcher, op, tail, piece, false);
      }
    }
    send(call, plan, launcher, op, part, piece, moves_packed(part, plan, piece.data));
  });
}

template void run_pieces<1>(const Call&, const Plan<1>&, Launcher<1>, const void*);
template void run_pieces<2>(const Call&, const Plan<2>&, Launcher<2>, const void*);
template void run_pieces<3>(const Call&, const Plan<3>&, Launcher<3>, const void*);
template void run_pieces<4>(const Call&, const Plan<4>&, Launcher<4>, const void*);
template void run_pieces<5>(const Call&, const Plan<5>&, Launcher<5>, const void*);
template void run_pieces<6>(const Call&, const Plan<6>&, Launcher<6>, const void*);

void generate_pieces(const Call& call, const cb_tensor& out, int itemsize, GenerateLauncher launcher,
                     const void* value) {
  check_alignment(out, static_cast<size_t>(itemsize));
  int64_t first = 0;
  for_each_piece(
      geometry<1>({&out}, Order::RowMajor),
      [&](const Geometry<1>& part, const std::array<int64_t, 1>& offsets) {
        Piece<1> piece{};
        piece.indexer = Indexer<1>(part);
        piece.data[0] = static_cast<char*>(out.data) + offsets[0] * itemsize;
        launcher(call, value, piece, first);
        first += part.numel;
      },
      Pieces::InOrder);
}

}  // namespace candelabra::cuda::elementwise
