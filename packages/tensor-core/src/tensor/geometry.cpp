// Memory layout of a tensor: density, overlap and memory formats.
#include <algorithm>
#include <numeric>
#include <vector>

#include "tensor/layout_order.hpp"
#include "tensor/tensor.hpp"

namespace candelabra {

namespace {

// The dimensions of a size other than 1, by ascending stride. Returns their number.
int dims_by_stride(const TensorObject& tensor, int* order) {
  int count = 0;
  for (int dim = 0; dim < tensor.ndim(); ++dim) {
    if (tensor.sizes[dim] != 1) order[count++] = dim;
  }
  std::stable_sort(order, order + count, [&](int a, int b) { return tensor.strides[a] < tensor.strides[b]; });
  return count;
}

bool is_same_view(const TensorObject& a, const TensorObject& b) {
  if (a.data() != b.data() || a.dtype != b.dtype || !(a.sizes == b.sizes)) return false;
  for (int dim = 0; dim < a.ndim(); ++dim) {
    if (a.sizes[dim] != 1 && a.strides[dim] != b.strides[dim]) return false;
  }
  return true;
}

// Whether two tensors share a byte of memory. This asks for indices i of a and j of b, and bytes k
// and l within an element, such that begin(a) + sum i*stride(a) + k = begin(b) + sum j*stride(b) +
// l. The general problem is NP-hard. In typical views each stride exceeds the reach of all smaller
// ones. Then only one or two values of each index are possible, and the search ends quickly.
class CommonByte {
 public:
  CommonByte(const TensorObject& a, const TensorObject& b) : distance_(b.data() - a.data()) {
    for (int dim = 0; dim < a.ndim(); ++dim) {
      if (a.sizes[dim] > 1) add(a.strides[dim] * itemsize(a.dtype), 0, a.sizes[dim] - 1);
    }
    for (int dim = 0; dim < b.ndim(); ++dim) {
      if (b.sizes[dim] > 1) add(b.strides[dim] * itemsize(b.dtype), 1 - b.sizes[dim], 0);
    }
    add(1, 1 - itemsize(b.dtype), itemsize(a.dtype) - 1);
    std::sort(terms_, terms_ + count_, [](const Term& x, const Term& y) { return x.stride > y.stride; });
    for (int i = count_ - 1; i >= 0; --i) {
      const Term& next = terms_[i + 1];
      terms_[i].min_sum = terms_[i].stride * terms_[i].low + (i + 1 < count_ ? next.min_sum : 0);
      terms_[i].max_sum = terms_[i].stride * terms_[i].high + (i + 1 < count_ ? next.max_sum : 0);
    }
  }

  bool exists() { return search(0, distance_); }

 private:
  struct Term {
    int64_t stride, low, high;  // the term is k * stride with low <= k <= high
    int64_t min_sum, max_sum;   // bounds of the sum of this term and those of smaller strides
  };

  void add(int64_t stride, int64_t low, int64_t high) {
    if (stride == 0 || low == high) return;
    for (int i = 0; i < count_; ++i) {
      if (terms_[i].stride != stride) continue;
      terms_[i].low += low;
      terms_[i].high += high;
      return;
    }
    terms_[count_++] = {stride, low, high, 0, 0};
  }

  bool search(int i, int64_t target) {
    if (i == count_) return target == 0;
    const Term& term = terms_[i];
    if (target < term.min_sum || target > term.max_sum) return false;
    if (--budget_ < 0) return true;  // undecided: report an overlap
    const bool last = i + 1 == count_;
    const int64_t min_sum = last ? 0 : terms_[i + 1].min_sum, max_sum = last ? 0 : terms_[i + 1].max_sum;
    const int64_t from = std::max(term.low, -floor_divide(max_sum - target, term.stride));
    const int64_t to = std::min(term.high, floor_divide(target - min_sum, term.stride));
    for (int64_t k = from; k <= to; ++k) {
      if (search(i + 1, target - k * term.stride)) return true;
    }
    return false;
  }

  static int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0); }

  int64_t distance_;
  int budget_ = 10000;
  int count_ = 0;
  Term terms_[2 * max_dims + 2];
};

}  // namespace

