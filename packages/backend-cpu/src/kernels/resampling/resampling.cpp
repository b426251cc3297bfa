// _upsample and _upsample_backward: signals, images and volumes of other sizes.
//
// Interpolation is separable: one dimension at a time. An input row is resampled to the new width
// once and reused for all result rows that depend on it. The gradient is the same computation with
// transposed weight matrices.
#include "kernels/resampling/resampling_table.hpp"

#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include "candelabra/arguments/resampling.hpp"
#include "candelabra/float_index.hpp"
#include "memory/allocator.hpp"
#include "simd/load_elements.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// A batch (N, C, spatial...) as planes of at most three spatial dimensions. `pixel` is the number
// of contiguous elements per position: the channels in channels-last memory. Both tensors have the
// same layout, which sizes of 1 may hide in one of them.
struct Layout {
  int64_t planes, pixel;
};

Layout layout_of(const cb_tensor& in, const cb_tensor& out) {
  const int64_t batch = out.sizes[0], channels = out.sizes[1];
  if (is_contiguous(in) && is_contiguous(out)) return {batch * channels, 1};
  return {batch, channels};
}

// Resamples one row to the new width. Taps are listed tap by tap, so that the loop over positions
// has no branches. Shorter lists are padded with entries of weight 0, whose values are ignored
// because they may be infinite.
template <typename C>
class RowFilter {
 public:
  RowFilter(const Taps<C>& taps, int64_t pixel)
      : from_(taps.from * pixel), to_(taps.to * pixel), pixel_(pixel), taps_(taps) {
    constexpr int64_t widest_expanded = 8;
    identity_ = taps.identity();
    most_ = taps.max_count();
    expanded_ = pixel == 1 || pixel < widest_expanded;
    listed_ = expanded_ && most_ <= std::max<int64_t>(16, to_) && from_ <= std::numeric_limits<int32_t>::max();
    if (identity_ || !listed_) return;
    index_.assign(to_ * most_, 0);
    weight_.assign(to_ * most_, C(0));
    for (int64_t x = 0; x < taps.to; ++x) {
      const int32_t count = taps.count(x);
      if (count < most_) filled_ = true;
      for (int32_t k = 0; k < count; ++k)
        for (int64_t c = 0; c < pixel; ++c) {
          index_[k * to_ + x * pixel + c] = static_cast<int32_t>(taps.index[taps.start[x] + k] * pixel + c);
          weight_[k * to_ + x * pixel + c] = taps.weight[taps.start[x] + k];
        }
    }
  }

  bool identity() const { return identity_; }
  int64_t from() const { return from_; }
  int64_t to() const { return to_; }
  int64_t work() const { return to_ * std::max(most_, 1); }

  void run(const C* in, C* out) const {
    if (identity_) {
      std::memcpy(out, in, static_cast<size_t>(to_) * sizeof(C));
    } else if (!listed_) {
      run_pixels(in, out);
    } else if (most_ == 1 && !filled_) {
      run_listed<1>(in, out);
    } else if (most_ == 2 && !filled_) {
      run_listed<2>(in, out);
    } else if (most_ == 4 && !filled_) {
      run_listed<4>(in, out);
    } else {
      run_filled(in, out);
    }
  }

 private:
  template <int N>
  void run_listed(const C* in, C* out) const {
    const int32_t* index = index_.data();
    const C* weight = weight_.data();
    const int64_t n = to_;
#pragma omp simd
    for (int64_t x = 0; x < n; ++x) {
      C sum = weight[x] * in[index[x]];
      for (int k = 1; k < N; ++k) sum += weight[k * n + x] * in[index[k * n + x]];
      out[x] = sum;
    }
  }
  void run_filled(const C* in, C* out) const {
    std::fill_n(out, to_, C(0));
    for (int32_t k = 0; k < most_; ++k) {
      const int32_t* index = index_.data() + k * to_;
      const C* weight = weight_.data() + k * to_;
#pragma omp simd
      for (int64_t x = 0; x < to_; ++x) {
        const C value = in[index[x]];
        out[x] += weight[x] != C(0) ? weight[x] * value : C(0);
      }
    }
  }
  void run_pixels(const C* in, C* out) const {
    for (int64_t x = 0; x < taps_.to; ++x) {
      C* to = out + x * pixel_;
      std::fill_n(to, pixel_, C(0));
      for (int32_t e = taps_.start[x]; e < taps_.start[x + 1]; ++e) {
        const C* from = in + taps_.index[e] * pixel_;
        const C weight = taps_.weight[e];
#pragma omp simd
        for (int64_t c = 0; c < pixel_; ++c) to[c] += weight * from[c];
      }
    }
  }

