// Advanced indexing; reading and writing through a mask.
#include "candelabra/positions.hpp"
#include "operators/operator.hpp"
#include "shapes/checks.hpp"
#include "shapes/indexing_overlapping.hpp"
#include "shapes/shapes.hpp"
#include "tensor/layout_order.hpp"

namespace candelabra::shapes {

namespace {

TensorObject* on_device(Call& call, TensorObject* tensor) {
  return tensor->device() == call.device ? tensor : call.keep(to_device(tensor, call.device));
}

// Appends one int64 index for each dimension of the mask: the coordinates of its true elements.
// `next` counts the dimensions of self that have an entry already.
void append_mask(Call& call, const TensorObject& self, TensorObject* mask, int position, TensorObject** expanded,
                 int& next) {
  const int count = mask->ndim();
  check(count > 0, PyExc_IndexError, call.title(), "(): the mask at position ", position,
        " has no dimensions; index self.unsqueeze(0) with mask.unsqueeze(0) instead");
  for (int d = 0; d < count; ++d) {
    check(mask->sizes[d] == self.sizes[next + d], PyExc_IndexError, "The shape of the mask ", shown(mask->sizes),
          " at index ", d, " does not match the shape of the indexed tensor ", shown(self.sizes), " at index ",
          next + d);
  }
  static Operator* nonzero_operator = find_operator("nonzero");
  Ref<> found = call_operator(*nonzero_operator, {as_object(mask)});
  TensorObject* rows = call.keep(TensorRef(as_tensor(found.release_object())));
  for (int d = 0; d < count; ++d) {
    expanded[next++] =
        call.keep(make_view(rows, Dims{rows->sizes[0]}, Dims{rows->strides[0]}, rows->offset + d * rows->strides[1]));
  }
}

// Broadcasts the index tensors to one shape and returns the shape.
Dims broadcast_indices(Call& call, TensorObject** expanded, int count) {
  Dims shape;
  bool first = true;
  for (int d = 0; d < count; ++d) {
    if (!expanded[d]) continue;
    const Dims& other = expanded[d]->sizes;
    if (first) {
      shape = other;
      first = false;
    } else if (!(other == shape)) {
      Dims joined(std::max(shape.size(), other.size()), 1);
      for (const Dims* part : std::initializer_list<const Dims*>{&shape, &other}) {
        const int added = joined.size() - part->size();
        for (int k = 0; k < part->size(); ++k) {
          int64_t& size = joined[added + k];
          if (size != (*part)[k] && size != 1 && (*part)[k] != 1) {
            std::string shapes;
            for (int e = 0; e < count; ++e) {
              if (expanded[e]) shapes += (shapes.empty() ? "" : ", ") + to_text(expanded[e]->sizes);
            }
            raise(PyExc_IndexError, "shape mismatch: indexing tensors could not be broadcast together with shapes ",
                  shapes);
          }
          if (size == 1) size = (*part)[k];
        }
      }
      shape = std::move(joined);
    }
  }
  for (int d = 0; d < count; ++d) {
    TensorObject* index = expanded[d];
    if (!index || index->sizes == shape) continue;
    Dims strides(shape.size(), 0);
    const int added = shape.size() - index->ndim();
    for (int k = 0; k < index->ndim(); ++k)
      strides[added + k] = index->sizes[k] == shape[added + k] ? index->strides[k] : 0;
    expanded[d] = call.keep(make_view(index, shape, std::move(strides), index->offset));
  }
  return shape;
}

// The shape of the result of indexing. A dimension comes from self or from the indices: it has a
// stride there, and 0 in the other.
struct IndexedShape {
  Dims sizes, self_strides, index_strides;
  bool row_major;  // whether self and the indices are contiguous

