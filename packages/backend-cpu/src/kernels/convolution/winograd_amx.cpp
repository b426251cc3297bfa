// Winograd convolution on AMX. Transformed patches, gradients and weights are split into bfloat16
// parts as they are computed, and stored as AMX tiles. gemm/amx/bf16x3_gemm.hpp explains which
// products of parts are kept.
#include "kernels/convolution/winograd_amx.hpp"

#include <algorithm>
#include <atomic>
#include <limits>

#include "gemm/amx/bf16x3_tiles.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace winograd {
namespace {

// bfloat16 per 32 of k in a panel: three parts of two tiles.
constexpr int64_t part_step = 2 * tile_elements, depth_block = 3 * part_step;
constexpr int64_t panel_area = panel_side * panel_side;
// k of a panel that fits L1 beside another panel.
constexpr int64_t depth_chunk = 128;
// Most pairs of channels whose factors or sums at all points stay in L2.
constexpr int64_t few_products = 64 * 80;

int64_t blocks_of(int64_t n, int64_t size) {
  return (n + size - 1) / size;
}

// ---- numbers too small for bfloat16 parts

// Lane-wise maximum of pairs of bfloat16, as bits without the sign.
struct MaxBits {
  __m512i bits = _mm512_setzero_si512();
};

// The smallest float32 exponent among some nonzero numbers.
class MinExponent {
 public:
  void note(MaxBits values) {
    alignas(64) uint16_t each[32];
    _mm512_store_si512(each, values.bits);
    for (const uint16_t value : each) note(value);
  }
  // Only the largest of all lanes counts.
  void note_largest(MaxBits values) {
    alignas(64) uint16_t each[32];
    _mm512_store_si512(each, values.bits);
    note(*std::max_element(each, each + 32));
  }
  void note_exponent(int32_t exponent) { exponent_ = std::min(exponent_, exponent); }
  int32_t exponent() const { return exponent_; }

 private:
  void note(uint16_t value) {
    if (value) exponent_ = std::min<int32_t>(exponent_, value >> 7);
  }
  int32_t exponent_ = 255;
};

// Whether losses to underflow of parts or of their products are negligible beside the largest
// terms. Patches mix near and far values, so errors are measured by the largest. Overflow needs no
// check here: its infinities show in the results.
bool are_large_enough(const MinExponent& a, const MinExponent& b) {
  constexpr int32_t bias = 127, each = bias - 90, both = 2 * bias - 90;
  return a.exponent() >= each && b.exponent() >= each && a.exponent() + b.exponent() >= both;
}

// ---- panels

// Splits pairs of numbers into three parts, and returns the first ones. The first part is rounded,
// so that the rest has either sign. The others are truncated, which is exact: 16 bits are left for
// both.
[[gnu::always_inline]] inline __m512i split_pair(__m512 low, __m512 high, uint16_t* to) {
  const __m512i half = _mm512_set1_epi32(0x8000), top = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  __m512i first;
#pragma GCC unroll 3
  for (int part = 0; part < 3; ++part) {
    __m512i l = _mm512_castps_si512(low), h = _mm512_castps_si512(high);
    if (part == 0) {
      l = _mm512_add_epi32(l, half);
      h = _mm512_add_epi32(h, half);
    }
    const __m512i packed = _mm512_mask_blend_epi16(0xaaaaaaaau, _mm512_srli_epi32(l, 16), h);
    _mm512_store_si512(to + part * part_step, packed);
    if (part == 0) first = packed;
    if (part == 2) break;
    low = _mm512_sub_ps(low, _mm512_castsi512_ps(_mm512_and_si512(l, top)));
    high = _mm512_sub_ps(high, _mm512_castsi512_ps(_mm512_and_si512(h, top)));
  }
  return first;
}

// Panels of rows (or columns) at every point. Padding keeps equal offsets of all points out of the
// same cache set.
class PointPanels {
 public:
  PointPanels(int64_t panels, int64_t depth)
      : panel_step_(blocks_of(depth, tile_depth) * depth_block),
        point_step_(panels * panel_step_ + 32),
        memory_(points * point_step_) {}
  uint16_t* at(int64_t point, int64_t panel) { return memory_.data() + point * point_step_ + panel * panel_step_; }
  // The address at point 0 of row (or pair of k) `row`. `number` selects the panel, and `depth` its
  // block of 32 of k.
  uint16_t* row(int64_t number, int64_t depth, int64_t row) {
    return at(0, number / panel_side) + depth / tile_depth * depth_block +
           number % panel_side / tile_side * tile_elements + row % tile_side * 32;
  }
  int64_t point_step() const { return point_step_; }

