// Which elements of the input each output of a pooling takes. One spatial dimension is seen as two with a height of 1.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "dtypes.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE::pooling {

// Sizes and strides of (N, C, H, W), without the element type.
struct Layout {
  std::array<int64_t, 4> sizes, strides;

  explicit Layout(const cb_tensor& t) {
    if (t.ndim == 3) {
      sizes = {t.sizes[0], t.sizes[1], 1, t.sizes[2]};
      strides = {t.strides[0], t.strides[1], t.sizes[2] * t.strides[2], t.strides[2]};
    } else {
      std::copy_n(t.sizes, 4, sizes.begin());
      std::copy_n(t.strides, 4, strides.begin());
    }
  }
  int64_t planes() const { return sizes[0] * sizes[1]; }
  int64_t plane_size() const { return sizes[2] * sizes[3]; }
  int64_t plane(int64_t i) const {
    if (strides[0] == sizes[1] * strides[1]) return i * strides[1];
    return i / sizes[1] * strides[0] + i % sizes[1] * strides[1];
  }
  bool has_contiguous_planes() const { return (strides[3] == 1 || sizes[3] == 1) && (strides[2] == sizes[3] || sizes[2] == 1); }
  bool has_joined_planes() const { return strides[2] == sizes[3] * strides[3] || sizes[2] == 1; }
  // Channels next to each other, and more of them than would fill less than a vector.
  bool has_neighbouring_channels() const { return strides[1] == 1 && sizes[1] >= 8 && strides[3] != 1; }
};

// What one output index takes of one dimension: `count` elements from `first` on, and how many with the padding.
struct Window {
  int64_t first, count, padded;
};

struct Axis {
  int64_t inputs;
  int64_t step;  // between the elements of a window
  std::vector<Window> windows;
  // Windows at equal distances; otherwise adaptive.
  bool regular;
  int64_t kernel, stride, padding;

  int64_t outputs() const { return static_cast<int64_t>(windows.size()); }
};

inline Axis regular_axis(int64_t inputs, int64_t outputs, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  Axis axis{inputs, dilation, {}, true, kernel, stride, padding};
  axis.windows.reserve(static_cast<size_t>(outputs));
  for (int64_t o = 0; o < outputs; ++o) {
    int64_t start = o * stride - padding;
    int64_t skipped = start < 0 ? (-start + dilation - 1) / dilation : 0;
    int64_t first = start + skipped * dilation;
    int64_t reached = first >= inputs ? 0 : (inputs - 1 - first) / dilation + 1;
    // A window may reach beyond the padding where ceil_mode added one; that part counts for nothing.
    int64_t padded = std::min(start + kernel, inputs + padding) - start;
    axis.windows.push_back({first, std::clamp<int64_t>(kernel - skipped, 0, reached), padded});
  }
  return axis;
}

inline Axis adaptive_axis(int64_t inputs, int64_t outputs) {
  Axis axis{inputs, 1, {}, false, 0, 0, 0};
  axis.windows.reserve(static_cast<size_t>(outputs));
  for (int64_t o = 0; o < outputs; ++o) {
    int64_t first = o * inputs / outputs, end = ((o + 1) * inputs + outputs - 1) / outputs;
    axis.windows.push_back({first, end - first, end - first});
  }
  return axis;
}

struct Axes {
  Axis rows, columns;

  // The work for one plane, in elements.
  int64_t work() const {
    int64_t kernel = 1;
    for (const Axis* axis : {&rows, &columns}) {
      int64_t largest = 1;
      for (const Window& window : axis->windows) largest = std::max(largest, window.count);
      kernel *= largest;
    }
    return rows.outputs() * columns.outputs() * kernel + rows.inputs * columns.inputs;
  }
};

// kernel, stride, padding, dilation as the operator has them: one entry means that there is no height.
inline Axes regular_axes(const Layout& input, const Layout& output, std::span<const int64_t> kernel,
                         std::span<const int64_t> stride, std::span<const int64_t> padding, std::span<const int64_t> dilation) {
  bool flat = kernel.size() == 1;
  size_t last = flat ? 0 : 1;
  auto at = [](std::span<const int64_t> values, size_t i) { return values.empty() ? int64_t{1} : values[i]; };
  Axis rows = flat ? regular_axis(1, 1, 1, 1, 0, 1)
                   : regular_axis(input.sizes[2], output.sizes[2], kernel[0], stride[0], padding[0], at(dilation, 0));
  return {rows, regular_axis(input.sizes[3], output.sizes[3], kernel[last], stride[last], padding[last], at(dilation, last))};
}

inline Axes adaptive_axes(const Layout& input, const Layout& output) {
  return {adaptive_axis(input.sizes[2], output.sizes[2]), adaptive_axis(input.sizes[3], output.sizes[3])};
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE::pooling
