// The kernels of deformable convolution (Dai et al., 2017; Zhu et al., "Deformable ConvNets v2",
// 2019) around its matrix products: columns of sampled pixels, and their gradients.
//
// Columns have the sizes (N, C * kernel_height * kernel_width, out_height * out_width).
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "arguments.hpp"

namespace candelabra::vision {

namespace {

// One dimension of the kernel.
struct Steps {
  int64_t kernel, stride, padding, dilation;
};

// The sizes of a call. Channels are split into groups, which have their own offsets.
struct Shape {
  Planes input;
  Steps y, x;
  int64_t groups, out_height, out_width;

  Shape(const Tensor& input, const Tensor& offset, std::span<const int64_t> kernel, std::span<const int64_t> stride,
        std::span<const int64_t> padding, std::span<const int64_t> dilation, int64_t groups)
      : input(input),
        y{kernel[0], stride[0], padding[0], dilation[0]},
        x{kernel[1], stride[1], padding[1], dilation[1]},
        groups(groups),
        out_height(offset.size(2)),
        out_width(offset.size(3)) {}

  int64_t taps() const { return y.kernel * x.kernel; }
  int64_t positions() const { return out_height * out_width; }
  int64_t channels_per_group() const { return input.channels / groups; }
  int64_t offsets_at(int64_t n, int64_t group, int64_t tap) const {
    return ((n * groups + group) * taps() + tap) * 2 * positions();
  }
  int64_t mask_at(int64_t n, int64_t group, int64_t tap) const {
    return ((n * groups + group) * taps() + tap) * positions();
  }
  int64_t columns_at(int64_t n, int64_t channel, int64_t tap) const {
    return ((n * input.channels + channel) * taps() + tap) * positions();
  }
};

// A sampled point between four pixels. A pixel outside of the image is not valid.
template <typename A>
struct Sample {
  int32_t index[4];  // above left, above right, below left, below right
  A valid[4];
  A down, right;  // the distances from the pixel above left
  bool inside;    // whether the forward pass sees it

  A weight(int corner) const {
    return (corner & 2 ? down : A(1) - down) * (corner & 1 ? right : A(1) - right) * valid[corner];
  }
};

template <typename A>
Sample<A> sample_at(A y, A x, int64_t height, int64_t width) {
  Sample<A> sample{};
  const auto tall = static_cast<A>(height), wide = static_cast<A>(width);
  // At -1 the gradient for the offset sees the pixel below, as in torchvision. NaN is outside.
  if (!(y >= A(-1) && y < tall && x >= A(-1) && x < wide)) return sample;
  sample.inside = y > A(-1) && x > A(-1);
  const A top = std::floor(y), left = std::floor(x);
  sample.down = y - top;
  sample.right = x - left;
  for (int corner = 0; corner < 4; ++corner) {
    // float index: between -1 and the size
    const int64_t row = static_cast<int64_t>(top) + (corner >> 1), column = static_cast<int64_t>(left) + (corner & 1);
    if (row < 0 || row >= height || column < 0 || column >= width) continue;
    sample.index[corner] = static_cast<int32_t>(row * width + column);
    sample.valid[corner] = A(1);
  }
  return sample;
}

// The samples of one tap of the kernel at all positions; all channels of a group share them.
template <typename T>
void find_samples(const Shape& shape, const T* offsets, int64_t tap, std::vector<Sample<Accumulator<T>>>& samples) {
  using A = Accumulator<T>;
  const int64_t positions = shape.positions();
  const int64_t i = tap / shape.x.kernel * shape.y.dilation, j = tap % shape.x.kernel * shape.x.dilation;
  for (int64_t at = 0; at < positions; ++at) {
    const int64_t y = at / shape.out_width * shape.y.stride - shape.y.padding + i;
    const int64_t x = at % shape.out_width * shape.x.stride - shape.x.padding + j;
    samples[static_cast<size_t>(at)] =
        sample_at(static_cast<A>(y) + static_cast<A>(offsets[at]),
                  static_cast<A>(x) + static_cast<A>(offsets[positions + at]), shape.input.height, shape.input.width);
  }
}

// The weights of the four pixels of a sample, as the forward pass multiplies them. One that is not
// valid has the weight 0 and the index of one that is: NaN elsewhere is not multiplied by 0.
template <typename A>
struct Weighted {
  int32_t index[4];
  A weight[4];
  bool inside;
};

template <typename T, typename A>
void weigh(const std::vector<Sample<A>>& samples, const T* mask, std::vector<Weighted<A>>& weighted) {
  for (size_t at = 0; at < samples.size(); ++at) {
    const Sample<A>& sample = samples[at];
    const A factor = mask ? static_cast<A>(mask[at]) : A(1);
    const int32_t known = *std::max_element(sample.index, sample.index + 4);
    weighted[at].inside = sample.inside;
    for (int corner = 0; corner < 4; ++corner) {
      const bool valid = sample.valid[corner] != 0;
      weighted[at].index[corner] = valid ? sample.index[corner] : known;
      weighted[at].weight[corner] = valid ? factor * sample.weight(corner) : A(0);
    }
  }
}

template <typename T>
struct Arguments {
  RowMajor<T> offset;
  std::optional<RowMajor<T>> mask;

