// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.
// Arguments of the operators of the family softmax, for kernels:
//
//   const arguments::Softmax args(call);
//
// A tensor or number that was not given is a null pointer; other optional arguments are std::optional.
#ifndef CANDELABRA_ARGUMENTS_SOFTMAX_HPP
#define CANDELABRA_ARGUMENTS_SOFTMAX_HPP

#include <optional>
#include <span>
#include <string_view>

#include "candelabra/kernel.hpp"

namespace candelabra::arguments {

// softmax(Tensor self, int dim, dtype? dtype=None) -> Tensor
struct Softmax {
  const cb_tensor* self;
  int64_t dim;
  std::optional<int32_t> dtype;

  explicit Softmax(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.integer(1)),
        dtype(call.optional_dtype(2)) {}
};

// softmax_backward(Tensor grad, Tensor output, int dim) -> Tensor
struct SoftmaxBackward {
  const cb_tensor* grad;
  const cb_tensor* output;
  int64_t dim;

  explicit SoftmaxBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        output(call.optional_tensor(1)),
        dim(call.integer(2)) {}
};

// log_softmax(Tensor self, int dim, dtype? dtype=None) -> Tensor
struct LogSoftmax {
  const cb_tensor* self;
  int64_t dim;
  std::optional<int32_t> dtype;

  explicit LogSoftmax(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.integer(1)),
        dtype(call.optional_dtype(2)) {}
};

// log_softmax_backward(Tensor grad, Tensor output, int dim) -> Tensor
struct LogSoftmaxBackward {
  const cb_tensor* grad;
  const cb_tensor* output;
  int64_t dim;

  explicit LogSoftmaxBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        output(call.optional_tensor(1)),
        dim(call.integer(2)) {}
};

}  // namespace candelabra::arguments

#endif  // CANDELABRA_ARGUMENTS_SOFTMAX_HPP