  int64_t from_, to_, pixel_;
  const Taps<C>& taps_;
  int32_t most_ = 0;
  bool identity_ = false, expanded_ = false, listed_ = false, filled_ = false;
  std::vector<int32_t> index_;
  std::vector<C> weight_;
};

// out = the weighted sum of rows.
template <typename C>
void blend(const C* const* rows, const C* weights, int32_t count, int64_t n, C* out) {
  if (count == 0) {
    std::fill_n(out, n, C(0));
  } else if (count == 1) {
    const C w = weights[0];
    const C* a = rows[0];
#pragma omp simd
    for (int64_t x = 0; x < n; ++x) out[x] = w * a[x];
  } else if (count == 2) {
    const C v = weights[0], w = weights[1];
    const C *a = rows[0], *b = rows[1];
#pragma omp simd
    for (int64_t x = 0; x < n; ++x) out[x] = v * a[x] + w * b[x];
  } else if (count == 4) {
    const C t = weights[0], u = weights[1], v = weights[2], w = weights[3];
    const C *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
#pragma omp simd
    for (int64_t x = 0; x < n; ++x) out[x] = t * a[x] + u * b[x] + v * c[x] + w * d[x];
  } else {
    blend(rows, weights, 2, n, out);
    for (int32_t k = 2; k < count; ++k) {
      const C w = weights[k];
      const C* a = rows[k];
#pragma omp simd
      for (int64_t x = 0; x < n; ++x) out[x] += w * a[x];
    }
  }
}

// The weights of depth, height and width. A missing dimension has the identity.
template <typename C>
struct Tables {
  Taps<C> z, y, x;
};

// Whether it is cheaper to blend rows before they are resampled to the new width. That is so if the
// height shrinks, because then many input rows make up few result rows. A resampled element costs
// as much as several blended ones.
template <typename C>
bool blends_first(const Taps<C>& height, const RowFilter<C>& filter) {
  constexpr int64_t relative_cost = 4;
  const int64_t used_rows = std::min<int64_t>(height.from, static_cast<int64_t>(height.index.size()));
  return (used_rows - height.to) * relative_cost * filter.work() >
         height.to * height.max_count() * (filter.from() - filter.to());
}

