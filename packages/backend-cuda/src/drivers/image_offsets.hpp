// Offsets in images and volumes, for kernels that gather from them. A plane holds (z, y, x,
// channel) elements without gaps. In channels-last memory the channels of a pixel are part of the
// plane; else each channel is a plane. A thread computes its coordinates once and loops over the
// planes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "drivers/iterate.hpp"
#include "runtime/launch.hpp"

namespace candelabra::cuda {

// Division by a launch-time constant, like Divider, for numerators below 2^63.
struct LongDivider {
  int64_t divisor = 1;
  uint64_t multiplier = 0;
  int32_t shift = 0;

  LongDivider() = default;
  explicit LongDivider(int64_t value) : divisor(std::max<int64_t>(value, 1)) {
    const auto d = static_cast<uint64_t>(divisor);
    shift = std::bit_width(d - 1);
    multiplier = static_cast<uint64_t>((static_cast<Wide>((uint64_t{1} << shift) - d) << 64) / d + 1);
  }
  CANDELABRA_HOST_DEVICE int64_t quotient(int64_t n) const {
    const auto numerator = static_cast<uint64_t>(n);
#ifdef __CUDA_ARCH__
    const uint64_t high = __umul64hi(numerator, multiplier);
#else
    const auto high = static_cast<uint64_t>(static_cast<Wide>(numerator) * multiplier >> 64);
#endif
    return static_cast<int64_t>((high + numerator) >> shift);
  }

 private:
  __extension__ typedef unsigned __int128 Wide;
};

// Coordinates (z, y, x, channel) of element e of a plane, in row-major order.
struct PlaneIndexer {
  int64_t count = 0;
  LongDivider y, x, pixel_size;

  PlaneIndexer() = default;
  PlaneIndexer(int64_t z, int64_t y, int64_t x, int64_t pixel_size)
      : count(z * y * x * pixel_size), y(y), x(x), pixel_size(pixel_size) {}

  struct Coordinates {
    int64_t z, y, x, channel;
  };
  CANDELABRA_HOST_DEVICE Coordinates operator[](int64_t e) const {
    const int64_t of_pixel = pixel_size.quotient(e), of_x = x.quotient(of_pixel), of_y = y.quotient(of_x);
    return {of_y, of_x - of_y * y.divisor, of_pixel - of_x * x.divisor, e - of_pixel * pixel_size.divisor};
  }
};

// A grid over the elements of a plane (x) and the planes (y): as many planes at a time as fill the
// device.
inline dim3 grid_over(const Call& call, int64_t plane_size, int64_t planes, int threads) {
  const int64_t across = std::min(divide_up(plane_size, threads), int64_t{1} << 30);
  const int64_t full = static_cast<int64_t>(device_traits(call.device()).multiprocessors) * 16;
  const int64_t down =
      std::clamp<int64_t>(divide_up(full, std::max<int64_t>(across, 1)), 1, std::min<int64_t>(planes, 65535));
  return planes == 0 ? dim3(0) : dim3(static_cast<unsigned>(across), static_cast<unsigned>(down));
}

// A batch (N, C, spatial…) as planes: one per channel, or one per sample in channels-last memory.
// Takes two tensors of the same layout, because sizes of 1 make the layout of one ambiguous.
struct PlaneLayout {
  int64_t planes, pixel_size;
};
inline PlaneLayout plane_layout(const cb_tensor& a, const cb_tensor& b) {
  if (is_contiguous(a) && is_contiguous(b)) return {a.sizes[0] * a.sizes[1], 1};
  return {a.sizes[0], a.sizes[1]};
}

// Merges pairs of a pixel's elements into elements of twice the size while alignment allows, up to
// 16 bytes. Returns the size of an element.
inline int64_t widen_pixels(int64_t& pixel_size, int64_t bytes, const void* a, const void* b) {
  const auto addresses = reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b);
  while (bytes < 16 && pixel_size % 2 == 0 && addresses % static_cast<uintptr_t>(2 * bytes) == 0)
    pixel_size /= 2, bytes *= 2;
  return bytes;
}

// Sizes of up to three spatial dimensions, padded in front with 1.
struct SpatialSizes {
  int64_t sizes[3] = {1, 1, 1};
  explicit SpatialSizes(const cb_tensor& tensor) {
    for (int d = 2; d < tensor.ndim; ++d) sizes[3 - (tensor.ndim - d)] = tensor.sizes[d];
  }
};

}  // namespace candelabra::cuda
