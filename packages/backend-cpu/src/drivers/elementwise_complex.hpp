// Elementwise functions of complex numbers on registers (vec_complex.hpp), each with its domain.
// Numbers outside it use `slow_path`, element by element.
#pragma once

#include <algorithm>
#include <cmath>

#include "candelabra/formulas/complex.hpp"
#include "drivers/elementwise.hpp"
#include "simd/vec_complex.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// The domains of functions: what lies `inside` is computed on registers.
namespace complex_domains {

using math::VecComplex;
using Inside = math::Mask<double>;
using Real = math::Vec<double>;

struct ModerateSquares {
  static Inside inside(VecComplex z) { return math::parts::moderate_squares(z); }
};
template <int most = 700>
struct GrowsWithReal {
  static Inside inside(VecComplex z) { return math::is_in_sincos_exp_range(z.imag, z.real, most); }
};
template <int most = 700>
struct GrowsWithImag {
  static Inside inside(VecComplex z) { return math::is_in_sincos_exp_range(z.real, z.imag, most); }
};
struct ModerateParts {
  static Inside inside(VecComplex z) {
    return math::parts::zero_or_moderate(z.real) & math::parts::zero_or_moderate(z.imag);
  }
};
struct BesidesMinusOne {
  static Inside inside(VecComplex z) {
    return ModerateParts::inside(z) & ((z.real != Real(-1.0)) | (z.imag != Real(0.0)));
  }
};
struct BesidesOnes {  // 1 and -1
  static Inside inside(VecComplex z) {
    return ModerateParts::inside(z) & ((abs(z.real) != Real(1.0)) | (z.imag != Real(0.0)));
  }
};
struct BesidesImaginaryOnes {  // i and -i
  static Inside inside(VecComplex z) {
    return ModerateParts::inside(z) & ((abs(z.imag) != Real(1.0)) | (z.real != Real(0.0)));
  }
};

}  // namespace complex_domains

namespace complex_formulas {

using math::VecComplex;
using Inside = math::Mask<double>;
using Real = math::Vec<double>;

// A formula of candelabra/formulas/unary.hpp on the numbers of a domain (complex_domains). Other
// numbers are computed one by one.
template <typename Op, typename Domain>
struct OnDomain : Domain {
  static VecComplex of(VecComplex z) { return Op{}(z); }
  template <typename T>
  static T slow_path(T z) {
    return Op{}(z);
  }
};

struct Sgn : complex_domains::ModerateSquares {
  static VecComplex of(VecComplex z) { return sgn(z); }
  template <typename T>
  static T slow_path(T z) {
    return complex_math::sgn(z);
  }
};
struct Reciprocal : complex_domains::ModerateSquares {
  static VecComplex of(VecComplex z) { return reciprocal(z); }
  template <typename T>
  static T slow_path(T z) {
    return T(1) / z;
  }
};
struct Abs : complex_domains::ModerateSquares {
  static Real of(VecComplex z) { return math::parts::magnitude(z); }
  template <typename T>
  static auto slow_path(T z) {
    return std::abs(z);
  }
};
struct Angle {
  static Inside inside(VecComplex z) { return (z.real == z.real) & (z.imag == z.imag); }
  static Real of(VecComplex z) { return atan2(z.imag, z.real); }
  template <typename T>
  static auto slow_path(T z) {
    return std::arg(z);
  }
};
struct Power {
  // Inside where e^(w log z) is neither 0 nor infinite.
  static VecComplex checked(Inside& inside, VecComplex z, VecComplex w) {
    const VecComplex t = log(z), power{fnma(w.imag, t.imag, w.real * t.real), fma(w.imag, t.real, w.real * t.imag)};
    inside = math::parts::moderate_squares(z) & math::is_in_sincos_exp_range(power.imag, power.real);
    return exp(power);
  }
  template <typename T>
  static T slow_path(T z, T w) {
    return complex_math::power(z, w);
  }
};

inline void store(VecComplex z, complex64* to) {
  z.store(to);
}
inline void store(VecComplex z, complex128* to) {
  z.store(to);
}
template <typename T>
inline void store(Real x, T* to) {
  math::parts::store_real(x, to);
}

template <typename Op, typename R, typename... C>
[[gnu::noinline, gnu::cold]] void fix_lanes(Inside inside, R* out, const C*... in) {
  for (int lane = 0; lane < VecComplex::size; ++lane) {
    // Lanes of `inside` are in register order, not in memory order.
    const int offset = lane / 2 + lane % 2 * static_cast<int>(VecComplex::size / 2);
    if (!inside.at(lane)) out[offset] = Op::slow_path(in[offset]...);
  }
}
template <typename Op, typename R, typename... C>
[[gnu::always_inline]] inline void map_register(R* out, const C*... in) {
  alignas(64) R results[VecComplex::size];
  Inside inside;
  if constexpr (requires { Op::checked(inside, VecComplex::load(in)...); }) {
    store(Op::checked(inside, VecComplex::load(in)...), results);
  } else {
    inside = Op::inside(VecComplex::load(in)...);
    store(Op::of(VecComplex::load(in)...), results);
  }
  if (any(!inside)) [[unlikely]]
    fix_lanes<Op>(inside, results, in...);
  std::copy_n(results, VecComplex::size, out);
}
// The tail is padded with ones to a full register.
template <typename Op, typename R, typename C, size_t N>
void loop(void* out, const void* const* in, int64_t n, const void*) {
  constexpr int64_t size = VecComplex::size;
  R* to = static_cast<R*>(out);
  [&]<size_t... K>(std::index_sequence<K...>) {
    int64_t i = 0;
    for (; i + size <= n; i += size) map_register<Op>(to + i, static_cast<const C*>(in[K]) + i...);
    if (i == n) return;
    alignas(64) C padded[N][size];
    R results[size];
    ((std::fill_n(std::copy_n(static_cast<const C*>(in[K]) + i, n - i, padded[K]), size - (n - i), C(1))), ...);
    map_register<Op>(results, padded[K]...);
    std::copy_n(results, n - i, to + i);
  }(std::make_index_sequence<N>{});
}

}  // namespace complex_formulas

// Runs a formula on complex numbers of type T. The result has type R.
template <typename Op, typename T, typename R = T>
void map_complex1(Call& call) {
  run<1>({complex_formulas::loop<Op, R, T, 1>, nullptr, heavy}, call.output(), operands<1>(call));
}
template <typename Op, typename T>
void map_complex2(Call& call) {
  run<2>({complex_formulas::loop<Op, T, T, 2>, nullptr, heavy}, call.output(), operands<2>(call));
}
// A kernel for floating and complex dtypes.
template <typename Op, typename Domain, int64_t Work>
void unary_floating(Call& call) {
  if (!is_complex_dtype(call.output().dtype)) return unary<Op, FloatTypes, Work>(call);
  dispatch<ComplexTypes>(call.output().dtype,
                         [&]<typename T>() { map_complex1<complex_formulas::OnDomain<Op, Domain>, T>(call); });
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
