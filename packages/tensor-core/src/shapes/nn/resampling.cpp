// Interpolation, grid sampling, im2col and padding.
#include "candelabra/positions.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

#include <cmath>
#include <string_view>

namespace candelabra::shapes {

namespace {

bool is_nearest(std::string_view mode) {
  return mode == "nearest" || mode == "nearest-exact";
}

// _upsample, _upsample_backward: the same positions. Checks the sizes of a batch (N, C, spatial...)
// and the options.
void check_resampling(Call& call, std::span<const int64_t> batch) {
  namespace at = positions::upsample;
  const int spatial = static_cast<int>(batch.size()) - 2;
  check(spatial >= 1 && spatial <= 3, PyExc_RuntimeError, base_name(call),
        "(): expected a batch (N, C, spatial...) of 3 to 5 dimensions, but got shape ", shown(batch));
  check_magnitude(call, call.ints(at::output_size), "sizes");
  const Argument& scales = call[at::scales];
  check(scales.count == 0 || scales.count == spatial, PyExc_RuntimeError, base_name(call), "(): expected no scales or ",
        spatial, " of them, but got ", scales.count);
  for (int k = 0; k < scales.count; ++k) {
    check(std::isfinite(scales.floats[k]) && scales.floats[k] >= 0, PyExc_RuntimeError, base_name(call),
          "(): scales must be finite and not negative, but got ", scales.floats[k]);
  }
  const std::string_view mode = call[at::mode].string;
  check(is_nearest(mode) || mode == "linear" || mode == "cubic", PyExc_ValueError, base_name(call),
        "(): mode must be \"nearest\", \"nearest-exact\", \"linear\" or \"cubic\", but got \"", mode, "\"");
  check(!is_nearest(mode) || !call.boolean(at::antialias), PyExc_ValueError, base_name(call),
        "(): nearest modes have no antialiasing");
}

void check_not_empty(const Call& call, std::span<const int64_t> from, std::span<const int64_t> to) {
  for (std::span<const int64_t> sizes : {from, to}) {
    for (int64_t size : sizes) {
      check(size > 0, PyExc_RuntimeError, base_name(call),
            "(): Input and output sizes should be greater than 0, but got input ", shown(from), " and output ",
            shown(to));
    }
  }
}

// Whether the strides ascend as those of channels-last images, gaps included: ATen's
// suggest_memory_format(). The stride of a batch of one counts, too.
bool suggests_channels_last(const TensorObject& tensor) {
  if (tensor.contiguous || tensor.ndim() < 4 || tensor.numel == 0 || tensor.strides[1] == 0) return false;
  int64_t least = 0;
  for (int step = 0; step < tensor.ndim(); ++step) {
    const int last = tensor.ndim() - 1;
    const int dim = step == 0 ? 1 : step == last ? 0 : last + 1 - step;
    if (tensor.strides[dim] < least || (dim == 0 && least == tensor.strides[1])) return false;
    least = tensor.strides[dim] * tensor.sizes[dim];
  }
  return true;
}

// Makes argument i contiguous in its memory order, and adds an output in the same order.
void add_like(Call& call, int i, Dims sizes) {
  const bool channels_last = suggests_channels_last(call.tensor(i));
  make_layout(call, i, channels_last);
  set_layout(call.add_output(call.tensor(i).dtype, std::move(sizes)), channels_last);
}

}  // namespace

void upsample(Call& call) {
  namespace at = positions::upsample;
  const TensorObject& self = call.tensor(at::self);
  check_resampling(call, self.sizes);
  const auto size = call.ints(at::output_size);
  const bool interpolates = !is_nearest(call[at::mode].string);
  if (is_complex(self.dtype) || (!is_floating(self.dtype) && self.dtype != Dtype::UInt8 && interpolates)) {
    not_implemented(call, self.dtype);
  }
  check(static_cast<int>(size.size()) == self.ndim() - 2, PyExc_RuntimeError, "_upsample(): expected ", self.ndim() - 2,
        " sizes for an input of shape ", shown(self.sizes), ", but got ", shown(size));
  check_not_empty(call, std::span<const int64_t>(self.sizes).subspan(2), size);
  Dims sizes{self.sizes[0], self.sizes[1]};
  for (int64_t length : size) sizes.push_back(length);
  add_like(call, at::self, std::move(sizes));
}

void upsample_backward(Call& call) {
  namespace at = positions::upsample_backward;
  const TensorObject& grad = call.tensor(at::grad);
  check_resampling(call, grad.sizes);
  const auto size = call.ints(at::input_size);
  if (!is_floating(grad.dtype)) not_implemented(call, grad.dtype);
  check(static_cast<int>(size.size()) == grad.ndim() && size[0] == grad.sizes[0] && size[1] == grad.sizes[1],
        PyExc_RuntimeError, "_upsample_backward(): grad of shape ", shown(grad.sizes),
        " does not belong to an input of shape ", shown(size));
  check_not_empty(call, size.subspan(2), std::span<const int64_t>(grad.sizes).subspan(2));
  add_like(call, at::grad, Dims(size));
}

namespace {

void check_grid(const Call& call, const TensorObject& self, const TensorObject& grid, std::string_view mode,
                std::string_view padding_mode) {
  const char* name = "grid_sampler(): ";
  check(self.dtype == grid.dtype, PyExc_RuntimeError, name,
        "expected input and grid to have same dtype, but input has ", info(self.dtype).name, " and grid has ",
        info(grid.dtype).name);
  check((self.ndim() == 4 || self.ndim() == 5) && self.ndim() == grid.ndim(), PyExc_RuntimeError, name,
        "expected 4D or 5D input and grid with same number of dimensions, but got input with sizes ", shown(self.sizes),
        " and grid with sizes ", shown(grid.sizes));
  check(self.sizes[0] == grid.sizes[0], PyExc_RuntimeError, name,
        "expected grid and input to have same batch size, but got input with sizes ", shown(self.sizes),
        " and grid with sizes ", shown(grid.sizes));
  check(grid.sizes[grid.ndim() - 1] == self.ndim() - 2, PyExc_RuntimeError, name, "expected grid to have size ",
        self.ndim() - 2, " in last dimension, but got grid with sizes ", shown(grid.sizes));
  for (int d = 2; d < self.ndim(); ++d) {
    check(self.sizes[d] > 0, PyExc_RuntimeError, name,
          "expected input to have non-empty spatial dimensions, but input has sizes ", shown(self.sizes));
  }
  check(mode == "bilinear" || mode == "nearest" || mode == "bicubic", PyExc_ValueError, name,
        "mode must be \"bilinear\", \"nearest\" or \"bicubic\", but got \"", mode, "\"");
  check(padding_mode == "zeros" || padding_mode == "border" || padding_mode == "reflection", PyExc_ValueError, name,
        "padding_mode must be \"zeros\", \"border\" or \"reflection\", but got \"", padding_mode, "\"");
  check(mode != "bicubic" || self.ndim() == 4, PyExc_RuntimeError, name,
        "bicubic interpolation only supports 4D input");
  if (!is_floating(self.dtype)) not_implemented(call, self.dtype);
}

Dims sampled_sizes(const TensorObject& self, const TensorObject& grid) {
  Dims sizes{self.sizes[0], self.sizes[1]};
  for (int d = 1; d + 1 < grid.ndim(); ++d) sizes.push_back(grid.sizes[d]);
  return sizes;
}

}  // namespace

void grid_sampler(Call& call) {
  namespace at = positions::grid_sampler;
  const TensorObject &self = call.tensor(at::self), &grid = call.tensor(at::grid);
  check_grid(call, self, grid, call[at::mode].string, call[at::padding_mode].string);
  call.add_output(self.dtype, sampled_sizes(self, grid));
}

void grid_sampler_backward(Call& call) {
  namespace at = positions::grid_sampler_backward;
  const TensorObject &grad = call.tensor(at::grad), &self = call.tensor(at::self), &grid = call.tensor(at::grid);
  check_grid(call, self, grid, call[at::mode].string, call[at::padding_mode].string);
  const Dims expected = sampled_sizes(self, grid);
  check(grad.sizes == expected, PyExc_RuntimeError, "grid_sampler_backward(): expected grad of shape ", shown(expected),
        ", but got ", shown(grad.sizes));
  check(call.ints(at::needs).size() == 2, PyExc_RuntimeError, "grid_sampler_backward(): expected two entries in needs");
  const Dims sizes[2] = {self.sizes, grid.sizes};
  call.convert(at::grad, self.dtype);
  call.make_contiguous(at::grad);
  for (int i = 0; i < 2; ++i) call.add_output(self.dtype, call.ints(at::needs)[i] ? sizes[i] : Dims{0});
}

namespace {

// Checks (before, after) amounts of padding, the last dimension first, of an input of sizes `from`.
// Returns the padded sizes.
Dims padded_sizes(const Call& call, std::span<const int64_t> from, std::span<const int64_t> amounts,
                  std::string_view mode) {
  const int dims = static_cast<int>(amounts.size() / 2), ndim = static_cast<int>(from.size());
  check(amounts.size() % 2 == 0 && dims >= 1 && dims <= 3 && dims <= ndim, PyExc_RuntimeError, base_name(call),
        "(): expected two amounts of padding for each of one to three dimensions, but got ", shown(amounts),
        " for an input of shape ", shown(from));
  check_magnitude(call, amounts, "padding");
  const bool reflect = mode == "reflect", circular = mode == "circular";
  check(reflect || circular || mode == "replicate", PyExc_ValueError, base_name(call),
        "(): mode must be \"reflect\", \"replicate\" or \"circular\", but got \"", mode, "\"");
  Dims sizes(from);
  for (int k = 0; k < dims; ++k) {
    const int d = ndim - 1 - k;
    const int64_t before = amounts[2 * k], after = amounts[2 * k + 1], length = from[d];
    check(length + before + after >= 0, PyExc_RuntimeError, "The input size ", length, ", plus negative padding ",
          before, " and ", after, ", resulted in a negative output size, which is invalid. Check dimension ", d,
          " of your input.");
    check(!reflect || (before < length && after < length) || (before == 0 && after == 0), PyExc_RuntimeError,
          "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (", before,
          ", ", after, ") at dimension ", d, " of input ", shown(from));
    check(!circular || (before <= length && after <= length), PyExc_RuntimeError,
          "Padding value causes wrapping around more than once.");
    check(length > 0 || (before == 0 && after == 0), PyExc_RuntimeError, "Expected a non-empty dimension ", d, " for ",
          mode, " padding, but got input of size ", shown(from));
    sizes[d] = length + before + after;
  }
  return sizes;
}

// The parameters of im2col: two numbers each.
struct Windows {
  std::span<const int64_t> kernel_size, dilation, padding, stride;
};

void check_pair(const Call& call, std::span<const int64_t> pair, int64_t minimum) {
  check_magnitude(call, pair, "parameters");
  check(pair.size() == 2 && std::min(pair[0], pair[1]) >= minimum, PyExc_RuntimeError, base_name(call),
        "(): expected two numbers of at least ", minimum, ", but got ", shown(pair));
}

// Returns the number of windows along the height and the width of an image.
Dims window_counts(const Call& call, const Windows& windows, std::span<const int64_t> image) {
  check_pair(call, windows.kernel_size, 1);
  check_pair(call, windows.dilation, 1);
  check_pair(call, windows.padding, 0);
  check_pair(call, windows.stride, 1);
  Dims counts;
  for (size_t d = 0; d < 2; ++d) {
    const int64_t extent = windows.dilation[d] * (windows.kernel_size[d] - 1) + 1,
                  padded = image[d] + 2 * windows.padding[d];
    counts.push_back((padded - extent) / windows.stride[d] + 1);
    check(padded >= extent, PyExc_RuntimeError, base_name(call), "(): an image of size ", shown(image),
          " has no patch of size ", shown(windows.kernel_size));
  }
  return counts;
}

}  // namespace

void im2col(Call& call) {
  namespace at = positions::im2col;
  const TensorObject& self = call.tensor(at::self);
  check(self.ndim() == 4, PyExc_RuntimeError, "im2col(): expected a batch (N, C, H, W), but got shape ",
        shown(self.sizes));
  const Dims sizes = self.sizes;
  const Windows windows{call.ints(at::kernel_size), call.ints(at::dilation), call.ints(at::padding),
                        call.ints(at::stride)};
  const Dims counts = window_counts(call, windows, std::span<const int64_t>(sizes).subspan(2));
  call.make_contiguous(at::self);
  const int64_t area = windows.kernel_size[0] * windows.kernel_size[1];
  call.add_output(self.dtype, Dims{sizes[0], sizes[1] * area, counts[0] * counts[1]});
}

void col2im(Call& call) {
  namespace at = positions::col2im;
  const TensorObject& grad = call.tensor(at::grad);
  const auto image = call.ints(at::output_size);
  check(grad.ndim() == 3 && image.size() == 2, PyExc_RuntimeError,
        "col2im(): expected columns (N, C * KH * KW, L) and the size of an image, but got shape ", shown(grad.sizes),
        " and ", shown(image));
  check_magnitude(call, image, "output_size");
  const Windows windows{call.ints(at::kernel_size), call.ints(at::dilation), call.ints(at::padding),
                        call.ints(at::stride)};
  const Dims counts = window_counts(call, windows, image);
  const int64_t area = windows.kernel_size[0] * windows.kernel_size[1], channels = grad.sizes[1] / area;
  check(grad.sizes[1] % area == 0 && grad.sizes[2] == counts[0] * counts[1], PyExc_RuntimeError,
        "col2im(): columns of shape ", shown(grad.sizes), " do not belong to an image of size ", shown(image));
  call.make_contiguous(at::grad);
  call.add_output(grad.dtype, Dims{grad.sizes[0], channels, image[0], image[1]});
}

void constant_pad_nd(Call& call) {
  namespace at = positions::constant_pad_nd;
  const TensorObject& self = call.tensor(at::self);
  const auto padding = call.ints(at::padding);
  check(padding.size() % 2 == 0 && padding.size() <= 2 * static_cast<size_t>(self.ndim()), PyExc_RuntimeError,
        "pad(): expected two numbers for each of the last dimensions, but got ", shown(padding), " for shape ",
        shown(self.sizes));
  check_magnitude(call, padding, "padding");
  Dims sizes = self.sizes;
  for (size_t i = 0; i < padding.size() / 2; ++i) {
    int64_t& size = sizes[sizes.size() - 1 - i];
    size += padding[2 * i] + padding[2 * i + 1];
    check(size >= 0, PyExc_RuntimeError, "pad(): padding ", shown(padding), " takes more away than shape ",
          shown(self.sizes), " has");
  }
  check_number_fits(call[at::value].scalar, self.dtype, true);
  set_layout(call.add_output(self.dtype, std::move(sizes)), is_channels_last_batch(self));
}

namespace {

// Whether this pads all spatial dimensions of a batch of images or volumes, for which kernels
// accept channels-last tensors.
bool accepts_channels_last(const TensorObject& tensor, std::span<const int64_t> padding, std::string_view mode) {
  const bool spatial =
      (padding.size() == 4 || padding.size() == 6) && static_cast<size_t>(tensor.ndim()) == padding.size() / 2 + 2;
  return spatial && mode != "circular";
}

}  // namespace

void reflection_replication_pad(Call& call) {
  namespace at = positions::reflection_replication_pad;
  const TensorObject& self = call.tensor(at::self);
  const auto padding = call.ints(at::padding);
  const std::string_view mode = call[at::mode].string;
  Dims sizes = padded_sizes(call, self.sizes, padding, mode);
  if (accepts_channels_last(self, padding, mode)) {
    add_like(call, at::self, std::move(sizes));
  } else {
    call.make_contiguous(at::self);
    call.add_output(self.dtype, std::move(sizes));
  }
}

void reflection_replication_pad_backward(Call& call) {
  namespace at = positions::reflection_replication_pad_backward;
  const TensorObject& grad = call.tensor(at::grad);
  const Dims from(call.ints(at::input_size));
  check_magnitude(call, call.ints(at::input_size), "input_size");
  for (int64_t size : from) {
    check(size >= 0, PyExc_RuntimeError,
          "_reflection_replication_pad_backward(): negative size in input_size=", shown(from));
  }
  const auto padding = call.ints(at::padding);
  const std::string_view mode = call[at::mode].string;
  const Dims expected = padded_sizes(call, from, padding, mode);
  check(grad.sizes == expected, PyExc_RuntimeError, "_reflection_replication_pad_backward(): expected grad of shape ",
        shown(expected), ", but got ", shown(grad.sizes));
  if (!is_floating(grad.dtype) && !is_complex(grad.dtype)) not_implemented(call, grad.dtype);
  if (accepts_channels_last(grad, padding, mode)) {
    add_like(call, at::grad, from);
  } else {
    call.make_contiguous(at::grad);
    call.add_output(grad.dtype, from);
  }
}

}  // namespace candelabra::shapes
