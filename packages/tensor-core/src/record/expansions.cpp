#include "record/expansions.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace candelabra {

namespace {

// Of the output. The row is to stay in a cache, and be repeated faster than tiles are computed.
constexpr int64_t least_rows = 8, longest_row = int64_t{1} << 13;

}  // namespace

std::optional<Expansion> expansion_of(const cb_tensor& tensor, const cb_tensor& output) {
  if (cb_dtype_size(tensor.dtype) > sizeof(uint64_t) || tensor.ndim != output.ndim ||
      !std::equal(tensor.sizes, tensor.sizes + tensor.ndim, output.sizes))
    return {};
  std::vector<int> order;
  for (int d = 0; d < output.ndim; ++d)
    if (output.sizes[d] > 1) order.push_back(d);
  std::ranges::sort(order, [&](int a, int b) { return output.strides[a] < output.strides[b]; });
  Expansion made;
  made.itemsize = static_cast<int64_t>(cb_dtype_size(tensor.dtype));
  made.period = 1;
  size_t inner = 0;
  for (; inner < order.size() && tensor.strides[order[inner]] != 0; ++inner) {
    if (inner == 0) made.stride = tensor.strides[order[inner]];
    if (tensor.strides[order[inner]] != made.period * made.stride) return {};
    made.period *= tensor.sizes[order[inner]];
  }
  const bool is_row = inner > 0 && std::all_of(order.begin() + static_cast<std::ptrdiff_t>(inner), order.end(),
                                               [&](int d) { return tensor.strides[d] == 0; });
  if (!is_row || made.period > longest_row || made.period * least_rows > output.numel) return {};
  return made;
}

void expand(const Expansion& expansion, const char* from, int64_t capacity, char* to) {
  const auto itemsize = static_cast<size_t>(expansion.itemsize);
  if (expansion.stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(expansion.period) * itemsize);
  } else {
    for (int64_t i = 0; i < expansion.period; ++i)
      std::memcpy(to + i * expansion.itemsize, from + i * expansion.stride * expansion.itemsize, itemsize);
  }
  for (int64_t done = expansion.period; done < capacity; done *= 2)
    std::memcpy(to + done * expansion.itemsize, to, static_cast<size_t>(std::min(done, capacity - done)) * itemsize);
}

}  // namespace candelabra
