// _upsample and _upsample_backward: signals, images and volumes of other sizes. The device computes
// a table of source positions and weights for each dimension. Then one thread gathers one element
// of the result, plane by plane. The gradient uses the same tables transposed.
#include <algorithm>
#include <array>
#include <string_view>

#include "candelabra/arguments/resampling.hpp"
#include "candelabra/float_index.hpp"
#include "candelabra/resampling.hpp"
#include "drivers/image_offsets.hpp"

namespace candelabra::cuda {
namespace {

using resampling::Filter;

constexpr int threads = 256;

Filter filter_named(std::string_view mode) {
  if (mode == "nearest") return Filter::nearest;
  if (mode == "nearest-exact") return Filter::nearest_exact;
  if (mode == "linear") return Filter::linear;
  return Filter::cubic;
}

// The options that both operators have.
struct Options {
  std::span<const double> scales;
  std::string_view mode;
  bool align_corners, antialias;
};
template <typename Arguments>
Options options_of(const Arguments& args) {
  return {args.scales, args.mode, args.align_corners, args.antialias};
}

// ---- tables

// Index i of the output reads the `count[i]` input indices from first[i] on, clamped to the input.
// `from` and `to` are the sizes of input and output. Without a table the dimension is copied.
template <typename W>
struct Rows {
  int64_t from = 1, to = 1, most = 1;
  int64_t* first = nullptr;
  int32_t* count = nullptr;
  W* weights = nullptr;
  int64_t *low = nullptr, *high = nullptr;  // the output indices that may read input index i

