// Convolution over one to three spatial dimensions and its two gradients: Winograd and oneDNN for
// float32, oneDNN for half precisions, im2col and a matrix product for the others (float64,
// integers, complex).
#include <algorithm>
#include <array>
#include <optional>

#include "candelabra/arguments/convolution.hpp"
#include "candelabra/positions.hpp"
#include "dtypes.hpp"
#include "gemm/amx/bf16x3_gemm.hpp"
#include "gemm/matrix.hpp"
#include "kernels.hpp"
#include "kernels/convolution/convolution_image.hpp"
#include "kernels/convolution/convolution_onednn.hpp"
#include "kernels/convolution/winograd.hpp"
#include "kernels/convolution/winograd_amx.hpp"
#include "memory/allocator.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// Values of the spatial dimensions, padded at the front to three with `fill`.
std::array<int64_t, 3> pad_to_three(std::span<const int64_t> values, int64_t fill) {
  std::array<int64_t, 3> result{fill, fill, fill};
  std::copy(values.begin(), values.end(), result.end() - static_cast<ptrdiff_t>(values.size()));
  return result;
}

// The three operators have stride, padding, dilation and groups in common.
template <typename Arguments>
ConvolutionShape shape_of(const Arguments& args, const std::array<int64_t, 5>& input,
                          const std::array<int64_t, 5>& weight, const std::array<int64_t, 5>& output) {
  ConvolutionShape s;
  s.spatial = args.stride.size() == 3 ? 3 : 2;
  s.batch = input[0];
  s.groups = args.groups;
  s.input_channels = input[1];
  s.output_channels = weight[0];
  s.input = {input[2], input[3], input[4]};
  s.output = {output[2], output[3], output[4]};
  s.kernel = {weight[2], weight[3], weight[4]};
  s.stride = pad_to_three(args.stride, 1);
  s.padding = pad_to_three(args.padding, 0);
  s.dilation = pad_to_three(args.dilation, 1);
  return s;
}

// A range of output columns.
struct Span {
  int64_t begin, end;
};
// The columns whose input column, column * stride - padding + offset, lies in the input.
Span columns_inside(int64_t outputs, int64_t inputs, int64_t stride, int64_t padding, int64_t offset) {
  int64_t shift = padding - offset;
  int64_t begin = shift > 0 ? (shift + stride - 1) / stride : 0;
  int64_t last = inputs - 1 + shift;
  int64_t end = last < 0 ? 0 : last / stride + 1;
  begin = std::min(begin, outputs);
  return {begin, std::clamp(end, begin, outputs)};
}

// A row of the im2col matrix. Its element (channel, kz, ky, kx), (z, y, x) is the input pixel that
// the output pixel (z, y, x) multiplies with kernel element (kz, ky, kx); 0 in the padding.
struct Im2colRow {
  int64_t channel, dz, dy, dx;
  Span columns;
  Im2colRow(const ConvolutionShape& s, int64_t row) {
    const int64_t kx = row % s.kernel[2], ky = row / s.kernel[2] % s.kernel[1],
                  kz = row / (s.kernel[2] * s.kernel[1]) % s.kernel[0];
    channel = row / s.kernel_volume();
    dz = kz * s.dilation[0];
    dy = ky * s.dilation[1];
    dx = kx * s.dilation[2];
    columns = columns_inside(s.output[2], s.input[2], s.stride[2], s.padding[2], dx);
  }
  // f(inside, z, y) for each row of output pixels in order: its input row, and whether that is
  // outside the padding.
  template <typename F>
  void for_each_row(const ConvolutionShape& s, F&& f) const {
    for (int64_t z = 0; z < s.output[0]; ++z) {
      const int64_t iz = z * s.stride[0] - s.padding[0] + dz;
      for (int64_t y = 0; y < s.output[1]; ++y) {
        const int64_t iy = y * s.stride[1] - s.padding[1] + dy;
        const bool inside = iz >= 0 && iz < s.input[0] && iy >= 0 && iy < s.input[1];
        f(inside, iz, iy);
      }
    }
  }
};

