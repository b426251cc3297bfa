// Pooling over spatial dimensions.
#include "checks.hpp"
#include "shapes.hpp"

namespace candelabra::shapes {

namespace {

struct Pooling {
  std::span<const int64_t> kernel, stride, padding, dilation;
  bool ceil_mode;
};

// The number of spatial dimensions of a batch (N, C, spatial...) of this many dimensions.
int spatial_of(const Call& call, std::span<const int64_t> sizes) {
  check(sizes.size() >= 3, PyExc_RuntimeError, base_name(call),
        "(): expected a batch (N, C, spatial...) of at least 3 dimensions, but got shape ", shown(sizes));
  return static_cast<int>(sizes.size()) - 2;
}

void check_not_empty(const Call& call, std::span<const int64_t> sizes) {
  for (size_t d = 1; d < sizes.size(); ++d) {
    check(sizes[d] != 0, PyExc_RuntimeError, base_name(call),
          "(): Expected input to have non-zero size for non-batch dimensions, but input has sizes ", shown(sizes),
          " with dimension ", d, " being empty");
  }
}

// Spreads the lists over the spatial dimensions; a missing stride is the kernel's size.
Pooling read_parameters(Call& call, int spatial, int kernel, int stride, int padding, int dilation, int ceil_mode) {
  spread_list(call, kernel, spatial, "kernel_size", "spatial");
  if (call[stride].count == 0) call.set_ints(stride, call.ints(kernel));
  spread_list(call, stride, spatial, "stride", "spatial");
  spread_list(call, padding, spatial, "padding", "spatial");
  Pooling pool{call.ints(kernel), call.ints(stride), call.ints(padding), {}, call.boolean(ceil_mode)};
  if (dilation >= 0) {
    spread_list(call, dilation, spatial, "dilation", "spatial");
    pool.dilation = call.ints(dilation);
    check_magnitude(call, pool.dilation, "dilation");
  }
  check_magnitude(call, pool.kernel, "kernel_size");
  check_magnitude(call, pool.stride, "stride");
  check_magnitude(call, pool.padding, "padding");
  for (int d = 0; d < spatial; ++d) {
    const int64_t step = pool.dilation.empty() ? 1 : pool.dilation[d];
    check(pool.kernel[d] > 0, PyExc_RuntimeError, base_name(call), "(): kernel size should be greater than zero, but got ",
          shown(pool.kernel));
    check(pool.stride[d] > 0, PyExc_RuntimeError, base_name(call), "(): stride should not be zero, and greater than zero, but got ",
          shown(pool.stride));
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
    const int64_t step = pool.dilation.empty() ? 1 : pool.dilation[d], stride = pool.stride[d], padding = pool.padding[d];
    const int64_t room = input[d + 2] + 2 * padding - step * (pool.kernel[d] - 1) - 1;
    const int64_t rounded = room + (pool.ceil_mode ? stride - 1 : 0);
    int64_t size = (rounded >= 0 ? rounded / stride : -((-rounded + stride - 1) / stride)) + 1;
    // The last window has to start inside of the input or of the padding before it.
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
    raise(PyExc_RuntimeError, base_name(call), "(): Given input size: (", dims(input), "). Calculated output size: (", dims(sizes),
          "). Output size is too small");
  }
  return sizes;
}

Dims adaptive_sizes(Call& call) {
  const TensorObject& self = call.tensor(0);
  const int spatial = spatial_of(call, self.sizes);
  check_not_empty(call, self.sizes);
  spread_list(call, 1, spatial, "output_size", "spatial");
  Dims sizes{self.sizes[0], self.sizes[1]};
  for (int64_t size : call.ints(1)) {
    check(size >= 0, PyExc_RuntimeError, base_name(call),
          "(): elements of output_size must be greater than or equal to 0 but received ", shown(call.ints(1)));
    sizes.push_back(size);
  }
  return sizes;
}

void add_results(Call& call, const Dims& sizes, bool with_indices) {
  const TensorObject& self = call.tensor(0);
  const bool channels_last = prefers_channels_last(self);
  set_layout(call.add_output(self.dtype, sizes), channels_last);
  if (with_indices) set_layout(call.add_output(Dtype::Int64, sizes), channels_last);
}

void check_real(const Call& call) {
  const Dtype dtype = call.tensor(0).dtype;
  if (is_complex(dtype) || dtype == Dtype::Bool) not_implemented(call, dtype);
}

// Argument i as the sizes of a gradient.
Dims gradient_sizes(Call& call, int i) {
  const TensorObject& grad = call.tensor(0);
  const auto sizes = call.ints(i);
  check(
      static_cast<int>(sizes.size()) == grad.ndim() && sizes.size() >= 3 && sizes[0] == grad.sizes[0] && sizes[1] == grad.sizes[1],
      PyExc_RuntimeError, base_name(call), "(): grad of shape ", shown(grad.sizes), " does not belong to an input of shape ",
      shown(sizes));
  check_magnitude(call, sizes, "input_size");
  for (int64_t size : sizes) {
    check(size >= 0, PyExc_RuntimeError, base_name(call), "(): negative size in input_size=", shown(sizes));
  }
  return Dims(sizes);
}

void add_gradient(Call& call, Dims sizes) {
  const bool channels_last = prefers_channels_last(call.tensor(0));
  set_layout(call.add_output(call.tensor(0).dtype, std::move(sizes)), channels_last);
}

}  // namespace

namespace {

void largest_of_windows(Call& call, bool with_indices) {
  check_real(call);
  const TensorObject& self = call.tensor(0);
  const int spatial = spatial_of(call, self.sizes);
  check_not_empty(call, self.sizes);
  const Pooling pool = read_parameters(call, spatial, 1, 2, 3, 4, 5);
  add_results(call, output_sizes(call, self.sizes, pool), with_indices);
}

}  // namespace

void max_pool(Call& call) {
  largest_of_windows(call, true);
}

void max_pool_values(Call& call) {
  largest_of_windows(call, false);
}

void adaptive_max_pool(Call& call) {
  check_real(call);
  add_results(call, adaptive_sizes(call), true);
}

void max_pool_backward(Call& call) {
  const TensorObject &grad = call.tensor(0), &indices = call.tensor(1);
  check(grad.sizes == indices.sizes, PyExc_RuntimeError, "max_pool_backward(): grad of shape ", shown(grad.sizes),
        " and indices of shape ", shown(indices.sizes), " do not match");
  check(indices.dtype == Dtype::Int64, PyExc_RuntimeError, "max_pool_backward(): expected indices of type Long, but got ",
        info(indices.dtype).type_name);
  add_gradient(call, gradient_sizes(call, 2));
}

void avg_pool(Call& call) {
  check_real(call);
  const TensorObject& self = call.tensor(0);
  const int spatial = spatial_of(call, self.sizes);
  check_not_empty(call, self.sizes);
  const Pooling pool = read_parameters(call, spatial, 1, 2, 3, -1, 4);
  check(!call[6].given() || call.integer(6) != 0, PyExc_RuntimeError, "avg_pool(): divisor must be not zero");
  add_results(call, output_sizes(call, self.sizes, pool), false);
}

void adaptive_avg_pool(Call& call) {
  check_real(call);
  add_results(call, adaptive_sizes(call), false);
}

// avg_pool_backward and adaptive_avg_pool_backward
void pool_backward(Call& call) {
  Dims sizes = gradient_sizes(call, 1);
  if (base_name(call) == "avg_pool_backward") {
    const TensorObject& grad = call.tensor(0);
    const Pooling pool = read_parameters(call, spatial_of(call, sizes), 2, 3, 4, -1, 5);
    check(!call[7].given() || call.integer(7) != 0, PyExc_RuntimeError, "avg_pool_backward(): divisor must be not zero");
    const Dims expected = output_sizes(call, sizes, pool);
    check(grad.sizes == expected, PyExc_RuntimeError, "avg_pool_backward(): grad of shape ", shown(grad.sizes),
          " does not match the output, which has shape ", shown(expected));
  }
  add_gradient(call, std::move(sizes));
}

}  // namespace candelabra::shapes
