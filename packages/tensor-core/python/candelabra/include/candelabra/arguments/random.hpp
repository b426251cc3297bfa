// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.
// Arguments of the operators of the family random, for kernels:
//
//   const arguments::Uniform args(call);
//
// A tensor or number that was not given is a null pointer; other optional arguments are std::optional.
#ifndef CANDELABRA_ARGUMENTS_RANDOM_HPP
#define CANDELABRA_ARGUMENTS_RANDOM_HPP

#include <optional>
#include <span>
#include <string_view>

#include "candelabra/kernel.hpp"

namespace candelabra::arguments {

// uniform_(Tensor(a!) self, float from=0, float to=1) -> Tensor(a!)
struct Uniform {
  const cb_tensor* self;
  double from;
  double to;

  explicit Uniform(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        from(call.real(1)),
        to(call.real(2)) {}
};

// normal_(Tensor(a!) self, float mean=0, float std=1) -> Tensor(a!)
struct Normal {
  const cb_tensor* self;
  double mean;
  double std;

  explicit Normal(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        mean(call.real(1)),
        std(call.real(2)) {}
};

// bernoulli_(Tensor(a!) self, float p=0.5) -> Tensor(a!)
struct BernoulliInPlace {
  const cb_tensor* self;
  double p;

  explicit BernoulliInPlace(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        p(call.real(1)) {}
};

// exponential_(Tensor(a!) self, float lambd=1) -> Tensor(a!)
struct Exponential {
  const cb_tensor* self;
  double lambd;

  explicit Exponential(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        lambd(call.real(1)) {}
};

// random_range_(Tensor(a!) self, int low, int high) -> Tensor(a!)
struct RandomRange {
  const cb_tensor* self;
  int64_t low;
  int64_t high;

  explicit RandomRange(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        low(call.integer(1)),
        high(call.integer(2)) {}
};

// bernoulli(Tensor self) -> Tensor
struct Bernoulli {
  const cb_tensor* self;

  explicit Bernoulli(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// randperm(int n, *, dtype dtype, device? device=None) -> Tensor
struct Randperm {
  int64_t n;
  int32_t dtype;

  explicit Randperm(const kernel::Call& call)
      : n(call.integer(0)),
        dtype(call.dtype(1)) {}
};

// native_dropout(Tensor input, float p) -> (Tensor output, Tensor mask)
struct NativeDropout {
  const cb_tensor* input;
  double p;

  explicit NativeDropout(const kernel::Call& call)
      : input(call.optional_tensor(0)),
        p(call.real(1)) {}
};

}  // namespace candelabra::arguments

#endif  // CANDELABRA_ARGUMENTS_RANDOM_HPP
