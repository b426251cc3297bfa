// What the kernels share: elements in row-major order, boxes, and the threads of the core.
#ifndef CANDELABRA_VISION_ARGUMENTS_HPP
#define CANDELABRA_VISION_ARGUMENTS_HPP

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "candelabra/extension.hpp"

namespace candelabra::vision {

using namespace extension;

// Calls body.template operator()<T>() for the floating-point type of a tensor.
template <typename Body>
void dispatch_floating(const Tensor& tensor, Body&& body) {
  dispatch<float, double, Float16, BFloat16>(tensor.dtype(), std::forward<Body>(body));
}

// Half precisions are computed in float.
template <typename T>
using Accumulator = std::conditional_t<std::is_same_v<T, double>, double, float>;

// The elements of a tensor in row-major order: its own memory, or a copy.
template <typename T>
class RowMajor {
 public:
  explicit RowMajor(const Tensor& tensor) : data_(tensor.data<const T>()) {
    if (tensor.is_contiguous()) return;
    copy_.reserve(static_cast<size_t>(tensor.numel()));
    each_offset(tensor.descriptor(), [&](int64_t offset) { copy_.push_back(data_[offset]); });
    data_ = copy_.data();
  }
  RowMajor(const RowMajor&) = delete;
  RowMajor& operator=(const RowMajor&) = delete;

  const T* data() const { return data_; }

 private:
  const T* data_;
  std::vector<T> copy_;
};

// body(begin, end) on the threads of the core, in parts of at least `grain`. The first exception is
// thrown again: the core's threads are called through C.
template <typename Body>
void parallel_for(const cb_call* call, int64_t count, int64_t grain, Body body) {
  struct Context {
    Body& body;
    std::atomic_flag failed = ATOMIC_FLAG_INIT;
    std::exception_ptr error = nullptr;
  } context{body};
  const auto part = [](void* data, int64_t begin, int64_t end) {
    auto& shared = *static_cast<Context*>(data);
    try {
      shared.body(begin, end);
    } catch (...) {
      if (!shared.failed.test_and_set()) shared.error = std::current_exception();
    }
  };
  call->host->parallel_for(0, count, grain < 1 ? 1 : grain, part, &context);
  if (context.error) std::rethrow_exception(context.error);
}

// How many items make a part worth a thread, where each item takes `operations`.
inline int64_t grain_for(int64_t operations) {
  constexpr int64_t worthwhile = 32768;
  return worthwhile / (operations < 1 ? 1 : operations) + 1;
}

// A region of interest: one row of a tensor (K, 5).
template <typename A>
struct Box {
  int64_t image;
  A x1, y1, x2, y2;
};

// The boxes in units of the feature map. A row that names no image of the batch raises IndexError.
template <typename T>
std::vector<Box<Accumulator<T>>> read_boxes(const Tensor& rois, double spatial_scale, int64_t images) {
  using A = Accumulator<T>;
  const RowMajor<T> elements(rois);
  const auto scale = static_cast<A>(spatial_scale);
  std::vector<Box<A>> boxes(static_cast<size_t>(rois.size(0)));
  for (size_t k = 0; k < boxes.size(); ++k) {
    const T* row = elements.data() + 5 * k;
    const auto image = static_cast<A>(row[0]);
    if (!(image > A(-1) && image < static_cast<A>(images)))
      fail(CB_INDEX_ERROR, "box ", k, " is of image ", image, ", but the batch has ", images);
    // float index: in the range of the batch
    boxes[k] = {static_cast<int64_t>(image), static_cast<A>(row[1]) * scale, static_cast<A>(row[2]) * scale,
                static_cast<A>(row[3]) * scale, static_cast<A>(row[4]) * scale};
  }
  return boxes;
}

// Sizes of an image batch (N, C, H, W).
struct Planes {
  int64_t images, channels, height, width;

  explicit Planes(const Tensor& tensor)
      : images(tensor.size(0)), channels(tensor.size(1)), height(tensor.size(2)), width(tensor.size(3)) {}
  int64_t area() const { return height * width; }
  int64_t offset(int64_t image, int64_t channel) const { return (image * channels + channel) * area(); }
};

// Where the gradient of one channel is summed up: in the result itself, or for half precisions in
// memory of its own that is rounded once.
template <typename T>
class GradientPlanes {
 public:
  using A = Accumulator<T>;

  GradientPlanes(T* result, const Planes& planes) : result_(result), planes_(planes) {
    if constexpr (!std::is_same_v<T, A>) sums_.resize(static_cast<size_t>(planes.images * planes.area()));
  }

  // Sets the gradient of a channel to zero in all images.
  void begin(int64_t channel) {
    channel_ = channel;
    if constexpr (std::is_same_v<T, A>) {
      for (int64_t n = 0; n < planes_.images; ++n) std::fill_n(plane(n), planes_.area(), A(0));
    } else {
      std::fill(sums_.begin(), sums_.end(), A(0));
    }
  }
  A* plane(int64_t image) {
    if constexpr (std::is_same_v<T, A>) {
      return result_ + planes_.offset(image, channel_);
    } else {
      return sums_.data() + image * planes_.area();
    }
  }
  void end() {
    if constexpr (!std::is_same_v<T, A>) {
      for (int64_t n = 0; n < planes_.images; ++n) {
        T* to = result_ + planes_.offset(n, channel_);
        for (int64_t i = 0; i < planes_.area(); ++i) to[i] = static_cast<T>(plane(n)[i]);
      }
    }
  }

 private:
  T* result_;
  Planes planes_;
  int64_t channel_ = 0;
  std::vector<A> sums_;
};

}  // namespace candelabra::vision

#endif