 private:
  int64_t panel_step_, point_step_;
  Scratch<uint16_t> memory_;
};

// Two transformed squares, of which the first is kept until the second is available.
class Pair {
 public:
  template <int before, typename Line, typename In>
  void low(Line&& line, In&& in) {
    both_sides<before, patch>(line, in, [&](int i, int j, V value) { value.store(low_ + (i * patch + j) * lanes); });
  }
  // Splits both squares and stores them at their points.
  template <int before, typename Line, typename In>
  void high(Line&& line, In&& in, uint16_t* to, int64_t point_step, MaxBits& largest) {
    MaxBits most = largest;
    both_sides<before, patch>(line, in,
                              [&](int i, int j, V value) { put(i * patch + j, value.v, to, point_step, most); });
    largest = most;
  }
  void no_high(uint16_t* to, int64_t point_step, MaxBits& largest) {
    for (int64_t p = 0; p < points; ++p) put(p, _mm512_setzero_ps(), to, point_step, largest);
  }
  void none(uint16_t* to, int64_t point_step) {
    for (int64_t p = 0; p < points; ++p)
      for (int64_t part = 0; part < 3; ++part)
        _mm512_store_si512(to + p * point_step + part * part_step, _mm512_setzero_si512());
  }

 private:
  [[gnu::always_inline]] void put(int64_t point, __m512 value, uint16_t* to, int64_t point_step, MaxBits& largest) {
    const __m512i first = split_pair(_mm512_load_ps(low_ + point * lanes), value, to + point * point_step);
    largest.bits = _mm512_max_epu16(largest.bits, _mm512_and_si512(first, _mm512_set1_epi16(0x7fff)));
  }
  alignas(64) float low_[points * lanes];
};

constexpr auto of_input = [](const V* d, V* out) { transform_input_row(d, out); };
constexpr auto of_grad = [](const V* y, V* out) { transform_grad_row(y, out); };
constexpr auto of_weight = [](const V* g, V* out) { transform_weight_row(g, out); };

// Packs the patches of a segment as rows. `first` is the number of its first tile there. `largest`
// has an entry for each tile, and `strips` room for two strips.
void fill_patches(const Images& input, const Segment& segment, int64_t pad_rows, int64_t pad_columns, int64_t first,
                  float* strips, PointPanels& to, MaxBits* largest) {
  const int64_t count = segment.tiles * tile + 2;
  float *low = strips, *high = strips + patch * count * lanes;
  Pair pair;
  for (int64_t c = 0; c < input.channels; c += 2 * lanes) {
    const bool has_high = c + lanes < input.channels;
    const auto load = [&](int64_t channel, float* strip) {
      load_strip(input, segment.image, channel, segment.row * tile - pad_rows, segment.column * tile - pad_columns,
                 patch, count, strip);
    };
    load(c, low);
    if (has_high) load(c + lanes, high);
    for (int64_t t = 0; t < segment.tiles; ++t) {
      const auto in = [&](const float* strip) {
        return
            [from = strip + t * tile * lanes, count](int i, int j) { return V::load(from + (i * count + j) * lanes); };
      };
      uint16_t* place = to.row(first + t, c, first + t);
      MaxBits most = c == 0 ? MaxBits{} : largest[first + t];
      pair.low<patch>(of_input, in(low));
      if (has_high)
        pair.high<patch>(of_input, in(high), place, to.point_step(), most);
      else
        pair.no_high(place, to.point_step(), most);
      largest[first + t] = most;
    }
  }
}

// Packs the weight's inputs [begin, end) for 32 outputs as panel `panel` of `to`, the first input
// at `depth`.
void fill_weight(const Weight& weight, int64_t first_output, int64_t begin, int64_t end, PointPanels& to, int64_t panel,
                 int64_t depth, MinExponent& min_exponent) {
  alignas(64) float taps[9 * lanes];
  Pair pair;
  for (int64_t side = 0; side < panel_side && first_output + side < weight.outputs; side += lanes) {
    MaxBits largest;
    const auto load = [&](int64_t input) {
      load_taps(weight, weight.data + (first_output + side) * weight.output_step + input * weight.input_step, 1, taps);
    };
    const auto in = [&](int y, int x) { return V::load(taps + (weight.rotated ? 8 - y * 3 - x : y * 3 + x) * lanes); };
    for (int64_t i = begin; i < end; i += 2 * lanes)
      for (int64_t lane = 0; lane < lanes; ++lane) {
        uint16_t* place = to.row(panel * panel_side + side, depth + i - begin, lane);
        load(i + lane);
        pair.low<3>(of_weight, in);
        if (i + lanes < end) {
          load(i + lanes + lane);
          pair.high<3>(of_weight, in, place, to.point_step(), largest);
        } else {
          pair.no_high(place, to.point_step(), largest);
        }
      }
    min_exponent.note(largest);
  }
}

// ---- products

// Products of blocks. Adding to earlier sums lags one block behind, so that AMX does not wait for
// them.
class Products {
 public:
  // sums (+)= left @ right over `depth` of k. `sums` is a block of 32 by 32, of which `rows` rows
  // and `columns` columns are needed.
  void multiply(const uint16_t* left, const uint16_t* right, int64_t depth, int64_t rows, int64_t columns, float* sums,
                bool add) {
    float* to = add ? kept_[turn_] : sums;
    multiply_split_panels(left, right, blocks_of(depth, tile_depth), rows, columns, to, [&] { finish(); });
    if (!add) return;
    to_ = sums;
    turn_ = 1 - turn_;
  }
  void finish() {
    if (!to_) return;
    const float* from = kept_[1 - turn_];
    for (int64_t i = 0; i < panel_area; i += 16)
      _mm512_store_ps(to_ + i, _mm512_add_ps(_mm512_load_ps(to_ + i), _mm512_load_ps(from + i)));
    to_ = nullptr;
  }

