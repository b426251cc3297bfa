// Special functions of two arguments: incomplete gamma functions, the Hurwitz zeta function, and
// orthogonal polynomials.
#include <cmath>

#include "candelabra/arguments/special.hpp"
#include "candelabra/float_index.hpp"
#include "candelabra/positions.hpp"
#include "candelabra/special/gamma.hpp"
#include "candelabra/special/polynomials.hpp"
#include "drivers/elementwise.hpp"
#include "simd/vec_incomplete_gamma.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using math::Mask;
using math::Vec;
using V = Vec<double>;
constexpr int64_t work = 200;

template <double (*Function)(double, double)>
struct ScalarFormula {
  template <typename T>
  T operator()(T x, T y) const {
    return static_cast<T>(Function(static_cast<double>(x), static_cast<double>(y)));
  }
};

// Calls a double formula with registers of either type.
template <typename F>
[[gnu::always_inline]] inline V in_double(F&& f, V x, V y) {
  return f(x, y);
}
template <typename F>
[[gnu::always_inline]] inline Vec<float> in_double(F&& f, Vec<float> x, Vec<float> y) {
  V a[2], b[2];
  to_double(x, a[0], a[1]);
  to_double(y, b[0], b[1]);
  return to_float(f(a[0], b[0]), f(a[1], b[1]));
}

template <bool upper>
struct IncompleteGamma {
  static constexpr bool on_vectors = true;
  template <typename T>
  Vec<T> operator()(Vec<T> a, Vec<T> x) const {
    constexpr double rounding = sizeof(T) == 4 ? 1e-10 : 1e-17;
    return in_double([](V order, V number) { return math::incomplete::regularized<upper>(order, number, rounding); }, a,
                     x);
  }
  template <typename T>
  Mask<T> outside(Vec<T> a, Vec<T> x) const {
    return !math::incomplete::is_ordinary(a, x);
  }
  template <typename T>
  T slow_path(T a, T x) const {
    return static_cast<T>(upper ? math::igammac(a, x) : math::igamma(a, x));
  }
};

constexpr double zeta_s_limit = 200, zeta_q_limit = 1e30;
struct Zeta {
  static constexpr bool on_vectors = true;
  template <typename T>
  Vec<T> operator()(Vec<T> s, Vec<T> q) const {
    return in_double(
        [](V power, V first) {
          power = min(V(zeta_s_limit), power);
          first = max(V(1e-300), min(V(zeta_q_limit), first));
          return math::zeta_parts::of_any_power(power, first);
        },
        s, q);
  }
  template <typename T>
  Mask<T> outside(Vec<T> s, Vec<T> q) const {
    using U = Vec<T>;
    return !((U(T(1)) < s) & (s < U(T(zeta_s_limit))) & (U(T(0)) < q) & (q < U(T(zeta_q_limit))));
  }
  template <typename T>
  T slow_path(T s, T q) const {
    return static_cast<T>(math::zeta(s, q));
  }
};
// One integer power for all elements, computed by multiplications. Known is the power, or 0 where
// it is known at run time only.
template <int Known>
struct ZetaOfPower {
  static constexpr bool on_vectors = true;
  math::zeta_parts::OfPower<Known> formula;
  [[gnu::always_inline]] V of(V q) const { return formula(max(V(1e-300), min(V(zeta_q_limit), q))); }
  V operator()(V q) const { return of(q); }
  Vec<float> operator()(Vec<float> q) const {
    V low, high;
    to_double(q, low, high);
    return to_float(of(low), of(high));
  }
  template <typename T>
  Mask<T> outside(Vec<T> q) const {
    using U = Vec<T>;
    return !((U(T(1e-30)) < q) & (q < U(T(zeta_q_limit))));
  }
  template <typename T>
  T slow_path(T q) const {
    return static_cast<T>(math::zeta(formula.power, q));
  }
};

template <typename T>
double constant_of(const cb_tensor& tensor) {
  return static_cast<double>(*data<T>(tensor));
}

void zeta(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    constexpr int highest = 40;
    const cb_tensor& s = *arguments::SpecialZeta(call).self;
    if (call.output().numel && is_constant(s)) {
      const double power = constant_of<T>(s);
      if (power >= 2 && power <= highest && power == std::floor(power)) {
        const auto run = [&]<int Known>() {
          map1<T>(call, ZetaOfPower<Known>{math::zeta_parts::OfPower<Known>(index_from_float(power, 2, highest))},
                  work / 4, positions::special_zeta::other);
        };
        return power == 2   ? run.template operator()<2>()
               : power == 3 ? run.template operator()<3>()
               : power == 4 ? run.template operator()<4>()
                            : run.template operator()<0>();
      }
    }
    map2<T>(call, Zeta{}, work);
  });
}

