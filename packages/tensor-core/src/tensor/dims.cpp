#include "tensor/dims.hpp"

#include <ostream>

#include "python/errors.hpp"

namespace candelabra {

namespace {

// The next stride. Overflow wraps: such a tensor either has no elements, so that its strides are
// not used, or is rejected.
int64_t next_stride(int64_t step, int64_t size) {
  int64_t result;
  __builtin_mul_overflow(step, std::max<int64_t>(size, 1), &result);
  return result;
}

}  // namespace

std::string to_text(std::span<const int64_t> values) {
  std::string result = "[";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i) result += ", ";
    result += std::to_string(values[i]);
  }
  return result += "]";
}

std::ostream& operator<<(std::ostream& stream, SizesText sizes) {
  return stream << to_text(sizes.values);
}

int64_t product(std::span<const int64_t> sizes) {
  int64_t result = 1;
  bool overflow = false;
  for (int64_t size : sizes) {
    if (size == 0) return 0;  // an empty tensor may have sizes whose product overflows
    overflow |= __builtin_mul_overflow(result, size, &result);
  }
  check(!overflow, PyExc_RuntimeError, "numel: integer multiplication overflow: a tensor of shape ", shown(sizes),
        " would have more than 2^63 - 1 elements");
  return result;
}

Dims contiguous_strides(std::span<const int64_t> sizes) {
  Dims strides;
  strides.resize(static_cast<int>(sizes.size()));
  int64_t step = 1;
  for (int i = strides.size() - 1; i >= 0; --i) {
    strides[i] = step;
    step = next_stride(step, sizes[i]);
  }
  return strides;
}

Dims channels_last_strides(std::span<const int64_t> sizes) {
  const int rank = static_cast<int>(sizes.size());
  check(rank == 4 || rank == 5, PyExc_RuntimeError,
        "required rank 4 tensor to use channels_last format, but got shape ", shown(sizes));
  Dims strides(rank, 1);
  int64_t step = next_stride(1, sizes[1]);
  for (int i = rank - 1; i >= 0; --i) {
    if (i == 1) continue;
    strides[i] = step;
    step = next_stride(step, sizes[i]);
  }
  return strides;
}

int wrap_dim(int64_t dim, int ndim, bool wrap_zero) {
  if (ndim == 0) {
    check(wrap_zero, PyExc_IndexError, "Dimension specified as ", dim, " but tensor has no dimensions");
    ndim = 1;
  }
  if (dim < -ndim || dim >= ndim) [[unlikely]] {
    raise(PyExc_IndexError, "Dimension out of range (expected to be in range of [", -ndim, ", ", ndim - 1,
          "], but got ", dim, ")");
  }
  return static_cast<int>(dim < 0 ? dim + ndim : dim);
}

Dims broadcast_sizes(const char* operator_name, std::span<const int64_t> a, std::span<const int64_t> b) {
  const int a_count = static_cast<int>(a.size()), b_count = static_cast<int>(b.size());
  Dims sizes;
  sizes.resize(std::max(a_count, b_count));
  for (int i = sizes.size() - 1; i >= 0; --i) {
    const int a_dim = i - (sizes.size() - a_count), b_dim = i - (sizes.size() - b_count);
    const int64_t a_size = a_dim < 0 ? 1 : a[a_dim], b_size = b_dim < 0 ? 1 : b[b_dim];
    if (a_size != b_size && a_size != 1 && b_size != 1) [[unlikely]] {
      raise(PyExc_RuntimeError, "The size of tensor a (", a_size, ") must match the size of tensor b (", b_size,
            ") at non-singleton dimension ", i, "; ", operator_name, "(): shapes ", to_text(a), " and ", to_text(b),
            " cannot be broadcast together");
    }
    sizes[i] = a_size == 1 ? b_size : a_size;
  }
  return sizes;
}

}  // namespace candelabra