 private:
  AmxTiles units_;
  alignas(64) float kept_[2][panel_area];
  float* to_ = nullptr;
  int turn_ = 0;
};

constexpr int64_t part_of_depth(int64_t k) {
  return k / tile_depth * depth_block;
}

// sums (+)= all rows of `left` @ one panel of 32 columns at a point, in parts of k that fit L1.
void multiply_panel(PointPanels& left, int64_t first_panel, int64_t rows, int64_t left_depth, PointPanels& right,
                    int64_t panel, int64_t columns, int64_t depth, int64_t point, float* sums, bool add,
                    Products& products) {
  for (int64_t k = 0; k < depth; k += depth_chunk)
    for (int64_t i = 0; i * panel_side < rows; ++i)
      products.multiply(left.at(point, first_panel + i) + part_of_depth(left_depth + k),
                        right.at(point, panel) + part_of_depth(k), std::min(depth_chunk, depth - k),
                        std::min(panel_side, rows - i * panel_side), columns, sums + i * panel_area, add || k > 0);
}

// Sums for `tiles` tiles at all points, for 32 channels.
class TileSums {
 public:
  explicit TileSums(int64_t tiles) : step_(blocks_of(tiles, panel_side) * panel_area + 16), memory_(points * step_) {}
  float* at(int64_t point) { return memory_.data() + point * step_; }
  int64_t step() const { return step_; }

