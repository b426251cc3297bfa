// _scaled_dot_product_attention and _scaled_dot_product_attention_backward: softmax(scale * query @
// key^T + mask) @ value, block by block. The scores exist for one block of queries and one block of
// keys at a time, so memory does not grow with the product of the two lengths. The running maximum
// and sum of a row (Milakov and Gimelshein 2018) are corrected after each block. The gradient
// recomputes the scores from the logarithm of the sum (Dao et al. 2022). Blocks that suit AMX are
// computed there.
#include <algorithm>
#include <limits>
#include <optional>

#include "candelabra/arguments/attention.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "kernels/attention/attention_amx.hpp"
#include "kernels/attention/attention_products.hpp"
#include "kernels/attention/attention_softmax.hpp"
#include "memory/allocator.hpp"
#include "simd/load_elements.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using namespace attention;

// The sizes of a call: query (N, heads, queries, width), key (N, key_heads, keys, width), value
// (N, key_heads, keys, columns). A key head serves `share` query heads.
struct Sizes {
  Sizes(const cb_tensor& query, const cb_tensor& key, const cb_tensor& value)
      : batch(query.sizes[0]),
        heads(query.sizes[1]),
        queries(query.sizes[2]),
        width(query.sizes[3]),
        key_heads(key.sizes[1]),
        keys(key.sizes[2]),
        columns(value.sizes[3]),
        share(key_heads ? heads / key_heads : 1) {}
  int64_t batch, heads, queries, width, key_heads, keys, columns, share;
};

// ---- forward

template <typename T>
struct ForwardPlan : Sizes {
  using C = compute_t<T>;
  static constexpr int64_t key_block = Tile<T>::keys, most_queries = 256;

  explicit ForwardPlan(Call& call)
      : ForwardPlan(arguments::ScaledDotProductAttention(call), call.output(0), call.output(1)) {}

  RowBlock query_rows(int64_t task) const {
    const int64_t first = task % blocks * query_block;
    return {task / blocks / heads, task / blocks % heads, first, std::min(query_block, queries - first)};
  }

  const cb_tensor &query, &key, &value, &out, &logarithms;
  Mask<T> mask;
  C scale;
  AttentionCall amx_call;
  bool on_amx;
  int64_t query_block, blocks, tasks;
  bool uses_half_products;

 private:
  ForwardPlan(const arguments::ScaledDotProductAttention& args, const cb_tensor& out, const cb_tensor& logarithms)
      : Sizes(*args.query, *args.key, *args.value),
        query(*args.query),
        key(*args.key),
        value(*args.value),
        out(out),
        logarithms(logarithms),
        mask(args.mask, args.is_causal),
        scale(static_cast<C>(args.scale)),
        amx_call{&query, &key, &value, args.mask, args.is_causal, static_cast<float>(scale), &out, &logarithms},
        on_amx(suits_amx_attention(amx_call)) {
    // Larger blocks of many queries amortize the packing of keys and values. Under a causal mask
    // smaller blocks skip more keys.
    constexpr int64_t many = 768;
    query_block = on_amx || args.is_causal || queries < many ? Tile<T>::queries : most_queries;
    blocks = (queries + query_block - 1) / query_block;
    tasks = batch * heads * blocks;
    // The setup of a half-precision product costs as much as this many multiplications.
    constexpr int64_t worthwhile = int64_t{1} << 24;
    uses_half_products =
        is_half_v<T> && columns > 0 && width > 0 && tasks * query_block * keys * (width + columns) >= worthwhile;
  }
};

// The memory of one thread, and the steps from a block of queries to its results.
template <typename T>
class ForwardPass {
 public:
  using C = compute_t<T>;
  explicit ForwardPass(const ForwardPlan<T>& plan)
      : plan_(plan),
        scores_(plan.query_block * key_block),
        sums_(plan.query_block * std::max<int64_t>(plan.columns, 1)),
        queries_packed_(plan.query_block * plan.width),
        keys_packed_(key_block * plan.width),
        values_packed_(key_block * plan.columns),
        by_keys_(std::min(key_block, plan.keys), plan.width, plan.queries),
        has_half_products_(plan.uses_half_products),
        half_weights_(has_half_products_ ? plan.query_block * key_block : 0),
        half_queries_(has_half_products_ ? plan.query_block * plan.width : 0),
        half_keys_(has_half_products_ ? key_block * std::max(plan.width, plan.columns) : 0),
        half_sums_(has_half_products_ ? plan.query_block * plan.columns : 0) {}

