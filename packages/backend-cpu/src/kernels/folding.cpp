// patches (im2col) and patches_backward (col2im): a row of the columns is an image, moved by one place of the kernel.
#include <algorithm>
#include <cstring>

#include "../allocator.hpp"
#include "../dtypes.hpp"
#include "../kernels.hpp"
#include "../load.hpp"
#include "../parallel.hpp"
#include "move.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// One dimension of image and kernel.
struct Axis {
  int64_t size, kernel, dilation, padding, stride, count;

  Axis(Call& call, int first, int64_t size, size_t d)
      : size(size),
        kernel(call.ints(first)[d]),
        dilation(call.ints(first + 1)[d]),
        padding(call.ints(first + 2)[d]),
        stride(call.ints(first + 3)[d]),
        count((size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1) {}

  // Where place k of the kernel is in the image for the first patch.
  int64_t start(int64_t k) const { return k * dilation - padding; }
  // The patches [first, end) whose place k is in the image.
  int64_t first(int64_t k) const { return std::min(count, start(k) >= 0 ? 0 : (-start(k) + stride - 1) / stride); }
  int64_t end(int64_t k) const {
    return start(k) >= size ? first(k) : std::clamp((size - 1 - start(k)) / stride + 1, first(k), count);
  }
};

void patches(Call& call) {
  const cb_tensor &in = call.tensor(0), &out = call.output();
  if (out.numel == 0) return;
  const Axis down(call, 1, in.sizes[2], 0), across(call, 1, in.sizes[3], 1);
  const int64_t area = down.kernel * across.kernel, length = down.count * across.count, plane = down.size * across.size;
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    parallel_for(in.sizes[0] * in.sizes[1] * area, grain_for(length), [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t a = item % area / across.kernel, b = item % across.kernel;
        const U* from = data<U>(in) + item / area * plane;
        U* to = mutable_data<U>(out) + item * length;
        const int64_t x0 = across.first(b), x1 = across.end(b), y0 = down.first(a), y1 = down.end(a);
        std::fill_n(to, y0 * across.count, U{});
        for (int64_t y = y0; y < y1; ++y) {
          U* line = to + y * across.count;
          for (int64_t x = 0; x < x0; ++x) line[x] = U{};
          move_run(line + x0, 1, from + (down.start(a) + y * down.stride) * across.size + across.start(b) + x0 * across.stride,
                   across.stride, x1 - x0);
          for (int64_t x = x1; x < across.count; ++x) line[x] = U{};
        }
        std::fill_n(to + y1 * across.count, (down.count - y1) * across.count, U{});
      }
    });
  });
}

template <typename T>
void add_patches(Call& call) {
  using C = compute_t<T>;
  const cb_tensor &grad = call.tensor(0), &out = call.output();
  const Axis down(call, 2, out.sizes[2], 0), across(call, 2, out.sizes[3], 1);
  const int64_t area = down.kernel * across.kernel, length = down.count * across.count, plane = down.size * across.size;
  parallel_for(out.sizes[0] * out.sizes[1], grain_for(area * length + plane), [&](int64_t begin, int64_t end) {
    Scratch<C> room(is_half_v<T> ? plane : 0), wide(is_half_v<T> ? across.count : 0);
    for (int64_t item = begin; item < end; ++item) {
      C* image;
      if constexpr (is_half_v<T>)
        image = room.data();
      else
        image = mutable_data<T>(out) + item * plane;
      std::fill_n(image, plane, C(0));
      // Line after line of the patches, so that the lines of the image that they meet stay near.
      for (int64_t y = 0; y < down.count; ++y)
        for (int64_t a = 0; a < down.kernel; ++a) {
          if (y < down.first(a) || y >= down.end(a)) continue;
          C* line = image + (down.start(a) + y * down.stride) * across.size;
          for (int64_t b = 0; b < across.kernel; ++b) {
            const T* values = data<T>(grad) + (item * area + a * across.kernel + b) * length + y * across.count;
            const C* from;
            if constexpr (is_half_v<T>) {
              to_float(values, wide.data(), across.count);
              from = wide.data();
            } else {
              from = values;
            }
            const int64_t x0 = across.first(b), n = across.end(b) - x0, stride = across.stride;
            C* to = line + across.start(b) + x0 * stride;
            from += x0;
            if constexpr (std::is_same_v<T, bool>) {
              for (int64_t x = 0; x < n; ++x) to[x * stride] = load(to + x * stride) || load(from + x);
            } else if (stride == 1) {
#pragma omp simd
              for (int64_t x = 0; x < n; ++x) to[x] = static_cast<C>(to[x] + from[x]);
            } else {
              for (int64_t x = 0; x < n; ++x) to[x * stride] = static_cast<C>(to[x * stride] + from[x]);
            }
          }
        }
      if constexpr (is_half_v<T>) from_float(image, mutable_data<T>(out) + item * plane, plane);
    }
  });
}

void patches_backward(Call& call) {
  if (call.output().numel == 0) return;
  dispatch<AllTypes>(call.output().dtype, [&]<typename T>() { add_patches<T>(call); });
}

}  // namespace

void register_folding(KernelTable& table) {
  table.add<patches>("patches");
  table.add<patches_backward>("patches_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
