// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.
// Arguments of the operators of the family creation, for kernels:
//
//   const arguments::Allocate args(call);
//
// A tensor or number that was not given is a null pointer; other optional arguments are std::optional.
#ifndef CANDELABRA_ARGUMENTS_CREATION_HPP
#define CANDELABRA_ARGUMENTS_CREATION_HPP

#include <optional>
#include <span>
#include <string_view>

#include "candelabra/kernel.hpp"

namespace candelabra::arguments {

// allocate(int[] size, *, dtype? dtype=None, device? device=None, memory_format? memory_format=None) -> Tensor
struct Allocate {
  std::span<const int64_t> size;
  std::optional<int32_t> dtype;

  explicit Allocate(const kernel::Call& call)
      : size(call.ints(0)),
        dtype(call.optional_dtype(1)) {}
};

// empty(int[] size, *, dtype? dtype=None, device? device=None, memory_format? memory_format=None, object layout=None, bool? requires_grad=False, bool? pin_memory=False) -> Tensor
struct Empty {
  std::span<const int64_t> size;
  std::optional<int32_t> dtype;
  std::optional<bool> requires_grad;
  std::optional<bool> pin_memory;

  explicit Empty(const kernel::Call& call)
      : size(call.ints(0)),
        dtype(call.optional_dtype(1)),
        requires_grad(call.optional_boolean(5)),
        pin_memory(call.optional_boolean(6)) {}
};

// zeros(int[] size, *, dtype? dtype=None, device? device=None, object layout=None, bool? requires_grad=False, bool? pin_memory=False) -> Tensor
struct Zeros {
  std::span<const int64_t> size;
  std::optional<int32_t> dtype;
  std::optional<bool> requires_grad;
  std::optional<bool> pin_memory;

  explicit Zeros(const kernel::Call& call)
      : size(call.ints(0)),
        dtype(call.optional_dtype(1)),
        requires_grad(call.optional_boolean(4)),
        pin_memory(call.optional_boolean(5)) {}
};

// ones(int[] size, *, dtype? dtype=None, device? device=None, object layout=None, bool? requires_grad=False, bool? pin_memory=False) -> Tensor
struct Ones {
  std::span<const int64_t> size;
  std::optional<int32_t> dtype;
  std::optional<bool> requires_grad;
  std::optional<bool> pin_memory;

  explicit Ones(const kernel::Call& call)
      : size(call.ints(0)),
        dtype(call.optional_dtype(1)),
        requires_grad(call.optional_boolean(4)),
        pin_memory(call.optional_boolean(5)) {}
};

// full(int[] size, Scalar fill_value, *, dtype? dtype=None, device? device=None, object layout=None, bool? requires_grad=False, bool? pin_memory=False) -> Tensor
struct Full {
  std::span<const int64_t> size;
  const cb_scalar* fill_value;
  std::optional<int32_t> dtype;
  std::optional<bool> requires_grad;
  std::optional<bool> pin_memory;

  explicit Full(const kernel::Call& call)
      : size(call.ints(0)),
        fill_value(call.optional_scalar(1)),
        dtype(call.optional_dtype(2)),
        requires_grad(call.optional_boolean(5)),
        pin_memory(call.optional_boolean(6)) {}
};

// empty_like(Tensor self, *, dtype? dtype=None, device? device=None, memory_format? memory_format=None, object layout=None, bool? requires_grad=False, bool? pin_memory=False) -> Tensor
struct EmptyLike {
  const cb_tensor* self;
  std::optional<int32_t> dtype;
  std::optional<bool> requires_grad;
  std::optional<bool> pin_memory;

  explicit EmptyLike(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dtype(call.optional_dtype(1)),
        requires_grad(call.optional_boolean(5)),
        pin_memory(call.optional_boolean(6)) {}
};

// zeros_like(Tensor self, *, dtype? dtype=None, device? device=None, memory_format? memory_format=None, object layout=None, bool? requires_grad=False, bool? pin_memory=False) -> Tensor
struct ZerosLike {
  const cb_tensor* self;
  std::optional<int32_t> dtype;
  std::optional<bool> requires_grad;
  std::optional<bool> pin_memory;