 private:
  int64_t step_;
  Scratch<float> memory_;
};

int64_t strips_size(int64_t longest) {
  return 2 * strip_size(longest);
}

// For fewer patches than weights: patches are transformed first, for all threads, and each weight
// where it is used.
bool convolve_few_tiles(const Images& input, const Weight& weight, const float* bias, const Images& output,
                        const Tiling& tiling, int64_t pad_rows, int64_t pad_columns) {
  const int64_t channels = weight.inputs, tiles = tiling.tiles(), panels = blocks_of(weight.outputs, panel_side);
  PointPanels patches(blocks_of(tiles, panel_side), channels);
  Scratch<MaxBits> largest(tiles);
  parallel_for(tiling.segments(), grain_for(tiling.longest * points * channels), [&](int64_t begin, int64_t end) {
    Scratch<float> strips(strips_size(tiling.longest));
    for (int64_t s = begin; s < end; ++s) {
      const Segment segment(tiling, s);
      fill_patches(input, segment, pad_rows, pad_columns, segment.first_tile, strips.data(), patches, largest.data());
    }
  });
  MinExponent of_tiles;
  for (int64_t t = 0; t < tiles; ++t) of_tiles.note_largest(largest[t]);
  std::atomic<bool> good{true};
  parallel_for(panels, 1, [&](int64_t begin, int64_t end) {
    PointPanels factors(1, std::min(channels, depth_chunk));
    TileSums sums(tiles);
    Scratch<float> strip(strip_size(tiling.longest));
    Finite looked;
    MinExponent of_weights;
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t first = panel * panel_side, columns = std::min(panel_side, weight.outputs - first);
      // A part of the weight that stays in L2.
      for (int64_t k = 0; k < channels; k += depth_chunk) {
        const int64_t depth = std::min(depth_chunk, channels - k);
        fill_weight(weight, first, k, k + depth, factors, 0, 0, of_weights);
        Products products;
        for (int64_t p = 0; p < points; ++p)
          multiply_panel(patches, 0, tiles, k, factors, 0, columns, depth, p, sums.at(p), k > 0, products);
        products.finish();
      }
      store_results(output, tiling, 0, tiling.segments(), first, static_cast<int>(columns / lanes), bias, sums.at(0),
                    panel_side, sums.step(), strip.data(), looked);
    }
    if (!looked.all() || !are_large_enough(of_tiles, of_weights)) good = false;
  });
  return good;
}

}  // namespace

// Tuned against the vector units. AMX wins if factors and sums stay in L2. It also wins if weights
// are many more than tiles, so that transforming them dominates. In between it loses: parts are
// half as large again as the numbers, and come from further away.
bool suits_amx(int64_t inputs, int64_t outputs, int64_t tiles, bool is_weight_gradient) {
  return inputs * outputs <= few_products || tiles * (is_weight_gradient ? 4 : 2) <= std::min(inputs, outputs);
}

bool convolve_on_amx(const Images& input, const Weight& weight, const float* bias, const Images& output, int64_t batch,
                     int64_t pad_rows, int64_t pad_columns) {
  constexpr int64_t most = panel_side;
  const Tiling tiling(batch, output.rows, output.columns, most);
  if (tiling.tiles() < weight.outputs)
    return convolve_few_tiles(input, weight, bias, output, tiling, pad_rows, pad_columns);
  const int64_t panels = blocks_of(weight.outputs, panel_side), channels = weight.inputs;
  PointPanels factors(panels, channels);
  const int64_t parts = blocks_of(channels, tile_depth);
  Scratch<int32_t> exponents(panels * parts);
  parallel_for(panels * parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t panel = i / parts, from = i % parts * tile_depth;
      MinExponent min_exponent;
      fill_weight(weight, panel * panel_side, from, std::min(channels, from + tile_depth), factors, panel, from,
                  min_exponent);
      exponents[i] = min_exponent.exponent();
    }
  });
  MinExponent of_weights;
  for (int64_t i = 0; i < panels * parts; ++i) of_weights.note_exponent(exponents[i]);
  const int64_t segment_block = std::max<int64_t>(1, most / tiling.longest);
  std::atomic<bool> good{true};
  parallel_for(blocks_of(tiling.segments(), segment_block), 1, [&](int64_t begin, int64_t end) {
    PointPanels patches(blocks_of(most, panel_side), channels);
    TileSums sums(most);
    Scratch<float> strips(strips_size(tiling.longest));
    Scratch<MaxBits> largest(most);
    Finite looked;
    MinExponent of_tiles;
    for (int64_t block = begin; block < end; ++block) {
      const int64_t s = block * segment_block, last = std::min(s + segment_block, tiling.segments());
      int64_t count = 0;
      for (int64_t i = s; i < last; ++i) {
        const Segment segment(tiling, i);
        fill_patches(input, segment, pad_rows, pad_columns, count, strips.data(), patches, largest.data());
        count += segment.tiles;
      }
      for (int64_t t = 0; t < count; ++t) of_tiles.note_largest(largest[t]);
      for (int64_t panel = 0; panel < panels; ++panel) {
        const int64_t first = panel * panel_side, columns = std::min(panel_side, weight.outputs - first);
        {
          Products products;
          for (int64_t p = 0; p < points; ++p)
            multiply_panel(patches, 0, count, 0, factors, panel, columns, channels, p, sums.at(p), false, products);
          products.finish();
        }
        store_results(output, tiling, s, last, first, static_cast<int>(columns / lanes), bias, sums.at(0), panel_side,
                      sums.step(), strips.data(), looked);
      }
    }
    if (!looked.all() || !are_large_enough(of_tiles, of_weights)) good = false;
  });
  return good;
}

