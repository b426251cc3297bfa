// index and index_put: indices of several dimensions. They become one offset for each slice of the
// dimensions that are not indexed; see kernels/indexing.cl.
#include "candelabra/arguments/indexing.hpp"
#include "families.hpp"
#include "indexing.hpp"
#include "slices.hpp"

namespace candelabra::opencl {

namespace {

using Indices = std::span<const cb_tensor* const>;

bool is_indexed(Indices indices, int dim) {
  return static_cast<size_t>(dim) < indices.size() && indices[static_cast<size_t>(dim)];
}

// Which dimensions are indexed, and where those of the indices are in the indexed shape.
struct Indexed {
  explicit Indexed(Indices indices) {
    int count = 0, first = 0, last = 0;
    for (int d = 0; d < static_cast<int>(indices.size()); ++d) {
      if (!is_indexed(indices, d)) continue;
      if (count++ == 0) first = d;
      last = d;
      shape = indices[static_cast<size_t>(d)];
    }
    position = last - first + 1 == count ? first : 0;  // in front unless they are adjacent
  }
  const cb_tensor* shape = nullptr;  // one of the indices: they have one shape
  int position = 0;
};

// The offset of each slice of self in elements, int64. Throws before anything is written.
Workspace offsets_of(const Call& call, const cb_tensor& self, Indices indices, const cb_tensor& shape) {
  const Workspace offsets(call, shape.numel * 8);
  if (shape.numel == 0) return offsets;
  const IndexCheck check(call);
  bool is_first = true;
  for (int d = 0; d < static_cast<int>(indices.size()); ++d) {
    if (!is_indexed(indices, d)) continue;
    const cb_tensor& index = *indices[static_cast<size_t>(d)];
    Launch(call, "indexing", "add_offsets", {{"T", CB_UINT8}})
        .memory(offsets.memory)
        .memory(index)
        .structure(operands_of({&index}, CB_INT64, true))
        .value(d)
        .value(self.sizes[d])
        .value(self.strides[d])
        .value(std::exchange(is_first, false))
        .memory(check.memory())
        .items(index.numel);
  }
  if (const auto bad = check.bad())
    throw failure(CB_INDEX_ERROR, "index %lld is out of bounds for dimension %lld with size %lld",
                  static_cast<long long>(bad->index), static_cast<long long>(bad->dim),
                  static_cast<long long>(self.sizes[bad->dim]));
  return offsets;
}

// A tensor of the indexed shape, with the dimensions of the indices in front.
View with_indices_first(const cb_tensor& tensor, const Indexed& indexed) {
  View view(tensor);
  const int begin = indexed.position, end = begin + indexed.shape->ndim;
  std::rotate(view.sizes.begin(), view.sizes.begin() + begin, view.sizes.begin() + end);
  std::rotate(view.strides.begin(), view.strides.begin() + begin, view.strides.begin() + end);
  return view;
}

// The first slice of self in these sizes: stride 0 in the dimensions of the indices.
View first_slice(const cb_tensor& self, Indices indices, const Indexed& indexed, const View& sizes) {
  View view(self);
  view.sizes = sizes.sizes;
  view.strides.assign(static_cast<size_t>(indexed.shape->ndim), 0);
  for (int d = 0; d < self.ndim; ++d)
    if (!is_indexed(indices, d)) view.strides.push_back(self.strides[d]);
  return view;
}

void index(Call& call) {
  const arguments::Index args(call);
  const cb_tensor &out = call.output(), &self = *args.self;
  const Indexed indexed(args.indices);
  if (!indexed.shape) return copy_elements(call, out, self);
  const Workspace offsets = offsets_of(call, self, args.indices, *indexed.shape);
  if (out.numel == 0) return;
  View target = with_indices_first(out, indexed);
  View source = first_slice(self, args.indices, indexed, target);
  View list = target;  // the offsets, in row-major order of the indices
  list.descriptor.offset = 0;
  list.strides.assign(list.sizes.size(), 0);
  int64_t step = 1;
  for (int d = indexed.shape->ndim - 1; d >= 0; --d) {
    list.strides[static_cast<size_t>(d)] = step;
    step *= indexed.shape->sizes[d];
  }
  Launch(call, "indexing", "gather", {{"T", moved_dtype(out)}})
      .memory(out)
      .memory(offsets.memory)
      .memory(self)
      .structure(operands_of({&target.get(), &list.get(), &source.get()}, CB_UINT8))
      .value(1)
      .items(out.numel);
}

// The order of `count` offsets. Slices with equal ones are in their order.
Workspace order_of(const Call& call, const Workspace& offsets, int64_t count) {
  Slices slices = {};
  slices.operands.numel = slices.operands.ndim = slices.operands.sizes[0] = 1;
  slices.along.size = count;
  slices.along.steps[2] = 1;
  const Workspace order(call, padded_size(slices) * 8);
  sort_order(call, order.memory, offsets.memory, CB_INT64, slices, false);
  return order;
}

void index_put(Call& call) {
  const arguments::IndexPut args(call);
  const cb_tensor &out = call.output(), &values = *args.values;
  const Indexed indexed(args.indices);
  if (!indexed.shape || (args.accumulate && kernel::is_complex_dtype(out.dtype))) throw not_implemented();
  const Workspace offsets = offsets_of(call, out, args.indices, *indexed.shape);
  start_from(call, *args.self);
  if (values.numel == 0) return;
  const int64_t count = indexed.shape->numel;
  const Workspace order = order_of(call, offsets, count);
  View source = with_indices_first(values, indexed);
  View target = first_slice(out, args.indices, indexed, source);
  Launch(call, "indexing", "index_put", {{"T", args.accumulate ? out.dtype : moved_dtype(out)}})
      .memory(out)
      .memory(values)
      .memory(offsets.memory)
      .memory(order.memory)
      .structure(operands_of({&target.get(), &source.get()}, CB_UINT8, true))
      .value(count)
      .value(args.accumulate)
      .items(values.numel);
}

}  // namespace

void add_advanced_indexing(Table& table) {
  constexpr uint64_t movable = real_dtypes | CB_DTYPE_BIT(CB_COMPLEX64);
  table.add<index>("index", 0, movable);
  table.add<index_put>("index_put", 0, movable);
}

}  // namespace candelabra::opencl
