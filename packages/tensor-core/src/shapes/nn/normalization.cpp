// Batch, layer and group normalization.
#include "candelabra/positions.hpp"
#include "operators/operator.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

namespace {

void check_floating(const Call& call, const TensorObject& input) {
  if (!is_floating(input.dtype)) not_implemented(call, input.dtype);
}

// Prepares an optional vector of one number per channel: contiguous, and of the input's dtype.
// Weights of a half-precision input may be float32.
void prepare_channel_vector(Call& call, int i, const char* vector_name, int64_t channels, Dtype dtype) {
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

// Running statistics are updated in place in training, so they are neither converted nor copied.
void check_running_statistics(const Call& call, int i, const char* vector_name, int64_t channels, Dtype dtype,
                              bool training) {
  const Argument& argument = call.arguments[i];
  if (!argument.given()) return;
  const TensorObject& tensor = *argument.tensor;
  check(tensor.numel == channels && tensor.ndim() == 1, PyExc_RuntimeError, base_name(call), "(): ", vector_name,
        " should contain ", channels, " elements not ", tensor.numel, " (its shape is ", shown(tensor.sizes), ")");
  check(tensor.dtype == dtype || tensor.dtype == statistics_dtype(dtype), PyExc_RuntimeError, base_name(call),
        "(): mixed dtype: expect ", vector_name, " to have scalar type of ", info(statistics_dtype(dtype)).type_name,
        ", but got ", info(tensor.dtype).type_name);
  check(!training || !may_overlap_itself(tensor), PyExc_RuntimeError, base_name(call),
        "(): unsupported operation: several elements of ", vector_name,
        " refer to a single memory location. Please clone() it before performing the operation.");
}

void prepare_statistics(Call& call, int i, const char* vector_name, std::span<const int64_t> sizes, Dtype dtype) {
  const TensorObject& tensor = call.tensor(i);
  check(std::ranges::equal(tensor.sizes, sizes), PyExc_RuntimeError, base_name(call), "(): expected ", vector_name,
        " of shape ", shown(sizes), ", but got ", shown(tensor.sizes));
  call.convert(i, statistics_dtype(dtype));
  call.make_contiguous(i);
}

// Checks that the gradient has the input's sizes, and converts it to the input's dtype.
void prepare_grad(Call& call, int grad_argument, const TensorObject& input) {
  const TensorObject& grad = call.tensor(grad_argument);
  check(grad.sizes == input.sizes, PyExc_RuntimeError, base_name(call), "(): grad of shape ", shown(grad.sizes),
        " does not match input of shape ", shown(input.sizes));
  call.convert(grad_argument, input.dtype);
}

// Returns the sizes of mean and rstd of a layer norm: those of the input, with the normalized
// dimensions set to 1.
Dims layer_statistics_sizes(const Call& call, const TensorObject& input, std::span<const int64_t> shape) {
  check(!shape.empty(), PyExc_RuntimeError, base_name(call),
        "(): Expected normalized_shape to be at least 1-dimensional, i.e., ",
        "containing at least one element, but got normalized_shape = []");
  const int leading = input.ndim() - static_cast<int>(shape.size());
  const bool matches =
      leading >= 0 && std::ranges::equal(shape, std::span<const int64_t>(input.sizes).subspan(std::max(leading, 0)));
  if (!matches) {
    std::string expected = "[*";
    for (int64_t size : shape) expected += ", " + std::to_string(size);
    raise(PyExc_RuntimeError, base_name(call), "(): Given normalized_shape=", shown(shape),
          ", expected input with shape ", expected, "], but got input of size", shown(input.sizes));
  }
  Dims sizes = input.sizes;
  std::fill(sizes.begin() + leading, sizes.end(), 1);
  return sizes;
}

// Prepares the optional weight or bias of a layer norm: contiguous, and of the input's dtype.
void prepare_layer_vector(Call& call, int i, const char* vector_name, std::span<const int64_t> shape, Dtype dtype) {
  const Argument& argument = call[i];
  if (!argument.given()) return;
  check(std::ranges::equal(argument.tensor->sizes, shape), PyExc_RuntimeError, base_name(call), "(): Expected ",
        vector_name, " to be of same shape as normalized_shape, but got ", vector_name, " of shape ",
        shown(argument.tensor->sizes), " and normalized_shape = ", shown(shape));
  check(argument.tensor->dtype == dtype || argument.tensor->dtype == statistics_dtype(dtype), PyExc_RuntimeError,
        base_name(call), "(): mixed dtype: expect ", vector_name, " to have scalar type of ", info(dtype).type_name,
        ", but got ", info(argument.tensor->dtype).type_name);
  call.convert(i, dtype);
  call.make_contiguous(i);
}

int64_t check_groups(const Call& call, const TensorObject& input, int64_t groups) {
  check(input.ndim() >= 2, PyExc_RuntimeError, base_name(call),
        "(): Expected at least 2 dimensions for input tensor but received ", input.ndim());
  check(groups > 0, PyExc_RuntimeError, base_name(call), "(): Expected num groups to be greater than 0, got ", groups);
  check(input.sizes[1] % groups == 0, PyExc_RuntimeError, base_name(call),
        "(): Expected number of channels in input to be divisible by num_groups, but got input of shape ",
        shown(input.sizes), " and num_groups=", groups);
  return input.sizes[1];
}

// Whether the input is channels-last and the kernel of this device accepts that order.
bool keeps_channels_last(const Call& call, const TensorObject& input) {
  return is_channels_last_batch(input) && (call.op.kernel_table()[call.device.type].flags & CB_KERNEL_CHANNELS_LAST);
}

void prepare_group_vector(Call& call, int i, const char* vector_name, const TensorObject& input) {
  const Argument& argument = call[i];
  if (!argument.given()) return;
  check(argument.tensor->ndim() == 1 && argument.tensor->numel == input.sizes[1], PyExc_RuntimeError, base_name(call),
        "(): Expected ", vector_name, " to be a vector of size equal to the number of channels in input, but got ",
        vector_name, " of shape ", shown(argument.tensor->sizes), " and input of shape ", shown(input.sizes));
  prepare_channel_vector(call, i, vector_name, input.sizes[1], input.dtype);
}

// Adds the gradients of weight and bias, which are empty if there is no weight.
void add_parameter_gradients(Call& call, bool has_weight, std::span<const int64_t> shape, Dtype dtype) {
  for (int k = 0; k < 2; ++k) call.add_output(dtype, has_weight ? Dims(shape) : Dims{0});
}

}  // namespace

void native_batch_norm(Call& call) {
  namespace at = positions::native_batch_norm;
  const TensorObject& input = call.tensor(at::input);
  check_floating(call, input);
  check(input.ndim() >= 2, PyExc_RuntimeError,
        "batch_norm(): expected input of at least 2 dimensions (N, C, ...), but got shape ", shown(input.sizes));
  const int64_t channels = input.sizes[1];
  const Dtype dtype = input.dtype;
  prepare_channel_vector(call, at::weight, "weight", channels, dtype);
  prepare_channel_vector(call, at::bias, "bias", channels, dtype);
  check_running_statistics(call, at::running_mean, "running_mean", channels, dtype, call.boolean(at::training));
  check_running_statistics(call, at::running_var, "running_var", channels, dtype, call.boolean(at::training));
  if (!call.boolean(at::training)) {
    check(call[at::running_mean].given(), PyExc_RuntimeError,
          "batch_norm(): running_mean must be defined in evaluation mode");
    check(call[at::running_var].given(), PyExc_RuntimeError,
          "batch_norm(): running_var must be defined in evaluation mode");
  }
  const bool channels_last = is_channels_last_batch(input);
  set_layout(call.add_output(dtype, input.sizes), channels_last);
  for (int k = 0; k < 2; ++k) call.add_output(statistics_dtype(dtype), Dims{channels});
  make_layout(call, at::input, channels_last);
}

void native_batch_norm_backward(Call& call) {
  namespace at = positions::native_batch_norm_backward;
  const TensorObject& input = call.tensor(at::input);
  check_floating(call, input);
  check(input.ndim() >= 2, PyExc_RuntimeError,
        "native_batch_norm_backward(): expected input of at least 2 dimensions, but got shape ", shown(input.sizes));
  const int64_t channels = input.sizes[1];
  prepare_grad(call, at::grad, input);
  prepare_channel_vector(call, at::weight, "weight", channels, input.dtype);
  prepare_statistics(call, at::mean, "mean", Dims{channels}, input.dtype);
  prepare_statistics(call, at::rstd, "rstd", Dims{channels}, input.dtype);
  const bool channels_last = is_channels_last_batch(input);
  set_layout(call.add_output(input.dtype, input.sizes), channels_last);
  add_parameter_gradients(call, call[at::weight].given(), Dims{channels}, input.dtype);
  make_layout(call, at::grad, channels_last);
  make_layout(call, at::input, channels_last);
}

void native_layer_norm(Call& call) {
  namespace at = positions::native_layer_norm;
  const TensorObject& input = call.tensor(at::input);
  check_floating(call, input);
  const auto shape = call.ints(at::normalized_shape);
  const Dims sizes = layer_statistics_sizes(call, input, shape);
  prepare_layer_vector(call, at::weight, "weight", shape, input.dtype);
  prepare_layer_vector(call, at::bias, "bias", shape, input.dtype);
  call.add_output(input.dtype, input.sizes);
  for (int k = 0; k < 2; ++k) call.add_output(statistics_dtype(input.dtype), sizes);
  call.make_contiguous(at::input);
}

void native_layer_norm_backward(Call& call) {
  namespace at = positions::native_layer_norm_backward;
  const TensorObject& input = call.tensor(at::input);
  check_floating(call, input);
  const auto shape = call.ints(at::normalized_shape);
  const Dims sizes = layer_statistics_sizes(call, input, shape);
  prepare_grad(call, at::grad, input);
  prepare_statistics(call, at::mean, "mean", sizes, input.dtype);
  prepare_statistics(call, at::rstd, "rstd", sizes, input.dtype);
  prepare_layer_vector(call, at::weight, "weight", shape, input.dtype);
  call.add_output(input.dtype, input.sizes);
  add_parameter_gradients(call, call[at::weight].given(), shape, input.dtype);
  call.make_contiguous(at::grad);
  call.make_contiguous(at::input);
}

void fused_rms_norm(Call& call) {
  namespace at = positions::fused_rms_norm;
  const TensorObject& input = call.tensor(at::input);
  check_floating(call, input);
  const auto shape = call.ints(at::normalized_shape);
  const Dims sizes = layer_statistics_sizes(call, input, shape);
  prepare_layer_vector(call, at::weight, "weight", shape, input.dtype);
  call.add_output(input.dtype, input.sizes);
  call.add_output(statistics_dtype(input.dtype), sizes);
  call.make_contiguous(at::input);
}

void fused_rms_norm_backward(Call& call) {
  namespace at = positions::fused_rms_norm_backward;
  const TensorObject& input = call.tensor(at::input);
  check_floating(call, input);
  const auto shape = call.ints(at::normalized_shape);
  const Dims sizes = layer_statistics_sizes(call, input, shape);
  prepare_grad(call, at::grad, input);
  prepare_statistics(call, at::rstd, "rstd", sizes, input.dtype);
  prepare_layer_vector(call, at::weight, "weight", shape, input.dtype);
  call.add_output(input.dtype, input.sizes);
  call.add_output(input.dtype, call[at::weight].given() ? Dims(shape) : Dims{0});
  call.make_contiguous(at::grad);
  call.make_contiguous(at::input);
}

void native_group_norm(Call& call) {
  namespace at = positions::native_group_norm;
  const TensorObject& input = call.tensor(at::input);
  check_floating(call, input);
  const int64_t groups = call.integer(at::num_groups);
  check_groups(call, input, groups);
  prepare_group_vector(call, at::weight, "weight", input);
  prepare_group_vector(call, at::bias, "bias", input);
  const bool channels_last = keeps_channels_last(call, input);
  set_layout(call.add_output(input.dtype, input.sizes), channels_last);
  for (int k = 0; k < 2; ++k) call.add_output(statistics_dtype(input.dtype), Dims{input.sizes[0], groups});
  make_layout(call, at::input, channels_last);
}

void native_group_norm_backward(Call& call) {
  namespace at = positions::native_group_norm_backward;
  const TensorObject& input = call.tensor(at::input);
  check_floating(call, input);
  const int64_t groups = call.integer(at::num_groups), channels = check_groups(call, input, groups);
  prepare_grad(call, at::grad, input);
  prepare_statistics(call, at::mean, "mean", Dims{input.sizes[0], groups}, input.dtype);
  prepare_statistics(call, at::rstd, "rstd", Dims{input.sizes[0], groups}, input.dtype);
  prepare_group_vector(call, at::weight, "weight", input);
  const bool channels_last = keeps_channels_last(call, input);
  set_layout(call.add_output(input.dtype, input.sizes), channels_last);
  add_parameter_gradients(call, call[at::weight].given(), Dims{channels}, input.dtype);
  make_layout(call, at::grad, channels_last);
  make_layout(call, at::input, channels_last);
}

}  // namespace candelabra::shapes
