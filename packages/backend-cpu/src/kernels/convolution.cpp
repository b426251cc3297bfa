// Convolution over one or two spatial dimensions and its two gradients: oneDNN for the floating dtypes that it has, patches
// gathered into a matrix and multiplied for the others (float64, integers, complex).
#include <array>
#include <memory>
#include <optional>

#include "allocator.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "matmul/matrix.hpp"
#include "onednn/convolution.hpp"
#include "parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// A tensor of four dimensions; one spatial dimension is seen as two with a height of 1.
template <typename T>
struct Image {
  T* data;
  std::array<int64_t, 4> sizes, strides;

  ConvolutionOperand operand() const { return {const_cast<void*>(static_cast<const void*>(data)), strides}; }
  int64_t numel() const { return sizes[0] * sizes[1] * sizes[2] * sizes[3]; }
  T* at(int64_t i, int64_t channel) const { return data + i * strides[0] + channel * strides[1]; }
  // One index walks height and width.
  bool has_joined_plane() const { return sizes[2] == 1 || sizes[3] == 1 || strides[2] == sizes[3] * strides[3]; }
  int64_t plane_stride() const { return sizes[3] == 1 ? strides[2] : strides[3]; }
  // Channels [first, first + count) of sample i as the rows of a matrix of pixels.
  Matrix<T> pixels(int64_t i, int64_t first, int64_t count) const {
    return {at(i, first), count, sizes[2] * sizes[3], strides[1], plane_stride()};
  }
};

template <typename T>
Image<T> image(const cb_tensor& t) {
  T* data = static_cast<T*>(t.data);
  if (t.ndim > 4)
    throw failure(CB_RUNTIME_ERROR,
                  "convolutions over %d spatial dimensions are made of those over two: candelabra.nn.functional.conv3d",
                  static_cast<int>(t.ndim) - 2);
  if (t.ndim == 3)
    return {data, {t.sizes[0], t.sizes[1], 1, t.sizes[2]}, {t.strides[0], t.strides[1], t.sizes[2] * t.strides[2], t.strides[2]}};
  return {data, {t.sizes[0], t.sizes[1], t.sizes[2], t.sizes[3]}, {t.strides[0], t.strides[1], t.strides[2], t.strides[3]}};
}

template <typename T>
Image<T> dense_image(T* data, const std::array<int64_t, 4>& n) {
  return {data, n, {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1}};
}

template <typename From, typename To>
void copy_image(const Image<From>& from, const Image<To>& to) {
  parallel_for(from.sizes[0] * from.sizes[1], grain_for(from.sizes[2] * from.sizes[3]), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      From* in = from.at(plane / from.sizes[1], plane % from.sizes[1]);
      To* out = to.at(plane / from.sizes[1], plane % from.sizes[1]);
      for (int64_t y = 0; y < from.sizes[2]; ++y)
        for (int64_t x = 0; x < from.sizes[3]; ++x)
          out[y * to.strides[2] + x * to.strides[3]] = To(in[y * from.strides[2] + x * from.strides[3]]);
    }
  });
}

std::array<int64_t, 2> pair_of(std::span<const int64_t> values, int64_t for_height) {
  return values.size() == 1 ? std::array{for_height, values[0]} : std::array{values[0], values[1]};
}

// `first` is the position of stride; padding, dilation and groups follow.
ConvolutionShape shape_of(Call& call, const std::array<int64_t, 4>& input, const std::array<int64_t, 4>& weight,
                          const std::array<int64_t, 4>& output, int first) {
  ConvolutionShape s;
  s.batch = input[0];
  s.groups = call.integer(first + 3);
  s.input_channels = input[1];
  s.output_channels = weight[0];
  s.input = {input[2], input[3]};
  s.output = {output[2], output[3]};
  s.kernel = {weight[2], weight[3]};
  s.stride = pair_of(call.ints(first), 1);
  s.padding = pair_of(call.ints(first + 1), 0);
  s.dilation = pair_of(call.ints(first + 2), 1);
  return s;
}

