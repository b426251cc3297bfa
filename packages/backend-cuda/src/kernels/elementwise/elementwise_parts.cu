// Magnitude, angle, sign bit and classification (isnan, isinf, ...) of numbers; complex numbers
// from their parts.
#include <cmath>
#include <limits>

#include "candelabra/arguments/elementwise.hpp"
#include "candelabra/math.hpp"
#include "drivers/elementwise.cuh"

namespace candelabra::cuda {
namespace {

using BoolAndReals = decltype(BoolType{} + RealTypes{});

template <typename T>
constexpr bool whole = is_integer_v<T>;

struct Abs {
  template <typename T>
  __device__ auto operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return ::cuda::std::abs(x);
    else if constexpr (whole<T>)
      return static_cast<T>(x < T(0) ? -x : x);
    else
      return math::abs(x);
  }
};
// abs of half precisions only clears the sign bit.
struct ClearSignBit {
  __device__ uint16_t operator()(uint16_t bits) const { return bits & 0x7fffu; }
};
struct Angle {  // a real number has angle 0 or pi; NaN is kept
  template <typename T>
  __device__ auto operator()(T x) const {
    if constexpr (is_complex_v<T>)
      return ::cuda::std::arg(x);
    else
      return x != x ? x : x < T(0) ? static_cast<T>(3.14159265358979323846) : T(0);
  }
};
// abs, angle: the same arguments.
template <typename Op>
void to_real(Call& call) {
  const cb_tensor& self = *arguments::Abs(call).self;
  if (!is_complex_dtype(self.dtype)) {
    if constexpr (std::is_same_v<Op, Abs>) {
      if (!is_half_dtype(self.dtype)) return unary<Op, RealTypes>(call);
      return map1<uint16_t>(call, ClearSignBit{});
    } else {
      return unary<Op, FloatTypes>(call);
    }
  }
  dispatch<ComplexTypes>(self.dtype,
                         [&]<typename T>() { map<Types<real_t<T>>, Types<T>>(call, Op{}, {&call.output()}, {&self}); });
}

struct IsNan {
  template <typename T>
  __device__ bool operator()(T x) const {
    return x != x;
  }
};
struct IsInf {
  template <typename T>
  __device__ bool operator()(T x) const {
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
  __device__ bool operator()(T x) const {
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
  __device__ bool operator()(T x) const {
    if constexpr (whole<T>)
      return false;
    else
      return x == math::detail::infinity<T>;
  }
};
struct IsNegInf {
  template <typename T>
  __device__ bool operator()(T x) const {
    if constexpr (whole<T>)
      return false;
    else
      return x == -math::detail::infinity<T>;
  }
};
struct SignBit {
  template <typename T>
  __device__ bool operator()(T x) const {
    if constexpr (whole<T>)
      return x < T(0);
    else
      return math::detail::bits_of(x) < 0;
  }
};
struct LogicalNot {
  template <typename T>
  __device__ bool operator()(T x) const {
    return x == T(0);
  }
};

template <typename T>
struct MakeComplex {
  __device__::cuda::std::complex<T> operator()(T real, T imaginary) const { return {real, imaginary}; }
};
template <typename T>
struct Polar {
  __device__::cuda::std::complex<T> operator()(T magnitude, T angle) const {
    return {magnitude * ::cuda::std::cos(angle), magnitude * ::cuda::std::sin(angle)};
  }
};
template <template <typename> typename Op>
void from_parts(Call& call) {
  const auto parts = leading_tensors<2>(call);
  dispatch<FullFloatTypes>(parts.front()->dtype, [&]<typename T>() {
    map<Types<::cuda::std::complex<T>>, Types<T, T>>(call, Op<T>{}, {&call.output()}, parts);
  });
}

}  // namespace

void register_elementwise_parts(KernelTable& table) {
  table.add<to_real<Abs>>("abs");
  table.add<to_real<Angle>>("angle");
  table.add<unary_bool<IsNan, AllTypes>>("isnan");
  table.add<unary_bool<IsInf, AllTypes>>("isinf");
  table.add<unary_bool<IsFinite, AllTypes>>("isfinite");
  table.add<unary_bool<IsPosInf, BoolAndReals>>("isposinf");
  table.add<unary_bool<IsNegInf, BoolAndReals>>("isneginf");
  table.add<unary_bool<SignBit, BoolAndReals>>("signbit");
  table.add<unary_bool<LogicalNot, AllTypes>>("logical_not");
  table.add<from_parts<MakeComplex>>("complex");
  table.add<from_parts<Polar>>("polar");
}

}  // namespace candelabra::cuda
