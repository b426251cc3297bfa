// grid_sampler and grid_sampler_backward: values of images and volumes at arbitrary points. A
// thread computes the taps of one point and loops over the channels. The gradient of the input is a
// deterministic scatter-add, sorted by pixel.
#include <limits>

#include "candelabra/arguments/resampling.hpp"
#include "candelabra/float_index.hpp"
#include "candelabra/grid_sampling.hpp"
#include "drivers/image_offsets.hpp"
#include "drivers/move.hpp"
#include "drivers/scatter_add.hpp"

namespace candelabra::cuda {
namespace {

using grid_sampling::InterpolationMode;
using grid_sampling::PaddingMode;

constexpr int threads = 256;

// The geometry of one call: the input (N, C, z, y, x) and the grid. An image has a z of size 1.
struct Sampling {
  int dims;
  InterpolationMode mode;
  PaddingMode padding_mode;
  bool align_corners;
  int64_t batch, channels, points, taps;
  int64_t entry_stride, channel_stride;
  int32_t sizes[3], strides[3];
  int64_t grid_strides[3], grid_entry_stride, grid_last_stride;
  LongDivider per_entry, rows, columns;  // points of an entry, and in its last two dimensions

  // From the arguments of grid_sampler or grid_sampler_backward.
  template <typename Arguments>
  Sampling(const Call& call, const Arguments& args)
      : dims(args.self->ndim - 2),
        mode(grid_sampling::interpolation_mode_named(args.mode)),
        padding_mode(grid_sampling::padding_mode_named(args.padding_mode)),
        align_corners(args.align_corners) {
    const cb_tensor &input = *args.self, &grid = *args.grid;
    batch = input.sizes[0];
    channels = input.sizes[1];
    entry_stride = input.strides[0];
    channel_stride = input.strides[1];
    grid_entry_stride = grid.strides[0];
    grid_last_stride = grid.strides[dims + 1];
    int64_t grid_sizes[3] = {1, 1, 1};
    points = 1;
    int64_t farthest = 0;
    const int missing = 3 - dims;
    for (int d = 0; d < 3; ++d) {
      const bool there = d >= missing;
      const int64_t size = there ? input.sizes[2 + d - missing] : 1,
                    stride = there ? input.strides[2 + d - missing] : 0;
      if (there) grid_sizes[d] = grid.sizes[1 + d - missing];
      points *= grid_sizes[d];
      grid_strides[d] = there ? grid.strides[1 + d - missing] : 0;
      farthest += (size - 1) * std::abs(stride);
      if (farthest > std::numeric_limits<int32_t>::max() || size > std::numeric_limits<int32_t>::max())
        throw failure(CB_RUNTIME_ERROR, "%s(): an image of more than 2**31 elements is too large",
                      call.raw()->operator_name);
      sizes[d] = static_cast<int32_t>(size);
      strides[d] = static_cast<int32_t>(size > 1 ? stride : 0);
    }
    per_entry = LongDivider(points);
    rows = LongDivider(grid_sizes[1]);
    columns = LongDivider(grid_sizes[2]);
    taps = mode == InterpolationMode::nearest ? 1 : mode == InterpolationMode::cubic ? 16 : int64_t{1} << dims;
  }
  // Sets the strides of a contiguous gradient of the input.
  void set_contiguous(const Call& call) {
    int64_t plane = 1;
    for (int d = 2; d >= 0; --d) {
      strides[d] = static_cast<int32_t>(plane);
      plane *= sizes[d];
      if (plane > std::numeric_limits<int32_t>::max())
        throw failure(CB_RUNTIME_ERROR, "%s(): an image of more than 2**31 elements is too large",
                      call.raw()->operator_name);
    }
  }
  int64_t plane() const { return int64_t{sizes[0]} * sizes[1] * sizes[2]; }

  // Offset in the grid of the first coordinate of a point of an entry.
  __device__ int64_t coordinate_offset(int64_t entry, int64_t point) const {
    const int64_t row = columns.quotient(point), z = rows.quotient(row);
    return entry * grid_entry_stride + z * grid_strides[0] + (row - z * rows.divisor) * grid_strides[1] +
           (point - row * columns.divisor) * grid_strides[2];
  }
};

// The taps of a point along one dimension: offsets in a channel (-1: outside), weights and their
// derivatives (slopes). `step` is the derivative of the position with respect to the coordinate in
// the grid.
template <typename C, int Each>
struct AxisTaps {
  int32_t offsets[Each];
  C weights[Each], slopes[Each], step;