// Output columns [begin, end) whose input column, column * stride - padding + offset, lies in the input.
struct Span {
  int64_t begin, end;
};
Span reached(int64_t outputs, int64_t inputs, int64_t stride, int64_t padding, int64_t offset) {
  int64_t shift = padding - offset;
  int64_t begin = shift > 0 ? (shift + stride - 1) / stride : 0;
  int64_t last = inputs - 1 + shift;
  int64_t end = last < 0 ? 0 : last / stride + 1;
  begin = std::min(begin, outputs);
  return {begin, std::clamp(end, begin, outputs)};
}

// Row (channel, ky, kx), column (y, x): what the output pixel meets at that place of the kernel, 0 in the padding.
template <typename T>
void gather_patches(const ConvolutionShape& s, const Image<const T>& input, int64_t sample, int64_t group, T* patches) {
  int64_t pixels = s.output[0] * s.output[1], area = s.kernel[0] * s.kernel[1];
  parallel_for(s.group_inputs() * area, grain_for(pixels), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* plane = input.at(sample, group * s.group_inputs() + row / area);
      int64_t dy = row % area / s.kernel[1] * s.dilation[0], dx = row % s.kernel[1] * s.dilation[1];
      Span columns = reached(s.output[1], s.input[1], s.stride[1], s.padding[1], dx);
      T* out = patches + row * pixels;
      for (int64_t y = 0; y < s.output[0]; ++y, out += s.output[1]) {
        int64_t iy = y * s.stride[0] - s.padding[0] + dy;
        if (iy < 0 || iy >= s.input[0]) {
          std::fill_n(out, s.output[1], T{});
          continue;
        }
        const T* line = plane + iy * input.strides[2] + (dx - s.padding[1]) * input.strides[3];
        int64_t step = s.stride[1] * input.strides[3];
        std::fill(out, out + columns.begin, T{});
        if (step == 1)
          std::copy(line + columns.begin, line + columns.end, out + columns.begin);
        else
          for (int64_t x = columns.begin; x < columns.end; ++x) out[x] = line[x * step];
        std::fill(out + columns.end, out + s.output[1], T{});
      }
    }
  });
}

// The transpose of gather_patches: adds every patch element to the pixel that it came from. The planes are zero before.
template <typename T>
void scatter_patches(const ConvolutionShape& s, const T* patches, const Image<T>& input, int64_t sample, int64_t group) {
  int64_t pixels = s.output[0] * s.output[1], area = s.kernel[0] * s.kernel[1];
  parallel_for(s.group_inputs(), grain_for(pixels * area), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin * area; row < end * area; ++row) {
      T* plane = input.at(sample, group * s.group_inputs() + row / area);
      int64_t dy = row % area / s.kernel[1] * s.dilation[0], dx = row % s.kernel[1] * s.dilation[1];
      Span columns = reached(s.output[1], s.input[1], s.stride[1], s.padding[1], dx);
      const T* in = patches + row * pixels;
      for (int64_t y = 0; y < s.output[0]; ++y, in += s.output[1]) {
        int64_t iy = y * s.stride[0] - s.padding[0] + dy;
        if (iy < 0 || iy >= s.input[0]) continue;
        T* line = plane + iy * input.strides[2] + (dx - s.padding[1]) * input.strides[3];
        int64_t step = s.stride[1] * input.strides[3];
        for (int64_t x = columns.begin; x < columns.end; ++x) {
          if constexpr (is_integer_v<T>)
            line[x * step] = static_cast<T>(static_cast<uint64_t>(line[x * step]) + static_cast<uint64_t>(in[x]));
          else
            line[x * step] += in[x];
        }
      }
    }
  });
}

