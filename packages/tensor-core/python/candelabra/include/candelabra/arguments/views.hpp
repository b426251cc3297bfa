// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.
// Arguments of the operators of the family views, for kernels:
//
//   const arguments::View args(call);
//
// A tensor or number that was not given is a null pointer; other optional arguments are std::optional.
#ifndef CANDELABRA_ARGUMENTS_VIEWS_HPP
#define CANDELABRA_ARGUMENTS_VIEWS_HPP

#include <optional>
#include <span>
#include <string_view>

#include "candelabra/kernel.hpp"

namespace candelabra::arguments {

// view(Tensor(a) self, int[] size) -> Tensor(a)
struct View {
  const cb_tensor* self;
  std::span<const int64_t> size;

  explicit View(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        size(call.ints(1)) {}
};

// reshape(Tensor(a) self, int[] shape) -> Tensor(a)
struct Reshape {
  const cb_tensor* self;
  std::span<const int64_t> shape;

  explicit Reshape(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        shape(call.ints(1)) {}
};

// split(Tensor(a) self, int split_size, int dim=0) -> Tensor(a)[]
struct Split {
  const cb_tensor* self;
  int64_t split_size;
  int64_t dim;

  explicit Split(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        split_size(call.integer(1)),
        dim(call.integer(2)) {}
};

// view_dtype(Tensor(a) self, dtype dtype) -> Tensor(a)
struct ViewDtype {
  const cb_tensor* self;
  int32_t dtype;

  explicit ViewDtype(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dtype(call.dtype(1)) {}
};

// as_strided(Tensor(a) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a)
struct AsStrided {
  const cb_tensor* self;
  std::span<const int64_t> size;
  std::span<const int64_t> stride;
  std::optional<int64_t> storage_offset;

  explicit AsStrided(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        size(call.ints(1)),
        stride(call.ints(2)),
        storage_offset(call.optional_integer(3)) {}
};

// expand(Tensor(a) self, int[] size, *, bool implicit=False) -> Tensor(a)
struct Expand {
  const cb_tensor* self;
  std::span<const int64_t> size;
  bool implicit;

  explicit Expand(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        size(call.ints(1)),
        implicit(call.boolean(2)) {}
};

// permute(Tensor(a) self, int[] dims) -> Tensor(a)
struct Permute {
  const cb_tensor* self;
  std::span<const int64_t> dims;

  explicit Permute(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dims(call.ints(1)) {}
};

// transpose(Tensor(a) self, int dim0, int dim1) -> Tensor(a)
struct Transpose {
  const cb_tensor* self;
  int64_t dim0;
  int64_t dim1;

  explicit Transpose(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim0(call.integer(1)),
        dim1(call.integer(2)) {}
};

// t(Tensor(a) self) -> Tensor(a)
struct T {
  const cb_tensor* self;

  explicit T(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// squeeze(Tensor(a) self, int[1]? dim=None) -> Tensor(a)
struct Squeeze {
  const cb_tensor* self;
  std::optional<std::span<const int64_t>> dim;

  explicit Squeeze(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.optional_ints(1)) {}
};

// unsqueeze(Tensor(a) self, int dim) -> Tensor(a)
struct Unsqueeze {
  const cb_tensor* self;
  int64_t dim;

  explicit Unsqueeze(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.integer(1)) {}
};

// select(Tensor(a) self, int dim, int index) -> Tensor(a)
struct Select {
  const cb_tensor* self;
  int64_t dim;
  int64_t index;

  explicit Select(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.integer(1)),
        index(call.integer(2)) {}
};

// slice(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a)
struct Slice {
  const cb_tensor* self;
  int64_t dim;
  std::optional<int64_t> start;
  std::optional<int64_t> end;
  int64_t step;

  explicit Slice(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.integer(1)),
        start(call.optional_integer(2)),
        end(call.optional_integer(3)),
        step(call.integer(4)) {}
};

// narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a)
struct Narrow {
  const cb_tensor* self;
  int64_t dim;
  int64_t start;
  int64_t length;

  explicit Narrow(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.integer(1)),
        start(call.integer(2)),
        length(call.integer(3)) {}
};

// diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)
struct Diagonal {
  const cb_tensor* self;
  int64_t offset;
  int64_t dim1;
  int64_t dim2;

  explicit Diagonal(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        offset(call.integer(1)),
        dim1(call.integer(2)),
        dim2(call.integer(3)) {}
};

// unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)
struct Unfold {
  const cb_tensor* self;
  int64_t dimension;
  int64_t size;
  int64_t step;

  explicit Unfold(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dimension(call.integer(1)),
        size(call.integer(2)),
        step(call.integer(3)) {}
};

// movedim(Tensor(a) self, int[1] source, int[1] destination) -> Tensor(a)
struct Movedim {
  const cb_tensor* self;
  std::span<const int64_t> source;
  std::span<const int64_t> destination;

  explicit Movedim(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        source(call.ints(1)),
        destination(call.ints(2)) {}
};

// unflatten(Tensor(a) self, int dim, int[] sizes) -> Tensor(a)
struct Unflatten {
  const cb_tensor* self;
  int64_t dim;
  std::span<const int64_t> sizes;

  explicit Unflatten(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.integer(1)),
        sizes(call.ints(2)) {}
};

// alias(Tensor(a) self) -> Tensor(a)
struct Alias {
  const cb_tensor* self;

  explicit Alias(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// view_as_real(Tensor(a) self) -> Tensor(a)
struct ViewAsReal {
  const cb_tensor* self;

  explicit ViewAsReal(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// view_as_complex(Tensor(a) self) -> Tensor(a)
struct ViewAsComplex {
  const cb_tensor* self;

  explicit ViewAsComplex(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// detach(Tensor(a) self) -> Tensor(a)
struct Detach {
  const cb_tensor* self;

  explicit Detach(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

}  // namespace candelabra::arguments

#endif  // CANDELABRA_ARGUMENTS_VIEWS_HPP
