// copy_: between any two dtypes and any two sets of strides.
#include <algorithm>

#include "copy_bytes.hpp"
#include "elementwise.hpp"
#include "iterate.hpp"
#include "parallel.hpp"
#include "transpose.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// The dtypes that loops see: half precisions come and go as float32.
using LoopTypes = Types<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, float, double, complex64, complex128>;

template <typename R>
struct Convert {
  template <typename A>
  R operator()(A a) const {
    if constexpr (std::is_same_v<R, A>)
      return a;
    else if constexpr (std::is_same_v<R, bool>)
      return a != A(0);
    else if constexpr (is_complex_v<R> && is_complex_v<A>)
      return R(static_cast<real_t<R>>(a.real()), static_cast<real_t<R>>(a.imag()));
    else if constexpr (is_complex_v<R>)
      return R(static_cast<real_t<R>>(a), 0);
    else if constexpr (is_complex_v<A>)
      return (*this)(a.real());
    else if constexpr (is_integer_v<R> && std::is_floating_point_v<A> && sizeof(R) < 4)
      return static_cast<R>(static_cast<int32_t>(a));  // wraps as the processor's own conversion to 32 bits does
    else
      return static_cast<R>(a);
  }
};

int32_t loop_dtype(int32_t dtype) { return is_half_dtype(dtype) ? CB_FLOAT32 : dtype; }

void convert(cb_tensor& out, const cb_tensor& source) {
  dispatch<LoopTypes>(loop_dtype(out.dtype), [&]<typename R>() {
    dispatch<LoopTypes>(loop_dtype(source.dtype), [&]<typename A>() {
      static constexpr Convert<R> op{};
      run<1>({loop1<Convert<R>, R, A>, &op, light}, out, {&source});
    });
  });
}

void copy_contiguous(std::byte* out, const std::byte* in, int64_t bytes) {
  parallel_for(bytes, light_grain * 4, [&](int64_t begin, int64_t end) {
    if (bytes >= streaming_threshold)
      stream_bytes(out + begin, in + begin, end - begin);
    else
      std::memcpy(out + begin, in + begin, end - begin);
  });
}

// The dimension along which the source is contiguous where the output is contiguous along dimension 0; 0 where there is none.
int transposed_dimension(const Geometry<2>& g) {
  if (g.ndim < 2 || g.strides[0][0] != 1 || g.strides[1][0] == 1 || g.strides[1][0] == 0 || g.sizes[0] < 8) return 0;
  for (int d = 1; d < g.ndim; ++d)
    if (g.strides[1][d] == 1 && g.sizes[d] >= 8) return d;
  return 0;
}

template <typename U>
void copy_transposed(const Geometry<2>& g, int across, U* out, const U* in) {
  constexpr int64_t tile = sizeof(U) >= 8 ? 32 : 64;
  int64_t columns = g.sizes[0], rows = g.sizes[across];
  Geometry<2> outer;  // all other dimensions
  outer.ndim = 0;
  outer.numel = g.numel / (columns * rows);
  for (int d = 1; d < g.ndim; ++d) {
    if (d == across) continue;
    outer.sizes[outer.ndim] = g.sizes[d];
    for (int k = 0; k < 2; ++k) outer.strides[k][outer.ndim] = g.strides[k][d];
    ++outer.ndim;
  }
  if (outer.ndim == 0) outer.ndim = 1, outer.sizes[0] = 1, outer.strides[0][0] = outer.strides[1][0] = 0;
  int64_t row_tiles = (rows + tile - 1) / tile;
  parallel_for(outer.numel * row_tiles, std::max<int64_t>(1, light_grain / (tile * columns)), [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      Position<2> at(outer, item / row_tiles);
      int64_t j = item % row_tiles * tile, tile_rows = std::min(tile, rows - j);
      for (int64_t i = 0; i < columns; i += tile)
        transpose_tile(out + at.offsets[0] + i + j * g.strides[0][across], g.strides[0][across],
                       in + at.offsets[1] + i * g.strides[1][0] + j, g.strides[1][0], std::min(tile, columns - i), tile_rows);
    }
  });
}

struct Same {
  template <typename U>
  U operator()(U x) const { return x; }
};

void copy_same(cb_tensor& out, const cb_tensor& source) {
  int64_t size = itemsize(out.dtype);
  if (out.numel > tiny_elements) {
    Geometry<2> g = geometry<2>({&out, &source});
    if (g.contiguous()) return copy_contiguous(static_cast<std::byte*>(out.data), static_cast<const std::byte*>(source.data), out.numel * size);
    if (int across = transposed_dimension(g))
      return dispatch_size(size, [&]<typename U>() { copy_transposed(g, across, data<U>(out), data<U>(source)); });
  }
  dispatch_size(size, [&]<typename U>() {
    static constexpr Same op{};
    Blocks blocks{loop1<Same, U, U>, &op, light};
    blocks.halves_as_float = false;
    run<1>(blocks, out, {&source});
  });
}

void copy_(Call& call) {
  cb_tensor& out = call.output();
  const cb_tensor& source = call.tensor(1);
  if (out.numel == 0) return;
  if (out.dtype == source.dtype)
    copy_same(out, source);
  else
    convert(out, source);
}

}  // namespace

void register_copying(KernelTable& table) { table.add<copy_>("copy_"); }

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