template <typename T>
void fill_image(const Image<T>& to, T value) {
  parallel_for(to.sizes[0] * to.sizes[1], grain_for(to.sizes[2] * to.sizes[3]), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      T* out = to.at(plane / to.sizes[1], plane % to.sizes[1]);
      for (int64_t y = 0; y < to.sizes[2]; ++y)
        for (int64_t x = 0; x < to.sizes[3]; ++x) out[y * to.strides[2] + x * to.strides[3]] = value;
    }
  });
}

// A dense copy of an image whose strides do not suit, written back at the end where it is a result.
template <typename T>
class DenseImage {
 public:
  DenseImage(const Image<T>& original, bool suits, bool is_result) : original_(original), image_(original), is_result_(is_result) {
    if (suits) return;
    room_ = std::make_unique<Scratch<std::remove_const_t<T>>>(original.numel());
    auto dense = dense_image<std::remove_const_t<T>>(room_->data(), original.sizes);
    if (!is_result) copy_image(original, dense);
    image_ = {dense.data, dense.sizes, dense.strides};
  }
  const Image<T>& image() const { return image_; }
  void finish() const {
    if constexpr (!std::is_const_v<T>)
      if (room_ && is_result_) copy_image(image_, original_);
  }

 private:
  Image<T> original_, image_;
  bool is_result_;
  std::unique_ptr<Scratch<std::remove_const_t<T>>> room_;
};

template <typename T>
bool is_dense(const Image<T>& image) {
  auto dense = dense_image<T>(image.data, image.sizes);
  for (int d = 0; d < 4; ++d)
    if (image.sizes[d] != 1 && image.strides[d] != dense.strides[d]) return false;
  return true;
}

// The weights of one group as a matrix: a row for each output channel, a column for each (channel, ky, kx).
template <typename T>
Matrix<T> filters(const Image<T>& dense_weight, const ConvolutionShape& s, int64_t group) {
  int64_t columns = s.group_inputs() * s.kernel[0] * s.kernel[1];
  return {dense_weight.data + group * s.group_outputs() * columns, s.group_outputs(), columns, columns, 1};
}

template <typename T>
void forward_by_patches(const ConvolutionShape& s, const Image<const T>& input, const Image<const T>& given_weight,
                        const cb_tensor* bias, const Image<T>& given_output) {
  DenseImage<const T> weight(given_weight, is_dense(given_weight), false);
  DenseImage<T> output(given_output, given_output.has_joined_plane(), true);
  int64_t pixels = s.output[0] * s.output[1], rows = s.group_inputs() * s.kernel[0] * s.kernel[1];
  parallel_for(s.batch * s.groups, 1, [&](int64_t begin, int64_t end) {
    Scratch<T> patches(rows * pixels);
    for (int64_t i = begin; i < end; ++i) {
      int64_t sample = i / s.groups, group = i % s.groups;
      gather_patches<T>(s, input, sample, group, patches.data());
      Matrix<T> result = output.image().pixels(sample, group * s.group_outputs(), s.group_outputs());
      if (bias)
        copy_matrix<T>(
            {data<T>(*bias) + group * s.group_outputs() * bias->strides[0], result.rows, result.columns, bias->strides[0], 0},
            result);
      multiply<T>(filters(weight.image(), s, group), {patches.data(), rows, pixels, pixels, 1}, T(1), T(bias ? 1 : 0), result);
    }
  });
  output.finish();
}

template <typename T>
void input_gradient_by_patches(const ConvolutionShape& s, const Image<const T>& given_grad, const Image<const T>& given_weight,
                               const Image<T>& input) {
  DenseImage<const T> weight(given_weight, is_dense(given_weight), false);
  DenseImage<const T> grad(given_grad, given_grad.has_joined_plane(), false);
  int64_t pixels = s.output[0] * s.output[1], rows = s.group_inputs() * s.kernel[0] * s.kernel[1];
  fill_image<T>(input, T{});
  parallel_for(s.batch * s.groups, 1, [&](int64_t begin, int64_t end) {
    Scratch<T> patches(rows * pixels);
    for (int64_t i = begin; i < end; ++i) {
      int64_t sample = i / s.groups, group = i % s.groups;
      multiply<T>(filters(weight.image(), s, group).transposed(),
                  grad.image().pixels(sample, group * s.group_outputs(), s.group_outputs()), T(1), T(0),
                  {patches.data(), rows, pixels, pixels, 1});
      scatter_patches<T>(s, patches.data(), input, sample, group);
    }
  });
}