  __device__ void set_offset(int k, C at, C size, int32_t stride) {
    const auto index = index_or_outside<int32_t>(at, size);
    offsets[k] = index < 0 ? -1 : index * stride;
  }
  __device__ AxisTaps(C coordinate, const Sampling& s, int d) {
    const C size = static_cast<C>(s.sizes[d]), number = coordinate + 1;
    const C scale = s.align_corners ? (size - 1) / 2 : size / 2;
    const C position = s.align_corners ? number * scale : (number * size - 1) / 2;
    const int32_t stride = s.strides[d];
    if constexpr (Each == 4) {
      const C low = math::floor(position);
      grid_sampling::cubic(position - low, weights, slopes);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const C at =
            grid_sampling::compute_coordinates(low + static_cast<C>(k - 1), size, s.padding_mode, s.align_corners)
                .value;
        set_offset(k, s.padding_mode == PaddingMode::reflection ? math::round_even(at) : at, size, stride);
      }
      step = scale;
    } else {
      const auto at = grid_sampling::compute_coordinates(position, size, s.padding_mode, s.align_corners);
      step = scale * at.grad;
      if constexpr (Each == 1) {
        set_offset(0, math::round_even(at.value), size, stride);
        weights[0] = 1;
        slopes[0] = 0;
      } else {
        const C low = math::floor(at.value), part = at.value - low;
        set_offset(0, low, size, stride);
        set_offset(1, low + 1, size, stride);
        weights[0] = 1 - part;
        weights[1] = part;
        slopes[0] = -1;
        slopes[1] = 1;
      }
    }
  }
};
// The missing z of an image.
template <typename C>
struct MissingAxis {
  int32_t offsets[1] = {0};
  C weights[1] = {1}, slopes[1] = {0}, step = 0;
};

template <typename C, int Dims, int Each>
struct PointTaps {
  static constexpr int deep = Dims == 3 ? Each : 1, taps = deep * Each * Each;
  std::conditional_t<Dims == 3, AxisTaps<C, Each>, MissingAxis<C>> z;
  AxisTaps<C, Each> y, x;

