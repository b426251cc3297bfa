// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.
// Arguments of the operators of the family indexing, for kernels:
//
//   const arguments::Gather args(call);
//
// A tensor or number that was not given is a null pointer; other optional arguments are std::optional.
#ifndef CANDELABRA_ARGUMENTS_INDEXING_HPP
#define CANDELABRA_ARGUMENTS_INDEXING_HPP

#include <optional>
#include <span>
#include <string_view>

#include "candelabra/kernel.hpp"

namespace candelabra::arguments {

// gather(Tensor self, int dim, Tensor index) -> Tensor
struct Gather {
  const cb_tensor* self;
  int64_t dim;
  const cb_tensor* index;

  explicit Gather(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.integer(1)),
        index(call.optional_tensor(2)) {}
};

// scatter(Tensor self, int dim, Tensor index, Tensor src) -> Tensor
struct Scatter {
  const cb_tensor* self;
  const cb_scalar* self_number;
  int64_t dim;
  const cb_tensor* index;
  const cb_scalar* index_number;
  const cb_tensor* src;
  const cb_scalar* src_number;

  explicit Scatter(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        dim(call.integer(1)),
        index(call.optional_tensor(2)),
        index_number(call.optional_scalar(2)),
        src(call.optional_tensor(3)),
        src_number(call.optional_scalar(3)) {}
};

// scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor
struct ScatterAdd {
  const cb_tensor* self;
  int64_t dim;
  const cb_tensor* index;
  const cb_tensor* src;

  explicit ScatterAdd(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.integer(1)),
        index(call.optional_tensor(2)),
        src(call.optional_tensor(3)) {}
};

// scatter_reduce(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor
struct ScatterReduce {
  const cb_tensor* self;
  int64_t dim;
  const cb_tensor* index;
  const cb_tensor* src;
  std::string_view reduce;
  bool include_self;

  explicit ScatterReduce(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.integer(1)),
        index(call.optional_tensor(2)),
        src(call.optional_tensor(3)),
        reduce(call.string(4)),
        include_self(call.boolean(5)) {}
};

// index_select(Tensor self, int dim, Tensor index) -> Tensor
struct IndexSelect {
  const cb_tensor* self;
  int64_t dim;
  const cb_tensor* index;

  explicit IndexSelect(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.integer(1)),
        index(call.optional_tensor(2)) {}
};

// index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor
struct IndexAdd {
  const cb_tensor* self;
  int64_t dim;
  const cb_tensor* index;
  const cb_tensor* source;
  const cb_scalar* alpha;

  explicit IndexAdd(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.integer(1)),
        index(call.optional_tensor(2)),
        source(call.optional_tensor(3)),
        alpha(call.optional_scalar(4)) {}
};

// index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor
struct IndexCopy {
  const cb_tensor* self;
  int64_t dim;
  const cb_tensor* index;
  const cb_tensor* source;

  explicit IndexCopy(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.integer(1)),
        index(call.optional_tensor(2)),
        source(call.optional_tensor(3)) {}
};

// index_fill(Tensor self, int dim, Tensor index, Scalar value) -> Tensor
struct IndexFill {
  const cb_tensor* self;
  int64_t dim;
  const cb_tensor* index;
  const cb_scalar* value;

  explicit IndexFill(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        dim(call.integer(1)),
        index(call.optional_tensor(2)),
        value(call.optional_scalar(3)) {}
};

// index(Tensor self, Tensor?[] indices) -> Tensor
struct Index {
  const cb_tensor* self;
  std::span<const cb_tensor* const> indices;

  explicit Index(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        indices(call.tensors(1)) {}
};

// index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor
struct IndexPut {
  const cb_tensor* self;
  std::span<const cb_tensor* const> indices;
  const cb_tensor* values;
  bool accumulate;

  explicit IndexPut(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        indices(call.tensors(1)),
        values(call.optional_tensor(2)),
        accumulate(call.boolean(3)) {}
};

// take(Tensor self, Tensor index) -> Tensor
struct Take {
  const cb_tensor* self;
  const cb_tensor* index;

