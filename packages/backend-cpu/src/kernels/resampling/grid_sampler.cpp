// grid_sampler and grid_sampler_backward: values of images and volumes at points of a grid. The
// offsets and weights of the taps are computed once per block of points and serve all channels. The
// gradient of the input is divided among threads by channel, so that no two threads write to the
// same element.
#include <cmath>
#include <limits>

#include "candelabra/arguments/resampling.hpp"
#include "candelabra/float_index.hpp"
#include "candelabra/grid_sampling.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "memory/allocator.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using grid_sampling::compute_coordinates;
using grid_sampling::Coordinate;
using grid_sampling::cubic;
using grid_sampling::InterpolationMode;
using grid_sampling::PaddingMode;

constexpr int64_t block = 256;
constexpr int most_taps = 16;

// One call: the geometry of the input (N, C, sizes…) and the grid of points.
template <typename T>
struct Sampling {
  using C = compute_t<T>;
  int dims;
  InterpolationMode mode;
  PaddingMode padding_mode;
  bool align_corners;
  int64_t batch, channels, points, blocks, taps;
  int64_t sizes[3], strides[3], grid_sizes[3];
  const cb_tensor& input;
  const cb_tensor& grid;

  // grid_sampler and grid_sampler_backward have these arguments in common.
  template <typename Arguments>
  Sampling(const Arguments& args, const char* operator_name)
      : dims(args.self->ndim - 2),
        mode(grid_sampling::interpolation_mode_named(args.mode)),
        padding_mode(grid_sampling::padding_mode_named(args.padding_mode)),
        align_corners(args.align_corners),
        input(*args.self),
        grid(*args.grid) {
    batch = input.sizes[0];
    channels = input.sizes[1];
    points = 1;
    int64_t farthest = 0;
    for (int d = 0; d < dims; ++d) {
      sizes[d] = input.sizes[2 + d];
      strides[d] = input.strides[2 + d];
      grid_sizes[d] = grid.sizes[1 + d];
      points *= grid_sizes[d];
      farthest += (sizes[d] - 1) * std::abs(strides[d]);
    }
    if (farthest > std::numeric_limits<int32_t>::max())
      throw failure(CB_RUNTIME_ERROR, "%s(): an image of more than 2**31 elements is too large", operator_name);
    blocks = (points + block - 1) / block;
    taps = mode == InterpolationMode::nearest ? 1 : mode == InterpolationMode::cubic ? 16 : int64_t{1} << dims;
  }
};

// The taps of a block of points: offset in a channel (-1 outside the image), weight, and the
// derivative of the weight along each dimension.
template <typename T>
class Block {
 public:
  using C = compute_t<T>;
  int32_t offsets[most_taps][block];
  C weights[most_taps][block];
  C slopes[3][most_taps][block];
  C steps[3][block];   // derivative of the point by the coordinate in the grid
  bool inside = true;  // whether no tap is outside

  // Two taps that are adjacent in memory are loaded as one pair; `pairs` has the offset of its
  // first element. At an edge only one of the two taps exists. The weights are then those of the
  // pair's elements: the offset of the second tap says whether the first element counts, and vice
  // versa. Taps are padded to whole registers with weight 0.
  int32_t pairs[most_taps / 2][block];

  void pair_up(int64_t taps, int64_t count) {
    const int64_t end = (count + 15) / 16 * 16;
    for (int64_t t = 0; t < taps; ++t) {
      std::fill(offsets[t] + count, offsets[t] + end, inside ? 0 : -1);
      std::fill(weights[t] + count, weights[t] + end, C(0));
    }
    for (int64_t k = 0; k < taps / 2; ++k) {
      const int32_t *left = offsets[2 * k], *right = offsets[2 * k + 1];
      int32_t* pair = pairs[k];
      C *low = weights[2 * k], *high = weights[2 * k + 1];
#pragma omp simd
      for (int64_t i = 0; i < end; ++i) {
        const bool has_left = left[i] >= 0, has_right = right[i] >= 0;
        const C left_weight = low[i], right_weight = high[i];
        pair[i] = has_left ? left[i] - !has_right : std::max(right[i], 0);
        low[i] = has_left ? left_weight : right_weight;
        high[i] = has_right ? right_weight : left_weight;
      }
    }
  }