  // The coordinates of a point come last dimension first.
  template <typename Read>
  __device__ PointTaps(const Sampling& s, Read&& read) : z(depth(s, read)), y(read(1), s, 1), x(read(0), s, 2) {}
  template <typename Read>
  __device__ static auto depth(const Sampling& s, Read&& read) {
    if constexpr (Dims == 3)
      return AxisTaps<C, Each>(read(2), s, 0);
    else
      return MissingAxis<C>{};
  }
  __device__ int32_t offset(int i, int j, int k) const {
    const bool outside = z.offsets[i] < 0 || y.offsets[j] < 0 || x.offsets[k] < 0;
    return outside ? -1 : z.offsets[i] + y.offsets[j] + x.offsets[k];
  }
  static __device__ C product(C a, C b, C c) {
    if constexpr (Dims == 3)
      return a * b * c;
    else
      return b * c;
  }
  __device__ C weight(int i, int j, int k) const { return product(z.weights[i], y.weights[j], x.weights[k]); }
  // Calls f(tap, i, j, k) for all taps, in order.
  template <typename F>
  __device__ void each(F&& f) const {
#pragma unroll
    for (int i = 0; i < deep; ++i)
#pragma unroll
      for (int j = 0; j < Each; ++j)
#pragma unroll
        for (int k = 0; k < Each; ++k) f((i * Each + j) * Each + k, i, j, k);
  }
};

template <typename T, int Dims, int Each>
__global__ void __launch_bounds__(threads)
    sample_kernel(T* out, const T* input, const T* grid, const __grid_constant__ Sampling s) {
  using C = compute_t<T>;
  for (int64_t item = first_index(); item < s.batch * s.points; item += index_step()) {
    const int64_t n = s.per_entry.quotient(item), point = item - n * s.points;
    const T* point_coordinates = grid + s.coordinate_offset(n, point);
    const PointTaps<C, Dims, Each> around(s,
                                          [&](int k) { return loaded<T>(point_coordinates[k * s.grid_last_stride]); });
    for (int64_t c = blockIdx.y; c < s.channels; c += gridDim.y) {
      const T* channel = input + n * s.entry_stride + c * s.channel_stride;
      C values[PointTaps<C, Dims, Each>::taps];
      around.each([&](int t, int i, int j, int k) {
        const int32_t offset = around.offset(i, j, k);
        values[t] = offset < 0 ? C(0) : loaded<T>(channel[offset]);
      });
      C sum = 0;
      around.each([&](int t, int i, int j, int k) {
        sum = t == 0 ? around.weight(i, j, k) * values[0] : sum + around.weight(i, j, k) * values[t];
      });
      out[(n * s.channels + c) * s.points + point] = stored<T>(sum);
    }
  }
}

// Calls f.operator()<Dims, Each>().
template <typename F>
void dispatch_taps(const Sampling& s, F&& f) {
  if (s.dims == 3) {
    if (s.mode == InterpolationMode::nearest) return f.template operator()<3, 1>();
    return f.template operator()<3, 2>();
  }
  if (s.mode == InterpolationMode::nearest) return f.template operator()<2, 1>();
  if (s.mode == InterpolationMode::cubic) return f.template operator()<2, 4>();
  f.template operator()<2, 2>();
}

void grid_sampler(Call& call) {
  const arguments::GridSampler args(call);
  const cb_tensor& out = call.output();
  if (out.numel == 0) return;
  const Sampling s(call, args);
  dispatch<FloatTypes>(out.dtype, [&]<typename T>() {
    dispatch_taps(s, [&]<int Dims, int Each>() {
      launch(call, sample_kernel<T, Dims, Each>, grid_over(call, s.batch * s.points, s.channels, threads), threads, 0,
             mutable_data<T>(out), data<T>(*args.self), data<T>(*args.grid), s);
    });
  });
}

// ---- gradients

// The pairs of points and pixels of a scatter-add; each pair stands for all channels. `per_entry`
// points of each entry are processed, from first_point on, `count` in all; the entries have
// `pixels` pixels in all.
struct PairArguments {
  Sampling sampling;
  int64_t first_entry, first_point, count, pixels;
  LongDivider per_entry;
  const void* grid;
  int32_t dtype;
  uint64_t* keys;
  int64_t *to, *from;
  void* weights;
};

template <typename C>
__device__ C grid_coordinate(const PairArguments& a, int64_t at) {
  if constexpr (std::is_same_v<C, double>)
    return static_cast<const double*>(a.grid)[at];
  else
    return a.dtype == CB_FLOAT32   ? static_cast<const float*>(a.grid)[at]
           : a.dtype == CB_FLOAT16 ? loaded<Half>(static_cast<const Half*>(a.grid)[at])
                                   : loaded<BFloat16>(static_cast<const BFloat16*>(a.grid)[at]);
}

template <typename C, int Dims, int Each>
__global__ void __launch_bounds__(threads) pairs_kernel(const __grid_constant__ PairArguments a) {
  using Taps = PointTaps<C, Dims, Each>;
  const Sampling& s = a.sampling;
  const int64_t plane = int64_t{s.sizes[0]} * s.sizes[1] * s.sizes[2];
  for (int64_t item = first_index(); item < a.count; item += index_step()) {
    const int64_t entry = a.per_entry.quotient(item), n = a.first_entry + entry,
                  point = a.first_point + item - entry * a.per_entry.divisor;
    const int64_t point_coordinates = s.coordinate_offset(n, point);
    const Taps around(s, [&](int k) { return grid_coordinate<C>(a, point_coordinates + k * s.grid_last_stride); });
    around.each([&](int t, int i, int j, int k) {
      const int64_t pair = item * Taps::taps + t;
      const int32_t offset = around.offset(i, j, k);
      a.keys[pair] = static_cast<uint64_t>(offset < 0 ? a.pixels : entry * plane + offset);
      a.to[pair] = n * s.channels * plane + (offset < 0 ? 0 : offset);
      a.from[pair] = n * s.channels * s.points + point;
      static_cast<C*>(a.weights)[pair] = around.weight(i, j, k);
    });
  }
}

// The gradient of the input. Each pass processes as many whole entries as the memory limit allows;
// then each element of a half precision is rounded only once.
void scatter_gradient(const Call& call, Sampling s, const cb_tensor& grad, const cb_tensor& grid,
                      const cb_tensor& out) {
  constexpr int64_t most_pairs = int64_t{1} << 25;
  clear(call, out);
  if (grad.numel == 0) return;
  s.set_contiguous(call);
  const int64_t plane = s.plane(), entries = std::max<int64_t>(1, most_pairs / (s.points * s.taps));
  const int64_t part = entries > 1 ? s.points : std::min(s.points, (int64_t{1} << 30) / s.taps);
  Geometry<2> channels{};
  channels.numel = channels.sizes[0] = s.channels;
  channels.strides[0][0] = plane;
  channels.strides[1][0] = s.points;
  const bool wide = out.dtype == CB_FLOAT64;
  PairArguments a{s, 0, 0, 0, 0, {}, grid.data, grid.dtype, nullptr, nullptr, nullptr, nullptr};
  for (a.first_entry = 0; a.first_entry < s.batch; a.first_entry += entries) {
    const int64_t here = std::min(entries, s.batch - a.first_entry);
    for (a.first_point = 0; a.first_point < s.points; a.first_point += part) {
      const int64_t each = std::min(part, s.points - a.first_point), pairs = here * each * s.taps;
      const DeterministicScatterAdd scatter_add(call, pairs, here * plane);
      const Workspace weights(call, static_cast<size_t>(pairs) * (wide ? sizeof(double) : sizeof(float)));
      a.count = here * each;
      a.pixels = here * plane;
      a.per_entry = LongDivider(each);
      a.keys = scatter_add.keys();
      a.to = scatter_add.to();
      a.from = scatter_add.from();
      a.weights = weights.data();
      const unsigned blocks = grid_for(call, a.count, threads);
      dispatch_taps(s, [&]<int Dims, int Each>() {
        launch(call, wide ? pairs_kernel<double, Dims, Each> : pairs_kernel<float, Dims, Each>, blocks, threads, 0, a);
      });
      scatter_add.run(out, grad.data, channels, no_factor(), weights.data());
    }
  }
}

// The gradient of the grid: the sum over channels and taps of gradient * value * derivative of the
// weight.
template <typename T, int Dims, int Each>
__global__ void __launch_bounds__(threads)
    grid_gradient_kernel(T* out, const T* grad, const T* input, const T* grid, const __grid_constant__ Sampling s) {
  using C = compute_t<T>;
  using Taps = PointTaps<C, Dims, Each>;
  for (int64_t item = first_index(); item < s.batch * s.points; item += index_step()) {
    const int64_t n = s.per_entry.quotient(item), point = item - n * s.points;
    const T* point_coordinates = grid + s.coordinate_offset(n, point);
    const Taps around(s, [&](int k) { return loaded<T>(point_coordinates[k * s.grid_last_stride]); });
    C sums[Taps::taps];
#pragma unroll
    for (int t = 0; t < Taps::taps; ++t) sums[t] = 0;
    for (int64_t c = 0; c < s.channels; ++c) {
      const T* channel = input + n * s.entry_stride + c * s.channel_stride;
      const C slope = loaded<T>(grad[(n * s.channels + c) * s.points + point]);
      around.each([&](int t, int i, int j, int k) {
        const int32_t offset = around.offset(i, j, k);
        sums[t] += slope * (offset < 0 ? C(0) : loaded<T>(channel[offset]));
      });
    }
    T* to = out + item * Dims;
    C of_z = 0, of_y = 0, of_x = 0;
    around.each([&](int t, int i, int j, int k) {
      const auto& z = around.z;
      const auto& y = around.y;
      const auto& x = around.x;
      if constexpr (Dims == 3) of_z += sums[t] * Taps::product(z.slopes[i], y.weights[j], x.weights[k]);
      of_y += sums[t] * Taps::product(z.weights[i], y.slopes[j], x.weights[k]);
      of_x += sums[t] * Taps::product(z.weights[i], y.weights[j], x.slopes[k]);
    });
    to[0] = stored<T>(of_x * around.x.step);
    to[1] = stored<T>(of_y * around.y.step);
    if constexpr (Dims == 3) to[2] = stored<T>(of_z * around.z.step);
  }
}

void grid_sampler_backward(Call& call) {
  const arguments::GridSamplerBackward args(call);
  const cb_tensor &grad = *args.grad, &grad_input = call.output(0), &grad_grid = call.output(1);
  const Sampling s(call, args);
  if (args.needs[0] && grad_input.numel != 0) scatter_gradient(call, s, grad, *args.grid, grad_input);
  if (!args.needs[1] || grad_grid.numel == 0) return;
  if (s.mode == InterpolationMode::nearest) return clear(call, grad_grid);
  dispatch<FloatTypes>(grad.dtype, [&]<typename T>() {
    dispatch_taps(s, [&]<int Dims, int Each>() {
      if constexpr (Each > 1)
        launch(call, grid_gradient_kernel<T, Dims, Each>, grid_for(call, s.batch * s.points, threads), threads, 0,
               mutable_data<T>(grad_grid), data<T>(grad), data<T>(*args.self), data<T>(*args.grid), s);
    });
  });
}

}  // namespace

void register_grid_sampler(KernelTable& table) {
  table.add<grid_sampler>("grid_sampler");
  table.add<grid_sampler_backward>("grid_sampler_backward");
}

}  // namespace candelabra::cuda