  __device__ int64_t clamped(int64_t i) const { return i < 0 ? 0 : i < from ? i : from - 1; }
};

// How to compute the table of a dimension.
struct Recipe {
  Filter filter;
  // Merged: equal clamped positions are merged into one weight
  bool align_corners, antialias, merged;
  double ratio;
};
template <typename W>
struct Making {
  Rows<W> rows[3];
  Recipe recipes[3];
};

template <typename W>
__global__ void __launch_bounds__(threads) table_kernel(const __grid_constant__ Making<W> making) {
  const Rows<W>& rows = making.rows[blockIdx.y];
  const Recipe& recipe = making.recipes[blockIdx.y];
  if (rows.first == nullptr) return;
  for (int64_t i = first_index(); i < rows.to; i += index_step()) {
    W* weights = rows.weights + i * rows.most;
    if (recipe.antialias) {
      const resampling::Widened wide(i, recipe.ratio, rows.from, recipe.filter == Filter::cubic);
      const int64_t last = min(wide.last, wide.first + rows.most);
      double sum = 0;
      for (int64_t j = wide.first; j < last; ++j) sum += wide.weight(j);
      if (sum == 0) sum = 1;
      for (int64_t j = wide.first; j < last; ++j) weights[j - wide.first] = static_cast<W>(wide.weight(j) / sum);
      rows.first[i] = wide.first;
      rows.count[i] = static_cast<int32_t>(last - wide.first);
      continue;
    }
    resampling::Four<W> taps{0, {W(1), W(0), W(0), W(0)}};
    int32_t count = 1;
    const W ratio = static_cast<W>(recipe.ratio);
    if (recipe.filter == Filter::cubic) {
      taps = resampling::cubic_place(i, ratio, recipe.align_corners, rows.from);
      count = 4;
    } else if (recipe.filter == Filter::linear) {
      const auto between = resampling::linear_place(i, ratio, recipe.align_corners, rows.from);
      taps = {between.first, {W(1) - between.part, between.part, W(0), W(0)}};
      count = 2;
    } else {
      taps.first = resampling::nearest_place(i, static_cast<float>(recipe.ratio),
                                             recipe.filter == Filter::nearest_exact, rows.from);
    }
    int32_t kept = 0;
    int64_t before = -1;
#pragma unroll
    for (int32_t k = 0; k < 4; ++k) {
      if (k >= count) continue;
      const int64_t position = rows.clamped(taps.first + k);
      if (recipe.merged && position == before)
        weights[kept - 1] += taps.weights[k];
      else
        weights[kept++] = taps.weights[k];
      before = position;
    }
    rows.first[i] = recipe.merged ? rows.clamped(taps.first) : taps.first;
    rows.count[i] = kept;
  }
}

// Finds `low` and `high` by bisection: the first and the last positions of the table are sorted.
template <typename W>
__global__ void __launch_bounds__(threads) range_kernel(const __grid_constant__ Making<W> making) {
  const Rows<W>& rows = making.rows[blockIdx.y];
  if (rows.first == nullptr) return;
  for (int64_t i = first_index(); i < rows.from; i += index_step()) {
    const auto search = [&](auto&& beyond) {
      int64_t begin = 0, end = rows.to;
      while (begin < end) {
        const int64_t middle = (begin + end) / 2;
        if (beyond(middle))
          end = middle;
        else
          begin = middle + 1;
      }
      return begin;
    };
    rows.low[i] = search([&](int64_t o) { return rows.clamped(rows.first[o] + rows.count[o] - 1) >= i; });
    rows.high[i] = search([&](int64_t o) { return rows.clamped(rows.first[o]) > i; });
  }
}

int64_t aligned(int64_t bytes) {
  return (bytes + 15) / 16 * 16;
}

// The tables of depth, height and width. Missing dimensions have no table.
template <typename W>
class Tables {
 public:
  // Resampling from the sizes of `input` to those of `output`.
  Tables(const Call& call, const Options& options, const cb_tensor& input, const cb_tensor& output, bool ranges,
         bool merged) {
    const SpatialSizes from(input), to(output);
    const auto scales = options.scales;
    const Filter filter = filter_named(options.mode);
    const bool nearest = filter == Filter::nearest || filter == Filter::nearest_exact;
    const bool align_corners = options.align_corners && !nearest, antialias = options.antialias && !nearest;
    const int missing = 3 - (input.ndim - 2);
    Making<W> making{};
    int64_t bytes = 0, table_offsets[3] = {0, 0, 0}, longest = 0, widest = 0;
    for (int d = 0; d < 3; ++d) {
      Rows<W>& rows = making.rows[d];
      rows.from = from.sizes[d];
      rows.to = to.sizes[d];
      if (d < missing || (filter == Filter::linear && !antialias && rows.from == rows.to)) continue;
      const double scale = scales.empty() ? 0.0 : scales[static_cast<size_t>(d - missing)];
      making.recipes[d] = {filter, align_corners, antialias, merged,
                           resampling::ratio_of(rows.from, rows.to, align_corners, scale)};
      rows.most = antialias ? resampling::Widened::most(making.recipes[d].ratio, rows.from, filter == Filter::cubic)
                  : filter == Filter::cubic  ? 4
                  : filter == Filter::linear ? 2
                                             : 1;
      made_[d] = true;
      table_offsets[d] = bytes;
      bytes +=
          aligned(rows.to * 8) + aligned(rows.to * 4) + aligned(rows.to * rows.most * static_cast<int64_t>(sizeof(W)));
      if (ranges) bytes += 2 * aligned(rows.from * 8);
      longest = std::max(longest, rows.to);
      widest = std::max(widest, rows.from);
    }
    memory_ = Workspace(call, static_cast<size_t>(bytes));
    for (int d = 0; d < 3; ++d) {
      Rows<W>& rows = making.rows[d];
      if (made_[d]) {
        int64_t at = table_offsets[d];
        const auto allocate = [&]<typename V>(V*& pointer, int64_t count) {
          pointer = memory_.template as<V>(static_cast<size_t>(at));
          at += aligned(count * static_cast<int64_t>(sizeof(V)));
        };
        allocate(rows.first, rows.to);
        allocate(rows.count, rows.to);
        allocate(rows.weights, rows.to * rows.most);
        if (ranges) allocate(rows.low, rows.from), allocate(rows.high, rows.from);
      }
      rows_[d] = rows;
    }
    if (longest == 0) return;
    launch(call, table_kernel<W>, dim3(grid_for(call, longest, threads), 3), threads, 0, making);
    if (ranges) launch(call, range_kernel<W>, dim3(grid_for(call, widest, threads), 3), threads, 0, making);
  }
  const Rows<W>& operator[](int d) const { return rows_[d]; }
  bool made(int d) const { return made_[d]; }

 private:
  Workspace memory_;
  Rows<W> rows_[3];
  bool made_[3] = {false, false, false};
};

// ---- sums of weighted elements

template <typename W>
struct GatherPlan {
  Rows<W> axes[3];
  int64_t planes, pixel_size, plane_in, plane_out;
  int64_t wide, high;        // the last two sizes of what is read
  PlaneIndexer plane_index;  // of the result

