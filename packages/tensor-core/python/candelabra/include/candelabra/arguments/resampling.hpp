// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.
// Arguments of the operators of the family resampling, for kernels:
//
//   const arguments::Upsample args(call);
//
// A tensor or number that was not given is a null pointer; other optional arguments are std::optional.
#ifndef CANDELABRA_ARGUMENTS_RESAMPLING_HPP
#define CANDELABRA_ARGUMENTS_RESAMPLING_HPP

#include <optional>
#include <span>
#include <string_view>

#include "candelabra/kernel.hpp"

namespace candelabra::arguments {

// _upsample(Tensor self, int[] output_size, float[] scales, str mode, bool align_corners, bool antialias) -> Tensor
struct Upsample {
  const cb_tensor* self;
  std::span<const int64_t> output_size;
  std::span<const double> scales;
  std::string_view mode;
  bool align_corners;
  bool antialias;

  explicit Upsample(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        output_size(call.ints(1)),
        scales(call.floats(2)),
        mode(call.string(3)),
        align_corners(call.boolean(4)),
        antialias(call.boolean(5)) {}
};

// _upsample_backward(Tensor grad, int[] input_size, float[] scales, str mode, bool align_corners, bool antialias) -> Tensor
struct UpsampleBackward {
  const cb_tensor* grad;
  std::span<const int64_t> input_size;
  std::span<const double> scales;
  std::string_view mode;
  bool align_corners;
  bool antialias;

  explicit UpsampleBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        input_size(call.ints(1)),
        scales(call.floats(2)),
        mode(call.string(3)),
        align_corners(call.boolean(4)),
        antialias(call.boolean(5)) {}
};

// grid_sampler(Tensor self, Tensor grid, str mode, str padding_mode, bool align_corners) -> Tensor
struct GridSampler {
  const cb_tensor* self;
  const cb_tensor* grid;
  std::string_view mode;
  std::string_view padding_mode;
  bool align_corners;

  explicit GridSampler(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        grid(call.optional_tensor(1)),
        mode(call.string(2)),
        padding_mode(call.string(3)),
        align_corners(call.boolean(4)) {}
};

// grid_sampler_backward(Tensor grad, Tensor self, Tensor grid, str mode, str padding_mode, bool align_corners, bool[] needs) -> (Tensor grad_self, Tensor grad_grid)
struct GridSamplerBackward {
  const cb_tensor* grad;
  const cb_tensor* self;
  const cb_tensor* grid;
  std::string_view mode;
  std::string_view padding_mode;
  bool align_corners;
  std::span<const int64_t> needs;

  explicit GridSamplerBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        self(call.optional_tensor(1)),
        grid(call.optional_tensor(2)),
        mode(call.string(3)),
        padding_mode(call.string(4)),
        align_corners(call.boolean(5)),
        needs(call.ints(6)) {}
};

// im2col(Tensor self, int[] kernel_size, int[] dilation, int[] padding, int[] stride) -> Tensor
struct Im2col {
  const cb_tensor* self;
  std::span<const int64_t> kernel_size;
  std::span<const int64_t> dilation;
  std::span<const int64_t> padding;
  std::span<const int64_t> stride;

  explicit Im2col(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        kernel_size(call.ints(1)),
        dilation(call.ints(2)),
        padding(call.ints(3)),
        stride(call.ints(4)) {}
};

// col2im(Tensor grad, int[] output_size, int[] kernel_size, int[] dilation, int[] padding, int[] stride) -> Tensor
struct Col2im {
  const cb_tensor* grad;
  std::span<const int64_t> output_size;
  std::span<const int64_t> kernel_size;
  std::span<const int64_t> dilation;
  std::span<const int64_t> padding;
  std::span<const int64_t> stride;

  explicit Col2im(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        output_size(call.ints(1)),
        kernel_size(call.ints(2)),
        dilation(call.ints(3)),
        padding(call.ints(4)),
        stride(call.ints(5)) {}
};

// _constant_pad_nd(Tensor self, int[] padding, Scalar value) -> Tensor
struct ConstantPadNd {
  const cb_tensor* self;
  std::span<const int64_t> padding;
  const cb_scalar* value;

  explicit ConstantPadNd(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        padding(call.ints(1)),
        value(call.optional_scalar(2)) {}
};

// _reflection_replication_pad(Tensor self, int[] padding, str mode) -> Tensor
struct ReflectionReplicationPad {
  const cb_tensor* self;
  std::span<const int64_t> padding;
  std::string_view mode;

  explicit ReflectionReplicationPad(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        padding(call.ints(1)),
        mode(call.string(2)) {}
};

// _reflection_replication_pad_backward(Tensor grad, int[] input_size, int[] padding, str mode) -> Tensor
struct ReflectionReplicationPadBackward {
  const cb_tensor* grad;
  std::span<const int64_t> input_size;
  std::span<const int64_t> padding;
  std::string_view mode;

  explicit ReflectionReplicationPadBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        input_size(call.ints(1)),
        padding(call.ints(2)),
        mode(call.string(3)) {}
};

}  // namespace candelabra::arguments

#endif  // CANDELABRA_ARGUMENTS_RESAMPLING_HPP