bool is_channels_last(const TensorObject& tensor) {
  if (tensor.ndim() != 4 || tensor.numel == 0) return false;
  // A tensor that is also row-major (one channel, or one pixel) counts only if the stride of its
  // channels is 1.
  int64_t expected = 1;
  for (int dim : {1, 3, 2, 0}) {
    if (tensor.sizes[dim] != 1) {
      if (tensor.strides[dim] != expected) return false;
      expected *= tensor.sizes[dim];
    } else if (dim == 1 && tensor.strides[1] != 1) {
      return false;
    }
  }
  return true;
}

bool is_in_format(const TensorObject& tensor, MemoryFormat format) {
  if (format != MemoryFormat::ChannelsLast && format != MemoryFormat::ChannelsLast3d) return tensor.contiguous;
  const int rank = format == MemoryFormat::ChannelsLast ? 4 : 5;
  if (tensor.ndim() != rank || tensor.numel == 0) return false;
  const Dims wanted = channels_last_strides(tensor.sizes);
  for (int dim = 0; dim < rank; ++dim) {
    if (tensor.sizes[dim] != 1 && tensor.strides[dim] != wanted[dim]) return false;
  }
  return true;
}

bool is_dense_and_non_overlapping(const TensorObject& tensor) {
  if (tensor.contiguous) return true;
  if (tensor.numel == 0) return true;
  int order[max_dims];
  const int count = dims_by_stride(tensor, order);
  int64_t expected = 1;
  for (int i = 0; i < count; ++i) {
    if (tensor.strides[order[i]] != expected) return false;
    expected *= tensor.sizes[order[i]];
  }
  return true;
}

namespace {

// Whether two indices refer to the same element. Marks the offset of each element in a bitmap of
// `span` entries; strides must be positive.
bool has_duplicate_offsets(const TensorObject& tensor, int64_t span) {
  std::vector<bool> used(static_cast<size_t>(span));
  const int last = tensor.ndim() - 1;
  int64_t index[max_dims] = {};
  int64_t offset = 0;
  while (true) {
    for (int64_t i = 0; i < tensor.sizes[last]; ++i) {
      std::vector<bool>::reference here = used[static_cast<size_t>(offset + i * tensor.strides[last])];
      if (here) return true;
      here = true;
    }
    int d = last - 1;
    for (; d >= 0 && ++index[d] == tensor.sizes[d]; --d) {
      offset -= (tensor.sizes[d] - 1) * tensor.strides[d];
      index[d] = 0;
    }
    if (d < 0) return false;
    offset += tensor.strides[d];
  }
}

}  // namespace

bool may_overlap_itself(const TensorObject& tensor) {
  if (tensor.contiguous || tensor.numel <= 1) return false;
  int order[max_dims];
  const int count = dims_by_stride(tensor, order);
  // No overlap is possible if each stride exceeds the reach of all smaller dimensions. Otherwise
  // elements may still be distinct (interleaved).
  int64_t reach = 0;
  bool nested = true;
  for (int i = 0; i < count; ++i) {
    const int64_t stride = tensor.strides[order[i]];
    if (stride == 0) return true;
    nested = nested && stride > reach;
    reach += stride * (tensor.sizes[order[i]] - 1);
  }
  return !nested && (tensor.numel > reach + 1 || has_duplicate_offsets(tensor, reach + 1));
}

bool share_memory_partly(const TensorObject& a, const TensorObject& b) {
  const Storage &memory = *a.storage, &other = *b.storage;
  if (memory.device != other.device || a.numel == 0 || b.numel == 0) return false;
  const auto begin = reinterpret_cast<uintptr_t>(memory.data), other_begin = reinterpret_cast<uintptr_t>(other.data);
  if (begin + memory.bytes <= other_begin || other_begin + other.bytes <= begin) return false;
  if (is_same_view(a, b)) return false;
  return CommonByte(a, b).exists();
}

Dims preserved_strides(const TensorObject& like) {
  if (like.contiguous) return contiguous_strides(like.sizes);
  if (is_dense_and_non_overlapping(like)) return like.strides;
  return strides_in_order(like.sizes, [&](int a, int b) {
    const int64_t outer = like.strides[a], inner = like.strides[b];
    if (outer == 0 || inner == 0) return 0;
    if (outer != inner) return outer > inner ? 1 : -1;
    return like.sizes[a] > like.sizes[b] ? 1 : 0;
  });
}

}  // namespace candelabra
