// 3x3 convolutions by Winograd's minimal filtering: 36 instead of 144 multiplications for a tile of
// 4x4 results and a pair of channels. Winograd, "Arithmetic Complexity of Computations", 1980;
// Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016. This is their F(4x4,
// 3x3) with other points: result = A^T ((G weight G^T) * (B^T input B)) A.
//
// Each of the 36 multiplications is a matrix product, tiles by channels. The gradient of the input
// is a convolution too. That of the weight is the transpose of the whole: G^T (sum over tiles of
// (B^T input B) * (A grad A^T)) G.
//
// A tile is summed in the same order in any block of tiles, so that results do not depend on the
// number of threads.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gemm/panels.hpp"
#include "kernels/convolution/convolution_onednn.hpp"
#include "kernels/convolution/winograd_tiles.hpp"
#include "memory/allocator.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace winograd {

// One convolution: output = input convolved with the weight.
class Convolver {
 public:
  Convolver(const Images& input, const Weight& weight, const float* bias, const Images& output, int64_t batch,
            int64_t pad_rows, int64_t pad_columns)
      : input_(input),
        weight_(weight),
        bias_(bias),
        output_(output),
        pad_rows_(pad_rows),
        pad_columns_(pad_columns),
        channels_(weight.inputs),
        panels_((weight.outputs + width - 1) / width),
        most_tiles_(tiles_per_block(weight.inputs)),
        tiling_(batch, output.rows, output.columns, most_tiles_),
        block_segments_(std::max<int64_t>(1, most_tiles_ / tiling_.longest)) {}

  // False if a result is not finite.
  bool run() {
    if (tiling_.tiles() < weight_.outputs)
      multiply_by_panels();
    else
      multiply_by_blocks();
    return finite_;
  }

 private:
  // Fewer patches than weights: all patches are transformed first, and each weight by the thread
  // that uses it.
  void multiply_by_panels() {
    Patches patches(tiling_.tiles(), channels_);
    parallel_for(tiling_.segments(), grain_for(tiling_.longest * points * channels_), [&](int64_t begin, int64_t end) {
      Scratch<float> strip(strip_size(tiling_.longest));
      for (int64_t s = begin; s < end; ++s) {
        const Segment segment(tiling_, s);
        fill_patches(patches, segment, segment.first_tile, strip.data());
      }
    });
    parallel_for(panels_, 1, [&](int64_t begin, int64_t end) {
      Panels<float> factors(channels_, points);
      Scratch<float> sums(points * most_tiles_ * width), strip(strip_size(tiling_.longest));
      Finite finite;
      const auto factor = [&](int64_t p) { return factors.panel(p); };
      for (int64_t panel = begin; panel < end; ++panel) {
        fill_weight(weight_, panel, 0, channels_, factor);
        for (int64_t s = 0; s < tiling_.segments(); s += block_segments_) {
          const int64_t last = std::min(s + block_segments_, tiling_.segments());
          multiply(patches, Segment(tiling_, s).first_tile, tiles_of(s, last), s, last, panel, factor, sums.data(),
                   strip.data(), finite);
        }
      }
      if (!finite.all()) finite_ = false;
    });
  }

  // All weights are transformed first, and each block of patches by the thread that uses it.
  void multiply_by_blocks() {
    Panels<float> factors(channels_, points * panels_);
    parallel_for(panels_ * channels_, grain_for(points * width), [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t panel = begin / channels_, from = begin % channels_, to = std::min(channels_, from + end - begin);
        fill_weight(weight_, panel, from, to, [&](int64_t p) { return factors.panel(p * panels_ + panel); });
        begin += to - from;
      }
    });
    const int64_t blocks = (tiling_.segments() + block_segments_ - 1) / block_segments_;
    parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
      Patches patches(most_tiles_, channels_);
      Scratch<float> sums(points * most_tiles_ * width), strip(strip_size(tiling_.longest));
      Finite finite;
      for (int64_t block = begin; block < end; ++block) {
        const int64_t s = block * block_segments_, last = std::min(s + block_segments_, tiling_.segments());
        int64_t count = 0;
        for (int64_t i = s; i < last; ++i) {
          const Segment segment(tiling_, i);
          fill_patches(patches, segment, count, strip.data());
          count += segment.tiles;
        }
        for (int64_t panel = 0; panel < panels_; ++panel)
          multiply(
              patches, 0, count, s, last, panel, [&](int64_t p) { return factors.panel(p * panels_ + panel); },
              sums.data(), strip.data(), finite);
      }
      if (!finite.all()) finite_ = false;
    });
  }

  void fill_patches(Patches& patches, const Segment& segment, int64_t first, float* strip) const {
    for (int64_t c = 0; c < channels_; c += lanes)
      patches.fill(input_, segment, pad_rows_, pad_columns_, c, first, strip);
  }

  // Multiplies one panel with the patches from tile `first` on, and stores the results of segments
  // [begin, end).
  template <typename Factor>
  void multiply(Patches& patches, int64_t first, int64_t count, int64_t begin, int64_t end, int64_t panel,
                Factor&& factor, float* sums, float* strip, Finite& finite) const {
    for (int64_t p = 0; p < points; ++p)
      Panels<float>::multiply_panel(factor(p), channels_, patches.at(p, first), channels_, 1, count,
                                    sums + p * count * width, vectors_of(weight_.outputs, panel), false);
    store_results(output_, tiling_, begin, end, panel * width, panel_vectors, bias_, sums, width, count * width, strip,
                  finite);
  }

  int64_t tiles_of(int64_t begin, int64_t end) const {
    int64_t count = 0;
    for (int64_t s = begin; s < end; ++s) count += Segment(tiling_, s).tiles;
    return count;
  }

  const Images& input_;
  const Weight& weight_;
  const float* bias_;
  const Images& output_;
  const int64_t pad_rows_, pad_columns_, channels_, panels_, most_tiles_;
  const Tiling tiling_;
  const int64_t block_segments_;
  std::atomic<bool> finite_{true};
};

