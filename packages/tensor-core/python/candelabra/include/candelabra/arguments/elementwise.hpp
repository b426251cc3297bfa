// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.
// Arguments of the operators of the family elementwise, for kernels:
//
//   const arguments::Neg args(call);
//
// A tensor or number that was not given is a null pointer; other optional arguments are std::optional.
#ifndef CANDELABRA_ARGUMENTS_ELEMENTWISE_HPP
#define CANDELABRA_ARGUMENTS_ELEMENTWISE_HPP

#include <optional>
#include <span>
#include <string_view>

#include "candelabra/kernel.hpp"

namespace candelabra::arguments {

// neg(Tensor self) -> Tensor
struct Neg {
  const cb_tensor* self;

  explicit Neg(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// sign(Tensor self) -> Tensor
struct Sign {
  const cb_tensor* self;

  explicit Sign(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// sgn(Tensor self) -> Tensor
struct Sgn {
  const cb_tensor* self;

  explicit Sgn(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// floor(Tensor self) -> Tensor
struct Floor {
  const cb_tensor* self;

  explicit Floor(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// ceil(Tensor self) -> Tensor
struct Ceil {
  const cb_tensor* self;

  explicit Ceil(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// trunc(Tensor self) -> Tensor
struct Trunc {
  const cb_tensor* self;

  explicit Trunc(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// frac(Tensor self) -> Tensor
struct Frac {
  const cb_tensor* self;

  explicit Frac(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// square(Tensor self) -> Tensor
struct Square {
  const cb_tensor* self;

  explicit Square(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// conj_physical(Tensor self) -> Tensor
struct ConjPhysical {
  const cb_tensor* self;

  explicit ConjPhysical(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// relu(Tensor self) -> Tensor
struct Relu {
  const cb_tensor* self;

  explicit Relu(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// round(Tensor self, *, int decimals=0) -> Tensor
struct Round {
  const cb_tensor* self;
  int64_t decimals;

  explicit Round(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        decimals(call.integer(1)) {}
};

// bitwise_not(Tensor self) -> Tensor
struct BitwiseNot {
  const cb_tensor* self;

  explicit BitwiseNot(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor
struct NanToNum {
  const cb_tensor* self;
  std::optional<double> nan;
  std::optional<double> posinf;
  std::optional<double> neginf;

  explicit NanToNum(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        nan(call.optional_real(1)),
        posinf(call.optional_real(2)),
        neginf(call.optional_real(3)) {}
};

// exp(Tensor self) -> Tensor
struct Exp {
  const cb_tensor* self;

  explicit Exp(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// exp2(Tensor self) -> Tensor
struct Exp2 {
  const cb_tensor* self;

  explicit Exp2(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// expm1(Tensor self) -> Tensor
struct Expm1 {
  const cb_tensor* self;

  explicit Expm1(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// log(Tensor self) -> Tensor
struct Log {
  const cb_tensor* self;

  explicit Log(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// log2(Tensor self) -> Tensor
struct Log2 {
  const cb_tensor* self;

  explicit Log2(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// log10(Tensor self) -> Tensor
struct Log10 {
  const cb_tensor* self;

  explicit Log10(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// log1p(Tensor self) -> Tensor
struct Log1p {
  const cb_tensor* self;

  explicit Log1p(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// sqrt(Tensor self) -> Tensor
struct Sqrt {
  const cb_tensor* self;

  explicit Sqrt(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// rsqrt(Tensor self) -> Tensor
struct Rsqrt {
  const cb_tensor* self;

  explicit Rsqrt(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// reciprocal(Tensor self) -> Tensor
struct Reciprocal {
  const cb_tensor* self;

  explicit Reciprocal(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// sin(Tensor self) -> Tensor
struct Sin {
  const cb_tensor* self;

  explicit Sin(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// cos(Tensor self) -> Tensor
struct Cos {
  const cb_tensor* self;

  explicit Cos(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// tan(Tensor self) -> Tensor
struct Tan {
  const cb_tensor* self;

  explicit Tan(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// asin(Tensor self) -> Tensor
struct Asin {
  const cb_tensor* self;

  explicit Asin(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// acos(Tensor self) -> Tensor
struct Acos {
  const cb_tensor* self;

  explicit Acos(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// atan(Tensor self) -> Tensor
struct Atan {
  const cb_tensor* self;

  explicit Atan(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// sinh(Tensor self) -> Tensor
struct Sinh {
  const cb_tensor* self;

  explicit Sinh(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// cosh(Tensor self) -> Tensor
struct Cosh {
  const cb_tensor* self;

  explicit Cosh(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// tanh(Tensor self) -> Tensor
struct Tanh {
  const cb_tensor* self;

  explicit Tanh(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// asinh(Tensor self) -> Tensor
struct Asinh {
  const cb_tensor* self;

  explicit Asinh(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// acosh(Tensor self) -> Tensor
struct Acosh {
  const cb_tensor* self;

  explicit Acosh(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// atanh(Tensor self) -> Tensor
struct Atanh {
  const cb_tensor* self;

  explicit Atanh(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// sigmoid(Tensor self) -> Tensor
struct Sigmoid {
  const cb_tensor* self;

  explicit Sigmoid(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// erf(Tensor self) -> Tensor
struct Erf {
  const cb_tensor* self;

  explicit Erf(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// erfc(Tensor self) -> Tensor
struct Erfc {
  const cb_tensor* self;

  explicit Erfc(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// erfinv(Tensor self) -> Tensor
struct Erfinv {
  const cb_tensor* self;

  explicit Erfinv(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// lgamma(Tensor self) -> Tensor
struct Lgamma {
  const cb_tensor* self;

  explicit Lgamma(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// digamma(Tensor self) -> Tensor
struct Digamma {
  const cb_tensor* self;

  explicit Digamma(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// logit(Tensor self, float? eps=None) -> Tensor
struct Logit {
  const cb_tensor* self;
  std::optional<double> eps;

  explicit Logit(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        eps(call.optional_real(1)) {}
};

// abs(Tensor self) -> Tensor
struct Abs {
  const cb_tensor* self;

  explicit Abs(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// angle(Tensor self) -> Tensor
struct Angle {
  const cb_tensor* self;

  explicit Angle(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// isnan(Tensor self) -> Tensor
struct Isnan {
  const cb_tensor* self;

  explicit Isnan(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// isinf(Tensor self) -> Tensor
struct Isinf {
  const cb_tensor* self;

  explicit Isinf(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// isfinite(Tensor self) -> Tensor
struct Isfinite {
  const cb_tensor* self;

  explicit Isfinite(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// isposinf(Tensor self) -> Tensor
struct Isposinf {
  const cb_tensor* self;

  explicit Isposinf(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// isneginf(Tensor self) -> Tensor
struct Isneginf {
  const cb_tensor* self;

  explicit Isneginf(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// signbit(Tensor self) -> Tensor
struct Signbit {
  const cb_tensor* self;

  explicit Signbit(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// logical_not(Tensor self) -> Tensor
struct LogicalNot {
  const cb_tensor* self;

  explicit LogicalNot(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// complex(Tensor real, Tensor imag) -> Tensor
struct Complex {
  const cb_tensor* real;
  const cb_tensor* imag;

  explicit Complex(const kernel::Call& call)
      : real(call.optional_tensor(0)),
        imag(call.optional_tensor(1)) {}
};

// polar(Tensor abs, Tensor angle) -> Tensor
struct Polar {
  const cb_tensor* abs;
  const cb_tensor* angle;

  explicit Polar(const kernel::Call& call)
      : abs(call.optional_tensor(0)),
        angle(call.optional_tensor(1)) {}
};

// add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
struct Add {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* other;
  const cb_scalar* other_number;
  const cb_scalar* alpha;

  explicit Add(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        other(call.optional_tensor(1)),
        other_number(call.optional_scalar(1)),
        alpha(call.optional_scalar(2)) {}
};

// sub(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
struct Sub {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* other;
  const cb_scalar* other_number;
  const cb_scalar* alpha;

  explicit Sub(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        other(call.optional_tensor(1)),
        other_number(call.optional_scalar(1)),
        alpha(call.optional_scalar(2)) {}
};

// mul(Tensor self, Tensor other) -> Tensor
struct Mul {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* other;
  const cb_scalar* other_number;

  explicit Mul(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        other(call.optional_tensor(1)),
        other_number(call.optional_scalar(1)) {}
};

// div(Tensor self, Tensor other, *, str? rounding_mode=None) -> Tensor
struct Div {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* other;
  const cb_scalar* other_number;
  std::optional<std::string_view> rounding_mode;

  explicit Div(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        other(call.optional_tensor(1)),
        other_number(call.optional_scalar(1)),
        rounding_mode(call.optional_string(2)) {}
};

// rsub(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
struct Rsub {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* other;
  const cb_scalar* other_number;
  const cb_scalar* alpha;

  explicit Rsub(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        other(call.optional_tensor(1)),
        other_number(call.optional_scalar(1)),
        alpha(call.optional_scalar(2)) {}
};

// floor_divide(Tensor self, Tensor other) -> Tensor
struct FloorDivide {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* other;
  const cb_scalar* other_number;

  explicit FloorDivide(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        other(call.optional_tensor(1)),
        other_number(call.optional_scalar(1)) {}
};

// remainder(Tensor self, Tensor other) -> Tensor
struct Remainder {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* other;
  const cb_scalar* other_number;

  explicit Remainder(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        other(call.optional_tensor(1)),
        other_number(call.optional_scalar(1)) {}
};

// fmod(Tensor self, Tensor other) -> Tensor
struct Fmod {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* other;
  const cb_scalar* other_number;

  explicit Fmod(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        other(call.optional_tensor(1)),
        other_number(call.optional_scalar(1)) {}
};

// pow(Tensor self, Tensor exponent) -> Tensor
struct Pow {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* exponent;
  const cb_scalar* exponent_number;

  explicit Pow(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        exponent(call.optional_tensor(1)),
        exponent_number(call.optional_scalar(1)) {}
};

// maximum(Tensor self, Tensor other) -> Tensor
struct Maximum {
  const cb_tensor* self;
  const cb_tensor* other;

  explicit Maximum(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        other(call.optional_tensor(1)) {}
};

// minimum(Tensor self, Tensor other) -> Tensor
struct Minimum {
  const cb_tensor* self;
  const cb_tensor* other;

  explicit Minimum(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        other(call.optional_tensor(1)) {}
};

// fmax(Tensor self, Tensor other) -> Tensor
struct Fmax {
  const cb_tensor* self;
  const cb_tensor* other;

  explicit Fmax(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        other(call.optional_tensor(1)) {}
};

// fmin(Tensor self, Tensor other) -> Tensor
struct Fmin {
  const cb_tensor* self;
  const cb_tensor* other;

  explicit Fmin(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        other(call.optional_tensor(1)) {}
};

// atan2(Tensor self, Tensor other) -> Tensor
struct Atan2 {
  const cb_tensor* self;
  const cb_tensor* other;

  explicit Atan2(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        other(call.optional_tensor(1)) {}
};

// hypot(Tensor self, Tensor other) -> Tensor
struct Hypot {
  const cb_tensor* self;
  const cb_tensor* other;

  explicit Hypot(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        other(call.optional_tensor(1)) {}
};

// copysign(Tensor self, Tensor other) -> Tensor
struct Copysign {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* other;
  const cb_scalar* other_number;

  explicit Copysign(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        other(call.optional_tensor(1)),
        other_number(call.optional_scalar(1)) {}
};

// xlogy(Tensor self, Tensor other) -> Tensor
struct Xlogy {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* other;
  const cb_scalar* other_number;

  explicit Xlogy(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        other(call.optional_tensor(1)),
        other_number(call.optional_scalar(1)) {}
};

// logaddexp(Tensor self, Tensor other) -> Tensor
struct Logaddexp {
  const cb_tensor* self;
  const cb_tensor* other;

  explicit Logaddexp(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        other(call.optional_tensor(1)) {}
};

// logaddexp2(Tensor self, Tensor other) -> Tensor
struct Logaddexp2 {
  const cb_tensor* self;
  const cb_tensor* other;

  explicit Logaddexp2(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        other(call.optional_tensor(1)) {}
};

// nextafter(Tensor self, Tensor other) -> Tensor
struct Nextafter {
  const cb_tensor* self;
  const cb_tensor* other;

  explicit Nextafter(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        other(call.optional_tensor(1)) {}
};

// heaviside(Tensor self, Tensor values) -> Tensor
struct Heaviside {
  const cb_tensor* self;
  const cb_tensor* values;

  explicit Heaviside(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        values(call.optional_tensor(1)) {}
};

// bitwise_and(Tensor self, Tensor other) -> Tensor
struct BitwiseAnd {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* other;
  const cb_scalar* other_number;

  explicit BitwiseAnd(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        other(call.optional_tensor(1)),
        other_number(call.optional_scalar(1)) {}
};

// bitwise_or(Tensor self, Tensor other) -> Tensor
struct BitwiseOr {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* other;
  const cb_scalar* other_number;

  explicit BitwiseOr(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        other(call.optional_tensor(1)),
        other_number(call.optional_scalar(1)) {}
};

// bitwise_xor(Tensor self, Tensor other) -> Tensor
struct BitwiseXor {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* other;
  const cb_scalar* other_number;

  explicit BitwiseXor(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        other(call.optional_tensor(1)),
        other_number(call.optional_scalar(1)) {}
};

// bitwise_left_shift(Tensor self, Tensor other) -> Tensor
struct BitwiseLeftShift {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* other;
  const cb_scalar* other_number;

  explicit BitwiseLeftShift(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        other(call.optional_tensor(1)),
        other_number(call.optional_scalar(1)) {}
};

// bitwise_right_shift(Tensor self, Tensor other) -> Tensor
struct BitwiseRightShift {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* other;
  const cb_scalar* other_number;

  explicit BitwiseRightShift(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        other(call.optional_tensor(1)),
        other_number(call.optional_scalar(1)) {}
};

// eq(Tensor self, Tensor other) -> Tensor
struct Eq {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* other;
  const cb_scalar* other_number;

  explicit Eq(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        other(call.optional_tensor(1)),
        other_number(call.optional_scalar(1)) {}
};

// ne(Tensor self, Tensor other) -> Tensor
struct Ne {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* other;
  const cb_scalar* other_number;

  explicit Ne(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        other(call.optional_tensor(1)),
        other_number(call.optional_scalar(1)) {}
};

// lt(Tensor self, Tensor other) -> Tensor
struct Lt {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* other;
  const cb_scalar* other_number;

  explicit Lt(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        other(call.optional_tensor(1)),
        other_number(call.optional_scalar(1)) {}
};

// le(Tensor self, Tensor other) -> Tensor
struct Le {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* other;
  const cb_scalar* other_number;

  explicit Le(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        other(call.optional_tensor(1)),
        other_number(call.optional_scalar(1)) {}
};

// gt(Tensor self, Tensor other) -> Tensor
struct Gt {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* other;
  const cb_scalar* other_number;

  explicit Gt(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        other(call.optional_tensor(1)),
        other_number(call.optional_scalar(1)) {}
};

// ge(Tensor self, Tensor other) -> Tensor
struct Ge {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* other;
  const cb_scalar* other_number;

  explicit Ge(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        other(call.optional_tensor(1)),
        other_number(call.optional_scalar(1)) {}
};

// logical_and(Tensor self, Tensor other) -> Tensor
struct LogicalAnd {
  const cb_tensor* self;
  const cb_tensor* other;

  explicit LogicalAnd(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        other(call.optional_tensor(1)) {}
};

// logical_or(Tensor self, Tensor other) -> Tensor
struct LogicalOr {
  const cb_tensor* self;
  const cb_tensor* other;

  explicit LogicalOr(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        other(call.optional_tensor(1)) {}
};

// logical_xor(Tensor self, Tensor other) -> Tensor
struct LogicalXor {
  const cb_tensor* self;
  const cb_tensor* other;

  explicit LogicalXor(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        other(call.optional_tensor(1)) {}
};

// where(Tensor condition, Tensor input, Tensor other) -> Tensor
struct Where {
  const cb_tensor* condition;
  const cb_scalar* condition_number;
  const cb_tensor* input;
  const cb_scalar* input_number;
  const cb_tensor* other;
  const cb_scalar* other_number;

  explicit Where(const kernel::Call& call)
      : condition(call.optional_tensor(0)),
        condition_number(call.optional_scalar(0)),
        input(call.optional_tensor(1)),
        input_number(call.optional_scalar(1)),
        other(call.optional_tensor(2)),
        other_number(call.optional_scalar(2)) {}
};

// clamp(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor
struct Clamp {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* min;
  const cb_tensor* max;

  explicit Clamp(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        min(call.optional_tensor(1)),
        max(call.optional_tensor(2)) {}
};

// lerp(Tensor self, Tensor end, Tensor weight) -> Tensor
struct Lerp {
  const cb_tensor* self;
  const cb_scalar* self_number;
  const cb_tensor* end;
  const cb_scalar* end_number;
  const cb_tensor* weight;
  const cb_scalar* weight_number;

  explicit Lerp(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        self_number(call.optional_scalar(0)),
        end(call.optional_tensor(1)),
        end_number(call.optional_scalar(1)),
        weight(call.optional_tensor(2)),
        weight_number(call.optional_scalar(2)) {}
};

// addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor
struct Addcmul {
  const cb_tensor* self;
  const cb_tensor* tensor1;
  const cb_tensor* tensor2;
  const cb_scalar* value;

  explicit Addcmul(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        tensor1(call.optional_tensor(1)),
        tensor2(call.optional_tensor(2)),
        value(call.optional_scalar(3)) {}
};

// addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor
struct Addcdiv {
  const cb_tensor* self;
  const cb_tensor* tensor1;
  const cb_tensor* tensor2;
  const cb_scalar* value;

  explicit Addcdiv(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        tensor1(call.optional_tensor(1)),
        tensor2(call.optional_tensor(2)),
        value(call.optional_scalar(3)) {}
};

// gelu(Tensor self, *, str approximate='none') -> Tensor
struct Gelu {
  const cb_tensor* self;
  std::string_view approximate;

  explicit Gelu(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        approximate(call.string(1)) {}
};

// gelu_backward(Tensor grad, Tensor self, *, str approximate='none') -> Tensor
struct GeluBackward {
  const cb_tensor* grad;
  const cb_tensor* self;
  std::string_view approximate;

  explicit GeluBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        self(call.optional_tensor(1)),
        approximate(call.string(2)) {}
};

// silu(Tensor self) -> Tensor
struct Silu {
  const cb_tensor* self;

  explicit Silu(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// silu_backward(Tensor grad, Tensor self) -> Tensor
struct SiluBackward {
  const cb_tensor* grad;
  const cb_tensor* self;

  explicit SiluBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        self(call.optional_tensor(1)) {}
};

// mish(Tensor self) -> Tensor
struct Mish {
  const cb_tensor* self;

  explicit Mish(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// log_sigmoid(Tensor self) -> Tensor
struct LogSigmoid {
  const cb_tensor* self;

  explicit LogSigmoid(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor
struct Softplus {
  const cb_tensor* self;
  const cb_scalar* beta;
  const cb_scalar* threshold;

  explicit Softplus(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        beta(call.optional_scalar(1)),
        threshold(call.optional_scalar(2)) {}
};

// elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor
struct Elu {
  const cb_tensor* self;
  const cb_scalar* alpha;
  const cb_scalar* scale;
  const cb_scalar* input_scale;

  explicit Elu(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        alpha(call.optional_scalar(1)),
        scale(call.optional_scalar(2)),
        input_scale(call.optional_scalar(3)) {}
};

// leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor
struct LeakyRelu {
  const cb_tensor* self;
  const cb_scalar* negative_slope;

  explicit LeakyRelu(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        negative_slope(call.optional_scalar(1)) {}
};

// threshold_backward(Tensor grad, Tensor self, Scalar threshold) -> Tensor
struct ThresholdBackward {
  const cb_tensor* grad;
  const cb_tensor* self;
  const cb_scalar* threshold;

  explicit ThresholdBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        self(call.optional_tensor(1)),
        threshold(call.optional_scalar(2)) {}
};

// sigmoid_backward(Tensor grad, Tensor output) -> Tensor
struct SigmoidBackward {
  const cb_tensor* grad;
  const cb_tensor* output;

  explicit SigmoidBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        output(call.optional_tensor(1)) {}
};

// tanh_backward(Tensor grad, Tensor output) -> Tensor
struct TanhBackward {
  const cb_tensor* grad;
  const cb_tensor* output;

  explicit TanhBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        output(call.optional_tensor(1)) {}
};

// hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor
struct Hardtanh {
  const cb_tensor* self;
  const cb_scalar* min_val;
  const cb_scalar* max_val;

  explicit Hardtanh(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        min_val(call.optional_scalar(1)),
        max_val(call.optional_scalar(2)) {}
};

// hardswish(Tensor self) -> Tensor
struct Hardswish {
  const cb_tensor* self;

  explicit Hardswish(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// hardsigmoid(Tensor self) -> Tensor
struct Hardsigmoid {
  const cb_tensor* self;

  explicit Hardsigmoid(const kernel::Call& call)
      : self(call.optional_tensor(0)) {}
};

// hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor
struct Hardshrink {
  const cb_tensor* self;
  const cb_scalar* lambd;

  explicit Hardshrink(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        lambd(call.optional_scalar(1)) {}
};

// softshrink(Tensor self, Scalar lambd=0.5) -> Tensor
struct Softshrink {
  const cb_tensor* self;
  const cb_scalar* lambd;

  explicit Softshrink(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        lambd(call.optional_scalar(1)) {}
};

// threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor
struct Threshold {
  const cb_tensor* self;
  const cb_scalar* threshold;
  const cb_scalar* value;

  explicit Threshold(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        threshold(call.optional_scalar(1)),
        value(call.optional_scalar(2)) {}
};

// prelu(Tensor self, Tensor weight) -> Tensor
struct Prelu {
  const cb_tensor* self;
  const cb_tensor* weight;

  explicit Prelu(const kernel::Call& call)
      : self(call.optional_tensor(0)),
        weight(call.optional_tensor(1)) {}
};

// hardtanh_backward(Tensor grad, Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor
struct HardtanhBackward {
  const cb_tensor* grad;
  const cb_tensor* self;
  const cb_scalar* min_val;
  const cb_scalar* max_val;

  explicit HardtanhBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        self(call.optional_tensor(1)),
        min_val(call.optional_scalar(2)),
        max_val(call.optional_scalar(3)) {}
};

// hardswish_backward(Tensor grad, Tensor self) -> Tensor
struct HardswishBackward {
  const cb_tensor* grad;
  const cb_tensor* self;

  explicit HardswishBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        self(call.optional_tensor(1)) {}
};

// hardsigmoid_backward(Tensor grad, Tensor self) -> Tensor
struct HardsigmoidBackward {
  const cb_tensor* grad;
  const cb_tensor* self;

  explicit HardsigmoidBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        self(call.optional_tensor(1)) {}
};

// shrink_backward(Tensor grad, Tensor self, Scalar lambd=0.5) -> Tensor
struct ShrinkBackward {
  const cb_tensor* grad;
  const cb_tensor* self;
  const cb_scalar* lambd;

  explicit ShrinkBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        self(call.optional_tensor(1)),
        lambd(call.optional_scalar(2)) {}
};

// leaky_relu_backward(Tensor grad, Tensor self, Scalar negative_slope=0.01) -> Tensor
struct LeakyReluBackward {
  const cb_tensor* grad;
  const cb_tensor* self;
  const cb_scalar* negative_slope;

  explicit LeakyReluBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        self(call.optional_tensor(1)),
        negative_slope(call.optional_scalar(2)) {}
};

// elu_backward(Tensor grad, Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor
struct EluBackward {
  const cb_tensor* grad;
  const cb_tensor* self;
  const cb_scalar* alpha;
  const cb_scalar* scale;
  const cb_scalar* input_scale;

  explicit EluBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        self(call.optional_tensor(1)),
        alpha(call.optional_scalar(2)),
        scale(call.optional_scalar(3)),
        input_scale(call.optional_scalar(4)) {}
};

// softplus_backward(Tensor grad, Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor
struct SoftplusBackward {
  const cb_tensor* grad;
  const cb_tensor* self;
  const cb_scalar* beta;
  const cb_scalar* threshold;

  explicit SoftplusBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        self(call.optional_tensor(1)),
        beta(call.optional_scalar(2)),
        threshold(call.optional_scalar(3)) {}
};

// log_sigmoid_backward(Tensor grad, Tensor self) -> Tensor
struct LogSigmoidBackward {
  const cb_tensor* grad;
  const cb_tensor* self;

  explicit LogSigmoidBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        self(call.optional_tensor(1)) {}
};

// mish_backward(Tensor grad, Tensor self) -> Tensor
struct MishBackward {
  const cb_tensor* grad;
  const cb_tensor* self;

  explicit MishBackward(const kernel::Call& call)
      : grad(call.optional_tensor(0)),
        self(call.optional_tensor(1)) {}
};

}  // namespace candelabra::arguments

#endif  // CANDELABRA_ARGUMENTS_ELEMENTWISE_HPP
