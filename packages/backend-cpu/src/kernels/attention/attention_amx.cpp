// Attention on blocks of 32 by 32 scores, as in attention.cpp: the forward pass keeps running
// maxima and sums, and the backward pass recomputes scores.
//
// float32 uses the bf16x3 emulation of bf16x3_gemm.hpp. Weights are at most 1, and in the forward
// pass one weight of each row is 1. Parts too small for a bfloat16 lose less than 2^-60 of the
// largest element of a result, if no element of a factor exceeds 2^60. The backward pass needs the
// largest element of each factor between 2^-30 and 2^40. The loss is then below 2^-25 of results
// that are not themselves 2^-30 of others.
#include "kernels/attention/attention_amx.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "candelabra/math.hpp"
#include "gemm/amx/bf16x3_gemm.hpp"
#include "gemm/amx/tile_factors.hpp"
#include "gemm/autotune.hpp"
#include "kernels/attention/attention_amx_mask.hpp"
#include "memory/allocator.hpp"
#include "simd/vec_math.hpp"

namespace candelabra::cpu {

class AmxAttention::Work {
 public:
  virtual ~Work() = default;
  virtual bool forward(int64_t n, int64_t head, int64_t q0, int64_t count) = 0;
  virtual bool backward(int64_t n, int64_t key_head) = 0;
};

inline namespace CANDELABRA_ISA_NAMESPACE {
namespace {

constexpr int64_t panel_area = panel_side * panel_side;
using attention::none;
using V = math::Vec<float>;

int64_t panels_of(int64_t n) {
  return (n + panel_side - 1) / panel_side;
}

// exp(x) for x that exceeds 0 by rounding at most. Subnormal results become 0.
[[gnu::always_inline]] inline __m512 weight_of(__m512 x) {
  const __m512 lowest = _mm512_set1_ps(-87.0f);
  const __mmask16 seen = _mm512_cmp_ps_mask(x, lowest, _CMP_NLT_UQ);
  return _mm512_maskz_mov_ps(seen, math::exp_negative(V(x)).v);
}

bool spans(const SplitRange& range, int32_t from, int32_t to) {
  constexpr int32_t bias = 127;
  return range.highest == 0 || (range.highest >= bias + from && range.highest <= bias + to);
}

template <typename T>
class WorkOf : public AmxAttention::Work {
 public:
  explicit WorkOf(const AttentionCall& call)
      : call_(call),
        mask_(call.mask, call.causal),
        heads_(call.query->sizes[1]),
        queries_(call.query->sizes[2]),
        width_(call.query->sizes[3]),
        key_heads_(call.key->sizes[1]),
        keys_(call.key->sizes[2]),
        columns_(call.value->sizes[3]),
        share_(heads_ / key_heads_),
        width_panels_(panels_of(width_)),
        column_panels_(panels_of(columns_)) {}

  bool forward(int64_t n, int64_t head, int64_t q0, int64_t count) override;
  bool backward(int64_t n, int64_t key_head) override;

 private:
  static constexpr int64_t block = factor_block<T>;

  // Queries and keys of a block of scores, forward.
  static constexpr int64_t query_side = 64, query_panels = query_side / panel_side, key_side = 256,
                           key_panels = key_side / panel_side;
  // The same backward. The parts and gradients of this many keys stay in L2.
  static constexpr int64_t back_queries = 128, back_query_panels = back_queries / panel_side, back_keys = 512,
                           back_key_panels = back_keys / panel_side;

  struct ForwardMemory {
    explicit ForwardMemory(const WorkOf& work)
        : keys(panels_of(work.keys_) * work.width_panels_ * block),
          values(panels_of(work.keys_) * work.column_panels_ * block),
          queries(query_panels * work.width_panels_ * block),
          weights(query_panels * key_panels * block),
          scores(query_panels * key_panels * panel_area),
          sums(query_panels * work.column_panels_ * panel_area) {}
    Scratch<uint16_t> keys, values, queries, weights;
    Scratch<float> scores, sums;
    int64_t n = -1, head = -1;  // of the packed keys and values
    bool in_range = true;
    float largest[query_side], total[query_side], correction[query_side];
  };
  // Left and right factors. Those named *_across have their columns along k.
  struct BackwardMemory {
    explicit BackwardMemory(const WorkOf& work)
        : key_panels(std::min(back_key_panels, panels_of(work.keys_))),
          all_query_panels(panels_of(work.queries_)),
          query_panels(std::min(back_query_panels, all_query_panels)),
          keys(key_panels * work.width_panels_ * block),
          keys_across(work.width_panels_ * key_panels * block),
          values(key_panels * work.column_panels_ * block),
          queries(query_panels * work.width_panels_ * block),
          queries_across(work.width_panels_ * query_panels * block),
          grads(query_panels * work.column_panels_ * block),
          grads_across(work.column_panels_ * query_panels * block),
          weights(query_panels * block),
          slopes(query_panels * block),
          slopes_across(query_panels * key_panels * block),
          scores(query_panels * panel_area),
          products(query_panels * panel_area),
          of_keys(key_panels * work.width_panels_ * panel_area),
          of_values(key_panels * work.column_panels_ * panel_area),
          of_queries(work.share_ * all_query_panels * work.width_panels_ * panel_area),
          means(work.share_ * all_query_panels * panel_side) {}
    const int64_t key_panels, all_query_panels, query_panels;
    Scratch<uint16_t> keys, keys_across, values, queries, queries_across, grads, grads_across, weights, slopes,
        slopes_across;
    Scratch<float> scores, products, of_keys, of_values, of_queries, means;
  };
  // Some keys, and some queries of head `h`, the g-th that shares the keys.
  struct BackwardBlock {
    int64_t n, h, g;
    int64_t k0, keys;
    int64_t q0, queries, query_panels;
    int64_t visible_panels;  // of keys that any of the queries sees
  };
  static bool is_backward_range(const SplitRange& range) { return spans(range, -30, 40); }
  void sum_result_gradients(BackwardMemory& m, int64_t n, int64_t key_head) const;
  bool pack_keys(BackwardMemory& m, int64_t n, int64_t key_head, int64_t k0, int64_t count) const;
  bool pack_queries(BackwardMemory& m, const BackwardBlock& b) const;
  void recompute_weights(BackwardMemory& m, const BackwardBlock& b, int64_t j, int64_t c) const;
  void add_key_gradients(BackwardMemory& m, const BackwardBlock& b) const;
  void add_query_gradients(BackwardMemory& m, const BackwardBlock& b) const;
  void store_key_gradients(BackwardMemory& m, int64_t n, int64_t key_head, int64_t k0, int64_t count) const;
  void store_query_gradients(BackwardMemory& m, int64_t n, int64_t key_head) const;

  FactorSource<T> along_rows(const cb_tensor& tensor, int64_t n, int64_t h, int64_t first) const {
    return {data<T>(tensor) + n * tensor.strides[0] + h * tensor.strides[1] + first * tensor.strides[2],
            tensor.strides[2], 1};
  }
  FactorSource<T> along_columns(const cb_tensor& tensor, int64_t n, int64_t h, int64_t first) const {
    return {data<T>(tensor) + n * tensor.strides[0] + h * tensor.strides[1] + first * tensor.strides[2], 1,
            tensor.strides[2]};
  }
  static void store_row(const float* from, T* to, int64_t n) {
    if constexpr (std::is_same_v<T, float>)
      std::copy_n(from, n, to);
    else
      from_float(from, to, n);
  }
  template <bool masked>
  void weigh(ForwardMemory& m, int64_t n, int64_t head, int64_t row, int64_t q, int64_t k0, int64_t seen) const;
  // Stores rows of blocks of 32 by 32 that are adjacent as rows of a matrix with `columns`
  // columns.
  static void store_blocks(const float* blocks, int64_t rows, int64_t columns, float factor, T* to, int64_t pitch) {
    alignas(64) float line[panel_side];
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; j += panel_side) {
        const float* from = blocks + j / panel_side * panel_area + i * panel_side;
        for (int64_t k = 0; k < panel_side; ++k) line[k] = from[k] * factor;
        store_row(line, to + i * pitch + j, std::min(panel_side, columns - j));
      }
  }
  static void add_block(const float* from, float* to) {
    for (int64_t i = 0; i < panel_area; i += 16)
      _mm512_store_ps(to + i, _mm512_add_ps(_mm512_load_ps(to + i), _mm512_load_ps(from + i)));
  }

  const AttentionCall& call_;
  const attention::AmxMask<T> mask_;
  const int64_t heads_, queries_, width_, key_heads_, keys_, columns_, share_, width_panels_, column_panels_;
  std::unique_ptr<ForwardMemory> memory_;
};

// Turns a row of scores into weights relative to the largest score so far, stored as rows of tiles.
template <typename T>
template <bool masked>
void WorkOf<T>::weigh(ForwardMemory& m, int64_t n, int64_t head, int64_t row, int64_t q, int64_t k0,
                      int64_t seen) const {
  const int64_t up = row / panel_side, i = row % panel_side, panels = panels_of(seen);
  float* scores = m.scores.data() + up * key_panels * panel_area + i * panel_side;
  uint16_t* weights = m.weights.data() + up * key_panels * block + i / tile_side * tile_elements + i % tile_side * 32;
  const __m512 scale = _mm512_set1_ps(call_.scale);
  __m512 most[2] = {_mm512_set1_ps(m.largest[row]), _mm512_set1_ps(m.largest[row])};
  // NaN is passed over here. It makes the sum NaN below.
  for (int64_t j = 0; j < panels; ++j)
    for (int half = 0; half < 2; ++half) {
      float* at = scores + j * panel_area + half * 16;
      __m512 score = _mm512_mul_ps(_mm512_load_ps(at), scale);
      if constexpr (masked) {
        const __mmask16 lanes = split_detail::first_lanes(seen - j * panel_side - half * 16);
        score = mask_.of_keys(score, n, head, q, k0 + j * panel_side + half * 16, lanes);
        score = _mm512_mask_mov_ps(_mm512_set1_ps(none), lanes, score);
        _mm512_store_ps(at, score);
      }
      most[half] = _mm512_max_ps(score, most[half]);
    }
  const float here = _mm512_reduce_max_ps(_mm512_max_ps(most[0], most[1]));
  __m512 sums[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
  const __m512 factor = masked ? _mm512_set1_ps(1.0f) : scale, by = _mm512_set1_ps(here);
  if (here == none) {
    // No key is visible so far: weights are zero, but NaN scores stay NaN.
    m.correction[row] = 1;
    for (int64_t j = 0; j < panels; ++j) {
      __m512 pair[2];
      for (int half = 0; half < 2; ++half) {
        const __m512 score = _mm512_load_ps(scores + j * panel_area + half * 16);
        pair[half] = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(score, score, _CMP_UNORD_Q), score);
        sums[half] = _mm512_add_ps(sums[half], pair[half]);
      }
      store_pairs<T>(pair[0], pair[1], weights + j * block);
    }
  } else {
    m.correction[row] = m.largest[row] == here ? 1.0f : math::exp(m.largest[row] - here);
    for (int64_t j = 0; j < panels; ++j) {
      __m512 pair[2];
      for (int half = 0; half < 2; ++half) {
        const __m512 score = _mm512_mul_ps(_mm512_load_ps(scores + j * panel_area + half * 16), factor);
        pair[half] = weight_of(_mm512_sub_ps(score, by));
        sums[half] = _mm512_add_ps(sums[half], pair[half]);
      }
      store_pairs<T>(pair[0], pair[1], weights + j * block);
    }
    m.largest[row] = here;
  }
  m.total[row] = m.total[row] * m.correction[row] + _mm512_reduce_add_ps(_mm512_add_ps(sums[0], sums[1]));
}

template <typename T>
bool WorkOf<T>::forward(int64_t n, int64_t head, int64_t q0, int64_t count) {
  if (!memory_) memory_ = std::make_unique<ForwardMemory>(*this);
  ForwardMemory& m = *memory_;
  const AmxTiles units;
  const int64_t shared = head / share_, all_panels = panels_of(keys_);
  if (m.n != n || m.head != shared) {
    const SplitRange of_keys = pack_factor<T>(along_rows(*call_.key, n, shared, 0), false, 0, keys_, 0, width_,
                                              m.keys.data(), width_panels_ * block),
                     of_values = pack_factor<T>(along_columns(*call_.value, n, shared, 0), false, 0, columns_, 0, keys_,
                                                m.values.data(), all_panels * block);
    m.n = n;
    m.head = shared;
    m.in_range = spans(of_keys, -126, 60) && spans(of_values, -60, 60);
  }
  if (!m.in_range) return false;
  alignas(64) float sums[panel_area];
  for (int64_t q = q0; q < q0 + count; q += query_side) {
    const int64_t rows = std::min(query_side, q0 + count - q), row_panels = panels_of(rows);
    const SplitRange of_queries = pack_factor<T>(along_rows(*call_.query, n, head, q), true, 0, rows, 0, width_,
                                                 m.queries.data(), width_panels_ * block);
    if (!spans(of_queries, -126, 60)) return false;
    std::fill_n(m.largest, query_side, none);
    std::fill_n(m.total, query_side, 0.0f);
    const int64_t last = mask_.last_key(q + rows, keys_);
    for (int64_t k0 = 0; k0 < last; k0 += key_side) {
      const int64_t seen = std::min(key_side, last - k0), panels = panels_of(seen);
      for (int64_t j = 0; j < panels; ++j)
        for (int64_t i = 0; i < row_panels; ++i)
          multiply_factors<T>(m.queries.data() + i * width_panels_ * block,
                              m.keys.data() + (k0 / panel_side + j) * width_panels_ * block, width_panels_,
                              rows - i * panel_side, seen - j * panel_side,
                              m.scores.data() + (i * key_panels + j) * panel_area);
      const bool masked = mask_.given() || seen % panel_side != 0 || (mask_.causal() && q + 1 < k0 + seen);
      for (int64_t row = 0; row < rows; ++row)
        masked ? weigh<true>(m, n, head, row, q + row, k0, seen) : weigh<false>(m, n, head, row, q + row, k0, seen);
      for (int64_t i = 0; i < row_panels; ++i)
        for (int64_t c = 0; c < column_panels_; ++c) {
          float* total = m.sums.data() + (i * column_panels_ + c) * panel_area;
          multiply_factors<T>(m.weights.data() + i * key_panels * block,
                              m.values.data() + (c * all_panels + k0 / panel_side) * block, panels,
                              rows - i * panel_side, columns_ - c * panel_side, k0 == 0 ? total : sums);
          if (k0 == 0) continue;
          for (int64_t row = 0; row < std::min(panel_side, rows - i * panel_side); ++row) {
            const __m512 correction = _mm512_set1_ps(m.correction[i * panel_side + row]);
            for (int64_t at = row * panel_side; at < (row + 1) * panel_side; at += 16)
              _mm512_store_ps(total + at,
                              _mm512_fmadd_ps(_mm512_load_ps(total + at), correction, _mm512_load_ps(sums + at)));
          }
        }
    }
    for (int64_t row = 0; row < rows; ++row) {
      // A row without visible keys becomes zeros. Its infinite logarithm makes its weights zero in
      // the gradient.
      const bool empty = m.total[row] == 0;
      const int64_t at = (n * heads_ + head) * queries_ + q + row;
      T* to = mutable_data<T>(*call_.out) + at * columns_;
      if (last == 0)
        std::fill_n(to, columns_, T(0));
      else
        store_blocks(m.sums.data() + row / panel_side * column_panels_ * panel_area + row % panel_side * panel_side, 1,
                     columns_, empty ? 1.0f : 1.0f / m.total[row], to, 0);
      mutable_data<float>(*call_.logarithms)[at] =
          empty ? std::numeric_limits<float>::infinity() : m.largest[row] + std::log(m.total[row]);
    }
  }
  return true;
}

// For each query the sum of its gradient times its result, which the softmax's gradient subtracts.
template <typename T>
void WorkOf<T>::sum_result_gradients(BackwardMemory& m, int64_t n, int64_t key_head) const {
  Scratch<float> grad_row(columns_), result_row(columns_);
  for (int64_t g = 0; g < share_; ++g)
    for (int64_t q = 0; q < queries_; ++q) {
      const int64_t h = key_head * share_ + g;
      const T *d = along_rows(*call_.grad, n, h, q).data, *o = along_rows(*call_.out, n, h, q).data;
      const float *df = nullptr, *of = nullptr;
      if constexpr (std::is_same_v<T, float>) {
        df = d;
        of = o;
      } else {
        to_float(d, grad_row.data(), columns_);
        to_float(o, result_row.data(), columns_);
        df = grad_row.data();
        of = result_row.data();
      }
      __m512 sum = _mm512_setzero_ps();
      for (int64_t j = 0; j < columns_; j += 16) {
        const __mmask16 lanes = split_detail::first_lanes(columns_ - j);
        sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(lanes, df + j), _mm512_maskz_loadu_ps(lanes, of + j), sum);
      }
      m.means[g * m.all_query_panels * panel_side + q] = _mm512_reduce_add_ps(sum);
    }
}

// False if the keys or values are outside the range of the emulation.
template <typename T>
bool WorkOf<T>::pack_keys(BackwardMemory& m, int64_t n, int64_t key_head, int64_t k0, int64_t count) const {
  const SplitRange key_range = pack_factor<T>(along_rows(*call_.key, n, key_head, k0), true, 0, count, 0, width_,
                                              m.keys.data(), width_panels_ * block),
                   value_range = pack_factor<T>(along_rows(*call_.value, n, key_head, k0), true, 0, count, 0, columns_,
                                                m.values.data(), column_panels_ * block);
  if (!is_backward_range(key_range) || !is_backward_range(value_range)) return false;
  pack_factor<T>(along_columns(*call_.key, n, key_head, k0), true, 0, width_, 0, count, m.keys_across.data(),
                 panels_of(count) * block);
  return true;
}

// False if the queries or the gradient are outside the range of the emulation.
template <typename T>
bool WorkOf<T>::pack_queries(BackwardMemory& m, const BackwardBlock& b) const {
  const SplitRange query_range = pack_factor<T>(along_rows(*call_.query, b.n, b.h, b.q0), false, 0, b.queries, 0,
                                                width_, m.queries.data(), width_panels_ * block),
                   grad_range = pack_factor<T>(along_rows(*call_.grad, b.n, b.h, b.q0), false, 0, b.queries, 0,
                                               columns_, m.grads.data(), column_panels_ * block);
  if (!is_backward_range(query_range) || !is_backward_range(grad_range)) return false;
  pack_factor<T>(along_columns(*call_.query, b.n, b.h, b.q0), false, 0, width_, 0, b.queries, m.queries_across.data(),
                 b.query_panels * block);
  pack_factor<T>(along_columns(*call_.grad, b.n, b.h, b.q0), false, 0, columns_, 0, b.queries, m.grads_across.data(),
                 b.query_panels * block);
  return true;
}

// Weights and gradients of the scores, of key panel j and query panel c, stored as tiles.
template <typename T>
void WorkOf<T>::recompute_weights(BackwardMemory& m, const BackwardBlock& b, int64_t j, int64_t c) const {
  const int64_t rows = std::min(panel_side, b.keys - j * panel_side), left = b.queries - c * panel_side;
  const int64_t n = b.n, h = b.h, q = b.q0 + c * panel_side, k = b.k0 + j * panel_side;
  const float *scores = m.scores.data() + c * panel_area, *products = m.products.data() + c * panel_area;
  const float* logarithms = data<float>(*call_.logarithms) + (n * heads_ + h) * queries_ + q;
  const float* mean = m.means.data() + b.g * m.all_query_panels * panel_side + q;
  const __m512 scale = _mm512_set1_ps(call_.scale);
  const __mmask16 lanes[2] = {split_detail::first_lanes(left), split_detail::first_lanes(left - 16)};
  const __m512 logarithm[2] = {_mm512_maskz_loadu_ps(lanes[0], logarithms),
                               _mm512_maskz_loadu_ps(lanes[1], logarithms + 16)},
               average[2] = {_mm512_maskz_loadu_ps(lanes[0], mean), _mm512_maskz_loadu_ps(lanes[1], mean + 16)};
  const bool masked = mask_.given() || (mask_.causal() && q < k + panel_side);
  uint16_t *to_weights = m.weights.data() + c * block, *to_slopes = m.slopes.data() + c * block,
           *to_across = m.slopes_across.data() + (c * m.key_panels + j) * block;
  for (int64_t row = 0; row < tile_side; ++row) {
    __m512 weight[2][2], slope[2][2];
    for (int down = 0; down < 2; ++down)
      for (int half = 0; half < 2; ++half) {
        const int64_t i = row + down * tile_side, at = i * panel_side + half * 16;
        const __mmask16 real = i < rows ? lanes[half] : 0;
        __m512 score = _mm512_mul_ps(_mm512_maskz_load_ps(real, scores + at), scale);
        if (masked && real) score = mask_.of_queries(score, n, h, q + half * 16, k + i, real);
        weight[down][half] = _mm512_maskz_mov_ps(real, weight_of(_mm512_sub_ps(score, logarithm[half])));
        slope[down][half] = _mm512_maskz_mul_ps(
            real, weight[down][half], _mm512_sub_ps(_mm512_maskz_load_ps(real, products + at), average[half]));
      }
    for (int down = 0; down < 2; ++down) {
      store_pairs<T>(weight[down][0], weight[down][1], to_weights + down * tile_elements + row * 32);
      store_pairs<T>(slope[down][0], slope[down][1], to_slopes + down * tile_elements + row * 32);
    }
    for (int half = 0; half < 2; ++half)
      store_pairs<T>(slope[0][half], slope[1][half], to_across + half * tile_elements + row * 32);
  }
}

// Adds a block's share to the gradients of keys and values, and makes the slopes for the queries.
template <typename T>
void WorkOf<T>::add_key_gradients(BackwardMemory& m, const BackwardBlock& b) const {
  alignas(64) float sums[panel_area];
  for (int64_t j = 0; j < b.visible_panels; ++j) {
    // The first panel of queries that sees a key of this panel.
    const int64_t from = mask_.causal() ? std::max<int64_t>(0, (b.k0 + j * panel_side - b.q0) / panel_side) : 0,
                  rows = std::min(panel_side, b.keys - j * panel_side);
    for (int64_t c = from; c < b.query_panels; ++c) {
      const int64_t columns = b.queries - c * panel_side;
      multiply_factors<T>(m.keys.data() + j * width_panels_ * block, m.queries.data() + c * width_panels_ * block,
                          width_panels_, rows, columns, m.scores.data() + c * panel_area);
      multiply_factors<T>(m.values.data() + j * column_panels_ * block, m.grads.data() + c * column_panels_ * block,
                          column_panels_, rows, columns, m.products.data() + c * panel_area);
    }
    for (int64_t c = from; c < b.query_panels; ++c) recompute_weights(m, b, j, c);
    for (int64_t c = 0; c < column_panels_; ++c) {
      multiply_factors<T>(m.weights.data() + from * block, m.grads_across.data() + (c * b.query_panels + from) * block,
                          b.query_panels - from, rows, columns_ - c * panel_side, sums);
      add_block(sums, m.of_values.data() + (j * column_panels_ + c) * panel_area);
    }
    for (int64_t c = 0; c < width_panels_; ++c) {
      multiply_factors<T>(m.slopes.data() + from * block, m.queries_across.data() + (c * b.query_panels + from) * block,
                          b.query_panels - from, rows, width_ - c * panel_side, sums);
      add_block(sums, m.of_keys.data() + (j * width_panels_ + c) * panel_area);
    }
  }
}

// Adds a block's share to the gradients of queries.
template <typename T>
void WorkOf<T>::add_query_gradients(BackwardMemory& m, const BackwardBlock& b) const {
  alignas(64) float sums[panel_area];
  for (int64_t c = 0; c < b.query_panels; ++c) {
    // How many panels of keys this panel of queries sees.
    const int64_t seen = std::min(
        panels_of(std::min(mask_.last_key(b.q0 + (c + 1) * panel_side, keys_) - b.k0, b.keys)), b.visible_panels);
    if (seen <= 0) continue;
    for (int64_t a = 0; a < width_panels_; ++a) {
      multiply_factors<T>(m.keys_across.data() + a * panels_of(b.keys) * block,
                          m.slopes_across.data() + c * m.key_panels * block, seen, width_ - a * panel_side,
                          b.queries - c * panel_side, sums);
      add_block(sums, m.of_queries.data() +
                          ((b.g * m.all_query_panels + b.q0 / panel_side + c) * width_panels_ + a) * panel_area);
    }
  }
}

template <typename T>
void WorkOf<T>::store_key_gradients(BackwardMemory& m, int64_t n, int64_t key_head, int64_t k0, int64_t count) const {
  for (int64_t j = 0; j < panels_of(count); ++j) {
    const int64_t first = (n * key_heads_ + key_head) * keys_ + k0 + j * panel_side,
                  rows = std::min(panel_side, count - j * panel_side);
    store_blocks(m.of_keys.data() + j * width_panels_ * panel_area, rows, width_, call_.scale,
                 mutable_data<T>(*call_.of_key) + first * width_, width_);
    store_blocks(m.of_values.data() + j * column_panels_ * panel_area, rows, columns_, 1.0f,
                 mutable_data<T>(*call_.of_value) + first * columns_, columns_);
  }
}

// The sums of queries are transposed: their rows are elements of a query.
template <typename T>
void WorkOf<T>::store_query_gradients(BackwardMemory& m, int64_t n, int64_t key_head) const {
  alignas(64) float transposed[panel_area], quarter[256];
  for (int64_t g = 0; g < share_; ++g)
    for (int64_t c = 0; c < m.all_query_panels; ++c)
      for (int64_t a = 0; a < width_panels_; ++a) {
        const float* from = m.of_queries.data() + ((g * m.all_query_panels + c) * width_panels_ + a) * panel_area;
        for (int64_t down = 0; down < panel_side; down += 16)
          for (int64_t half = 0; half < panel_side; half += 16) {
            split_detail::transpose_16x16_floats(from + down * panel_side + half, panel_side, 16, 0xffff, quarter);
            for (int64_t i = 0; i < 16; ++i)
              _mm512_store_ps(transposed + (half + i) * panel_side + down, _mm512_load_ps(quarter + i * 16));
          }
        const int64_t row = (n * heads_ + key_head * share_ + g) * queries_ + c * panel_side;
        store_blocks(transposed, std::min(panel_side, queries_ - c * panel_side),
                     std::min(panel_side, width_ - a * panel_side), call_.scale,
                     mutable_data<T>(*call_.of_query) + row * width_ + a * panel_side, width_);
      }
}

template <typename T>
bool WorkOf<T>::backward(int64_t n, int64_t key_head) {
  const AmxTiles units;
  BackwardMemory m(*this);
  std::fill_n(m.of_queries.data(), share_ * m.all_query_panels * width_panels_ * panel_area, 0.0f);
  sum_result_gradients(m, n, key_head);
  for (int64_t k0 = 0; k0 < keys_; k0 += back_keys) {
    const int64_t keys = std::min(back_keys, keys_ - k0), panels = panels_of(keys);
    if (!pack_keys(m, n, key_head, k0, keys)) return false;
    std::fill_n(m.of_keys.data(), panels * width_panels_ * panel_area, 0.0f);
    std::fill_n(m.of_values.data(), panels * column_panels_ * panel_area, 0.0f);
    for (int64_t g = 0; g < share_; ++g)
      for (int64_t q0 = 0; q0 < queries_; q0 += back_queries) {
        const int64_t queries = std::min(back_queries, queries_ - q0), last = mask_.last_key(q0 + queries, keys_);
        if (last <= k0) continue;
        const BackwardBlock b{n,
                              key_head * share_ + g,
                              g,
                              k0,
                              keys,
                              q0,
                              queries,
                              panels_of(queries),
                              panels_of(std::min(last - k0, keys))};
        if (!pack_queries(m, b)) return false;
        add_key_gradients(m, b);
        add_query_gradients(m, b);
      }
    store_key_gradients(m, n, key_head, k0, keys);
  }
  store_query_gradients(m, n, key_head);
  return true;
}

}  // namespace
}  // namespace CANDELABRA_ISA_NAMESPACE

