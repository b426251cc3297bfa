#include "drivers/move.hpp"

#include <cstring>

#include "runtime/launch.hpp"

namespace candelabra::cuda {
namespace {

constexpr int threads = 256;

// 32-bit offsets are signed, because a stride may be negative.
template <typename U>
__global__ void __launch_bounds__(threads)
    move_kernel(U* out, const U* in, const __grid_constant__ Indexer<2> indexer) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= indexer.count) return;
  uint32_t at[2];
  indexer.at(i, at);
  out[static_cast<int32_t>(at[0])] = in[static_cast<int32_t>(at[1])];
}

// Treats two elements as one of twice the size, if they are adjacent and aligned on both sides.
bool widen(Geometry<2>& g, const void* out, const void* in, size_t wide_bytes) {
  if (wide_bytes > 16 || g.sizes[0] % 2 != 0 || g.strides[0][0] != 1 || g.strides[1][0] != 1) return false;
  if ((reinterpret_cast<uintptr_t>(out) | reinterpret_cast<uintptr_t>(in)) % wide_bytes != 0) return false;
  for (int d = 1; d < g.ndim; ++d)
    if ((g.strides[0][d] | g.strides[1][d]) % 2 != 0) return false;
  g.sizes[0] /= 2;
  g.numel /= 2;
  for (int d = 1; d < g.ndim; ++d) g.strides[0][d] /= 2, g.strides[1][d] /= 2;
  return true;
}

}  // namespace

void move_elements(const Call& call, const cb_tensor& out, const cb_tensor& in) {
  if (out.numel == 0) return;
  Geometry<2> g = geometry<2>({&out, &in});
  auto bytes = static_cast<size_t>(itemsize(out.dtype));
  if (g.contiguous()) return copy_bytes(call, out.data, in.data, static_cast<size_t>(g.numel) * bytes);
  while (widen(g, out.data, in.data, 2 * bytes)) bytes *= 2;
  dispatch_size(static_cast<int64_t>(bytes), [&]<typename U>() {
    for_each_piece(g, [&](const Geometry<2>& piece, const std::array<int64_t, 2>& offsets) {
      launch(call, move_kernel<U>, static_cast<unsigned>(divide_up(piece.numel, threads)), threads, 0,
             static_cast<U*>(out.data) + offsets[0], static_cast<const U*>(in.data) + offsets[1], Indexer<2>(piece));
    });
  });
}

void initialize_from(const Call& call, const cb_tensor& out, const cb_tensor& self) {
  if (out.data != self.data) move_elements(call, out, self);
}

void clear(const Call& call, const cb_tensor& out) {
  if (out.numel == 0) return;
  int64_t extent = 1;
  for (int d = 0; d < out.ndim; ++d) extent += (out.sizes[d] - 1) * out.strides[d];
  if (extent == out.numel) return fill_bytes(call, out.data, 0, static_cast<size_t>(out.numel * itemsize(out.dtype)));
  static constexpr int64_t no_strides[max_dims] = {};
  const Workspace zero(call, 16);
  fill_bytes(call, zero.data(), 0, 16);
  cb_tensor nothing = out;
  nothing.data = zero.data();
  nothing.strides = no_strides;
  move_elements(call, out, nothing);
}

ElementBits bits_of_number(const cb_tensor& number, int32_t dtype) {
  ElementBits bits{};
  dispatch<AllTypes>(dtype, [&]<typename T>() {
    const memory_t<T> value = stored<T>(number_of<compute_t<T>>(number));
    std::memcpy(bits.bytes, &value, sizeof value);
  });
  return bits;
}

ElementBits bits_of_scalar(const cb_scalar& scalar, int32_t dtype) {
  ElementBits bits{};
  dispatch<AllTypes>(dtype, [&]<typename T>() {
    const memory_t<T> value = stored<T>(static_cast<compute_t<T>>(scalar_to<T>(scalar)));
    std::memcpy(bits.bytes, &value, sizeof value);
  });
  return bits;
}

}  // namespace candelabra::cuda