// ---- the gradient of the weight

namespace {

// Packs tiles [first, last), at most 32, along k, for as many channels from `channel` on as a
// register holds. `line` transforms each tile, from `before` lines. Tiles in one row of an image
// are loaded at once.
template <int before, typename Line>
void fill_depth(const Images& from, Line&& line, const Tiling& tiling, int64_t first, int64_t last, int64_t pad_rows,
                int64_t pad_columns, int64_t channel, PointPanels& to, int64_t depth, float* strip, MaxBits& largest) {
  constexpr int64_t overlap = before - tile;
  Pair pair;
  int64_t number = 0;  // within these
  while (first + number < last) {
    const int64_t at = first + number, row = at / tiling.across, column = at % tiling.across;
    const int64_t tiles = std::min(tiling.across - column, last - at), count = tiles * tile + overlap;
    load_strip(from, row / tiling.down, channel, row % tiling.down * tile - pad_rows, column * tile - pad_columns,
               before, count, strip);
    for (int64_t t = 0; t < tiles; ++t, ++number) {
      const auto in = [&](int i, int j) { return V::load(strip + (i * count + t * tile + j) * lanes); };
      if (number % 2 == 0)
        pair.low<before>(line, in);
      else
        pair.high<before>(line, in, to.row(channel, depth, number / 2), to.point_step(), largest);
    }
  }
  if (number % 2) pair.no_high(to.row(channel, depth, number / 2), to.point_step(), largest);
  for (int64_t row = (number + 1) / 2; row < tile_side; ++row) pair.none(to.row(channel, depth, row), to.point_step());
}

// Transposes sixteen rows of sixteen pairs, in place.
void transpose_pairs(uint16_t* tile) {
  auto* pairs = reinterpret_cast<uint32_t*>(tile);
  transpose_16x16(pairs, tile_side, pairs, tile_side);
}

// Both factors of a weight gradient: rows are input channels, columns are output channels, and k
// counts tiles.
struct Sides {
  const Images &input, &grad;
  Tiling tiling;
  int64_t pad_rows, pad_columns;
  PointPanels patches, grads;

  Sides(const Images& input, const Images& grad, const Tiling& tiling, int64_t pad_rows, int64_t pad_columns,
        int64_t most_tiles)
      : input(input),
        grad(grad),
        tiling(tiling),
        pad_rows(pad_rows),
        pad_columns(pad_columns),
        patches(blocks_of(input.channels, panel_side), most_tiles),
        grads(blocks_of(grad.channels, panel_side), most_tiles) {}
  // Sets of as many channels as a register holds, of both sides.
  int64_t sets() const { return (input.channels + grad.channels) / lanes; }
  bool is_of_input(int64_t set) const { return set < input.channels / lanes; }
  int64_t strip_elements() const { return patch * (std::min(tiling.across, tile_depth) * tile + 2) * lanes; }