bool suits_amx_attention(const AttentionCall& call) {
  const int32_t dtype = call.query->dtype;
  if (dtype == CB_FLOAT32 ? !may_use_amx() : dtype != CB_BFLOAT16 || !has_amx_gemm()) return false;
  const int64_t queries = call.query->sizes[2], width = call.query->sizes[3], keys = call.key->sizes[2],
                columns = call.value->sizes[3], heads = call.query->sizes[0] * call.query->sizes[1];
  // Short sides leave tiles empty, little work does not pay for AMX, and the packed factors of a
  // head must fit the caches.
  constexpr int64_t shortest = 16, most_packed = int64_t{1} << 24;
  constexpr double min_multiplications = 1 << 21;
  const int64_t parts = dtype == CB_FLOAT32 ? 3 : 1;
  if (queries < shortest || keys < shortest || width < shortest || columns < shortest ||
      keys * (width + columns) > most_packed / (2 * parts) || (call.grad && queries * width > most_packed) ||
      static_cast<double>(heads) * static_cast<double>(queries) * static_cast<double>(keys) *
              static_cast<double>(width + columns) <
          min_multiplications)
    return false;
  for (const cb_tensor* tensor : {call.query, call.key, call.value, call.grad, call.grad ? call.out : nullptr})
    if (tensor && tensor->strides[3] != 1) return false;
  return true;
}

AmxAttention::AmxAttention(const AttentionCall& call) {
  if (call.query->dtype == CB_FLOAT32)
    work_ = std::make_unique<WorkOf<float>>(call);
  else
    work_ = std::make_unique<WorkOf<BFloat16>>(call);
}
AmxAttention::~AmxAttention() = default;
bool AmxAttention::forward(int64_t n, int64_t head, int64_t q0, int64_t count) {
  return work_->forward(n, head, q0, count);
}
bool AmxAttention::backward(int64_t n, int64_t key_head) {
  return work_->backward(n, key_head);
}

}  // namespace candelabra::cpu
