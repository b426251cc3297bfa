// pad_constant: a number at both ends of dimensions.
#include <algorithm>

#include "launch.hpp"
#include "move.hpp"

namespace candelabra::cuda {
namespace {

constexpr int threads = 256;

template <typename U>
__global__ void __launch_bounds__(threads) fill_kernel(U* out, const __grid_constant__ ElementBits value, int64_t count) {
  for (int64_t i = first_index(); i < count; i += index_step()) out[i] = value.as<U>();
}

// The whole result is filled, then the input (what is left of it) moves to its middle.
void pad_constant(Call& call) {
  const cb_tensor &in = call.tensor(0), &out = call.output();
  const auto padding = call.ints(1);
  if (out.numel == 0) return;
  int64_t sizes[max_dims], to = 0, from = 0;
  cb_tensor read = in, written = out;
  read.numel = 1;
  for (int d = 0; d < in.ndim; ++d) {
    const auto at = static_cast<size_t>(2 * (in.ndim - 1 - d));
    const int64_t before = at < padding.size() ? padding[at] : 0;
    const int64_t first = std::max<int64_t>(before, 0), last = std::min(before + in.sizes[d], out.sizes[d]);
    sizes[d] = std::max<int64_t>(last - first, 0);
    to += first * out.strides[d];
    from += (first - before) * in.strides[d];
    read.numel *= sizes[d];
  }
  const int64_t bytes = itemsize(out.dtype);
  if (read.numel != out.numel) {
    const ElementBits value = bits_of_scalar(call.scalar(2), out.dtype);
    dispatch_size(bytes, [&]<typename U>() {
      launch(call, fill_kernel<U>, grid_for(call, out.numel, threads), threads, 0, static_cast<U*>(out.data), value, out.numel);
    });
  }
  if (read.numel == 0) return;
  written.numel = read.numel;
  written.sizes = read.sizes = sizes;
  written.data = static_cast<char*>(out.data) + to * bytes;
  read.data = static_cast<char*>(in.data) + from * bytes;
  move_elements(call, written, read);
}

}  // namespace

void register_padding(KernelTable& table) {
  table.add<pad_constant>("pad_constant");
}

}  // namespace candelabra::cuda