template <typename T>
void weight_gradient_by_patches(const ConvolutionShape& s, const Image<const T>& given_grad, const Image<const T>& input,
                                const Image<T>& given_weight) {
  DenseImage<T> weight(given_weight, is_dense(given_weight), true);
  DenseImage<const T> grad(given_grad, given_grad.has_joined_plane(), false);
  int64_t pixels = s.output[0] * s.output[1], rows = s.group_inputs() * s.kernel[0] * s.kernel[1];
  // Samples are added one after another: the sum does not depend on the number of threads.
  parallel_for(s.groups, 1, [&](int64_t begin, int64_t end) {
    Scratch<T> patches(rows * pixels);
    for (int64_t group = begin; group < end; ++group)
      for (int64_t sample = 0; sample < s.batch; ++sample) {
        gather_patches<T>(s, input, sample, group, patches.data());
        multiply<T>(grad.image().pixels(sample, group * s.group_outputs(), s.group_outputs()),
                    Matrix<const T>{patches.data(), rows, pixels, pixels, 1}.transposed(), T(1), T(sample == 0 ? 0 : 1),
                    filters(weight.image(), s, group));
      }
  });
  weight.finish();
}

// The half precisions on a processor without instructions for them: everything in float32, rounded at the end.
template <typename T>
class Widened {
 public:
  explicit Widened(const Image<const T>& original)
      : room_(original.numel()), image_(dense_image<float>(room_.data(), original.sizes)) {
    copy_image(original, image_);
  }
  explicit Widened(const std::array<int64_t, 4>& sizes)
      : room_(sizes[0] * sizes[1] * sizes[2] * sizes[3]), image_(dense_image<float>(room_.data(), sizes)) {}
  const Image<float>& image() const { return image_; }

 private:
  Scratch<float> room_;
  Image<float> image_;
};

template <typename T>
constexpr bool onednn_has = is_half_v<T> || std::is_same_v<T, float>;

template <typename T>
Image<const T> constant(const Image<T>& image) {
  return {image.data, image.sizes, image.strides};
}

void convolution(Call& call) {
  cb_tensor& out = call.output();
  const cb_tensor* bias = call.optional_tensor(2);
  if (out.numel == 0) return;
  dispatch<NumberTypes>(out.dtype, [&]<typename T>() {
    Image<const T> input = image<const T>(call.tensor(0)), weight = image<const T>(call.tensor(1));
    Image<T> output = image<T>(out);
    ConvolutionShape s = shape_of(call, input.sizes, weight.sizes, output.sizes, 3);
    bool nothing_to_add = weight.numel() == 0 || input.numel() == 0;
    if constexpr (onednn_has<T>) {
      if (!nothing_to_add) {
        std::optional<Scratch<T>> packed;
        const T* offsets = bias ? data<T>(*bias) : nullptr;
        if (bias && s.output_channels > 1 && bias->strides[0] != 1) {
          packed.emplace(s.output_channels);
          for (int64_t i = 0; i < s.output_channels; ++i) (*packed)[i] = data<T>(*bias)[i * bias->strides[0]];
          offsets = packed->data();
        }
        if (onednn_convolution(ConvolutionKind::forward, dtype_v<T>, s, input.operand(), weight.operand(), offsets,
                               output.operand()))
          return;
      }
    }
    if constexpr (is_half_v<T>) {
      Widened<T> wide_input(input), wide_weight(weight), wide_output(output.sizes);
      Scratch<float> offsets(s.output_channels);
      int64_t sizes[] = {s.output_channels}, strides[] = {1};
      cb_tensor wide_bias{offsets.data(), sizes, strides, s.output_channels, 1, CB_FLOAT32, 0, 0};
      if (bias)
        for (int64_t i = 0; i < s.output_channels; ++i) offsets[i] = data<T>(*bias)[i * bias->strides[0]];
      if (nothing_to_add ||
          !onednn_convolution(ConvolutionKind::forward, CB_FLOAT32, s, wide_input.image().operand(), wide_weight.image().operand(),
                              bias ? offsets.data() : nullptr, wide_output.image().operand()))
        forward_by_patches<float>(s, constant(wide_input.image()), constant(wide_weight.image()), bias ? &wide_bias : nullptr,
                                  wide_output.image());
      copy_image(wide_output.image(), output);
    } else {
      forward_by_patches<T>(s, input, weight, bias, output);
    }
  });
}

