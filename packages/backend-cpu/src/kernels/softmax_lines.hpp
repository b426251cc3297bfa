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

// The sum of exp(x - largest), and these where `out` is given. Nothing is larger than `largest`.
template <typename V>
double exponentials(const V* x, V* out, int64_t n, V largest) {
  using R = math::Vec<V>;
  const R top = largest;
  alignas(64) V end[R::size];  // the last register, filled up with what has no weight
  double sum = 0;
  constexpr int64_t block = 4096;
  for (int64_t begin = 0; begin < n; begin += block) {
    R parts[2] = {V(0), V(0)};
    int which = 0;
    for_registers<V>(std::min(block, n - begin), [&](int64_t i, int64_t count, auto whole) {
      const V* from = x + begin + i;
      if constexpr (!decltype(whole)::value) {
        std::fill_n(end, R::size, -std::numeric_limits<V>::infinity());
        std::copy_n(from, count, end);
        from = end;
      }
      const R e = exp_of_difference<V>(R::load(from) - top);
      if (out) store_register(out + begin + i, e, count, whole);
      parts[which] = parts[which] + e;
      which ^= 1;
    });
    alignas(64) V each[R::size];
    (parts[0] + parts[1]).store(each);
    for (int width = R::size / 2; width > 0; width /= 2)
      for (int k = 0; k < width; ++k) each[k] += each[k + width];
    sum += static_cast<double>(each[0]);
  }
  return sum;
}

template <typename V>
V largest_of(const V* x, int64_t n) {
  V result = Extremum<V, true>::identity();
  for (int64_t i = 0; i < n; i += reduce::block_length)
    Extremum<V, true>::block(result, x + i, std::min(reduce::block_length, n - i), 0);
  return result;
}

// A line that fits into one register: its exponentials and their sum, in the same order as above, and its largest value. Nothing
// goes by way of memory in other pieces than it is read in: such a line would wait until the one before it has left the processor.
template <typename V>
struct ShortLine {
  using R = math::Vec<V>;
  R x;
  V largest;
  R powers;
  double sum;

  ShortLine(const V* values, int64_t n) {
    alignas(64) static constexpr V lanes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const R none = -std::numeric_limits<V>::infinity();
    x = select(R::load(lanes) < R(static_cast<V>(n)), R::load(values, n), none);
    largest = folded(x, [](auto a, auto b) { return ((a != a) | (a > b)) ? a : b; });
    powers = exp_of_difference<V>(x - R(largest));
    sum = static_cast<double>(folded(powers, [](auto a, auto b) { return a + b; }));
  }

 private:
  // The lane that all were joined in, in halves. By registers: a line must not wait for its own way through memory.
  template <typename F>
  [[gnu::always_inline]] static V folded(R values, F&& join) {
    using Raw = typename reduce::Lanes<V>::type;
    Raw all = reinterpret_cast<Raw>(values.v);
    fold_halves<R::size / 2>(all, join);
    return all[0];
  }
  template <int width, typename Raw, typename F>
  [[gnu::always_inline]] static void fold_halves(Raw& all, F&& join) {
    if constexpr (width > 0) {
      all = join(all, rotated<width>(all, std::make_index_sequence<R::size>{}));
      fold_halves<width / 2>(all, join);
    }
  }
  template <int by, typename Raw, size_t... lane>
  [[gnu::always_inline]] static Raw rotated(Raw all, std::index_sequence<lane...>) {
    return __builtin_shufflevector(all, all, (static_cast<int>(lane) + by) % R::size...);
  }
};

}  // namespace softmax_lines
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
