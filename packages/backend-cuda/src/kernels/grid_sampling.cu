// grid_sampler and grid_sampler_backward: values of images and volumes at any places. A thread works out where one place lies and
// goes through the channels; the gradient of the input is added up sorted by pixel, always in the same order.
#include <limits>

#include "additions.hpp"
#include "candelabra/float_index.hpp"
#include "candelabra/grid_sampling.hpp"
#include "move.hpp"
#include "places.hpp"

namespace candelabra::cuda {
namespace {

using grid_sampling::Mode;
using grid_sampling::Outside;

constexpr int threads = 256;

// One call: the geometry of the input (N, C, z, y, x), and where its places come from. An image has no z, of size 1.
struct Sampling {
  int dims;
  Mode mode;
  Outside outside;
  bool align_corners;
  int64_t batch, channels, places, taps;
  int64_t entry_stride, channel_stride;
  int32_t sizes[3], strides[3];
  int64_t grid_strides[3], grid_entry_stride, grid_last_stride;
  LongDivider per_entry, rows, columns;  // places of an entry, and in its last two dimensions

  Sampling(const Call& call, int first)
      : dims(call.tensor(first).ndim - 2),
        mode(grid_sampling::mode_named(call.string(first + 2))),
        outside(grid_sampling::outside_named(call.string(first + 3))),
        align_corners(call.boolean(first + 4)) {
    const cb_tensor &input = call.tensor(first), &grid = call.tensor(first + 1);
    batch = input.sizes[0];
    channels = input.sizes[1];
    entry_stride = input.strides[0];
    channel_stride = input.strides[1];
    grid_entry_stride = grid.strides[0];
    grid_last_stride = grid.strides[dims + 1];
    int64_t pixels[3] = {1, 1, 1};
    places = 1;
    int64_t farthest = 0;
    const int missing = 3 - dims;
    for (int d = 0; d < 3; ++d) {
      const bool there = d >= missing;
      const int64_t size = there ? input.sizes[2 + d - missing] : 1, stride = there ? input.strides[2 + d - missing] : 0;
      if (there) pixels[d] = grid.sizes[1 + d - missing];
      places *= pixels[d];
      grid_strides[d] = there ? grid.strides[1 + d - missing] : 0;
      farthest += (size - 1) * std::abs(stride);
      if (farthest > std::numeric_limits<int32_t>::max() || size > std::numeric_limits<int32_t>::max())
        throw failure(CB_RUNTIME_ERROR, "%s(): an image of more than 2**31 elements is too large", call.raw()->operator_name);
      sizes[d] = static_cast<int32_t>(size);
      strides[d] = static_cast<int32_t>(size > 1 ? stride : 0);
    }
    per_entry = LongDivider(places);
    rows = LongDivider(pixels[1]);
    columns = LongDivider(pixels[2]);
    taps = mode == Mode::nearest ? 1 : mode == Mode::cubic ? 16 : int64_t{1} << dims;
  }
  // Offsets are those of a gradient without gaps.
  void set_contiguous(const Call& call) {
    int64_t plane = 1;
    for (int d = 2; d >= 0; --d) {
      strides[d] = static_cast<int32_t>(plane);
      plane *= sizes[d];
      if (plane > std::numeric_limits<int32_t>::max())
        throw failure(CB_RUNTIME_ERROR, "%s(): an image of more than 2**31 elements is too large", call.raw()->operator_name);
    }
  }
  int64_t plane() const { return int64_t{sizes[0]} * sizes[1] * sizes[2]; }

  // Offset in the grid of the first number of a place of an entry.
  __device__ int64_t number_at(int64_t entry, int64_t place) const {
    const int64_t line = columns.quotient(place), z = rows.quotient(line);
    return entry * grid_entry_stride + z * grid_strides[0] + (line - z * rows.divisor) * grid_strides[1] +
           (place - line * columns.divisor) * grid_strides[2];
  }
};

// What a place takes along one dimension: offsets in a channel (-1 for what is outside), weights, how they change, and how the
// place moves with the number in the grid.
template <typename C, int Each>
struct Along {
  int32_t offsets[Each];
  C weights[Each], slopes[Each], step;

