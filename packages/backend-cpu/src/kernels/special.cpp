// Special functions: each element by the scalar formula of candelabra/special, in double precision.
#include <bit>
#include <numeric>

#include "../elementwise.hpp"
#include "../vec_math.hpp"
#include "candelabra/special/bessel.hpp"
#include "candelabra/special/gamma.hpp"
#include "candelabra/special/polynomials.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

template <double (*Function)(double)>
struct Of {
  template <typename T>
  T operator()(T x) const {
    return static_cast<T>(Function(static_cast<double>(x)));
  }
};
template <double (*Function)(double, double)>
struct OfTwo {
  template <typename T>
  T operator()(T x, T y) const {
    return static_cast<T>(Function(static_cast<double>(x), static_cast<double>(y)));
  }
};
constexpr int64_t work = 200;

template <double (*Function)(double)>
void add_unary(KernelTable& table, const char* name) {
  table.add<unary<Of<Function>, FloatTypes, work>>(name);
}
template <double (*Function)(double, double)>
void add_binary(KernelTable& table, const char* name) {
  table.add<binary<OfTwo<Function>, FloatTypes, work>>(name);
}

struct Entropy {
  static constexpr bool on_vectors = true;
  template <typename T>
  math::Vec<T> operator()(math::Vec<T> x) const {
    const math::Vec<T> zero = T(0);
    const math::Vec<T> result = select(x == zero, zero, -x * math::log(x));
    return select(x < zero, math::Vec<T>(-math::detail::infinity<T>), result);
  }
};

// Of magnitudes as unsigned numbers: that of the smallest integer is there, too.
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

// The mantissa, of magnitude from 1/2 to 1, and the exponent: two passes, each with its own dtype of results.
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
  dispatch<FloatTypes>(call.tensor(0).dtype, [&]<typename T>() {
    const Mantissa mantissa{};
    using C = compute_t<T>;
    run<1>({loop1<Mantissa, C, C>, &mantissa, heavy}, call.output(0), {&call.tensor(0)});
    run<1>({exponents<C>, nullptr, heavy}, call.output(1), {&call.tensor(0)});
  });
}

}  // namespace

void register_special(KernelTable& table) {
  add_unary<math::i0>(table, "i0");
  add_unary<math::i0e>(table, "special_i0e");
  add_unary<math::i1>(table, "special_i1");
  add_unary<math::i1e>(table, "special_i1e");
  add_unary<math::k0>(table, "special_modified_bessel_k0");
  add_unary<math::k1>(table, "special_modified_bessel_k1");
  add_unary<math::scaled_k0>(table, "special_scaled_modified_bessel_k0");
  add_unary<math::scaled_k1>(table, "special_scaled_modified_bessel_k1");
  add_unary<math::bessel_j0>(table, "special_bessel_j0");
  add_unary<math::bessel_j1>(table, "special_bessel_j1");
  add_unary<math::bessel_y0>(table, "special_bessel_y0");
  add_unary<math::bessel_y1>(table, "special_bessel_y1");
  add_unary<math::spherical_bessel_j0>(table, "special_spherical_bessel_j0");
  add_unary<math::airy_ai>(table, "special_airy_ai");
  add_unary<math::erfcx>(table, "special_erfcx");
  add_unary<math::ndtr>(table, "special_ndtr");
  add_unary<math::log_ndtr>(table, "special_log_ndtr");
  add_unary<math::ndtri>(table, "special_ndtri");
  table.add<unary<Entropy, FloatTypes, moderate>>("special_entr");
  add_binary<math::igamma>(table, "igamma");
  add_binary<math::igammac>(table, "igammac");
  add_binary<math::zeta>(table, "special_zeta");
  add_binary<math::xlog1py>(table, "special_xlog1py");
  add_binary<math::chebyshev_t>(table, "special_chebyshev_polynomial_t");
  add_binary<math::chebyshev_u>(table, "special_chebyshev_polynomial_u");
  add_binary<math::chebyshev_v>(table, "special_chebyshev_polynomial_v");
  add_binary<math::chebyshev_w>(table, "special_chebyshev_polynomial_w");
  add_binary<math::shifted_chebyshev_t>(table, "special_shifted_chebyshev_polynomial_t");
  add_binary<math::shifted_chebyshev_u>(table, "special_shifted_chebyshev_polynomial_u");
  add_binary<math::shifted_chebyshev_v>(table, "special_shifted_chebyshev_polynomial_v");
  add_binary<math::shifted_chebyshev_w>(table, "special_shifted_chebyshev_polynomial_w");
  add_binary<math::hermite_h>(table, "special_hermite_polynomial_h");
  add_binary<math::hermite_he>(table, "special_hermite_polynomial_he");
  add_binary<math::laguerre_l>(table, "special_laguerre_polynomial_l");
  add_binary<math::legendre_p>(table, "special_legendre_polynomial_p");
  table.add<binary<Gcd, IntegerTypes, heavy>>("gcd");
  table.add<binary<Lcm, IntegerTypes, heavy>>("lcm");
  table.add<frexp>("frexp");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
