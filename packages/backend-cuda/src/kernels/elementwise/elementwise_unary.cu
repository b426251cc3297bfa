// Operators of one operand. This file binds the formulas of candelabra/math.hpp and
// candelabra/arithmetic.hpp to dtypes.
#include <cmath>
#include <limits>

#include "candelabra/arguments/elementwise.hpp"
#include "candelabra/arithmetic.hpp"
#include "candelabra/special_functions.hpp"
#include "drivers/complex_inverse.cuh"
#include "drivers/complex_math.cuh"
#include "drivers/elementwise.cuh"

namespace candelabra::cuda {
namespace {

using IntegersAndFloats = RealTypes;
using FloatsAndComplex = decltype(FloatTypes{} + ComplexTypes{});
using BoolAndReals = decltype(BoolType{} + RealTypes{});

template <typename T>
constexpr bool whole = is_integer_v<T>;

// ---- results of the same dtype

struct Neg {
  template <typename T>
  __device__ T operator()(T x) const {
    return static_cast<T>(-x);
  }
};
struct Sign {  // NaN has sign 0, as in PyTorch
  template <typename T>
  __device__ T operator()(T x) const {
    return static_cast<T>(static_cast<int>(T(0) < x) - static_cast<int>(x < T(0)));
  }
};
struct Sgn {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return complex_math::sgn(x);
    else
      return Sign{}(x);
  }
};
struct Identity {
  template <typename T>
  __device__ T operator()(T x) const {
    return x;
  }
};
struct Floor {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (whole<T>)
      return x;
    else
      return math::floor(x);
  }
};
struct Ceil {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (whole<T>)
      return x;
    else
      return math::ceil(x);
  }
};
struct Trunc {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (whole<T>)
      return x;
    else
      return math::trunc(x);
  }
};
struct Frac {
  template <typename T>
  __device__ T operator()(T x) const {
    return x - math::trunc(x);
  }
};
struct Square {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (std::is_same_v<T, bool>)
      return x;
    else
      return static_cast<T>(x * x);
  }
};
struct Conjugate {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return ::cuda::std::conj(x);
    else
      return x;
  }
};
struct Relu {  // keeps NaN
  template <typename T>
  __device__ T operator()(T x) const {
    return x < T(0) ? T(0) : x;
  }
};
struct BitwiseNot {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (std::is_same_v<T, bool>)
      return !x;
    else
      return static_cast<T>(~x);
  }
};
struct Round {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (whole<T>)
      return x;
    else
      return math::round_even(x);
  }
};
template <typename T>
struct RoundDecimals {
  T scale;  // 10^|decimals|
  bool fraction;
  __device__ T operator()(T x) const {
    return fraction ? math::round_even(x * scale) / scale : math::round_even(x / scale) * scale;
  }
};
template <typename T>
struct NanToNum {
  T nan, above, below;
  __device__ T operator()(T x) const {
    T value = x == math::detail::infinity<T> ? above : x == -math::detail::infinity<T> ? below : x;
    return x != x ? nan : value;
  }
  __device__::cuda::std::complex<T> operator()(::cuda::std::complex<T> z) const {
    return {(*this)(z.real()), (*this)(z.imag())};
  }
};

// neg of half precisions only flips the sign bit.
struct FlipSignBit {
  __device__ uint16_t operator()(uint16_t bits) const { return bits ^ 0x8000u; }
};

void neg(Call& call) {
  if (is_half_dtype(call.output().dtype)) {
    return map1<uint16_t>(call, FlipSignBit{});
  }
  unary<Neg, NumberTypes>(call);
}

void round(Call& call) {
  const int64_t decimals = arguments::Round(call).decimals;
  if (decimals == 0) return unary<Round, IntegersAndFloats>(call);
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    auto scale = static_cast<C>(std::pow(10.0, static_cast<double>(std::abs(decimals))));
    map1<T>(call, RoundDecimals<C>{scale, decimals > 0});
  });
}