  // Computes the taps of `count` points from `first` on. `strides` are those of the input or of its
  // gradient.
  void find(const Sampling<T>& s, const int64_t* strides, int64_t n, int64_t first, int64_t count, bool with_slopes) {
    inside = true;
    for (int d = 0; d < s.dims; ++d) axis(s, strides, d, n, first, count);
    const int each = s.mode == InterpolationMode::nearest ? 1 : s.mode == InterpolationMode::cubic ? 4 : 2;
    if (s.mode == InterpolationMode::nearest && !with_slopes) return find_nearest(s.dims, count);
    for (int t = 0; t < s.taps; ++t) {
      int at[3] = {0, 0, 0};
      for (int d = s.dims - 1, rest = t; d >= 0; --d, rest /= each) at[d] = rest % each;
      int32_t* offset = offsets[t];
      C* weight = weights[t];
      const int32_t *p0 = axis_offsets_[0][at[0]], *p1 = axis_offsets_[1][at[1]], *p2 = axis_offsets_[2][at[2]];
      const C *w0 = axis_weights_[0][at[0]], *w1 = axis_weights_[1][at[1]], *w2 = axis_weights_[2][at[2]];
      const C *s0 = axis_slopes_[0][at[0]], *s1 = axis_slopes_[1][at[1]], *s2 = axis_slopes_[2][at[2]];
      if (s.dims == 2) {
        for (int64_t i = 0; i < count; ++i) {
          offset[i] = p0[i] < 0 || p1[i] < 0 ? -1 : p0[i] + p1[i];
          weight[i] = w0[i] * w1[i];
        }
        if (with_slopes)
          for (int64_t i = 0; i < count; ++i) {
            slopes[0][t][i] = s0[i] * w1[i];
            slopes[1][t][i] = w0[i] * s1[i];
          }
      } else {
        for (int64_t i = 0; i < count; ++i) {
          offset[i] = p0[i] < 0 || p1[i] < 0 || p2[i] < 0 ? -1 : p0[i] + p1[i] + p2[i];
          weight[i] = w0[i] * w1[i] * w2[i];
        }
        if (with_slopes)
          for (int64_t i = 0; i < count; ++i) {
            slopes[0][t][i] = s0[i] * w1[i] * w2[i];
            slopes[1][t][i] = w0[i] * s1[i] * w2[i];
            slopes[2][t][i] = w0[i] * w1[i] * s2[i];
          }
      }
    }
  }

 private:
  // A single tap of weight 1.
  void find_nearest(int dims, int64_t count) {
    int32_t* offset = offsets[0];
    const int32_t *p0 = axis_offsets_[0][0], *p1 = axis_offsets_[1][0], *p2 = axis_offsets_[2][0];
    for (int64_t i = 0; i < count; ++i) {
      const int32_t first = p0[i] | p1[i], sum = p0[i] + p1[i];
      offset[i] = dims == 2 ? (first < 0 ? -1 : sum) : (first | p2[i]) < 0 ? -1 : sum + p2[i];
    }
    std::fill_n(weights[0], count, C(1));
  }

  int32_t axis_offsets_[3][4][block];  // of each tap along each dimension; -1 outside
  C axis_weights_[3][4][block], axis_slopes_[3][4][block];
  C coordinates_[block];

  void axis(const Sampling<T>& s, const int64_t* strides, int d, int64_t n, int64_t first, int64_t count) {
    read(s, d, n, first, count);
    const auto padded = [&]<InterpolationMode M>() {
      switch (s.padding_mode) {
        case PaddingMode::zeros:
          return axis_of<M, PaddingMode::zeros>(s, strides, d, count);
        case PaddingMode::border:
          return axis_of<M, PaddingMode::border>(s, strides, d, count);
        case PaddingMode::reflection:
          return axis_of<M, PaddingMode::reflection>(s, strides, d, count);
      }
    };
    switch (s.mode) {
      case InterpolationMode::linear:
        return padded.template operator()<InterpolationMode::linear>();
      case InterpolationMode::nearest:
        return padded.template operator()<InterpolationMode::nearest>();
      case InterpolationMode::cubic:
        return padded.template operator()<InterpolationMode::cubic>();
    }
  }

