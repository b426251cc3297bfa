// softmax, cumsum, sort and topk; see kernels/slices.cl.
#include "slices.hpp"

#include <bit>

#include "candelabra/arguments/scan.hpp"
#include "candelabra/arguments/softmax.hpp"
#include "candelabra/arguments/sorting.hpp"
#include "families.hpp"

namespace candelabra::opencl {

Slices slices_of(std::initializer_list<const cb_tensor*> tensors, int64_t dim, int64_t size) {
  Slices result = {};
  const cb_tensor& model = **tensors.begin();
  std::vector<int64_t> sizes(model.sizes, model.sizes + model.ndim);
  const auto axis = static_cast<size_t>(dim);
  sizes[axis] = 1;
  std::array<cb_tensor, max_operands> seen = {};
  size_t count = 0;
  int64_t numel = 1;
  for (const int64_t extent : sizes) numel *= extent;
  for (const cb_tensor* tensor : tensors) {
    seen[count] = *tensor;
    seen[count].sizes = sizes.data();
    seen[count].numel = numel;
    result.along.steps[count++] = tensor->strides[axis];
  }
  result.along.size = size;
  switch (count) {
    case 1:
      result.operands = operands_of({&seen[0]}, model.dtype);
      break;
    case 2:
      result.operands = operands_of({&seen[0], &seen[1]}, model.dtype);
      break;
    case 3:
      result.operands = operands_of({&seen[0], &seen[1], &seen[2]}, model.dtype);
      break;
    default:
      result.operands = operands_of({&seen[0], &seen[1], &seen[2], &seen[3]}, model.dtype);
  }
  return result;
}

int64_t padded_size(const Slices& slices) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(slices.along.size)));
}

void sort_order(const Call& call, cl_mem order, cl_mem self, int32_t dtype, const Slices& slices, bool descending) {
  const int64_t count = slices.operands.numel, padded = padded_size(slices);
  const auto kernel = [&](const char* name) { return Launch(call, "slices", name, {{"T", dtype}}); };
  kernel("sort_start").memory(order).value(padded).value(count * padded).items(count * padded);
  for (int64_t block = 2; block <= padded; block *= 2)
    for (int64_t distance = block / 2; distance > 0; distance /= 2)
      kernel("sort_step")
          .memory(order)
          .memory(self)
          .structure(slices.operands)
          .structure(slices.along)
          .value(padded)
          .value(block)
          .value(distance)
          .value(descending)
          .items(count * padded / 2);
}

namespace {

// Longer slices are sorted by a bitonic network, shorter ones by counting, in one launch.
constexpr int64_t longest_ranked = 512;

void softmax(Call& call) {  // also log_softmax
  const arguments::Softmax args(call);
  const cb_tensor& out = call.output();
  if (out.numel == 0) return;
  const Slices slices = slices_of({&out, args.self}, args.dim, out.sizes[args.dim]);
  Launch(call, "slices", std::string(call.name()), {{"T", out.dtype}})
      .memory(out)
      .memory(*args.self)
      .structure(slices.operands)
      .structure(slices.along)
      .groups(slices.operands.numel);
}

void softmax_backward(Call& call) {  // also log_softmax_backward
  const arguments::SoftmaxBackward args(call);
  const cb_tensor& out = call.output();
  if (out.numel == 0) return;
  const Slices slices = slices_of({&out, args.grad, args.output}, args.dim, out.sizes[args.dim]);
  Launch(call, "slices", std::string(call.name()), {{"T", out.dtype}})
      .memory(out)
      .memory(*args.grad)
      .memory(*args.output)
      .structure(slices.operands)
      .structure(slices.along)
      .groups(slices.operands.numel);
}

void cumsum(Call& call) {
  const arguments::Cumsum args(call);
  const cb_tensor& out = call.output();
  if (out.numel == 0) return;
  const Slices slices = slices_of({&out, args.self}, args.dim, out.sizes[args.dim]);
  Launch(call, "slices", "cumsum", {{"T", out.dtype}})
      .memory(out)
      .memory(*args.self)
      .structure(slices.operands)
      .structure(slices.along)
      .items(slices.operands.numel);
}

void sort_long(Call& call, const Slices& slices, const cb_tensor& self, int64_t kept, bool descending) {
  const int64_t count = slices.operands.numel, padded = padded_size(slices);
  const Workspace order(call, count * padded * 8);
  sort_order(call, order.memory, memory_of(self), self.dtype, slices, descending);
  Launch(call, "slices", "sort_finish", {{"T", self.dtype}})
      .memory(call.output(0))
      .memory(call.output(1))
      .memory(self)
      .memory(order.memory)
      .structure(slices.operands)
      .structure(slices.along)
      .value(padded)
      .value(kept)
      .items(count * kept);
}

// The first `kept` elements of each slice in order, and their indices.
void sort_slices(Call& call, const cb_tensor& self, int64_t dim, int64_t kept, bool descending) {
  if (call.output(0).numel == 0) return;
  const int64_t size = self.ndim == 0 ? 1 : self.sizes[dim];
  const Slices slices = slices_of({&call.output(0), &call.output(1), &self}, dim, size);
  if (size > longest_ranked) return sort_long(call, slices, self, kept, descending);
  Launch(call, "slices", "sort_by_rank", {{"T", self.dtype}})
      .memory(call.output(0))
      .memory(call.output(1))
      .memory(self)
      .structure(slices.operands)
      .structure(slices.along)
      .value(kept)
      .value(descending)
      .items(slices.operands.numel * size);
}

void sort(Call& call) {
  const arguments::Sort args(call);
  sort_slices(call, *args.self, args.dim, args.self->sizes[args.dim], args.descending);
}

void topk(Call& call) {
  const arguments::Topk args(call);
  sort_slices(call, *args.self, args.dim, args.k, args.largest);
}

}  // namespace

void add_slices(Table& table) {
  for (const char* name : {"softmax", "log_softmax"}) table.add<softmax>(name, 0, float_dtypes);
  for (const char* name : {"softmax_backward", "log_softmax_backward"})
    table.add<softmax_backward>(name, 0, float_dtypes);
  table.add<cumsum>("cumsum", 0, float_dtypes | integer_dtypes);
  table.add<sort>("sort", 0, real_dtypes);
  table.add<topk>("topk", 0, float_dtypes | integer_dtypes);
}

}  // namespace candelabra::opencl