template <typename T>
constexpr double largest = static_cast<double>(std::numeric_limits<T>::max());
template <>
constexpr double largest<Half> = 65504.0;
template <>
constexpr double largest<BFloat16> = 3.3895313892515355e38;

void nan_to_num(Call& call) {
  const arguments::NanToNum args(call);
  if (is_integer_dtype(call.output().dtype)) return unary<Identity, decltype(BoolType{} + IntegerTypes{})>(call);
  dispatch<FloatsAndComplex>(call.output().dtype, [&]<typename T>() {
    using R = compute_t<real_t<T>>;
    R nan = args.nan ? static_cast<R>(*args.nan) : R(0);
    R above = static_cast<R>(args.posinf.value_or(largest<real_t<T>>));
    R below = static_cast<R>(args.neginf.value_or(-largest<real_t<T>>));
    map1<T>(call, NanToNum<R>{nan, above, below});
  });
}

// ---- floating and complex results

struct Exp {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return ::cuda::std::exp(x);
    else
      return math::exp(x);
  }
};
struct Exp2 {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return complex_math::exp2(x);
    else
      return math::exp2(x);
  }
};
struct Expm1 {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return complex_math::expm1(x);
    else
      return math::expm1(x);
  }
};
struct Log {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return ::cuda::std::log(x);
    else
      return math::log(x);
  }
};
template <int base>
struct Logarithm {
  static_assert(base == 2 || base == 10);
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (base == 2 && is_complex_v<T>)
      return complex_math::log2(x);
    else if constexpr (base == 2)
      return math::log2(x);
    else if constexpr (is_complex_v<T>)
      return ::cuda::std::log10(x);
    else
      return math::log10(x);
  }
};
struct Log1p {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return complex_math::log1p(x);
    else
      return math::log1p(x);
  }
};
struct Sqrt {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return ::cuda::std::sqrt(x);
    else
      return math::sqrt(x);
  }
};
struct Rsqrt {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return T(1) / ::cuda::std::sqrt(x);
    else
      return T(1) / math::sqrt(x);
  }
};
enum class Wave { sine, cosine, tangent };

// The formulas of candelabra/math.hpp are for real numbers and lose digits far from zero.
template <Wave wave>
struct Periodic {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (!is_complex_v<T>)
      if (!(math::abs(x) > math::trigonometric_limit<T>)) return near(x);
    return far(x);
  }

 private:
  template <typename T>
  static __device__ T near(T x) {
    if constexpr (wave == Wave::sine)
      return math::sin(x);
    else if constexpr (wave == Wave::cosine)
      return math::cos(x);
    else
      return math::tan(x);
  }
  template <typename T>
  static __device__ T far(T x) {
    if constexpr (wave == Wave::sine)
      return ::cuda::std::sin(x);
    else if constexpr (wave == Wave::cosine)
      return ::cuda::std::cos(x);
    else
      return ::cuda::std::tan(x);
  }
};
struct Asin {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return complex_math::asin(x);
    else
      return math::asin(x);
  }
};
struct Acos {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return complex_math::acos(x);
    else
      return math::acos(x);
  }
};
struct Atan {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return complex_math::atan(x);
    else
      return math::atan(x);
  }
};
struct Sinh {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return ::cuda::std::sinh(x);
    else
      return math::sinh(x);
  }
};
struct Cosh {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return ::cuda::std::cosh(x);
    else
      return math::cosh(x);
  }
};
struct Tanh {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return ::cuda::std::tanh(x);
    else
      return math::tanh(x);
  }
};
struct Asinh {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return complex_math::asinh(x);
    else
      return math::asinh(x);
  }
};
struct Acosh {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return complex_math::acosh(x);
    else
      return math::acosh(x);
  }
};
struct Atanh {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return complex_math::atanh(x);
    else
      return math::atanh(x);
  }
};
struct Sigmoid {
  template <typename T>
  __device__ T operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return T(1) / (T(1) + ::cuda::std::exp(-x));
    else
      return math::sigmoid(x);
  }
};
struct Erf {
  template <typename T>
  __device__ T operator()(T x) const {
    return math::erf(x);
  }
};
struct Erfc {
  template <typename T>
  __device__ T operator()(T x) const {
    return math::erfc(x);
  }
};
struct Erfinv {
  template <typename T>
  __device__ T operator()(T x) const {
    return math::erfinv(x);
  }
};
struct Lgamma {
  template <typename T>
  __device__ T operator()(T x) const {
    return math::lgamma(x);
  }
};
struct Digamma {
  template <typename T>
  __device__ T operator()(T x) const {
    return math::digamma(x);
  }
};

}  // namespace