// One gradient of the weight, from that of the results. Tiles are transformed in chunks.
class WeightGradient {
 public:
  WeightGradient(const Images& input, const Images& grad, const Weight& weight, int64_t batch, int64_t pad_rows,
                 int64_t pad_columns)
      : input_(input),
        grad_(grad),
        weight_(weight),
        pad_rows_(pad_rows),
        pad_columns_(pad_columns),
        channels_(input.channels),
        outputs_(grad.channels),
        panels_((outputs_ + width - 1) / width),
        tiling_(batch, grad.rows, grad.columns, 64),
        chunk_segments_(std::clamp<int64_t>(
            chunk_bytes / (points * (channels_ + panels_ * width) * 4 * tiling_.longest), 1, tiling_.segments())),
        chunks_((tiling_.segments() + chunk_segments_ - 1) / chunk_segments_),
        share_(share_of(channels_, panels_)),
        shares_((channels_ + share_ - 1) / share_),
        kept_(chunks_ > 1 ? panels_ * shares_ * sums_of_item() : 0),
        patches_(chunk_segments_ * tiling_.longest, channels_),
        grads_(chunk_segments_ * tiling_.longest, points * panels_) {}

  // False if the gradient is not finite.
  bool run() {
    for (int64_t number = 0; number < chunks_; ++number) {
      const Chunk chunk = chunk_at(number);
      transform(chunk);
      multiply(chunk);
    }
    return finite_;
  }

 private:
  // The memory for the transformed tiles of a chunk, of input and gradient.
  static constexpr int64_t chunk_bytes = int64_t{20} << 20;

  struct Chunk {
    int64_t begin, end;  // segments
    int64_t first_tile, tiles;
    bool is_first, is_last;
  };

  // Blocks of input channels fit the cache, and there are enough of them for all threads.
  static int64_t share_of(int64_t channels, int64_t panels) {
    const int64_t shares = std::max((channels + 127) / 128, (thread_count() + panels - 1) / panels);
    return std::max<int64_t>(lanes, (channels / shares + lanes - 1) / lanes * lanes);
  }
  // An item is a panel of outputs and a share of the channels.
  int64_t sums_of_item() const { return points * share_ * width; }

  Chunk chunk_at(int64_t number) const {
    const int64_t begin = number * chunk_segments_, end = std::min(begin + chunk_segments_, tiling_.segments());
    const Segment first(tiling_, begin), last(tiling_, end - 1);
    return {begin,
            end,
            first.first_tile,
            last.first_tile + last.tiles - first.first_tile,
            number == 0,
            number + 1 == chunks_};
  }

  void transform(const Chunk& chunk) {
    parallel_for(chunk.end - chunk.begin, grain_for(tiling_.longest * points * (channels_ + outputs_)),
                 [&](int64_t begin, int64_t end) {
                   Scratch<float> strip(strip_size(tiling_.longest));
                   for (int64_t s = chunk.begin + begin; s < chunk.begin + end; ++s) {
                     const Segment segment(tiling_, s);
                     const int64_t at = segment.first_tile - chunk.first_tile;
                     for (int64_t c = 0; c < channels_; c += lanes)
                       patches_.fill(input_, segment, pad_rows_, pad_columns_, c, at, strip.data());
                     for (int64_t c = 0; c < outputs_; c += lanes) fill_grads(segment, c, at, strip.data());
                   }
                 });
  }