template <typename T>
void interpolate(const cb_tensor& in, const cb_tensor& out, const Tables<compute_t<T>>& tables) {
  using C = compute_t<T>;
  const Layout layout = layout_of(in, out);
  const Taps<C>&depth = tables.z, &height = tables.y;
  const RowFilter<C> filter(tables.x, layout.pixel);
  const int64_t wide = filter.from(), row = filter.to(), span = height.span();
  const int64_t deepest = depth.max_count(), highest = height.max_count();
  const bool flat = depth.identity();
  const bool width_only = flat && height.identity();
  const bool blended_first = flat && !width_only && blends_first(height, filter);
  const int64_t plane_in = depth.from * height.from * wide;
  const T* source = data<T>(in);
  T* target = mutable_data<T>(out);
  parallel_for(
      layout.planes * depth.to * height.to, grain_for(filter.work() + row * highest), [&](int64_t begin, int64_t end) {
        // A ring buffer of resampled rows of one plane and one new depth: row y is in slot
        // y modulo the span.
        Scratch<C> resampled(span * row), wide_rows(std::max(deepest, highest) * wide), blended(wide), result(row);
        std::vector<int64_t> held(span, -1);
        std::vector<const C*> rows(std::max(highest, deepest));
        for (int64_t item = begin; item < end; ++item) {
          const int64_t y = item % height.to, slice = item / height.to, z = slice % depth.to, plane = slice / depth.to;
          // Row `at` of the slice that depth entry `entry` refers to. Buffer k holds it as float
          // if T is a half precision.
          const auto one_row = [&](int32_t entry, int64_t at, int32_t k) -> const C* {
            const T* from = source + plane * plane_in + (depth.index[entry] * height.from + at) * wide;
            if constexpr (std::is_same_v<T, C>) {
              return from;
            } else {
              load_strided(from, 1, wide, wide_rows.data() + k * wide);
              return wide_rows.data() + k * wide;
            }
          };
          const auto source_row = [&](int64_t at) -> const C* {
            const int32_t first = depth.start[z], count = depth.count(z);
            if (flat) return one_row(first, at, 0);
            std::vector<const C*>& parts = rows;
            for (int32_t k = 0; k < count; ++k) parts[k] = one_row(first + k, at, k);
            blend(parts.data(), depth.weight.data() + first, count, wide, blended.data());
            return blended.data();
          };
          const auto resampled_row = [&](int64_t at) -> const C* {
            C* slot = resampled.data() + at % span * row;
            const int64_t id = slice * height.from + at;
            if (held[at % span] != id) {
              filter.run(source_row(at), slot);
              held[at % span] = id;
            }
            return slot;
          };
          if constexpr (std::is_same_v<T, C>)
            if (width_only) {
              filter.run(source_row(y), target + item * row);
              continue;
            }
          const int32_t first = height.start[y], count = height.count(y);
          if (blended_first) {
            for (int32_t k = 0; k < count; ++k) rows[k] = one_row(depth.start[z], height.index[first + k], k);
            blend(rows.data(), height.weight.data() + first, count, wide, blended.data());
            if constexpr (std::is_same_v<T, C>) {
              filter.run(blended.data(), target + item * row);
            } else {
              filter.run(blended.data(), result.data());
              store_strided(result.data(), row, target + item * row, 1);
            }
            continue;
          }
          // Two loops, because source_row() uses `rows` for the depth.
          for (int32_t k = 0; k < count; ++k) resampled_row(height.index[first + k]);
          for (int32_t k = 0; k < count; ++k) rows[k] = resampled.data() + height.index[first + k] % span * row;
          if constexpr (std::is_same_v<T, C>) {
            blend(rows.data(), height.weight.data() + first, count, row, target + item * row);
          } else {
            blend(rows.data(), height.weight.data() + first, count, row, result.data());
            store_strided(result.data(), row, target + item * row, 1);
          }
        }
      });
}

// Sizes of up to three spatial dimensions, the missing ones 1.
struct Spatial {
  int64_t sizes[3] = {1, 1, 1};
  explicit Spatial(const cb_tensor& tensor) {
    for (int d = 2; d < tensor.ndim; ++d) sizes[3 - (tensor.ndim - d)] = tensor.sizes[d];
  }
};

// Args: Resample or UpsampleBackward.
template <typename C, typename Args>
Tables<C> tables_of(const Args& args, const cb_tensor& small, const cb_tensor& large) {
  const Spatial from(small), to(large);
  const auto scales = args.scales;
  const Filter filter = filter_named(args.mode);
  const bool align_corners = args.align_corners, antialias = args.antialias;
  const int missing = 3 - (small.ndim - 2);
  const auto table = [&](int d) {
    if (d < missing) return taps_of<C>(Filter::nearest, 1, 1, false, 0, false);
    const double scale = scales.empty() ? 0.0 : scales[d - missing];
    return taps_of<C>(filter, from.sizes[d], to.sizes[d], align_corners, scale, antialias);
  };
  return {table(0), table(1), table(2)};
}