  template <InterpolationMode M, PaddingMode O>
  void axis_of(const Sampling<T>& s, const int64_t* strides, int d, int64_t count) {
    const C size = static_cast<C>(s.sizes[d]);
    const auto stride = static_cast<int32_t>(strides[d]);
    const bool align_corners = s.align_corners;
    const C scale = align_corners ? (size - 1) / 2 : size / 2;
    if constexpr (M == InterpolationMode::nearest) return nearest_of<O>(stride, d, size, scale, align_corners, count);
    int32_t any_out_of_range = 0;
#pragma omp simd reduction(| : any_out_of_range)
    for (int64_t i = 0; i < count; ++i) {
      const C number = coordinates_[i] + 1;
      const C point = align_corners ? number * scale : (number * size - 1) / 2;
      const auto set_offset = [&](int k, C at) {
        const auto index = index_or_outside<int32_t>(at, size);
        axis_offsets_[d][k][i] = index < 0 ? -1 : index * stride;
        any_out_of_range |= index < 0;
      };
      if constexpr (M == InterpolationMode::cubic) {
        const C low = std::floor(point), t = point - low;
        C weights[4], slopes[4];
        cubic(t, weights, slopes);
        for (int k = 0; k < 4; ++k) {
          const C at = compute_coordinates(low + static_cast<C>(k - 1), size, O, align_corners).value;
          set_offset(k, O == PaddingMode::reflection ? std::nearbyint(at) : at);
          axis_weights_[d][k][i] = weights[k];
          axis_slopes_[d][k][i] = slopes[k];
        }
        steps[d][i] = scale;
      } else {
        const Coordinate<C> at = compute_coordinates(point, size, O, align_corners);
        steps[d][i] = scale * at.grad;
        const C low = std::floor(at.value), part = at.value - low;
        set_offset(0, low);
        set_offset(1, low + 1);
        axis_weights_[d][0][i] = 1 - part;
        axis_weights_[d][1][i] = part;
        axis_slopes_[d][0][i] = -1;
        axis_slopes_[d][1][i] = 1;
      }
    }
    if (any_out_of_range) inside = false;
  }

  // A single tap of weight 1, whose derivative is 0. Two loops, because compilers vectorize these
  // but not one.
  template <PaddingMode O>
  void nearest_of(int32_t stride, int d, C size, C scale, bool align_corners, int64_t count) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      const C number = coordinates_[i] + 1, point = align_corners ? number * scale : (number * size - 1) / 2;
      const Coordinate<C> at = compute_coordinates(point, size, O, align_corners);
      coordinates_[i] = std::nearbyint(at.value);
      steps[d][i] = scale * at.grad;
    }
    int32_t* offset = axis_offsets_[d][0];
    int32_t any_out_of_range = 0;
#pragma omp simd reduction(| : any_out_of_range)
    for (int64_t i = 0; i < count; ++i) {
      const C at = coordinates_[i];
      const auto index = index_or_outside<int32_t>(at, size);
      offset[i] = index < 0 ? -1 : index * stride;
      any_out_of_range |= index < 0;
    }
    std::fill_n(axis_weights_[d][0], count, C(1));
    std::fill_n(axis_slopes_[d][0], count, C(0));
    if (any_out_of_range) inside = false;
  }

  // Loads coordinate d of the grid for points first, first + 1, … in row-major order.
  void read(const Sampling<T>& s, int d, int64_t n, int64_t first, int64_t count) {
    const cb_tensor& grid = s.grid;
    const int last = s.dims;  // the grid's dimension within a row of points
    const T* from = data<T>(grid) + n * grid.strides[0] + (s.dims - 1 - d) * grid.strides[last + 1];
    const int64_t row = s.grid_sizes[s.dims - 1];
    for (int64_t done = 0; done < count;) {
      const int64_t point = first + done, x = point % row;
      int64_t rest = point / row;
      const T* at = from + x * grid.strides[last];
      for (int e = s.dims - 2; e >= 0; --e) {
        at += rest % s.grid_sizes[e] * grid.strides[1 + e];
        rest /= s.grid_sizes[e];
      }
      const int64_t run = std::min(row - x, count - done);
      for (int64_t i = 0; i < run; ++i) coordinates_[done + i] = static_cast<C>(at[i * grid.strides[last]]);
      done += run;
    }
  }
};

