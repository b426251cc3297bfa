// Magnitude, angle, sign and finiteness of numbers; complex numbers from their parts.
#include <cmath>
#include <limits>

#include "candelabra/arguments/elementwise.hpp"
#include "candelabra/math.hpp"
#include "drivers/elementwise.hpp"
#include "drivers/elementwise_complex.hpp"
#include "simd/half_conversions.hpp"
#include "simd/half_registers.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using BoolAndReals = decltype(BoolType{} + RealTypes{});

template <typename T>
constexpr bool whole = is_integer_v<T>;

struct Abs {
  template <typename T>
  auto operator()(T x) const {
    if constexpr (whole<T>)
      return static_cast<T>(x < T(0) ? -x : x);
    else
      return math::abs(x);
  }
};
// abs on the bits of half precisions.
struct ClearSignBit {
  uint16_t operator()(uint16_t bits) const { return bits & 0x7fffu; }
};
struct Angle {  // of a real number: 0 or pi; NaN stays
  template <typename T>
  auto operator()(T x) const {
    return x != x ? x : x < T(0) ? static_cast<T>(3.14159265358979323846) : T(0);
  }
};
// abs, angle: the same schema
template <typename Op, typename OfComplex>
void to_real(Call& call) {
  const arguments::Abs args(call);
  const cb_tensor& self = *args.self;
  if (!is_complex_dtype(self.dtype)) {
    if constexpr (std::is_same_v<Op, Abs>) {
      if (!is_half_dtype(self.dtype)) return unary<Op, RealTypes, light>(call);
      static constexpr ClearSignBit op{};
      return run<1>({loop1<ClearSignBit, uint16_t, uint16_t>, &op, light, false}, call.output(), {&self});
    } else {
      return unary<Op, FloatTypes, light>(call);
    }
  }
  dispatch<ComplexTypes>(self.dtype, [&]<typename T>() { map_complex1<OfComplex, T, real_t<T>>(call); });
}

struct IsNan {
  template <typename T>
  bool operator()(T x) const {
    return x != x;
  }
};
struct IsInf {
  template <typename T>
  bool operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return (*this)(x.real()) || (*this)(x.imag());
    else if constexpr (whole<T>)
      return false;
    else
      return math::abs(x) == math::detail::infinity<T>;
  }
};
struct IsFinite {
  template <typename T>
  bool operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return (*this)(x.real()) && (*this)(x.imag());
    else if constexpr (whole<T>)
      return true;
    else
      return math::abs(x) <= std::numeric_limits<T>::max();
  }
};
struct IsPosInf {
  template <typename T>
  bool operator()(T x) const {
    if constexpr (whole<T>)
      return false;
    else
      return x == math::detail::infinity<T>;
  }
};
struct IsNegInf {
  template <typename T>
  bool operator()(T x) const {
    if constexpr (whole<T>)
      return false;
    else
      return x == -math::detail::infinity<T>;
  }
};
struct SignBit {
  template <typename T>
  bool operator()(T x) const {
    if constexpr (whole<T>)
      return x < T(0);
    else
      return math::detail::bits_of(x) < 0;
  }
};
struct LogicalNot {
  template <typename T>
  bool operator()(T x) const {
    return x == T(0);
  }
};

template <typename T>
struct MakeComplex {
  std::complex<T> operator()(T real, T imaginary) const { return {real, imaginary}; }
};
template <typename T>
struct Polar {
  std::complex<T> operator()(T magnitude, T angle) const {
    return {magnitude * std::cos(angle), magnitude * std::sin(angle)};
  }
};
template <template <typename> typename Op, int64_t Work>
void from_parts(Call& call) {
  const auto in = operands<2>(call);
  dispatch<FullFloatTypes>(in[0]->dtype, [&]<typename T>() {
    static constexpr Op<T> op{};
    run<2>({loop2<Op<T>, std::complex<T>, T, T>, &op, Work}, call.output(), in);
  });
}

#ifdef __AVX512F__
template <typename T>
void widen_bits(const uint16_t* in, float* out, int64_t n) {
  widen(reinterpret_cast<const T*>(in), out, n);
}
template <typename T>
void narrow_bits(const float* in, uint16_t* out, int64_t n) {
  narrow(in, reinterpret_cast<T*>(out), n);
}
#endif

}  // namespace

void register_elementwise_parts(KernelTable& table) {
#ifdef __AVX512F__
  use_half_conversions({widen_bits<Half>, widen_bits<BFloat16>, narrow_bits<Half>, narrow_bits<BFloat16>});
#endif
  table.add<to_real<Abs, complex_formulas::Abs>>("abs");
  table.add<to_real<Angle, complex_formulas::Angle>>("angle");
  table.add<unary_bool<IsNan, AllTypes, light>>("isnan");
  table.add<unary_bool<IsInf, AllTypes, light>>("isinf");
  table.add<unary_bool<IsFinite, AllTypes, light>>("isfinite");
  table.add<unary_bool<IsPosInf, BoolAndReals, light>>("isposinf");
  table.add<unary_bool<IsNegInf, BoolAndReals, light>>("isneginf");
  table.add<unary_bool<SignBit, BoolAndReals, light>>("signbit");
  table.add<unary_bool<LogicalNot, AllTypes, light>>("logical_not");
  table.add<from_parts<MakeComplex, light>>("complex");
  table.add<from_parts<Polar, heavy>>("polar");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
