// _constant_pad_nd: pads dimensions with a number. _reflection_replication_pad and
// _reflection_replication_pad_backward: reflection, replication and circular padding of the last
// dimensions.
#include <algorithm>
#include <string_view>

#include "candelabra/arguments/resampling.hpp"
#include "drivers/image_offsets.hpp"
#include "drivers/move.hpp"

namespace candelabra::cuda {
namespace {

constexpr int threads = 256;

template <typename U>
__global__ void __launch_bounds__(threads)
    fill_kernel(U* out, const __grid_constant__ ElementBits value, int64_t count) {
  for (int64_t i = first_index(); i < count; i += index_step()) out[i] = value.as<U>();
}

// Fills the whole result, then copies the input, cropped by negative padding, into it.
void constant_pad_nd(Call& call) {
  const arguments::ConstantPadNd args(call);
  const cb_tensor &in = *args.self, &out = call.output();
  const auto padding = args.padding;
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
    const ElementBits value = bits_of_scalar(*args.value, out.dtype);
    dispatch_size(bytes, [&]<typename U>() {
      launch(call, fill_kernel<U>, grid_for(call, out.numel, threads), threads, 0, static_cast<U*>(out.data), value,
             out.numel);
    });
  }
  if (read.numel == 0) return;
  written.numel = read.numel;
  written.sizes = read.sizes = sizes;
  written.data = static_cast<char*>(out.data) + to * bytes;
  read.data = static_cast<char*>(in.data) + from * bytes;
  move_elements(call, written, read);
}

// ---- reflection, replication and circular padding

enum class Edge : int32_t { reflect, replicate, circular };

// The indices of the padded tensor that hold copies of one input element: `count` indices `step`
// apart, or with step 0 up to three listed ones.
struct Copies {
  int64_t count, first, step, second, third;
  __device__ int64_t operator[](int64_t k) const {
    return step ? first + k * step : k == 0 ? first : k == 1 ? second : third;
  }
};

struct EdgeAxis {
  int64_t from = 1, to = 1, before = 0;

  // The input index that index i of the padded tensor copies.
  __device__ int64_t source(int64_t i, Edge edge) const {
    const int64_t at = i - before, last = from - 1;
    if (edge == Edge::reflect) {
      const int64_t mirrored = last - (at < 0 ? -at : at);
      return last - (mirrored < 0 ? -mirrored : mirrored);
    }
    if (edge == Edge::replicate) return at < 0 ? 0 : at > last ? last : at;
    const int64_t rest = at % from;
    return rest < 0 ? rest + from : rest;
  }
  // The copies of index i of the input, from left to right.
  __device__ Copies copies(int64_t i, Edge edge) const {
    const int64_t at = i + before, last = from - 1;
    if (edge == Edge::reflect) {
      const int64_t left = before - i, right = before + 2 * last - i;
      Copies found{0, 0, 0, 0, 0};
      const auto add = [&](int64_t index, bool exists) {
        if (!exists || index < 0 || index >= to) return;
        (found.count == 0 ? found.first : found.count == 1 ? found.second : found.third) = index;
        ++found.count;
      };
      add(left, i > 0);
      add(at, true);
      add(right, i < last);
      return found;
    }
    if (edge == Edge::replicate) {
      const int64_t first = max(int64_t{0}, i == 0 ? 0 : at), end = min(to, i == last ? to : at + 1);
      return {max(int64_t{0}, end - first), first, 1, 0, 0};
    }
    const int64_t rest = at % from, first = rest < 0 ? rest + from : rest;
    return {first < to ? (to - 1 - first) / from + 1 : 0, first, from, 0, 0};
  }
};

// The padded dimensions are the last ones, at most three; the dimensions before them are planes. In
// channels-last memory a pixel has all channels.
struct Edges {
  EdgeAxis axes[3];
  int64_t planes = 1, pixel_size = 1, small = 1, large = 1;  // elements of a plane
  Edge edge;
  PlaneIndexer plane_index;

