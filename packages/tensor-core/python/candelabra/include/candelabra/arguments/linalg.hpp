// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.
// Arguments of the operators of the family linalg, for kernels:
//
//   const arguments::Mm args(call);
//
// A tensor or number that was not given is a null pointer; other optional arguments are std::optional.
#ifndef CANDELABRA_ARGUMENTS_LINALG_HPP
#define CANDELABRA_ARGUMENTS_LINALG_HPP

#include <optional>
#include <span>
#include <string_view>

#include "candelabra/kernel.hpp"

namespace candelabra::arguments {

// mm(Tensor self, Tensor mat2) -> Tensor
struct Mm {
  const cb_tensor* self;
  const cb_tensor* mat2;

  explicit Mm(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        mat2(call.optional_tensor(1)) {}
};

// bmm(Tensor self, Tensor mat2) -> Tensor
struct Bmm {
  const cb_tensor* self;
  const cb_tensor* mat2;

  explicit Bmm(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        mat2(call.optional_tensor(1)) {}
};

// mv(Tensor self, Tensor vec) -> Tensor
struct Mv {
  const cb_tensor* self;
  const cb_tensor* vec;

  explicit Mv(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        vec(call.optional_tensor(1)) {}
};

// dot(Tensor self, Tensor tensor) -> Tensor
struct Dot {
  const cb_tensor* self;
  const cb_tensor* tensor;

  explicit Dot(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        tensor(call.optional_tensor(1)) {}
};

// addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor
struct Addmm {
  const cb_tensor* self;
  const cb_tensor* mat1;
  const cb_tensor* mat2;
  const cb_scalar* beta;
  const cb_scalar* alpha;

  explicit Addmm(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        mat1(call.optional_tensor(1)),
        mat2(call.optional_tensor(2)),
        beta(call.optional_scalar(3)),
        alpha(call.optional_scalar(4)) {}
};

// _addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool use_gelu=False) -> Tensor
struct AddmmActivation {
  const cb_tensor* self;
  const cb_tensor* mat1;
  const cb_tensor* mat2;
  const cb_scalar* beta;
  const cb_scalar* alpha;
  bool use_gelu;

  explicit AddmmActivation(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        mat1(call.optional_tensor(1)),
        mat2(call.optional_tensor(2)),
        beta(call.optional_scalar(3)),
        alpha(call.optional_scalar(4)),
        use_gelu(call.boolean(5)) {}
};

// baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor
struct Baddbmm {
  const cb_tensor* self;
  const cb_tensor* batch1;
  const cb_tensor* batch2;
  const cb_scalar* beta;
  const cb_scalar* alpha;

  explicit Baddbmm(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        batch1(call.optional_tensor(1)),
        batch2(call.optional_tensor(2)),
        beta(call.optional_scalar(3)),
        alpha(call.optional_scalar(4)) {}
};

// linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor
struct Linear {
  const cb_tensor* input;
  const cb_tensor* weight;
  const cb_tensor* bias;

  explicit Linear(const kernel::Call& call)
      : input(call.optional_tensor(0)),
        weight(call.optional_tensor(1)),
        bias(call.optional_tensor(2)) {}
};

// _cdist_forward(Tensor x1, Tensor x2, float p) -> Tensor
struct CdistForward {
  const cb_tensor* x1;
  const cb_tensor* x2;
  double p;

  explicit CdistForward(const kernel::Call& call)
      : x1(call.optional_tensor(0)),
        x2(call.optional_tensor(1)),
        p(call.real(2)) {}
};

// _pdist_forward(Tensor self, float p) -> Tensor
struct PdistForward {
  const cb_tensor* self;
  double p;

  explicit PdistForward(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        p(call.real(1)) {}
};

// _cdist_backward(Tensor grad, Tensor x1, Tensor x2, Tensor result, float p) -> Tensor
struct CdistBackward {
  const cb_tensor* grad;
  const cb_tensor* x1;
  const cb_tensor* x2;
  const cb_tensor* result;
  double p;

  explicit CdistBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        x1(call.optional_tensor(1)),
        x2(call.optional_tensor(2)),
        result(call.optional_tensor(3)),
        p(call.real(4)) {}
};

}  // namespace candelabra::arguments

#endif  // CANDELABRA_ARGUMENTS_LINALG_HPP