// An element of a channel; 0 outside the image.
template <typename T, typename C>
[[gnu::always_inline]] inline C value_at(const T* channel, int32_t offset, bool inside) {
  const C value = static_cast<C>(channel[inside ? offset : std::max(offset, 0)]);
  return inside || offset >= 0 ? value : C(0);
}

// Registers of float32; gather() gives 0 outside the image.
#ifdef __AVX512F__
using Register = __m512;
// A zero register of its own for each gather. A masked gather depends on the register it merges
// into; a shared one would serialize the gathers.
[[gnu::always_inline]] inline Register fresh_zero() {
  Register none = _mm512_setzero_ps();
  asm("" : "+v"(none));
  return none;
}
template <bool All>
[[gnu::always_inline]] inline Register gather(const float* channel, const int32_t* offsets) {
  const __m512i at = _mm512_loadu_si512(offsets);
  const __mmask16 exists = All ? 0xffff : static_cast<__mmask16>(~_mm512_movepi32_mask(at));
  return _mm512_mask_i32gather_ps(fresh_zero(), exists, at, channel, sizeof(float));
}
[[gnu::always_inline]] inline Register load_register(const float* from) {
  return _mm512_loadu_ps(from);
}
[[gnu::always_inline]] inline void store_register(float* to, Register value) {
  _mm512_storeu_ps(to, value);
}
[[gnu::always_inline]] inline Register multiply_add(Register a, Register b, Register c) {
  return _mm512_fmadd_ps(a, b, c);
}
#else
using Register = __m256;
template <bool All>
[[gnu::always_inline]] inline Register gather(const float* channel, const int32_t* offsets) {
  const __m256i at = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(offsets));
  if constexpr (All) return _mm256_i32gather_ps(channel, at, sizeof(float));
  const __m256i exists = _mm256_cmpgt_epi32(at, _mm256_set1_epi32(-1));
  return _mm256_mask_i32gather_ps(_mm256_setzero_ps(), channel, at, _mm256_castsi256_ps(exists), sizeof(float));
}
[[gnu::always_inline]] inline Register load_register(const float* from) {
  return _mm256_loadu_ps(from);
}
[[gnu::always_inline]] inline void store_register(float* to, Register value) {
  _mm256_storeu_ps(to, value);
}
[[gnu::always_inline]] inline Register multiply_add(Register a, Register b, Register c) {
  return _mm256_fmadd_ps(a, b, c);
}
#endif
constexpr int64_t register_floats = sizeof(Register) / sizeof(float);

template <int N, bool All, typename T>
void sum_block(const Block<T>& b, const T* channel, int64_t count, compute_t<T>* sums) {
  using C = compute_t<T>;
  int64_t i = 0;
  if constexpr (std::is_same_v<T, float>) {
    for (; i + register_floats <= count; i += register_floats) {
      Register sum = gather<All>(channel, b.offsets[0] + i);
      if constexpr (N > 1) sum = sum * load_register(b.weights[0] + i);
      for (int t = 1; t < N; ++t)
        sum = multiply_add(load_register(b.weights[t] + i), gather<All>(channel, b.offsets[t] + i), sum);
      store_register(sums + i, sum);
    }
  }
  for (; i < count; ++i) {
    C sum = value_at<T, C>(channel, b.offsets[0][i], All);
    if constexpr (N > 1) sum *= b.weights[0][i];
    for (int t = 1; t < N; ++t) sum = std::fma(b.weights[t][i], value_at<T, C>(channel, b.offsets[t][i], All), sum);
    sums[i] = sum;
  }
}

