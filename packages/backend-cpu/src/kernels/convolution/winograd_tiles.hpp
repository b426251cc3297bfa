// The tiles of Winograd's convolution (winograd.hpp): their transforms, and how they are loaded and
// stored.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gemm/panels.hpp"
#include "memory/allocator.hpp"
#include "memory/transpose.hpp"
#include "simd/vec.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace winograd {

using V = math::Vec<float>;
constexpr int64_t lanes = V::size, width = Panels<float>::width;
constexpr int64_t tile = 4, patch = 6, points = patch * patch;

// ---- One-dimensional transforms

// The polynomials are multiplied at the points 0, a, -a, b, -b and infinity. Among the pairs (a, b)
// that are exact in binary, these have about the smallest rounding errors: a few times those of the
// direct sum.
constexpr float a1 = 0.625f, a2 = a1 * a1, a3 = a2 * a1, b1 = 1.5f, b2 = b1 * b1, b3 = b2 * b1;
constexpr float product = a2 * b2, of_zero = 1 / product, of_a = 1 / (2 * a2 * (a2 - b2)),
                of_b = 1 / (2 * b2 * (b2 - a2));

[[gnu::always_inline]] inline V fma(V x, float factor, V y) {
  return math::fma(x, V(factor), y);
}

[[gnu::always_inline]] inline void transform_input_row(const V d[6], V out[6]) {
  const V even_a = fma(d[2], -b2, d[4]), odd_a = V(a1) * fma(d[1], -b2, d[3]);
  const V even_b = fma(d[2], -a2, d[4]), odd_b = V(b1) * fma(d[1], -a2, d[3]);
  out[0] = fma(d[0], product, fma(d[2], -(a2 + b2), d[4]));
  out[1] = even_a + odd_a;
  out[2] = even_a - odd_a;
  out[3] = even_b + odd_b;
  out[4] = even_b - odd_b;
  out[5] = fma(d[1], product, fma(d[3], -(a2 + b2), d[5]));
}

[[gnu::always_inline]] inline void transform_result_row(const V m[6], V out[4]) {
  const V even_a = m[1] + m[2], odd_a = m[1] - m[2], even_b = m[3] + m[4], odd_b = m[3] - m[4];
  out[0] = m[0] + even_a + even_b;
  out[1] = fma(odd_b, b1, V(a1) * odd_a);
  out[2] = fma(even_b, b2, V(a2) * even_a);
  out[3] = fma(odd_b, b3, fma(odd_a, a3, m[5]));
}

// The transpose of result_line.
[[gnu::always_inline]] inline void transform_grad_row(const V y[4], V out[6]) {
  const V even_a = fma(y[2], a2, y[0]), odd_a = fma(y[3], a3, V(a1) * y[1]);
  const V even_b = fma(y[2], b2, y[0]), odd_b = fma(y[3], b3, V(b1) * y[1]);
  out[0] = y[0];
  out[1] = even_a + odd_a;
  out[2] = even_a - odd_a;
  out[3] = even_b + odd_b;
  out[4] = even_b - odd_b;
  out[5] = y[3];
}

[[gnu::always_inline]] inline void transform_weight_row(const V g[3], V out[6]) {
  const V even_a = V(of_a) * fma(g[2], a2, g[0]), odd_a = V(of_a * a1) * g[1];
  const V even_b = V(of_b) * fma(g[2], b2, g[0]), odd_b = V(of_b * b1) * g[1];
  out[0] = V(of_zero) * g[0];
  out[1] = even_a + odd_a;
  out[2] = even_a - odd_a;
  out[3] = even_b + odd_b;
  out[4] = even_b - odd_b;
  out[5] = g[2];
}

// The transpose of weight_line.
[[gnu::always_inline]] inline void transform_weight_grad_row(const V s[6], V out[3]) {
  const V even_a = V(of_a) * (s[1] + s[2]), odd_a = V(of_a) * (s[1] - s[2]);
  const V even_b = V(of_b) * (s[3] + s[4]), odd_b = V(of_b) * (s[3] - s[4]);
  out[0] = fma(s[0], of_zero, even_a + even_b);
  out[1] = fma(odd_a, a1, V(b1) * odd_b);
  out[2] = fma(even_a, a2, fma(even_b, b2, s[5]));
}