  __device__ void put(int k, C at, C size, int32_t stride) {
    const auto index = index_or_outside<int32_t>(at, size);
    offsets[k] = index < 0 ? -1 : index * stride;
  }
  __device__ Along(C coordinate, const Sampling& s, int d) {
    const C size = static_cast<C>(s.sizes[d]), number = coordinate + 1;
    const C scale = s.align_corners ? (size - 1) / 2 : size / 2;
    const C place = s.align_corners ? number * scale : (number * size - 1) / 2;
    const int32_t stride = s.strides[d];
    if constexpr (Each == 4) {
      const C low = math::floor(place);
      grid_sampling::cubic(place - low, weights, slopes);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const C at = grid_sampling::confined(low + static_cast<C>(k - 1), size, s.outside, s.align_corners).place;
        put(k, s.outside == Outside::reflection ? math::round_even(at) : at, size, stride);
      }
      step = scale;
    } else {
      const auto at = grid_sampling::confined(place, size, s.outside, s.align_corners);
      step = scale * at.slope;
      if constexpr (Each == 1) {
        put(0, math::round_even(at.place), size, stride);
        weights[0] = 1;
        slopes[0] = 0;
      } else {
        const C low = math::floor(at.place), part = at.place - low;
        put(0, low, size, stride);
        put(1, low + 1, size, stride);
        weights[0] = 1 - part;
        weights[1] = part;
        slopes[0] = -1;
        slopes[1] = 1;
      }
    }
  }
};
// The dimension that an image lacks.
template <typename C>
struct Absent {
  int32_t offsets[1] = {0};
  C weights[1] = {1}, slopes[1] = {0}, step = 0;
};

template <typename C, int Dims, int Each>
struct Around {
  static constexpr int deep = Dims == 3 ? Each : 1, taps = deep * Each * Each;
  std::conditional_t<Dims == 3, Along<C, Each>, Absent<C>> z;
  Along<C, Each> y, x;

