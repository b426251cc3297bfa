// Convolution and its gradients.
#include "candelabra/positions.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

namespace {

// Shapes: input (N, C, in...), weight (O, C / groups, kernel...), output (N, O, out...).
struct Convolution {
  int spatial;
  std::span<const int64_t> input, weight, stride, padding, dilation;
  int64_t groups;
};

std::string joined_sizes(std::span<const int64_t> sizes) {
  std::string result;
  for (int64_t size : sizes) result += (result.empty() ? "" : " x ") + std::to_string(size);
  return result;
}

void check_parameters(const Convolution& conv, const char* name) {
  check(conv.spatial <= 3, PyExc_RuntimeError, name, "(): convolutions have three spatial dimensions at most, but got ",
        conv.spatial, "; sum convolutions over three of them");
  for (int d = 0; d < conv.spatial; ++d) {
    check(conv.padding[d] >= 0, PyExc_RuntimeError, name,
          "(): negative padding is not supported, but got padding=", shown(conv.padding));
    check(conv.stride[d] > 0, PyExc_RuntimeError, name,
          "(): non-positive stride is not supported, but got stride=", shown(conv.stride));
    check(conv.dilation[d] > 0, PyExc_RuntimeError, name,
          "(): non-positive dilation is not supported, but got dilation=", shown(conv.dilation));
  }
  check(conv.groups > 0, PyExc_RuntimeError, name,
        "(): non-positive groups is not supported, but got groups=", conv.groups);
  check(conv.weight[0] >= conv.groups, PyExc_RuntimeError, name, "(): Given groups=", conv.groups,
        ", expected weight to be at least ", conv.groups, " at dimension 0, but got weight of size ",
        shown(conv.weight), " instead");
  check(conv.weight[0] % conv.groups == 0, PyExc_RuntimeError, name, "(): Given groups=", conv.groups,
        ", expected weight to be divisible by ", conv.groups, " at dimension 0, but got weight of size ",
        shown(conv.weight), " instead");
}

// Checks the geometry and returns the sizes of the output.
Dims output_sizes(const Convolution& conv, const char* name) {
  check_parameters(conv, name);
  check(conv.input[1] == conv.weight[1] * conv.groups, PyExc_RuntimeError, name, "(): Given groups=", conv.groups,
        ", weight of size ", shown(conv.weight), ", expected input", shown(conv.input), " to have ",
        conv.weight[1] * conv.groups, " channels, but got ", conv.input[1], " channels instead");
  Dims padded, kernel, sizes{conv.input[0], conv.weight[0]};
  bool fits = true;
  for (int d = 0; d < conv.spatial; ++d) {
    padded.push_back(conv.input[d + 2] + 2 * conv.padding[d]);
    kernel.push_back(conv.dilation[d] * (conv.weight[d + 2] - 1) + 1);
    check(conv.weight[d + 2] > 0, PyExc_RuntimeError, name,
          "(): expected a kernel without sizes of 0, but got weight of size ", shown(conv.weight));
    fits = fits && padded[d] >= kernel[d];
    sizes.push_back((padded[d] - kernel[d]) / conv.stride[d] + 1);
  }
  check(fits, PyExc_RuntimeError, name, "(): Calculated padded input size per channel: (", joined_sizes(padded),
        "). Kernel size: (", joined_sizes(kernel), "). Kernel size can't be greater than actual input size");
  return sizes;
}

void read_parameters(Call& call, Convolution& conv, int stride, int padding, int dilation, int groups) {
  expand_list(call, stride, conv.spatial, "stride", "convolution");
  expand_list(call, padding, conv.spatial, "padding", "convolution");
  expand_list(call, dilation, conv.spatial, "dilation", "convolution");
  conv.stride = call.ints(stride);
  conv.padding = call.ints(padding);
  conv.dilation = call.ints(dilation);
  conv.groups = call.integer(groups);
  check_magnitude(call, conv.stride, "stride");
  check_magnitude(call, conv.padding, "padding");
  check_magnitude(call, conv.dilation, "dilation");
}

std::string public_name(int spatial) {
  return "conv" + std::to_string(spatial) + "d";
}

void check_types(const char* name, const char* what, const TensorObject& a, const char* other_what,
                 const TensorObject& b) {
  check(a.dtype == b.dtype, PyExc_RuntimeError, name, "(): ", what, " type (", cpp_type_name(a.dtype), ") and ",
        other_what, " type (", cpp_type_name(b.dtype), ") should be the same: expected scalar type ",
        info(a.dtype).type_name, " but found ", info(b.dtype).type_name,
        "; convert one of them, for instance with .to(candelabra.", candelabra::name(a.dtype), ")");
}

// Puts both arguments in channels-last order if one of them prefers it, else in row-major order.
// Returns whether they are channels-last.
bool unify_layouts(Call& call, int first, int second) {
  const bool channels_last = is_channels_last_batch(call.tensor(first)) || is_channels_last_batch(call.tensor(second));
  make_layout(call, first, channels_last);
  make_layout(call, second, channels_last);
  return channels_last;
}

}  // namespace

