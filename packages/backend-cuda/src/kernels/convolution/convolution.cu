// Convolution over one to three spatial dimensions and its two gradients. cuDNN runs them where it
// has an engine. All else runs on one kernel, an implicit matrix product that gathers the patches
// as it needs them (implicit im2col; Chetlur et al. 2014).
#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "candelabra/arguments/convolution.hpp"
#include "drivers/elementwise.cuh"
#include "drivers/move.hpp"
#include "vendor/cudnn/cudnn_convolution.hpp"

namespace candelabra::cuda {
namespace {

using Dims = std::array<int64_t, 5>;

// ---- descriptors (N, C, D, H, W); missing spatial dimensions come first, with size 1

ConvolutionTensor five_dims(const cb_tensor& t) {
  ConvolutionTensor result{t.data, {}, {}};
  result.sizes.fill(1);
  const int missing = 5 - t.ndim;
  for (int d = 0; d < t.ndim; ++d) {
    const auto to = static_cast<size_t>(d < 2 ? d : d + missing);
    result.sizes[to] = t.sizes[d];
    result.strides[to] = t.strides[d];
  }
  return result;
}

Dims dense_strides(const Dims& n, bool channels_last) {
  if (channels_last) return {n[1] * n[2] * n[3] * n[4], 1, n[1] * n[3] * n[4], n[1] * n[4], n[1]};
  return {n[1] * n[2] * n[3] * n[4], n[2] * n[3] * n[4], n[3] * n[4], n[4], 1};
}

bool is_dense(const ConvolutionTensor& t, bool channels_last) {
  const Dims dense = dense_strides(t.sizes, channels_last);
  for (size_t d = 0; d < 5; ++d)
    if (t.sizes[d] != 1 && t.strides[d] != dense[d]) return false;
  return true;
}

// Whether the tensor is channels-last and not also row-major.
bool is_channels_last(const ConvolutionTensor& t) {
  return !is_dense(t, false) && is_dense(t, true);
}

int64_t numel_of(const ConvolutionTensor& t) {
  return t.sizes[0] * t.sizes[1] * t.sizes[2] * t.sizes[3] * t.sizes[4];
}

cb_tensor described(const Call& call, const ConvolutionTensor& t, int32_t dtype) {
  cb_tensor result{};
  result.data = const_cast<void*>(t.data);
  result.sizes = t.sizes.data();
  result.strides = t.strides.data();
  result.numel = numel_of(t);
  result.ndim = 5;
  result.dtype = dtype;
  result.device_index = call.device();
  return result;
}

// One value for each of three spatial dimensions; `otherwise` for the missing ones.
std::array<int64_t, 3> spatial_values(std::span<const int64_t> values, int64_t otherwise) {
  std::array<int64_t, 3> result{otherwise, otherwise, otherwise};
  std::copy(values.begin(), values.end(), result.end() - static_cast<ptrdiff_t>(values.size()));
  return result;
}

// The call as cuDNN and the kernel need it; `args` are those of the convolution or of one of its
// gradients.
template <typename Arguments>
Convolution describe(ConvolutionKind kind, const Arguments& args, const cb_tensor& input, const cb_tensor& weight,
                     const cb_tensor& output, int32_t dtype) {
  return {kind,
          dtype,
          args.stride.size() == 3 ? 3 : 2,
          five_dims(input),
          five_dims(weight),
          five_dims(output),
          spatial_values(args.stride, 1),
          spatial_values(args.padding, 0),
          spatial_values(args.dilation, 1)};
}

ConvolutionTensor& result_of(Convolution& c) {
  return c.kind == ConvolutionKind::Forward ? c.output : c.kind == ConvolutionKind::InputGradient ? c.input : c.weight;
}

// ---- cuDNN

// Samples [begin, end) of a batch.
Convolution samples(const Convolution& c, int64_t begin, int64_t end) {
  Convolution part = c;
  for (ConvolutionTensor* t : {&part.input, &part.output}) {
    t->data = static_cast<const std::byte*>(t->data) + begin * t->strides[0] * itemsize(c.dtype);
    t->sizes[0] = end - begin;
  }
  return part;
}

// cuDNN gets all tensors dense in one memory format. Other inputs are copied first, another output
// afterwards.
bool run_cudnn(const Call& call, const Convolution& given) {
  if (!is_floating_dtype(given.dtype) || !uses_cudnn()) return false;
  // Engines count elements in 32 bits: a larger batch is halved. The gradient of the weight, a sum
  // over the batch, is left to the direct kernel.
  constexpr int64_t most = (int64_t{1} << 31) - 1;
  if (std::max({numel_of(given.input), numel_of(given.weight), numel_of(given.output)}) > most) {
    const int64_t batch = given.input.sizes[0];
    if (batch == 1 || numel_of(given.weight) > most || given.kind == ConvolutionKind::WeightGradient) return false;
    return run_cudnn(call, samples(given, 0, batch / 2)) && run_cudnn(call, samples(given, batch / 2, batch));
  }
  Convolution c = given;
  const bool channels_last = is_channels_last(c.input) || is_channels_last(c.output) || is_channels_last(c.weight);
  std::array<Workspace, 3> copies;
  const ConvolutionTensor result = result_of(c);
  const std::array<ConvolutionTensor*, 3> tensors{&c.input, &c.weight, &c.output};
  for (size_t i = 0; i < tensors.size(); ++i) {
    ConvolutionTensor& t = *tensors[i];
    const ConvolutionTensor original = t;
    t.strides = dense_strides(t.sizes, channels_last);
    if (is_dense(original, channels_last)) continue;
    copies[i] = Workspace(call, static_cast<size_t>(numel_of(t) * itemsize(c.dtype)));
    t.data = copies[i].data();
    if (&t != &result_of(c)) move_elements(call, described(call, t, c.dtype), described(call, original, c.dtype));
  }
  if (!cudnn_convolution(call, c)) return false;
  const ConvolutionTensor& made = result_of(c);
  if (made.data != result.data) move_elements(call, described(call, result, c.dtype), described(call, made, c.dtype));
  return true;
}

// ---- complex numbers by cuDNN: each channel becomes two, the real and the imaginary parts

// An entry w of the weight becomes the real matrix [[re, -im], [im, re]] of the product by w.
// ConjugateMatrix is the matrix of conj(w): its transpose multiplies by w in the gradient of the
// input.
enum class Parts { Channels, Matrix, ConjugateMatrix };

struct Split {
  Dims sizes, strides;  // of the complex tensor
  int64_t numel;
  Parts parts;
};

template <typename R>
__global__ void __launch_bounds__(256)
    split_kernel(R* to, const ::cuda::std::complex<R>* from, const __grid_constant__ Split split) {
  const int64_t plane = split.sizes[2] * split.sizes[3] * split.sizes[4];
  for (int64_t i = first_index(); i < split.numel; i += index_step()) {
    int64_t rest = i, at[5];
    for (int d = 4; d >= 0; --d) {
      at[d] = rest % split.sizes[d];
      rest /= split.sizes[d];
    }
    int64_t offset = 0;
    for (int d = 0; d < 5; ++d) offset += at[d] * split.strides[d];
    const ::cuda::std::complex<R> value = from[offset];
    const int64_t pixel = i % plane, channels = split.sizes[1];
    if (split.parts == Parts::Channels) {
      R* target = to + (at[0] * channels + at[1]) * 2 * plane + pixel;
      target[0] = value.real();
      target[plane] = value.imag();
    } else {
      const R imaginary = split.parts == Parts::Matrix ? value.imag() : -value.imag();
      R* row = to + (at[0] * 2 * channels + at[1]) * 2 * plane + pixel;
      row[0] = value.real();
      row[plane] = -imaginary;
      R* second = row + 2 * channels * plane;
      second[0] = imaginary;
      second[plane] = value.real();
    }
  }
}

// The inverse of split_kernel. The gradients of the four entries of a matrix give the gradient of
// w.
template <typename R>
__global__ void __launch_bounds__(256)
    join_kernel(::cuda::std::complex<R>* to, const R* from, const __grid_constant__ Split split, const R* bias_real) {
  const int64_t plane = split.sizes[2] * split.sizes[3] * split.sizes[4];
  for (int64_t i = first_index(); i < split.numel; i += index_step()) {
    int64_t rest = i, at[5];
    for (int d = 4; d >= 0; --d) {
      at[d] = rest % split.sizes[d];
      rest /= split.sizes[d];
    }
    int64_t offset = 0;
    for (int d = 0; d < 5; ++d) offset += at[d] * split.strides[d];
    const int64_t pixel = i % plane, channels = split.sizes[1];
    R real, imaginary;
    if (split.parts == Parts::Channels) {
      const R* source = from + (at[0] * channels + at[1]) * 2 * plane + pixel;
      real = source[0];
      imaginary = source[plane];
      if (bias_real) {
        real += bias_real[2 * at[1]];
        imaginary += bias_real[2 * at[1] + 1];
      }
    } else {
      const R* row = from + (at[0] * 2 * channels + at[1]) * 2 * plane + pixel;
      const R* second = row + 2 * channels * plane;
      real = row[0] - second[plane];
      imaginary = row[plane] + second[0];
    }
    to[offset] = ::cuda::std::complex<R>(real, imaginary);
  }
}

struct RealTensor {
  ConvolutionTensor tensor;
  Workspace memory;
};

Split split_of(const ConvolutionTensor& t, Parts parts) {
  return {t.sizes, t.strides, numel_of(t), parts};
}

template <typename R>
RealTensor real_tensor(const Call& call, const ConvolutionTensor& t, Parts parts) {
  RealTensor result{t, {}};
  result.tensor.sizes[1] *= 2;
  if (parts != Parts::Channels) result.tensor.sizes[0] *= 2;
  result.tensor.strides = dense_strides(result.tensor.sizes, false);
  result.memory = Workspace(call, static_cast<size_t>(numel_of(result.tensor)) * sizeof(R));
  result.tensor.data = result.memory.data();
  return result;
}

template <typename R>
RealTensor split(const Call& call, const ConvolutionTensor& t, Parts parts) {
  RealTensor result = real_tensor<R>(call, t, parts);
  launch(call, split_kernel<R>, grid_for(call, numel_of(t), 256), 256, 0, result.memory.as<R>(),
         static_cast<const ::cuda::std::complex<R>*>(t.data), split_of(t, parts));
  return result;
}

// `bias` is contiguous.
template <typename R>
bool run_complex_cudnn(const Call& call, const Convolution& c, const cb_tensor* bias) {
  constexpr int64_t most = (int64_t{1} << 29) - 1;  // a complex weight becomes four real ones
  if (!uses_cudnn() || std::max({numel_of(c.input), numel_of(c.weight), numel_of(c.output)}) > most) return false;
  const bool forward = c.kind == ConvolutionKind::Forward, to_input = c.kind == ConvolutionKind::InputGradient;
  const bool to_weight = c.kind == ConvolutionKind::WeightGradient;
  const Parts parts = to_input ? Parts::ConjugateMatrix : Parts::Matrix;
  const RealTensor input =
      to_input ? real_tensor<R>(call, c.input, Parts::Channels) : split<R>(call, c.input, Parts::Channels);
  const RealTensor weight = to_weight ? real_tensor<R>(call, c.weight, parts) : split<R>(call, c.weight, parts);
  const RealTensor output =
      forward ? real_tensor<R>(call, c.output, Parts::Channels) : split<R>(call, c.output, Parts::Channels);
  Convolution real = c;
  real.dtype = sizeof(R) == 4 ? CB_FLOAT32 : CB_FLOAT64;
  real.input = input.tensor;
  real.weight = weight.tensor;
  real.output = output.tensor;
  if (!cudnn_convolution(call, real)) return false;
  const ConvolutionTensor& made = result_of(real);
  Convolution given = c;
  const ConvolutionTensor& result = result_of(given);
  launch(call, join_kernel<R>, grid_for(call, numel_of(result), 256), 256, 0,
         static_cast<::cuda::std::complex<R>*>(const_cast<void*>(result.data)), static_cast<const R*>(made.data),
         split_of(result, to_weight ? parts : Parts::Channels), bias ? static_cast<const R*>(bias->data) : nullptr);
  return true;
}

// ---- the direct kernel, for all other cases

constexpr int rows_of_tile = 64, columns_of_tile = 64, steps_of_tile = 16, side = 16, block = side * side;

// A matrix product for each group. Its rows are the pixels of the result, its columns the channels
// of the result. For the gradient of the weight, rows are the entries of a filter and columns are
// the filters.
struct Direct {
  const void *input, *weight, *output;  // output: in the gradients, the gradient of the output
  const void* bias;
  void* result;
  int64_t bias_stride;
  ConvolutionKind kind;
  int64_t input_strides[5], weight_strides[5], output_strides[5];
  int64_t input_sizes[3], kernel_sizes[3], output_sizes[3];
  int64_t stride[3], padding[3], dilation[3];
  int64_t group_inputs, group_outputs;
  int64_t rows, columns, inner;
  int64_t row_tiles, column_tiles, tiles;
};

// The position of a pixel (`outer`: its sample) or of an entry of a filter (`outer`: its channel).
struct Position {
  int64_t outer, at[3];
};

__device__ __forceinline__ void divide(int64_t& number, int64_t by, int64_t& rest) {
  if (((number | by) >> 32) == 0) {
    const auto small = static_cast<uint32_t>(number), divisor = static_cast<uint32_t>(by), quotient = small / divisor;
    rest = small - quotient * divisor;
    number = quotient;
  } else {
    const int64_t quotient = number / by;
    rest = number - quotient * by;
    number = quotient;
  }
}

__device__ Position position_of(int64_t number, const int64_t (&sizes)[3]) {
  Position position;
  for (int d = 2; d >= 0; --d) divide(number, sizes[d], position.at[d]);
  position.outer = number;
  return position;
}

__device__ int64_t offset_of(const int64_t (&strides)[5], int64_t first, int64_t second, const int64_t (&at)[3]) {
  return first * strides[0] + second * strides[1] + at[0] * strides[2] + at[1] * strides[3] + at[2] * strides[4];
}

// Offset of the input element that an output pixel reads at an entry of the filter; -1 in the
// padding.
__device__ int64_t input_offset(const Direct& p, const Position& pixel, const Position& tap, int64_t group) {
  int64_t at[3];
  for (int d = 0; d < 3; ++d) {
    at[d] = pixel.at[d] * p.stride[d] - p.padding[d] + tap.at[d] * p.dilation[d];
    if (at[d] < 0 || at[d] >= p.input_sizes[d]) return -1;
  }
  return offset_of(p.input_strides, pixel.outer, group * p.group_inputs + tap.outer, at);
}

// Offset of the output pixel that reads an input pixel at an entry of the filter; -1 if there is
// none.
__device__ int64_t output_offset(const Direct& p, const Position& pixel, const Position& tap, int64_t group) {
  int64_t at[3];
  for (int d = 0; d < 3; ++d) {
    int64_t position = pixel.at[d] + p.padding[d] - tap.at[d] * p.dilation[d], rest = 0;
    if (position < 0) return -1;
    divide(position, p.stride[d], rest);
    if (rest != 0 || position >= p.output_sizes[d]) return -1;
    at[d] = position;
  }
  return offset_of(p.output_strides, pixel.outer, group * p.group_outputs + tap.outer, at);
}

// Sums of integers wrap.
template <typename T>
using Sum =
    std::conditional_t<std::is_integral_v<T>, std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>, compute_t<T>>;

__device__ __forceinline__ Position row_position(const Direct& p, int64_t row) {
  return position_of(row, p.kind == ConvolutionKind::WeightGradient ? p.kernel_sizes
                          : p.kind == ConvolutionKind::Forward      ? p.output_sizes
                                                                    : p.input_sizes);
}

__device__ __forceinline__ Position step_position(const Direct& p, int64_t step) {
  return position_of(step, p.kind == ConvolutionKind::WeightGradient ? p.output_sizes : p.kernel_sizes);
}

// The element of the left factor in a row, at a step of the sum; zero in the padding.
template <typename T>
__device__ __forceinline__ Sum<T> left_element(const Direct& p, const Position& row, const Position& step,
                                               int64_t group) {
  const bool to_input = p.kind == ConvolutionKind::InputGradient;
  const int64_t from = to_input                                    ? output_offset(p, row, step, group)
                       : p.kind == ConvolutionKind::WeightGradient ? input_offset(p, step, row, group)
                                                                   : input_offset(p, row, step, group);
  if (from < 0) return Sum<T>(0);
  return static_cast<Sum<T>>(static_cast<const T*>(to_input ? p.output : p.input)[from]);
}

// The element of the right factor at a step of the sum, in a column.
template <typename T>
__device__ __forceinline__ Sum<T> right_element(const Direct& p, const Position& step, int64_t column, int64_t group) {
  const int64_t filter = group * p.group_outputs;
  const T *weight = static_cast<const T*>(p.weight), *output = static_cast<const T*>(p.output);
  if (p.kind == ConvolutionKind::WeightGradient)
    return static_cast<Sum<T>>(output[offset_of(p.output_strides, step.outer, filter + column, step.at)]);
  if (p.kind == ConvolutionKind::InputGradient)
    return static_cast<Sum<T>>(weight[offset_of(p.weight_strides, filter + step.outer, column, step.at)]);
  return static_cast<Sum<T>>(weight[offset_of(p.weight_strides, filter + column, step.outer, step.at)]);
}

__device__ __forceinline__ int64_t result_offset(const Direct& p, const Position& row, int64_t column, int64_t group) {
  if (p.kind == ConvolutionKind::WeightGradient)
    return offset_of(p.weight_strides, group * p.group_outputs + column, row.outer, row.at);
  if (p.kind == ConvolutionKind::InputGradient)
    return offset_of(p.input_strides, row.outer, group * p.group_inputs + column, row.at);
  return offset_of(p.output_strides, row.outer, group * p.group_outputs + column, row.at);
}

template <typename T>
__global__ void __launch_bounds__(block) direct_kernel(const __grid_constant__ Direct p) {
  using S = Sum<T>;
  constexpr int rows_each = rows_of_tile / side, columns_each = columns_of_tile / side;
  __shared__ alignas(16) unsigned char memory[sizeof(S) * steps_of_tile * (rows_of_tile + columns_of_tile + 2)];
  // [step][row], padded by one against bank conflicts
  auto* left = reinterpret_cast<S*>(memory);
  auto* right = left + steps_of_tile * (rows_of_tile + 1);  // [step][column]
  const int x = static_cast<int>(threadIdx.x) % side, y = static_cast<int>(threadIdx.x) / side;
  for (int64_t tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
    int64_t rest = tile, column_tile, row_tile;
    divide(rest, p.column_tiles, column_tile);
    divide(rest, p.row_tiles, row_tile);
    const int64_t group = rest, first_row = row_tile * rows_of_tile, first_column = column_tile * columns_of_tile;
    // Positions of the rows whose elements this thread loads.
    Position row_positions[rows_each];
    for (int i = 0; i < rows_each; ++i) row_positions[i] = row_position(p, min(first_row + y + i * side, p.rows - 1));
    S sums[rows_each][columns_each];
    for (int i = 0; i < rows_each; ++i)
      for (int j = 0; j < columns_each; ++j) sums[i][j] = S(0);
    for (int64_t begin = 0; begin < p.inner; begin += steps_of_tile) {
      const int64_t step = begin + x;
      const bool inside = step < p.inner;
      const Position at = step_position(p, inside ? step : 0);
      for (int i = 0; i < rows_each; ++i) {
        S value(0);
        if (inside && first_row + y + i * side < p.rows) value = left_element<T>(p, row_positions[i], at, group);
        left[x * (rows_of_tile + 1) + y + i * side] = value;
      }
      for (int j = 0; j < columns_each; ++j) {
        S value(0);
        const int64_t column = first_column + y + j * side;
        if (inside && column < p.columns) value = right_element<T>(p, at, column, group);
        right[x * (columns_of_tile + 1) + y + j * side] = value;
      }
      __syncthreads();
#pragma unroll 4
      for (int k = 0; k < steps_of_tile; ++k) {
        S a[rows_each], b[columns_each];
#pragma unroll
        for (int i = 0; i < rows_each; ++i) a[i] = left[k * (rows_of_tile + 1) + x + i * side];
#pragma unroll
        for (int j = 0; j < columns_each; ++j) b[j] = right[k * (columns_of_tile + 1) + y + j * side];
#pragma unroll
        for (int i = 0; i < rows_each; ++i)
#pragma unroll
          for (int j = 0; j < columns_each; ++j) sums[i][j] += a[i] * b[j];
      }
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < rows_each; ++i) {
      const int64_t row = first_row + x + i * side;
      if (row >= p.rows) continue;
      const Position at = row_position(p, row);
#pragma unroll
      for (int j = 0; j < columns_each; ++j) {
        const int64_t column = first_column + y + j * side;
        if (column >= p.columns) continue;
        S value = sums[i][j];
        if (p.bias)
          value += static_cast<S>(static_cast<const T*>(p.bias)[(group * p.group_outputs + column) * p.bias_stride]);
        static_cast<T*>(p.result)[result_offset(p, at, column, group)] = static_cast<T>(value);
      }
    }
  }
}

void run_direct_kernel(const Call& call, const Convolution& c, int64_t groups, const cb_tensor* bias) {
  Direct p{};
  p.input = c.input.data;
  p.weight = c.weight.data;
  p.output = c.output.data;
  p.bias = bias ? bias->data : nullptr;
  p.bias_stride = bias ? bias->strides[0] : 0;
  p.kind = c.kind;
  std::copy(c.input.strides.begin(), c.input.strides.end(), p.input_strides);
  std::copy(c.weight.strides.begin(), c.weight.strides.end(), p.weight_strides);
  std::copy(c.output.strides.begin(), c.output.strides.end(), p.output_strides);
  for (size_t d = 0; d < 3; ++d) {
    p.input_sizes[d] = c.input.sizes[d + 2];
    p.kernel_sizes[d] = c.weight.sizes[d + 2];
    p.output_sizes[d] = c.output.sizes[d + 2];
    p.stride[d] = c.stride[d];
    p.padding[d] = c.padding[d];
    p.dilation[d] = c.dilation[d];
  }
  p.group_inputs = c.weight.sizes[1];
  p.group_outputs = c.weight.sizes[0] / groups;
  const auto volume = [](const int64_t (&sizes)[3]) { return sizes[0] * sizes[1] * sizes[2]; };
  const int64_t taps = volume(p.kernel_sizes), batch = c.input.sizes[0];
  switch (c.kind) {
    case ConvolutionKind::Forward:
      p.result = const_cast<void*>(c.output.data);
      p.rows = batch * volume(p.output_sizes), p.columns = p.group_outputs, p.inner = p.group_inputs * taps;
      break;
    case ConvolutionKind::InputGradient:
      p.result = const_cast<void*>(c.input.data);
      p.rows = batch * volume(p.input_sizes), p.columns = p.group_inputs, p.inner = p.group_outputs * taps;
      break;
    case ConvolutionKind::WeightGradient:
      p.result = const_cast<void*>(c.weight.data);
      p.rows = p.group_inputs * taps, p.columns = p.group_outputs, p.inner = batch * volume(p.output_sizes);
      break;
  }
  p.row_tiles = divide_up(p.rows, rows_of_tile);
  p.column_tiles = divide_up(p.columns, columns_of_tile);
  p.tiles = p.row_tiles * p.column_tiles * groups;
  constexpr int64_t most_blocks = int64_t{1} << 30;
  const auto blocks = static_cast<unsigned>(std::min(p.tiles, most_blocks));
  const auto run = [&]<typename T>() { launch(call, direct_kernel<T>, blocks, block, 0, p); };
  // Integers wrap: signed and unsigned types give the same bits.
  if (is_integer_dtype(c.dtype) && c.dtype != CB_BOOL) {
    switch (itemsize(c.dtype)) {
      case 1:
        return run.template operator()<uint8_t>();
      case 2:
        return run.template operator()<uint16_t>();
      case 4:
        return run.template operator()<uint32_t>();
      default:
        return run.template operator()<uint64_t>();
    }
  }
  dispatch<decltype(FloatTypes{} + ComplexTypes{})>(c.dtype, run);
}

// ---- the operators

struct Plus {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

void convolution(Call& call) {
  const arguments::Convolution args(call);
  const cb_tensor& out = call.output();
  const cb_tensor* bias = args.bias;
  if (out.numel == 0) return;
  const Convolution c = describe(ConvolutionKind::Forward, args, *args.input, *args.weight, out, out.dtype);
  if (numel_of(c.input) != 0 && numel_of(c.weight) != 0) {
    if (run_cudnn(call, c)) {
      if (!bias) return;
      std::vector<int64_t> strides(static_cast<size_t>(out.ndim), 0);
      strides[1] = bias->strides[0];
      cb_tensor spread = out;
      spread.data = bias->data;
      spread.strides = strides.data();
      return dispatch<FloatTypes>(
          out.dtype, [&]<typename T>() { map<Types<T>, Types<T, T>>(call, Plus{}, {&out}, {&out, &spread}); });
    }
    const bool packed = !bias || bias->numel == 1 || bias->strides[0] == 1;
    if (packed && out.dtype == CB_COMPLEX64 && run_complex_cudnn<float>(call, c, bias)) return;
    if (packed && out.dtype == CB_COMPLEX128 && run_complex_cudnn<double>(call, c, bias)) return;
  }
  run_direct_kernel(call, c, args.groups, bias);
}

void run_gradient(Call& call, const Convolution& c, int64_t groups) {
  const int32_t dtype = call.output().dtype;
  if (numel_of(c.input) != 0 && numel_of(c.weight) != 0 && numel_of(c.output) != 0) {
    if (run_cudnn(call, c)) return;
    if (dtype == CB_COMPLEX64 && run_complex_cudnn<float>(call, c, nullptr)) return;
    if (dtype == CB_COMPLEX128 && run_complex_cudnn<double>(call, c, nullptr)) return;
  }
  run_direct_kernel(call, c, groups, nullptr);
}

void convolution_backward_input(Call& call) {
  const arguments::ConvolutionBackwardInput args(call);
  const cb_tensor& out = call.output();
  if (out.numel == 0) return;
  run_gradient(call, describe(ConvolutionKind::InputGradient, args, out, *args.weight, *args.grad, out.dtype),
               args.groups);
}

void convolution_backward_weight(Call& call) {
  const arguments::ConvolutionBackwardWeight args(call);
  const cb_tensor& out = call.output();
  if (out.numel == 0) return;
  run_gradient(call, describe(ConvolutionKind::WeightGradient, args, *args.input, out, *args.grad, out.dtype),
               args.groups);
}

}  // namespace

void register_convolution(KernelTable& table) {
  table.add<convolution>("convolution");
  table.add<convolution_backward_input>("convolution_backward_input");
  table.add<convolution_backward_weight>("convolution_backward_weight");
}

}  // namespace candelabra::cuda
