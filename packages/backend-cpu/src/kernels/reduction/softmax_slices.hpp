// Shared by softmax and cross entropy: the maximum of a contiguous slice, its exponentials and
// their sum.
#pragma once

#include <limits>
#include <utility>

#include "kernels/reduction/reduce_aminmax.hpp"
#include "simd/vec_math.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace softmax_lines {

using reduce::Extremum;

// Calls f(i, n, is_whole) for each register of a slice: n elements from i on.
template <typename V, typename F>
[[gnu::always_inline]] inline void for_registers(int64_t n, F&& f) {
  constexpr int64_t size = math::Vec<V>::size;
  int64_t i = 0;
  for (; i + size <= n; i += size) f(i, size, std::true_type{});
  if (i < n) f(i, n - i, std::false_type{});
}
template <typename V, typename Whole>
[[gnu::always_inline]] inline math::Vec<V> load_register(const V* from, int64_t n, Whole) {
  if constexpr (Whole::value)
    return math::Vec<V>::load(from);
  else
    return math::Vec<V>::load(from, n);
}
template <typename V, typename Whole>
[[gnu::always_inline]] inline void store_register(V* to, math::Vec<V> value, int64_t n, Whole) {
  if constexpr (Whole::value)
    value.store(to);
  else
    value.store(to, n);
}

// exp(x) for x <= 0. Lanes that underflow to 0 (scores of -inf, padding) are masked, because
// denormal arithmetic is very slow.
template <typename V>
[[gnu::always_inline]] inline math::Vec<V> exp_of_difference(math::Vec<V> x) {
  const math::Vec<V> zero = V(0);
  const auto underflows = x < math::Vec<V>(math::detail::Format<V>::exp_low);
  return select(underflows, zero, math::parts::exp_unclipped(select(underflows, zero, x)));
}

// Reduces the lanes of a register by halves. It stays in registers: a store and reload would add
// latency to every slice.
template <int width, typename Raw, typename F, size_t... lane>
[[gnu::always_inline]] inline void reduce_halves(Raw& all, F&& join, std::index_sequence<lane...> lanes) {
  if constexpr (width > 0) {
    all = join(all, __builtin_shufflevector(all, all,
                                            (static_cast<int>(lane) + width) % static_cast<int>(sizeof...(lane))...));
    reduce_halves<width / 2>(all, join, lanes);
  }
}
template <typename V, typename F>
[[gnu::always_inline]] inline V reduce_lanes(math::Vec<V> values, F&& join) {
  using R = math::Vec<V>;
  auto all = reinterpret_cast<typename reduce::Lanes<V>::type>(values.v);
  reduce_halves<R::size / 2>(all, join, std::make_index_sequence<R::size>{});
  return all[0];
}

// Loads the first n lanes and pads the others with -infinity, whose exponential is 0.
template <typename V>
[[gnu::always_inline]] inline math::Vec<V> load_padded(const V* from, int64_t n) {
  using R = math::Vec<V>;
  alignas(64) static constexpr V lanes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return select(R::load(lanes) < R(static_cast<V>(n)), R::load(from, n), R(-std::numeric_limits<V>::infinity()));
}

// The sum of exp(x - largest), where `largest` is the maximum. Also stores the exponentials if
// `out` is not null.
template <typename V>
double sum_exp(const V* x, V* out, int64_t n, V largest) {
  using R = math::Vec<V>;
  const R maximum = largest;
  double sum = 0;
  constexpr int64_t block = 4096;
  for (int64_t begin = 0; begin < n; begin += block) {
    const V* from = x + begin;
    V* to = out ? out + begin : nullptr;
    const int64_t count = std::min(block, n - begin);
    R even = V(0), odd = V(0);
    const auto add = [&](R& part, int64_t i) {
      const R e = exp_of_difference<V>(R::load(from + i) - maximum);
      if (to) e.store(to + i);
      part = part + e;
    };
    int64_t i = 0;
    for (; i + 2 * R::size <= count; i += 2 * R::size) {
      add(even, i);
      add(odd, i + R::size);
    }
    if (i + R::size <= count) {
      add(even, i);
      i += R::size;
      std::swap(even, odd);
    }
    if (i < count) {
      const R e = exp_of_difference<V>(load_padded(from + i, count - i) - maximum);
      if (to) e.store(to + i, count - i);
      even = even + e;
    }
    sum += static_cast<double>(reduce_lanes(even + odd, [](auto a, auto b) { return a + b; }));
  }
  return sum;
}

template <typename V>
[[gnu::always_inline]] inline V largest_of(math::Vec<V> values) {
  return reduce_lanes(values, [](auto a, auto b) { return ((a != a) | (a > b)) ? a : b; });
}
template <typename V>
V largest_of(const V* x, int64_t n) {
  using R = math::Vec<V>;
  const auto pick = [](R a, R b) { return select((b > a) | (b != b), b, a); };
  R first = load_padded(x, std::min(n, R::size)), second = first;
  int64_t i = R::size;
  for (; i + 2 * R::size <= n; i += 2 * R::size) {
    first = pick(first, R::load(x + i));
    second = pick(second, R::load(x + i + R::size));
  }
  for (; i < n; i += R::size) first = pick(first, load_padded(x + i, std::min(n - i, R::size)));
  return largest_of(pick(first, second));
}

// The number of slices of n values processed at once. The steps of a short slice are latency bound,
// so that several slices are interleaved.
constexpr int64_t max_slices = 8;
inline int64_t slice_batch(int64_t n) {
  return n <= 1024 ? max_slices : 1;
}
// For each slice the maximum and the sum of exp(x - maximum). Also stores the exponentials if `out`
// is not null.
template <typename V>
void statistics_of(const V* const* x, V* const* out, int64_t n, int64_t slices, V* largest, double* sums) {
  for (int64_t j = 0; j < slices; ++j) largest[j] = largest_of(x[j], n);
  for (int64_t j = 0; j < slices; ++j) sums[j] = sum_exp<V>(x[j], out ? out[j] : nullptr, n, largest[j]);
}

// A slice that fits into one register: its maximum, its exponentials and their sum, in the order of
// sum_exp().
template <typename V>
struct ShortSlice {
  using R = math::Vec<V>;
  R x;
  V largest;
  R exponentials;
  double sum;

  ShortSlice(const V* values, int64_t n) : x(load_padded(values, n)), largest(largest_of(x)) {
    exponentials = exp_of_difference<V>(x - R(largest));
    sum = static_cast<double>(reduce_lanes(exponentials, [](auto a, auto b) { return a + b; }));
  }
};

}  // namespace softmax_lines
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