  GatherPlan(const Rows<W>& z, const Rows<W>& y, const Rows<W>& x, const PlaneLayout& layout, bool transposed)
      : axes{z, y, x}, planes(layout.planes), pixel_size(layout.pixel_size) {
    const auto in = [&](const Rows<W>& rows) { return transposed ? rows.to : rows.from; };
    const auto out = [&](const Rows<W>& rows) { return transposed ? rows.from : rows.to; };
    wide = in(x);
    high = in(y);
    plane_in = in(z) * high * wide * pixel_size;
    plane_index = PlaneIndexer(out(z), out(y), out(x), pixel_size);
    plane_out = plane_index.count;
  }
};

// The taps of index i of the result, numbered from `begin` to `end`; tap() gives the position and
// the weight of one. If Transposed, tap() returns false for an output index that does not read
// input index i.
template <typename W, bool Transposed>
struct Taps {
  const Rows<W>& rows;
  int64_t i, begin, end;

  __device__ Taps(const Rows<W>& rows, int64_t i) : rows(rows), i(i), begin(0), end(1) {
    if (rows.first == nullptr) return;
    if constexpr (Transposed)
      begin = rows.low[i], end = rows.high[i];
    else
      end = rows.count[i];
  }
  __device__ bool tap(int64_t k, int64_t& position, W& weight) const {
    if (rows.first == nullptr) {
      position = i;
      weight = W(1);
      return true;
    }
    if constexpr (Transposed) {
      const int64_t first = rows.first[k], last = int64_t{rows.count[k]} - 1;
      const int64_t from = i == 0 ? 0 : max(int64_t{0}, i - first),
                    to = i == rows.from - 1 ? last : min(last, i - first);
      if (from > to) return false;
      position = k;
      weight = W(0);
      for (int64_t t = from; t <= to; ++t) weight += rows.weights[k * rows.most + t];
      return true;
    } else {
      position = rows.clamped(rows.first[i] + k);
      weight = rows.weights[i * rows.most + k];
      return true;
    }
  }
};

template <typename In, typename Out, bool Transposed>
__global__ void __launch_bounds__(threads)
    gather_kernel(Out* out, const In* in, const __grid_constant__ GatherPlan<compute_t<Out>> d) {
  using W = compute_t<Out>;
  constexpr int plane_batch = 4;
  for (int64_t e = first_index(); e < d.plane_out; e += index_step()) {
    const auto [z, y, x, c] = d.plane_index[e];
    const Taps<W, Transposed> zs(d.axes[0], z), ys(d.axes[1], y), xs(d.axes[2], x);
    for (int64_t p = int64_t{blockIdx.y} * plane_batch; p < d.planes; p += int64_t{gridDim.y} * plane_batch) {
      const int here = static_cast<int>(min(int64_t{plane_batch}, d.planes - p));
      const In* plane = in + p * d.plane_in + c;
      W sums[plane_batch] = {};
      for (int64_t i = zs.begin; i < zs.end; ++i) {
        int64_t z_position;
        W weight_z;
        if (!zs.tap(i, z_position, weight_z)) continue;
        for (int64_t j = ys.begin; j < ys.end; ++j) {
          int64_t y_position;
          W weight_y;
          if (!ys.tap(j, y_position, weight_y)) continue;
          const In* source_row = plane + (z_position * d.high + y_position) * d.wide * d.pixel_size;
          W rows[plane_batch] = {};
          for (int64_t k = xs.begin; k < xs.end; ++k) {
            int64_t x_position;
            W weight_x;
            if (!xs.tap(k, x_position, weight_x)) continue;
#pragma unroll
            for (int q = 0; q < plane_batch; ++q)
              if (q < here)
                rows[q] += weight_x * static_cast<W>(source_row[q * d.plane_in + x_position * d.pixel_size]);
          }
#pragma unroll
          for (int q = 0; q < plane_batch; ++q) sums[q] += weight_z * weight_y * rows[q];
        }
      }
#pragma unroll
      for (int q = 0; q < plane_batch; ++q)
        if (q < here) out[(p + q) * d.plane_out + e] = stored<Out>(sums[q]);
    }
  }
}

// The same for tables of at most `Count` entries in height and width, which stay in registers, and
// for planes of fewer than 2^31 elements.
template <typename T, int Count>
__global__ void __launch_bounds__(threads)
    gather_few_kernel(T* out, const T* in, const __grid_constant__ GatherPlan<compute_t<T>> d) {
  using W = compute_t<T>;
  for (int64_t e = first_index(); e < d.plane_out; e += index_step()) {
    const auto [z, y, x, c] = d.plane_index[e];
    const Taps<W, false> zs(d.axes[0], z), ys(d.axes[1], y), xs(d.axes[2], x);
    const int count_y = static_cast<int>(ys.end), count_x = static_cast<int>(xs.end);
    int32_t row_offsets[Count], pixel_offsets[Count];
    W weights_y[Count], weights_x[Count];
#pragma unroll
    for (int k = 0; k < Count; ++k) {
      int64_t y_position = 0, x_position = 0;
      weights_y[k] = weights_x[k] = W(0);
      if (k < count_y) ys.tap(k, y_position, weights_y[k]);
      if (k < count_x) xs.tap(k, x_position, weights_x[k]);
      row_offsets[k] = static_cast<int32_t>(y_position * d.wide * d.pixel_size);
      pixel_offsets[k] = static_cast<int32_t>(x_position * d.pixel_size + c);
    }
    for (int64_t p = blockIdx.y; p < d.planes; p += gridDim.y) {
      W sum = 0;
      for (int64_t i = zs.begin; i < zs.end; ++i) {
        int64_t z_position;
        W weight_z;
        zs.tap(i, z_position, weight_z);
        const T* slice = in + p * d.plane_in + z_position * d.high * d.wide * d.pixel_size;
        W part = 0;
#pragma unroll
        for (int j = 0; j < Count; ++j) {
          if (j >= count_y) break;
          const T* source_row = slice + row_offsets[j];
          W values[Count], row = 0;
#pragma unroll
          for (int k = 0; k < Count; ++k) values[k] = k < count_x ? loaded<T>(source_row[pixel_offsets[k]]) : W(0);
#pragma unroll
          for (int k = 0; k < Count; ++k) row += weights_x[k] * values[k];
          part += weights_y[j] * row;
        }
        sum += weight_z * part;
      }
      out[p * d.plane_out + e] = stored<T>(sum);
    }
  }
}

template <typename In, typename Out>
void gather_step(const Call& call, Out* out, const In* in, const GatherPlan<compute_t<Out>>& d, bool transposed) {
  const dim3 grid = grid_over(call, d.plane_out, divide_up(d.planes, 4), threads);
  if (transposed)
    launch(call, gather_kernel<In, Out, true>, grid, threads, 0, out, in, d);
  else
    launch(call, gather_kernel<In, Out, false>, grid, threads, 0, out, in, d);
}

// If two dimensions have many taps each, the dimensions are processed one after another. The one
// that reduces the data most is first.
template <typename T>
void gather(const Call& call, const Options& options, const cb_tensor& out, const cb_tensor& in, bool transposed) {
  using W = compute_t<T>;
  const PlaneLayout layout = plane_layout(out, in);
  const Tables<W> tables(call, options, transposed ? out : in, transposed ? in : out, transposed, false);
  const GatherPlan<W> whole(tables[0], tables[1], tables[2], layout, transposed);
  T* to = mutable_data<T>(out);
  const T* from = data<T>(in);
  int many = 0, made = 0, order[3];
  bool few = !transposed && whole.plane_in < (int64_t{1} << 31);
  double most = 1;
  for (int d = 0; d < 3; ++d) {
    const Rows<W>& rows = tables[d];
    if (!tables.made(d)) continue;
    order[made++] = d;
    const double each = static_cast<double>(rows.most);
    many += (transposed ? each * static_cast<double>(rows.to) / static_cast<double>(rows.from) : each) > 8;
    if (d > 0) most = std::max(most, each);
    few &= rows.most <= 4;
  }
  if (few && most <= 2)
    return launch(call, gather_few_kernel<T, 2>, grid_over(call, whole.plane_out, whole.planes, threads), threads, 0,
                  to, from, whole);
  if (few)
    return launch(call, gather_few_kernel<T, 4>, grid_over(call, whole.plane_out, whole.planes, threads), threads, 0,
                  to, from, whole);
  if (many < 2) return gather_step(call, to, from, whole, transposed);

  const auto growth = [&](int d) {
    const double ratio = static_cast<double>(tables[d].to) / static_cast<double>(tables[d].from);
    return transposed ? 1 / ratio : ratio;
  };
  std::stable_sort(order, order + made, [&](int a, int b) { return growth(a) < growth(b); });
  int64_t sizes[3];
  for (int d = 0; d < 3; ++d) sizes[d] = transposed ? tables[d].to : tables[d].from;
  Workspace before;
  for (int step = 0; step < made; ++step) {
    Rows<W> axes[3];
    for (int d = 0; d < 3; ++d) axes[d].from = axes[d].to = sizes[d];
    const int d = order[step];
    axes[d] = tables[d];
    sizes[d] = transposed ? tables[d].from : tables[d].to;
    const GatherPlan<W> plan(axes[0], axes[1], axes[2], layout, transposed);
    if (step + 1 == made) {
      gather_step(call, to, before.as<const W>(), plan, transposed);
      break;
    }
    Workspace after(call, static_cast<size_t>(plan.planes * plan.plane_out) * sizeof(W));
    if (step == 0)
      gather_step(call, after.as<W>(), from, plan, transposed);
    else
      gather_step(call, after.as<W>(), before.as<const W>(), plan, transposed);
    before = std::move(after);
  }
}

// ---- bytes
//
// As in PyTorch and image libraries, weights are 15-bit integers and each dimension rounds and
// clamps to bytes again: the results are bit-identical.

constexpr int many_threads = 1024;

// One block rounds the weights to multiples of 2^-precision.
__global__ void __launch_bounds__(many_threads)
    fixed_point_kernel(int32_t* whole, int32_t* precision, const __grid_constant__ Rows<double> rows) {
  __shared__ double largest[many_threads];
  const int me = static_cast<int>(threadIdx.x);
  double mine = 0;
  for (int64_t i = me; i < rows.to; i += many_threads)
    for (int32_t k = 0; k < rows.count[i]; ++k) mine = max(mine, rows.weights[i * rows.most + k]);
  largest[me] = mine;
  for (int half = many_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (me < half) largest[me] = max(largest[me], largest[me + half]);
  }
  __syncthreads();
  int bits = 0;
  while (bits < 22 && largest[0] * (1 << (bits + 1)) + 0.5 < (1 << 15)) ++bits;
  for (int64_t i = me; i < rows.to; i += many_threads)
    for (int32_t k = 0; k < rows.count[i]; ++k) {
      const double scaled = rows.weights[i * rows.most + k] * (1 << bits);
      whole[i * rows.most + k] = index_from_float(scaled < 0 ? scaled - 0.5 : scaled + 0.5, -INT32_MAX, INT32_MAX);
    }
  if (me == 0) *precision = bits;
}

// Resamples the middle dimension of (outer, from, inner).
struct ByteStep {
  uint8_t* out;
  const uint8_t* in;
  int64_t outer;
  Rows<double> rows;
  const int32_t *weights, *precision;
  PlaneIndexer plane_index;  // (1, 1, to, inner)
};
__global__ void __launch_bounds__(threads) bytes_kernel(const __grid_constant__ ByteStep s) {
  const int32_t precision = *s.precision, half = precision > 0 ? 1 << (precision - 1) : 0;
  const int64_t inner = s.plane_index.pixel_size.divisor;
  for (int64_t e = first_index(); e < s.plane_index.count; e += index_step()) {
    const auto [z, y, i, c] = s.plane_index[e];
    const int64_t first = s.rows.first[i];
    const int32_t count = s.rows.count[i];
    const int32_t* weights = s.weights + i * s.rows.most;
    for (int64_t p = blockIdx.y; p < s.outer; p += gridDim.y) {
      const uint8_t* from = s.in + (p * s.rows.from + first) * inner + c;
      int32_t sum = half;
      for (int32_t k = 0; k < count; ++k) sum += weights[k] * from[k * inner];
      const int32_t value = sum >> precision;
      s.out[p * s.plane_index.count + e] = static_cast<uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
    }
  }
}

void gather_bytes(const Call& call, const Options& options, const cb_tensor& out, const cb_tensor& in) {
  const PlaneLayout layout = plane_layout(out, in);
  const Tables<double> tables(call, options, in, out, false, true);
  int64_t sizes[3];
  int steps = 0;
  for (int d = 0; d < 3; ++d) {
    sizes[d] = tables[d].from;
    steps += tables.made(d);
  }
  if (steps == 0) return copy_bytes(call, out.data, in.data, static_cast<size_t>(out.numel));
  Workspace before;
  const auto* from = data<uint8_t>(in);
  for (int d = 2; d >= 0; --d) {  // the width first
    if (!tables.made(d)) continue;
    const Rows<double>& rows = tables[d];
    int64_t outer = layout.planes, inner = layout.pixel_size;
    for (int e = 0; e < d; ++e) outer *= sizes[e];
    for (int e = d + 1; e < 3; ++e) inner *= sizes[e];
    sizes[d] = rows.to;
    const int64_t entries = rows.to * rows.most;
    const Workspace whole(call, static_cast<size_t>(entries + 1) * sizeof(int32_t));
    launch(call, fixed_point_kernel, 1, many_threads, 0, whole.as<int32_t>() + 1, whole.as<int32_t>(), rows);
    --steps;
    Workspace after(call, steps > 0 ? static_cast<size_t>(outer * rows.to * inner) : 0);
    auto* to = steps > 0 ? after.as<uint8_t>() : mutable_data<uint8_t>(out);
    const ByteStep step{
        to, from, outer, rows, whole.as<int32_t>() + 1, whole.as<int32_t>(), PlaneIndexer(1, 1, rows.to, inner)};
    launch(call, bytes_kernel, grid_over(call, step.plane_index.count, outer, threads), threads, 0, step);
    before = std::move(after);
    from = before.as<uint8_t>();
  }
}

// ---- nearest: copies elements

struct Nearest {
  int64_t from[3];
  float steps[3];
  bool exact;
  int64_t planes, pixel_size, plane_in;
  PlaneIndexer plane_index;

