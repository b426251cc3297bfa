// The epilogue of a matrix product, applied while results are in registers or caches: adds a matrix
// or a row (a bias), then applies an activation function.
#pragma once

#include <cstdint>
#include <type_traits>

#include "dtypes.hpp"
#include "gemm/gemm.hpp"
#include "simd/vec_math.hpp"
#include "threads/parallel.hpp"

// Included after the functions of vectors, which its formulas must find.
#include "candelabra/special_functions.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// Keeps NaN.
template <typename V>
[[gnu::always_inline]] inline V activated(Activation activation, V x) {
  using math::select;
  switch (activation) {
    case Activation::relu:
      return select(x < V(0), V(0), x);
    case Activation::gelu:
      return math::gelu(x);
    default:
      return x;
  }
}

// For one number of any dtype. Integers have no gelu, and complex numbers no activation.
template <typename C>
C apply_activation_number(Activation activation, C x) {
  if constexpr (std::is_integral_v<C>) {
    return activation == Activation::relu && x < C(0) ? C(0) : x;
  } else if constexpr (std::is_floating_point_v<C>) {
    if (activation == Activation::gelu) return math::gelu(x);
    return activation == Activation::relu && x < C(0) ? C(0) : x;
  } else {
    return x;
  }
}

// to = activation(to + factor * added) for n contiguous numbers. `added` may be null.
template <Activation activation, typename C>
[[gnu::noinline]] void apply_epilogue_row(const C* added, C factor, C* to, int64_t n) {
  using V = math::Vec<C>;
  const V by(factor);
  const auto step = [&](V sum, auto load, auto store) {
    if (added) sum = math::fma(by, load(added), sum);
    store(activated(activation, sum));
  };
  int64_t i = 0;
  for (; i + V::size <= n; i += V::size)
    step(V::load(to + i), [&](const C* from) { return V::load(from + i); }, [&](V value) { value.store(to + i); });
  if (i < n)
    step(
        V::load(to + i, n - i), [&](const C* from) { return V::load(from + i, n - i); },
        [&](V value) { value.store(to + i, n - i); });
}
template <typename C>
void apply_epilogue_row(Activation activation, const C* added, C factor, C* to, int64_t n) {
  switch (activation) {
    case Activation::relu:
      return apply_epilogue_row<Activation::relu>(added, factor, to, n);
    case Activation::gelu:
      return apply_epilogue_row<Activation::gelu>(added, factor, to, n);
    case Activation::none:
      return apply_epilogue_row<Activation::none>(added, factor, to, n);
  }
}

// Applies the epilogue to the rows of a whole product in memory.
template <typename C>
void apply_epilogue_rows(const Epilogue<C>& finish, C* c, int64_t ldc, int64_t rows, int64_t columns) {
  // The cost that elementwise operators assume for gelu.
  const int64_t work = finish.activation == Activation::gelu ? 8 : 1;
  parallel_for(rows, grain_for(columns * work), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      apply_epilogue_row(finish.activation, finish.added ? finish.added + i * finish.added_step : nullptr,
                         finish.factor, c + i * ldc, columns);
  });
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
