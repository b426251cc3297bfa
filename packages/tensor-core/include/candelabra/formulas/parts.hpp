// Magnitude, angle, sign bit and classification (isnan, isinf, ...) of numbers, and complex numbers
// from their parts, as function objects shared by the kernels of all backends.
#ifndef CANDELABRA_FORMULAS_PARTS_HPP
#define CANDELABRA_FORMULAS_PARTS_HPP

#include <cmath>
#include <limits>

#include "candelabra/dtypes.hpp"
#include "candelabra/math.hpp"

namespace candelabra::formulas {

using kernel::is_complex_v;
using kernel::is_integer_v;

struct Abs {
  template <typename T>
  CANDELABRA_FORMULA auto operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return abs(x);
    else if constexpr (is_integer_v<T>)
      return static_cast<T>(x < T(0) ? -x : x);
    else
      return math::abs(x);
  }
};
// abs on the bits of half precisions.
struct ClearSignBit {
  CANDELABRA_FORMULA uint16_t operator()(uint16_t bits) const { return bits & 0x7fffu; }
};
struct Angle {  // a real number has angle 0 or pi; NaN propagates
  template <typename T>
  CANDELABRA_FORMULA auto operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return arg(x);
    else
      return x != x ? x : x < T(0) ? static_cast<T>(3.14159265358979323846) : T(0);
  }
};

struct IsNan {
  template <typename T>
  CANDELABRA_FORMULA bool operator()(T x) const {
    return x != x;
  }
};
struct IsInf {
  template <typename T>
  CANDELABRA_FORMULA bool operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return (*this)(x.real()) || (*this)(x.imag());
    else if constexpr (is_integer_v<T>)
      return false;
    else
      return math::abs(x) == math::detail::infinity<T>;
  }
};
struct IsFinite {
  template <typename T>
  CANDELABRA_FORMULA bool operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return (*this)(x.real()) && (*this)(x.imag());
    else if constexpr (is_integer_v<T>)
      return true;
    else
      return math::abs(x) <= std::numeric_limits<T>::max();
  }
};
struct IsPosInf {
  template <typename T>
  CANDELABRA_FORMULA bool operator()(T x) const {
    if constexpr (is_integer_v<T>)
      return false;
    else
      return x == math::detail::infinity<T>;
  }
};
struct IsNegInf {
  template <typename T>
  CANDELABRA_FORMULA bool operator()(T x) const {
    if constexpr (is_integer_v<T>)
      return false;
    else
      return x == -math::detail::infinity<T>;
  }
};
struct SignBit {
  template <typename T>
  CANDELABRA_FORMULA bool operator()(T x) const {
    if constexpr (is_integer_v<T>)
      return x < T(0);
    else
      return math::detail::bits_of(x) < 0;
  }
};
struct LogicalNot {
  template <typename T>
  CANDELABRA_FORMULA bool operator()(T x) const {
    return x == T(0);
  }
};

// Z is the backend's complex type.
template <typename Z>
struct MakeComplex {
  using T = typename Z::value_type;
  CANDELABRA_FORMULA Z operator()(T real, T imaginary) const { return {real, imaginary}; }
};
template <typename Z>
struct Polar {
  using T = typename Z::value_type;
  CANDELABRA_FORMULA Z operator()(T magnitude, T angle) const {
    return {magnitude * std::cos(angle), magnitude * std::sin(angle)};
  }
};

}  // namespace candelabra::formulas

#endif  // CANDELABRA_FORMULAS_PARTS_HPP