  __device__ int64_t source(int d, int64_t i) const { return resampling::nearest_place(i, steps[d], exact, from[d]); }
};

template <typename U>
__global__ void __launch_bounds__(threads) nearest_kernel(U* out, const U* in, const __grid_constant__ Nearest n) {
  for (int64_t e = first_index(); e < n.plane_index.count; e += index_step()) {
    const auto [z, y, x, c] = n.plane_index[e];
    const int64_t source_row = n.source(0, z) * n.from[1] + n.source(1, y);
    const U* from = in + (source_row * n.from[2] + n.source(2, x)) * n.pixel_size + c;
    for (int64_t p = blockIdx.y; p < n.planes; p += gridDim.y) out[p * n.plane_index.count + e] = from[p * n.plane_in];
  }
}

void copy_nearest(const Call& call, std::span<const double> scales, const cb_tensor& out, const cb_tensor& in,
                  bool exact) {
  const SpatialSizes from(in), to(out);
  const int missing = 3 - (in.ndim - 2);
  const PlaneLayout layout = plane_layout(out, in);
  Nearest n{};
  n.exact = exact;
  for (int d = 0; d < 3; ++d) {
    const double scale = scales.empty() || d < missing ? 0.0 : scales[static_cast<size_t>(d - missing)];
    n.from[d] = from.sizes[d];
    n.steps[d] = static_cast<float>(resampling::ratio_of(from.sizes[d], to.sizes[d], false, scale));
  }
  n.planes = layout.planes;
  n.pixel_size = layout.pixel_size;
  const int64_t bytes = widen_pixels(n.pixel_size, itemsize(out.dtype), out.data, in.data);
  n.plane_in = from.sizes[0] * from.sizes[1] * from.sizes[2] * n.pixel_size;
  n.plane_index = PlaneIndexer(to.sizes[0], to.sizes[1], to.sizes[2], n.pixel_size);
  dispatch_size(bytes, [&]<typename U>() {
    launch(call, nearest_kernel<U>, grid_over(call, n.plane_index.count, n.planes, threads), threads, 0,
           mutable_data<U>(out), data<U>(in), n);
  });
}

void upsample(Call& call) {
  const arguments::Upsample args(call);
  const cb_tensor &in = *args.self, &out = call.output();
  if (out.numel == 0) return;
  const Filter filter = filter_named(args.mode);
  if (filter == Filter::nearest || filter == Filter::nearest_exact)
    return copy_nearest(call, args.scales, out, in, filter == Filter::nearest_exact);
  if (out.dtype == CB_UINT8) return gather_bytes(call, options_of(args), out, in);
  dispatch<FloatTypes>(out.dtype, [&]<typename T>() { gather<T>(call, options_of(args), out, in, false); });
}

void upsample_backward(Call& call) {
  const arguments::UpsampleBackward args(call);
  const cb_tensor &grad = *args.grad, &out = call.output();
  if (out.numel == 0) return;
  dispatch<FloatTypes>(out.dtype, [&]<typename T>() { gather<T>(call, options_of(args), out, grad, true); });
}

}  // namespace

void register_resampling(KernelTable& table) {
  table.add<upsample>("_upsample");
  table.add<upsample_backward>("_upsample_backward");
}

}  // namespace candelabra::cuda
