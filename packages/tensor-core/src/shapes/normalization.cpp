// Batch, layer and group normalization.
#include "../operator.hpp"
#include "checks.hpp"
#include "shapes.hpp"

namespace candelabra::shapes {

namespace {

void check_floating(const Call& call, const TensorObject& input) {
  if (!is_floating(input.dtype)) not_implemented(call, input.dtype);
}

// An optional vector of one number a channel, converted to the input's dtype (half-precision input may have float32 weights).
void channel_vector(Call& call, int i, const char* vector_name, int64_t channels, Dtype dtype) {
  const Argument& argument = call[i];
  if (!argument.given()) return;
  const TensorObject& tensor = *argument.tensor;
  check(tensor.numel == channels && tensor.ndim() == 1, PyExc_RuntimeError, base_name(call), "(): ", vector_name,
        " should contain ", channels, " elements not ", tensor.numel, " (its shape is ", shown(tensor.sizes), ")");
  check(tensor.dtype == dtype || tensor.dtype == statistics_dtype(dtype), PyExc_RuntimeError, base_name(call),
        "(): mixed dtype: expect ", vector_name, " to have scalar type of ", info(dtype).type_name, ", but got ",
        info(tensor.dtype).type_name);
  call.convert(i, dtype);
  call.make_contiguous(i);
}

// Running statistics are changed in training, so they are taken as they are.
void check_running(const Call& call, int i, const char* vector_name, int64_t channels, Dtype dtype) {
  const Argument& argument = call.arguments[i];
  if (!argument.given()) return;
  const TensorObject& tensor = *argument.tensor;
  check(tensor.numel == channels && tensor.ndim() == 1, PyExc_RuntimeError, base_name(call), "(): ", vector_name,
        " should contain ", channels, " elements not ", tensor.numel, " (its shape is ", shown(tensor.sizes), ")");
  check(tensor.dtype == dtype || tensor.dtype == statistics_dtype(dtype), PyExc_RuntimeError, base_name(call),
        "(): mixed dtype: expect ", vector_name, " to have scalar type of ", info(statistics_dtype(dtype)).type_name, ", but got ",
        info(tensor.dtype).type_name);
  check(!call.boolean(5) || !may_overlap_itself(tensor), PyExc_RuntimeError, base_name(call),
        "(): unsupported operation: several elements of ", vector_name,
        " refer to a single memory location. Please clone() it before performing the operation.");
}

void statistics(Call& call, int i, const char* vector_name, std::span<const int64_t> sizes, Dtype dtype) {
  const TensorObject& tensor = call.tensor(i);
  check(std::ranges::equal(tensor.sizes, sizes), PyExc_RuntimeError, base_name(call), "(): expected ", vector_name, " of shape ",
        shown(sizes), ", but got ", shown(tensor.sizes));
  call.convert(i, statistics_dtype(dtype));
  call.make_contiguous(i);
}

// A gradient has the input's sizes and dtype.
void gradient_like(Call& call, const TensorObject& input) {
  const TensorObject& grad = call.tensor(0);
  check(grad.sizes == input.sizes, PyExc_RuntimeError, base_name(call), "(): grad of shape ", shown(grad.sizes),
        " does not match input of shape ", shown(input.sizes));
  call.convert(0, input.dtype);
}

// The sizes of mean and rstd of a layer norm: those of the input with the normalized dimensions made 1.
Dims layer_statistics(const Call& call, int input_argument, int shape_argument) {
  const TensorObject& input = call.tensor(input_argument);
  const auto shape = call.ints(shape_argument);
  check(!shape.empty(), PyExc_RuntimeError, base_name(call), "(): Expected normalized_shape to be at least 1-dimensional, i.e., ",
        "containing at least one element, but got normalized_shape = []");
  const int leading = input.ndim() - static_cast<int>(shape.size());
  const bool matches =
      leading >= 0 && std::ranges::equal(shape, std::span<const int64_t>(input.sizes).subspan(std::max(leading, 0)));
  if (!matches) {
    std::string expected = "[*";
    for (int64_t size : shape) expected += ", " + std::to_string(size);
    raise(PyExc_RuntimeError, base_name(call), "(): Given normalized_shape=", shown(shape), ", expected input with shape ",
          expected, "], but got input of size", shown(input.sizes));
  }
  Dims sizes = input.sizes;
  std::fill(sizes.begin() + leading, sizes.end(), 1);
  return sizes;
}

void layer_vector(Call& call, int i, const char* vector_name, std::span<const int64_t> shape, Dtype dtype) {
  const Argument& argument = call[i];
  if (!argument.given()) return;
  check(std::ranges::equal(argument.tensor->sizes, shape), PyExc_RuntimeError, base_name(call), "(): Expected ", vector_name,
        " to be of same shape as normalized_shape, but got ", vector_name, " of shape ", shown(argument.tensor->sizes),
        " and normalized_shape = ", shown(shape));
  check(argument.tensor->dtype == dtype || argument.tensor->dtype == statistics_dtype(dtype), PyExc_RuntimeError, base_name(call),
        "(): mixed dtype: expect ", vector_name, " to have scalar type of ", info(dtype).type_name, ", but got ",
        info(argument.tensor->dtype).type_name);
  call.convert(i, dtype);
  call.make_contiguous(i);
}

int64_t check_groups(const Call& call, const TensorObject& input, int64_t groups) {
  check(input.ndim() >= 2, PyExc_RuntimeError, base_name(call), "(): Expected at least 2 dimensions for input tensor but received ",
        input.ndim());
  check(groups > 0, PyExc_RuntimeError, base_name(call), "(): Expected num groups to be greater than 0, got ", groups);
  check(input.sizes[1] % groups == 0, PyExc_RuntimeError, base_name(call),
        "(): Expected number of channels in input to be divisible by num_groups, but got input of shape ", shown(input.sizes),
        " and num_groups=", groups);
  return input.sizes[1];
}

// Whether the kernel of this device takes a tensor that prefers channels-last memory as it is.
bool keeps_channels_last(const Call& call, const TensorObject& input) {
  return prefers_channels_last(input) && call.op.kernel_table()[call.device.type].channels_last;
}

void group_vector(Call& call, int i, const char* vector_name, const TensorObject& input) {
  const Argument& argument = call[i];
  if (!argument.given()) return;
  check(argument.tensor->ndim() == 1 && argument.tensor->numel == input.sizes[1], PyExc_RuntimeError, base_name(call),
        "(): Expected ", vector_name, " to be a vector of size equal to the number of channels in input, but got ", vector_name,
        " of shape ", shown(argument.tensor->sizes), " and input of shape ", shown(input.sizes));
  channel_vector(call, i, vector_name, input.sizes[1], input.dtype);
}

// Gradients of weight and bias: of this shape, or empty where there is no weight.
void add_parameter_gradients(Call& call, bool has_weight, std::span<const int64_t> shape, Dtype dtype) {
  for (int k = 0; k < 2; ++k) call.add_output(dtype, has_weight ? Dims(shape) : Dims{0});
}

}  // namespace

void native_batch_norm(Call& call) {
  const TensorObject& input = call.tensor(0);
  check_floating(call, input);
  check(input.ndim() >= 2, PyExc_RuntimeError,
        "native_batch_norm(): expected input of at least 2 dimensions (N, C, ...), but got shape ", shown(input.sizes));
  const int64_t channels = input.sizes[1];
  const Dtype dtype = input.dtype;
  channel_vector(call, 1, "weight", channels, dtype);
  channel_vector(call, 2, "bias", channels, dtype);
  check_running(call, 3, "running_mean", channels, dtype);
  check_running(call, 4, "running_var", channels, dtype);
  if (!call.boolean(5)) {
    check(call[3].given(), PyExc_RuntimeError, "native_batch_norm(): running_mean must be defined in evaluation mode");
    check(call[4].given(), PyExc_RuntimeError, "native_batch_norm(): running_var must be defined in evaluation mode");
  }
  const bool channels_last = prefers_channels_last(input);
  set_layout(call.add_output(dtype, input.sizes), channels_last);
  for (int k = 0; k < 2; ++k) call.add_output(statistics_dtype(dtype), Dims{channels});
  make_layout(call, 0, channels_last);
}

void native_batch_norm_backward(Call& call) {
  const TensorObject& input = call.tensor(1);
  check_floating(call, input);
  check(input.ndim() >= 2, PyExc_RuntimeError,
        "native_batch_norm_backward(): expected input of at least 2 dimensions, but got shape ", shown(input.sizes));
  const int64_t channels = input.sizes[1];
  gradient_like(call, input);
  channel_vector(call, 2, "weight", channels, input.dtype);
  statistics(call, 3, "mean", Dims{channels}, input.dtype);
  statistics(call, 4, "rstd", Dims{channels}, input.dtype);
  const bool channels_last = prefers_channels_last(input);
  set_layout(call.add_output(input.dtype, input.sizes), channels_last);
  add_parameter_gradients(call, call[2].given(), Dims{channels}, input.dtype);
  make_layout(call, 0, channels_last);
  make_layout(call, 1, channels_last);
}

void native_layer_norm(Call& call) {
  const TensorObject& input = call.tensor(0);
  check_floating(call, input);
  const Dims sizes = layer_statistics(call, 0, 1);
  layer_vector(call, 2, "weight", call.ints(1), input.dtype);
  layer_vector(call, 3, "bias", call.ints(1), input.dtype);
  call.add_output(input.dtype, input.sizes);
  for (int k = 0; k < 2; ++k) call.add_output(statistics_dtype(input.dtype), sizes);
  call.make_contiguous(0);
}

void native_layer_norm_backward(Call& call) {
  const TensorObject& input = call.tensor(1);
  check_floating(call, input);
  const Dims sizes = layer_statistics(call, 1, 2);
  gradient_like(call, input);
  statistics(call, 3, "mean", sizes, input.dtype);
  statistics(call, 4, "rstd", sizes, input.dtype);
  layer_vector(call, 5, "weight", call.ints(2), input.dtype);
  call.add_output(input.dtype, input.sizes);
  add_parameter_gradients(call, call[5].given(), call.ints(2), input.dtype);
  call.make_contiguous(0);
  call.make_contiguous(1);
}

void native_rms_norm(Call& call) {
  const TensorObject& input = call.tensor(0);
  check_floating(call, input);
  const Dims sizes = layer_statistics(call, 0, 1);
  layer_vector(call, 2, "weight", call.ints(1), input.dtype);
  call.add_output(input.dtype, input.sizes);
  call.add_output(statistics_dtype(input.dtype), sizes);
  call.make_contiguous(0);
}

void native_rms_norm_backward(Call& call) {
  const TensorObject& input = call.tensor(1);
  check_floating(call, input);
  const Dims sizes = layer_statistics(call, 1, 2);
  gradient_like(call, input);
  statistics(call, 3, "rstd", sizes, input.dtype);
  layer_vector(call, 4, "weight", call.ints(2), input.dtype);
  call.add_output(input.dtype, input.sizes);
  call.add_output(input.dtype, call[4].given() ? Dims(call.ints(2)) : Dims{0});
  call.make_contiguous(0);
  call.make_contiguous(1);
}

void native_group_norm(Call& call) {
  const TensorObject& input = call.tensor(0);
  check_floating(call, input);
  check_groups(call, input, call.integer(3));
  group_vector(call, 1, "weight", input);
  group_vector(call, 2, "bias", input);
  const bool channels_last = keeps_channels_last(call, input);
  set_layout(call.add_output(input.dtype, input.sizes), channels_last);
  for (int k = 0; k < 2; ++k) call.add_output(statistics_dtype(input.dtype), Dims{input.sizes[0], call.integer(3)});
  make_layout(call, 0, channels_last);
}

void native_group_norm_backward(Call& call) {
  const TensorObject& input = call.tensor(1);
  check_floating(call, input);
  const int64_t channels = check_groups(call, input, call.integer(5));
  gradient_like(call, input);
  statistics(call, 2, "mean", Dims{input.sizes[0], call.integer(5)}, input.dtype);
  statistics(call, 3, "rstd", Dims{input.sizes[0], call.integer(5)}, input.dtype);
  group_vector(call, 4, "weight", input);
  const bool channels_last = keeps_channels_last(call, input);
  set_layout(call.add_output(input.dtype, input.sizes), channels_last);
  add_parameter_gradients(call, call[4].given(), Dims{channels}, input.dtype);
  make_layout(call, 0, channels_last);
  make_layout(call, 1, channels_last);
}

}  // namespace candelabra::shapes