  void add(int64_t size, int64_t self_stride, int64_t index_stride) {
    sizes.push_back(size);
    self_strides.push_back(self_stride);
    index_strides.push_back(index_stride);
  }
};

// Gives the kernel one entry for each dimension of self: null or an int64 tensor, all of one shape.
// index, index_put: the same positions.
IndexedShape normalize_indices(Call& call) {
  const TensorObject& self = call.tensor(positions::index::self);
  Argument& list = call[positions::index::indices];
  const int ndim = self.ndim();
  TensorObject** expanded = call.arena.make<TensorObject*>(static_cast<size_t>(std::max(ndim, 1)));
  std::fill_n(expanded, ndim, nullptr);
  int next = 0;  // the dimension of self that the next entry is for
  for (int i = 0; i < list.count; ++i) {
    TensorObject* entry = list.tensors[i];
    const bool is_mask = entry && (entry->dtype == Dtype::Bool || entry->dtype == Dtype::UInt8);
    check(next + (is_mask ? entry->ndim() : 1) <= ndim, PyExc_IndexError, "too many indices for tensor of dimension ",
          ndim, " (got ", list.count, ")");
    if (!entry) {
      ++next;
      continue;
    }
    entry = on_device(call, entry);
    if (is_mask) {
      if (entry->dtype == Dtype::UInt8) {
        warn("indexing with dtype candelabra.uint8 is deprecated, please use a dtype candelabra.bool instead.");
      }
      append_mask(call, self, entry, i, expanded, next);
      continue;
    }
    check(entry->dtype == Dtype::Int64 || entry->dtype == Dtype::Int32, PyExc_IndexError,
          "tensors used as indices must be long, int, byte or bool tensors, but the one at position ", i, " is ",
          info(entry->dtype).type_name);
    expanded[next++] = entry->dtype == Dtype::Int64 ? entry : call.keep(convert_dtype(entry, Dtype::Int64));
  }
  const Dims shape = broadcast_indices(call, expanded, ndim);
  list.tensors = expanded;
  list.count = ndim;

  int first = -1, last = -1, given = 0;
  for (int d = 0; d < ndim; ++d) {
    if (!expanded[d]) continue;
    if (first < 0) first = d;
    last = d;
    ++given;
    check(self.sizes[d] != 0 || expanded[d]->numel == 0, PyExc_IndexError,
          "index is out of bounds for dimension with size 0: dimension ", d);
  }
  const bool adjacent = given == last - first + 1;
  IndexedShape result;
  result.row_major = self.contiguous && (!given || shape.size() < 2 || expanded[first]->contiguous);
  for (int d = 0; d < ndim; ++d) {
    if (given && d == (adjacent ? first : 0)) {
      for (int k = 0; k < shape.size(); ++k) result.add(shape[k], 0, expanded[first]->strides[k]);
    }
    if (!expanded[d]) result.add(self.sizes[d], self.strides[d], 0);
  }
  return result;
}

void check_mask(const TensorObject& mask, const char* operator_name) {
  const Dtype dtype = mask.dtype;
  check(dtype == Dtype::Bool, PyExc_RuntimeError, operator_name,
        " only supports boolean masks, but got mask with dtype ", info(dtype).type_name,
        "; convert it with .to(candelabra.bool)");
}

}  // namespace

void index(Call& call) {
  namespace at = positions::index;
  IndexedShape shape = normalize_indices(call);
  Output& output = call.add_output(call.tensor(at::self).dtype, std::move(shape.sizes));
  if (shape.row_major) return;
  output.strides = strides_in_order(output.sizes, [&](int a, int b) {
    for (const Dims* of : {&shape.self_strides, &shape.index_strides}) {
      const int64_t outer = (*of)[a], inner = (*of)[b];
      if (outer != 0 && inner != 0 && outer != inner) return outer > inner ? 1 : -1;
    }
    return 0;
  });
}

void index_put(Call& call) {
  namespace at = positions::index_put;
  const TensorObject& self = call.tensor(at::self);
  const Dims indexed = normalize_indices(call).sizes;
  const TensorObject& values = call.tensor(at::values);
  check(values.dtype == self.dtype, PyExc_RuntimeError,
        "Index put requires the source and destination dtypes match, got ", info(self.dtype).type_name,
        " for the destination and ", info(values.dtype).type_name, " for the source.");
  // Leading dimensions of size 1 are dropped, as in an assignment.
  int skipped = 0;
  while (values.ndim() - skipped > indexed.size() && values.sizes[skipped] == 1) ++skipped;
  const std::span<const int64_t> sizes = std::span<const int64_t>(values.sizes).subspan(skipped);
  bool fits = static_cast<int>(sizes.size()) <= indexed.size();
  for (int d = 1; fits && d <= static_cast<int>(sizes.size()); ++d) {
    const int64_t size = sizes[sizes.size() - d];
    fits = size == 1 || size == indexed[indexed.size() - d];
  }
  check(fits, PyExc_RuntimeError, "shape mismatch: value tensor of shape ", shown(values.sizes),
        " cannot be broadcast to indexing result of shape ", shown(indexed));
  if (skipped) call.set_descriptor(at::values, sizes, std::span<const int64_t>(values.strides).subspan(skipped));
  if (!(values.sizes == indexed)) call.broadcast(at::values, indexed);
  Output& output = call.add_output(self.dtype, self.sizes);
  if (!self.contiguous) output.strides = preserved_strides(self);
  write_overlapping(call, "index", {at::indices}, at::values);
}

void masked_fill(Call& call) {
  namespace at = positions::masked_fill;
  check_mask(call.tensor(at::mask), "masked_fill_");
  const TensorObject& self = call.tensor(at::self);
  const Argument& value = call[at::value];
  if (value.is_tensor()) {
    check(value.tensor->ndim() == 0, PyExc_RuntimeError,
          "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ", value.tensor->ndim(),
          " dimension(s).");
    check(!is_complex(value.tensor->dtype) || is_complex(self.dtype), PyExc_RuntimeError,
          "masked_fill_: value cannot be converted to type ", cpp_type_name(self.dtype), " without overflow");
  } else {
    check_number_fits(value.scalar, self.dtype, true);
  }
  call.convert(at::value, self.dtype);
  combine(call, {at::self, at::mask, at::value}, self.dtype);
  write_overlapping(call, "masked_select", {at::mask}, at::value);
}

void masked_scatter(Call& call) {
  namespace at = positions::masked_scatter;
  check_mask(call.tensor(at::mask), "masked_scatter_");
  const TensorObject &self = call.tensor(at::self), &source = call.tensor(at::source);
  check(self.dtype == source.dtype, PyExc_RuntimeError,
        "masked_scatter: expected self and source to have same dtypes but got ", info(self.dtype).type_name, " and ",
        info(source.dtype).type_name);
  combine(call, {at::self, at::mask}, self.dtype).strides.reset();
  call.make_contiguous(at::source);  // the kernel reads its elements in row-major order
}

void masked_select(Call& call) {
  namespace at = positions::masked_select;
  check(call.tensor(at::mask).dtype == Dtype::Bool, PyExc_RuntimeError,
        "masked_select: expected BoolTensor for mask, but got ", info(call.tensor(at::mask).dtype).type_name);
  const Dims sizes = broadcast_sizes(call.title(), call.tensor(at::self).sizes, call.tensor(at::mask).sizes);
  for (int i : {at::self, at::mask}) {
    if (!(call.tensor(i).sizes == sizes)) call.broadcast(i, sizes);
  }
  call.add_output(call.tensor(at::self).dtype, Dims{0});  // the kernel sets the size
}

void nonzero(Call& call) {
  namespace at = positions::nonzero;
  if (call.tensor(at::self).dtype == Dtype::Complex32) call.convert(at::self, Dtype::Bool);
  // The kernel sets the row count
  call.add_output(Dtype::Int64, Dims{0, call.tensor(at::self).ndim()});
}

}  // namespace candelabra::shapes