template <typename T>
void im2col(const ConvolutionShape& s, const Image<const T>& input, int64_t sample, int64_t group, T* columns) {
  const int64_t pixels = s.output_plane();
  parallel_for(s.group_inputs() * s.kernel_volume(), grain_for(pixels), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const Im2colRow at(s, row);
      const T* plane = input.at(sample, group * s.group_inputs() + at.channel);
      const int64_t step = s.stride[2] * input.strides[4];
      T* out = columns + row * pixels;
      at.for_each_row(s, [&](bool inside, int64_t iz, int64_t iy) {
        if (inside) {
          const T* in = plane + input.row_offset(iz, iy) + (at.dx - s.padding[2]) * input.strides[4];
          std::fill(out, out + at.columns.begin, T{});
          if (step == 1)
            std::copy(in + at.columns.begin, in + at.columns.end, out + at.columns.begin);
          else
            for (int64_t x = at.columns.begin; x < at.columns.end; ++x) out[x] = in[x * step];
          std::fill(out + at.columns.end, out + s.output[2], T{});
        } else {
          std::fill_n(out, s.output[2], T{});
        }
        out += s.output[2];
      });
    }
  });
}

// The transpose of im2col: adds every element to the pixel that it came from. The planes start at
// zero.
template <typename T>
void col2im(const ConvolutionShape& s, const T* columns, const Image<T>& input, int64_t sample, int64_t group) {
  const int64_t pixels = s.output_plane(), volume = s.kernel_volume();
  parallel_for(s.group_inputs(), grain_for(pixels * volume), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin * volume; row < end * volume; ++row) {
      const Im2colRow at(s, row);
      T* plane = input.at(sample, group * s.group_inputs() + at.channel);
      const int64_t step = s.stride[2] * input.strides[4];
      const T* in = columns + row * pixels;
      at.for_each_row(s, [&](bool inside, int64_t iz, int64_t iy) {
        if (inside) {
          T* out = plane + input.row_offset(iz, iy) + (at.dx - s.padding[2]) * input.strides[4];
          for (int64_t x = at.columns.begin; x < at.columns.end; ++x) {
            if constexpr (is_integer_v<T>)
              out[x * step] = static_cast<T>(static_cast<uint64_t>(out[x * step]) + static_cast<uint64_t>(in[x]));
            else
              out[x * step] += in[x];
          }
        }
        in += s.output[2];
      });
    }
  });
}

// The weights of one group as a matrix: one row per output channel, one column per (channel, kz,
// ky, kx).
template <typename T>
Matrix<T> filters(const Image<T>& dense_weight, const ConvolutionShape& s, int64_t group) {
  int64_t columns = s.group_inputs() * s.kernel_volume();
  return {dense_weight.data + group * s.group_outputs() * columns, s.group_outputs(), columns, columns, 1};
}

template <typename T>
void forward_by_im2col(const ConvolutionShape& s, const Image<const T>& input, const Image<const T>& given_weight,
                       const cb_tensor* bias, const Image<T>& given_output) {
  DenseImage<const T> weight(given_weight, is_dense(given_weight), false);
  DenseImage<T> output(given_output, given_output.has_joined_plane(), true);
  int64_t pixels = s.output_plane(), rows = s.group_inputs() * s.kernel_volume();
  parallel_for(s.batch * s.groups, grain_for(rows * pixels * s.group_outputs() / 8), [&](int64_t begin, int64_t end) {
    Scratch<T> columns(rows * pixels);
    for (int64_t i = begin; i < end; ++i) {
      int64_t sample = i / s.groups, group = i % s.groups;
      im2col<T>(s, input, sample, group, columns.data());
      Matrix<T> result = output.image().pixels(sample, group * s.group_outputs(), s.group_outputs());
      if (bias)
        copy_matrix<T>({data<T>(*bias) + group * s.group_outputs() * bias->strides[0], result.rows, result.columns,
                        bias->strides[0], 0},
                       result);
      multiply<T>(filters(weight.image(), s, group), {columns.data(), rows, pixels, pixels, 1}, T(1), T(bias ? 1 : 0),
                  result);
    }
  });
  output.finish();
}

template <typename T>
void input_gradient_by_im2col(const ConvolutionShape& s, const Image<const T>& given_grad,
                              const Image<const T>& given_weight, const Image<T>& input) {
  DenseImage<const T> weight(given_weight, is_dense(given_weight), false);
  DenseImage<const T> grad(given_grad, given_grad.has_joined_plane(), false);
  int64_t pixels = s.output_plane(), rows = s.group_inputs() * s.kernel_volume();
  fill_image<T>(input, T{});
  parallel_for(s.batch * s.groups, 1, [&](int64_t begin, int64_t end) {
    Scratch<T> columns(rows * pixels);
    for (int64_t i = begin; i < end; ++i) {
      int64_t sample = i / s.groups, group = i % s.groups;
      multiply<T>(filters(weight.image(), s, group).transposed(),
                  grad.image().pixels(sample, group * s.group_outputs(), s.group_outputs()), T(1), T(0),
                  {columns.data(), rows, pixels, pixels, 1});
      col2im<T>(s, columns.data(), input, sample, group);
    }
  });
}