  // Coordinates of a place come last dimension first.
  template <typename Read>
  __device__ Around(const Sampling& s, Read&& read) : z(depth(s, read)), y(read(1), s, 1), x(read(0), s, 2) {}
  template <typename Read>
  __device__ static auto depth(const Sampling& s, Read&& read) {
    if constexpr (Dims == 3)
      return Along<C, Each>(read(2), s, 0);
    else
      return Absent<C>{};
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
  for (int64_t item = first_index(); item < s.batch * s.places; item += index_step()) {
    const int64_t n = s.per_entry.quotient(item), place = item - n * s.places;
    const T* numbers = grid + s.number_at(n, place);
    const Around<C, Dims, Each> around(s, [&](int k) { return loaded<T>(numbers[k * s.grid_last_stride]); });
    for (int64_t c = blockIdx.y; c < s.channels; c += gridDim.y) {
      const T* channel = input + n * s.entry_stride + c * s.channel_stride;
      C values[Around<C, Dims, Each>::taps];
      around.each([&](int t, int i, int j, int k) {
        const int32_t offset = around.offset(i, j, k);
        values[t] = offset < 0 ? C(0) : loaded<T>(channel[offset]);
      });
      C sum = 0;
      around.each([&](int t, int i, int j, int k) {
        sum = t == 0 ? around.weight(i, j, k) * values[0] : sum + around.weight(i, j, k) * values[t];
      });
      out[(n * s.channels + c) * s.places + place] = stored<T>(sum);
    }
  }
}

// Calls f.operator()<Dims, Each>().
template <typename F>
void dispatch_taps(const Sampling& s, F&& f) {
  if (s.dims == 3) {
    if (s.mode == Mode::nearest) return f.template operator()<3, 1>();
    return f.template operator()<3, 2>();
  }
  if (s.mode == Mode::nearest) return f.template operator()<2, 1>();
  if (s.mode == Mode::cubic) return f.template operator()<2, 4>();
  f.template operator()<2, 2>();
}

void grid_sampler(Call& call) {
  const cb_tensor& out = call.output();
  if (out.numel == 0) return;
  const Sampling s(call, 0);
  dispatch<FloatTypes>(out.dtype, [&]<typename T>() {
    dispatch_taps(s, [&]<int Dims, int Each>() {
      launch(call, sample_kernel<T, Dims, Each>, grid_over(call, s.batch * s.places, s.channels, threads), threads, 0,
             mutable_data<T>(out), data<T>(call.tensor(0)), data<T>(call.tensor(1)), s);
    });
  });
}

// ---- gradients

// What each place adds to which pixel of the entries [first, first + entries), for all channels at once.
struct PairArguments {
  Sampling sampling;
  int64_t first_entry, first_place, count, places;  // so many places of each entry, from first_place on
  LongDivider together;
  const void* grid;
  int32_t dtype;
  uint64_t* keys;
  int64_t *to, *from;
  void* weights;
};

template <typename C>
__device__ C number_of_grid(const PairArguments& a, int64_t at) {
  if constexpr (std::is_same_v<C, double>)
    return static_cast<const double*>(a.grid)[at];
  else
    return a.dtype == CB_FLOAT32   ? static_cast<const float*>(a.grid)[at]
           : a.dtype == CB_FLOAT16 ? loaded<Half>(static_cast<const Half*>(a.grid)[at])
                                   : loaded<BFloat16>(static_cast<const BFloat16*>(a.grid)[at]);
}

template <typename C, int Dims, int Each>
__global__ void __launch_bounds__(threads) pairs_kernel(const __grid_constant__ PairArguments a) {
  using Taps = Around<C, Dims, Each>;
  const Sampling& s = a.sampling;
  const int64_t plane = int64_t{s.sizes[0]} * s.sizes[1] * s.sizes[2];
  for (int64_t item = first_index(); item < a.count; item += index_step()) {
    const int64_t entry = a.together.quotient(item), n = a.first_entry + entry,
                  place = a.first_place + item - entry * a.together.divisor;
    const int64_t numbers = s.number_at(n, place);
    const Taps around(s, [&](int k) { return number_of_grid<C>(a, numbers + k * s.grid_last_stride); });
    around.each([&](int t, int i, int j, int k) {
      const int64_t pair = item * Taps::taps + t;
      const int32_t offset = around.offset(i, j, k);
      a.keys[pair] = static_cast<uint64_t>(offset < 0 ? a.places : entry * plane + offset);
      a.to[pair] = n * s.channels * plane + (offset < 0 ? 0 : offset);
      a.from[pair] = n * s.channels * s.places + place;
      static_cast<C*>(a.weights)[pair] = around.weight(i, j, k);
    });
  }
}

// Whole entries at a time as far as memory goes: then each element of a half precision is rounded once.
void spread(const Call& call, Sampling s, const cb_tensor& grad, const cb_tensor& out) {
  constexpr int64_t most_pairs = int64_t{1} << 25;
  clear(call, out);
  if (grad.numel == 0) return;
  s.set_contiguous(call);
  const int64_t plane = s.plane(), entries = std::max<int64_t>(1, most_pairs / (s.places * s.taps));
  const int64_t part = entries > 1 ? s.places : std::min(s.places, (int64_t{1} << 30) / s.taps);
  Geometry<2> channels{};
  channels.numel = channels.sizes[0] = s.channels;
  channels.strides[0][0] = plane;
  channels.strides[1][0] = s.places;
  const bool wide = out.dtype == CB_FLOAT64;
  PairArguments a{s, 0, 0, 0, 0, {}, call.tensor(2).data, call.tensor(2).dtype, nullptr, nullptr, nullptr, nullptr};
  for (a.first_entry = 0; a.first_entry < s.batch; a.first_entry += entries) {
    const int64_t here = std::min(entries, s.batch - a.first_entry);
    for (a.first_place = 0; a.first_place < s.places; a.first_place += part) {
      const int64_t each = std::min(part, s.places - a.first_place), pairs = here * each * s.taps;
      const Additions additions(call, pairs, here * plane);
      const Workspace weights(call, static_cast<size_t>(pairs) * (wide ? sizeof(double) : sizeof(float)));
      a.count = here * each;
      a.places = here * plane;
      a.together = LongDivider(each);
      a.keys = additions.keys();
      a.to = additions.to();
      a.from = additions.from();
      a.weights = weights.data();
      const unsigned blocks = grid_for(call, a.count, threads);
      dispatch_taps(s, [&]<int Dims, int Each>() {
        launch(call, wide ? pairs_kernel<double, Dims, Each> : pairs_kernel<float, Dims, Each>, blocks, threads, 0, a);
      });
      additions.run(out, grad.data, channels, no_factor(), weights.data());
    }
  }
}

// The gradient of the grid: by the chain rule the sum over channels and taps of slope * value * change of the weight.
template <typename T, int Dims, int Each>
__global__ void __launch_bounds__(threads)
    follow_kernel(T* out, const T* grad, const T* input, const T* grid, const __grid_constant__ Sampling s) {
  using C = compute_t<T>;
  using Taps = Around<C, Dims, Each>;
  for (int64_t item = first_index(); item < s.batch * s.places; item += index_step()) {
    const int64_t n = s.per_entry.quotient(item), place = item - n * s.places;
    const T* numbers = grid + s.number_at(n, place);
    const Taps around(s, [&](int k) { return loaded<T>(numbers[k * s.grid_last_stride]); });
    C sums[Taps::taps];
#pragma unroll
    for (int t = 0; t < Taps::taps; ++t) sums[t] = 0;
    for (int64_t c = 0; c < s.channels; ++c) {
      const T* channel = input + n * s.entry_stride + c * s.channel_stride;
      const C slope = loaded<T>(grad[(n * s.channels + c) * s.places + place]);
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
  const cb_tensor &grad = call.tensor(0), &of_input = call.output(0), &of_grid = call.output(1);
  const auto needs = call.ints(6);
  if (!is_floating_dtype(grad.dtype)) throw not_implemented();
  const Sampling s(call, 1);
  if (needs[0] && of_input.numel != 0) spread(call, s, grad, of_input);
  if (!needs[1] || of_grid.numel == 0) return;
  if (s.mode == Mode::nearest) return clear(call, of_grid);
  dispatch<FloatTypes>(grad.dtype, [&]<typename T>() {
    dispatch_taps(s, [&]<int Dims, int Each>() {
      if constexpr (Each > 1)
        launch(call, follow_kernel<T, Dims, Each>, grid_for(call, s.batch * s.places, threads), threads, 0,
               mutable_data<T>(of_grid), data<T>(grad), data<T>(call.tensor(1)), data<T>(call.tensor(2)), s);
    });
  });
}

}  // namespace

void register_grid_sampling(KernelTable& table) {
  table.add<grid_sampler>("grid_sampler");
  table.add<grid_sampler_backward>("grid_sampler_backward");
}

}  // namespace candelabra::cuda
