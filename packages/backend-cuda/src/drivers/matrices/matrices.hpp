// Batches of matrices in the order that NVIDIA's dense libraries take: column after column, without
// gaps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "dtypes.hpp"
#include "runtime/launch.hpp"

namespace candelabra::cuda {

using LapackTypes = Types<float, double, complex64, complex128>;

// Rows and columns are the last two dimensions; everything before is the batch.
inline int64_t rows_of(const cb_tensor& t) {
  return t.sizes[t.ndim - 2];
}
inline int64_t columns_of(const cb_tensor& t) {
  return t.sizes[t.ndim - 1];
}
// How many items of the last `inner` dimensions there are.
inline int64_t batch_count(const cb_tensor& t, int inner) {
  int64_t count = 1;
  for (int d = 0; d < t.ndim - inner; ++d) count *= t.sizes[d];
  return count;
}

// Throws where a size does not fit the 32-bit integers of a routine.
int int32_size(int64_t size);

// A view; element (i, j) of matrix b is data[b * step() + i + j * leading()].
struct Matrices {
  void* data;
  int32_t dtype;
  int64_t batches, rows, columns;

  // At least 1, as the libraries want it even of empty matrices.
  int64_t leading() const { return std::max<int64_t>(1, rows); }
  int64_t step() const { return leading() * columns; }
  void* matrix(int64_t index) const { return static_cast<std::byte*>(data) + index * step() * itemsize(dtype); }
  size_t bytes() const { return static_cast<size_t>(batches * step() * itemsize(dtype)); }
  bool empty() const { return batches == 0 || rows == 0 || columns == 0; }
};

// The same with memory for the time of a call.
struct OwnMatrices : Matrices {
  Workspace memory;
  OwnMatrices(const Call& call, int32_t dtype, int64_t batches, int64_t rows, int64_t columns);
};

// Whether the matrices of a tensor are taken as they are, or exchanged rows for columns.
enum class As { Is, Transposed };

// Queues the move of the matrices of a tensor to a batch, and back. Where one of both is smaller,
// only its part is moved.
void load(const Call& call, const Matrices& to, const cb_tensor& from, As as = As::Is);
void store(const Call& call, const cb_tensor& to, const Matrices& from, As as = As::Is);
// Of the tensor as a batch of its own: allocated, and loaded.
OwnMatrices loaded_from(const Call& call, const cb_tensor& from, As as = As::Is);
// From a batch to a batch of the same count, as far as both reach.
void copy_corner(const Call& call, const Matrices& to, const Matrices& from);

// Memory without gaps in the place of an output (of info, pivots, values): the output's own, or
// what is moved to it at the end.
class Packed {
 public:
  Packed(const Call& call, const cb_tensor& out);
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  void* data() const { return data_; }
  void finish() const;  // after everything that writes has been queued

 private:
  const Call& call_;
  const cb_tensor& out_;
  Workspace memory_;
  void* data_;
};
// Queues the move of an input to memory without gaps, of its own.
Workspace packed_copy(const Call& call, const cb_tensor& in);

// The elements from matrix to matrix, where all dimensions of the batch have one stride.
std::optional<int64_t> batch_step(const cb_tensor& t);

}  // namespace candelabra::cuda