template <typename T>
void weight_gradient_by_im2col(const ConvolutionShape& s, const Image<const T>& given_grad, const Image<const T>& input,
                               const Image<T>& given_weight) {
  DenseImage<T> weight(given_weight, is_dense(given_weight), true);
  DenseImage<const T> grad(given_grad, given_grad.has_joined_plane(), false);
  int64_t pixels = s.output_plane(), rows = s.group_inputs() * s.kernel_volume();
  // Samples are added in order, so that the sum does not depend on the number of threads.
  parallel_for(s.groups, 1, [&](int64_t begin, int64_t end) {
    Scratch<T> columns(rows * pixels);
    for (int64_t group = begin; group < end; ++group)
      for (int64_t sample = 0; sample < s.batch; ++sample) {
        im2col<T>(s, input, sample, group, columns.data());
        multiply<T>(grad.image().pixels(sample, group * s.group_outputs(), s.group_outputs()),
                    Matrix<const T>{columns.data(), rows, pixels, pixels, 1}.transposed(), T(1), T(sample == 0 ? 0 : 1),
                    filters(weight.image(), s, group));
      }
  });
  weight.finish();
}

template <typename T>
constexpr bool onednn_has = is_half_v<T> || std::is_same_v<T, float>;

// So little work that oneDNN's setup and reorders cost more than the convolution.
bool is_tiny(const ConvolutionShape& s) {
  constexpr int64_t few = int64_t{1} << 15;
  return s.batch * s.output_channels * s.output_plane() <= few / (s.group_inputs() * s.kernel_volume());
}

// ---- 3x3 kernels by Winograd's method

template <typename T>
winograd::Images images_of(const Image<T>& image) {
  return {const_cast<float*>(image.data),
          image.sizes[1],
          image.sizes[3],
          image.sizes[4],
          image.strides[0],
          image.strides[1],
          image.strides[3],
          image.strides[4]};
}

// The weight as the forward pass takes it; with `rotated`, channels exchanged and the kernel
// rotated by 180 degrees, as the gradient of the input takes it.
template <typename T>
winograd::Weight weight_of(const Image<T>& weight, bool rotated) {
  const std::array<int64_t, 5>&n = weight.sizes, &step = weight.strides;
  float* values = const_cast<float*>(weight.data);
  if (rotated) return {values, n[0], n[1], step[0], step[1], step[3], step[4], true};
  return {values, n[1], n[0], step[1], step[0], step[3], step[4], false};
}
template <typename T>
bool is_dense_or_channels_last(const Image<T>& weight) {
  const std::array<int64_t, 5>&n = weight.sizes, &step = weight.strides;
  return is_dense(weight) ||
         (step[1] == 1 && step[4] == n[1] && step[3] == n[1] * n[4] && step[0] == n[1] * n[4] * n[3]);
}

// Whether AMX is used for the products of tiles and channels. A tile covers 4x4 pixels of
// `results`.
template <typename Weight>
bool suits_amx(const Weight& weight, const winograd::Images& results, int64_t batch, bool is_weight_gradient) {
  const int64_t tiles = winograd::Tiling(batch, results.rows, results.columns, 1).tiles();
  return has_amx_gemm() && winograd::suits_amx(weight.inputs, weight.outputs, tiles, is_weight_gradient);
}

bool convolve_by_winograd(const winograd::Images& input, const winograd::Weight& weight, const float* bias,
                          const winograd::Images& output, int64_t batch, int64_t pad_rows, int64_t pad_columns) {
  if constexpr (winograd::lanes == 16)
    if (suits_amx(weight, output, batch, false) &&
        winograd::convolve_on_amx(input, weight, bias, output, batch, pad_rows, pad_columns))
      return true;
  return winograd::convolve(input, weight, bias, output, batch, pad_rows, pad_columns);
}

