// Inputs whose strides differ from a kernel's results, copied into the results' order first: a
// tiled transpose is cheaper than reading with large strides.
#pragma once

#include <optional>

#include "kernels/movement/move.hpp"
#include "memory/allocator.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// A contiguous copy of a tensor.
class DenseCopy {
 public:
  explicit DenseCopy(const cb_tensor& from) : memory_(from.numel * itemsize(from.dtype)), copy_(from) {
    copy_.data = memory_.data();
    copy_.strides = strides_;
    for (int64_t d = from.ndim, step = 1; d-- > 0; step *= from.sizes[d]) strides_[d] = step;
    move_elements(copy_, from);
  }
  const cb_tensor& tensor() const { return copy_; }

 private:
  Scratch<std::byte> memory_;
  int64_t strides_[max_dims] = {};
  cb_tensor copy_;
};

// The input of a kernel that iterates over slices along `dim`: `in` itself where it has unit stride
// along the same dimension as `out`, else a copy.
class InOrderOf {
 public:
  InOrderOf(const cb_tensor& in, const cb_tensor& out, int dim) : in_(&in) {
    constexpr int64_t fewest = 1024;  // a copy does not pay for fewer elements
    if (in.numel < fewest || in.sizes[dim] == 1 || is_contiguous(in) || !is_contiguous(out)) return;
    for (int d = 0; d < in.ndim; ++d)
      if (in.sizes[d] >= 8 && in.strides[d] == 1 && out.strides[d] == 1) return;
    in_ = &copy_.emplace(in).tensor();
  }
  const cb_tensor& operator*() const { return *in_; }

 private:
  const cb_tensor* in_;
  std::optional<DenseCopy> copy_;
};

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
