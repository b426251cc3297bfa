// Special functions of one argument, computed in double on registers. Outside the range of a
// register formula the scalar one of candelabra/special is used.
#include <bit>
#include <numeric>

#include "candelabra/arguments/special.hpp"
#include "candelabra/special/bessel.hpp"
#include "drivers/elementwise.hpp"
#include "simd/vec_bessel.hpp"
#include "simd/vec_normal.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

constexpr int64_t work = 30;

// A double formula on registers of either type. If it is valid for a limited range only,
// `Formula::limit` is the largest magnitude, and `Formula::slow_path` handles larger arguments.
template <typename Formula>
struct InDouble {
  static constexpr bool on_vectors = true;
  math::Vec<double> operator()(math::Vec<double> x) const { return Formula::of(x); }
  math::Vec<float> operator()(math::Vec<float> x) const {
    math::Vec<double> low, high;
    to_double(x, low, high);
    return to_float(Formula::of(low), Formula::of(high));
  }
  template <typename T>
  math::Mask<T> outside(math::Vec<T> x) const
    requires requires { Formula::limit; }
  {
    return math::Vec<T>(static_cast<T>(Formula::limit)) < abs(x);
  }
  template <typename T>
  T slow_path(T x) const {
    return static_cast<T>(Formula::slow_path(static_cast<double>(x)));
  }
};
template <math::Vec<double> (*Function)(math::Vec<double>)>
struct Everywhere {
  [[gnu::always_inline]] static math::Vec<double> of(math::Vec<double> x) { return Function(x); }
};
template <math::Vec<double> (*Function)(math::Vec<double>), double (*Slow)(double)>
struct Oscillating : Everywhere<Function> {
  static constexpr double limit = math::vec_trigonometric_limit<double>;
  static double slow_path(double x) { return Slow(x); }
};
struct Airy : Everywhere<math::bessel::airy> {
  static constexpr double limit = 1e5;  // on the left: sine of 2/3 |x|^(3/2)
  static double slow_path(double x) { return math::airy_ai(x); }
};
template <math::Vec<double> (*Function)(math::Vec<double>)>
void add_unary(KernelTable& table, const char* name) {
  table.add<unary<InDouble<Everywhere<Function>>, FloatTypes, work>>(name);
}
template <math::Vec<double> (*Function)(math::Vec<double>), double (*Slow)(double)>
void add_oscillating(KernelTable& table, const char* name) {
  table.add<unary<InDouble<Oscillating<Function, Slow>>, FloatTypes, work>>(name);
}

struct NormalDistribution {
  static constexpr bool on_vectors = true;
  template <typename T>
  math::Vec<T> operator()(math::Vec<T> x) const {
    return math::normal::ndtr(x);
  }
};
struct Entropy {
  static constexpr bool on_vectors = true;
  template <typename T>
  math::Vec<T> operator()(math::Vec<T> x) const {
    const math::Vec<T> zero = T(0);
    const math::Vec<T> result = select(x == zero, zero, -x * math::log(x));
    return select(x < zero, math::Vec<T>(-math::detail::infinity<T>), result);
  }
};

struct Xlog1py {
  static constexpr bool on_vectors = true;
  template <typename T>
  math::Vec<T> operator()(math::Vec<T> x, math::Vec<T> y) const {
    const math::Vec<T> zero = T(0);
    return select(y != y, y, select(x == zero, zero, x * math::log1p(y)));
  }
};

// The magnitude as an unsigned number, which can represent that of the smallest integer.
template <typename T>
auto magnitude(T value) {
  using U = std::make_unsigned_t<T>;
  return value < 0 ? static_cast<U>(U{0} - static_cast<U>(value)) : static_cast<U>(value);
}
struct Gcd {
  template <typename T>
  T operator()(T x, T y) const {
    return static_cast<T>(std::gcd(magnitude(x), magnitude(y)));
  }
};
struct Lcm {
  template <typename T>
  T operator()(T x, T y) const {
    using U = std::make_unsigned_t<T>;
    const U a = magnitude(x), b = magnitude(y), divisor = std::gcd(a, b);
    if (divisor == 0) return 0;
    const T product = static_cast<T>(static_cast<U>(a / divisor * b));
    return product < 0 ? static_cast<T>(U{0} - static_cast<U>(product)) : product;
  }
};

// frexp takes two passes, because mantissa and exponent have different dtypes. Mantissas have a
// magnitude from 1/2 to 1.
struct Mantissa {
  template <typename T>
  T operator()(T x) const {
    int exponent;
    return std::frexp(x, &exponent);
  }
};
template <typename T>
void exponents(void* out, const void* const* in, int64_t n, const void*) {
  const T* x = static_cast<const T*>(in[0]);
  int32_t* o = static_cast<int32_t*>(out);
  for (int64_t i = 0; i < n; ++i) {
    int exponent = 0;
    if (std::isfinite(x[i])) std::frexp(x[i], &exponent);
    o[i] = exponent;
  }
}
void frexp(Call& call) {
  const cb_tensor& self = *arguments::Frexp(call).self;
  dispatch<FloatTypes>(self.dtype, [&]<typename T>() {
    const Mantissa mantissa{};
    using C = compute_t<T>;
    run<1>({loop1<Mantissa, C, C>, &mantissa, heavy}, call.output(0), {&self});
    run<1>({exponents<C>, nullptr, heavy}, call.output(1), {&self});
  });
}

}  // namespace

void register_special(KernelTable& table) {
  using namespace math::bessel;
  add_unary<modified_i<0, false>>(table, "i0");
  add_unary<modified_i<0, true>>(table, "special_i0e");
  add_unary<modified_i<1, false>>(table, "special_i1");
  add_unary<modified_i<1, true>>(table, "special_i1e");
  add_unary<modified_k<0, false>>(table, "special_modified_bessel_k0");
  add_unary<modified_k<1, false>>(table, "special_modified_bessel_k1");
  add_unary<modified_k<0, true>>(table, "special_scaled_modified_bessel_k0");
  add_unary<modified_k<1, true>>(table, "special_scaled_modified_bessel_k1");
  add_oscillating<first_kind<0>, math::bessel_j0>(table, "special_bessel_j0");
  add_oscillating<first_kind<1>, math::bessel_j1>(table, "special_bessel_j1");
  add_oscillating<second_kind<0>, math::bessel_y0>(table, "special_bessel_y0");
  add_oscillating<second_kind<1>, math::bessel_y1>(table, "special_bessel_y1");
  add_oscillating<spherical, math::spherical_bessel_j0>(table, "special_spherical_bessel_j0");
  table.add<unary<InDouble<Airy>, FloatTypes, work>>("special_airy_ai");
  add_unary<math::normal::erfcx>(table, "special_erfcx");
  table.add<unary<NormalDistribution, FloatTypes, work>>("special_ndtr");
  add_unary<math::normal::log_ndtr>(table, "special_log_ndtr");
  add_unary<math::normal::quantile>(table, "special_ndtri");
  table.add<unary<Entropy, FloatTypes, moderate>>("special_entr");
  table.add<binary<Xlog1py, FloatTypes, moderate>>("special_xlog1py");
  table.add<binary<Gcd, IntegerTypes, heavy>>("gcd");
  table.add<binary<Lcm, IntegerTypes, heavy>>("lcm");
  table.add<frexp>("frexp");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
