// Attention on tile units: blocks of attention_forward and attention_backward of bfloat16, and of float32 in three parts.
#pragma once

#include <cstdint>
#include <memory>

#include "candelabra/backend.h"

namespace candelabra::cpu {

// What the operators are called with, in four dimensions; the pointers may be null where a call has no such thing.
struct AttentionCall {
  const cb_tensor *query, *key, *value, *mask;
  bool causal;
  float scale;
  const cb_tensor *out, *logarithms;  // written by forward, read by backward
  const cb_tensor* grad = nullptr;    // from here on of backward
  const cb_tensor *of_query = nullptr, *of_key = nullptr, *of_value = nullptr;
};

// Whether this processor has the units and there is work for them.
bool suits_tile_attention(const AttentionCall& call);

// On one thread. Results do not depend on what was computed before.
class TileAttention {
 public:
  explicit TileAttention(const AttentionCall& call);
  ~TileAttention();
  TileAttention(const TileAttention&) = delete;
  TileAttention& operator=(const TileAttention&) = delete;

  // `count` queries from q0 on. False where float32 numbers are so large or small that their parts would not hold them (the caller
  // does it all).
  [[nodiscard]] bool forward(int64_t n, int64_t head, int64_t q0, int64_t count);
  // A head of the keys with all heads of queries that share it; false as above.
  [[nodiscard]] bool backward(int64_t n, int64_t key_head);

  class Work;

 private:
  std::unique_ptr<Work> work_;
};

}  // namespace candelabra::cpu
