// The maximum or minimum; NaN if any value is NaN.
#pragma once

#include <limits>

#include "kernels/reduction/reduce.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace reduce {

// GCC vectors of the register width, for loops that the compiler would not vectorize by itself.
template <typename T>
struct Lanes {
#ifdef __AVX512F__
  static constexpr int bytes = 64;
#else
  static constexpr int bytes = 32;
#endif
  static constexpr int count = bytes / static_cast<int>(sizeof(T));
  typedef T type __attribute__((vector_size(bytes)));
  static type load(const T* from) {
    type result;
    __builtin_memcpy(&result, from, sizeof result);
    return result;
  }
  static void store(T* to, type value) { __builtin_memcpy(to, &value, sizeof value); }
};

template <typename T>
constexpr T lowest_value =
    std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
template <typename T>
constexpr T highest_value =
    std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();

template <typename T, bool Largest>
struct Extremum {
  using Value = T;
  using Acc = T;
  static constexpr bool ordered = false;

  static constexpr Acc identity() { return Largest ? lowest_value<T> : highest_value<T>; }

  template <typename U>  // T or a vector of T
  [[gnu::always_inline]] static U pick(U a, U b) {
    if constexpr (std::is_integral_v<T>)
      return (Largest ? b > a : b < a) ? b : a;
    else
      return ((Largest ? b > a : b < a) | (b != b)) ? b : a;
  }

  static T of(const T* values, int64_t n) {
    using L = Lanes<T>;
    if (n < L::count) {
      T result = identity();
      for (int64_t i = 0; i < n; ++i) result = pick(result, values[i]);
      return result;
    }
    typename L::type a = L::load(values);
    int64_t i = L::count;
    if (n >= 4 * L::count) {
      typename L::type b = L::load(values + L::count), c = L::load(values + 2 * L::count),
                       d = L::load(values + 3 * L::count);
      for (i = 4 * L::count; i + 4 * L::count <= n; i += 4 * L::count) {
        a = pick(a, L::load(values + i));
        b = pick(b, L::load(values + i + L::count));
        c = pick(c, L::load(values + i + 2 * L::count));
        d = pick(d, L::load(values + i + 3 * L::count));
      }
      a = pick(pick(a, b), pick(c, d));
    }
    for (; i + L::count <= n; i += L::count) a = pick(a, L::load(values + i));
    a = pick(a, L::load(values + n - L::count));  // the tail; an element seen twice changes nothing
    alignas(L::bytes) T lanes[L::count];
    L::store(lanes, a);
    for (int half = L::count / 2; half > 0; half /= 2)
      for (int k = 0; k < half; ++k) lanes[k] = pick(lanes[k], lanes[k + half]);
    return lanes[0];
  }

  static void block(Acc& acc, const T* values, int64_t n, int64_t) { acc = pick(acc, of(values, n)); }

  static void rows(Acc* acc, const T* values, int64_t stride, int64_t rows, int64_t columns, int64_t) {
    using L = Lanes<T>;
    int64_t whole = columns - columns % L::count;
    for (int64_t r = 0; r < rows; r += 4) {  // acc is read and written once per four rows
      const T* row = values + r * stride;
      // Missing rows repeat the last one: a value seen twice changes nothing.
      int64_t second = std::min<int64_t>(1, rows - r - 1) * stride, third = std::min<int64_t>(2, rows - r - 1) * stride,
              fourth = std::min<int64_t>(3, rows - r - 1) * stride;
      for (int64_t j = 0; j < whole; j += L::count) {
        typename L::type upper = pick(L::load(row + j), L::load(row + second + j));
        typename L::type lower = pick(L::load(row + third + j), L::load(row + fourth + j));
        L::store(acc + j, pick(L::load(acc + j), pick(upper, lower)));
      }
      for (int64_t j = whole; j < columns; ++j)
        acc[j] = pick(acc[j], pick(pick(row[j], row[second + j]), pick(row[third + j], row[fourth + j])));
    }
  }

  static void merge(Acc& acc, const Acc& later) { acc = pick(acc, later); }
};

}  // namespace reduce
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
