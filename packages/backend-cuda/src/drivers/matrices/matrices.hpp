// Batches of matrices in the layout of NVIDIA's dense libraries: column-major, without gaps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "dtypes.hpp"
#include "runtime/launch.hpp"

namespace candelabra::cuda {

using LapackTypes = Types<float, double, complex64, complex128>;

// Rows and columns are the last two dimensions; the dimensions before them are the batch.
inline int64_t rows_of(const cb_tensor& t) {
  return t.sizes[t.ndim - 2];
}
inline int64_t columns_of(const cb_tensor& t) {
  return t.sizes[t.ndim - 1];
}
// The number of items of the last `inner` dimensions.
inline int64_t batch_count(const cb_tensor& t, int inner) {
  int64_t count = 1;
  for (int d = 0; d < t.ndim - inner; ++d) count *= t.sizes[d];
  return count;
}

// Throws if a size does not fit a routine's 32-bit integer.
int int32_size(int64_t size);

// A view; element (i, j) of matrix b is data[b * step() + i + j * leading()].
struct Matrices {
  void* data;
  int32_t dtype;
  int64_t batches, rows, columns;

  // At least 1, which the libraries require even for empty matrices.
  int64_t leading() const { return std::max<int64_t>(1, rows); }
  int64_t step() const { return leading() * columns; }
  void* matrix(int64_t index) const { return static_cast<std::byte*>(data) + index * step() * itemsize(dtype); }
  size_t bytes() const { return static_cast<size_t>(batches * step() * itemsize(dtype)); }
  bool empty() const { return batches == 0 || rows == 0 || columns == 0; }
};

// Matrices in a workspace of the call.
struct OwnMatrices : Matrices {
  Workspace memory;
  OwnMatrices(const Call& call, int32_t dtype, int64_t batches, int64_t rows, int64_t columns);
};

// Whether a tensor's matrices are loaded as they are, or transposed.
enum class As { Is, Transposed };

// Queue copies between the matrices of a tensor and a batch, over the smaller of their sizes.
void load(const Call& call, const Matrices& to, const cb_tensor& from, As as = As::Is);
void store(const Call& call, const cb_tensor& to, const Matrices& from, As as = As::Is);
// Allocates a batch and loads the tensor into it.
OwnMatrices loaded_from(const Call& call, const cb_tensor& from, As as = As::Is);
// Copies the common corner of two batches of the same count.
void copy_corner(const Call& call, const Matrices& to, const Matrices& from);

// Contiguous memory for an output (info, pivots, values): the output's own memory, or a workspace
// that finish() copies to it.
class Packed {
 public:
  Packed(const Call& call, const cb_tensor& out);
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  void* data() const { return data_; }
  void finish() const;  // queues the copy; call it behind all writes

 private:
  const Call& call_;
  const cb_tensor& out_;
  Workspace memory_;
  void* data_;
};
// Queues a copy of an input to a contiguous workspace.
Workspace packed_copy(const Call& call, const cb_tensor& in);

// The distance between matrices in elements, if the batch dimensions share one stride.
std::optional<int64_t> batch_step(const cb_tensor& t);

}  // namespace candelabra::cuda