// ---- uint8
//
// Weights are 15-bit fixed point, and each dimension rounds and clamps to bytes, as PyTorch and
// image libraries do. Results equal theirs bit for bit.

struct FixedPointTaps {
  Taps<int32_t> taps;
  int precision = 0;  // weights are multiples of 2^-precision
};

FixedPointTaps fixed_point_taps(const Taps<double>& exact) {
  // Taps that clamping moved to the same edge pixel are added up.
  Taps<double> merged;
  merged.begin(exact.from, exact.to, exact.max_count());
  double largest = 0;
  for (int64_t i = 0; i < exact.to; ++i) {
    for (int32_t e = exact.start[i]; e < exact.start[i + 1]; ++e) {
      if (e > exact.start[i] && exact.index[e] == merged.index.back())
        merged.weight.back() += exact.weight[e];
      else
        merged.add(exact.index[e], exact.weight[e]);
    }
    merged.end_row();
  }
  for (double weight : merged.weight) largest = std::max(largest, weight);
  FixedPointTaps result;
  while (result.precision < 22 && largest * (1 << (result.precision + 1)) + 0.5 < (1 << 15)) ++result.precision;
  result.taps.from = merged.from;
  result.taps.to = merged.to;
  result.taps.start = std::move(merged.start);
  result.taps.index = std::move(merged.index);
  constexpr int32_t most = std::numeric_limits<int32_t>::max();
  for (double weight : merged.weight) {
    const double scaled = weight * (1 << result.precision);
    result.taps.weight.push_back(index_from_float(scaled < 0 ? scaled - 0.5 : scaled + 0.5, -most, most));
  }
  return result;
}

void write_bytes(const int32_t* sums, int precision, uint8_t* to, int64_t n) {
  const int32_t half = precision > 0 ? 1 << (precision - 1) : 0;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const int32_t value = (sums[i] + half) >> precision;
    to[i] = static_cast<uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
  }
}

// Resamples rows to another width.
void resample_rows(const FixedPointTaps& width, int64_t rows, int64_t pixel, const uint8_t* from, uint8_t* to) {
  const RowFilter<int32_t> filter(width.taps, pixel);
  const int64_t wide = filter.from(), row = filter.to();
  parallel_for(rows, grain_for(filter.work()), [&](int64_t begin, int64_t end) {
    Scratch<int32_t> values(wide), sums(row);
    for (int64_t r = begin; r < end; ++r) {
      std::copy_n(from + r * wide, wide, values.data());
      filter.run(values.data(), sums.data());
      write_bytes(sums.data(), width.precision, to + r * row, row);
    }
  });
}

// Resamples `outer` stacks of rows of n bytes to another height.
void resample_stacks(const FixedPointTaps& height, int64_t outer, int64_t n, const uint8_t* from, uint8_t* to) {
  const Taps<int32_t>& taps = height.taps;
  parallel_for(outer * taps.to, grain_for(n * std::max(taps.max_count(), 1)), [&](int64_t begin, int64_t end) {
    Scratch<int32_t> sums(n);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t stack = item / taps.to, y = item % taps.to;
      std::fill_n(sums.data(), n, 0);
      for (int32_t e = taps.start[y]; e < taps.start[y + 1]; ++e) {
        const uint8_t* row = from + (stack * taps.from + taps.index[e]) * n;
        const int32_t weight = taps.weight[e];
        int32_t* sum = sums.data();
#pragma omp simd
        for (int64_t x = 0; x < n; ++x) sum[x] += weight * row[x];
      }
      write_bytes(sums.data(), height.precision, to + item * n, n);
    }
  });
}