void convolution(Call& call) {
  namespace at = positions::convolution;
  const TensorObject &input = call.tensor(at::input), &weight = call.tensor(at::weight);
  Convolution conv{.spatial = weight.ndim() - 2,
                   .input = input.sizes,
                   .weight = weight.sizes,
                   .stride = {},
                   .padding = {},
                   .dilation = {},
                   .groups = 1};
  const std::string name = public_name(conv.spatial);
  check(conv.spatial >= 1 && input.ndim() == weight.ndim(), PyExc_RuntimeError, name, "(): Expected ", conv.spatial + 2,
        "D (batched) input for weight of size ", shown(weight.sizes), ", but got input of size: ", shown(input.sizes));
  read_parameters(call, conv, at::stride, at::padding, at::dilation, at::groups);
  check_types(name.c_str(), "Input", input, "weight", weight);
  const Argument& bias = call[at::bias];
  if (bias.given()) {
    check(bias.tensor->ndim() == 1 && bias.tensor->sizes[0] == weight.sizes[0], PyExc_RuntimeError, name,
          "(): Given weight of size ", shown(weight.sizes), ", expected bias to be 1-dimensional with ",
          weight.sizes[0], " elements, but got bias of size ", shown(bias.tensor->sizes), " instead");
    check_types(name.c_str(), "Input", input, "bias", *bias.tensor);
    call.make_contiguous(at::bias);
  }
  Dims sizes = output_sizes(conv, name.c_str());
  const bool channels_last = unify_layouts(call, at::input, at::weight);
  set_layout(call.add_output(input.dtype, std::move(sizes)), channels_last);
}

void convolution_backward_input(Call& call) {
  namespace at = positions::convolution_backward_input;
  const TensorObject &grad = call.tensor(at::grad), &weight = call.tensor(at::weight);
  const auto input_size = call.ints(at::input_size);
  Convolution conv{.spatial = weight.ndim() - 2,
                   .input = input_size,
                   .weight = weight.sizes,
                   .stride = {},
                   .padding = {},
                   .dilation = {},
                   .groups = 1};
  constexpr const char* name = "convolution_backward_input";
  check(conv.spatial >= 1 && grad.ndim() == weight.ndim() && static_cast<int>(input_size.size()) == weight.ndim(),
        PyExc_RuntimeError, name,
        "(): grad, weight and input_size must have the same number of dimensions, 3 at least, but got ",
        shown(grad.sizes), ", ", shown(weight.sizes), " and ", shown(input_size));
  check_magnitude(call, input_size, "input_size");
  for (int64_t size : input_size)
    check(size >= 0, PyExc_RuntimeError, name, "(): negative size in input_size=", shown(input_size));
  read_parameters(call, conv, at::stride, at::padding, at::dilation, at::groups);
  check_types(name, "Grad", grad, "weight", weight);
  const Dims expected = output_sizes(conv, name);
  check(grad.sizes == expected, PyExc_RuntimeError, name, "(): grad of shape ", shown(grad.sizes),
        " does not match the output of a convolution of ", shown(input_size), " by ", shown(weight.sizes),
        ", which has shape ", shown(expected));
  Dims sizes(input_size);
  const bool channels_last = unify_layouts(call, at::grad, at::weight);
  set_layout(call.add_output(grad.dtype, std::move(sizes)), channels_last);
}

void convolution_backward_weight(Call& call) {
  namespace at = positions::convolution_backward_weight;
  const TensorObject &grad = call.tensor(at::grad), &input = call.tensor(at::input);
  const auto weight_size = call.ints(at::weight_size);
  Convolution conv{.spatial = input.ndim() - 2,
                   .input = input.sizes,
                   .weight = weight_size,
                   .stride = {},
                   .padding = {},
                   .dilation = {},
                   .groups = 1};
  constexpr const char* name = "convolution_backward_weight";
  check(conv.spatial >= 1 && grad.ndim() == input.ndim() && static_cast<int>(weight_size.size()) == input.ndim(),
        PyExc_RuntimeError, name,
        "(): grad, input and weight_size must have the same number of dimensions, 3 at least, but got ",
        shown(grad.sizes), ", ", shown(input.sizes), " and ", shown(weight_size));
  check_magnitude(call, weight_size, "weight_size");
  for (int64_t size : weight_size)
    check(size >= 0, PyExc_RuntimeError, name, "(): negative size in weight_size=", shown(weight_size));
  read_parameters(call, conv, at::stride, at::padding, at::dilation, at::groups);
  check_types(name, "Grad", grad, "input", input);
  const Dims expected = output_sizes(conv, name);
  check(grad.sizes == expected, PyExc_RuntimeError, name, "(): grad of shape ", shown(grad.sizes),
        " does not match the output of a convolution of ", shown(input.sizes), " by ", shown(weight_size),
        ", which has shape ", shown(expected));
  Dims sizes(weight_size);
  unify_layouts(call, at::grad, at::input);
  call.add_output(grad.dtype, std::move(sizes));
}

}  // namespace candelabra::shapes