  void run(const RowBlock& queries) {
    std::fill_n(largest_, queries.count, -std::numeric_limits<C>::infinity());
    std::fill_n(total_, queries.count, C(0));
    std::fill_n(sums_.data(), queries.count * plan_.columns, C(0));
    const int64_t last = plan_.mask.key_end(queries.first + queries.count, plan_.keys);
    for (int64_t first = 0; first < last; first += key_block) {
      const RowBlock keys{queries.n, queries.head / plan_.share, first, std::min(key_block, last - first)};
      const C factor = compute_scores(queries, keys);
      plan_.mask.apply(scores_.data(), queries, keys);
      turn_into_weights(queries.count, keys.count, factor);
      add_values(queries, keys);
    }
    store(queries);
  }

 private:
  static constexpr int64_t key_block = ForwardPlan<T>::key_block;

  // Returns the factor that the scores still lack.
  C compute_scores(const RowBlock& queries, const RowBlock& keys) {
    if constexpr (is_half_v<T>) {
      if (has_half_products_) {
        const Rows<T> q = half_rows_of<T>(plan_.query, queries, half_queries_.data());
        const Rows<T> k = half_rows_of<T>(plan_.key, keys, half_keys_.data());
        has_half_products_ =
            half_product<T>(false, true, queries.count, keys.count, plan_.width, q, k, scores_.data(), key_block);
      }
      if (has_half_products_) {
        if (!plan_.mask.touches(queries, keys)) return plan_.scale;
        for (int64_t i = 0; i < queries.count; ++i)
          for (int64_t j = 0; j < keys.count; ++j) scores_[i * key_block + j] *= plan_.scale;
        return 1;
      }
    }
    const Rows<C> q = rows_of<T>(plan_.query, queries, queries_packed_.data());
    if (packed_keys_ != keys) by_keys_.set(rows_of<T>(plan_.key, keys, keys_packed_.data()), keys.count);
    packed_keys_ = keys;
    by_keys_.multiply(queries.count, plan_.scale, q, scores_.data(), key_block);
    return 1;
  }

  // Corrects the sums of earlier blocks where the maximum of a row grows.
  void turn_into_weights(int64_t queries, int64_t keys, C factor) {
    const int64_t columns = plan_.columns;
    for (int64_t i = 0; i < queries; ++i) {
      const C correction = exponentiate_row(scores_.data() + i * key_block, keys, factor, largest_[i], total_[i]);
      if (correction != 1)
        for (int64_t j = 0; j < columns; ++j) sums_[i * columns + j] *= correction;
    }
  }

  void add_values(const RowBlock& queries, const RowBlock& keys) {
    const int64_t columns = plan_.columns;
    if constexpr (is_half_v<T>) {
      if (has_half_products_) {
        for (int64_t i = 0; i < queries.count; ++i)
          from_float(scores_.data() + i * key_block, half_weights_.data() + i * key_block, keys.count);
        const Rows<T> v = half_rows_of<T>(plan_.value, keys, half_keys_.data());
        has_half_products_ = half_product<T>(false, false, queries.count, columns, keys.count,
                                             {half_weights_.data(), key_block}, v, half_sums_.data(), columns);
      }
      if (has_half_products_) {
        for (int64_t j = 0; j < queries.count * columns; ++j) sums_[j] += half_sums_[j];
        return;
      }
    }
    const Rows<C> v = rows_of<T>(plan_.value, keys, values_packed_.data());
    product<false, false, C>(queries.count, columns, keys.count, 1, {scores_.data(), key_block}, v, 1, sums_.data(),
                             columns);
  }

  void store(const RowBlock& queries) {
    const int64_t at = (queries.n * plan_.heads + queries.head) * plan_.queries + queries.first;
    const int64_t columns = plan_.columns;
    normalize_sums(total_, largest_, queries.count);
    std::copy_n(largest_, queries.count, mutable_data<C>(plan_.logarithms) + at);
    for (int64_t i = 0; i < queries.count; ++i) {
      C* row = sums_.data() + i * columns;
      T* to = mutable_data<T>(plan_.out) + (at + i) * columns;
      if constexpr (is_half_v<T>) {
        for (int64_t j = 0; j < columns; ++j) row[j] *= total_[i];
        store_strided(row, columns, to, 1);
      } else {
        for (int64_t j = 0; j < columns; ++j) to[j] = row[j] * total_[i];
      }
    }
  }

  const ForwardPlan<T>& plan_;
  Scratch<C> scores_, sums_, queries_packed_, keys_packed_, values_packed_;
  ProductWithRows<C> by_keys_;
  RowBlock packed_keys_{-1, 0, 0, 0};  // in by_keys_: the next block of queries may need the same
  bool has_half_products_;             // until the processor turns out to have no instructions for them
  Scratch<T> half_weights_, half_queries_, half_keys_;
  Scratch<C> half_sums_;
  C largest_[ForwardPlan<T>::most_queries], total_[ForwardPlan<T>::most_queries];
};

