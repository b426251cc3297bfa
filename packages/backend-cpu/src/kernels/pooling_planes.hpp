// How poolings go through memory: plane by plane (a plane that is not contiguous, or of a half precision, is first gathered as a
// contiguous one of the type to compute in), or, where channels lie next to each other, all channels of a pixel at once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "allocator.hpp"
#include "channel_registers.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "kernels/pooling_windows.hpp"
#include "parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE::pooling {

// A plane of the input as contiguous elements of the type to compute in.
template <typename T>
const compute_t<T>* load_plane(const T* plane, const Layout& layout, compute_t<T>* room) {
  const int64_t width = layout.sizes[4];
  if constexpr (!is_half_v<T>)
    if (layout.has_contiguous_planes()) return plane;
  for (int64_t y = 0; y < layout.lines(); ++y) {
    const T* row = plane + layout.line(y);
    if constexpr (is_half_v<T>)
      if (layout.strides[4] == 1) {
        to_float(row, room + y * width, width);
        continue;
      }
    for (int64_t x = 0; x < width; ++x) room[y * width + x] = static_cast<compute_t<T>>(row[x * layout.strides[4]]);
  }
  return room;
}

// Elements that load_plane needs room for.
template <typename T>
int64_t plane_room(const Layout& layout) {
  return is_half_v<T> || !layout.has_contiguous_planes() ? layout.plane_size() : 0;
}

// A plane of zeros to add to: the result's own memory where that is contiguous and of the right type, else room that is stored
// after.
template <typename T>
compute_t<T>* open_plane(T* plane, const Layout& layout, compute_t<T>* room) {
  compute_t<T>* sums = room;
  if constexpr (!is_half_v<T>)
    if (layout.has_contiguous_planes()) sums = plane;
  std::fill_n(sums, layout.plane_size(), compute_t<T>{0});
  return sums;
}
template <typename T>
void close_plane(const compute_t<T>* sums, T* plane, const Layout& layout) {
  if (static_cast<const void*>(sums) == static_cast<const void*>(plane)) return;
  const int64_t width = layout.sizes[4];
  for (int64_t y = 0; y < layout.lines(); ++y) {
    T* row = plane + layout.line(y);
    for (int64_t x = 0; x < width; ++x) row[x * layout.strides[4]] = T(sums[y * width + x]);
  }
}

// ---- all channels of a pixel

// f(position in the plane, element) for the pixels that one output takes.
template <typename T, typename F>
[[gnu::always_inline]] inline void for_each_pixel(const T* sample, const Layout& input, std::span<const int64_t> lines,
                                                  const Axis& columns, const Window& window, F&& f) {
  const int64_t stride = input.strides[4];
  for (const int64_t y : lines) {
    const T* line = sample + input.line(y);
    int64_t x = window.first;
    for (int64_t k = 0; k < window.count; ++k, x += columns.step) f(y * columns.inputs + x, line + x * stride);
  }
}

constexpr int64_t channel_block = 64;

// Calls body(sample, first, end) for blocks of neighbouring channels: nothing is added to one element by two threads.
template <typename F>
void for_channel_blocks(const Layout& layout, int64_t work, F&& body) {
  constexpr int64_t block = channel_block;
  int64_t channels = layout.sizes[1], blocks = (channels + block - 1) / block;
  parallel_for(layout.sizes[0] * blocks, grain_for(work * std::min(block, channels)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i / blocks, i % blocks * block, std::min(channels, (i % blocks + 1) * block));
  });
}

template <typename T>
void clear_channels(T* sample, const Layout& layout, int64_t first, int64_t end) {
  for (int64_t y = 0; y < layout.lines(); ++y)
    for (int64_t x = 0; x < layout.sizes[4]; ++x)
      std::fill_n(sample + layout.line(y) + x * layout.strides[4] + first, end - first, T{0});
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE::pooling