void convolution_input_gradient(Call& call) {
  cb_tensor& out = call.output();
  if (out.numel == 0) return;
  dispatch<NumberTypes>(out.dtype, [&]<typename T>() {
    Image<const T> grad = image<const T>(call.tensor(0)), weight = image<const T>(call.tensor(1));
    Image<T> input = image<T>(out);
    ConvolutionShape s = shape_of(call, input.sizes, weight.sizes, grad.sizes, 3);
    if (grad.numel() == 0 || weight.numel() == 0) return fill_image<T>(input, T{});
    if constexpr (onednn_has<T>)
      if (onednn_convolution(ConvolutionKind::input_gradient, dtype_v<T>, s, input.operand(), weight.operand(), nullptr,
                             grad.operand()))
        return;
    if constexpr (is_half_v<T>) {
      Widened<T> wide_grad(grad), wide_weight(weight), wide_input(input.sizes);
      if (!onednn_convolution(ConvolutionKind::input_gradient, CB_FLOAT32, s, wide_input.image().operand(),
                              wide_weight.image().operand(), nullptr, wide_grad.image().operand()))
        input_gradient_by_patches<float>(s, constant(wide_grad.image()), constant(wide_weight.image()), wide_input.image());
      copy_image(wide_input.image(), input);
    } else {
      input_gradient_by_patches<T>(s, grad, weight, input);
    }
  });
}

void convolution_weight_gradient(Call& call) {
  cb_tensor& out = call.output();
  if (out.numel == 0) return;
  dispatch<NumberTypes>(out.dtype, [&]<typename T>() {
    Image<const T> grad = image<const T>(call.tensor(0)), input = image<const T>(call.tensor(1));
    Image<T> weight = image<T>(out);
    ConvolutionShape s = shape_of(call, input.sizes, weight.sizes, grad.sizes, 3);
    if (grad.numel() == 0 || input.numel() == 0) return fill_image<T>(weight, T{});
    if constexpr (onednn_has<T>)
      if (onednn_convolution(ConvolutionKind::weight_gradient, dtype_v<T>, s, input.operand(), weight.operand(), nullptr,
                             grad.operand()))
        return;
    if constexpr (is_half_v<T>) {
      Widened<T> wide_grad(grad), wide_input(input), wide_weight(weight.sizes);
      if (!onednn_convolution(ConvolutionKind::weight_gradient, CB_FLOAT32, s, wide_input.image().operand(),
                              wide_weight.image().operand(), nullptr, wide_grad.image().operand()))
        weight_gradient_by_patches<float>(s, constant(wide_grad.image()), constant(wide_input.image()), wide_weight.image());
      copy_image(wide_weight.image(), weight);
    } else {
      weight_gradient_by_patches<T>(s, grad, input, weight);
    }
  });
}

}  // namespace

void register_convolution(KernelTable& table) {
  table.add<convolution>("convolution");
  table.add<convolution_input_gradient>("convolution_input_gradient");
  table.add<convolution_weight_gradient>("convolution_weight_gradient");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
