// im2col and col2im. One thread gathers one element of the result, plane by plane.
#include "candelabra/arguments/resampling.hpp"
#include "drivers/image_offsets.hpp"

namespace candelabra::cuda {
namespace {

constexpr int threads = 256;

// One dimension of image and kernel.
struct Axis {
  int64_t size, kernel, dilation, padding, count;
  LongDivider stride;

  template <typename Arguments>
  Axis(const Arguments& args, int64_t size, size_t d)
      : size(size),
        kernel(args.kernel_size[d]),
        dilation(args.dilation[d]),
        padding(args.padding[d]),
        count((size + 2 * padding - dilation * (kernel - 1) - 1) / args.stride[d] + 1),
        stride(args.stride[d]) {}

  // The patch whose kernel element k lies at index i of the image; -1 if there is none.
  __device__ int64_t patch_at(int64_t i, int64_t k) const {
    const int64_t start = i + padding - k * dilation;
    if (start < 0) return -1;
    const int64_t patch = stride.quotient(start);
    return patch * stride.divisor == start && patch < count ? patch : -1;
  }
};

struct Folding {
  Axis down, across;
  int64_t planes, length, plane;
  PlaneIndexer plane_index;  // of the result: kernel elements and patches, or pixels of the image

  template <typename Arguments>
  Folding(const Arguments& args, const cb_tensor& image)
      : down(args, image.sizes[2], 0),
        across(args, image.sizes[3], 1),
        planes(image.sizes[0] * image.sizes[1]),
        length(down.count * across.count),
        plane(image.sizes[2] * image.sizes[3]) {}
};

template <typename U>
__global__ void __launch_bounds__(threads) patches_kernel(U* out, const U* in, const __grid_constant__ Folding f) {
  for (int64_t e = first_index(); e < f.plane_index.count; e += index_step()) {
    const auto [row, column, y, x] = f.plane_index[e];
    const int64_t i = row * f.down.dilation - f.down.padding + y * f.down.stride.divisor;
    const int64_t j = column * f.across.dilation - f.across.padding + x * f.across.stride.divisor;
    const bool inside = i >= 0 && i < f.down.size && j >= 0 && j < f.across.size;
    const U* from = in + i * f.across.size + j;
    for (int64_t p = blockIdx.y; p < f.planes; p += gridDim.y)
      out[p * f.plane_index.count + e] = inside ? from[p * f.plane] : U{};
  }
}

void im2col(Call& call) {
  const arguments::Im2col args(call);
  const cb_tensor &in = *args.self, &out = call.output();
  if (out.numel == 0) return;
  Folding f(args, in);
  f.plane_index = PlaneIndexer(f.down.kernel, f.across.kernel, f.down.count, f.across.count);
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    launch(call, patches_kernel<U>, grid_over(call, f.plane_index.count, f.planes, threads), threads, 0,
           mutable_data<U>(out), data<U>(in), f);
  });
}

// Sums in the order of the CPU backend: patches from top to bottom, then kernel elements from left
// to right.
template <typename T>
__global__ void __launch_bounds__(threads)
    patches_backward_kernel(memory_t<T>* out, const memory_t<T>* grad, const __grid_constant__ Folding f) {
  const int64_t area = f.down.kernel * f.across.kernel;
  for (int64_t e = first_index(); e < f.plane; e += index_step()) {
    const auto [depth, i, j, channel] = f.plane_index[e];
    for (int64_t p = blockIdx.y; p < f.planes; p += gridDim.y) {
      compute_t<T> sum(0);
      for (int64_t a = f.down.kernel - 1; a >= 0; --a) {
        const int64_t y = f.down.patch_at(i, a);
        if (y < 0) continue;
        const memory_t<T>* row_of_patches = grad + (p * area + a * f.across.kernel) * f.length + y * f.across.count;
        for (int64_t b = 0; b < f.across.kernel; ++b) {
          const int64_t x = f.across.patch_at(j, b);
          if (x < 0) continue;
          const compute_t<T> value = loaded<T>(row_of_patches[b * f.length + x]);
          if constexpr (std::is_same_v<T, bool>)
            sum = sum || value;
          else
            sum = static_cast<compute_t<T>>(sum + value);
        }
      }
      out[p * f.plane + e] = stored<T>(sum);
    }
  }
}

void col2im(Call& call) {
  const arguments::Col2im args(call);
  const cb_tensor &grad = *args.grad, &out = call.output();
  if (out.numel == 0) return;
  Folding f(args, out);
  f.plane_index = PlaneIndexer(1, f.down.size, f.across.size, 1);
  dispatch<AllTypes>(out.dtype, [&]<typename T>() {
    launch(call, patches_backward_kernel<T>, grid_over(call, f.plane, f.planes, threads), threads, 0,
           mutable_data<memory_t<T>>(out), data<memory_t<T>>(grad), f);
  });
}

}  // namespace

void register_im2col(KernelTable& table) {
  table.add<im2col>("im2col");
  table.add<col2im>("col2im");
}

}  // namespace candelabra::cuda
