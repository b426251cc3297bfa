// What sizes and strides say about the memory of a tensor.
#include <algorithm>
#include <numeric>

#include "tensor.hpp"

namespace candelabra {

namespace {

// Dimensions that move through memory (size over 1), from the smallest stride to the largest; the larger size first among equals,
// so that two dimensions of the same stride are found to overlap.
int by_stride(const TensorObject& tensor, int* order) {
  int count = 0;
  for (int dim = 0; dim < tensor.ndim(); ++dim) {
    if (tensor.sizes[dim] != 1) order[count++] = dim;
  }
  std::stable_sort(order, order + count, [&](int a, int b) { return tensor.strides[a] < tensor.strides[b]; });
  return count;
}

}  // namespace

bool is_channels_last(const TensorObject& tensor) {
  if (tensor.ndim() != 4 || tensor.numel == 0) return false;
  // A tensor that is also row-major (one channel, or one pixel) counts only where its strides say so.
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

bool is_dense_and_non_overlapping(const TensorObject& tensor) {
  if (tensor.contiguous) return true;
  if (tensor.numel == 0) return true;
  int order[max_dims];
  const int count = by_stride(tensor, order);
  int64_t expected = 1;
  for (int i = 0; i < count; ++i) {
    if (tensor.strides[order[i]] != expected) return false;
    expected *= tensor.sizes[order[i]];
  }
  return true;
}

bool may_overlap_itself(const TensorObject& tensor) {
  if (tensor.contiguous || tensor.numel <= 1) return false;
  int order[max_dims];
  const int count = by_stride(tensor, order);
  // Each dimension has to step over everything that the smaller ones reach. Where it does not, the elements may still be apart
  // (interleaved), so this says "may".
  int64_t reach = 0;
  for (int i = 0; i < count; ++i) {
    const int64_t stride = tensor.strides[order[i]];
    if (stride <= reach) return true;
    reach += stride * (tensor.sizes[order[i]] - 1);
  }
  return false;
}

bool share_memory_partly(const TensorObject& a, const TensorObject& b) {
  if (a.storage->device != b.storage->device || a.numel == 0 || b.numel == 0) return false;
  const char* a_first = a.data();
  const char* b_first = b.data();
  const auto last = [](const TensorObject& tensor) {
    int64_t reach = 0;
    for (int dim = 0; dim < tensor.ndim(); ++dim) reach += tensor.strides[dim] * (tensor.sizes[dim] - 1);
    return tensor.data() + (reach + 1) * itemsize(tensor.dtype);
  };
  if (last(a) <= b_first || last(b) <= a_first) return false;
  return !(a_first == b_first && a.dtype == b.dtype && a.sizes == b.sizes && a.strides == b.strides);
}

Dims preserved_strides(const TensorObject& like) {
  if (like.contiguous) return contiguous_strides(like.sizes);
  return is_dense_and_non_overlapping(like) ? like.strides : contiguous_strides(like.sizes);
}

}  // namespace candelabra
