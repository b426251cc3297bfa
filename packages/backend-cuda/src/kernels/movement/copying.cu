// copy_: between any two dtypes and any strides, on one device. The core copies between devices.
#include "candelabra/arguments/copying.hpp"
#include "drivers/elementwise.cuh"

namespace candelabra::cuda {
namespace {

template <typename R>
struct Convert {
  template <typename A>
  __device__ R operator()(A a) const {
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
    else if constexpr (is_integer_v<R> && std::is_floating_point_v<A>)
      return truncated<R>(a);
    else
      return static_cast<R>(a);
  }
};

// For the pairs that are common in training.
template <typename R, typename A>
void convert(Call& call, const cb_tensor& source) {
  map<Types<R>, Types<A>>(call, Convert<compute_t<R>>{}, {&call.output()}, {&source});
}

// All other pairs read through a switch over the source's dtype, uniform for all threads of a
// launch. That is 15 kernels instead of 225.
template <typename R>
struct AnySource {
  const unsigned char* data;
  int32_t dtype;
};

template <typename R, typename A>
__device__ __forceinline__ compute_t<R> read_as(const unsigned char* data, uint32_t offset) {
  return Convert<compute_t<R>>{}(loaded<A>(reinterpret_cast<const memory_t<A>*>(data)[offset]));
}

template <typename R>
__global__ void __launch_bounds__(elementwise::threads)
    convert_kernel(memory_t<R>* out, const AnySource<R> source, const __grid_constant__ Indexer<2> indexer) {
  const uint32_t i = blockIdx.x * elementwise::threads + threadIdx.x;
  if (i >= indexer.count) return;
  uint32_t at[2];
  indexer.at(i, at);
  compute_t<R> value;
  switch (source.dtype) {
    case CB_BOOL:
      value = read_as<R, bool>(source.data, at[1]);
      break;
    case CB_UINT8:
      value = read_as<R, uint8_t>(source.data, at[1]);
      break;
    case CB_INT8:
      value = read_as<R, int8_t>(source.data, at[1]);
      break;
    case CB_INT16:
      value = read_as<R, int16_t>(source.data, at[1]);
      break;
    case CB_INT32:
      value = read_as<R, int32_t>(source.data, at[1]);
      break;
    case CB_INT64:
      value = read_as<R, int64_t>(source.data, at[1]);
      break;
    case CB_FLOAT16:
      value = read_as<R, Half>(source.data, at[1]);
      break;
    case CB_BFLOAT16:
      value = read_as<R, BFloat16>(source.data, at[1]);
      break;
    case CB_FLOAT32:
      value = read_as<R, float>(source.data, at[1]);
      break;
    case CB_FLOAT64:
      value = read_as<R, double>(source.data, at[1]);
      break;
    case CB_COMPLEX64:
      value = read_as<R, complex64>(source.data, at[1]);
      break;
    case CB_COMPLEX128:
      value = read_as<R, complex128>(source.data, at[1]);
      break;
    case CB_UINT16:
      value = read_as<R, uint16_t>(source.data, at[1]);
      break;
    case CB_UINT32:
      value = read_as<R, uint32_t>(source.data, at[1]);
      break;
    default:
      value = read_as<R, uint64_t>(source.data, at[1]);
      break;
  }
  out[at[0]] = stored<R>(value);
}

template <typename R>
void convert_from_any(Call& call, const cb_tensor& source) {
  const cb_tensor& out = call.output();
  elementwise::check_alignment(out, sizeof(memory_t<R>));
  elementwise::check_alignment(source, static_cast<size_t>(itemsize(source.dtype)));
  for_each_piece(geometry<2>({&out, &source}), [&](const Geometry<2>& piece, const std::array<int64_t, 2>& offsets) {
    const auto* from = static_cast<const unsigned char*>(source.data) + offsets[1] * itemsize(source.dtype);
    launch(call, convert_kernel<R>, static_cast<unsigned>(divide_up(piece.numel, elementwise::threads)),
           elementwise::threads, 0, static_cast<memory_t<R>*>(out.data) + offsets[0], AnySource<R>{from, source.dtype},
           Indexer<2>(piece));
  });
}

struct Same {
  template <typename U>
  __device__ U operator()(U x) const {
    return x;
  }
};

// Transposes a batch of matrices through tiles in shared memory, so that both reads and writes are
// coalesced.
constexpr int tile = 32, tile_rows = 8;

template <typename U>
__global__ void __launch_bounds__(tile* tile_rows)
    transpose_kernel(U* out, const U* in, int64_t rows, int64_t columns, int64_t out_stride, int64_t in_stride,
                     int64_t out_batch, int64_t in_batch) {
  // out[r * out_stride + c] = in[r + c * in_stride]
  __shared__ U elements[tile][tile + 1];
  const int64_t r0 = static_cast<int64_t>(blockIdx.y) * tile, c0 = static_cast<int64_t>(blockIdx.x) * tile;
  out += static_cast<int64_t>(blockIdx.z) * out_batch;
  in += static_cast<int64_t>(blockIdx.z) * in_batch;
  for (int k = static_cast<int>(threadIdx.y); k < tile; k += tile_rows) {
    const int64_t r = r0 + threadIdx.x, c = c0 + k;
    if (r < rows && c < columns) elements[k][threadIdx.x] = in[r + c * in_stride];
  }
  __syncthreads();
  for (int k = static_cast<int>(threadIdx.y); k < tile; k += tile_rows) {
    const int64_t r = r0 + k, c = c0 + threadIdx.x;
    if (r < rows && c < columns) out[r * out_stride + c] = elements[threadIdx.x][k];
  }
}

template <typename U>
bool transpose(const Call& call, const cb_tensor& out, const cb_tensor& source, const Geometry<2>& g) {
  if (g.ndim < 2 || g.ndim > 3 || g.strides[0][0] != 1) return false;
  int across = 1;  // the dimension in which the input has stride 1
  if (g.ndim == 3 && g.strides[1][2] == 1) across = 2;
  if (g.strides[1][across] != 1 || g.sizes[0] < 16 || g.sizes[across] < 16) return false;
  const int batch = g.ndim == 3 ? 3 - across : 0;
  const int64_t batches = batch ? g.sizes[batch] : 1;
  const int64_t row_blocks = divide_up(g.sizes[across], tile);
  if (batches > 65535 || row_blocks > 65535) return false;
  const dim3 grid(static_cast<unsigned>(divide_up(g.sizes[0], tile)), static_cast<unsigned>(row_blocks),
                  static_cast<unsigned>(batches));
  launch(call, transpose_kernel<U>, grid, dim3(tile, tile_rows), 0, static_cast<U*>(out.data),
         static_cast<const U*>(source.data), g.sizes[across], g.sizes[0], g.strides[0][across], g.strides[1][0],
         batch ? g.strides[0][batch] : 0, batch ? g.strides[1][batch] : 0);
  return true;
}

void copy_same(Call& call, const cb_tensor& source) {
  const cb_tensor& out = call.output();
  if (out.data == source.data && same_sizes(out, source) &&
      std::equal(out.strides, out.strides + out.ndim, source.strides))
    return;
  const Geometry<2> g = geometry<2>({&out, &source});
  if (g.contiguous())
    return copy_bytes(call, out.data, source.data, static_cast<size_t>(out.numel * itemsize(out.dtype)));
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    elementwise::check_alignment(out, sizeof(U));
    elementwise::check_alignment(source, sizeof(U));
    if (transpose<U>(call, out, source, g)) return;
    map<Types<U>, Types<U>>(call, Same{}, {&out}, {&source});
  });
}

