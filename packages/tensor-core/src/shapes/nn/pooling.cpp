// Pooling over spatial dimensions.
#include "candelabra/positions.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

namespace {

// One entry for each spatial dimension; `dilation` is empty for average pooling.
struct Pooling {
  std::span<const int64_t> kernel, stride, padding, dilation;
  bool ceil_mode;
};

// Returns the number of spatial dimensions of a batch (N, C, spatial...).
int spatial_dims(const Call& call, std::span<const int64_t> sizes) {
  check(sizes.size() >= 3 && sizes.size() <= 5, PyExc_RuntimeError, base_name(call),
        "(): expected a batch (N, C, spatial...) of 3 to 5 dimensions, but got shape ", shown(sizes));
  return static_cast<int>(sizes.size()) - 2;
}

void check_not_empty(const Call& call, std::span<const int64_t> sizes) {
  for (size_t d = 1; d < sizes.size(); ++d) {
    check(sizes[d] != 0, PyExc_RuntimeError, base_name(call),
          "(): Expected input to have non-zero size for non-batch dimensions, but input has sizes ", shown(sizes),
          " with dimension ", d, " being empty");
  }
}

struct PoolingPositions {
  int kernel_size, stride, padding, dilation /* -1: the operator has none */, ceil_mode;
};

// Expands the lists to all spatial dimensions. An empty stride means kernel_size.
Pooling read_parameters(Call& call, int spatial, const PoolingPositions& at) {
  expand_list(call, at.kernel_size, spatial, "kernel_size", "spatial");
  if (call[at.stride].count == 0) call.set_ints(at.stride, call.ints(at.kernel_size));
  expand_list(call, at.stride, spatial, "stride", "spatial");
  expand_list(call, at.padding, spatial, "padding", "spatial");
  Pooling pool{call.ints(at.kernel_size), call.ints(at.stride), call.ints(at.padding), {}, call.boolean(at.ceil_mode)};
  if (at.dilation >= 0) {
    expand_list(call, at.dilation, spatial, "dilation", "spatial");
    pool.dilation = call.ints(at.dilation);
    check_magnitude(call, pool.dilation, "dilation");
  }
  check_magnitude(call, pool.kernel, "kernel_size");
  check_magnitude(call, pool.stride, "stride");
  check_magnitude(call, pool.padding, "padding");
  for (int d = 0; d < spatial; ++d) {
    const int64_t step = pool.dilation.empty() ? 1 : pool.dilation[d];
    check(pool.kernel[d] > 0, PyExc_RuntimeError, base_name(call),
          "(): kernel size should be greater than zero, but got ", shown(pool.kernel));
    check(pool.stride[d] > 0, PyExc_RuntimeError, base_name(call),
          "(): stride should not be zero, and greater than zero, but got ", shown(pool.stride));
    check(step > 0, PyExc_RuntimeError, base_name(call), "(): dilation should be greater than zero, but got ",
          shown(pool.dilation));
    check(pool.padding[d] >= 0, PyExc_RuntimeError, base_name(call),
          "(): pad must be non-negative, but got pad: ", pool.padding[d]);
    check(pool.padding[d] <= ((pool.kernel[d] - 1) * step + 1) / 2, PyExc_RuntimeError, base_name(call),
          "(): pad should be at most half of effective kernel size, but got pad=", pool.padding[d],
          ", kernel_size=", pool.kernel[d], " and dilation=", step);
  }
  return pool;
}

Dims output_sizes(const Call& call, std::span<const int64_t> input, const Pooling& pool) {
  Dims sizes{input[0], input[1]};
  bool fits = true;
  for (size_t d = 0; d < pool.kernel.size(); ++d) {
    const int64_t step = pool.dilation.empty() ? 1 : pool.dilation[d], stride = pool.stride[d],
                  padding = pool.padding[d];
    const int64_t room = input[d + 2] + 2 * padding - step * (pool.kernel[d] - 1) - 1;
    const int64_t rounded = room + (pool.ceil_mode ? stride - 1 : 0);
    int64_t size = (rounded >= 0 ? rounded / stride : -((-rounded + stride - 1) / stride)) + 1;
    // The last window must start inside the input or the padding before it.
    if (pool.ceil_mode && (size - 1) * stride >= input[d + 2] + padding) --size;
    fits = fits && size >= 1;
    sizes.push_back(std::max<int64_t>(size, 0));
  }
  if (!fits) {
    auto dims = [](std::span<const int64_t> values) {
      std::string result;
      for (int64_t value : values.subspan(1)) result += (result.empty() ? "" : "x") + std::to_string(value);
      return result;
    };
    raise(PyExc_RuntimeError, base_name(call), "(): Given input size: (", dims(input), "). Calculated output size: (",
          dims(sizes), "). Output size is too small");
  }
  return sizes;
}

// adaptive_max_pool, adaptive_avg_pool: the same positions.
Dims adaptive_sizes(Call& call) {
  namespace at = positions::adaptive_max_pool;
  const TensorObject& self = call.tensor(at::self);
  const int spatial = spatial_dims(call, self.sizes);
  check_not_empty(call, self.sizes);
  expand_list(call, at::output_size, spatial, "output_size", "spatial");
  Dims sizes{self.sizes[0], self.sizes[1]};
  for (int64_t size : call.ints(at::output_size)) {
    check(size >= 0, PyExc_RuntimeError, base_name(call),
          "(): elements of output_size must be greater than or equal to 0 but received ",
          shown(call.ints(at::output_size)));
    sizes.push_back(size);
  }
  return sizes;
}

void add_results(Call& call, const TensorObject& self, const Dims& sizes, bool with_indices) {
  const bool channels_last = is_channels_last_batch(self);
  set_layout(call.add_output(self.dtype, sizes), channels_last);
  if (with_indices) set_layout(call.add_output(Dtype::Int64, sizes), channels_last);
}

void check_real(const Call& call, Dtype dtype) {
  if (is_complex(dtype) || dtype == Dtype::Bool) not_implemented(call, dtype);
}

void check_divisor(const Call& call, int i) {
  check(!call.arguments[i].given() || call.integer(i) != 0, PyExc_RuntimeError, base_name(call),
        "(): divisor must be not zero");
}

// Checks input_size, the sizes of the gradient of the input, against the gradient of the output.
Dims check_input_size(const Call& call, const TensorObject& grad, std::span<const int64_t> sizes) {
  check(static_cast<int>(sizes.size()) == grad.ndim() && grad.ndim() >= 2 && sizes[0] == grad.sizes[0] &&
            sizes[1] == grad.sizes[1],
        PyExc_RuntimeError, base_name(call), "(): grad of shape ", shown(grad.sizes),
        " does not belong to an input of shape ", shown(sizes));
  spatial_dims(call, sizes);
  check_magnitude(call, sizes, "input_size");
  for (int64_t size : sizes) {
    check(size >= 0, PyExc_RuntimeError, base_name(call), "(): negative size in input_size=", shown(sizes));
  }
  return Dims(sizes);
}

void add_gradient(Call& call, const TensorObject& grad, Dims sizes) {
  set_layout(call.add_output(grad.dtype, std::move(sizes)), is_channels_last_batch(grad));
}

// max_pool, max_pool_values: the same positions.
void add_maxima(Call& call, bool with_indices) {
  namespace at = positions::max_pool;
  const TensorObject& self = call.tensor(at::self);
  check_real(call, self.dtype);
  const int spatial = spatial_dims(call, self.sizes);
  check_not_empty(call, self.sizes);
  const Pooling pool =
      read_parameters(call, spatial, {at::kernel_size, at::stride, at::padding, at::dilation, at::ceil_mode});
  add_results(call, self, output_sizes(call, self.sizes, pool), with_indices);
}

}  // namespace

