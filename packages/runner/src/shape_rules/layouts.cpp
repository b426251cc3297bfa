#include "shape_rules/layouts.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace candelabra::runner {

namespace {

// Of what is searched for repeated elements one by one.
constexpr int64_t most_searched = int64_t{1} << 26;

std::span<const int64_t> sizes_of(const cb_tensor& tensor) {
  return {tensor.sizes, static_cast<size_t>(tensor.ndim)};
}
std::span<const int64_t> strides_of(const cb_tensor& tensor) {
  return {tensor.strides, static_cast<size_t>(tensor.ndim)};
}

}  // namespace

bool equal_strides(std::span<const int64_t> sizes, std::span<const int64_t> a, std::span<const int64_t> b) {
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1 && a[d] != b[d]) return false;
  return true;
}

bool is_same_layout(const cb_tensor& a, const cb_tensor& b) {
  if (a.dtype != b.dtype || !std::ranges::equal(sizes_of(a), sizes_of(b))) return false;
  return a.numel == 0 || equal_strides(sizes_of(a), strides_of(a), strides_of(b));
}

bool may_be_broadcast_scalar(const cb_tensor& tensor) {
  if (tensor.flags & CB_TENSOR_NUMBER || tensor.ndim == 0) return false;
  return tensor.numel > 0 && equal_strides(sizes_of(tensor), strides_of(tensor), Dims(tensor.ndim, 0));
}

std::optional<Dims> without_seen_dims(const cb_tensor& tensor, const Output& expected) {
  Dims sizes, strides;
  for (int d = 0; d < tensor.ndim; ++d) {
    const bool is_inserted = expected.inserted >> d & 1, is_reduced = expected.reduced >> d & 1;
    if ((is_inserted || is_reduced) && (tensor.sizes[d] != 1 || tensor.strides[d] != 0)) return std::nullopt;
    if (is_inserted) continue;
    sizes.push_back(tensor.sizes[d]);
    strides.push_back(tensor.strides[d]);
  }
  if (!(sizes == expected.sizes)) return std::nullopt;
  return strides;
}

bool repeats_elements(const TensorObject& tensor) {
  if (tensor.contiguous || tensor.numel <= 1) return false;
  std::vector<std::pair<int64_t, int64_t>> dims;  // by stride
  for (int d = 0; d < tensor.ndim(); ++d)
    if (tensor.sizes[d] != 1) dims.emplace_back(tensor.strides[d], tensor.sizes[d]);
  std::ranges::sort(dims);
  int64_t reach = 0;
  bool is_nested = true;
  for (const auto& [stride, size] : dims) {
    is_nested = is_nested && stride > reach;
    reach += stride * (size - 1);
  }
  return !is_nested && (reach >= most_searched || may_overlap_itself(tensor));
}

}  // namespace candelabra::runner