void copy_(Call& call) {
  const arguments::Copy args(call);
  const cb_tensor &out = call.output(), &source = *args.src;
  if (out.numel == 0) return;
  if (out.dtype == source.dtype) return copy_same(call, source);
  const int32_t to = out.dtype, from = source.dtype;
  if (to == CB_FLOAT32 && from == CB_FLOAT16) return convert<float, Half>(call, source);
  if (to == CB_FLOAT32 && from == CB_BFLOAT16) return convert<float, BFloat16>(call, source);
  if (to == CB_FLOAT16 && from == CB_FLOAT32) return convert<Half, float>(call, source);
  if (to == CB_BFLOAT16 && from == CB_FLOAT32) return convert<BFloat16, float>(call, source);
  if (to == CB_BFLOAT16 && from == CB_FLOAT16) return convert<BFloat16, Half>(call, source);
  if (to == CB_FLOAT16 && from == CB_BFLOAT16) return convert<Half, BFloat16>(call, source);
  if (to == CB_FLOAT32 && from == CB_BOOL) return convert<float, bool>(call, source);
  if (to == CB_FLOAT32 && from == CB_UINT8) return convert<float, uint8_t>(call, source);
  if (to == CB_FLOAT32 && from == CB_INT64) return convert<float, int64_t>(call, source);
  dispatch<AllTypes>(to, [&]<typename R>() { convert_from_any<R>(call, source); });
}

}  // namespace

void register_copying(KernelTable& table) {
  table.add<copy_>("copy_");
}

}  // namespace candelabra::cuda
