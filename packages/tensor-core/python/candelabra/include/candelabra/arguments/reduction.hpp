// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.
// Arguments of the operators of the family reduction, for kernels:
//
//   const arguments::Sum args(call);
//
// A tensor or number that was not given is a null pointer; other optional arguments are std::optional.
#ifndef CANDELABRA_ARGUMENTS_REDUCTION_HPP
#define CANDELABRA_ARGUMENTS_REDUCTION_HPP

#include <optional>
#include <span>
#include <string_view>

#include "candelabra/kernel.hpp"

namespace candelabra::arguments {

// sum(Tensor self, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor
struct Sum {
  const cb_tensor* self;
  std::optional<std::span<const int64_t>> dim;
  bool keepdim;
  std::optional<int32_t> dtype;

  explicit Sum(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.optional_ints(1)),
        keepdim(call.boolean(2)),
        dtype(call.optional_dtype(3)) {}
};

// mean(Tensor self, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor
struct Mean {
  const cb_tensor* self;
  std::optional<std::span<const int64_t>> dim;
  bool keepdim;
  std::optional<int32_t> dtype;

  explicit Mean(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.optional_ints(1)),
        keepdim(call.boolean(2)),
        dtype(call.optional_dtype(3)) {}
};

// _nansum(Tensor self, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor
struct Nansum {
  const cb_tensor* self;
  std::optional<std::span<const int64_t>> dim;
  bool keepdim;
  std::optional<int32_t> dtype;

  explicit Nansum(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.optional_ints(1)),
        keepdim(call.boolean(2)),
        dtype(call.optional_dtype(3)) {}
};

// count_nonzero(Tensor self, int[]? dim=None) -> Tensor
struct CountNonzero {
  const cb_tensor* self;
  std::optional<std::span<const int64_t>> dim;

  explicit CountNonzero(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.optional_ints(1)) {}
};

// prod(Tensor self, int? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor
struct Prod {
  const cb_tensor* self;
  std::span<const int64_t> dim;
  bool keepdim;
  std::optional<int32_t> dtype;

  explicit Prod(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.ints(1)),
        keepdim(call.boolean(2)),
        dtype(call.optional_dtype(3)) {}
};

// amax(Tensor self, int[] dim=(), bool keepdim=False) -> Tensor
struct Amax {
  const cb_tensor* self;
  std::span<const int64_t> dim;
  bool keepdim;

  explicit Amax(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.ints(1)),
        keepdim(call.boolean(2)) {}
};

// amin(Tensor self, int[] dim=(), bool keepdim=False) -> Tensor
struct Amin {
  const cb_tensor* self;
  std::span<const int64_t> dim;
  bool keepdim;

  explicit Amin(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.ints(1)),
        keepdim(call.boolean(2)) {}
};

// _aminmax(Tensor self, int[] dim=(), bool keepdim=False) -> (Tensor min, Tensor max)
struct Aminmax {
  const cb_tensor* self;
  std::span<const int64_t> dim;
  bool keepdim;

  explicit Aminmax(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.ints(1)),
        keepdim(call.boolean(2)) {}
};

// max_with_indices(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
struct MaxWithIndices {
  const cb_tensor* self;
  int64_t dim;
  bool keepdim;

  explicit MaxWithIndices(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.integer(1)),
        keepdim(call.boolean(2)) {}
};

// min_with_indices(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
struct MinWithIndices {
  const cb_tensor* self;
  int64_t dim;
  bool keepdim;

  explicit MinWithIndices(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.integer(1)),
        keepdim(call.boolean(2)) {}
};

// argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor
struct Argmax {
  const cb_tensor* self;
  std::optional<int64_t> dim;
  bool keepdim;

  explicit Argmax(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.optional_integer(1)),
        keepdim(call.boolean(2)) {}
};

// argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor
struct Argmin {
  const cb_tensor* self;
  std::optional<int64_t> dim;
  bool keepdim;

  explicit Argmin(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.optional_integer(1)),
        keepdim(call.boolean(2)) {}
};

// all(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor
struct All {
  const cb_tensor* self;
  std::optional<std::span<const int64_t>> dim;
  bool keepdim;

  explicit All(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.optional_ints(1)),
        keepdim(call.boolean(2)) {}
};

// any(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor
struct Any {
  const cb_tensor* self;
  std::optional<std::span<const int64_t>> dim;
  bool keepdim;

  explicit Any(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.optional_ints(1)),
        keepdim(call.boolean(2)) {}
};

// var(Tensor self, int[]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor
struct Var {
  const cb_tensor* self;
  std::optional<std::span<const int64_t>> dim;
  const cb_scalar* correction;
  bool keepdim;

  explicit Var(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.optional_ints(1)),
        correction(call.optional_scalar(2)),
        keepdim(call.boolean(3)) {}
};

// std(Tensor self, int[]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor
struct Std {
  const cb_tensor* self;
  std::optional<std::span<const int64_t>> dim;
  const cb_scalar* correction;
  bool keepdim;

  explicit Std(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.optional_ints(1)),
        correction(call.optional_scalar(2)),
        keepdim(call.boolean(3)) {}
};

// linalg_vector_norm(Tensor self, Scalar ord=2, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor
struct LinalgVectorNorm {
  const cb_tensor* self;
  const cb_scalar* ord;
  std::optional<std::span<const int64_t>> dim;
  bool keepdim;
  std::optional<int32_t> dtype;

  explicit LinalgVectorNorm(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        ord(call.optional_scalar(1)),
        dim(call.optional_ints(2)),
        keepdim(call.boolean(3)),
        dtype(call.optional_dtype(4)) {}
};

// logsumexp(Tensor self, int[] dim, bool keepdim=False) -> Tensor
struct Logsumexp {
  const cb_tensor* self;
  std::span<const int64_t> dim;
  bool keepdim;

  explicit Logsumexp(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.ints(1)),
        keepdim(call.boolean(2)) {}
};

}  // namespace candelabra::arguments

#endif  // CANDELABRA_ARGUMENTS_REDUCTION_HPP