// Three-term recurrences (Abramowitz and Stegun, chapter 22): p_0 = 1, p_1 = first(x), p_(k + 1) =
// next(k, x, p_k, p_(k - 1)).
struct Chebyshev {
  static V next(double, V x, V now, V before) { return (x + x) * now - before; }
};
struct ChebyshevT : Chebyshev {
  static V first(V x) { return x; }
};
struct ChebyshevU : Chebyshev {
  static V first(V x) { return x + x; }
};
struct ChebyshevV : Chebyshev {
  static V first(V x) { return (x + x) - 1.0; }
};
struct ChebyshevW : Chebyshev {
  static V first(V x) { return (x + x) + 1.0; }
};
struct HermiteH {
  static V first(V x) { return x + x; }
  static V next(double k, V x, V now, V before) { return 2.0 * (x * now - k * before); }
};
struct HermiteHe {
  static V first(V x) { return x; }
  static V next(double k, V x, V now, V before) { return x * now - k * before; }
};
struct Laguerre {
  static V first(V x) { return 1.0 - x; }
  static V next(double k, V x, V now, V before) { return ((2 * k + 1 - x) * now - k * before) * (1 / (k + 1)); }
};
struct Legendre {
  static V first(V x) { return x; }
  static V next(double k, V x, V now, V before) { return ((2 * k + 1) * x * now - k * before) * (1 / (k + 1)); }
};

// One degree for all elements.
template <typename Recurrence, bool shifted>
struct OfDegree {
  static constexpr bool on_vectors = true;
  int degree;
  [[gnu::always_inline]] V of(V x) const {
    if constexpr (shifted) x = (x + x) - 1.0;
    if (degree == 0) return V(1.0);
    V before = V(1.0), now = Recurrence::first(x);
    for (int k = 1; k < degree; ++k) {
      const V after = Recurrence::next(k, x, now, before);
      before = now;
      now = after;
    }
    return now;
  }
  V operator()(V x) const { return of(x); }
  Vec<float> operator()(Vec<float> x) const {
    V low, high;
    to_double(x, low, high);
    return to_float(of(low), of(high));
  }
};
// All polynomials have the arguments (self, n).
template <typename Recurrence, bool shifted, double (*Function)(double, double)>
void polynomial(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    constexpr int highest = 100;  // above, some scalar formulas use trigonometric forms
    const cb_tensor& n = *arguments::SpecialChebyshevPolynomialT(call).n;
    if (call.output().numel && is_constant(n)) {
      const double degree = constant_of<T>(n);
      if (degree >= 0 && degree <= highest) {
        const int whole = index_from_float(degree, 0, highest);
        return map1<T>(call, OfDegree<Recurrence, shifted>{whole}, moderate + whole);
      }
    }
    map2<T>(call, ScalarFormula<Function>{}, work);
  });
}

}  // namespace

void register_special_binary(KernelTable& table) {
  table.add<binary<IncompleteGamma<false>, FloatTypes, work>>("igamma");
  table.add<binary<IncompleteGamma<true>, FloatTypes, work>>("igammac");
  table.add<zeta>("special_zeta");
  table.add<polynomial<ChebyshevT, false, math::chebyshev_t>>("special_chebyshev_polynomial_t");
  table.add<polynomial<ChebyshevU, false, math::chebyshev_u>>("special_chebyshev_polynomial_u");
  table.add<polynomial<ChebyshevV, false, math::chebyshev_v>>("special_chebyshev_polynomial_v");
  table.add<polynomial<ChebyshevW, false, math::chebyshev_w>>("special_chebyshev_polynomial_w");
  table.add<polynomial<ChebyshevT, true, math::shifted_chebyshev_t>>("special_shifted_chebyshev_polynomial_t");
  table.add<polynomial<ChebyshevU, true, math::shifted_chebyshev_u>>("special_shifted_chebyshev_polynomial_u");
  table.add<polynomial<ChebyshevV, true, math::shifted_chebyshev_v>>("special_shifted_chebyshev_polynomial_v");
  table.add<polynomial<ChebyshevW, true, math::shifted_chebyshev_w>>("special_shifted_chebyshev_polynomial_w");
  table.add<polynomial<HermiteH, false, math::hermite_h>>("special_hermite_polynomial_h");
  table.add<polynomial<HermiteHe, false, math::hermite_he>>("special_hermite_polynomial_he");
  table.add<polynomial<Laguerre, false, math::laguerre_l>>("special_laguerre_polynomial_l");
  table.add<polynomial<Legendre, false, math::legendre_p>>("special_legendre_polynomial_p");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
