// What softmax and cross entropy do to one line of values without gaps: its largest value, exponentials and their sum.
#pragma once

#include <limits>
#include <utility>

#include "../vec_math.hpp"
#include "reduce_extremum.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace softmax_lines {

using reduce::Extremum;

// f(i, n, is_whole) for the registers of a line: element i on, n of them.
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

// exp(x) of what is not above 0. Where that is 0 (a score of -inf, what fills up a register) nothing is computed: powers that
// underflow take the processor hundreds of cycles.
template <typename V>
[[gnu::always_inline]] inline math::Vec<V> exp_of_difference(math::Vec<V> x) {
  const math::Vec<V> zero = V(0);
  const auto nothing = x < math::Vec<V>(math::detail::Format<V>::exp_low);
  return select(nothing, zero, math::parts::exp_unclipped(select(nothing, zero, x)));
}

// The lane that all were joined in, in halves. By registers: a line must not wait for its own way through memory.
template <int width, typename Raw, typename F, size_t... lane>
[[gnu::always_inline]] inline void fold_halves(Raw& all, F&& join, std::index_sequence<lane...> lanes) {
  if constexpr (width > 0) {
    all = join(all, __builtin_shufflevector(all, all, (static_cast<int>(lane) + width) % static_cast<int>(sizeof...(lane))...));
    fold_halves<width / 2>(all, join, lanes);
  }
}
template <typename V, typename F>
[[gnu::always_inline]] inline V folded(math::Vec<V> values, F&& join) {
  using R = math::Vec<V>;
  auto all = reinterpret_cast<typename reduce::Lanes<V>::type>(values.v);
  fold_halves<R::size / 2>(all, join, std::make_index_sequence<R::size>{});
  return all[0];
}

// The first n elements of a register, filled up with what has no weight.
template <typename V>
[[gnu::always_inline]] inline math::Vec<V> filled_up(const V* from, int64_t n) {
  using R = math::Vec<V>;
  alignas(64) static constexpr V lanes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return select(R::load(lanes) < R(static_cast<V>(n)), R::load(from, n), R(-std::numeric_limits<V>::infinity()));
}

// The sum of exp(x - largest), and these where `out` is given. Nothing is larger than `largest`.
template <typename V>
double exponentials(const V* x, V* out, int64_t n, V largest) {
  using R = math::Vec<V>;
  const R top = largest;
  double sum = 0;
  constexpr int64_t block = 4096;
  for (int64_t begin = 0; begin < n; begin += block) {
    const V* from = x + begin;
    V* to = out ? out + begin : nullptr;
    const int64_t count = std::min(block, n - begin);
    R even = V(0), odd = V(0);
    const auto add = [&](R& part, int64_t i) {
      const R e = exp_of_difference<V>(R::load(from + i) - top);
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
      const R e = exp_of_difference<V>(filled_up(from + i, count - i) - top);
      if (to) e.store(to + i, count - i);
      even = even + e;
    }
    sum += static_cast<double>(folded(even + odd, [](auto a, auto b) { return a + b; }));
  }
  return sum;
}

template <typename V>
[[gnu::always_inline]] inline V largest_of(math::Vec<V> values) {
  return folded(values, [](auto a, auto b) { return ((a != a) | (a > b)) ? a : b; });
}
template <typename V>
V largest_of(const V* x, int64_t n) {
  using R = math::Vec<V>;
  const auto pick = [](R a, R b) { return select((b > a) | (b != b), b, a); };
  R first = filled_up(x, std::min(n, R::size)), second = first;
  int64_t i = R::size;
  for (; i + 2 * R::size <= n; i += 2 * R::size) {
    first = pick(first, R::load(x + i));
    second = pick(second, R::load(x + i + R::size));
  }
  for (; i < n; i += R::size) first = pick(first, filled_up(x + i, std::min(n - i, R::size)));
  return largest_of(pick(first, second));
}

// So many lines of n values are done at once: of each step the processor waits for the result, and meanwhile begins with the next
// line. Long lines give it enough to do.
constexpr int64_t most_lines = 8;
inline int64_t lines_at_once(int64_t n) {
  return n <= 1024 ? most_lines : 1;
}
// Of each line its largest value and the sum of exp(x - largest), and these where `out` is given.
template <typename V>
void statistics_of(const V* const* x, V* const* out, int64_t n, int64_t lines, V* largest, double* sums) {
  for (int64_t j = 0; j < lines; ++j) largest[j] = largest_of(x[j], n);
  for (int64_t j = 0; j < lines; ++j) sums[j] = exponentials<V>(x[j], out ? out[j] : nullptr, n, largest[j]);
}

// A line that fits into one register: its exponentials and their sum, in the same order as above, and its largest value.
template <typename V>
struct ShortLine {
  using R = math::Vec<V>;
  R x;
  V largest;
  R powers;
  double sum;

  ShortLine(const V* values, int64_t n) : x(filled_up(values, n)), largest(largest_of(x)) {
    powers = exp_of_difference<V>(x - R(largest));
    sum = static_cast<double>(folded(powers, [](auto a, auto b) { return a + b; }));
  }
};

}  // namespace softmax_lines
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
