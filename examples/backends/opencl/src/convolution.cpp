// Convolution and its gradients by im2col and matrix products; see kernels/convolution.cl.
#include "candelabra/arguments/convolution.hpp"

#include "families.hpp"
#include "matmul.hpp"

namespace candelabra::opencl {

namespace {

// The struct of the same name in kernels/convolution.cl.
struct Unfolding {
  int64_t images, channels;
  int64_t in[3], out[3], kernel_size[3], stride[3], padding[3], dilation[3];
  int64_t strides[5];
  uint64_t offset;
};

using Ints = std::span<const int64_t>;

// A convolution by its tensors: image (N, C, ...), weight (O, C / groups, ...), result (N, O, ...).
struct Problem {
  Problem(const cb_tensor& image, const cb_tensor& weight, const cb_tensor& result, Ints stride, Ints padding,
          Ints dilation, int64_t groups)
      : dtype(image.dtype),
        groups(groups),
        group_channels(image.sizes[1] / groups),
        group_outputs(result.sizes[1] / groups),
        image_bytes(image.strides[0] * kernel::itemsize(image.dtype)) {
    const int spatial = image.ndim - 2, missing = 3 - spatial;
    unfolding.images = image.sizes[0];
    unfolding.channels = image.sizes[1];
    unfolding.strides[0] = image.strides[0];
    unfolding.strides[1] = image.strides[1];
    unfolding.offset = image.offset;
    for (int d = 0; d < 3; ++d) {
      const bool given = d >= missing;
      const auto s = static_cast<size_t>(given ? d - missing : 0);
      unfolding.in[d] = given ? image.sizes[2 + s] : 1;
      unfolding.out[d] = given ? result.sizes[2 + s] : 1;
      unfolding.kernel_size[d] = given ? weight.sizes[2 + s] : 1;
      unfolding.stride[d] = given ? stride[s] : 1;
      unfolding.padding[d] = given ? padding[s] : 0;
      unfolding.dilation[d] = given ? dilation[s] : 1;
      unfolding.strides[2 + d] = given ? image.strides[2 + s] : 0;
      places *= unfolding.out[d];
      taps *= unfolding.kernel_size[d];
    }
    depth = group_channels * taps;
  }