void max_pool(Call& call) {
  add_maxima(call, true);
}

void max_pool_values(Call& call) {
  add_maxima(call, false);
}

void adaptive_max_pool(Call& call) {
  const TensorObject& self = call.tensor(positions::adaptive_max_pool::self);
  check_real(call, self.dtype);
  add_results(call, self, adaptive_sizes(call), true);
}

void max_pool_backward(Call& call) {
  namespace at = positions::max_pool_backward;
  const TensorObject &grad = call.tensor(at::grad), &indices = call.tensor(at::indices);
  check(grad.sizes == indices.sizes, PyExc_RuntimeError, "max_pool_backward(): grad of shape ", shown(grad.sizes),
        " and indices of shape ", shown(indices.sizes), " do not match");
  check(indices.dtype == Dtype::Int64, PyExc_RuntimeError,
        "max_pool_backward(): expected indices of type Long, but got ", info(indices.dtype).type_name);
  if (!is_floating(grad.dtype)) not_implemented(call, grad.dtype);
  add_gradient(call, grad, check_input_size(call, grad, call.ints(at::input_size)));
}

void avg_pool(Call& call) {
  namespace at = positions::avg_pool;
  const TensorObject& self = call.tensor(at::self);
  check_real(call, self.dtype);
  const int spatial = spatial_dims(call, self.sizes);
  check_not_empty(call, self.sizes);
  const Pooling pool = read_parameters(call, spatial, {at::kernel_size, at::stride, at::padding, -1, at::ceil_mode});
  check_divisor(call, at::divisor_override);
  add_results(call, self, output_sizes(call, self.sizes, pool), false);
}

void adaptive_avg_pool(Call& call) {
  const TensorObject& self = call.tensor(positions::adaptive_avg_pool::self);
  check_real(call, self.dtype);
  add_results(call, self, adaptive_sizes(call), false);
}

void avg_pool_backward(Call& call) {
  namespace at = positions::avg_pool_backward;
  const TensorObject& grad = call.tensor(at::grad);
  Dims sizes = check_input_size(call, grad, call.ints(at::input_size));
  const Pooling pool =
      read_parameters(call, spatial_dims(call, sizes), {at::kernel_size, at::stride, at::padding, -1, at::ceil_mode});
  check_divisor(call, at::divisor_override);
  const Dims expected = output_sizes(call, sizes, pool);
  check(grad.sizes == expected, PyExc_RuntimeError, "avg_pool_backward(): grad of shape ", shown(grad.sizes),
        " does not match the output, which has shape ", shown(expected));
  add_gradient(call, grad, std::move(sizes));
}

void adaptive_avg_pool_backward(Call& call) {
  namespace at = positions::adaptive_avg_pool_backward;
  const TensorObject& grad = call.tensor(at::grad);
  add_gradient(call, grad, check_input_size(call, grad, call.ints(at::input_size)));
}

}  // namespace candelabra::shapes