  explicit ZerosLike(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dtype(call.optional_dtype(1)),
        requires_grad(call.optional_boolean(5)),
        pin_memory(call.optional_boolean(6)) {}
};

// ones_like(Tensor self, *, dtype? dtype=None, device? device=None, memory_format? memory_format=None, object layout=None, bool? requires_grad=False, bool? pin_memory=False) -> Tensor
struct OnesLike {
  const cb_tensor* self;
  std::optional<int32_t> dtype;
  std::optional<bool> requires_grad;
  std::optional<bool> pin_memory;

  explicit OnesLike(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dtype(call.optional_dtype(1)),
        requires_grad(call.optional_boolean(5)),
        pin_memory(call.optional_boolean(6)) {}
};

// full_like(Tensor self, Scalar fill_value, *, dtype? dtype=None, device? device=None, memory_format? memory_format=None, object layout=None, bool? requires_grad=False, bool? pin_memory=False) -> Tensor
struct FullLike {
  const cb_tensor* self;
  const cb_scalar* fill_value;
  std::optional<int32_t> dtype;
  std::optional<bool> requires_grad;
  std::optional<bool> pin_memory;

  explicit FullLike(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        fill_value(call.optional_scalar(1)),
        dtype(call.optional_dtype(2)),
        requires_grad(call.optional_boolean(6)),
        pin_memory(call.optional_boolean(7)) {}
};

// empty_strided(int[] size, int[] stride, *, dtype? dtype=None, device? device=None) -> Tensor
struct EmptyStrided {
  std::span<const int64_t> size;
  std::span<const int64_t> stride;
  std::optional<int32_t> dtype;

  explicit EmptyStrided(const kernel::Call& call)
      : size(call.ints(0)),
        stride(call.ints(1)),
        dtype(call.optional_dtype(2)) {}
};

// fill_(Tensor(a!) self, Scalar value) -> Tensor(a!)
struct Fill {
  const cb_tensor* self;
  const cb_scalar* value;

  explicit Fill(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        value(call.optional_scalar(1)) {}
};

// arange(Scalar start, Scalar end=nan, Scalar step=1, *, dtype? dtype=None, device? device=None) -> Tensor
struct Arange {
  const cb_scalar* start;
  const cb_scalar* end;
  const cb_scalar* step;
  std::optional<int32_t> dtype;

  explicit Arange(const kernel::Call& call)
      : start(call.optional_scalar(0)),
        end(call.optional_scalar(1)),
        step(call.optional_scalar(2)),
        dtype(call.optional_dtype(3)) {}
};

// linspace(Scalar start, Scalar end, int steps, *, dtype dtype, device? device=None) -> Tensor
struct Linspace {
  const cb_scalar* start;
  const cb_scalar* end;
  int64_t steps;
  int32_t dtype;

  explicit Linspace(const kernel::Call& call)
      : start(call.optional_scalar(0)),
        end(call.optional_scalar(1)),
        steps(call.integer(2)),
        dtype(call.dtype(3)) {}
};

// _tril_triu_indices(int rows, int columns, int offset, bool upper, *, dtype dtype, device? device=None) -> Tensor
struct TrilTriuIndices {
  int64_t rows;
  int64_t columns;
  int64_t offset;
  bool upper;
  int32_t dtype;

  explicit TrilTriuIndices(const kernel::Call& call)
      : rows(call.integer(0)),
        columns(call.integer(1)),
        offset(call.integer(2)),
        upper(call.boolean(3)),
        dtype(call.dtype(4)) {}
};

}  // namespace candelabra::arguments

#endif  // CANDELABRA_ARGUMENTS_CREATION_HPP