// Applies a one-dimensional transform to the columns and then the rows of a square: from in(i, j)
// with `before` elements a side to out(i, j, value) with `after`.
template <int before, int after, typename Transform, typename In, typename Out>
[[gnu::always_inline]] inline void both_sides(Transform&& transform, In&& in, Out&& out) {
  V half[after][before];
#pragma GCC unroll 6
  for (int j = 0; j < before; ++j) {
    V column[before], changed[after];
#pragma GCC unroll 6
    for (int i = 0; i < before; ++i) column[i] = in(i, j);
    transform(column, changed);
#pragma GCC unroll 6
    for (int i = 0; i < after; ++i) half[i][j] = changed[i];
  }
#pragma GCC unroll 6
  for (int i = 0; i < after; ++i) {
    V changed[after];
    transform(half[i], changed);
#pragma GCC unroll 6
    for (int j = 0; j < after; ++j) out(i, j, changed[j]);
  }
}

// ---- Images

// Images (batch, channels, rows, columns). suits(): columns or channels are contiguous.
struct Images {
  float* data;
  int64_t channels, rows, columns;
  int64_t image_step, channel_step, row_step, column_step;
  bool suits() const { return column_step == 1 || channel_step == 1; }
};

// The division of the results into tiles. A segment is some adjacent tiles of one row of tiles of
// an image.
struct Tiling {
  int64_t batch, down, across, longest, segments_across;
  Tiling(int64_t batch, int64_t rows, int64_t columns, int64_t most)
      : batch(batch),
        down((rows + tile - 1) / tile),
        across((columns + tile - 1) / tile),
        longest(std::min(most, across)),
        segments_across((across + longest - 1) / longest) {}
  int64_t tiles() const { return batch * down * across; }
  int64_t segments() const { return batch * down * segments_across; }
};
struct Segment {
  int64_t image, row, column, tiles, first_tile;
  Segment(const Tiling& t, int64_t index)
      : image(index / t.segments_across / t.down),
        row(index / t.segments_across % t.down),
        column(index % t.segments_across * t.longest),
        tiles(std::min(t.longest, t.across - column)),
        first_tile((image * t.down + row) * t.across + column) {}
};

// Loads `strip_rows` rows of `count` columns from (row, column) on, for one register of channels,
// which become innermost. Positions outside the image are zero.
inline void load_strip(const Images& from, int64_t image, int64_t channel, int64_t row, int64_t column,
                       int64_t strip_rows, int64_t count, float* strip) {
  const int64_t begin = std::clamp<int64_t>(-column, 0, count),
                end = std::clamp<int64_t>(from.columns - column, begin, count);
  for (int64_t i = 0; i < strip_rows; ++i, strip += count * lanes) {
    const int64_t y = row + i;
    if (y < 0 || y >= from.rows || begin == end) {
      std::fill_n(strip, count * lanes, 0.0f);
      continue;
    }
    const float* source = from.data + image * from.image_step + channel * from.channel_step + y * from.row_step +
                          (column + begin) * from.column_step;
    std::fill_n(strip, begin * lanes, 0.0f);
    if (from.column_step == 1)
      transpose_bits(reinterpret_cast<uint32_t*>(strip + begin * lanes), lanes,
                     reinterpret_cast<const uint32_t*>(source), from.channel_step, lanes, end - begin);
    else
      for (int64_t x = begin; x < end; ++x) V::load(source + (x - begin) * from.column_step).store(strip + x * lanes);
    std::fill_n(strip + end * lanes, (count - end) * lanes, 0.0f);
  }
}

// Stores a strip to an image. Positions outside the image are skipped.
inline void store_strip(const Images& to, int64_t image, int64_t channel, int64_t row, int64_t column, int64_t count,
                        const float* strip) {
  const int64_t inside = std::min(count, to.columns - column);
  for (int64_t i = 0; i < std::min(tile, to.rows - row); ++i) {
    const float* from = strip + i * count * lanes;
    float* target =
        to.data + image * to.image_step + channel * to.channel_step + (row + i) * to.row_step + column * to.column_step;
    if (to.column_step == 1)
      transpose_bits(reinterpret_cast<uint32_t*>(target), to.channel_step, reinterpret_cast<const uint32_t*>(from),
                     lanes, inside, lanes);
    else
      for (int64_t x = 0; x < inside; ++x) V::load(from + x * lanes).store(target + x * to.column_step);
  }
}

