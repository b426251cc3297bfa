#include "record/expansions.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace candelabra {

namespace {

// A tensor has at most one element for so many of the output.
constexpr int64_t least_repeats = 8;
// Periods beyond this are written tile by tile.
constexpr int64_t longest_period = int64_t{1} << 13;

template <typename T>
void copy_run(const T* from, int64_t stride, int64_t count, T* to) {
  if (stride == 0) {
    std::fill_n(to, count, *from);
  } else if (stride == 1) {
    std::copy_n(from, count, to);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
  }
}

template <typename T>
void expand_as(const Expansion& expansion, const char* memory, int64_t begin, int64_t end, char* to) {
  const Dims &sizes = expansion.sizes, &strides = expansion.strides;
  const int inner = sizes.size() - 1;
  Dims index(sizes.size(), 0);
  int64_t from = 0, rest = begin;
  for (int d = inner; d >= 0; --d) {
    index[d] = rest % sizes[d];
    rest /= sizes[d];
    from += index[d] * strides[d];
  }
  const T* const elements = reinterpret_cast<const T*>(memory);
  T* result = reinterpret_cast<T*>(to);
  while (begin < end) {
    const int64_t count = std::min(sizes[inner] - index[inner], end - begin);
    copy_run(elements + from, strides[inner], count, result);
    result += count;
    begin += count;
    from -= index[inner] * strides[inner];
    index[inner] = 0;
    for (int d = inner - 1; d >= 0; --d) {
      from += strides[d];
      if (++index[d] < sizes[d]) break;
      from -= sizes[d] * strides[d];
      index[d] = 0;
    }
  }
}

}  // namespace

bool is_broadcast_like(const cb_tensor& tensor, const cb_tensor& output) {
  if (cb_dtype_size(tensor.dtype) > sizeof(uint64_t) || tensor.ndim != output.ndim ||
      !std::equal(tensor.sizes, tensor.sizes + tensor.ndim, output.sizes))
    return false;
  int64_t own = 1;
  for (int d = 0; d < tensor.ndim; ++d)
    if (tensor.strides[d] != 0) own *= tensor.sizes[d];
  return own * least_repeats <= output.numel;
}

Expansion expansion_of(const cb_tensor& tensor, const cb_tensor& output) {
  Expansion made;
  made.itemsize = static_cast<int64_t>(cb_dtype_size(tensor.dtype));
  std::vector<int> order;
  for (int d = 0; d < output.ndim; ++d)
    if (output.sizes[d] > 1) order.push_back(d);
  std::ranges::sort(order, [&](int a, int b) { return output.strides[a] > output.strides[b]; });
  for (const int d : order) {
    const int64_t size = tensor.sizes[d], stride = tensor.strides[d];
    const int last = made.sizes.size() - 1;
    if (last >= 0 && made.strides[last] == size * stride) {
      made.sizes[last] *= size;
      made.strides[last] = stride;
    } else {
      made.sizes.push_back(size);
      made.strides.push_back(stride);
    }
  }
  const bool is_row = made.sizes.size() == 2 && made.strides[0] == 0 && made.sizes[1] <= longest_period;
  if (is_row) made.period = made.sizes[1];
  return made;
}

void expand(const Expansion& expansion, const char* from, int64_t begin, int64_t end, char* to) {
  switch (expansion.itemsize) {
    case 1:
      return expand_as<uint8_t>(expansion, from, begin, end, to);
    case 2:
      return expand_as<uint16_t>(expansion, from, begin, end, to);
    case 4:
      return expand_as<uint32_t>(expansion, from, begin, end, to);
    default:
      return expand_as<uint64_t>(expansion, from, begin, end, to);
  }
}

}  // namespace candelabra
