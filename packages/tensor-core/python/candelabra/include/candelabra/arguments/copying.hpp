// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.
// Arguments of the operators of the family copying, for kernels:
//
//   const arguments::Copy args(call);
//
// A tensor or number that was not given is a null pointer; other optional arguments are std::optional.
#ifndef CANDELABRA_ARGUMENTS_COPYING_HPP
#define CANDELABRA_ARGUMENTS_COPYING_HPP

#include <optional>
#include <span>
#include <string_view>

#include "candelabra/kernel.hpp"

namespace candelabra::arguments {

// copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)
struct Copy {
  const cb_tensor* self;
  const cb_tensor* src;
  bool non_blocking;

  explicit Copy(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        src(call.optional_tensor(1)),
        non_blocking(call.boolean(2)) {}
};

// clone(Tensor self, *, memory_format? memory_format=None) -> Tensor
struct Clone {
  const cb_tensor* self;

  explicit Clone(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// to(Tensor(a) self, object target=None, object second=None, *, dtype? dtype=None, device? device=None) -> Tensor(a)
struct To {
  const cb_tensor* self;
  std::optional<int32_t> dtype;

  explicit To(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dtype(call.optional_dtype(3)) {}
};

// _to_copy(Tensor self, *, dtype? dtype=None, device? device=None, bool non_blocking=False, memory_format? memory_format=None) -> Tensor
struct ToCopy {
  const cb_tensor* self;
  std::optional<int32_t> dtype;
  bool non_blocking;

  explicit ToCopy(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dtype(call.optional_dtype(1)),
        non_blocking(call.boolean(3)) {}
};

// contiguous(Tensor self, *, memory_format? memory_format=None) -> Tensor
struct Contiguous {
  const cb_tensor* self;

  explicit Contiguous(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

}  // namespace candelabra::arguments

#endif  // CANDELABRA_ARGUMENTS_COPYING_HPP