  Unfolding unfolding = {};
  int32_t dtype;
  int64_t groups, group_channels, group_outputs, image_bytes;
  int64_t places = 1, taps = 1;
  int64_t depth = 0;  // rows of the columns of a group
};

// The batches of images whose columns are in memory at once have at most this many bytes.
constexpr int64_t columns_limit = int64_t{64} << 20;

int64_t images_at_once(const Problem& p) {
  const int64_t each = p.groups * p.depth * p.places * kernel::itemsize(p.dtype);
  return std::clamp<int64_t>(columns_limit / std::max<int64_t>(each, 1), 1, p.unfolding.images);
}

// The part of the unfolding that is the images [first, first + count).
Unfolding images_of(const Problem& p, int64_t first, int64_t count) {
  Unfolding part = p.unfolding;
  part.images = count;
  part.offset += static_cast<uint64_t>(first * p.image_bytes);
  return part;
}

void im2col(const Call& call, const Problem& p, const cb_tensor& image, cl_mem columns, const Unfolding& part) {
  Launch(call, "convolution", "im2col", {{"T", p.dtype}})
      .memory(columns)
      .memory(image)
      .structure(part)
      .items(part.images * p.groups * p.depth * p.places);
}

// A tensor (N, O, ...) as matrices (O, positions), from image `n` and group `group` on.
Matrix planes(const Problem& p, const cb_tensor& tensor, int64_t n, int64_t group) {
  const int64_t element = tensor.strides[0] * n + tensor.strides[1] * group * p.group_outputs;
  // Contiguous or channels-last: positions have one stride, that of the last dimension that is not
  // 1.
  int64_t step = 1;
  for (int d = tensor.ndim - 1; d >= 2; --d)
    if (tensor.sizes[d] != 1) {
      step = tensor.strides[d];
      break;
    }
  return {memory_of(tensor),
          tensor.offset + static_cast<uint64_t>(element * kernel::itemsize(p.dtype)),
          {tensor.strides[0], tensor.strides[1], step}};
}

Matrix columns_of(const Problem& p, cl_mem columns, int64_t group) {
  const int64_t bytes = group * p.depth * p.places * kernel::itemsize(p.dtype);
  return {columns, static_cast<uint64_t>(bytes), {p.groups * p.depth * p.places, p.places, 1}};
}

// The weights of a group as a matrix (outputs, depth). Channels-last weights are not one.
Matrix weights_of(const Problem& p, const cb_tensor& weight, int64_t group) {
  const int64_t bytes = group * p.group_outputs * p.depth * kernel::itemsize(p.dtype);
  return {memory_of(weight), weight.offset + static_cast<uint64_t>(bytes), {0, p.depth, 1}};
}

Matrix transposed(Matrix matrix) {
  std::swap(matrix.strides[1], matrix.strides[2]);
  return matrix;
}

void convolution(Call& call) {
  const arguments::Convolution args(call);
  const cb_tensor &out = call.output(), &image = *args.input, &weight = *args.weight;
  if (out.numel == 0) return;
  if (!kernel::is_contiguous(weight)) throw not_implemented();
  const Problem p(image, weight, out, args.stride, args.padding, args.dilation, args.groups);
  const int64_t step = images_at_once(p);
  const Workspace columns(call, step * p.groups * p.depth * p.places * kernel::itemsize(p.dtype));
  for (int64_t first = 0; first < p.unfolding.images; first += step) {
    const int64_t count = std::min(step, p.unfolding.images - first);
    im2col(call, p, image, columns.memory, images_of(p, first, count));
    for (int64_t group = 0; group < p.groups; ++group) {
      Multiplication m = {p.dtype,
                          count,
                          p.group_outputs,
                          p.depth,
                          p.places,
                          planes(p, out, first, group),
                          weights_of(p, weight, group),
                          columns_of(p, columns.memory, group),
                          std::nullopt};
      if (args.bias) {
        const int64_t bytes = group * p.group_outputs * kernel::itemsize(p.dtype);
        m.bias = Matrix{memory_of(*args.bias), args.bias->offset + static_cast<uint64_t>(bytes), {0, 1, 0}};
      }
      multiply(call, m);
    }
  }
}

void convolution_backward_input(Call& call) {
  const arguments::ConvolutionBackwardInput args(call);
  const cb_tensor &out = call.output(), &grad = *args.grad, &weight = *args.weight;
  if (out.numel == 0) return;
  if (!kernel::is_contiguous(weight)) throw not_implemented();
  const Problem p(out, weight, grad, args.stride, args.padding, args.dilation, args.groups);
  const int64_t step = images_at_once(p);
  const Workspace columns(call, step * p.groups * p.depth * p.places * kernel::itemsize(p.dtype));
  for (int64_t first = 0; first < p.unfolding.images; first += step) {
    const int64_t count = std::min(step, p.unfolding.images - first);
    for (int64_t group = 0; group < p.groups; ++group)
      multiply(call, {p.dtype, count, p.depth, p.group_outputs, p.places, columns_of(p, columns.memory, group),
                      transposed(weights_of(p, weight, group)), planes(p, grad, first, group), std::nullopt});
    const Unfolding part = images_of(p, first, count);
    Launch(call, "convolution", "col2im", {{"T", p.dtype}})
        .memory(out)
        .memory(columns.memory)
        .structure(part)
        .items(count * part.channels * part.in[0] * part.in[1] * part.in[2]);
  }
}

// The sum over the images of grad columns^T: the first product writes, the others add.
void convolution_backward_weight(Call& call) {
  const arguments::ConvolutionBackwardWeight args(call);
  const cb_tensor &out = call.output(), &grad = *args.grad, &image = *args.input;
  if (out.numel == 0) return;
  if (kernel::is_half_dtype(out.dtype) || grad.numel == 0) throw not_implemented();  // sums would be rounded
  const Problem p(image, out, grad, args.stride, args.padding, args.dilation, args.groups);
  const int64_t step = images_at_once(p);
  const Workspace columns(call, step * p.groups * p.depth * p.places * kernel::itemsize(p.dtype));
  for (int64_t first = 0; first < p.unfolding.images; first += step) {
    const int64_t count = std::min(step, p.unfolding.images - first);
    im2col(call, p, image, columns.memory, images_of(p, first, count));
    for (int64_t n = 0; n < count; ++n)
      for (int64_t group = 0; group < p.groups; ++group) {
        Matrix each = columns_of(p, columns.memory, group);
        each.offset += static_cast<uint64_t>(n * each.strides[0] * kernel::itemsize(p.dtype));
        Multiplication m = {p.dtype,
                            1,
                            p.group_outputs,
                            p.places,
                            p.depth,
                            weights_of(p, out, group),
                            planes(p, grad, first + n, group),
                            transposed(each),
                            std::nullopt};
        if (first + n > 0) m.bias = m.out;
        multiply(call, m);
      }
  }
}

}  // namespace

void add_convolution(Table& table) {
  table.add<convolution>("convolution", 0, float_dtypes);
  table.add<convolution_backward_input>("convolution_backward_input", 0, float_dtypes);
  table.add<convolution_backward_weight>("convolution_backward_weight", 0, float_dtypes);
}

}  // namespace candelabra::opencl