#ifdef __AVX512F__
// The same for pairs of adjacent taps: half as many gathered elements.
template <int N, bool All>
void sum_pairs(const Block<float>& b, const float* channel, int64_t count, float* sums) {
  const __m512i evens = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odds = _mm512_or_si512(evens, _mm512_set1_epi32(1));
  const auto exist = [](const int32_t* offsets) {
    return All ? __mmask16{0xffff} : static_cast<__mmask16>(~_mm512_movepi32_mask(_mm512_loadu_si512(offsets)));
  };
  for (int64_t i = 0; i < count; i += 16) {
    __m512 sum = _mm512_setzero_ps();
    for (int k = 0; k < N / 2; ++k) {
      const __m256i* at = reinterpret_cast<const __m256i*>((All ? b.offsets[2 * k] : b.pairs[k]) + i);
      const auto load_half = [&](int half) {
        return _mm512_castsi512_ps(_mm512_mask_i32gather_epi64(_mm512_castps_si512(fresh_zero()), 0xff,
                                                               _mm256_loadu_si256(at + half), channel, sizeof(float)));
      };
      const __m512 first = load_half(0), second = load_half(1);
      const __m512 low = _mm512_maskz_permutex2var_ps(exist(b.offsets[2 * k + 1] + i), first, evens, second);
      const __m512 high = _mm512_maskz_permutex2var_ps(exist(b.offsets[2 * k] + i), first, odds, second);
      sum = _mm512_fmadd_ps(_mm512_loadu_ps(b.weights[2 * k] + i), low, sum);
      sum = _mm512_fmadd_ps(_mm512_loadu_ps(b.weights[2 * k + 1] + i), high, sum);
    }
    if (count - i >= 16)
      _mm512_storeu_ps(sums + i, sum);
    else
      _mm512_mask_storeu_ps(sums + i, static_cast<__mmask16>((1 << (count - i)) - 1), sum);
  }
}

template <typename T>
bool has_adjacent_taps(const Sampling<T>& s) {
  return std::is_same_v<T, float> && s.mode == InterpolationMode::linear && s.strides[s.dims - 1] == 1 &&
         s.sizes[s.dims - 1] > 1;
}
void sum_tap_pairs(const Block<float>& b, int64_t taps, const float* channel, int64_t count, float* sums) {
  const auto run = [&](auto inside, auto outside) {
    b.inside ? inside(b, channel, count, sums) : outside(b, channel, count, sums);
  };
  taps == 4 ? run(sum_pairs<4, true>, sum_pairs<4, false>) : run(sum_pairs<8, true>, sum_pairs<8, false>);
}
#endif

template <typename T>
void sum_taps(const Block<T>& b, int64_t taps, const T* channel, int64_t count, compute_t<T>* sums) {
  const auto run = [&]<int N>() {
    if (b.inside)
      sum_block<N, true>(b, channel, count, sums);
    else
      sum_block<N, false>(b, channel, count, sums);
  };
  if (taps == 1) return run.template operator()<1>();
  if (taps == 4) return run.template operator()<4>();
  if (taps == 8) return run.template operator()<8>();
  run.template operator()<16>();
}

// Nearest elements are copied without weights. Offsets of many blocks are computed first, so that
// each channel of a small image is read while it is in the first cache level.
template <typename T>
void sample_nearest(const Sampling<T>& s, const cb_tensor& out) {
  constexpr int64_t most_blocks = 16;
  const int64_t group = std::clamp<int64_t>(s.batch * s.blocks / (2 * thread_count()), 1, most_blocks),
                groups = (s.blocks + group - 1) / group;
  parallel_for(s.batch * groups, grain_for(group * block * (s.channels + 4)), [&](int64_t begin, int64_t end) {
    Scratch<Block<T>> space(1);
    Block<T>& b = space[0];
    Scratch<int32_t> offsets(group * block);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t n = item / groups, first = item % groups * group * block,
                    count = std::min(group * block, s.points - first);
      bool inside = true;
      for (int64_t done = 0; done < count; done += block) {
        const int64_t here = std::min(block, count - done);
        b.find(s, s.strides, n, first + done, here, false);
        std::copy_n(b.offsets[0], here, offsets.data() + done);
        inside &= b.inside;
      }
      for (int64_t c = 0; c < s.channels; ++c) {
        const T* channel = data<T>(s.input) + n * s.input.strides[0] + c * s.input.strides[1];
        T* to = mutable_data<T>(out) + (n * s.channels + c) * s.points + first;
        int64_t i = 0;
        if constexpr (std::is_same_v<T, float>)
          for (; i + register_floats <= count; i += register_floats)
            store_register(to + i, inside ? gather<true>(channel, offsets.data() + i)
                                          : gather<false>(channel, offsets.data() + i));
        for (; i < count; ++i) to[i] = inside || offsets[i] >= 0 ? channel[offsets[i]] : T(0);
      }
    }
  });
}

