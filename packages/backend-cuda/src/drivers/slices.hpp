// 1-D slices of tensors along one dimension, for kernels that process each slice: softmax, scans,
// sorts.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "drivers/iterate.hpp"

namespace candelabra::cuda {

// A view of a tensor without one dimension. Its elements are the first ones of the slices along
// that dimension.
class FirstOfLines {
 public:
  FirstOfLines(const cb_tensor& of, int dim) : tensor_(of), length_(of.sizes[dim]), stride_(of.strides[dim]) {
    tensor_.numel = 1;
    for (int d = 0; d < of.ndim; ++d) {
      if (d == dim) continue;
      sizes_.push_back(of.sizes[d]);
      strides_.push_back(of.strides[d]);
      tensor_.numel *= of.sizes[d];
    }
    if (sizes_.empty()) sizes_.push_back(1), strides_.push_back(0);
    tensor_.ndim = static_cast<int32_t>(sizes_.size());
    tensor_.sizes = sizes_.data();
    tensor_.strides = strides_.data();
  }
  FirstOfLines(const FirstOfLines&) = delete;
  FirstOfLines& operator=(const FirstOfLines&) = delete;

  const cb_tensor& tensor() const { return tensor_; }
  int64_t length() const { return length_; }
  int64_t stride() const { return stride_; }

 private:
  cb_tensor tensor_;
  std::vector<int64_t> sizes_, strides_;
  int64_t length_, stride_;
};

}  // namespace candelabra::cuda
