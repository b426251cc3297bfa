// Other sizes of images, values at any places of them, and mirrored or repeated edges.
#include "checks.hpp"
#include "shapes.hpp"

#include <cmath>
#include <cstring>

namespace candelabra::shapes {

namespace {

bool is(const Call& call, int i, const char* name) {
  return std::strcmp(call.arguments[i].string, name) == 0;
}

// Checks sizes of a batch (N, C, spatial…) and the options of resampling, whose arguments begin with the list `sizes`.
void check_resampling(Call& call, std::span<const int64_t> batch, int sizes) {
  const int spatial = static_cast<int>(batch.size()) - 2;
  check(spatial >= 1 && spatial <= 3, PyExc_RuntimeError, base_name(call),
        "(): expected a batch (N, C, spatial...) of 3 to 5 dimensions, but got shape ", shown(batch));
  check_magnitude(call, call.ints(sizes), "sizes");
  const Argument& scales = call[sizes + 1];
  check(scales.count == 0 || scales.count == spatial, PyExc_RuntimeError, base_name(call), "(): expected no scales or ", spatial,
        " of them, but got ", scales.count);
  for (int k = 0; k < scales.count; ++k) {
    check(std::isfinite(scales.floats[k]) && scales.floats[k] >= 0, PyExc_RuntimeError, base_name(call),
          "(): scales must be finite and not negative, but got ", scales.floats[k]);
  }
  const bool nearest = is(call, sizes + 2, "nearest") || is(call, sizes + 2, "nearest-exact");
  check(nearest || is(call, sizes + 2, "linear") || is(call, sizes + 2, "cubic"), PyExc_ValueError, base_name(call),
        "(): mode must be \"nearest\", \"nearest-exact\", \"linear\" or \"cubic\", but got \"", call[sizes + 2].string, "\"");
  check(!nearest || !call.boolean(sizes + 4), PyExc_ValueError, base_name(call), "(): nearest modes have no antialiasing");
}

void check_not_empty(const Call& call, std::span<const int64_t> from, std::span<const int64_t> to) {
  for (std::span<const int64_t> sizes : {from, to}) {
    for (int64_t size : sizes) {
      check(size > 0, PyExc_RuntimeError, base_name(call), "(): Input and output sizes should be greater than 0, but got input ",
            shown(from), " and output ", shown(to));
    }
  }
}

void add_like(Call& call, int i, Dims sizes) {
  const bool channels_last = prefers_channels_last(call.tensor(i));
  make_layout(call, i, channels_last);
  set_layout(call.add_output(call.tensor(i).dtype, std::move(sizes)), channels_last);
}

}  // namespace

// resample(self, output_size, scales, mode, align_corners, antialias)
void resample(Call& call) {
  const TensorObject& self = call.tensor(0);
  check_resampling(call, self.sizes, 1);
  const auto size = call.ints(1);
  const bool moves = is(call, 3, "nearest") || is(call, 3, "nearest-exact");
  if (is_complex(self.dtype) || (!is_floating(self.dtype) && self.dtype != Dtype::UInt8 && !moves)) {
    not_implemented(call, self.dtype);
  }
  check(static_cast<int>(size.size()) == self.ndim() - 2, PyExc_RuntimeError, "resample(): expected ", self.ndim() - 2,
        " sizes for an input of shape ", shown(self.sizes), ", but got ", shown(size));
  check_not_empty(call, std::span<const int64_t>(self.sizes).subspan(2), size);
  Dims sizes{self.sizes[0], self.sizes[1]};
  for (int64_t length : size) sizes.push_back(length);
  add_like(call, 0, std::move(sizes));
}

// resample_backward(grad, input_size, scales, mode, align_corners, antialias)
void resample_backward(Call& call) {
  const TensorObject& grad = call.tensor(0);
  check_resampling(call, grad.sizes, 1);
  const auto size = call.ints(1);
  if (!is_floating(grad.dtype)) not_implemented(call, grad.dtype);
  check(static_cast<int>(size.size()) == grad.ndim() && size[0] == grad.sizes[0] && size[1] == grad.sizes[1], PyExc_RuntimeError,
        "resample_backward(): grad of shape ", shown(grad.sizes), " does not belong to an input of shape ", shown(size));
  check_not_empty(call, size.subspan(2), std::span<const int64_t>(grad.sizes).subspan(2));
  add_like(call, 0, Dims(size));
}

namespace {

// Arguments self, grid, mode, padding_mode from `first` on.
void check_grid(Call& call, int first) {
  const TensorObject &self = call.tensor(first), &grid = call.tensor(first + 1);
  const char* name = "grid_sampler(): ";
  check(self.dtype == grid.dtype, PyExc_RuntimeError, name, "expected input and grid to have same dtype, but input has ",
        info(self.dtype).name, " and grid has ", info(grid.dtype).name);
  check((self.ndim() == 4 || self.ndim() == 5) && self.ndim() == grid.ndim(), PyExc_RuntimeError, name,
        "expected 4D or 5D input and grid with same number of dimensions, but got input with sizes ", shown(self.sizes),
        " and grid with sizes ", shown(grid.sizes));
  check(self.sizes[0] == grid.sizes[0], PyExc_RuntimeError, name,
        "expected grid and input to have same batch size, but got input with sizes ", shown(self.sizes), " and grid with sizes ",
        shown(grid.sizes));
  check(grid.sizes[grid.ndim() - 1] == self.ndim() - 2, PyExc_RuntimeError, name, "expected grid to have size ", self.ndim() - 2,
        " in last dimension, but got grid with sizes ", shown(grid.sizes));
  for (int d = 2; d < self.ndim(); ++d) {
    check(self.sizes[d] > 0, PyExc_RuntimeError, name, "expected input to have non-empty spatial dimensions, but input has sizes ",
          shown(self.sizes));
  }
  const bool cubic = is(call, first + 2, "bicubic");
  check(cubic || is(call, first + 2, "bilinear") || is(call, first + 2, "nearest"), PyExc_ValueError, name,
        "mode must be \"bilinear\", \"nearest\" or \"bicubic\", but got \"", call[first + 2].string, "\"");
  check(is(call, first + 3, "zeros") || is(call, first + 3, "border") || is(call, first + 3, "reflection"), PyExc_ValueError, name,
        "padding_mode must be \"zeros\", \"border\" or \"reflection\", but got \"", call[first + 3].string, "\"");
  check(!cubic || self.ndim() == 4, PyExc_RuntimeError, name, "bicubic interpolation only supports 4D input");
  if (!is_floating(self.dtype)) not_implemented(call, self.dtype);
}

Dims sampled_sizes(const TensorObject& self, const TensorObject& grid) {
  Dims sizes{self.sizes[0], self.sizes[1]};
  for (int d = 1; d + 1 < grid.ndim(); ++d) sizes.push_back(grid.sizes[d]);
  return sizes;
}

}  // namespace

void grid_sampler(Call& call) {
  check_grid(call, 0);
  call.add_output(call.tensor(0).dtype, sampled_sizes(call.tensor(0), call.tensor(1)));
}

// grid_sampler_backward(grad, self, grid, mode, padding_mode, align_corners, needs)
void grid_sampler_backward(Call& call) {
  check_grid(call, 1);
  const TensorObject &grad = call.tensor(0), &self = call.tensor(1), &grid = call.tensor(2);
  const Dims expected = sampled_sizes(self, grid);
  check(grad.sizes == expected, PyExc_RuntimeError, "grid_sampler_backward(): expected grad of shape ", shown(expected),
        ", but got ", shown(grad.sizes));
  check(call.ints(6).size() == 2, PyExc_RuntimeError, "grid_sampler_backward(): expected two entries in needs");
  const Dims sizes[2] = {self.sizes, grid.sizes};
  call.convert(0, self.dtype);
  call.make_contiguous(0);
  for (int i = 0; i < 2; ++i) call.add_output(self.dtype, call.ints(6)[i] ? sizes[i] : Dims{0});
}

namespace {

// Checks a list of amounts of padding, the last dimension first, for an input of these sizes; returns the sizes of the result.
Dims padded_sizes(Call& call, std::span<const int64_t> from, int list, int mode) {
  const auto amounts = call.ints(list);
  const int dims = static_cast<int>(amounts.size() / 2), ndim = static_cast<int>(from.size());
  check(amounts.size() % 2 == 0 && dims >= 1 && dims <= 3 && dims <= ndim, PyExc_RuntimeError, base_name(call),
        "(): expected two amounts of padding for each of one to three dimensions, but got ", shown(amounts),
        " for an input of shape ", shown(from));
  check_magnitude(call, amounts, "padding");
  const bool reflect = is(call, mode, "reflect"), circular = is(call, mode, "circular");
  check(reflect || circular || is(call, mode, "replicate"), PyExc_ValueError, base_name(call),
        "(): mode must be \"reflect\", \"replicate\" or \"circular\", but got \"", call[mode].string, "\"");
  Dims sizes(from);
  for (int k = 0; k < dims; ++k) {
    const int d = ndim - 1 - k;
    const int64_t before = amounts[2 * k], after = amounts[2 * k + 1], length = from[d];
    check(length + before + after >= 0, PyExc_RuntimeError, "The input size ", length, ", plus negative padding ", before, " and ",
          after, ", resulted in a negative output size, which is invalid. Check dimension ", d, " of your input.");
    check(!reflect || (before < length && after < length) || (before == 0 && after == 0), PyExc_RuntimeError,
          "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (", before, ", ",
          after, ") at dimension ", d, " of input ", shown(from));
    check(!circular || (before <= length && after <= length), PyExc_RuntimeError,
          "Padding value causes wrapping around more than once.");
    check(length > 0 || (before == 0 && after == 0), PyExc_RuntimeError, "Expected a non-empty dimension ", d, " for ",
          call[mode].string, " padding, but got input of size ", shown(from));
    sizes[d] = length + before + after;
  }
  return sizes;
}

}  // namespace

namespace {

// How many patches there are down and across an image; arguments from `first` on are kernel_size, dilation, padding and stride.
Dims patch_counts(const Call& call, int first, std::span<const int64_t> image) {
  constexpr int64_t least[] = {1, 1, 0, 1};
  for (int i = 0; i < 4; ++i) {
    const auto numbers = call.ints(first + i);
    check_magnitude(call, numbers, "parameters");
    check(numbers.size() == 2 && std::min(numbers[0], numbers[1]) >= least[i], PyExc_RuntimeError, base_name(call),
          "(): expected two numbers of at least ", least[i], ", but got ", shown(numbers));
  }
  Dims counts;
  for (size_t d = 0; d < 2; ++d) {
    const int64_t reach = call.ints(first + 1)[d] * (call.ints(first)[d] - 1) + 1;
    counts.push_back((image[d] + 2 * call.ints(first + 2)[d] - reach) / call.ints(first + 3)[d] + 1);
    check(image[d] + 2 * call.ints(first + 2)[d] >= reach, PyExc_RuntimeError, base_name(call), "(): an image of size ",
          shown(image), " has no patch of size ", shown(call.ints(first)));
  }
  return counts;
}

}  // namespace

// patches(self, kernel_size, dilation, padding, stride)
void patches(Call& call) {
  const TensorObject& self = call.tensor(0);
  check(self.ndim() == 4, PyExc_RuntimeError, "patches(): expected a batch (N, C, H, W), but got shape ", shown(self.sizes));
  const Dims sizes = self.sizes;
  const Dims counts = patch_counts(call, 1, std::span<const int64_t>(sizes).subspan(2));
  call.make_contiguous(0);
  call.add_output(self.dtype, Dims{sizes[0], sizes[1] * call.ints(1)[0] * call.ints(1)[1], counts[0] * counts[1]});
}

// patches_backward(grad, output_size, kernel_size, dilation, padding, stride)
void patches_backward(Call& call) {
  const TensorObject& grad = call.tensor(0);
  const auto image = call.ints(1);
  check(grad.ndim() == 3 && image.size() == 2, PyExc_RuntimeError,
        "patches_backward(): expected columns (N, C * KH * KW, L) and the size of an image, but got shape ", shown(grad.sizes),
        " and ", shown(image));
  check_magnitude(call, image, "output_size");
  const Dims counts = patch_counts(call, 2, image);
  const int64_t area = call.ints(2)[0] * call.ints(2)[1], channels = grad.sizes[1] / area;
  check(grad.sizes[1] % area == 0 && grad.sizes[2] == counts[0] * counts[1], PyExc_RuntimeError,
        "patches_backward(): columns of shape ", shown(grad.sizes), " do not belong to an image of size ", shown(image));
  call.make_contiguous(0);
  call.add_output(grad.dtype, Dims{grad.sizes[0], channels, image[0], image[1]});
}

// pad_constant(self, padding, value)
void pad_constant(Call& call) {
  const TensorObject& self = call.tensor(0);
  const auto padding = call.ints(1);
  check(padding.size() % 2 == 0 && padding.size() <= 2 * static_cast<size_t>(self.ndim()), PyExc_RuntimeError,
        "pad_constant(): expected two numbers for each of the last dimensions, but got ", shown(padding), " for shape ",
        shown(self.sizes));
  check_magnitude(call, padding, "padding");
  Dims sizes = self.sizes;
  for (size_t i = 0; i < padding.size() / 2; ++i) {
    int64_t& size = sizes[sizes.size() - 1 - i];
    size += padding[2 * i] + padding[2 * i + 1];
    check(size >= 0, PyExc_RuntimeError, "pad_constant(): padding ", shown(padding), " takes more away than shape ",
          shown(self.sizes), " has");
  }
  check_number_fits(call[2].scalar, self.dtype, true);
  set_layout(call.add_output(self.dtype, std::move(sizes)), prefers_channels_last(self));
}

namespace {

// Whether all spatial dimensions of a batch of images or volumes are padded: channels may come last then.
bool pads_images(Call& call, int padding, int tensor) {
  const size_t amounts = call.ints(padding).size();
  return (amounts == 4 || amounts == 6) && static_cast<size_t>(call.tensor(tensor).ndim()) == amounts / 2 + 2;
}

}  // namespace

// pad_edges(self, padding, mode)
void pad_edges(Call& call) {
  Dims sizes = padded_sizes(call, call.tensor(0).sizes, 1, 2);
  if (pads_images(call, 1, 0) && !is(call, 2, "circular")) {
    add_like(call, 0, std::move(sizes));
  } else {
    call.make_contiguous(0);
    call.add_output(call.tensor(0).dtype, std::move(sizes));
  }
}

// pad_edges_backward(grad, input_size, padding, mode)
void pad_edges_backward(Call& call) {
  const TensorObject& grad = call.tensor(0);
  const Dims from(call.ints(1));
  check_magnitude(call, call.ints(1), "input_size");
  for (int64_t size : from) {
    check(size >= 0, PyExc_RuntimeError, "pad_edges_backward(): negative size in input_size=", shown(from));
  }
  const Dims expected = padded_sizes(call, from, 2, 3);
  check(grad.sizes == expected, PyExc_RuntimeError, "pad_edges_backward(): expected grad of shape ", shown(expected), ", but got ",
        shown(grad.sizes));
  if (!is_floating(grad.dtype) && !is_complex(grad.dtype)) not_implemented(call, grad.dtype);
  if (pads_images(call, 2, 0) && !is(call, 3, "circular")) {
    add_like(call, 0, from);
  } else {
    call.make_contiguous(0);
    call.add_output(grad.dtype, from);
  }
}

}  // namespace candelabra::shapes