bool winograd_forward(const ConvolutionShape& s, const Image<const float>& input, const Image<const float>& weight,
                      const float* bias, const Image<float>& output) {
  const winograd::Images from = images_of(input), to = images_of(output);
  if (!winograd::suits(s, to.rows, to.columns) || !from.suits() || !to.suits() || !is_dense_or_channels_last(weight))
    return false;
  return convolve_by_winograd(from, weight_of(weight, false), bias, to, s.batch, s.padding[1], s.padding[2]);
}

bool winograd_input_gradient(const ConvolutionShape& s, const Image<const float>& grad,
                             const Image<const float>& weight, const Image<float>& input) {
  const winograd::Images from = images_of(grad), to = images_of(input);
  if (!winograd::suits(s, to.rows, to.columns) || !from.suits() || !to.suits() || !is_dense_or_channels_last(weight))
    return false;
  return convolve_by_winograd(from, weight_of(weight, true), nullptr, to, s.batch, 2 - s.padding[1], 2 - s.padding[2]);
}

bool winograd_weight_gradient(const ConvolutionShape& s, const Image<const float>& grad,
                              const Image<const float>& input, const Image<float>& weight) {
  const winograd::Images from = images_of(input), grads = images_of(grad);
  if (!winograd::suits(s, grads.rows, grads.columns) || !from.suits() || !grads.suits() ||
      !is_dense_or_channels_last(weight))
    return false;
  const winograd::Weight result = weight_of(weight, false);
  if constexpr (winograd::lanes == 16)
    if (suits_amx(result, grads, s.batch, true) &&
        winograd::weight_gradient_on_amx(from, grads, result, s.batch, s.padding[1], s.padding[2]))
      return true;
  return winograd::weight_gradient(from, grads, result, s.batch, s.padding[1], s.padding[2]);
}

// ---- float32 by Winograd or oneDNN; false where neither supports the shape

bool forward_in_float(const ConvolutionShape& s, const Image<const float>& input, const Image<const float>& weight,
                      uint64_t weight_contents, const float* bias, const Image<float>& output) {
  return winograd_forward(s, input, weight, bias, output) ||
         onednn_convolution(ConvolutionKind::forward, CB_FLOAT32, s, input.operand(), weight.operand(weight_contents),
                            bias, output.operand());
}

bool input_gradient_in_float(const ConvolutionShape& s, const Image<const float>& grad,
                             const Image<const float>& weight, uint64_t weight_contents, const Image<float>& input) {
  return winograd_input_gradient(s, grad, weight, input) ||
         onednn_convolution(ConvolutionKind::input_gradient, CB_FLOAT32, s, input.operand(),
                            weight.operand(weight_contents), nullptr, grad.operand());
}

bool weight_gradient_in_float(const ConvolutionShape& s, const Image<const float>& grad,
                              const Image<const float>& input, const Image<float>& weight) {
  return winograd_weight_gradient(s, grad, input, weight) ||
         onednn_convolution(ConvolutionKind::weight_gradient, CB_FLOAT32, s, input.operand(), weight.operand(), nullptr,
                            grad.operand());
}

void convolution(Call& call) {
  namespace at = positions::convolution;
  const arguments::Convolution args(call);
  cb_tensor& out = call.output();
  const cb_tensor* bias = args.bias;
  if (out.numel == 0) return;
  dispatch<NumberTypes>(out.dtype, [&]<typename T>() {
    Image<const T> input = image<const T>(*args.input), weight = image<const T>(*args.weight);
    Image<T> output = image<T>(out);
    ConvolutionShape s = shape_of(args, input.sizes, weight.sizes, output.sizes);
    bool empty_product = weight.numel() == 0 || input.numel() == 0;
    if constexpr (onednn_has<T>) {
      if (!empty_product && !(std::is_same_v<T, float> && is_tiny(s))) {
        std::optional<Scratch<T>> packed;
        const T* dense_bias = bias ? data<T>(*bias) : nullptr;
        if (bias && s.output_channels > 1 && bias->strides[0] != 1) {
          packed.emplace(s.output_channels);
          for (int64_t i = 0; i < s.output_channels; ++i) (*packed)[i] = data<T>(*bias)[i * bias->strides[0]];
          dense_bias = packed->data();
        }
        if constexpr (std::is_same_v<T, float>) {
          if (forward_in_float(s, input, weight, call.content_version(at::weight), dense_bias, output)) return;
        } else if (onednn_convolution(ConvolutionKind::forward, dtype_v<T>, s, input.operand(),
                                      weight.operand(call.content_version(at::weight)), dense_bias, output.operand())) {
          return;
        }
      }
    }
    if constexpr (is_half_v<T>) {
      const WidenedImage<T> wide_input(input), wide_weight(weight), wide_output(output);
      Scratch<float> bias_values(s.output_channels);
      int64_t sizes[] = {s.output_channels}, strides[] = {1};
      cb_tensor wide_bias{};
      wide_bias.data = bias_values.data();
      wide_bias.sizes = sizes;
      wide_bias.strides = strides;
      wide_bias.numel = s.output_channels;
      wide_bias.ndim = 1;
      wide_bias.dtype = CB_FLOAT32;
      if (bias)
        for (int64_t i = 0; i < s.output_channels; ++i) bias_values[i] = data<T>(*bias)[i * bias->strides[0]];
      if (empty_product || !forward_in_float(s, wide_input.values(), wide_weight.values(), 0,
                                             bias ? bias_values.data() : nullptr, wide_output.image()))
        forward_by_im2col<float>(s, wide_input.values(), wide_weight.values(), bias ? &wide_bias : nullptr,
                                 wide_output.image());
      wide_output.round_to(output);
    } else {
      forward_by_im2col<T>(s, input, weight, bias, output);
    }
  });
}

