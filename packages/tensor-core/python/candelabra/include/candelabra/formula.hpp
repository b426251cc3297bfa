// Runtime support for the code that candelabra.utils.cpp_extension generates for operators defined
// by a formula of one element.
#ifndef CANDELABRA_FORMULA_HPP
#define CANDELABRA_FORMULA_HPP

#include "candelabra/extension.hpp"
#include "candelabra/math.hpp"
#include "candelabra/special_functions.hpp"

namespace candelabra::formula {

// The type in which elements of type T are computed.
template <typename T>
struct Compute {
  using Type = T;
};
template <>
struct Compute<extension::BFloat16> {
  using Type = float;
};
#ifdef CANDELABRA_HAS_FLOAT16
template <>
struct Compute<extension::Float16> {
  using Type = float;
};
#endif

template <typename T>
T minimum(T a, T b) {
  return a < b || a != a ? a : b;
}
template <typename T>
T maximum(T a, T b) {
  return a > b || a != a ? a : b;
}
template <typename T>
T clamp(T x, T low, T high) {
  return minimum(maximum(x, low), high);
}
// A conditional expression. For floating-point types both branches are evaluated, so that the
// compiler can vectorize a loop over it. For integers only one is, because the other may raise.
template <typename T, typename First, typename Second>
[[gnu::always_inline]] inline T choose(bool condition, First first, Second second) {
  if constexpr (std::is_floating_point_v<T>) {
    const T a = first(), b = second();
    return condition ? a : b;
  } else {
    return condition ? first() : second();
  }
}
template <typename T>
T sign(T x) {
  return static_cast<T>((x > T(0)) - (x < T(0)));
}
template <typename T>
T absolute(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    return math::abs(x);
  } else {
    return x < T(0) ? static_cast<T>(-x) : x;
  }
}
// Python's //: rounds toward negative infinity. Raises for an integer divisor of zero.
template <typename T>
T floor_divide(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return math::floor(a / b);
  } else {
    if (b == T(0)) extension::fail(CB_RUNTIME_ERROR, "ZeroDivisionError");
    const T quotient = static_cast<T>(a / b);
    return static_cast<T>(quotient - ((a % b != 0) && ((a < T(0)) != (b < T(0)))));
  }
}
template <typename T>
T remainder(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    const T rest = std::fmod(a, b);
    return rest != T(0) && ((rest < T(0)) != (b < T(0))) ? rest + b : rest;
  } else {
    return static_cast<T>(a - floor_divide(a, b) * b);
  }
}
template <typename T>
T divide(T a, T b) {
  if constexpr (!std::is_floating_point_v<T>) {
    if (b == T(0)) extension::fail(CB_RUNTIME_ERROR, "ZeroDivisionError");
  }
  return static_cast<T>(a / b);
}
template <typename T>
T power(T base, T exponent) {
  if constexpr (std::is_floating_point_v<T>) {
    return math::pow(base, exponent);
  } else {
    if (exponent < T(0)) extension::fail(CB_RUNTIME_ERROR, "Integers to negative integer powers are not allowed.");
    T result(1);
    for (; exponent > T(0); exponent = static_cast<T>(exponent >> 1)) {
      if (exponent & T(1)) result = static_cast<T>(result * base);
      base = static_cast<T>(base * base);
    }
    return result;
  }
}

// The iteration space of a result and its inputs, in the order of the result's memory. Dimensions
// that are contiguous in all tensors are merged. The last dimension is the innermost.
template <size_t N>
struct Loop {
  std::vector<int64_t> sizes;
  std::vector<std::array<int64_t, N>> strides;

  explicit Loop(const std::array<const cb_tensor*, N>& tensors) {
    const cb_tensor& out = *tensors[0];
    std::vector<int> order(static_cast<size_t>(out.ndim));
    for (int d = 0; d < out.ndim; ++d) order[static_cast<size_t>(d)] = d;
    std::ranges::stable_sort(order, [&](int a, int b) { return out.strides[a] > out.strides[b]; });
    for (int d : order) {
      const int64_t size = out.sizes[d];
      if (size == 1) continue;
      std::array<int64_t, N> steps;
      // A tensor without dimensions, such as a number, has stride 0.
      for (size_t k = 0; k < N; ++k) steps[k] = tensors[k]->ndim == out.ndim ? tensors[k]->strides[d] : 0;
      bool joined = !sizes.empty();
      for (size_t k = 0; k < N && joined; ++k) joined = strides.back()[k] == steps[k] * size;
      if (joined) {
        sizes.back() *= size;
        strides.back() = steps;
      } else {
        sizes.push_back(size);
        strides.push_back(steps);
      }
    }
    if (sizes.empty()) {
      sizes.push_back(1);
      strides.push_back({});
    }
  }
};

// Calls block(out, inputs, count) on contiguous runs of elements. C is the type in which elements
// of type T are computed. Contiguous memory of type C is passed directly; everything else goes
// through buffers. A formula is therefore compiled once for each C.
template <typename T, typename C, size_t N, typename Block>
void elementwise(const cb_call* call, const std::array<const cb_tensor*, N>& tensors, const Block& block) {
  constexpr int64_t buffered = 512;
  const int64_t total = tensors[0]->numel;
  if (total == 0) return;
  const Loop<N> loop(tensors);
  const size_t last = loop.sizes.size() - 1;
  const int64_t inner = loop.sizes[last];
  const std::array<int64_t, N> step = loop.strides[last];
  const bool direct = std::is_same_v<T, C> && std::ranges::all_of(step, [](int64_t one) { return one == 1; });
  auto row = [&](T* out, const std::array<const T*, N - 1>& in, int64_t count) {
    if constexpr (std::is_same_v<T, C>) {
      if (direct) return block(out, in, count);
    }
    C results[buffered];
    C values[N - 1][buffered];
    std::array<const C*, N - 1> given;
    for (size_t k = 0; k + 1 < N; ++k) given[k] = values[k];
    for (int64_t at = 0; at < count; at += buffered) {
      const int64_t part = std::min(buffered, count - at);
      for (size_t k = 0; k + 1 < N; ++k) {
        const T* from = in[k] + at * step[k + 1];
        for (int64_t i = 0; i < part; ++i) values[k][i] = static_cast<C>(from[i * step[k + 1]]);
      }
      block(results, given, part);
      T* to = out + at * step[0];
      for (int64_t i = 0; i < part; ++i) to[i * step[0]] = static_cast<T>(results[i]);
    }
  };
  extension::parallel(call, total, int64_t{1} << 16, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      int64_t rest = begin / inner;
      const int64_t from = begin % inner, count = std::min(inner - from, end - begin);
      std::array<int64_t, N> offsets;
      for (size_t k = 0; k < N; ++k) offsets[k] = from * step[k];
      for (size_t d = last; d-- > 0;) {
        const int64_t at = rest % loop.sizes[d];
        rest /= loop.sizes[d];
        for (size_t k = 0; k < N; ++k) offsets[k] += at * loop.strides[d][k];
      }
      std::array<const T*, N - 1> in;
      for (size_t k = 1; k < N; ++k) in[k - 1] = static_cast<const T*>(tensors[k]->data) + offsets[k];
      row(static_cast<T*>(tensors[0]->data) + offsets[0], in, count);
      begin += count;
    }
  });
}

}  // namespace candelabra::formula

#endif