  // Packs tiles [first, last), at most 32, of one set, from `depth` of k on. Returns the exponent
  // of the largest number.
  int32_t fill(int64_t set, int64_t first, int64_t last, int64_t depth, float* strip) {
    MaxBits largest;
    if (is_of_input(set)) {
      fill_depth<patch>(input, of_input, tiling, first, last, pad_rows, pad_columns, set * lanes, patches, depth, strip,
                        largest);
      for (int64_t p = 0; p < points; ++p)
        for (int64_t part = 0; part < 3; ++part)
          transpose_pairs(patches.row(set * lanes, depth, 0) + p * patches.point_step() + part * part_step);
    } else {
      const int64_t channel = set * lanes - input.channels;
      fill_depth<tile>(grad, of_grad, tiling, first, last, 0, 0, channel, grads, depth, strip, largest);
    }
    MinExponent min_exponent;
    min_exponent.note_largest(largest);
    return min_exponent.exponent();
  }
};

// Transforms sums of all points to the weight's gradient, for inputs [channel, channel + inputs)
// and at most 32 outputs [output, output + outputs). Rows of sums have 32 outputs.
void store_gradient(const Weight& of_weight, int64_t output, int64_t outputs, int64_t channel, int64_t inputs,
                    const float* sums, int64_t point_step, float* taps, Finite& looked) {
  for (int64_t c = 0; c < inputs; ++c)
    for (int64_t k = 0; k < outputs; k += lanes)
      both_sides<6, 3>([](const V* s, V* out) { transform_weight_grad_row(s, out); },
                       [&](int i, int j) { return V::load(sums + (i * patch + j) * point_step + c * panel_side + k); },
                       [&](int i, int j, V value) {
                         looked.look(value);
                         value.store(taps + (c * 9 + i * 3 + j) * panel_side + k);
                       });
  store_weight(of_weight, output, outputs, channel, inputs, taps, panel_side);
}

// For few channels: sums of all channels stay in L2, and so do both sides of 32 tiles. Groups of
// tiles have their own sums, which are added at the end. The number of groups does not depend on
// the number of threads.
bool weight_gradient_in_groups(const Images& input, const Images& grad, const Weight& of_weight, const Tiling& tiling,
                               int64_t pad_rows, int64_t pad_columns) {
  constexpr int64_t most_groups = 8;
  const int64_t channels = input.channels, outputs = grad.channels, panels = blocks_of(outputs, panel_side),
                channel_panels = blocks_of(channels, panel_side), tiles = tiling.tiles(),
                blocks = blocks_of(tiles, tile_depth), groups = std::min(most_groups, blocks);
  const int64_t panel_step = channel_panels * panel_area, point_step = panels * panel_step + 16,
                group_step = points * point_step;
  Scratch<float> sums(groups * group_step);
  std::atomic<bool> good{true};
  parallel_for(groups, 1, [&](int64_t begin, int64_t end) {
    Sides sides(input, grad, tiling, pad_rows, pad_columns, tile_depth);
    Scratch<float> strip(sides.strip_elements());
    MinExponent of_patches, of_grads;
    for (int64_t group = begin; group < end; ++group) {
      const int64_t first = blocks * group / groups, last = blocks * (group + 1) / groups;
      for (int64_t block = first; block < last; ++block) {
        const int64_t from = block * tile_depth, to = std::min(tiles, from + tile_depth);
        for (int64_t set = 0; set < sides.sets(); ++set)
          (sides.is_of_input(set) ? of_patches : of_grads).note_exponent(sides.fill(set, from, to, 0, strip.data()));
        Products products;
        for (int64_t p = 0; p < points; ++p)
          for (int64_t panel = 0; panel < panels; ++panel)
            multiply_panel(sides.patches, 0, channels, 0, sides.grads, panel,
                           std::min(panel_side, outputs - panel * panel_side), tile_depth, p,
                           sums.data() + group * group_step + p * point_step + panel * panel_step, block > first,
                           products);
        products.finish();
      }
    }
    if (!are_large_enough(of_patches, of_grads)) good = false;
  });
  if (!good) return false;
  const int64_t items = panels * channel_panels;
  parallel_for(items, 1, [&](int64_t begin, int64_t end) {
    Scratch<float> taps(9 * panel_area);
    Finite looked;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t panel = item / channel_panels, channel = item % channel_panels * panel_side,
                    output = panel * panel_side;
      float* here = sums.data() + panel * panel_step + channel * panel_side;
      for (int64_t group = 1; group < groups; ++group)
        for (int64_t p = 0; p < points; ++p)
          for (int64_t i = 0; i < panel_area; i += lanes) {
            float* to = here + p * point_step + i;
            (V::load(to) + V::load(to + group * group_step)).store(to);
          }
      store_gradient(of_weight, output, std::min(panel_side, outputs - output), channel,
                     std::min(panel_side, channels - channel), here, point_step, taps.data(), looked);
    }
    if (!looked.all()) good = false;
  });
  return good;
}

}  // namespace

