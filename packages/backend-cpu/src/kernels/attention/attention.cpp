// _scaled_dot_product_attention and _scaled_dot_product_attention_backward: softmax(scale * query @
// key^T + mask) @ value, block by block. The scores exist for one block of queries and one block of
// keys at a time, so memory does not grow with the product of the two lengths. The running maximum
// and sum of a row (Milakov and Gimelshein 2018) are corrected after each block. The gradient
// recomputes the scores from the logarithm of the sum (Dao et al. 2022). Blocks that suit AMX are
// computed there.
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "candelabra/arguments/attention.hpp"
#include "candelabra/math.hpp"
#include "dtypes.hpp"
#include "gemm/gemm.hpp"
#include "kernels.hpp"
#include "kernels/attention/attention_amx.hpp"
#include "memory/allocator.hpp"
#include "memory/transpose.hpp"
#include "simd/load_elements.hpp"
#include "simd/vec_math.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// The block of queries and keys whose scores exist at a time: large enough for matrix products at
// full speed, small enough that the scores stay in the second cache level. Half precisions have
// faster products and need larger blocks.
template <typename T>
struct Tile {
  static constexpr int64_t queries = is_half_v<T> ? 256 : 64, keys = is_half_v<T> ? 512 : 256;
};

// Rows of a matrix as BLAS takes them: unit stride within a row.
template <typename C>
struct Rows {
  const C* data;
  int64_t pitch;
};

// Rows [first, first + count) of head (n, h) of a tensor (N, H, rows, columns): the tensor's own
// memory where BLAS can address it, else packed into `buffer`.
template <typename T>
Rows<compute_t<T>> rows_of(const cb_tensor& tensor, int64_t n, int64_t h, int64_t first, int64_t count,
                           compute_t<T>* buffer) {
  const int64_t columns = tensor.sizes[3], step = tensor.strides[3], pitch = tensor.strides[2];
  const T* from = data<T>(tensor) + n * tensor.strides[0] + h * tensor.strides[1] + first * pitch;
  if constexpr (!is_half_v<T>) {
    if (step == 1 && pitch >= std::max<int64_t>(columns, 1) && pitch <= largest_leading_dimension())
      return {from, pitch};
  }
  for (int64_t i = 0; i < count; ++i) load_strided(from + i * pitch, step, columns, buffer + i * columns);
  return {buffer, std::max<int64_t>(columns, 1)};
}

// The same without conversion to float32, for half_product.
template <typename T>
Rows<T> half_rows_of(const cb_tensor& tensor, int64_t n, int64_t h, int64_t first, int64_t count, T* buffer) {
  const int64_t columns = tensor.sizes[3], step = tensor.strides[3], pitch = tensor.strides[2];
  const T* from = data<T>(tensor) + n * tensor.strides[0] + h * tensor.strides[1] + first * pitch;
  if (step == 1 && pitch >= std::max<int64_t>(columns, 1) && pitch <= largest_leading_dimension()) return {from, pitch};
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < columns; ++j) buffer[i * columns + j] = from[i * pitch + j * step];
  return {buffer, std::max<int64_t>(columns, 1)};
}

// c = op(a) @ op(b) in float32; false where the processor has no instructions for it.
template <typename T>
bool half_product(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, Rows<T> a, Rows<T> b, float* c,
                  int64_t pitch) {
  return half_gemm(
      {dtype_v<T>, transpose_a, transpose_b, m, n, k, a.data, a.pitch, b.data, b.pitch, nullptr, c, pitch, true});
}

// For products so small that calling a library costs more than computing them.
template <typename C>
void small_product(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, C alpha, Rows<C> a, Rows<C> b,
                   C beta, C* c, int64_t pitch) {
  const int64_t a_row = transpose_a ? 1 : a.pitch, a_column = transpose_a ? a.pitch : 1;
  for (int64_t i = 0; i < m; ++i) {
    C* row = c + i * pitch;
    if (beta == 0) std::fill_n(row, n, C(0));
    if (transpose_b) {
      for (int64_t j = 0; j < n; ++j) {
        C sum = 0;
        for (int64_t p = 0; p < k; ++p) sum += a.data[i * a_row + p * a_column] * b.data[j * b.pitch + p];
        row[j] += alpha * sum;
      }
    } else {
      for (int64_t p = 0; p < k; ++p) {
        const C factor = alpha * a.data[i * a_row + p * a_column];
        for (int64_t j = 0; j < n; ++j) row[j] += factor * b.data[p * b.pitch + j];
      }
    }
  }
}

