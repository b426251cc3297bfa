// Comparison, logic, selection and interpolation as function objects, shared by the kernels of all
// backends.
#ifndef CANDELABRA_FORMULAS_COMPARE_HPP
#define CANDELABRA_FORMULAS_COMPARE_HPP

#include "candelabra/dtypes.hpp"
#include "candelabra/math.hpp"

namespace candelabra::formulas {

// ---- comparison and logic

struct Equal {
  template <typename T>
  CANDELABRA_FORMULA bool operator()(T a, T b) const {
    return a == b;
  }
};
struct NotEqual {
  template <typename T>
  CANDELABRA_FORMULA bool operator()(T a, T b) const {
    return a != b;
  }
};
struct Less {
  template <typename T>
  CANDELABRA_FORMULA bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessEqual {
  template <typename T>
  CANDELABRA_FORMULA bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct Greater {
  template <typename T>
  CANDELABRA_FORMULA bool operator()(T a, T b) const {
    return a > b;
  }
};
struct GreaterEqual {
  template <typename T>
  CANDELABRA_FORMULA bool operator()(T a, T b) const {
    return a >= b;
  }
};
struct LogicalAnd {
  template <typename T>
  CANDELABRA_FORMULA bool operator()(T a, T b) const {
    return (a != T(0)) & (b != T(0));
  }
};
struct LogicalOr {
  template <typename T>
  CANDELABRA_FORMULA bool operator()(T a, T b) const {
    return (a != T(0)) | (b != T(0));
  }
};
struct LogicalXor {
  template <typename T>
  CANDELABRA_FORMULA bool operator()(T a, T b) const {
    return (a != T(0)) != (b != T(0));
  }
};

// ---- selection

struct Select {
  template <typename T>
  CANDELABRA_FORMULA T operator()(uint8_t condition, T a, T b) const {
    return condition ? a : b;
  }
};

// NaN in any of the three gives NaN; if min > max, the result is max.
struct Clamp {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x, T low, T high) const {
    T raised = x < low || low != low ? low : x;
    T lowered = raised > high || high != high ? high : raised;
    return x != x ? x : low != low ? low : lowered;
  }
};
struct ClampMin {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x, T low) const {
    return x < low || low != low ? (x != x ? x : low) : x;
  }
};
struct ClampMax {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x, T high) const {
    return x > high || high != high ? (x != x ? x : high) : x;
  }
};

// ---- interpolation and sums of three operands

// Computed from the nearer end, so that weight 1 gives `end` exactly.
struct Lerp {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T start, T end, T weight) const {
    if constexpr (kernel::is_complex_v<T>)
      return norm(weight) < kernel::real_t<T>(0.25) ? start + weight * (end - start)
                                                    : end - (end - start) * (T(1) - weight);
    else
      return math::abs(weight) < T(0.5) ? start + weight * (end - start) : end - (end - start) * (T(1) - weight);
  }
};
// `value` is a number of type T; V is T, or a SIMD vector of T.
template <typename T>
struct AddProduct {
  T value;
  template <typename V>
  CANDELABRA_FORMULA V operator()(V self, V a, V b) const {
    return static_cast<V>(self + V(value) * a * b);
  }
};
template <typename T>
struct AddQuotient {
  T value;
  template <typename V>
  CANDELABRA_FORMULA V operator()(V self, V a, V b) const {
    return self + V(value) * (a / b);
  }
};

}  // namespace candelabra::formulas

#endif  // CANDELABRA_FORMULAS_COMPARE_HPP
