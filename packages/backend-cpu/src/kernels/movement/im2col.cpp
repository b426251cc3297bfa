// im2col (`im2col`) and col2im (`col2im`): each row of the column matrix is the image
// shifted by one element of the kernel.
#include <algorithm>
#include <cstring>

#include "candelabra/arguments/resampling.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "kernels/movement/move.hpp"
#include "memory/allocator.hpp"
#include "simd/load.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// Spatial dimension d of image and kernel. patches and col2im have these arguments in
// common.
struct Axis {
  int64_t size, kernel, dilation, padding, stride, count;

  template <typename Arguments>
  Axis(const Arguments& args, int64_t size, size_t d)
      : size(size),
        kernel(args.kernel_size[d]),
        dilation(args.dilation[d]),
        padding(args.padding[d]),
        stride(args.stride[d]),
        count((size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1) {}

  // The image index that kernel element k meets in the first window.
  int64_t start(int64_t k) const { return k * dilation - padding; }
  // The windows [first, end) whose element k lies in the image.
  int64_t first(int64_t k) const { return std::min(count, start(k) >= 0 ? 0 : (-start(k) + stride - 1) / stride); }
  int64_t end(int64_t k) const {
    return start(k) >= size ? first(k) : std::clamp((size - 1 - start(k)) / stride + 1, first(k), count);
  }
};

void im2col(Call& call) {
  const arguments::Im2col args(call);
  const cb_tensor &in = *args.self, &out = call.output();
  if (out.numel == 0) return;
  const Axis down(args, in.sizes[2], 0), across(args, in.sizes[3], 1);
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
          U* row = to + y * across.count;
          for (int64_t x = 0; x < x0; ++x) row[x] = U{};
          move_run(row + x0, 1,
                   from + (down.start(a) + y * down.stride) * across.size + across.start(b) + x0 * across.stride,
                   across.stride, x1 - x0);
          for (int64_t x = x1; x < across.count; ++x) row[x] = U{};
        }
        std::fill_n(to + y1 * across.count, (down.count - y1) * across.count, U{});
      }
    });
  });
}

template <typename T>
void add_columns(const arguments::Col2im& args, const cb_tensor& out) {
  using C = compute_t<T>;
  const cb_tensor& grad = *args.grad;
  const Axis down(args, out.sizes[2], 0), across(args, out.sizes[3], 1);
  const int64_t area = down.kernel * across.kernel, length = down.count * across.count, plane = down.size * across.size;
  parallel_for(out.sizes[0] * out.sizes[1], grain_for(area * length + plane), [&](int64_t begin, int64_t end) {
    Scratch<C> sums(is_half_v<T> ? plane : 0), wide(is_half_v<T> ? across.count : 0);
    for (int64_t item = begin; item < end; ++item) {
      C* image;
      if constexpr (is_half_v<T>)
        image = sums.data();
      else
        image = mutable_data<T>(out) + item * plane;
      std::fill_n(image, plane, C(0));
      // Row by row of the windows, so that the rows of the image that they touch stay in the cache.
      for (int64_t y = 0; y < down.count; ++y)
        for (int64_t a = 0; a < down.kernel; ++a) {
          if (y < down.first(a) || y >= down.end(a)) continue;
          C* row = image + (down.start(a) + y * down.stride) * across.size;
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
            C* to = row + across.start(b) + x0 * stride;
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

void col2im(Call& call) {
  const arguments::Col2im args(call);
  if (call.output().numel == 0) return;
  dispatch<AllTypes>(call.output().dtype, [&]<typename T>() { add_columns<T>(args, call.output()); });
}

}  // namespace

void register_im2col(KernelTable& table) {
  table.add<im2col>("im2col");
  table.add<col2im>("col2im");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
