// How pooling kernels traverse memory: plane by plane, or in channels-last memory all channels of a
// pixel at once. A plane that is not contiguous, or of half precision, is first gathered into a
// buffer of the compute dtype.
#pragma once

#include <algorithm>
#include <cstdint>

#include "dtypes.hpp"
#include "kernels.hpp"
#include "kernels/pooling/pooling_windows.hpp"
#include "memory/allocator.hpp"
#include "simd/channel_registers.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE::pooling {

// Returns the plane as contiguous elements of the compute dtype.
template <typename T>
const compute_t<T>* load_plane(const T* plane, const Layout& layout, compute_t<T>* buffer) {
  const int64_t width = layout.sizes[4];
  if constexpr (!is_half_v<T>)
    if (layout.has_contiguous_planes()) return plane;
  for (int64_t y = 0; y < layout.row_count(); ++y) {
    const T* row = plane + layout.row_offset(y);
    if constexpr (is_half_v<T>)
      if (layout.strides[4] == 1) {
        to_float(row, buffer + y * width, width);
        continue;
      }
    for (int64_t x = 0; x < width; ++x) buffer[y * width + x] = static_cast<compute_t<T>>(row[x * layout.strides[4]]);
  }
  return buffer;
}

// The size of the buffer that load_plane and open_plane need.
template <typename T>
int64_t plane_buffer_size(const Layout& layout) {
  return is_half_v<T> || !layout.has_contiguous_planes() ? layout.plane_size() : 0;
}

// Returns a zeroed plane to accumulate into: the result's own memory if that is contiguous and of
// the compute dtype, else the buffer, which close_plane stores.
template <typename T>
compute_t<T>* open_plane(T* plane, const Layout& layout, compute_t<T>* buffer) {
  compute_t<T>* sums = buffer;
  if constexpr (!is_half_v<T>)
    if (layout.has_contiguous_planes()) sums = plane;
  std::fill_n(sums, layout.plane_size(), compute_t<T>{0});
  return sums;
}
template <typename T>
void close_plane(const compute_t<T>* sums, T* plane, const Layout& layout) {
  if (static_cast<const void*>(sums) == static_cast<const void*>(plane)) return;
  const int64_t width = layout.sizes[4];
  for (int64_t y = 0; y < layout.row_count(); ++y) {
    T* row = plane + layout.row_offset(y);
    for (int64_t x = 0; x < width; ++x) row[x * layout.strides[4]] = T(sums[y * width + x]);
  }
}

// ---- Channels last

// Calls f(index in the plane, pointer) for each pixel in the window of one output.
template <typename T, typename F>
[[gnu::always_inline]] inline void for_each_pixel(const T* sample, const Layout& input, std::span<const int64_t> rows,
                                                  const Axis& columns, const Window& window, F&& f) {
  const int64_t stride = input.strides[4];
  for (const int64_t y : rows) {
    const T* row = sample + input.row_offset(y);
    int64_t x = window.first;
    for (int64_t k = 0; k < window.count; ++k, x += columns.step) f(y * columns.inputs + x, row + x * stride);
  }
}

constexpr int64_t channel_block = 64;

// Calls body(sample, first, end) for blocks of channels. No two threads add to the same element.
template <typename F>
void for_channel_blocks(const Layout& layout, int64_t work, F&& body) {
  constexpr int64_t block = channel_block;
  int64_t channels = layout.sizes[1], blocks = (channels + block - 1) / block;
  parallel_for(layout.sizes[0] * blocks, grain_for(work * std::min(block, channels)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      body(i / blocks, i % blocks * block, std::min(channels, (i % blocks + 1) * block));
  });
}

template <typename T>
void clear_channels(T* sample, const Layout& layout, int64_t first, int64_t end) {
  for (int64_t y = 0; y < layout.row_count(); ++y)
    for (int64_t x = 0; x < layout.sizes[4]; ++x)
      std::fill_n(sample + layout.row_offset(y) + x * layout.strides[4] + first, end - first, T{0});
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE::pooling