template <typename T>
void sample(const Sampling<T>& s, const cb_tensor& out) {
  using C = compute_t<T>;
  if (s.mode == InterpolationMode::nearest) return sample_nearest(s, out);
  parallel_for(s.batch * s.blocks, grain_for(block * s.taps * (s.channels + 4)), [&](int64_t begin, int64_t end) {
    Scratch<Block<T>> space(1);
    Block<T>& b = space[0];
    C sums[block];
    for (int64_t item = begin; item < end; ++item) {
      const int64_t n = item / s.blocks, first = item % s.blocks * block, count = std::min(block, s.points - first);
      b.find(s, s.strides, n, first, count, false);
#ifdef __AVX512F__
      const bool in_pairs = has_adjacent_taps(s);
      if (in_pairs) b.pair_up(s.taps, count);
#endif
      for (int64_t c = 0; c < s.channels; ++c) {
        const T* channel = data<T>(s.input) + n * s.input.strides[0] + c * s.input.strides[1];
        T* to = mutable_data<T>(out) + (n * s.channels + c) * s.points + first;
#ifdef __AVX512F__
        if constexpr (std::is_same_v<T, float>)
          if (in_pairs) {
            sum_tap_pairs(b, s.taps, channel, count, to);
            continue;
          }
#endif
        if constexpr (is_half_v<T>) {
          sum_taps<T>(b, s.taps, channel, count, sums);
          from_float(sums, to, count);
        } else {
          sum_taps<T>(b, s.taps, channel, count, to);
        }
      }
    }
  });
}

// Adds the gradient of the result to that of the input, which is contiguous.
template <typename T>
void input_gradient(const Sampling<T>& s, const cb_tensor& grad, const cb_tensor& out) {
  using C = compute_t<T>;
  int64_t strides[3], plane = 1;
  for (int d = s.dims - 1; d >= 0; --d) {
    strides[d] = plane;
    plane *= s.sizes[d];
  }
  if (plane > std::numeric_limits<int32_t>::max())
    throw failure(CB_RUNTIME_ERROR, "grid_sampler_backward(): an image is too large");
  constexpr int64_t most_channels = 16;  // that share one computation of the taps
  parallel_for(s.batch * s.channels, grain_for(s.points * s.taps), [&](int64_t begin, int64_t end) {
    Scratch<Block<T>> space(1);
    Block<T>& b = space[0];
    Scratch<C> values(most_taps * block);
    C(*parts)[block] = reinterpret_cast<C(*)[block]>(values.data());
    Scratch<C> wide(is_half_v<T> ? most_channels * plane : 0);
    for (int64_t item = begin; item < end;) {
      const int64_t n = item / s.channels, c0 = item % s.channels;
      const int64_t channels = std::min({most_channels, s.channels - c0, end - item});
      C* sums;
      if constexpr (is_half_v<T>)
        sums = wide.data();
      else
        sums = mutable_data<T>(out) + item * plane;
      std::fill_n(sums, channels * plane, C(0));
      for (int64_t first = 0; first < s.points; first += block) {
        const int64_t count = std::min(block, s.points - first);
        b.find(s, strides, n, first, count, false);
        for (int64_t c = 0; c < channels; ++c) {
          C* to = sums + c * plane;
          const T* from = data<T>(grad) + ((n * s.channels + c0 + c) * s.points + first);
          // Points outside add 0 to the first element: a branch here would be mispredicted.
          for (int64_t t = 0; t < s.taps; ++t) {
            const C* weight = b.weights[t];
            const int32_t* offset = b.offsets[t];
#pragma omp simd
            for (int64_t i = 0; i < count; ++i)
              parts[t][i] = offset[i] >= 0 ? static_cast<C>(from[i]) * weight[i] : C(0);
          }
          if (b.inside)
            for (int64_t i = 0; i < count; ++i)
              for (int64_t t = 0; t < s.taps; ++t) to[b.offsets[t][i]] += parts[t][i];
          else
            for (int64_t i = 0; i < count; ++i)
              for (int64_t t = 0; t < s.taps; ++t) to[std::max(b.offsets[t][i], 0)] += parts[t][i];
        }
      }
      if constexpr (is_half_v<T>) from_float(sums, mutable_data<T>(out) + item * plane, channels * plane);
      item += channels;
    }
  });
}