void convolution_backward_input(Call& call) {
  namespace at = positions::convolution_backward_input;
  const arguments::ConvolutionBackwardInput args(call);
  cb_tensor& out = call.output();
  if (out.numel == 0) return;
  dispatch<NumberTypes>(out.dtype, [&]<typename T>() {
    Image<const T> grad = image<const T>(*args.grad), weight = image<const T>(*args.weight);
    Image<T> input = image<T>(out);
    ConvolutionShape s = shape_of(args, input.sizes, weight.sizes, grad.sizes);
    if (grad.numel() == 0 || weight.numel() == 0) return fill_image<T>(input, T{});
    if constexpr (std::is_same_v<T, float>)
      if (input_gradient_in_float(s, grad, weight, call.content_version(at::weight), input)) return;
    if constexpr (is_half_v<T>) {
      if (onednn_convolution(ConvolutionKind::input_gradient, dtype_v<T>, s, input.operand(),
                             weight.operand(call.content_version(at::weight)), nullptr, grad.operand()))
        return;
      const WidenedImage<T> wide_grad(grad), wide_weight(weight), wide_input(input);
      if (!input_gradient_in_float(s, wide_grad.values(), wide_weight.values(), 0, wide_input.image()))
        input_gradient_by_im2col<float>(s, wide_grad.values(), wide_weight.values(), wide_input.image());
      wide_input.round_to(input);
    } else {
      input_gradient_by_im2col<T>(s, grad, weight, input);
    }
  });
}

void convolution_backward_weight(Call& call) {
  const arguments::ConvolutionBackwardWeight args(call);
  cb_tensor& out = call.output();
  if (out.numel == 0) return;
  dispatch<NumberTypes>(out.dtype, [&]<typename T>() {
    Image<const T> grad = image<const T>(*args.grad), input = image<const T>(*args.input);
    Image<T> weight = image<T>(out);
    ConvolutionShape s = shape_of(args, input.sizes, weight.sizes, grad.sizes);
    if (grad.numel() == 0 || input.numel() == 0) return fill_image<T>(weight, T{});
    if constexpr (std::is_same_v<T, float>)
      if (weight_gradient_in_float(s, grad, input, weight)) return;
    if constexpr (is_half_v<T>) {
      if (onednn_convolution(ConvolutionKind::weight_gradient, dtype_v<T>, s, input.operand(), weight.operand(),
                             nullptr, grad.operand()))
        return;
      const WidenedImage<T> wide_grad(grad), wide_input(input), wide_weight(weight);
      if (!weight_gradient_in_float(s, wide_grad.values(), wide_input.values(), wide_weight.image()))
        weight_gradient_by_im2col<float>(s, wide_grad.values(), wide_input.values(), wide_weight.image());
      wide_weight.round_to(weight);
    } else {
      weight_gradient_by_im2col<T>(s, grad, input, weight);
    }
  });
}

}  // namespace

void register_convolution(KernelTable& table) {
  table.add<convolution>("convolution", CB_KERNEL_READS_VERSIONS);
  table.add<convolution_backward_input>("convolution_backward_input", CB_KERNEL_READS_VERSIONS);
  table.add<convolution_backward_weight>("convolution_backward_weight");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