// c = alpha * op(a) @ op(b) + beta * c with beta 0 or 1, where any side may be empty.
template <typename C>
void product(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, C alpha, Rows<C> a, Rows<C> b, C beta,
             C* c, int64_t pitch) {
  constexpr int64_t small = 4096;
  if (m * n * k <= small) return small_product<C>(transpose_a, transpose_b, m, n, k, alpha, a, b, beta, c, pitch);
  gemm(Gemm<C>{transpose_a, transpose_b, m, n, k, alpha, a.data, a.pitch, b.data, b.pitch, beta, c, pitch});
}

// c = alpha * a @ rows^T for several a. A small set of rows is transposed first: MKL is slower with
// a small transposed factor. Forward and backward compute the scores by the same products, so that
// both get the same numbers.
template <typename C>
class ProductWithRows {
 public:
  ProductWithRows(int64_t most_rows, int64_t width, int64_t products)
      : width_(width),
        reused_(products > 1 && width > 0),
        transposed_(reused_ ? std::min(most_numbers, most_rows * width) : 0) {}

  void set(Rows<C> rows, int64_t count) {
    rows_ = rows;
    count_ = count;
    is_transposed_ = reused_ && count * width_ <= most_numbers;
    if (is_transposed_) transpose_tile(transposed_.data(), count, rows.data, rows.pitch, count, width_);
  }
  void multiply(int64_t m, C alpha, Rows<C> a, C* c, int64_t pitch) {
    if (is_transposed_)
      product<C>(false, false, m, count_, width_, alpha, a, {transposed_.data(), count_}, 0, c, pitch);
    else
      product<C>(false, true, m, count_, width_, alpha, a, rows_, 0, c, pitch);
  }

 private:
  static constexpr int64_t most_numbers = 32768;
  int64_t width_, count_ = 0;
  bool reused_, is_transposed_ = false;
  Rows<C> rows_{};
  Scratch<C> transposed_;
};

// The mask of one call, of shape (N, H, L, S), and the causal mask.
template <typename T>
class Mask {
 public:
  using C = compute_t<T>;
  Mask(const cb_tensor* tensor, bool causal) : tensor_(tensor), causal_(causal) {}

  // The end of the keys that queries before `query_end` attend to.
  int64_t key_end(int64_t query_end, int64_t keys) const { return causal_ ? std::min(query_end, keys) : keys; }

  // Whether apply() changes any score of this block.
  bool touches(int64_t q0, int64_t k0, int64_t keys) const { return tensor_ || (causal_ && q0 + 1 < k0 + keys); }