  // The tiles of a segment of the gradient, for the channels of a register from `c` on.
  void fill_grads(const Segment& segment, int64_t c, int64_t at, float* strip) {
    const int64_t columns = segment.tiles * tile, panel = c / width;
    load_strip(grad_, segment.image, c, segment.row * tile, segment.column * tile, tile, columns, strip);
    for (int64_t t = 0; t < segment.tiles; ++t) {
      const float* from = strip + t * tile * lanes;
      const int64_t offset = (at + t) * width + c % width;
      both_sides<4, 6>(
          [](const V* y, V* out) { transform_grad_row(y, out); },
          [&](int i, int j) { return V::load(from + (i * columns + j) * lanes); },
          [&](int i, int j, V value) { value.store(grads_.panel((i * patch + j) * panels_ + panel) + offset); });
    }
  }

  void multiply(const Chunk& chunk) {
    parallel_for(panels_ * shares_, 1, [&](int64_t begin, int64_t end) {
      // With several chunks the sums of all items are kept between them. With one, a thread needs
      // those of one item.
      Scratch<float> own(chunks_ > 1 ? 0 : sums_of_item()), taps(9 * share_ * width);
      Finite finite;
      for (int64_t item = begin; item < end; ++item) {
        const int64_t panel = item / shares_, channel = item % shares_ * share_,
                      here = std::min(share_, channels_ - channel);
        float* sums = chunks_ > 1 ? kept_.data() + item * sums_of_item() : own.data();
        for (int64_t p = 0; p < points; ++p)
          Panels<float>::multiply_panel(grads_.panel(p * panels_ + panel), chunk.tiles, patches_.at(p, 0) + channel, 1,
                                        channels_, here, sums + p * share_ * width, vectors_of(outputs_, panel),
                                        !chunk.is_first);
        if (chunk.is_last) store_taps(panel, channel, here, sums, taps.data(), finite);
      }
      if (!finite.all()) finite_ = false;
    });
  }

  void store_taps(int64_t panel, int64_t channel, int64_t channels, const float* sums, float* taps,
                  Finite& finite) const {
    const int64_t first = panel * width, outputs = std::min(width, outputs_ - first);
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t k = 0; k < outputs; k += lanes)
        both_sides<6, 3>([](const V* s, V* out) { transform_weight_grad_row(s, out); },
                         [&](int i, int j) { return V::load(sums + ((i * patch + j) * share_ + c) * width + k); },
                         [&](int i, int j, V value) {
                           finite.look(value);
                           value.store(taps + (c * 9 + i * 3 + j) * width + k);
                         });
    store_weight(weight_, first, outputs, channel, channels, taps, width);
  }

  const Images &input_, &grad_;
  const Weight& weight_;
  const int64_t pad_rows_, pad_columns_, channels_, outputs_, panels_;
  const Tiling tiling_;
  const int64_t chunk_segments_, chunks_;
  const int64_t share_, shares_;  // the channels of an item, and how many such shares there are
  Scratch<float> kept_;
  Patches patches_;
  Panels<float> grads_;
  std::atomic<bool> finite_{true};
};

// output = input convolved with the weight. Returns false if a result is not finite.
inline bool convolve(const Images& input, const Weight& weight, const float* bias, const Images& output, int64_t batch,
                     int64_t pad_rows, int64_t pad_columns) {
  return Convolver(input, weight, bias, output, batch, pad_rows, pad_columns).run();
}

// The gradient of the weight from that of the results. Returns false if it is not finite.
inline bool weight_gradient(const Images& input, const Images& grad, const Weight& of_weight, int64_t batch,
                            int64_t pad_rows, int64_t pad_columns) {
  return WeightGradient(input, grad, of_weight, batch, pad_rows, pad_columns).run();
}

// ---- Selection

inline bool is_enabled() {
  static const bool enabled = [] {
    const char* text = std::getenv("CANDELABRA_CPU_WINOGRAD");
    return !text || std::string_view(text) != "0";
  }();
  return enabled;
}

// Whether a convolution has the supported parameters, and enough tiles to pay for transforming the
// weight.
inline bool suits(const ConvolutionShape& s, int64_t rows, int64_t columns) {
  const auto three = std::array<int64_t, 3>{1, 3, 3};
  const auto ones = std::array<int64_t, 3>{1, 1, 1};
  if (s.spatial != 2 || s.groups != 1 || s.kernel != three || s.stride != ones || s.dilation != ones ||
      s.padding[0] != 0 || s.padding[1] > 2 || s.padding[2] > 2 || s.input[0] != 1 || s.input_channels < 32 ||
      s.output_channels < 32 || s.input_channels % 16 || s.output_channels % 16 || !is_enabled())
    return false;
  const int64_t tiles = (rows + tile - 1) / tile * ((columns + tile - 1) / tile);
  const double used = static_cast<double>(rows * columns) / static_cast<double>(tiles * tile * tile);
  return static_cast<double>(s.batch * tiles) * (3.1 * used - 1.3) >= 40;
}

}  // namespace winograd
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