// The gradient of the grid: the sum over channels and taps of gradient * value * derivative of the
// weight.
template <typename T>
void grid_gradient(const Sampling<T>& s, const cb_tensor& grad, const cb_tensor& out) {
  using C = compute_t<T>;
  parallel_for(s.batch * s.blocks, grain_for(block * s.taps * (s.channels + 8)), [&](int64_t begin, int64_t end) {
    Scratch<Block<T>> space(1);
    Block<T>& b = space[0];
    Scratch<C> sums(most_taps * block);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t n = item / s.blocks, first = item % s.blocks * block, count = std::min(block, s.points - first);
      b.find(s, s.strides, n, first, count, true);
      std::fill_n(sums.data(), s.taps * block, C(0));
      for (int64_t c = 0; c < s.channels; ++c) {
        const T* channel = data<T>(s.input) + n * s.input.strides[0] + c * s.input.strides[1];
        const T* from = data<T>(grad) + (n * s.channels + c) * s.points + first;
        for (int64_t t = 0; t < s.taps; ++t) {
          C* sum = sums.data() + t * block;
          int64_t i = 0;
          if constexpr (std::is_same_v<T, float>)
            for (; i + register_floats <= count; i += register_floats) {
              const Register value =
                  b.inside ? gather<true>(channel, b.offsets[t] + i) : gather<false>(channel, b.offsets[t] + i);
              store_register(sum + i, multiply_add(load_register(from + i), value, load_register(sum + i)));
            }
          for (; i < count; ++i) sum[i] += static_cast<C>(from[i]) * value_at<T, C>(channel, b.offsets[t][i], false);
        }
      }
      T* to = mutable_data<T>(out) + (n * s.points + first) * s.dims;
      for (int d = 0; d < s.dims; ++d)
        for (int64_t i = 0; i < count; ++i) {
          C total = 0;
          for (int64_t t = 0; t < s.taps; ++t) total += sums[t * block + i] * b.slopes[d][t][i];
          to[i * s.dims + s.dims - 1 - d] = static_cast<T>(total * b.steps[d][i]);
        }
    }
  });
}

void grid_sampler(Call& call) {
  const arguments::GridSampler args(call);
  const cb_tensor& out = call.output();
  if (out.numel == 0) return;
  dispatch<FloatTypes>(out.dtype, [&]<typename T>() { sample<T>({args, call.raw()->operator_name}, out); });
}

void grid_sampler_backward(Call& call) {
  const arguments::GridSamplerBackward args(call);
  const auto needs = args.needs;
  dispatch<FloatTypes>(args.grad->dtype, [&]<typename T>() {
    const Sampling<T> s(args, call.raw()->operator_name);
    if (needs[0] && call.output(0).numel != 0) input_gradient<T>(s, *args.grad, call.output(0));
    if (!needs[1] || call.output(1).numel == 0) return;
    if (s.mode == InterpolationMode::nearest)
      std::fill_n(mutable_data<T>(call.output(1)), call.output(1).numel, T(0.0f));
    else
      grid_gradient<T>(s, *args.grad, call.output(1));
  });
}

}  // namespace

void register_grid_sampler(KernelTable& table) {
  table.add<grid_sampler>("grid_sampler");
  table.add<grid_sampler_backward>("grid_sampler_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