  Arguments(const Tensor& offsets, const std::optional<Tensor>& masks) : offset(offsets) {
    if (masks) mask.emplace(*masks);
  }
  const T* mask_at(int64_t offset) const { return mask ? mask->data() + offset : nullptr; }
};

void deformable_im2col(Tensor columns, Tensor input, Tensor offset, std::optional<Tensor> mask,
                       std::span<const int64_t> kernel, std::span<const int64_t> stride,
                       std::span<const int64_t> padding, std::span<const int64_t> dilation, int64_t groups,
                       cb_call* call) {
  dispatch_floating(input, [&]<typename T>() {
    using A = Accumulator<T>;
    if (columns.numel() == 0) return;
    const Shape shape(input, offset, kernel, stride, padding, dilation, groups);
    const Arguments<T> given(offset, mask);
    const RowMajor<T> elements(input);
    T* results = columns.data<T>();
    const int64_t items = shape.input.images * groups * shape.taps();
    const int64_t cost = shape.channels_per_group() * shape.positions() * 4;
    parallel_for(call, items, grain_for(cost), [&](int64_t begin, int64_t end) {
      const auto positions = static_cast<size_t>(shape.positions());
      std::vector<Sample<A>> samples(positions);
      std::vector<Weighted<A>> weighted(positions);
      for (int64_t item = begin; item < end; ++item) {
        const int64_t tap = item % shape.taps(), group = item / shape.taps() % groups, n = item / shape.taps() / groups;
        find_samples(shape, given.offset.data() + shape.offsets_at(n, group, tap), tap, samples);
        weigh(samples, given.mask_at(shape.mask_at(n, group, tap)), weighted);
        for (int64_t c = group * shape.channels_per_group(); c < (group + 1) * shape.channels_per_group(); ++c) {
          const T* plane = elements.data() + shape.input.offset(n, c);
          T* to = results + shape.columns_at(n, c, tap);
          for (size_t at = 0; at < positions; ++at) {
            const Weighted<A>& one = weighted[at];
            const A sum = one.weight[0] * static_cast<A>(plane[one.index[0]]) +
                          one.weight[1] * static_cast<A>(plane[one.index[1]]) +
                          one.weight[2] * static_cast<A>(plane[one.index[2]]) +
                          one.weight[3] * static_cast<A>(plane[one.index[3]]);
            to[at] = static_cast<T>(one.inside ? sum : A(0));
          }
        }
      }
    });
  });
}

// The gradient of the input: columns are added to the pixels that they were sampled from.
void deformable_col2im(Tensor result, Tensor columns, Tensor input, Tensor offset, std::optional<Tensor> mask,
                       std::span<const int64_t> kernel, std::span<const int64_t> stride,
                       std::span<const int64_t> padding, std::span<const int64_t> dilation, int64_t groups,
                       cb_call* call) {
  dispatch_floating(columns, [&]<typename T>() {
    using A = Accumulator<T>;
    if (result.numel() == 0) return;
    const Shape shape(input, offset, kernel, stride, padding, dilation, groups);
    const Arguments<T> given(offset, mask);
    const RowMajor<T> gradients(columns);
    const auto positions = static_cast<size_t>(shape.positions());
    // Each channel of an image belongs to one thread, so the sums have a fixed order.
    const int64_t per_group = shape.channels_per_group();
    constexpr int64_t block = 16;
    const int64_t blocks = (per_group + block - 1) / block;
    const int64_t cost = block * shape.taps() * shape.positions() * 4;
    parallel_for(call, shape.input.images * groups * blocks, grain_for(cost), [&](int64_t begin, int64_t end) {
      std::vector<Sample<A>> samples(positions);
      std::vector<Weighted<A>> weighted(positions);
      std::vector<A> sums;
      for (int64_t item = begin; item < end; ++item) {
        const int64_t group = item / blocks % groups, n = item / blocks / groups;
        const int64_t first = group * per_group + item % blocks * block;
        const int64_t last = std::min(first + block, (group + 1) * per_group);
        const int64_t area = shape.input.area();
        sums.assign(static_cast<size_t>((last - first) * area), A(0));
        for (int64_t tap = 0; tap < shape.taps(); ++tap) {
          find_samples(shape, given.offset.data() + shape.offsets_at(n, group, tap), tap, samples);
          weigh(samples, given.mask_at(shape.mask_at(n, group, tap)), weighted);
          for (int64_t c = first; c < last; ++c) {
            const T* from = gradients.data() + shape.columns_at(n, c, tap);
            A* plane = sums.data() + (c - first) * area;
            for (size_t at = 0; at < positions; ++at) {
              const Weighted<A>& one = weighted[at];
              if (!one.inside) continue;
              const auto value = static_cast<A>(from[at]);
              for (int corner = 0; corner < 4; ++corner) plane[one.index[corner]] += value * one.weight[corner];
            }
          }
        }
        T* to = result.data<T>() + shape.input.offset(n, first);
        for (size_t i = 0; i < sums.size(); ++i) to[i] = static_cast<T>(sums[i]);
      }
    });
  });
}

// The gradients of the offsets and of the mask.
void deformable_col2im_coord(Tensor grad_offset, Tensor grad_mask, Tensor columns, Tensor input, Tensor offset,
                             std::optional<Tensor> mask, std::span<const int64_t> kernel,
                             std::span<const int64_t> stride, std::span<const int64_t> padding,
                             std::span<const int64_t> dilation, int64_t groups, cb_call* call) {
  dispatch_floating(columns, [&]<typename T>() {
    using A = Accumulator<T>;
    if (grad_offset.numel() == 0) return;
    const Shape shape(input, offset, kernel, stride, padding, dilation, groups);
    const Arguments<T> given(offset, mask);
    const RowMajor<T> gradients(columns), elements(input);
    const int64_t items = shape.input.images * groups * shape.taps();
    const int64_t cost = shape.channels_per_group() * shape.positions() * 8;
    parallel_for(call, items, grain_for(cost), [&](int64_t begin, int64_t end) {
      const auto positions = static_cast<size_t>(shape.positions());
      std::vector<Sample<A>> samples(positions);
      std::vector<A> down(positions), right(positions), seen(positions);
      for (int64_t item = begin; item < end; ++item) {
        const int64_t tap = item % shape.taps(), group = item / shape.taps() % groups, n = item / shape.taps() / groups;
        find_samples(shape, given.offset.data() + shape.offsets_at(n, group, tap), tap, samples);
        for (std::vector<A>* sums : {&down, &right, &seen}) std::fill(sums->begin(), sums->end(), A(0));
        for (int64_t c = group * shape.channels_per_group(); c < (group + 1) * shape.channels_per_group(); ++c) {
          const T* plane = elements.data() + shape.input.offset(n, c);
          const T* from = gradients.data() + shape.columns_at(n, c, tap);
          for (size_t at = 0; at < positions; ++at) {
            const Sample<A>& one = samples[at];
            A pixel[4];
            for (int corner = 0; corner < 4; ++corner)
              pixel[corner] = one.valid[corner] != 0 ? static_cast<A>(plane[one.index[corner]]) : A(0);
            const auto value = static_cast<A>(from[at]);
            const A above = pixel[0] + one.right * (pixel[1] - pixel[0]);
            const A below = pixel[2] + one.right * (pixel[3] - pixel[2]);
            const A left = pixel[0] + one.down * (pixel[2] - pixel[0]);
            const A beside = pixel[1] + one.down * (pixel[3] - pixel[1]);
            down[at] += value * (below - above);
            right[at] += value * (beside - left);
            seen[at] += one.inside ? value * (above + one.down * (below - above)) : A(0);
          }
        }
        T* to = grad_offset.data<T>() + shape.offsets_at(n, group, tap);
        const T* factors = given.mask_at(shape.mask_at(n, group, tap));
        for (size_t at = 0; at < positions; ++at) {
          const A factor = factors ? static_cast<A>(factors[at]) : A(1);
          to[at] = static_cast<T>(factor * down[at]);
          to[positions + at] = static_cast<T>(factor * right[at]);
        }
        if (!factors) continue;
        T* masks = grad_mask.data<T>() + shape.mask_at(n, group, tap);
        for (size_t at = 0; at < positions; ++at) masks[at] = static_cast<T>(seen[at]);
      }
    });
  });
}

}  // namespace

extern "C" CB_EXPORT int32_t candelabra_vision_deformable_im2col(cb_call* call) {
  return extension::call<&deformable_im2col>(call);
}
extern "C" CB_EXPORT int32_t candelabra_vision_deformable_col2im(cb_call* call) {
  return extension::call<&deformable_col2im>(call);
}
extern "C" CB_EXPORT int32_t candelabra_vision_deformable_col2im_coord(cb_call* call) {
  return extension::call<&deformable_col2im_coord>(call);
}

}  // namespace candelabra::vision