bool weight_gradient_on_amx(const Images& input, const Images& grad, const Weight& of_weight, int64_t batch,
                            int64_t pad_rows, int64_t pad_columns) {
  const int64_t channels = input.channels, outputs = grad.channels;
  const int64_t panels = blocks_of(outputs, panel_side), channel_panels = blocks_of(channels, panel_side);
  const Tiling tiling(batch, grad.rows, grad.columns, std::numeric_limits<int64_t>::max());
  if (channels * outputs <= few_products)
    return weight_gradient_in_groups(input, grad, of_weight, tiling, pad_rows, pad_columns);
  const int64_t tiles = tiling.tiles();
  // Tiles whose patches are kept at a time, for both sides.
  constexpr int64_t room = int64_t{20} << 20;
  const int64_t per_block = points * (panels + channel_panels) * depth_block * 2;
  const int64_t tiles_per_pass = std::clamp<int64_t>(room / per_block, 1, blocks_of(tiles, tile_depth)) * tile_depth;
  // Blocks of input channels whose sums at all points stay in L2.
  constexpr int64_t share = 128 / panel_side;
  const int64_t shares = blocks_of(channel_panels, share), items = panels * shares;
  const int64_t sums_of_point = share * panel_area + 16, sums_of_item = points * sums_of_point;
  // Sums are kept between chunks. With a single chunk, an item needs only its own.
  const bool chunked = tiles_per_pass < tiles;
  Scratch<float> kept(chunked ? items * sums_of_item : 0);
  Sides sides(input, grad, tiling, pad_rows, pad_columns, tiles_per_pass);
  const int64_t sets = sides.sets();
  Scratch<int32_t> exponents(sets * (tiles_per_pass / tile_depth));
  std::atomic<bool> good{true};
  for (int64_t first = 0; first < tiles; first += tiles_per_pass) {
    const int64_t last = std::min(tiles, first + tiles_per_pass), blocks = blocks_of(last - first, tile_depth);
    parallel_for(blocks * sets, 1, [&](int64_t begin, int64_t end) {
      Scratch<float> strip(sides.strip_elements());
      for (int64_t i = begin; i < end; ++i) {
        const int64_t depth = i / sets * tile_depth, from = first + depth;
        exponents[i] = sides.fill(i % sets, from, std::min(last, from + tile_depth), depth, strip.data());
      }
    });
    MinExponent of_patches, of_grads;
    for (int64_t i = 0; i < blocks * sets; ++i)
      (sides.is_of_input(i % sets) ? of_patches : of_grads).note_exponent(exponents[i]);
    if (!are_large_enough(of_patches, of_grads)) return false;
    parallel_for(items, 1, [&](int64_t begin, int64_t end) {
      Scratch<float> own(chunked ? 0 : sums_of_item), taps(9 * share * panel_area);
      Finite looked;
      for (int64_t item = begin; item < end; ++item) {
        const int64_t panel = item / shares, from = item % shares * share, channel = from * panel_side;
        const int64_t here = std::min(share * panel_side, channels - channel), first_output = panel * panel_side,
                      columns = std::min(panel_side, outputs - first_output);
        float* sums = chunked ? kept.data() + item * sums_of_item : own.data();
        {
          Products products;
          for (int64_t p = 0; p < points; ++p)
            multiply_panel(sides.patches, from, here, 0, sides.grads, panel, columns, last - first, p,
                           sums + p * sums_of_point, first > 0, products);
          products.finish();
        }
        if (last == tiles)
          store_gradient(of_weight, first_output, columns, channel, here, sums, sums_of_point, taps.data(), looked);
      }
      if (!looked.all()) good = false;
    });
  }
  return good;
}

}  // namespace winograd
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
