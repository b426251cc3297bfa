// Maximum and average pooling, and their gradients; see kernels/pooling.cl.
#include "candelabra/arguments/pooling.hpp"

#include <limits>

#include "families.hpp"
#include "indexing.hpp"
#include "runtime/launch.hpp"

namespace candelabra::opencl {

namespace {

using Ints = std::span<const int64_t>;

// The struct of the same name in kernels/pooling.cl.
struct Pooling {
  int64_t planes, channels;
  int64_t in[3], out[3], kernel_size[3], stride[3], padding[3], dilation[3];
  int64_t in_strides[5], out_strides[5], index_strides[5];
  uint64_t in_offset, out_offset, index_offset;
  uint64_t lowest;
  int64_t is_adaptive, counts_padding, divisor;
};

// Strides of (N, C, depth, height, width), 0 for dimensions that the tensor does not have.
void set_strides(int64_t* strides, const cb_tensor& tensor) {
  const int missing = 5 - tensor.ndim;
  for (int d = 0; d < 5; ++d)
    strides[d] = d < 2 ? tensor.strides[d] : d - missing < 2 ? 0 : tensor.strides[d - missing];
}

// Adaptive windows from `in`, the input or its gradient, to `out`, the output or its gradient.
Pooling adaptive_pooling(const cb_tensor& in, const cb_tensor& out) {
  Pooling result = {};
  result.planes = in.sizes[0] * in.sizes[1];
  result.channels = in.sizes[1];
  const int missing = 5 - in.ndim;
  for (int d = 0; d < 3; ++d) {
    const bool given = d >= missing;
    result.in[d] = given ? in.sizes[2 + d - missing] : 1;
    result.out[d] = given ? out.sizes[2 + d - missing] : 1;
    result.kernel_size[d] = result.stride[d] = result.dilation[d] = 1;
  }
  set_strides(result.in_strides, in);
  set_strides(result.out_strides, out);
  result.in_offset = in.offset;
  result.out_offset = out.offset;
  result.is_adaptive = true;
  return result;
}

// Windows of one size. The lists have an entry for each spatial dimension; no dilation is 1.
Pooling regular_pooling(const cb_tensor& in, const cb_tensor& out, Ints kernel_size, Ints stride, Ints padding,
                        Ints dilation) {
  Pooling result = adaptive_pooling(in, out);
  result.is_adaptive = false;
  const size_t missing = 3 - kernel_size.size();
  for (size_t d = missing; d < 3; ++d) {
    result.kernel_size[d] = kernel_size[d - missing];
    result.stride[d] = stride[d - missing];
    result.padding[d] = padding[d - missing];
    result.dilation[d] = dilation.empty() ? 1 : dilation[d - missing];
  }
  return result;
}

void set_indices(Pooling& pooling, const cb_tensor& indices) {
  set_strides(pooling.index_strides, indices);
  pooling.index_offset = indices.offset;
}

uint64_t lowest_bits(int32_t dtype) {
  if (kernel::is_floating_dtype(dtype)) return number_bits(-std::numeric_limits<double>::infinity(), dtype);
  const bool is_signed = dtype == CB_INT8 || dtype == CB_INT16 || dtype == CB_INT32 || dtype == CB_INT64;
  return is_signed ? uint64_t{1} << (8 * kernel::itemsize(dtype) - 1) : 0;
}

// ---- maximum

void run_max_pool(Call& call, const cb_tensor& self, Pooling pooling) {
  const cb_tensor &out = call.output(0), &indices = call.output(1);
  if (out.numel == 0) return;
  set_indices(pooling, indices);
  pooling.lowest = lowest_bits(out.dtype);
  Launch(call, "pooling", "max_pool", {{"T", out.dtype}})
      .memory(out)
      .memory(indices)
      .memory(self)
      .structure(pooling)
      .items(out.numel);
}

void max_pool(Call& call) {
  const arguments::MaxPool args(call);
  run_max_pool(call, *args.self,
               regular_pooling(*args.self, call.output(0), args.kernel_size, args.stride, args.padding, args.dilation));
}

void adaptive_max_pool(Call& call) {
  const arguments::AdaptiveMaxPool args(call);
  run_max_pool(call, *args.self, adaptive_pooling(*args.self, call.output(0)));
}

// Index -1 is that of a window without elements.
void max_pool_backward(Call& call) {
  const arguments::MaxPoolBackward args(call);
  const cb_tensor &out = call.output(), &grad = *args.grad, &indices = *args.indices;
  Pooling pooling = adaptive_pooling(out, grad);
  set_indices(pooling, indices);
  const int64_t inputs = pooling.in[0] * pooling.in[1] * pooling.in[2];
  if (const auto bad = bad_index(call, indices, -1, inputs))
    throw failure(CB_INDEX_ERROR, "max_pool_backward(): index %lld is out of bounds for a plane of %lld elements",
                  static_cast<long long>(*bad), static_cast<long long>(inputs));
  if (out.numel == 0) return;
  const Workspace sums(call, out.numel * (out.dtype == CB_FLOAT64 ? 8 : 4));
  Launch(call, "pooling", "max_pool_backward", {{"T", out.dtype}})
      .memory(out)
      .memory(grad)
      .memory(indices)
      .memory(sums.memory)
      .structure(pooling)
      .items(pooling.planes);
}

// ---- average

void run_avg_pool(Call& call, const cb_tensor& self, const Pooling& pooling) {
  const cb_tensor& out = call.output();
  if (out.numel == 0) return;
  Launch(call, "pooling", "avg_pool", {{"T", out.dtype}}).memory(out).memory(self).structure(pooling).items(out.numel);
}

void run_avg_pool_backward(Call& call, const cb_tensor& grad, const Pooling& pooling) {
  const cb_tensor& out = call.output();
  if (out.numel == 0) return;
  Launch(call, "pooling", "avg_pool_backward", {{"T", out.dtype}})
      .memory(out)
      .memory(grad)
      .structure(pooling)
      .items(out.numel);
}

void avg_pool(Call& call) {
  const arguments::AvgPool args(call);
  Pooling pooling = regular_pooling(*args.self, call.output(), args.kernel_size, args.stride, args.padding, {});
  pooling.counts_padding = args.count_include_pad;
  pooling.divisor = args.divisor_override.value_or(0);
  run_avg_pool(call, *args.self, pooling);
}

void avg_pool_backward(Call& call) {
  const arguments::AvgPoolBackward args(call);
  Pooling pooling = regular_pooling(call.output(), *args.grad, args.kernel_size, args.stride, args.padding, {});
  pooling.counts_padding = args.count_include_pad;
  pooling.divisor = args.divisor_override.value_or(0);
  run_avg_pool_backward(call, *args.grad, pooling);
}

void adaptive_avg_pool(Call& call) {
  const arguments::AdaptiveAvgPool args(call);
  run_avg_pool(call, *args.self, adaptive_pooling(*args.self, call.output()));
}

void adaptive_avg_pool_backward(Call& call) {
  const arguments::AdaptiveAvgPoolBackward args(call);
  run_avg_pool_backward(call, *args.grad, adaptive_pooling(call.output(), *args.grad));
}

}  // namespace

void add_pooling(Table& table) {
  constexpr uint64_t averaged = float_dtypes | CB_DTYPE_BIT(CB_INT64);
  table.add<max_pool>("max_pool", 0, float_dtypes | integer_dtypes);
  table.add<adaptive_max_pool>("adaptive_max_pool", 0, float_dtypes);
  table.add<max_pool_backward>("max_pool_backward", 0, float_dtypes);
  table.add<avg_pool>("avg_pool", 0, averaged);
  table.add<avg_pool_backward>("avg_pool_backward", 0, averaged);
  table.add<adaptive_avg_pool>("adaptive_avg_pool", 0, float_dtypes);
  table.add<adaptive_avg_pool_backward>("adaptive_avg_pool_backward", 0, float_dtypes);
}

}  // namespace candelabra::opencl