  // Masks the scores of `queries` queries from q0 on and `keys` keys from k0 on.
  void apply(C* scores, int64_t n, int64_t h, int64_t q0, int64_t queries, int64_t k0, int64_t keys) const {
    constexpr C none = -std::numeric_limits<C>::infinity();
    if (tensor_) {
      const int64_t* strides = tensor_->strides;
      const int64_t start = n * strides[0] + h * strides[1] + q0 * strides[2] + k0 * strides[3], step = strides[3];
      for (int64_t i = 0; i < queries; ++i) {
        C* row = scores + i * Tile<T>::keys;
        if (tensor_->dtype == CB_BOOL) {
          const uint8_t* visible = data<uint8_t>(*tensor_) + start + i * strides[2];
          for (int64_t j = 0; j < keys; ++j) row[j] = visible[j * step] ? row[j] : none;
        } else {
          const T* bias = data<T>(*tensor_) + start + i * strides[2];
          for (int64_t j = 0; j < keys; ++j) row[j] += static_cast<C>(bias[j * step]);
        }
      }
    }
    if (causal_)
      for (int64_t i = 0; i < queries; ++i)
        for (int64_t j = std::max<int64_t>(q0 + i + 1 - k0, 0); j < keys; ++j) scores[i * Tile<T>::keys + j] = none;
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

template <typename T>
void forward(Call& call) {
  using C = compute_t<T>;
  constexpr int64_t key_block = Tile<T>::keys, most_queries = 256;
  const arguments::ScaledDotProductAttention args(call);
  const cb_tensor &query = *args.query, &key = *args.key, &value = *args.value;
  const cb_tensor &out = call.output(0), &logarithms = call.output(1);
  const Mask<T> mask(args.mask, args.is_causal);
  const C scale = static_cast<C>(args.scale);
  const int64_t heads = query.sizes[1], queries = query.sizes[2], width = query.sizes[3];
  const int64_t keys = key.sizes[2], columns = value.sizes[3], share = key.sizes[1] ? heads / key.sizes[1] : 1;
  const AttentionCall tile_call{&query, &key,       &value, args.mask, args.is_causal, static_cast<float>(scale),
                                &out,   &logarithms};
  const bool on_amx = suits_amx_attention(tile_call);
  // Larger blocks of many queries amortize the packing of keys and values. Under a causal mask
  // smaller blocks skip more keys.
  constexpr int64_t many = 768;
  const int64_t query_block = on_amx || args.is_causal || queries < many ? Tile<T>::queries : most_queries;
  const int64_t blocks = (queries + query_block - 1) / query_block, tasks = query.sizes[0] * heads * blocks;
  // The setup of a half-precision product costs as much as this many multiplications.
  constexpr int64_t worthwhile = int64_t{1} << 24;
  const bool large =
      is_half_v<T> && columns > 0 && width > 0 && tasks * query_block * keys * (width + columns) >= worthwhile;
  parallel_for(tasks, grain_for(query_block * keys * (width + columns) / 8), [&](int64_t begin, int64_t end) {
    std::optional<AmxAttention> tiles;
    if (on_amx) {
      tiles.emplace(tile_call);
      // Stops at the first block that AMX does not take; the loop below continues there.
      for (bool done = true; begin < end && done; begin += done)
        done = tiles->forward(begin / blocks / heads, begin / blocks % heads, begin % blocks * query_block,
                              std::min(query_block, queries - begin % blocks * query_block));
      if (begin == end) return;
    }
    Scratch<C> scores(query_block * key_block), sums(query_block * std::max<int64_t>(columns, 1));
    Scratch<C> queries_packed(query_block * width), keys_packed(key_block * width), values_packed(key_block * columns);
    ProductWithRows<C> by_keys(std::min(key_block, keys), width, queries);
    // The keys in by_keys: the next block of queries may need the same
    std::array<int64_t, 4> packed_block{-1};
    Scratch<T> weights(large ? query_block * key_block : 0);
    Scratch<T> half_queries(large ? query_block * width : 0),
        half_keys(large ? key_block * std::max(width, columns) : 0);
    Scratch<C> part(large ? query_block * columns : 0);
    C largest[most_queries], total[most_queries];
    bool native = large;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t n = task / blocks / heads, h = task / blocks % heads, q0 = task % blocks * query_block;
      const int64_t count = std::min(query_block, queries - q0);
      if (tiles && tiles->forward(n, h, q0, count)) continue;
      std::fill_n(largest, count, -std::numeric_limits<C>::infinity());
      std::fill_n(total, count, C(0));
      std::fill_n(sums.data(), count * columns, C(0));
      const int64_t last = mask.key_end(q0 + count, keys);
      for (int64_t k0 = 0; k0 < last; k0 += key_block) {
        const int64_t key_count = std::min(key_block, last - k0);
        C factor = 1;
        if constexpr (is_half_v<T>) {
          if (native) {
            const Rows<T> q = half_rows_of<T>(query, n, h, q0, count, half_queries.data());
            const Rows<T> k = half_rows_of<T>(key, n, h / share, k0, key_count, half_keys.data());
            native = half_product<T>(false, true, count, key_count, width, q, k, scores.data(), key_block);
            // Scores without a mask are scaled in exponentiate_row instead.
            factor = native && !mask.touches(q0, k0, key_count) ? scale : C(1);
            if (native && factor != scale)
              for (int64_t i = 0; i < count; ++i)
                for (int64_t j = 0; j < key_count; ++j) scores[i * key_block + j] *= scale;
          }
        }
        if (!native) {
          const Rows<C> q = rows_of<T>(query, n, h, q0, count, queries_packed.data());
          const std::array<int64_t, 4> key_block_id{n, h / share, k0, key_count};
          if (packed_block != key_block_id)
            by_keys.set(rows_of<T>(key, n, h / share, k0, key_count, keys_packed.data()), key_count);
          packed_block = key_block_id;
          by_keys.multiply(count, scale, q, scores.data(), key_block);
        }
        mask.apply(scores.data(), n, h, q0, count, k0, key_count);
        for (int64_t i = 0; i < count; ++i) {
          const C correction = exponentiate_row(scores.data() + i * key_block, key_count, factor, largest[i], total[i]);
          if (correction != 1)
            for (int64_t j = 0; j < columns; ++j) sums[i * columns + j] *= correction;
        }
        if constexpr (is_half_v<T>) {
          if (native) {
            for (int64_t i = 0; i < count; ++i)
              from_float(scores.data() + i * key_block, weights.data() + i * key_block, key_count);
            const Rows<T> v = half_rows_of<T>(value, n, h / share, k0, key_count, half_keys.data());
            native = half_product<T>(false, false, count, columns, key_count, {weights.data(), key_block}, v,
                                     part.data(), columns);
            if (native) {
              for (int64_t j = 0; j < count * columns; ++j) sums[j] += part[j];
              continue;
            }
          }
        }
        const Rows<C> v = rows_of<T>(value, n, h / share, k0, key_count, values_packed.data());
        product<C>(false, false, count, columns, key_count, 1, {scores.data(), key_block}, v, 1, sums.data(), columns);
      }
      const int64_t at = (n * heads + h) * queries + q0;
      normalize_sums(total, largest, count);
      std::copy_n(largest, count, mutable_data<C>(logarithms) + at);
      for (int64_t i = 0; i < count; ++i) {
        C* row = sums.data() + i * columns;
        T* to = mutable_data<T>(out) + (at + i) * columns;
        if constexpr (is_half_v<T>) {
          for (int64_t j = 0; j < columns; ++j) row[j] *= total[i];
          store_strided(row, columns, to, 1);
        } else {
          for (int64_t j = 0; j < columns; ++j) to[j] = row[j] * total[i];
        }
      }
    }
  });
}

// One task per key head: it owns the gradients of that head and of the query heads that share it.
template <typename T>
void backward(Call& call) {
  using C = compute_t<T>;
  constexpr int64_t query_block = Tile<T>::queries, key_block = Tile<T>::keys;
  const arguments::ScaledDotProductAttentionBackward args(call);
  const cb_tensor &grad = *args.grad, &query = *args.query, &key = *args.key, &value = *args.value;
  const cb_tensor &result = *args.output, &logarithms = *args.logsumexp;
  const Mask<T> mask(args.mask, args.is_causal);
  const C scale = static_cast<C>(args.scale);
  const int64_t heads = query.sizes[1], queries = query.sizes[2], width = query.sizes[3];
  const int64_t key_heads = key.sizes[1], keys = key.sizes[2], columns = value.sizes[3],
                share = key_heads ? heads / key_heads : 1;
  const AttentionCall tile_call{
      &query,  &key,        &value, args.mask,       args.is_causal,  static_cast<float>(scale),
      &result, &logarithms, &grad,  &call.output(0), &call.output(1), &call.output(2)};
  const bool on_amx = suits_amx_attention(tile_call);
  parallel_for(key.sizes[0] * key_heads, 1, [&](int64_t begin, int64_t end) {
    std::optional<AmxAttention> tiles;
    if (on_amx) {
      tiles.emplace(tile_call);
      for (bool done = true; begin < end && done; begin += done)
        done = tiles->backward(begin / key_heads, begin % key_heads);
      if (begin == end) return;
    }
    Scratch<C> weights(query_block * key_block), score_grads(query_block * key_block);
    Scratch<C> queries_packed(query_block * width), grads_packed(query_block * columns),
        results_packed(query_block * columns);
    Scratch<C> keys_packed(key_block * width), values_packed(key_block * columns);
    Scratch<C> grad_keys(key_block * width), grad_values(key_block * columns), grad_queries(share * queries * width);
    ProductWithRows<C> by_keys(std::min(key_block, keys), width, queries),
        by_values(std::min(key_block, keys), columns, queries);
    Scratch<C> deltas(share * queries);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t n = task / key_heads, shared = task % key_heads;
      if (tiles && tiles->backward(n, shared)) continue;
      std::fill_n(grad_queries.data(), share * queries * width, C(0));
      for (int64_t g = 0; g < share; ++g)
        for (int64_t q0 = 0; q0 < queries; q0 += query_block) {
          const int64_t count = std::min(query_block, queries - q0), h = shared * share + g;
          const Rows<C> d = rows_of<T>(grad, n, h, q0, count, grads_packed.data());
          const Rows<C> o = rows_of<T>(result, n, h, q0, count, results_packed.data());
          for (int64_t i = 0; i < count; ++i) {
            C sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int64_t j = 0; j < columns; ++j) sum += d.data[i * d.pitch + j] * o.data[i * o.pitch + j];
            deltas[g * queries + q0 + i] = sum;
          }
        }
      for (int64_t k0 = 0; k0 < keys; k0 += key_block) {
        const int64_t key_count = std::min(key_block, keys - k0);
        const Rows<C> k = rows_of<T>(key, n, shared, k0, key_count, keys_packed.data());
        const Rows<C> v = rows_of<T>(value, n, shared, k0, key_count, values_packed.data());
        by_keys.set(k, key_count);
        by_values.set(v, key_count);
        std::fill_n(grad_keys.data(), key_count * width, C(0));
        std::fill_n(grad_values.data(), key_count * columns, C(0));
        for (int64_t g = 0; g < share; ++g)
          for (int64_t q0 = 0; q0 < queries; q0 += query_block) {
            const int64_t count = std::min(query_block, queries - q0), h = shared * share + g;
            if (mask.key_end(q0 + count, keys) <= k0) continue;
            const Rows<C> q = rows_of<T>(query, n, h, q0, count, queries_packed.data());
            const Rows<C> d = rows_of<T>(grad, n, h, q0, count, grads_packed.data());
            by_keys.multiply(count, scale, q, weights.data(), key_block);
            mask.apply(weights.data(), n, h, q0, count, k0, key_count);
            const C* logarithm = data<C>(logarithms) + (n * heads + h) * queries + q0;
            for (int64_t i = 0; i < count; ++i)
              recompute_weights(weights.data() + i * key_block, key_count, logarithm[i]);
            const Rows<C> p{weights.data(), key_block}, s{score_grads.data(), key_block};
            product<C>(true, false, key_count, columns, count, 1, p, d, 1, grad_values.data(), columns);
            by_values.multiply(count, 1, d, score_grads.data(), key_block);
            for (int64_t i = 0; i < count; ++i) {
              const C delta = deltas[g * queries + q0 + i];
              for (int64_t j = 0; j < key_count; ++j) {
                const int64_t at = i * key_block + j;
                score_grads[at] = weights[at] * (score_grads[at] - delta);
              }
            }
            product<C>(true, false, key_count, width, count, scale, s, q, 1, grad_keys.data(), width);
            product<C>(false, false, count, width, key_count, scale, s, k, 1,
                       grad_queries.data() + (g * queries + q0) * width, width);
          }
        for (int64_t j = 0; j < key_count; ++j) {
          const int64_t row = (n * key_heads + shared) * keys + k0 + j;
          store_strided(grad_keys.data() + j * width, width, mutable_data<T>(call.output(1)) + row * width, 1);
          store_strided(grad_values.data() + j * columns, columns, mutable_data<T>(call.output(2)) + row * columns, 1);
        }
      }
      for (int64_t i = 0; i < share * queries; ++i) {
        const int64_t row = (n * heads + shared * share) * queries + i;
        store_strided(grad_queries.data() + i * width, width, mutable_data<T>(call.output(0)) + row * width, 1);
      }
    }
  });
}

void scaled_dot_product_attention(Call& call) {
  const arguments::ScaledDotProductAttention args(call);
  dispatch<FloatTypes>(args.query->dtype, [&]<typename T>() { forward<T>(call); });
}
void scaled_dot_product_attention_backward(Call& call) {
  const arguments::ScaledDotProductAttentionBackward args(call);
  dispatch<FloatTypes>(args.query->dtype, [&]<typename T>() { backward<T>(call); });
}

}  // namespace

void register_attention(KernelTable& table) {
  table.add<scaled_dot_product_attention>("_scaled_dot_product_attention");
  table.add<scaled_dot_product_attention_backward>("_scaled_dot_product_attention_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
