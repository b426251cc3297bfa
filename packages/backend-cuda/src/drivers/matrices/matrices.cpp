#include "drivers/matrices/matrices.hpp"

#include <array>
#include <limits>
#include <vector>

#include "drivers/move.hpp"

namespace candelabra::cuda {
namespace {

// A descriptor with its own sizes and strides.
struct Described {
  std::vector<int64_t> sizes, strides;
  cb_tensor tensor{};

  Described(void* data, int32_t dtype, int device) {
    tensor.data = data;
    tensor.dtype = dtype;
    tensor.device_index = device;
  }
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;

  const cb_tensor& done() {
    tensor.ndim = static_cast<int32_t>(sizes.size());
    tensor.sizes = sizes.data();
    tensor.strides = strides.data();
    tensor.numel = 1;
    for (const int64_t size : sizes) tensor.numel *= size;
    return tensor;
  }
};

// Adds the strides of a batch of `ndim` dimensions with items `step` elements apart.
void add_batch(Described& into, const int64_t* sizes, int ndim, int64_t step) {
  into.sizes.assign(sizes, sizes + ndim);
  into.strides.resize(static_cast<size_t>(ndim));
  for (int d = ndim; d-- > 0; step *= sizes[d]) into.strides[static_cast<size_t>(d)] = step;
}

void add(Described& into, int64_t size, int64_t stride) {
  into.sizes.push_back(size);
  into.strides.push_back(stride);
}

void exchange(const Call& call, const cb_tensor& tensor, const Matrices& batch, As as, bool store) {
  const int inner = tensor.ndim - 2;
  const bool is_transposed = as == As::Transposed;
  const int64_t rows = std::min(batch.rows, is_transposed ? columns_of(tensor) : rows_of(tensor)),
                columns = std::min(batch.columns, is_transposed ? rows_of(tensor) : columns_of(tensor));
  Described outer(tensor.data, tensor.dtype, tensor.device_index), own(batch.data, batch.dtype, call.device());
  outer.sizes.assign(tensor.sizes, tensor.sizes + inner);
  outer.strides.assign(tensor.strides, tensor.strides + inner);
  add_batch(own, tensor.sizes, inner, batch.step());
  const int64_t row = tensor.strides[inner], column = tensor.strides[inner + 1];
  add(outer, rows, is_transposed ? column : row);
  add(outer, columns, is_transposed ? row : column);
  add(own, rows, 1);
  add(own, columns, batch.leading());
  if (store)
    move_elements(call, outer.done(), own.done());
  else
    move_elements(call, own.done(), outer.done());
}

}  // namespace

int int32_size(int64_t size) {
  if (size > std::numeric_limits<int32_t>::max())
    throw failure(CB_RUNTIME_ERROR,
                  "matrices with a side of %lld are larger than the 32-bit sizes of this routine of NVIDIA's libraries",
                  static_cast<long long>(size));
  return static_cast<int>(size);
}

OwnMatrices::OwnMatrices(const Call& call, int32_t dtype, int64_t batches, int64_t rows, int64_t columns)
    : Matrices{nullptr, dtype, batches, rows, columns}, memory(call, bytes()) {
  data = memory.data();
}

void load(const Call& call, const Matrices& to, const cb_tensor& from, As as) {
  exchange(call, from, to, as, false);
}

void store(const Call& call, const cb_tensor& to, const Matrices& from, As as) {
  exchange(call, to, from, as, true);
}

OwnMatrices loaded_from(const Call& call, const cb_tensor& from, As as) {
  const bool is_transposed = as == As::Transposed;
  OwnMatrices batch(call, from.dtype, batch_count(from, 2), is_transposed ? columns_of(from) : rows_of(from),
                    is_transposed ? rows_of(from) : columns_of(from));
  load(call, batch, from, as);
  return batch;
}

void copy_corner(const Call& call, const Matrices& to, const Matrices& from) {
  const int64_t rows = std::min(to.rows, from.rows), columns = std::min(to.columns, from.columns);
  Described target(to.data, to.dtype, call.device()), source(from.data, from.dtype, call.device());
  add(target, to.batches, to.step());
  add(source, to.batches, from.step());
  add(target, rows, 1);
  add(source, rows, 1);
  add(target, columns, to.leading());
  add(source, columns, from.leading());
  move_elements(call, target.done(), source.done());
}

Packed::Packed(const Call& call, const cb_tensor& out)
    : call_(call),
      out_(out),
      memory_(call, is_contiguous(out) ? 0 : static_cast<size_t>(out.numel * itemsize(out.dtype))),
      data_(is_contiguous(out) ? out.data : memory_.data()) {}

void Packed::finish() const {
  if (data_ == out_.data) return;
  Described packed(data_, out_.dtype, out_.device_index);
  add_batch(packed, out_.sizes, out_.ndim, 1);
  move_elements(call_, out_, packed.done());
}

Workspace packed_copy(const Call& call, const cb_tensor& in) {
  Workspace memory(call, static_cast<size_t>(in.numel * itemsize(in.dtype)));
  Described packed(memory.data(), in.dtype, in.device_index);
  add_batch(packed, in.sizes, in.ndim, 1);
  move_elements(call, packed.done(), in);
  return memory;
}

std::optional<int64_t> batch_step(const cb_tensor& t) {
  int64_t step = 0, count = 1;
  for (int d = t.ndim - 3; d >= 0; --d) {
    if (t.sizes[d] == 1) continue;
    if (count == 1)
      step = t.strides[d];
    else if (t.strides[d] != step * count)
      return std::nullopt;
    count *= t.sizes[d];
  }
  return step;
}

}  // namespace candelabra::cuda
