// Joining and rearranging tensors into new memory.
#include <algorithm>

#include "candelabra/positions.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

namespace {

// Converts the tensors of the list to their promoted dtype and returns it.
Dtype convert_to_common_dtype(Call& call, Argument& list) {
  Promotion promotion;
  for (int i = 0; i < list.count; ++i) promotion.add_tensor(list.tensors[i]->dtype, list.tensors[i]->ndim() == 0);
  const Dtype dtype = promotion.result();
  const TensorObject* given = call.outputs[0].given;
  check(!given || can_cast(dtype, given->dtype), PyExc_TypeError, call.title(),
        "(): input types can't be cast to the desired output type ", given ? info(given->dtype).type_name : "");
  for (int i = 0; i < list.count; ++i) {
    TensorObject*& tensor = list.tensors[i];
    if (tensor->dtype != dtype) tensor = call.keep(convert_dtype(tensor, dtype));
  }
  return dtype;
}

// cat skips one-dimensional empty tensors, whatever the shape of the others, as PyTorch does since
// its first release.
bool is_legacy_empty(const TensorObject& tensor) {
  return tensor.ndim() == 1 && tensor.sizes[0] == 0;
}

// Whether a batch of images is in channels-last order, with gaps or without: a part of such a batch
// has gaps, and parts are joined in that order.
bool orders_channels_last(const TensorObject& tensor) {
  if (tensor.ndim() != 4 || tensor.contiguous || tensor.numel == 0 || tensor.strides[1] == 0)
    return is_channels_last_batch(tensor);
  int64_t min_stride = 0;
  for (int dim : {1, 3, 2, 0}) {
    if (tensor.strides[dim] < min_stride) return false;
    // A single image of one channel is in both orders, and counts as row-major.
    if (dim == 0 && min_stride == tensor.strides[1]) return false;
    min_stride = tensor.strides[dim] * std::max<int64_t>(tensor.sizes[dim], 1);
  }
  return true;
}

bool all_order_channels_last(const Argument& list) {
  return std::all_of(list.tensors, list.tensors + list.count,
                     [](const TensorObject* tensor) { return orders_channels_last(*tensor); });
}

}  // namespace

void cat(Call& call) {
  namespace at = positions::cat;
  Argument& list = call[at::tensors];
  check(list.count > 0, PyExc_ValueError, "cat(): expected a non-empty list of Tensors");
  for (int i = 0; i < list.count; ++i) {
    check(list.tensors[i]->ndim() > 0, PyExc_RuntimeError, "cat(): zero-dimensional tensor (at position ", i,
          ") cannot be concatenated; use stack()");
  }
  const Dtype dtype = convert_to_common_dtype(call, list);
  const TensorObject* first = nullptr;
  int first_position = 0;
  for (int i = 0; i < list.count && !first; ++i) {
    if (!is_legacy_empty(*list.tensors[i])) {
      first = list.tensors[i];
      first_position = i;
    }
  }
  if (!first) {                // all tensors are skipped
    call.set_int(at::dim, 0);  // as in PyTorch, these have every dimension
    list.count = 1;
    call.add_output(dtype, Dims{0});
    return;
  }
  const int ndim = first->ndim(), dim = call.dim(at::dim, ndim);
  Dims sizes = first->sizes;
  int kept = 0;
  for (int i = first_position; i < list.count; ++i) {
    TensorObject* tensor = list.tensors[i];
    if (is_legacy_empty(*tensor)) continue;
    if (tensor != first) {
      check(tensor->ndim() == ndim, PyExc_RuntimeError, "Tensors must have same number of dimensions: got ", ndim,
            " and ", tensor->ndim(), " (shapes ", shown(first->sizes), " and ", shown(tensor->sizes), ")");
      for (int d = 0; d < ndim; ++d) {
        check(d == dim || tensor->sizes[d] == first->sizes[d], PyExc_RuntimeError,
              "Sizes of tensors must match except in dimension ", dim, ". Expected size ", first->sizes[d],
              " but got size ", tensor->sizes[d], " for tensor number ", i, " in the list.");
      }
    }
    if (kept > 0) {
      check(!__builtin_add_overflow(sizes[dim], tensor->sizes[dim], &sizes[dim]), PyExc_RuntimeError,
            "cat(): the size of the result overflows");
    }
    list.tensors[kept++] = tensor;
  }
  list.count = kept;
  set_layout(call.add_output(dtype, std::move(sizes)), all_order_channels_last(list));
}

