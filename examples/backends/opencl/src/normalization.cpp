// Layer, group and batch normalization, and their gradients; see kernels/normalization.cl.
#include "candelabra/arguments/normalization.hpp"

#include "families.hpp"
#include "runtime/launch.hpp"

namespace candelabra::opencl {

namespace {

// The struct of the same name in kernels/normalization.cl.
struct Batch {
  int64_t images, volume;
  int64_t strides[3];
  int64_t running_strides[2];
  uint64_t running_offsets[2];
  uint64_t momentum, eps;
  int64_t training, has_running;
};

Launch normalization(const Call& call, const char* kernel, const cb_tensor& input) {
  const int32_t statistics = kernel::is_half_dtype(input.dtype) ? CB_FLOAT32 : input.dtype;
  return Launch(call, "normalization", kernel, {{"T", input.dtype}, {"S", statistics}});
}

int64_t width_of(std::span<const int64_t> normalized_shape) {
  int64_t width = 1;
  for (const int64_t size : normalized_shape) width *= size;
  return width;
}

void layer_norm(Call& call) {
  const arguments::NativeLayerNorm args(call);
  const cb_tensor& input = *args.input;
  const int64_t width = width_of(args.normalized_shape);
  if (input.numel == 0) throw not_implemented();  // the statistics of nothing
  normalization(call, "layer_norm", input)
      .tensor(&call.output(0))
      .tensor(&call.output(1))
      .tensor(&call.output(2))
      .tensor(&input)
      .tensor(args.weight)
      .tensor(args.bias)
      .value(width)
      .bits(number_bits(args.eps, input.dtype))
      .groups(input.numel / width);
}

void layer_norm_backward(Call& call) {
  const arguments::NativeLayerNormBackward args(call);
  const cb_tensor& input = *args.input;
  const int64_t width = width_of(args.normalized_shape);
  if (input.numel == 0) throw not_implemented();
  const int64_t rows = input.numel / width;
  normalization(call, "layer_norm_backward", input)
      .tensor(&call.output(0))
      .tensor(args.grad)
      .tensor(&input)
      .tensor(args.mean)
      .tensor(args.rstd)
      .tensor(args.weight)
      .value(width)
      .groups(rows);
  if (!args.weight) return;
  normalization(call, "layer_norm_backward_weight", input)
      .tensor(&call.output(1))
      .tensor(&call.output(2))
      .tensor(args.grad)
      .tensor(&input)
      .tensor(args.mean)
      .tensor(args.rstd)
      .value(rows)
      .value(width)
      .items(width);
}

// (N, C, ...), contiguous: a group of channels of an image is a row.
struct Groups {
  Groups(const cb_tensor& input, int64_t groups)
      : images(input.sizes[0]), channels(input.sizes[1]), groups(groups), width(channels / groups) {
    plane = input.numel / (images * channels);
  }
  int64_t images, channels, groups, width, plane;
};

void group_norm(Call& call) {
  const arguments::NativeGroupNorm args(call);
  const cb_tensor& input = *args.input;
  if (input.numel == 0) throw not_implemented();
  const Groups shape(input, args.num_groups);
  normalization(call, "group_norm", input)
      .tensor(&call.output(0))
      .tensor(&call.output(1))
      .tensor(&call.output(2))
      .tensor(&input)
      .tensor(args.weight)
      .tensor(args.bias)
      .value(shape.groups)
      .value(shape.width)
      .value(shape.plane)
      .bits(number_bits(args.eps, input.dtype))
      .groups(shape.images * shape.groups);
}

void group_norm_backward(Call& call) {
  const arguments::NativeGroupNormBackward args(call);
  const cb_tensor& input = *args.input;
  if (input.numel == 0) throw not_implemented();
  const Groups shape(input, args.num_groups);
  const Workspace sums(call, 2 * shape.images * shape.channels * (input.dtype == CB_FLOAT64 ? 8 : 4));
  normalization(call, "group_norm_backward_sums", input)
      .memory(sums.memory)
      .tensor(args.grad)
      .tensor(&input)
      .tensor(args.mean)
      .tensor(args.rstd)
      .value(shape.width)
      .value(shape.plane)
      .groups(shape.images * shape.channels);
  normalization(call, "group_norm_backward", input)
      .tensor(&call.output(0))
      .tensor(args.grad)
      .tensor(&input)
      .tensor(args.mean)
      .tensor(args.rstd)
      .tensor(args.weight)
      .memory(sums.memory)
      .value(shape.groups)
      .value(shape.width)
      .value(shape.plane)
      .groups(shape.images * shape.groups);
  if (!args.weight) return;
  normalization(call, "group_norm_backward_weight", input)
      .tensor(&call.output(1))
      .tensor(&call.output(2))
      .memory(sums.memory)
      .value(shape.images)
      .value(shape.channels)
      .items(shape.channels);
}

// Contiguous or channels-last: the positions of a channel have one stride.
Batch batch_of(const cb_tensor& input, bool training) {
  Batch batch = {};
  batch.images = input.sizes[0];
  batch.volume = 1;
  batch.strides[0] = input.strides[0];
  batch.strides[1] = input.strides[1];
  batch.strides[2] = 1;
  for (int d = 2; d < input.ndim; ++d) {
    batch.volume *= input.sizes[d];
    if (input.sizes[d] != 1) batch.strides[2] = input.strides[d];
  }
  batch.training = training;
  return batch;
}

void batch_norm(Call& call) {
  const arguments::NativeBatchNorm args(call);
  const cb_tensor& input = *args.input;
  if (input.numel == 0) throw not_implemented();
  Batch batch = batch_of(input, args.training);
  batch.momentum = number_bits(args.momentum, input.dtype);
  batch.eps = number_bits(args.eps, input.dtype);
  const cb_tensor* running[2] = {args.running_mean, args.running_var};
  for (size_t k = 0; k < 2 && running[k]; ++k) {
    if (running[k]->dtype != input.dtype) throw not_implemented();  // float32 statistics of half precisions
    batch.has_running = 1;
    batch.running_strides[k] = running[k]->strides[0];
    batch.running_offsets[k] = running[k]->offset;
  }
  normalization(call, args.training ? "batch_norm_training" : "batch_norm_inference", input)
      .tensor(&call.output(0))
      .tensor(&call.output(1))
      .tensor(&call.output(2))
      .tensor(&input)
      .tensor(args.weight)
      .tensor(args.bias)
      .memory(running[0] ? memory_of(*running[0]) : memory_of(input))
      .memory(running[1] ? memory_of(*running[1]) : memory_of(input))
      .structure(batch)
      .groups(input.sizes[1]);
}

void batch_norm_backward(Call& call) {
  const arguments::NativeBatchNormBackward args(call);
  const cb_tensor& input = *args.input;
  if (input.numel == 0) throw not_implemented();
  normalization(call, "batch_norm_backward", input)
      .tensor(&call.output(0))
      .tensor(args.weight ? &call.output(1) : nullptr)
      .tensor(args.weight ? &call.output(2) : nullptr)
      .tensor(args.grad)
      .tensor(&input)
      .tensor(args.mean)
      .tensor(args.rstd)
      .tensor(args.weight)
      .structure(batch_of(input, args.training))
      .groups(input.sizes[1]);
}

}  // namespace

void add_normalization(Table& table) {
  table.add<layer_norm>("native_layer_norm", 0, float_dtypes);
  table.add<layer_norm_backward>("native_layer_norm_backward", 0, float_dtypes);
  table.add<group_norm>("native_group_norm", 0, float_dtypes);
  table.add<group_norm_backward>("native_group_norm_backward", 0, float_dtypes);
  table.add<batch_norm>("native_batch_norm", 0, float_dtypes);
  table.add<batch_norm_backward>("native_batch_norm_backward", 0, float_dtypes);
}

}  // namespace candelabra::opencl