template <typename T>
void forward(Call& call) {
  const ForwardPlan<T> plan(call);
  const int64_t work = plan.query_block * plan.keys * (plan.width + plan.columns) / 8;
  parallel_for(plan.tasks, grain_for(work), [&](int64_t begin, int64_t end) {
    std::optional<AmxAttention> on_amx;
    if (plan.on_amx) on_amx.emplace(plan.amx_call);
    std::optional<ForwardPass<T>> pass;
    for (int64_t task = begin; task < end; ++task) {
      const RowBlock queries = plan.query_rows(task);
      if (on_amx && on_amx->forward(queries.n, queries.head, queries.first, queries.count)) continue;
      if (!pass) pass.emplace(plan);
      pass->run(queries);
    }
  });
}

// ---- backward

template <typename T>
struct BackwardPlan : Sizes {
  using C = compute_t<T>;

  explicit BackwardPlan(Call& call) : BackwardPlan(call, arguments::ScaledDotProductAttentionBackward(call)) {}

  const cb_tensor &grad, &query, &key, &value, &result, &logarithms;
  const cb_tensor &grad_query, &grad_key, &grad_value;
  Mask<T> mask;
  C scale;
  AttentionCall amx_call;
  bool on_amx;

 private:
  BackwardPlan(Call& call, const arguments::ScaledDotProductAttentionBackward& args)
      : Sizes(*args.query, *args.key, *args.value),
        grad(*args.grad),
        query(*args.query),
        key(*args.key),
        value(*args.value),
        result(*args.output),
        logarithms(*args.logsumexp),
        grad_query(call.output(0)),
        grad_key(call.output(1)),
        grad_value(call.output(2)),
        mask(args.mask, args.is_causal),
        scale(static_cast<C>(args.scale)),
        amx_call{&query,  &key,        &value, args.mask,   args.is_causal, static_cast<float>(scale),
                 &result, &logarithms, &grad,  &grad_query, &grad_key,      &grad_value},
        on_amx(suits_amx_attention(amx_call)) {}
};

// The memory of one thread, and the steps to the gradients of a key head and of the query heads
// that share it.
template <typename T>
class BackwardPass {
 public:
  using C = compute_t<T>;
  explicit BackwardPass(const BackwardPlan<T>& plan)
      : plan_(plan),
        weights_(query_block * key_block),
        score_grads_(query_block * key_block),
        queries_packed_(query_block * plan.width),
        grads_packed_(query_block * plan.columns),
        results_packed_(query_block * plan.columns),
        keys_packed_(key_block * plan.width),
        values_packed_(key_block * plan.columns),
        grad_keys_(key_block * plan.width),
        grad_values_(key_block * plan.columns),
        grad_queries_(plan.share * plan.queries * plan.width),
        by_keys_(std::min(key_block, plan.keys), plan.width, plan.queries),
        by_values_(std::min(key_block, plan.keys), plan.columns, plan.queries),
        deltas_(plan.share * plan.queries) {}

  void run(int64_t n, int64_t key_head) {
    std::fill_n(grad_queries_.data(), plan_.share * plan_.queries * plan_.width, C(0));
    for_each_query_block(n, key_head, [&](const RowBlock& queries, int64_t at) { compute_deltas(queries, at); });
    for (int64_t first = 0; first < plan_.keys; first += key_block) {
      const RowBlock keys{n, key_head, first, std::min(key_block, plan_.keys - first)};
      const Rows<C> k = rows_of<T>(plan_.key, keys, keys_packed_.data());
      by_keys_.set(k, keys.count);
      by_values_.set(rows_of<T>(plan_.value, keys, values_packed_.data()), keys.count);
      std::fill_n(grad_keys_.data(), keys.count * plan_.width, C(0));
      std::fill_n(grad_values_.data(), keys.count * plan_.columns, C(0));
      for_each_query_block(n, key_head, [&](const RowBlock& queries, int64_t at) {
        if (plan_.mask.key_end(queries.first + queries.count, plan_.keys) > first) add_gradients(queries, at, keys, k);
      });
      store_key_gradients(keys);
    }
    store_query_gradients(n, key_head);
  }

 private:
  static constexpr int64_t query_block = Tile<T>::queries, key_block = Tile<T>::keys;

  // f(block, at) for the queries that attend to a key head; `at` counts them over all their heads.
  template <typename F>
  void for_each_query_block(int64_t n, int64_t key_head, F&& f) const {
    for (int64_t g = 0; g < plan_.share; ++g)
      for (int64_t first = 0; first < plan_.queries; first += query_block)
        f(RowBlock{n, key_head * plan_.share + g, first, std::min(query_block, plan_.queries - first)},
          g * plan_.queries + first);
  }

