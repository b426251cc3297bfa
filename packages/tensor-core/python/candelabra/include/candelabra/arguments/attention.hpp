// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.
// Arguments of the operators of the family attention, for kernels:
//
//   const arguments::ScaledDotProductAttention args(call);
//
// A tensor or number that was not given is a null pointer; other optional arguments are std::optional.
#ifndef CANDELABRA_ARGUMENTS_ATTENTION_HPP
#define CANDELABRA_ARGUMENTS_ATTENTION_HPP

#include <optional>
#include <span>
#include <string_view>

#include "candelabra/kernel.hpp"

namespace candelabra::arguments {

// _scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? mask, bool is_causal, float scale) -> (Tensor output, Tensor logsumexp)
struct ScaledDotProductAttention {
  const cb_tensor* query;
  const cb_tensor* key;
  const cb_tensor* value;
  const cb_tensor* mask;
  bool is_causal;
  double scale;

  explicit ScaledDotProductAttention(const kernel::Call& call)
      : query(call.optional_tensor(0)),
        key(call.optional_tensor(1)),
        value(call.optional_tensor(2)),
        mask(call.optional_tensor(3)),
        is_causal(call.boolean(4)),
        scale(call.real(5)) {}
};

// _scaled_dot_product_attention_backward(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor? mask, Tensor output, Tensor logsumexp, bool is_causal, float scale) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)
struct ScaledDotProductAttentionBackward {
  const cb_tensor* grad;
  const cb_tensor* query;
  const cb_tensor* key;
  const cb_tensor* value;
  const cb_tensor* mask;
  const cb_tensor* output;
  const cb_tensor* logsumexp;
  bool is_causal;
  double scale;

  explicit ScaledDotProductAttentionBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        query(call.optional_tensor(1)),
        key(call.optional_tensor(2)),
        value(call.optional_tensor(3)),
        mask(call.optional_tensor(4)),
        output(call.optional_tensor(5)),
        logsumexp(call.optional_tensor(6)),
        is_causal(call.boolean(7)),
        scale(call.real(8)) {}
};

}  // namespace candelabra::arguments

#endif  // CANDELABRA_ARGUMENTS_ATTENTION_HPP