// ---- Transformed operands

// Transformed patches of tiles: for each point a matrix of tiles by channels.
class Patches {
 public:
  Patches(int64_t tiles, int64_t channels)
      : channels(channels), step(tiles * channels + lanes), memory_(points * step) {}
  float* at(int64_t point, int64_t tile_number) { return memory_.data() + point * step + tile_number * channels; }

  // Transforms the patches of a segment for the register of channels from `channel` on. `first` is
  // the row of its first tile in the matrices.
  void fill(const Images& input, const Segment& segment, int64_t pad_rows, int64_t pad_columns, int64_t channel,
            int64_t first, float* strip) {
    const int64_t count = segment.tiles * tile + 2;
    load_strip(input, segment.image, channel, segment.row * tile - pad_rows, segment.column * tile - pad_columns, patch,
               count, strip);
    for (int64_t t = 0; t < segment.tiles; ++t) {
      const float* from = strip + t * tile * lanes;
      float* to = at(0, first + t) + channel;
      both_sides<6, 6>([](const V* d, V* out) { transform_input_row(d, out); },
                       [&](int i, int j) { return V::load(from + (i * count + j) * lanes); },
                       [&](int i, int j, V value) { value.store(to + (i * patch + j) * step); });
    }
  }

  int64_t channels, step;

 private:
  Scratch<float> memory_;
};

// The weight of a convolution from `inputs` to `outputs` channels: contiguous, or with inputs
// innermost.
struct Weight {
  float* data;
  int64_t inputs, outputs;
  int64_t input_step, output_step, row_step, column_step;
  bool rotated;  // rotated by 180 degrees
};

// Loads the nine taps of `count` inputs and one register of outputs, from `from` on.
inline void load_taps(const Weight& weight, const float* from, int64_t count, float* taps) {
  if (weight.column_step == 1 && weight.row_step == 3 && weight.input_step == 9)
    return transpose_bits(reinterpret_cast<uint32_t*>(taps), lanes, reinterpret_cast<const uint32_t*>(from),
                          weight.output_step, lanes, 9 * count);
  // The stride between inputs is too large for the hardware prefetcher.
  constexpr int64_t ahead = 6, cache_line = 64 / sizeof(float);
  for (int64_t i = 0; i < count; ++i, from += weight.input_step, taps += 9 * lanes) {
    if (weight.column_step == 1 && weight.row_step == 3) {
      if (weight.output_step == 9)
        for (int64_t k = 0; k < 9 * lanes; k += cache_line) __builtin_prefetch(from + ahead * weight.input_step + k);
      transpose_bits(reinterpret_cast<uint32_t*>(taps), lanes, reinterpret_cast<const uint32_t*>(from),
                     weight.output_step, lanes, 9);
      continue;
    }
    for (int64_t y = 0; y < 3; ++y)
      for (int64_t x = 0; x < 3; ++x)
        for (int64_t lane = 0; lane < lanes; ++lane)
          taps[(y * 3 + x) * lanes + lane] =
              from[lane * weight.output_step + y * weight.row_step + x * weight.column_step];
  }
}

// Transforms inputs [begin, end) of one panel of outputs. to(point) returns the destination of a
// point.
template <typename To>
void fill_weight(const Weight& weight, int64_t panel, int64_t begin, int64_t end, To&& to) {
  constexpr int64_t loaded_inputs = lanes;
  alignas(64) float taps[loaded_inputs * 9 * lanes];
  for (int v = 0; v < panel_vectors; ++v) {
    const int64_t output = panel * width + v * lanes;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t offset = i * width + v * lanes;
      if (output >= weight.outputs) {
        for (int64_t p = 0; p < points; ++p) V(0.0f).store(to(p) + offset);
        continue;
      }
      const int64_t loaded = (i - begin) % loaded_inputs;
      if (loaded == 0)
        load_taps(weight, weight.data + output * weight.output_step + i * weight.input_step,
                  std::min(loaded_inputs, end - i), taps);
      const float* from = taps + loaded * 9 * lanes;
      both_sides<3, 6>(
          [](const V* g, V* out) { transform_weight_row(g, out); },
          [&](int y, int x) { return V::load(from + (weight.rotated ? 8 - y * 3 - x : y * 3 + x) * lanes); },
          [&](int y, int x, V value) { value.store(to(y * patch + x) + offset); });
    }
  }
}