  // For each query the product of its gradient and its result, which the gradient of softmax
  // subtracts.
  void compute_deltas(const RowBlock& queries, int64_t at) {
    const Rows<C> d = rows_of<T>(plan_.grad, queries, grads_packed_.data());
    const Rows<C> o = rows_of<T>(plan_.result, queries, results_packed_.data());
    const int64_t columns = plan_.columns;
    for (int64_t i = 0; i < queries.count; ++i) {
      C sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t j = 0; j < columns; ++j) sum += d.data[i * d.pitch + j] * o.data[i * o.pitch + j];
      deltas_[at + i] = sum;
    }
  }

  // Adds what a block of scores contributes to the three gradients; `k` are the rows of `keys`.
  void add_gradients(const RowBlock& queries, int64_t at, const RowBlock& keys, const Rows<C>& k) {
    const int64_t width = plan_.width, columns = plan_.columns;
    const Rows<C> q = rows_of<T>(plan_.query, queries, queries_packed_.data());
    const Rows<C> d = rows_of<T>(plan_.grad, queries, grads_packed_.data());
    by_keys_.multiply(queries.count, plan_.scale, q, weights_.data(), key_block);
    plan_.mask.apply(weights_.data(), queries, keys);
    const C* logarithm =
        data<C>(plan_.logarithms) + (queries.n * plan_.heads + queries.head) * plan_.queries + queries.first;
    for (int64_t i = 0; i < queries.count; ++i)
      recompute_weights(weights_.data() + i * key_block, keys.count, logarithm[i]);
    const Rows<C> p{weights_.data(), key_block}, s{score_grads_.data(), key_block};
    product<true, false, C>(keys.count, columns, queries.count, 1, p, d, 1, grad_values_.data(), columns);
    by_values_.multiply(queries.count, 1, d, score_grads_.data(), key_block);
    for (int64_t i = 0; i < queries.count; ++i) {
      const C delta = deltas_[at + i];
      C* score_grad = score_grads_.data() + i * key_block;
      const C* weight = weights_.data() + i * key_block;
      for (int64_t j = 0; j < keys.count; ++j) score_grad[j] = weight[j] * (score_grad[j] - delta);
    }
    product<true, false, C>(keys.count, width, queries.count, plan_.scale, s, q, 1, grad_keys_.data(), width);
    product<false, false, C>(queries.count, width, keys.count, plan_.scale, s, k, 1, grad_queries_.data() + at * width,
                             width);
  }

  void store_key_gradients(const RowBlock& keys) {
    const int64_t width = plan_.width, columns = plan_.columns;
    const int64_t at = (keys.n * plan_.key_heads + keys.head) * plan_.keys + keys.first;
    for (int64_t j = 0; j < keys.count; ++j) {
      store_strided(grad_keys_.data() + j * width, width, mutable_data<T>(plan_.grad_key) + (at + j) * width, 1);
      store_strided(grad_values_.data() + j * columns, columns, mutable_data<T>(plan_.grad_value) + (at + j) * columns,
                    1);
    }
  }

  void store_query_gradients(int64_t n, int64_t key_head) {
    const int64_t width = plan_.width, at = (n * plan_.heads + key_head * plan_.share) * plan_.queries;
    for (int64_t i = 0; i < plan_.share * plan_.queries; ++i)
      store_strided(grad_queries_.data() + i * width, width, mutable_data<T>(plan_.grad_query) + (at + i) * width, 1);
  }

  const BackwardPlan<T>& plan_;
  Scratch<C> weights_, score_grads_, queries_packed_, grads_packed_, results_packed_, keys_packed_, values_packed_;
  Scratch<C> grad_keys_, grad_values_, grad_queries_;
  ProductWithRows<C> by_keys_, by_values_;
  Scratch<C> deltas_;
};

// One task per key head: it owns the gradients of that head and of the query heads that share it.
template <typename T>
void backward(Call& call) {
  const BackwardPlan<T> plan(call);
  parallel_for(plan.key.sizes[0] * plan.key_heads, 1, [&](int64_t begin, int64_t end) {
    std::optional<AmxAttention> on_amx;
    if (plan.on_amx) on_amx.emplace(plan.amx_call);
    std::optional<BackwardPass<T>> pass;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t n = task / plan.key_heads, key_head = task % plan.key_heads;
      if (on_amx && on_amx->backward(n, key_head)) continue;
      if (!pass) pass.emplace(plan);
      pass->run(n, key_head);
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
