// gather, scatter, index_select, index_add, embedding and cat; see kernels/indexing.cl.
#include "candelabra/arguments/indexing.hpp"

#include "candelabra/arguments/joining.hpp"
#include "families.hpp"
#include "indexing.hpp"
#include "slices.hpp"

namespace candelabra::opencl {

int32_t moved_dtype(const cb_tensor& tensor) {
  static constexpr int32_t by_size[9] = {0, CB_UINT8, CB_UINT16, 0, CB_UINT32, 0, 0, 0, CB_UINT64};
  return by_size[kernel::itemsize(tensor.dtype)];
}

std::optional<int64_t> bad_index(const Call& call, const cb_tensor& indices, int64_t low, int64_t size) {
  if (indices.numel == 0) return std::nullopt;
  const IndexCheck check(call);
  Launch(call, "indexing", "check_indices", {{"T", CB_UINT8}})
      .memory(indices)
      .structure(operands_of({&indices}, CB_INT64))
      .value(low)
      .value(size)
      .memory(check.memory())
      .items(indices.numel);
  const auto bad = check.bad();
  return bad ? std::optional(bad->index) : std::nullopt;
}

void start_from(const Call& call, const cb_tensor& self) {
  const cb_tensor& out = call.output();
  if (self.storage != out.storage || self.offset != out.offset) copy_elements(call, out, self);
}

namespace {

// The tensor with stride 0 along `dim` and the sizes of another one.
View indexed(const cb_tensor& tensor, int64_t dim, const cb_tensor& sizes) {
  View view(tensor);
  view.sizes.assign(sizes.sizes, sizes.sizes + sizes.ndim);
  if (!view.strides.empty()) view.strides[static_cast<size_t>(dim)] = 0;
  return view;
}

// A list of indices along `dim`, expanded to the sizes of another tensor.
View expanded(const cb_tensor& index, int64_t dim, const cb_tensor& sizes) {
  View view(index);
  view.sizes.assign(sizes.sizes, sizes.sizes + sizes.ndim);
  view.strides.assign(view.sizes.size(), 0);
  view.strides[static_cast<size_t>(dim)] = index.ndim ? index.strides[0] : 0;
  return view;
}

// gather and scatter report an index as PyTorch does.
void check_gathered(const Call& call, const cb_tensor& index, int64_t dim, int64_t size) {
  if (const auto bad = bad_index(call, index, 0, size))
    throw failure(CB_RUNTIME_ERROR, "index %lld is out of bounds for dimension %lld with size %lld",
                  static_cast<long long>(*bad), static_cast<long long>(dim), static_cast<long long>(size));
}

void check_listed(const Call& call, const cb_tensor& index, int64_t dim, int64_t size) {
  if (const auto bad = bad_index(call, index, 0, size))
    throw failure(CB_INDEX_ERROR, "index %lld is out of bounds for dimension %lld with size %lld",
                  static_cast<long long>(*bad), static_cast<long long>(dim), static_cast<long long>(size));
}

int64_t size_along(const cb_tensor& tensor, int64_t dim) {
  return tensor.ndim ? tensor.sizes[dim] : 1;
}

int64_t step_along(const cb_tensor& tensor, int64_t dim) {
  return tensor.ndim ? tensor.strides[dim] : 0;
}

void run_gather(const Call& call, const cb_tensor& out, const cb_tensor& index, const cb_tensor& self, int64_t step) {
  Launch(call, "indexing", "gather", {{"T", moved_dtype(out)}})
      .memory(out)
      .memory(index)
      .memory(self)
      .structure(operands_of({&out, &index, &self}, CB_UINT8))
      .value(step)
      .items(out.numel);
}

void gather(Call& call) {
  const arguments::Gather args(call);
  const cb_tensor& out = call.output();
  check_gathered(call, *args.index, args.dim, size_along(*args.self, args.dim));
  if (out.numel == 0) return;
  View self = indexed(*args.self, args.dim, out);
  run_gather(call, out, *args.index, self.get(), step_along(*args.self, args.dim));
}

void index_select(Call& call) {
  const arguments::IndexSelect args(call);
  const cb_tensor& out = call.output();
  check_listed(call, *args.index, args.dim, size_along(*args.self, args.dim));
  if (out.numel == 0) return;
  if (out.ndim == 0 || args.self->ndim == 0) throw not_implemented();
  View self = indexed(*args.self, args.dim, out);
  View index = expanded(*args.index, args.dim, out);
  run_gather(call, out, index.get(), self.get(), step_along(*args.self, args.dim));
}

// weight[indices]: rows, along the last dimension of the output.
void embedding(Call& call) {
  const arguments::Embedding args(call);
  const cb_tensor &out = call.output(), &weight = *args.weight;
  check_listed(call, *args.indices, 0, weight.sizes[0]);
  if (out.numel == 0) return;
  View index(*args.indices);
  index.sizes.push_back(weight.sizes[1]);
  index.strides.push_back(0);
  View rows(weight);
  rows.sizes.assign(out.sizes, out.sizes + out.ndim);
  rows.strides.assign(rows.sizes.size(), 0);
  rows.strides.back() = weight.strides[1];
  run_gather(call, out, index.get(), rows.get(), weight.strides[0]);
}

void scatter(Call& call) {
  const arguments::Scatter args(call);
  const cb_tensor &out = call.output(), &index = *args.index, &src = *args.src;
  check_gathered(call, index, args.dim, size_along(*args.self, args.dim));
  start_from(call, *args.self);
  if (index.numel == 0) return;
  View target = indexed(out, args.dim, index);
  View source(src);  // may be larger than index
  if (!(src.flags & CB_TENSOR_NUMBER)) source.sizes.assign(index.sizes, index.sizes + index.ndim);
  const bool is_number = src.flags & CB_TENSOR_NUMBER;
  const cb_tensor& first = target.get();
  Launch(call, "indexing", "scatter", {{"T", out.dtype}})
      .memory(out)
      .memory(index)
      .memory(is_number ? out : src)
      .structure(operands_of({&first, &index, is_number ? &src : &source.get()}, out.dtype))
      .value(step_along(out, args.dim))
      .items(index.numel);
}

// Adds src, of the sizes of index, along `dim`. An index that is `skipped` adds nothing.
void add_slices_at(const Call& call, const cb_tensor& index, const cb_tensor& src, int64_t dim, uint64_t alpha,
                   int64_t skipped = -1) {
  const cb_tensor& out = call.output();
  if (index.numel == 0) return;
  if (index.ndim == 0) throw not_implemented();
  View target(out);
  target.sizes.assign(index.sizes, index.sizes + index.ndim);
  View source(src);
  source.sizes = target.sizes;
  const Slices slices = slices_of({&target.get(), &index, &source.get()}, dim, index.sizes[dim]);
  Launch(call, "indexing", "scatter_add", {{"T", out.dtype}})
      .memory(out)
      .memory(index)
      .memory(src)
      .structure(slices.operands)
      .structure(slices.along)
      .bits(alpha)
      .value(skipped)
      .items(slices.operands.numel);
}

void scatter_add(Call& call) {
  const arguments::ScatterAdd args(call);
  check_gathered(call, *args.index, args.dim, size_along(*args.self, args.dim));
  start_from(call, *args.self);
  add_slices_at(call, *args.index, *args.src, args.dim, number_bits(1.0, call.output().dtype));
}

void index_add(Call& call) {
  const arguments::IndexAdd args(call);
  if (args.self->ndim == 0 || args.source->ndim == 0) throw not_implemented();
  check_listed(call, *args.index, args.dim, size_along(*args.self, args.dim));
  start_from(call, *args.self);
  View index = expanded(*args.index, args.dim, *args.source);
  add_slices_at(call, index.get(), *args.source, args.dim, number_bits(*args.alpha, call.output().dtype));
}

// The rows of grad, added to those that the indices name: index_add of (numel, E) to zeros.
void embedding_backward(Call& call) {
  const arguments::EmbeddingBackward args(call);
  const cb_tensor &out = call.output(), &grad = *args.grad, &indices = *args.indices;
  check_listed(call, indices, 0, args.num_weights);
  if (out.numel == 0) return;
  fill_zeros(call, out);
  if (indices.numel == 0) return;
  if (!kernel::is_contiguous(grad) || !kernel::is_contiguous(indices)) throw not_implemented();
  const int64_t width = out.sizes[1];
  View rows(grad), index(indices);
  rows.sizes = index.sizes = {indices.numel, width};
  rows.strides = {width, 1};
  index.strides = {1, 0};
  add_slices_at(call, index.get(), rows.get(), 0, number_bits(1.0, out.dtype), args.padding_idx);
}

void cat(Call& call) {
  const arguments::Cat args(call);
  const cb_tensor& out = call.output();
  const auto axis = static_cast<size_t>(args.dim);
  uint64_t offset = out.offset;
  for (const cb_tensor* tensor : args.tensors) {
    View part(out);
    part.sizes[axis] = tensor->sizes[axis];
    part.descriptor.offset = offset;
    copy_elements(call, part.get(), *tensor);
    offset += static_cast<uint64_t>(tensor->sizes[axis] * out.strides[axis] * kernel::itemsize(out.dtype));
  }
}

}  // namespace

void add_indexing(Table& table) {
  constexpr uint64_t movable = real_dtypes | CB_DTYPE_BIT(CB_COMPLEX64);
  constexpr uint64_t numbers = float_dtypes | integer_dtypes;
  table.add<gather>("gather", 0, movable);
  table.add<index_select>("index_select", 0, movable);
  table.add<embedding>("embedding", 0, movable);
  table.add<embedding_backward>("embedding_backward", CB_KERNEL_CONTIGUOUS, numbers);
  table.add<scatter>("scatter", 0, real_dtypes);
  table.add<scatter_add>("scatter_add", 0, numbers);
  table.add<index_add>("index_add", 0, numbers);
  table.add<cat>("cat", 0, movable);
}

}  // namespace candelabra::opencl
