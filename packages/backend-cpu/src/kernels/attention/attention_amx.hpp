// Attention on AMX: blocks of _scaled_dot_product_attention and
// _scaled_dot_product_attention_backward, for bfloat16, and for float32 by bf16x3 emulation.
#pragma once

#include <cstdint>
#include <memory>

#include "candelabra/backend.h"

namespace candelabra::cpu {

// Arguments of the operators, in four dimensions. Pointers are null for absent ones.
struct AttentionCall {
  const cb_tensor *query, *key, *value, *mask;
  bool causal;
  float scale;
  const cb_tensor *out, *logarithms;  // written by forward, read by backward
  const cb_tensor* grad = nullptr;    // this and the following: backward only
  const cb_tensor *of_query = nullptr, *of_key = nullptr, *of_value = nullptr;
};

// Whether AMX is available and pays off.
bool suits_amx_attention(const AttentionCall& call);

// Runs on one thread. Results do not depend on earlier calls.
class AmxAttention {
 public:
  explicit AmxAttention(const AttentionCall& call);
  ~AmxAttention();
  AmxAttention(const AmxAttention&) = delete;
  AmxAttention& operator=(const AmxAttention&) = delete;

  // Computes `count` queries from q0 on. False for float32 numbers too large or too small for the
  // emulation; the caller then recomputes everything.
  [[nodiscard]] bool forward(int64_t n, int64_t head, int64_t q0, int64_t count);
  // Computes a head of the keys with all query heads that share it. False as above.
  [[nodiscard]] bool backward(int64_t n, int64_t key_head);

  class Work;

 private:
  std::unique_ptr<Work> work_;
};

}  // namespace candelabra::cpu