void interpolate_bytes(const cb_tensor& in, const cb_tensor& out, const Tables<double>& tables) {
  const Layout layout = layout_of(in, out);
  const Taps<double>&z = tables.z, &y = tables.y, &x = tables.x;
  const int64_t row = x.to * layout.pixel, planes = layout.planes;
  const uint8_t* from = data<uint8_t>(in);
  uint8_t* target = mutable_data<uint8_t>(out);
  const bool wider = !x.identity(), higher = !y.identity(), deeper = !z.identity();
  if (!wider && !higher && !deeper) {
    std::copy_n(from, out.numel, target);
    return;
  }
  Scratch<uint8_t> widened(wider && (higher || deeper) ? planes * z.from * y.from * row : 0);
  if (wider) {
    uint8_t* to = higher || deeper ? widened.data() : target;
    resample_rows(fixed_point_taps(x), planes * z.from * y.from, layout.pixel, from, to);
    from = to;
  }
  Scratch<uint8_t> stacked(higher && deeper ? planes * z.from * y.to * row : 0);
  if (higher) {
    uint8_t* to = deeper ? stacked.data() : target;
    resample_stacks(fixed_point_taps(y), planes * z.from, row, from, to);
    from = to;
  }
  if (deeper) resample_stacks(fixed_point_taps(z), planes, y.to * row, from, target);
}

// Nearest-neighbour modes copy elements of any dtype.
void copy_nearest(const arguments::Upsample& args, const cb_tensor& out) {
  const cb_tensor& in = *args.self;
  const Layout layout = layout_of(in, out);
  const Tables<float> tables = tables_of<float>(args, in, out);
  const int64_t wide = tables.x.from * layout.pixel, row = tables.x.to * layout.pixel, pixel = layout.pixel;
  const int64_t rows = tables.z.to * tables.y.to, height = tables.y.to;
  const int32_t* index = tables.x.index.data();
  const bool same_width = tables.x.identity();
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    const U* source = data<U>(in);
    U* target = mutable_data<U>(out);
    parallel_for(layout.planes * rows, grain_for(row), [&](int64_t begin, int64_t end) {
      const U* before = nullptr;
      for (int64_t item = begin; item < end; ++item) {
        const int64_t plane = item / rows, z = item % rows / height, y = item % height;
        const U* from =
            source + ((plane * tables.z.from + tables.z.index[z]) * tables.y.from + tables.y.index[y]) * wide;
        U* to = target + item * row;
        if (same_width || from == before) {
          std::memcpy(to, same_width ? from : to - row, static_cast<size_t>(row) * sizeof(U));
        } else if (pixel == 1) {
          for (int64_t x = 0; x < row; ++x) to[x] = from[index[x]];
        } else {
          for (int64_t x = 0; x < tables.x.to; ++x)
            std::memcpy(to + x * pixel, from + index[x] * pixel, static_cast<size_t>(pixel) * sizeof(U));
        }
        before = from;
      }
    });
  });
}

void upsample(Call& call) {
  const arguments::Upsample args(call);
  const cb_tensor &in = *args.self, &out = call.output();
  if (out.numel == 0) return;
  const Filter filter = filter_named(args.mode);
  if (filter == Filter::nearest || filter == Filter::nearest_exact) return copy_nearest(args, out);
  if (out.dtype == CB_UINT8) return interpolate_bytes(in, out, tables_of<double>(args, in, out));
  dispatch<FloatTypes>(out.dtype,
                       [&]<typename T>() { interpolate<T>(in, out, tables_of<compute_t<T>>(args, in, out)); });
}

void upsample_backward(Call& call) {
  const arguments::UpsampleBackward args(call);
  const cb_tensor &grad = *args.grad, &out = call.output();
  if (out.numel == 0) return;
  dispatch<FloatTypes>(out.dtype, [&]<typename T>() {
    using C = compute_t<T>;
    const Tables<C> tables = tables_of<C>(args, out, grad);
    interpolate<T>(grad, out, Tables<C>{tables.z.transposed(), tables.y.transposed(), tables.x.transposed()});
  });
}

}  // namespace

void register_resampling(KernelTable& table) {
  table.add<upsample>("_upsample");
  table.add<upsample_backward>("_upsample_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
