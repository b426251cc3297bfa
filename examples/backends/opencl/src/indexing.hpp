// What operators with indices share.
#ifndef CANDELABRA_OPENCL_INDEXING_HPP
#define CANDELABRA_OPENCL_INDEXING_HPP

#include <optional>
#include <vector>

#include "runtime/launch.hpp"

namespace candelabra::opencl {

// A tensor with other sizes or strides, whose arrays it owns.
struct View {
  explicit View(const cb_tensor& tensor)
      : sizes(tensor.sizes, tensor.sizes + tensor.ndim), strides(tensor.strides, tensor.strides + tensor.ndim) {
    descriptor = tensor;
  }
  const cb_tensor& get() {
    descriptor.ndim = static_cast<int32_t>(sizes.size());
    descriptor.numel = 1;
    for (const int64_t size : sizes) descriptor.numel *= size;
    descriptor.sizes = sizes.data();
    descriptor.strides = strides.data();
    return descriptor;
  }
  std::vector<int64_t> sizes, strides;
  cb_tensor descriptor;
};

// The dtype of elements that are only moved: an unsigned integer of their size.
int32_t moved_dtype(const cb_tensor& tensor);

// An index that is not in [low, size), or nothing. Waits for the device.
std::optional<int64_t> bad_index(const Call& call, const cb_tensor& indices, int64_t low, int64_t size);

// Copies self to the output, unless they are the same memory.
void start_from(const Call& call, const cb_tensor& self);

}  // namespace candelabra::opencl

#endif
