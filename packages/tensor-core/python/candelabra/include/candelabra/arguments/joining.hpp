// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.
// Arguments of the operators of the family joining, for kernels:
//
//   const arguments::Cat args(call);
//
// A tensor or number that was not given is a null pointer; other optional arguments are std::optional.
#ifndef CANDELABRA_ARGUMENTS_JOINING_HPP
#define CANDELABRA_ARGUMENTS_JOINING_HPP

#include <optional>
#include <span>
#include <string_view>

#include "candelabra/kernel.hpp"

namespace candelabra::arguments {

// cat(Tensor[] tensors, int dim=0) -> Tensor
struct Cat {
  std::span<const cb_tensor* const> tensors;
  int64_t dim;

  explicit Cat(const kernel::Call& call)
      : tensors(call.tensors(0)),
        dim(call.integer(1)) {}
};

// stack(Tensor[] tensors, int dim=0) -> Tensor
struct Stack {
  std::span<const cb_tensor* const> tensors;
  int64_t dim;

  explicit Stack(const kernel::Call& call)
      : tensors(call.tensors(0)),
        dim(call.integer(1)) {}
};

// flip(Tensor self, int[] dims) -> Tensor
struct Flip {
  const cb_tensor* self;
  std::span<const int64_t> dims;

  explicit Flip(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dims(call.ints(1)) {}
};

// tril(Tensor self, int diagonal=0) -> Tensor
struct Tril {
  const cb_tensor* self;
  int64_t diagonal;

  explicit Tril(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        diagonal(call.integer(1)) {}
};

// triu(Tensor self, int diagonal=0) -> Tensor
struct Triu {
  const cb_tensor* self;
  int64_t diagonal;

  explicit Triu(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        diagonal(call.integer(1)) {}
};

// pixel_shuffle(Tensor self, int upscale_factor) -> Tensor
struct PixelShuffle {
  const cb_tensor* self;
  int64_t upscale_factor;

  explicit PixelShuffle(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        upscale_factor(call.integer(1)) {}
};

// pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor
struct PixelUnshuffle {
  const cb_tensor* self;
  int64_t downscale_factor;

  explicit PixelUnshuffle(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        downscale_factor(call.integer(1)) {}
};

// channel_shuffle(Tensor self, int groups) -> Tensor
struct ChannelShuffle {
  const cb_tensor* self;
  int64_t groups;

  explicit ChannelShuffle(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        groups(call.integer(1)) {}
};

}  // namespace candelabra::arguments

#endif  // CANDELABRA_ARGUMENTS_JOINING_HPP
