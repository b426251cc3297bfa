// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.
// Arguments of the operators of the family scan, for kernels:
//
//   const arguments::Cumsum args(call);
//
// A tensor or number that was not given is a null pointer; other optional arguments are std::optional.
#ifndef CANDELABRA_ARGUMENTS_SCAN_HPP
#define CANDELABRA_ARGUMENTS_SCAN_HPP

#include <optional>
#include <span>
#include <string_view>

#include "candelabra/kernel.hpp"

namespace candelabra::arguments {

// cumsum(Tensor self, int dim, *, dtype? dtype=None) -> Tensor
struct Cumsum {
  const cb_tensor* self;
  int64_t dim;
  std::optional<int32_t> dtype;

  explicit Cumsum(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.integer(1)),
        dtype(call.optional_dtype(2)) {}
};

// cumprod(Tensor self, int dim, *, dtype? dtype=None) -> Tensor
struct Cumprod {
  const cb_tensor* self;
  int64_t dim;
  std::optional<int32_t> dtype;

  explicit Cumprod(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.integer(1)),
        dtype(call.optional_dtype(2)) {}
};

// logcumsumexp(Tensor self, int dim) -> Tensor
struct Logcumsumexp {
  const cb_tensor* self;
  int64_t dim;

  explicit Logcumsumexp(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.integer(1)) {}
};

// _cummax_cummin(Tensor self, int dim, bool larger) -> Tensor
struct CummaxCummin {
  const cb_tensor* self;
  int64_t dim;
  bool larger;

  explicit CummaxCummin(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.integer(1)),
        larger(call.boolean(2)) {}
};

}  // namespace candelabra::arguments

#endif  // CANDELABRA_ARGUMENTS_SCAN_HPP
