// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.
// Arguments of the operators of the family sorting, for kernels:
//
//   const arguments::Sort args(call);
//
// A tensor or number that was not given is a null pointer; other optional arguments are std::optional.
#ifndef CANDELABRA_ARGUMENTS_SORTING_HPP
#define CANDELABRA_ARGUMENTS_SORTING_HPP

#include <optional>
#include <span>
#include <string_view>

#include "candelabra/kernel.hpp"

namespace candelabra::arguments {

// sort(Tensor self, int dim=-1, bool descending=False, bool stable=False) -> (Tensor values, Tensor indices)
struct Sort {
  const cb_tensor* self;
  int64_t dim;
  bool descending;
  bool stable;

  explicit Sort(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.integer(1)),
        descending(call.boolean(2)),
        stable(call.boolean(3)) {}
};

// topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)
struct Topk {
  const cb_tensor* self;
  int64_t k;
  int64_t dim;
  bool largest;
  bool sorted;

  explicit Topk(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        k(call.integer(1)),
        dim(call.integer(2)),
        largest(call.boolean(3)),
        sorted(call.boolean(4)) {}
};

// _searchsorted(Tensor sorted_sequence, Tensor values, bool right, bool out_int32, Tensor? sorter) -> Tensor
struct Searchsorted {
  const cb_tensor* sorted_sequence;
  const cb_tensor* values;
  bool right;
  bool out_int32;
  const cb_tensor* sorter;

  explicit Searchsorted(const kernel::Call& call)
      : sorted_sequence(call.optional_tensor(0)),
        values(call.optional_tensor(1)),
        right(call.boolean(2)),
        out_int32(call.boolean(3)),
        sorter(call.optional_tensor(4)) {}
};

// _kthvalue_index(Tensor self, int dim, int rank, str among) -> Tensor
struct KthvalueIndex {
  const cb_tensor* self;
  int64_t dim;
  int64_t rank;
  std::string_view among;

  explicit KthvalueIndex(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.integer(1)),
        rank(call.integer(2)),
        among(call.string(3)) {}
};

// _mode_index(Tensor self, int dim) -> Tensor
struct ModeIndex {
  const cb_tensor* self;
  int64_t dim;

  explicit ModeIndex(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.integer(1)) {}
};

// _histc(Tensor self, int bins, float low, float high) -> Tensor
struct Histc {
  const cb_tensor* self;
  int64_t bins;
  double low;
  double high;

  explicit Histc(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        bins(call.integer(1)),
        low(call.real(2)),
        high(call.real(3)) {}
};

}  // namespace candelabra::arguments

#endif  // CANDELABRA_ARGUMENTS_SORTING_HPP