// The number of used registers in a panel.
inline int vectors_of(int64_t outputs, int64_t panel) {
  const int64_t left = (outputs - panel * width) / lanes;
  return left >= 3 ? 4 : static_cast<int>(left);
}

// Detects results that are not finite. The transforms mix elements of a patch with factors of both
// signs, so that one infinity would turn unrelated results into NaN. The caller then uses another
// algorithm for the whole call.
class Finite {
 public:
  void look(V value) { sum_ = math::fma(value, V(0.0f), sum_); }
  bool all() const {
    alignas(64) float parts[lanes];
    sum_.store(parts);
    float sum = 0;
    for (const float part : parts) sum += part;
    return sum == 0;
  }

 private:
  V sum_ = V(0.0f);
};

// Transforms the sums of segments [begin, end) to results: `vectors` registers of channels from
// `first_channel` on. Tiles are `tile_step` elements apart in `sums`, and points `point_step`.
inline void store_results(const Images& output, const Tiling& tiling, int64_t begin, int64_t end, int64_t first_channel,
                          int vectors, const float* bias, const float* sums, int64_t tile_step, int64_t point_step,
                          float* strip, Finite& finite) {
  for (int v = 0; v < vectors; ++v) {
    const int64_t channel = first_channel + v * lanes;
    if (channel >= output.channels) break;
    const V offset = bias ? V::load(bias + channel) : V(0.0f);
    int64_t number = 0;
    for (int64_t s = begin; s < end; ++s) {
      const Segment segment(tiling, s);
      const int64_t columns = segment.tiles * tile;
      for (int64_t t = 0; t < segment.tiles; ++t, ++number) {
        const float* from = sums + number * tile_step + v * lanes;
        float* to = strip + t * tile * lanes;
        both_sides<6, 4>([](const V* m, V* out) { transform_result_row(m, out); },
                         [&](int i, int j) { return V::load(from + (i * patch + j) * point_step); },
                         [&](int i, int j, V value) {
                           const V result = value + offset;
                           finite.look(result);
                           result.store(to + (i * columns + j) * lanes);
                         });
      }
      store_strip(output, segment.image, channel, segment.row * tile, segment.column * tile, columns, strip);
    }
  }
}

constexpr int64_t strip_size(int64_t longest) {
  return patch * (longest * tile + 2) * lanes;
}

// The number of tiles in a block, whose patches stay in the L2 cache.
inline int64_t tiles_per_block(int64_t channels) {
  return std::clamp<int64_t>((int64_t{1200} << 10) / (points * channels * 4), 16, 64);
}

// Stores nine taps for each of `inputs` channels from `input` on and `outputs` channels from
// `output` on. In `taps` outputs are contiguous, and taps are `step` elements apart.
inline void store_weight(const Weight& weight, int64_t output, int64_t outputs, int64_t input, int64_t inputs,
                         const float* taps, int64_t step) {
  float* to = weight.data + output * weight.output_step + input * weight.input_step;
  const auto* from = reinterpret_cast<const uint32_t*>(taps);
  if (weight.column_step == 1) {
    // The stride between outputs is often a multiple of the page size, which would map all of them
    // to the same cache sets.
    const int64_t length = inputs * 9;
    Scratch<float> buffer(length * lanes);
    for (int64_t k = 0; k < outputs; k += lanes) {
      const int64_t count = std::min<int64_t>(lanes, outputs - k);
      transpose_bits(reinterpret_cast<uint32_t*>(buffer.data()), length, from + k, step, length, count);
      for (int64_t i = 0; i < count; ++i)
        std::copy_n(buffer.data() + i * length, length, to + (k + i) * weight.output_step);
    }
    return;
  }
  for (int64_t t = 0; t < 9; ++t)
    transpose_bits(reinterpret_cast<uint32_t*>(to + t / 3 * weight.row_step + t % 3 * weight.column_step),
                   weight.output_step, from + t * step, 9 * step, inputs, outputs);
}

}  // namespace winograd
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