  Edges(const cb_tensor& small_one, const cb_tensor& large_one, std::span<const int64_t> amounts,
        std::string_view mode) {
    edge = mode == "reflect" ? Edge::reflect : mode == "replicate" ? Edge::replicate : Edge::circular;
    const int dims = static_cast<int>(amounts.size() / 2), outer = small_one.ndim - dims;
    for (int d = 0; d < outer; ++d) planes *= small_one.sizes[d];
    if (!is_contiguous(small_one) || !is_contiguous(large_one)) {
      pixel_size = small_one.sizes[1];
      planes = small_one.sizes[0];
    }
    for (int d = 0; d < dims; ++d)
      axes[3 - dims + d] = {small_one.sizes[outer + d], large_one.sizes[outer + d],
                            amounts[static_cast<size_t>(2 * (dims - 1 - d))]};
  }
  // Iterates over the padded tensor (of_large) or over the input.
  void set_plane_index(bool of_large) {
    const auto size = [&](int d) { return of_large ? axes[d].to : axes[d].from; };
    plane_index = PlaneIndexer(size(0), size(1), size(2), pixel_size);
    small = axes[0].from * axes[1].from * axes[2].from * pixel_size;
    large = axes[0].to * axes[1].to * axes[2].to * pixel_size;
  }
};

template <typename U>
__global__ void __launch_bounds__(threads) edges_kernel(U* out, const U* in, const __grid_constant__ Edges p) {
  for (int64_t e = first_index(); e < p.large; e += index_step()) {
    const auto [z, y, x, c] = p.plane_index[e];
    const int64_t row = p.axes[0].source(z, p.edge) * p.axes[1].from + p.axes[1].source(y, p.edge);
    const U* from = in + (row * p.axes[2].from + p.axes[2].source(x, p.edge)) * p.pixel_size + c;
    for (int64_t plane = blockIdx.y; plane < p.planes; plane += gridDim.y)
      out[plane * p.large + e] = from[plane * p.small];
  }
}

void reflection_replication_pad(Call& call) {
  const arguments::ReflectionReplicationPad args(call);
  const cb_tensor &in = *args.self, &out = call.output();
  if (out.numel == 0) return;
  Edges p(in, out, args.padding, args.mode);
  const int64_t bytes = widen_pixels(p.pixel_size, itemsize(out.dtype), in.data, out.data);
  p.set_plane_index(true);
  dispatch_size(bytes, [&]<typename U>() {
    launch(call, edges_kernel<U>, grid_over(call, p.large, p.planes, threads), threads, 0, mutable_data<U>(out),
           data<U>(in), p);
  });
}

// Each element sums the gradients of its copies, in the order of the padded tensor.
template <typename T>
__global__ void __launch_bounds__(threads)
    edges_backward_kernel(memory_t<T>* out, const memory_t<T>* grad, const __grid_constant__ Edges p) {
  for (int64_t e = first_index(); e < p.small; e += index_step()) {
    const auto [z, y, x, c] = p.plane_index[e];
    const Copies zs = p.axes[0].copies(z, p.edge), ys = p.axes[1].copies(y, p.edge), xs = p.axes[2].copies(x, p.edge);
    for (int64_t plane = blockIdx.y; plane < p.planes; plane += gridDim.y) {
      compute_t<T> sum(0);
      for (int64_t i = 0; i < zs.count; ++i)
        for (int64_t j = 0; j < ys.count; ++j) {
          const memory_t<T>* row =
              grad + plane * p.large + (zs[i] * p.axes[1].to + ys[j]) * p.axes[2].to * p.pixel_size + c;
          for (int64_t k = 0; k < xs.count; ++k) sum += loaded<T>(row[xs[k] * p.pixel_size]);
        }
      out[plane * p.small + e] = stored<T>(sum);
    }
  }
}

void reflection_replication_pad_backward(Call& call) {
  const arguments::ReflectionReplicationPadBackward args(call);
  const cb_tensor &grad = *args.grad, &out = call.output();
  if (out.numel == 0) return;
  Edges p(out, grad, args.padding, args.mode);
  p.set_plane_index(false);
  dispatch<decltype(FloatTypes{} + ComplexTypes{})>(out.dtype, [&]<typename T>() {
    launch(call, edges_backward_kernel<T>, grid_over(call, p.small, p.planes, threads), threads, 0,
           mutable_data<memory_t<T>>(out), data<memory_t<T>>(grad), p);
  });
}

}  // namespace

void register_padding(KernelTable& table) {
  table.add<constant_pad_nd>("_constant_pad_nd");
  table.add<reflection_replication_pad>("_reflection_replication_pad");
  table.add<reflection_replication_pad_backward>("_reflection_replication_pad_backward");
}

}  // namespace candelabra::cuda
