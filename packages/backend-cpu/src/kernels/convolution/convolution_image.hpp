// The tensors of a convolution with three spatial dimensions, and their copies where a kernel needs
// other strides or another dtype.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "dtypes.hpp"
#include "gemm/matrix.hpp"
#include "kernels.hpp"
#include "kernels/convolution/convolution_onednn.hpp"
#include "memory/allocator.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// A tensor with three spatial dimensions; leading ones that the caller's tensor lacks have size 1.
template <typename T>
struct Image {
  T* data;
  std::array<int64_t, 5> sizes, strides;

  ConvolutionOperand operand(uint64_t contents = 0) const {
    return {const_cast<void*>(static_cast<const void*>(data)), strides, contents};
  }
  int64_t plane() const { return sizes[2] * sizes[3] * sizes[4]; }
  int64_t numel() const { return sizes[0] * sizes[1] * plane(); }
  T* at(int64_t i, int64_t channel) const { return data + i * strides[0] + channel * strides[1]; }
  // Whether one stride serves the flattened spatial dimensions.
  bool has_joined_plane() const {
    int64_t expected = 0, step = 0;
    for (int d = 4; d >= 2; --d) {
      if (sizes[d] == 1) continue;
      if (expected && strides[d] != expected) return false;
      step = strides[d];
      expected = step * sizes[d];
    }
    return true;
  }
  int64_t plane_stride() const {
    for (int d = 4; d >= 2; --d)
      if (sizes[d] != 1) return strides[d];
    return 1;
  }
  // Channels [first, first + count) of sample i as the rows of a matrix of pixels.
  Matrix<T> pixels(int64_t i, int64_t first, int64_t count) const {
    return {at(i, first), count, plane(), strides[1], plane_stride()};
  }
  // f(z, y) for each row along the last dimension.
  template <typename F>
  void for_each_row(F&& f) const {
    for (int64_t z = 0; z < sizes[2]; ++z)
      for (int64_t y = 0; y < sizes[3]; ++y) f(z, y);
  }
  int64_t row_offset(int64_t z, int64_t y) const { return z * strides[2] + y * strides[3]; }
};

template <typename T>
Image<T> image(const cb_tensor& t) {
  Image<T> result{static_cast<T*>(t.data), {}, {}};
  result.sizes.fill(1);
  const int missing = 5 - t.ndim;
  for (int d = 0; d < t.ndim; ++d) {
    const auto to = static_cast<size_t>(d < 2 ? d : d + missing);
    result.sizes[to] = t.sizes[d];
    result.strides[to] = t.strides[d];
  }
  // A missing dimension gets the stride of a dense one.
  for (int d = 1 + missing; d >= 2; --d) {
    const auto at = static_cast<size_t>(d);
    result.strides[at] = result.sizes[at + 1] * result.strides[at + 1];
  }
  return result;
}

template <typename T>
Image<T> dense_image(T* data, const std::array<int64_t, 5>& n) {
  return {data, n, {n[1] * n[2] * n[3] * n[4], n[2] * n[3] * n[4], n[3] * n[4], n[4], 1}};
}

template <typename From, typename To>
void copy_image(const Image<From>& from, const Image<To>& to) {
  parallel_for(from.sizes[0] * from.sizes[1], grain_for(from.plane()), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      From* in = from.at(plane / from.sizes[1], plane % from.sizes[1]);
      To* out = to.at(plane / from.sizes[1], plane % from.sizes[1]);
      from.for_each_row([&](int64_t z, int64_t y) {
        From* source = in + from.row_offset(z, y);
        To* target = out + to.row_offset(z, y);
        for (int64_t x = 0; x < from.sizes[4]; ++x) target[x * to.strides[4]] = To(source[x * from.strides[4]]);
      });
    }
  });
}

template <typename T>
void fill_image(const Image<T>& to, T value) {
  parallel_for(to.sizes[0] * to.sizes[1], grain_for(to.plane()), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      T* out = to.at(plane / to.sizes[1], plane % to.sizes[1]);
      to.for_each_row([&](int64_t z, int64_t y) {
        T* row = out + to.row_offset(z, y);
        for (int64_t x = 0; x < to.sizes[4]; ++x) row[x * to.strides[4]] = value;
      });
    }
  });
}

// An image, or a dense copy of it where its strides do not suit. finish() writes the copy of a
// result back.
template <typename T>
class DenseImage {
 public:
  DenseImage(const Image<T>& original, bool suits, bool is_result)
      : original_(original), image_(original), is_result_(is_result) {
    if (suits) return;
    memory_ = std::make_unique<Scratch<std::remove_const_t<T>>>(original.numel());
    auto dense = dense_image<std::remove_const_t<T>>(memory_->data(), original.sizes);
    if (!is_result) copy_image(original, dense);
    image_ = {dense.data, dense.sizes, dense.strides};
  }
  const Image<T>& image() const { return image_; }
  void finish() const {
    if constexpr (!std::is_const_v<T>)
      if (memory_ && is_result_) copy_image(image_, original_);
  }

 private:
  Image<T> original_, image_;
  bool is_result_;
  std::unique_ptr<Scratch<std::remove_const_t<T>>> memory_;
};

template <typename T>
Image<const T> constant(const Image<T>& image) {
  return {image.data, image.sizes, image.strides};
}

template <typename T>
bool is_dense(const Image<T>& image) {
  auto dense = dense_image<T>(image.data, image.sizes);
  for (size_t d = 0; d < image.sizes.size(); ++d)
    if (image.sizes[d] != 1 && image.strides[d] != dense.strides[d]) return false;
  return true;
}

template <typename T>
Image<T> channels_last_image(T* data, const std::array<int64_t, 5>& n) {
  return {data, n, {n[1] * n[2] * n[3] * n[4], 1, n[3] * n[4] * n[1], n[4] * n[1], n[1]}};
}

template <typename A, typename B>
bool same_strides(const Image<A>& a, const Image<B>& b) {
  for (size_t d = 0; d < a.sizes.size(); ++d)
    if (a.sizes[d] != 1 && a.strides[d] != b.strides[d]) return false;
  return true;
}

// A float32 copy of a half-precision image, for processors without half-precision products. It has
// the strides of the original where those are dense or channels-last.
template <typename T>
class WidenedImage {
 public:
  explicit WidenedImage(const Image<const T>& original) : WidenedImage(original.sizes, original) {
    if (same_strides(original, image_))
      parallel_for(image_.numel(), grain_for(1), [&](int64_t begin, int64_t end) {
        to_float(original.data + begin, image_.data + begin, end - begin);
      });
    else
      copy_image(original, image_);
  }
  explicit WidenedImage(const Image<T>& result) : WidenedImage(result.sizes, constant(result)) {}
  const Image<float>& image() const { return image_; }
  Image<const float> values() const { return constant(image_); }
  void round_to(const Image<T>& result) const {
    if (!same_strides(result, image_)) return copy_image(image_, result);
    parallel_for(image_.numel(), grain_for(1), [&](int64_t begin, int64_t end) {
      from_float(image_.data + begin, result.data + begin, end - begin);
    });
  }

 private:
  WidenedImage(const std::array<int64_t, 5>& sizes, const Image<const T>& original)
      : memory_(original.numel()), image_(channels_last_image<float>(memory_.data(), sizes)) {
    if (is_dense(original) || !same_strides(original, image_)) image_ = dense_image<float>(memory_.data(), sizes);
  }
  Scratch<float> memory_;
  Image<float> image_;
};

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
