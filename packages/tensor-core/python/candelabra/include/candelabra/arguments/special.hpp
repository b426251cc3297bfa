// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.
// Arguments of the operators of the family special, for kernels:
//
//   const arguments::I0 args(call);
//
// A tensor or number that was not given is a null pointer; other optional arguments are std::optional.
#ifndef CANDELABRA_ARGUMENTS_SPECIAL_HPP
#define CANDELABRA_ARGUMENTS_SPECIAL_HPP

#include <optional>
#include <span>
#include <string_view>

#include "candelabra/kernel.hpp"

namespace candelabra::arguments {

// i0(Tensor self) -> Tensor
struct I0 {
  const cb_tensor* self;

  explicit I0(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// special_i0e(Tensor self) -> Tensor
struct SpecialI0e {
  const cb_tensor* self;

  explicit SpecialI0e(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// special_i1(Tensor self) -> Tensor
struct SpecialI1 {
  const cb_tensor* self;

  explicit SpecialI1(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// special_i1e(Tensor self) -> Tensor
struct SpecialI1e {
  const cb_tensor* self;

  explicit SpecialI1e(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// special_modified_bessel_k0(Tensor self) -> Tensor
struct SpecialModifiedBesselK0 {
  const cb_tensor* self;

  explicit SpecialModifiedBesselK0(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// special_modified_bessel_k1(Tensor self) -> Tensor
struct SpecialModifiedBesselK1 {
  const cb_tensor* self;

  explicit SpecialModifiedBesselK1(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// special_scaled_modified_bessel_k0(Tensor self) -> Tensor
struct SpecialScaledModifiedBesselK0 {
  const cb_tensor* self;

  explicit SpecialScaledModifiedBesselK0(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// special_scaled_modified_bessel_k1(Tensor self) -> Tensor
struct SpecialScaledModifiedBesselK1 {
  const cb_tensor* self;

  explicit SpecialScaledModifiedBesselK1(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// special_bessel_j0(Tensor self) -> Tensor
struct SpecialBesselJ0 {
  const cb_tensor* self;

  explicit SpecialBesselJ0(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// special_bessel_j1(Tensor self) -> Tensor
struct SpecialBesselJ1 {
  const cb_tensor* self;

  explicit SpecialBesselJ1(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// special_bessel_y0(Tensor self) -> Tensor
struct SpecialBesselY0 {
  const cb_tensor* self;

  explicit SpecialBesselY0(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// special_bessel_y1(Tensor self) -> Tensor
struct SpecialBesselY1 {
  const cb_tensor* self;

  explicit SpecialBesselY1(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// special_spherical_bessel_j0(Tensor self) -> Tensor
struct SpecialSphericalBesselJ0 {
  const cb_tensor* self;

  explicit SpecialSphericalBesselJ0(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// special_airy_ai(Tensor self) -> Tensor
struct SpecialAiryAi {
  const cb_tensor* self;

  explicit SpecialAiryAi(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// special_erfcx(Tensor self) -> Tensor
struct SpecialErfcx {
  const cb_tensor* self;

  explicit SpecialErfcx(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// special_ndtr(Tensor self) -> Tensor
struct SpecialNdtr {
  const cb_tensor* self;

  explicit SpecialNdtr(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// special_log_ndtr(Tensor self) -> Tensor
struct SpecialLogNdtr {
  const cb_tensor* self;

  explicit SpecialLogNdtr(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// special_ndtri(Tensor self) -> Tensor
struct SpecialNdtri {
  const cb_tensor* self;

  explicit SpecialNdtri(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// special_entr(Tensor self) -> Tensor
struct SpecialEntr {
  const cb_tensor* self;

  explicit SpecialEntr(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// igamma(Tensor self, Tensor other) -> Tensor
struct Igamma {
  const cb_tensor* self;
  const cb_tensor* other;

  explicit Igamma(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        other(call.optional_tensor(1)) {}
};

// igammac(Tensor self, Tensor other) -> Tensor
struct Igammac {
  const cb_tensor* self;
  const cb_tensor* other;

  explicit Igammac(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        other(call.optional_tensor(1)) {}
};

// special_zeta(Tensor self, Tensor other) -> Tensor
struct SpecialZeta {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* other;
  const cb_scalar* other_number;

  explicit SpecialZeta(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        other(call.optional_tensor(1)),
        other_number(call.optional_scalar(1)) {}
};

// special_xlog1py(Tensor self, Tensor other) -> Tensor
struct SpecialXlog1py {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* other;
  const cb_scalar* other_number;

  explicit SpecialXlog1py(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        other(call.optional_tensor(1)),
        other_number(call.optional_scalar(1)) {}
};

// special_chebyshev_polynomial_t(Tensor self, Tensor n) -> Tensor
struct SpecialChebyshevPolynomialT {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* n;
  const cb_scalar* n_number;

  explicit SpecialChebyshevPolynomialT(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        n(call.optional_tensor(1)),
        n_number(call.optional_scalar(1)) {}
};

// special_chebyshev_polynomial_u(Tensor self, Tensor n) -> Tensor
struct SpecialChebyshevPolynomialU {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* n;
  const cb_scalar* n_number;

  explicit SpecialChebyshevPolynomialU(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        n(call.optional_tensor(1)),
        n_number(call.optional_scalar(1)) {}
};

// special_chebyshev_polynomial_v(Tensor self, Tensor n) -> Tensor
struct SpecialChebyshevPolynomialV {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* n;
  const cb_scalar* n_number;

  explicit SpecialChebyshevPolynomialV(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        n(call.optional_tensor(1)),
        n_number(call.optional_scalar(1)) {}
};

// special_chebyshev_polynomial_w(Tensor self, Tensor n) -> Tensor
struct SpecialChebyshevPolynomialW {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* n;
  const cb_scalar* n_number;

  explicit SpecialChebyshevPolynomialW(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        n(call.optional_tensor(1)),
        n_number(call.optional_scalar(1)) {}
};

// special_shifted_chebyshev_polynomial_t(Tensor self, Tensor n) -> Tensor
struct SpecialShiftedChebyshevPolynomialT {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* n;
  const cb_scalar* n_number;

  explicit SpecialShiftedChebyshevPolynomialT(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        n(call.optional_tensor(1)),
        n_number(call.optional_scalar(1)) {}
};

// special_shifted_chebyshev_polynomial_u(Tensor self, Tensor n) -> Tensor
struct SpecialShiftedChebyshevPolynomialU {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* n;
  const cb_scalar* n_number;

  explicit SpecialShiftedChebyshevPolynomialU(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        n(call.optional_tensor(1)),
        n_number(call.optional_scalar(1)) {}
};

// special_shifted_chebyshev_polynomial_v(Tensor self, Tensor n) -> Tensor
struct SpecialShiftedChebyshevPolynomialV {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* n;
  const cb_scalar* n_number;

  explicit SpecialShiftedChebyshevPolynomialV(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        n(call.optional_tensor(1)),
        n_number(call.optional_scalar(1)) {}
};

// special_shifted_chebyshev_polynomial_w(Tensor self, Tensor n) -> Tensor
struct SpecialShiftedChebyshevPolynomialW {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* n;
  const cb_scalar* n_number;

  explicit SpecialShiftedChebyshevPolynomialW(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        n(call.optional_tensor(1)),
        n_number(call.optional_scalar(1)) {}
};

// special_hermite_polynomial_h(Tensor self, Tensor n) -> Tensor
struct SpecialHermitePolynomialH {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* n;
  const cb_scalar* n_number;

  explicit SpecialHermitePolynomialH(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        n(call.optional_tensor(1)),
        n_number(call.optional_scalar(1)) {}
};

// special_hermite_polynomial_he(Tensor self, Tensor n) -> Tensor
struct SpecialHermitePolynomialHe {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* n;
  const cb_scalar* n_number;

  explicit SpecialHermitePolynomialHe(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        n(call.optional_tensor(1)),
        n_number(call.optional_scalar(1)) {}
};

// special_laguerre_polynomial_l(Tensor self, Tensor n) -> Tensor
struct SpecialLaguerrePolynomialL {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* n;
  const cb_scalar* n_number;

  explicit SpecialLaguerrePolynomialL(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        n(call.optional_tensor(1)),
        n_number(call.optional_scalar(1)) {}
};

// special_legendre_polynomial_p(Tensor self, Tensor n) -> Tensor
struct SpecialLegendrePolynomialP {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* n;
  const cb_scalar* n_number;

  explicit SpecialLegendrePolynomialP(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        n(call.optional_tensor(1)),
        n_number(call.optional_scalar(1)) {}
};

// gcd(Tensor self, Tensor other) -> Tensor
struct Gcd {
  const cb_tensor* self;
  const cb_tensor* other;

  explicit Gcd(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        other(call.optional_tensor(1)) {}
};

// lcm(Tensor self, Tensor other) -> Tensor
struct Lcm {
  const cb_tensor* self;
  const cb_tensor* other;

  explicit Lcm(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        other(call.optional_tensor(1)) {}
};

// frexp(Tensor self) -> (Tensor mantissa, Tensor exponent)
struct Frexp {
  const cb_tensor* self;

  explicit Frexp(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

}  // namespace candelabra::arguments

#endif  // CANDELABRA_ARGUMENTS_SPECIAL_HPP