void stack(Call& call) {
  namespace at = positions::stack;
  Argument& list = call[at::tensors];
  check(list.count > 0, PyExc_RuntimeError, "stack expects a non-empty TensorList");
  const Dims& sizes = list.tensors[0]->sizes;
  for (int i = 1; i < list.count; ++i) {
    check(list.tensors[i]->sizes == sizes, PyExc_RuntimeError, "stack expects each tensor to be equal size, but got ",
          shown(sizes), " at entry 0 and ", shown(list.tensors[i]->sizes), " at entry ", i);
  }
  Dims result = sizes;
  const int dim = call.dim(at::dim, sizes.size() + 1);
  result.insert(dim, list.count);
  const Dtype dtype = convert_to_common_dtype(call, list);
  Output& output = call.add_output(dtype, std::move(result));
  if (dim >= static_cast<int>(sizes.size()) || !all_order_channels_last(list)) return;
  // The strides of the tensors joined along dim, which is then split in two.
  Dims joined = list.tensors[0]->sizes;
  joined[dim] *= list.count;
  Dims strides = channels_last_strides(joined);
  strides.insert(dim, strides[dim] * list.tensors[0]->sizes[dim]);
  output.strides = std::move(strides);
}

void flip(Call& call) {
  namespace at = positions::flip;
  const TensorObject& self = call.tensor(at::self);
  const uint64_t set = dim_set(call.ints(at::dims), self.ndim());
  Dims dims;
  for (int d = 0; d < self.ndim(); ++d) {
    if (set >> d & 1) dims.push_back(d);
  }
  call.set_ints(at::dims, dims);
  Output& output = call.add_output(self.dtype, self.sizes);
  if (!self.contiguous) output.strides = preserved_strides(self);
}

// tril, triu: the same positions.
void triangle(Call& call) {
  namespace at = positions::tril;
  const TensorObject& self = call.tensor(at::self);
  check(self.ndim() >= 2, PyExc_RuntimeError, base_name(call),
        ": input tensor must have at least 2 dimensions, but got shape ", shown(self.sizes));
  call.add_output(self.dtype, self.sizes);
}

namespace {

// Adds an output of these sizes, in channels-last order where self is.
void add_rearranged(Call& call, const TensorObject& self, Dims sizes) {
  set_layout(call.add_output(self.dtype, std::move(sizes)), is_channels_last_batch(self));
}

int64_t product(const Call& call, int64_t a, int64_t b) {
  int64_t result;
  check(!__builtin_mul_overflow(a, b, &result), PyExc_RuntimeError, base_name(call),
        "(): the size of the result overflows");
  return result;
}

}  // namespace

void pixel_shuffle(Call& call) {
  namespace at = positions::pixel_shuffle;
  const TensorObject& self = call.tensor(at::self);
  Dims sizes = self.sizes;
  const int ndim = self.ndim();
  const int64_t factor = call.integer(at::upscale_factor);
  check(ndim >= 3, PyExc_RuntimeError, "pixel_shuffle expects input to have at least 3 dimensions, but got input with ",
        ndim, " dimension(s)");
  check(factor > 0, PyExc_RuntimeError, "pixel_shuffle expects a positive upscale_factor, but got ", factor);
  const int64_t square = product(call, factor, factor), channels = sizes[ndim - 3];
  check(channels % square == 0, PyExc_RuntimeError,
        "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
        "input.size(-3)=",
        channels, " is not divisible by ", square);
  sizes[ndim - 3] = channels / square;
  for (int d : {ndim - 2, ndim - 1}) sizes[d] = product(call, sizes[d], factor);
  add_rearranged(call, self, std::move(sizes));
}

void pixel_unshuffle(Call& call) {
  namespace at = positions::pixel_unshuffle;
  const TensorObject& self = call.tensor(at::self);
  Dims sizes = self.sizes;
  const int ndim = self.ndim();
  const int64_t factor = call.integer(at::downscale_factor);
  check(ndim >= 3, PyExc_RuntimeError,
        "pixel_unshuffle expects input to have at least 3 dimensions, but got input with ", ndim, " dimension(s)");
  check(factor > 0, PyExc_RuntimeError, "pixel_unshuffle expects a positive downscale_factor, but got ", factor);
  for (int back : {2, 1}) {
    int64_t& size = sizes[ndim - back];
    check(size % factor == 0, PyExc_RuntimeError, "pixel_unshuffle expects ", back == 2 ? "height" : "width",
          " to be divisible by downscale_factor, but input.size(-", back, ")=", size, " is not divisible by ", factor);
    size /= factor;
  }
  sizes[ndim - 3] = product(call, sizes[ndim - 3], product(call, factor, factor));
  add_rearranged(call, self, std::move(sizes));
}

void channel_shuffle(Call& call) {
  namespace at = positions::channel_shuffle;
  const TensorObject& self = call.tensor(at::self);
  const Dims& sizes = self.sizes;
  const int64_t groups = call.integer(at::groups);
  check(sizes.size() >= 3, PyExc_RuntimeError, "channel_shuffle expects input with > 2 dims, but got input with sizes ",
        shown(sizes));
  check(groups > 0, PyExc_RuntimeError,
        "Number of groups to divide channels in must be positive. Value of groups:", groups);
  check(sizes[1] % groups == 0, PyExc_RuntimeError, "Number of channels must be divisible by groups. Got ", sizes[1],
        " channels and ", groups, " groups.");
  add_rearranged(call, self, sizes);
}

}  // namespace candelabra::shapes
