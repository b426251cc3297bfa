// The mask and the softmax of a block of scores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "candelabra/math.hpp"
#include "dtypes.hpp"
#include "kernels/attention/attention_products.hpp"
#include "simd/vec_math.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace attention {

// The block of queries and keys whose scores exist at a time: large enough for matrix products at
// full speed, small enough that the scores stay in the second cache level. Half precisions have
// faster products and need larger blocks.
template <typename T>
struct Tile {
  static constexpr int64_t queries = is_half_v<T> ? 256 : 64, keys = is_half_v<T> ? 512 : 256;
};

// The mask of one call, of shape (N, H, L, S), and the causal mask.
template <typename T>
class Mask {
 public:
  using C = compute_t<T>;
  Mask(const cb_tensor* tensor, bool causal) : tensor_(tensor), causal_(causal) {}

  // The end of the keys that queries before `query_end` attend to.
  int64_t key_end(int64_t query_end, int64_t keys) const { return causal_ ? std::min(query_end, keys) : keys; }

  // Whether apply() changes any score of these blocks.
  bool touches(const RowBlock& queries, const RowBlock& keys) const {
    return tensor_ || (causal_ && queries.first + 1 < keys.first + keys.count);
  }

  void apply(C* scores, const RowBlock& queries, const RowBlock& keys) const {
    constexpr C none = -std::numeric_limits<C>::infinity();
    if (tensor_) {
      const int64_t *strides = tensor_->strides, step = strides[3];
      const int64_t start =
          queries.n * strides[0] + queries.head * strides[1] + queries.first * strides[2] + keys.first * strides[3];
      for (int64_t i = 0; i < queries.count; ++i) {
        C* row = scores + i * Tile<T>::keys;
        if (tensor_->dtype == CB_BOOL) {
          const uint8_t* visible = data<uint8_t>(*tensor_) + start + i * strides[2];
          for (int64_t j = 0; j < keys.count; ++j) row[j] = visible[j * step] ? row[j] : none;
        } else {
          const T* bias = data<T>(*tensor_) + start + i * strides[2];
          for (int64_t j = 0; j < keys.count; ++j) row[j] += static_cast<C>(bias[j * step]);
        }
      }
    }
    if (causal_)
      for (int64_t i = 0; i < queries.count; ++i)
        for (int64_t j = std::max<int64_t>(queries.first + i + 1 - keys.first, 0); j < keys.count; ++j)
          scores[i * Tile<T>::keys + j] = none;
  }

 private:
  const cb_tensor* tensor_;
  bool causal_;
};

// exp(x) for x <= 0 up to rounding. Subnormal results become 0: arithmetic on them is slow, and a
// masked score would give one.
template <typename C>
[[gnu::always_inline]] inline math::Vec<C> weight_of(math::Vec<C> x) {
  using V = math::Vec<C>;
  const V lowest(sizeof(C) == 4 ? C(-87) : C(-708));
  return select(x < lowest, V(C(0)), math::exp_negative(max(lowest, x)));
}

// Turns a row of scores, each times `factor`, into exp(score - largest), where `largest` is the
// maximum so far. Returns the factor that corrects the sums of earlier blocks.
template <typename C>
C exponentiate_row(C* row, int64_t keys, C factor, C& largest, C& sum) {
  using V = math::Vec<C>;
  constexpr C none = -std::numeric_limits<C>::infinity();
  constexpr int64_t lanes = V::size;
  const int64_t whole = keys - keys % lanes;
  alignas(64) C parts[lanes];
  // Four accumulators hide the latency. A NaN is skipped here and makes the sum NaN below.
  V most[4] = {V(largest), V(largest), V(largest), V(largest)};
  int64_t j = 0;
  for (; j + 4 * lanes <= whole; j += 4 * lanes)
    for (int64_t k = 0; k < 4; ++k) most[k] = max(V::load(row + j + k * lanes) * V(factor), most[k]);
  for (; j < whole; j += lanes) most[0] = max(V::load(row + j) * V(factor), most[0]);
  max(max(most[0], most[1]), max(most[2], most[3])).store(parts);
  for (int64_t half = lanes / 2; half > 0; half /= 2)
    for (int64_t k = 0; k < half; ++k) parts[k] = parts[k] > parts[k + half] ? parts[k] : parts[k + half];
  C here = parts[0];
  for (j = whole; j < keys; ++j) here = row[j] * factor > here ? row[j] * factor : here;
  if (here == none) {
    // Every key so far is masked: the weights are 0, except that NaN stays.
    for (j = 0; j < keys; ++j) {
      row[j] = row[j] == row[j] ? C(0) : row[j];
      sum += row[j];
    }
    return 1;
  }
  // If every earlier key was masked, the earlier sums are 0 and need no correction.
  const C correction = largest == here || largest == none ? C(1) : math::exp(largest - here);
  V total[2] = {V(C(0)), V(C(0))};
  const auto weight = [&](int64_t at) {
    const V value = weight_of<C>(V::load(row + at) * V(factor) - V(here));
    value.store(row + at);
    return value;
  };
  for (j = 0; j + 2 * lanes <= whole; j += 2 * lanes) {
    total[0] = total[0] + weight(j);
    total[1] = total[1] + weight(j + lanes);
  }
  for (; j < whole; j += lanes) total[0] = total[0] + weight(j);
  (total[0] + total[1]).store(parts);
  for (int64_t half = lanes / 2; half > 0; half /= 2)
    for (int64_t k = 0; k < half; ++k) parts[k] += parts[k + half];
  C added = parts[0];
  for (j = whole; j < keys; ++j) added += row[j] = math::exp(row[j] * factor - here);
  largest = here;
  sum = sum * correction + added;
  return correction;
}

// For each row, `totals` becomes the factor that makes the weights sum to 1, and `largest` the
// logarithm of the sum of exponentials. A fully masked row gets zeros; its logarithm is infinite,
// which makes its weights 0 in the gradient.
template <typename C>
void normalize_sums(C* totals, C* largest, int64_t rows) {
  using V = math::Vec<C>;
  for (int64_t i = 0; i < rows; i += V::size) {
    const int64_t n = std::min<int64_t>(V::size, rows - i);
    const V total = V::load(totals + i, n);
    const auto empty = total == V(C(0));
    select(empty, V(std::numeric_limits<C>::infinity()), V::load(largest + i, n) + math::log(total))
        .store(largest + i, n);
    (V(C(1)) / select(empty, V(C(1)), total)).store(totals + i, n);
  }
}

// row[j] = exp(row[j] - logarithm), at most 1 up to rounding.
template <typename C>
void recompute_weights(C* row, int64_t keys, C logarithm) {
  using V = math::Vec<C>;
  int64_t j = 0;
  for (; j + V::size <= keys; j += V::size) weight_of<C>(V::load(row + j) - V(logarithm)).store(row + j);
  for (; j < keys; ++j) row[j] = math::exp(row[j] - logarithm);
}

}  // namespace attention
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
