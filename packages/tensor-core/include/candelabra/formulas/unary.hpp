// Operators of one operand as function objects, shared by the kernels of all backends.
//
// A functor computes real numbers with the functions of candelabra/math.hpp and complex numbers
// with those of their library. One with `on_vectors` also accepts a backend's SIMD vector type:
// its functions are overloads in candelabra::math, declared before this header. So are asin, acos,
// atan, asinh, acosh and atanh of the backend's complex type.
#ifndef CANDELABRA_FORMULAS_UNARY_HPP
#define CANDELABRA_FORMULAS_UNARY_HPP

#include <cmath>
#include <limits>
#include <type_traits>

#include "candelabra/dtypes.hpp"
#include "candelabra/formulas/complex.hpp"
#include "candelabra/special_functions.hpp"

namespace candelabra::formulas {

using kernel::is_complex_v;
using kernel::is_integer_v;

// ---- results of the same dtype

struct Identity {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    return x;
  }
};
struct Neg {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    return static_cast<T>(-x);
  }
};
// neg on the bits of half precisions.
struct FlipSignBit {
  CANDELABRA_FORMULA uint16_t operator()(uint16_t bits) const { return bits ^ 0x8000u; }
};
struct Sign {  // NaN has sign 0, as in PyTorch
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    return static_cast<T>(static_cast<int>(T(0) < x) - static_cast<int>(x < T(0)));
  }
};
struct Sgn {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return complex_math::sgn(x);
    else
      return Sign{}(x);
  }
};
struct Floor {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    if constexpr (is_integer_v<T>)
      return x;
    else
      return math::floor(x);
  }
};
struct Ceil {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    if constexpr (is_integer_v<T>)
      return x;
    else
      return math::ceil(x);
  }
};
struct Trunc {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    if constexpr (is_integer_v<T>)
      return x;
    else
      return math::trunc(x);
  }
};
struct Round {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    if constexpr (is_integer_v<T>)
      return x;
    else
      return math::round_even(x);
  }
};
template <typename T>
struct RoundDecimals {
  T scale;  // 10^|decimals|
  bool fraction;
  CANDELABRA_FORMULA T operator()(T x) const {
    return fraction ? math::round_even(x * scale) / scale : math::round_even(x / scale) * scale;
  }
};
struct Frac {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    return x - math::trunc(x);
  }
};
struct Square {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    if constexpr (std::is_same_v<T, bool>)
      return x;
    else
      return static_cast<T>(x * x);
  }
};
struct Conjugate {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return conj(x);
    else
      return x;
  }
};
struct Relu {  // NaN propagates
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    return x < T(0) ? T(0) : x;
  }
};
struct BitwiseNot {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    if constexpr (std::is_same_v<T, bool>)
      return !x;
    else
      return static_cast<T>(~x);
  }
};

// The largest finite number of a dtype, by which nan_to_num replaces infinity.
template <typename T>
constexpr double largest_finite = static_cast<double>(std::numeric_limits<T>::max());
template <>
inline constexpr double largest_finite<kernel::Half> = 65504.0;
template <>
inline constexpr double largest_finite<kernel::BFloat16> = 3.3895313892515355e38;

template <typename T>
struct NanToNum {
  T nan, above, below;
  CANDELABRA_FORMULA T operator()(T x) const {
    T value = x == math::detail::infinity<T> ? above : x == -math::detail::infinity<T> ? below : x;
    return x != x ? nan : value;
  }
  template <typename Z>
    requires is_complex_v<Z>
  CANDELABRA_FORMULA Z operator()(Z z) const {
    return {(*this)(z.real()), (*this)(z.imag())};
  }
};

// ---- floating and complex results

struct Exp {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return exp(x);
    else
      return math::exp(x);
  }
};
struct Exp2 {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return complex_math::exp2(x);
    else
      return math::exp2(x);
  }
};
struct Expm1 {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return complex_math::expm1(x);
    else
      return math::expm1(x);
  }
};
struct Log {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return log(x);
    else
      return math::log(x);
  }
};
struct Log2 {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return complex_math::log2(x);
    else
      return math::log2(x);
  }
};
struct Log10 {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return log10(x);
    else
      return math::log10(x);
  }
};
struct Log1p {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return complex_math::log1p(x);
    else
      return math::log1p(x);
  }
};
struct Sqrt {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return sqrt(x);
    else
      return math::sqrt(x);
  }
};
struct Rsqrt {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return T(1) / sqrt(x);
    else
      return math::rsqrt(x);
  }
};
struct Reciprocal {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    return T(1) / x;
  }
};
// The real formulas reduce arguments up to a limit, beyond which `slow_path` is the C library's.
struct Sin {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T slow_path(T x) const {
    return std::sin(x);
  }
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return sin(x);
    else
      return math::sin(x);
  }
};
struct Cos {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T slow_path(T x) const {
    return std::cos(x);
  }
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return cos(x);
    else
      return math::cos(x);
  }
};
struct Tan {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T slow_path(T x) const {
    return std::tan(x);
  }
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return tan(x);
    else
      return math::tan(x);
  }
};
struct Asin {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    return math::asin(x);
  }
};
struct Acos {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    return math::acos(x);
  }
};
struct Atan {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    return math::atan(x);
  }
};
struct Sinh {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return sinh(x);
    else
      return math::sinh(x);
  }
};
struct Cosh {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return cosh(x);
    else
      return math::cosh(x);
  }
};
struct Tanh {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return tanh(x);
    else
      return math::tanh(x);
  }
};
struct Asinh {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    return math::asinh(x);
  }
};
struct Acosh {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    return math::acosh(x);
  }
};
struct Atanh {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    return math::atanh(x);
  }
};
struct Sigmoid {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return T(1) / (T(1) + exp(-x));
    else
      return math::sigmoid(x);
  }
};
struct Erf {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    return math::erf(x);
  }
};
struct Erfc {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    return math::erfc(x);
  }
};
struct Erfinv {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    return math::erfinv(x);
  }
};
struct Lgamma {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    return math::lgamma(x);
  }
};
struct Digamma {
  static constexpr bool on_vectors = true;
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    return math::digamma(x);
  }
};

// ---- powers with a common exponent

struct Cube {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    return x * x * x;
  }
};
struct InverseSquare {
  template <typename T>
  CANDELABRA_FORMULA T operator()(T x) const {
    return T(1) / (x * x);
  }
};

}  // namespace candelabra::formulas

#endif  // CANDELABRA_FORMULAS_UNARY_HPP