  explicit Take(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        index(call.optional_tensor(1)) {}
};

// masked_fill(Tensor self, Tensor mask, Tensor value) -> Tensor
struct MaskedFill {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* mask;
  const cb_scalar* mask_number;
  const cb_tensor* value;
  const cb_scalar* value_number;

  explicit MaskedFill(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        mask(call.optional_tensor(1)),
        mask_number(call.optional_scalar(1)),
        value(call.optional_tensor(2)),
        value_number(call.optional_scalar(2)) {}
};

// masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor
struct MaskedScatter {
  const cb_tensor* self;
  const cb_tensor* mask;
  const cb_tensor* source;

  explicit MaskedScatter(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        mask(call.optional_tensor(1)),
        source(call.optional_tensor(2)) {}
};

// masked_select(Tensor self, Tensor mask) -> Tensor
struct MaskedSelect {
  const cb_tensor* self;
  const cb_tensor* mask;

  explicit MaskedSelect(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        mask(call.optional_tensor(1)) {}
};

// nonzero(Tensor self) -> Tensor
struct Nonzero {
  const cb_tensor* self;

  explicit Nonzero(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// embedding(Tensor weight, Tensor indices, int padding_idx=-1) -> Tensor
struct Embedding {
  const cb_tensor* weight;
  const cb_tensor* indices;
  int64_t padding_idx;

  explicit Embedding(const kernel::Call& call)
      : weight(call.optional_tensor(0)),
        indices(call.optional_tensor(1)),
        padding_idx(call.integer(2)) {}
};

// embedding_backward(Tensor grad, Tensor indices, int num_weights, int padding_idx=-1) -> Tensor
struct EmbeddingBackward {
  const cb_tensor* grad;
  const cb_tensor* indices;
  int64_t num_weights;
  int64_t padding_idx;

  explicit EmbeddingBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        indices(call.optional_tensor(1)),
        num_weights(call.integer(2)),
        padding_idx(call.integer(3)) {}
};

// _embedding_bag(Tensor weight, Tensor indices, Tensor offsets, str mode, Tensor? per_sample_weights, bool scale_grad_by_freq, bool include_last_offset, int padding_idx) -> (Tensor output, Tensor offset2bag, Tensor bag_size, Tensor max_indices)
struct EmbeddingBag {
  const cb_tensor* weight;
  const cb_tensor* indices;
  const cb_tensor* offsets;
  std::string_view mode;
  const cb_tensor* per_sample_weights;
  bool scale_grad_by_freq;
  bool include_last_offset;
  int64_t padding_idx;

  explicit EmbeddingBag(const kernel::Call& call)
      : weight(call.optional_tensor(0)),
        indices(call.optional_tensor(1)),
        offsets(call.optional_tensor(2)),
        mode(call.string(3)),
        per_sample_weights(call.optional_tensor(4)),
        scale_grad_by_freq(call.boolean(5)),
        include_last_offset(call.boolean(6)),
        padding_idx(call.integer(7)) {}
};

// _embedding_bag_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, Tensor max_indices, int num_weights, str mode, Tensor? per_sample_weights, bool scale_grad_by_freq, int padding_idx) -> Tensor
struct EmbeddingBagBackward {
  const cb_tensor* grad;
  const cb_tensor* indices;
  const cb_tensor* offset2bag;
  const cb_tensor* bag_size;
  const cb_tensor* max_indices;
  int64_t num_weights;
  std::string_view mode;
  const cb_tensor* per_sample_weights;
  bool scale_grad_by_freq;
  int64_t padding_idx;

  explicit EmbeddingBagBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        indices(call.optional_tensor(1)),
        offset2bag(call.optional_tensor(2)),
        bag_size(call.optional_tensor(3)),
        max_indices(call.optional_tensor(4)),
        num_weights(call.integer(5)),
        mode(call.string(6)),
        per_sample_weights(call.optional_tensor(7)),
        scale_grad_by_freq(call.boolean(8)),
        padding_idx(call.integer(9)) {}
};

}  // namespace candelabra::arguments

#endif  // CANDELABRA_ARGUMENTS_INDEXING_HPP