void register_elementwise_unary(KernelTable& table) {
  table.add<neg>("neg");
  table.add<unary<Sign, BoolAndReals>>("sign");
  table.add<unary<Sgn, AllTypes>>("sgn");
  table.add<unary<Floor, IntegersAndFloats>>("floor");
  table.add<unary<Ceil, IntegersAndFloats>>("ceil");
  table.add<unary<Trunc, IntegersAndFloats>>("trunc");
  table.add<unary<Frac, FloatTypes>>("frac");
  table.add<unary<Square, AllTypes>>("square");
  table.add<unary<Conjugate, AllTypes>>("conj_physical");
  table.add<unary<Relu, IntegersAndFloats>>("relu");
  table.add<round>("round");
  table.add<unary<BitwiseNot, decltype(BoolType{} + IntegerTypes{})>>("bitwise_not");
  table.add<nan_to_num>("nan_to_num");

  table.add<unary<Heavy<Exp>, FloatsAndComplex>>("exp");
  table.add<unary<Heavy<Exp2>, FloatsAndComplex>>("exp2");
  table.add<unary<Heavy<Expm1>, FloatsAndComplex>>("expm1");
  table.add<unary<Heavy<Log>, FloatsAndComplex>>("log");
  table.add<unary<Heavy<Logarithm<2>>, FloatsAndComplex>>("log2");
  table.add<unary<Heavy<Logarithm<10>>, FloatsAndComplex>>("log10");
  table.add<unary<Heavy<Log1p>, FloatsAndComplex>>("log1p");
  table.add<unary<Heavy<Sqrt>, FloatsAndComplex>>("sqrt");
  table.add<unary<Heavy<Rsqrt>, FloatsAndComplex>>("rsqrt");
  table.add<unary<Heavy<formulas::InverseOf>, FloatsAndComplex>>("reciprocal");
  table.add<unary<Heavy<Periodic<Wave::sine>>, FloatsAndComplex>>("sin");
  table.add<unary<Heavy<Periodic<Wave::cosine>>, FloatsAndComplex>>("cos");
  table.add<unary<Heavy<Periodic<Wave::tangent>>, FloatsAndComplex>>("tan");
  table.add<unary<Heavy<Asin>, FloatsAndComplex>>("asin");
  table.add<unary<Heavy<Acos>, FloatsAndComplex>>("acos");
  table.add<unary<Heavy<Atan>, FloatsAndComplex>>("atan");
  table.add<unary<Heavy<Sinh>, FloatsAndComplex>>("sinh");
  table.add<unary<Heavy<Cosh>, FloatsAndComplex>>("cosh");
  table.add<unary<Heavy<Tanh>, FloatsAndComplex>>("tanh");
  table.add<unary<Heavy<Asinh>, FloatsAndComplex>>("asinh");
  table.add<unary<Heavy<Acosh>, FloatsAndComplex>>("acosh");
  table.add<unary<Heavy<Atanh>, FloatsAndComplex>>("atanh");
  table.add<unary<Heavy<Sigmoid>, FloatsAndComplex>>("sigmoid");
  table.add<unary<Heavy<Erf>, FloatTypes>>("erf");
  table.add<unary<Heavy<Erfc>, FloatTypes>>("erfc");
  table.add<unary<Heavy<Erfinv>, FloatTypes>>("erfinv");
  table.add<unary<Heavy<Lgamma>, FloatTypes>>("lgamma");
  table.add<unary<Heavy<Digamma>, FloatTypes>>("digamma");
}

}  // namespace candelabra::cuda
