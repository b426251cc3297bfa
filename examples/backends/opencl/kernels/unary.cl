// Operators of one operand. T is the dtype of self, R that of the output. One formula in `x` makes
// two kernels: NAME_flat for contiguous operands, NAME_strided for the others.
#define UNARY(NAME, FORMULA)                                                                                  \
  __kernel void NAME##_flat(__global char* out, const __global char* self, const Operands g) {                \
    const long i = get_global_id(0);                                                                          \
    if (i >= g.numel) return;                                                                                 \
    const COMPUTE(T) x = LOAD(T, AT_CONST(T, self, g.offsets[1]), i);                                         \
    STORE(R, AT(R, out, g.offsets[0]), i, FORMULA);                                                           \
  }                                                                                                           \
  __kernel void NAME##_strided(__global char* out, const __global char* self, const Operands g) {             \
    const long i = get_global_id(0);                                                                          \
    if (i >= g.numel) return;                                                                                 \
    const COMPUTE(T) x = LOAD(T, AT_CONST(T, self, g.offsets[1]), position(&g, 1, i));                        \
    STORE(R, AT(R, out, g.offsets[0]), position(&g, 0, i), FORMULA);                                          \
  }

// The numbers after the tensors of the schema, in order.
#define PARAMETER(k) NUMBER(T, g.parameters[k])

UNARY(logical_not, x == 0)
#ifdef T_IS_FLOAT
UNARY(isnan, isnan(x))
UNARY(isfinite, isfinite(x))
UNARY(isinf, isinf(x))
#else
UNARY(isnan, 0)
UNARY(isfinite, 1)
UNARY(isinf, 0)
#endif

#if COMPUTES_NUMBERS

UNARY(square, x * x)

#ifdef T_IS_FLOAT

UNARY(neg, -x)
UNARY(abs, fabs(x))
UNARY(sign, (x > 0) - (x < 0))
UNARY(relu, x <= 0 ? 0 : x)
UNARY(floor, floor(x))
UNARY(ceil, ceil(x))
UNARY(trunc, trunc(x))
UNARY(round, rint(x))

UNARY(exp, exp(x))
UNARY(exp2, exp2(x))
UNARY(expm1, expm1(x))
UNARY(log, log(x))
UNARY(log2, log2(x))
UNARY(log10, log10(x))
UNARY(log1p, log1p(x))
UNARY(sqrt, sqrt(x))
UNARY(rsqrt, 1 / sqrt(x))
UNARY(reciprocal, 1 / x)
UNARY(sin, sin(x))
UNARY(cos, cos(x))
UNARY(tan, tan(x))
UNARY(asin, asin(x))
UNARY(acos, acos(x))
UNARY(atan, atan(x))
UNARY(sinh, sinh(x))
UNARY(cosh, cosh(x))
UNARY(tanh, tanh(x))
UNARY(asinh, asinh(x))
UNARY(acosh, acosh(x))
UNARY(atanh, atanh(x))
UNARY(erf, erf(x))
UNARY(erfc, erfc(x))
UNARY(sigmoid, 1 / (1 + exp(-x)))

// ---- activations

#define HALF_SQRT2 (COMPUTE(T))0.70710678118654752440
#define SQRT_2_OVER_PI (COMPUTE(T))0.79788456080286535588
#define GELU_CUBIC (COMPUTE(T))0.044715

UNARY(silu, x / (1 + exp(-x)))
UNARY(gelu, x * (1 + erf(x * HALF_SQRT2)) / 2)
UNARY(gelu_tanh, x * (1 + tanh(SQRT_2_OVER_PI * (x + GELU_CUBIC * x * x * x))) / 2)
UNARY(leaky_relu, x > 0 ? x : x * PARAMETER(0))

#else

UNARY(neg, -x)
UNARY(abs, x < 0 ? -x : x)
UNARY(sign, (x > 0) - (x < 0))
UNARY(relu, x > 0 ? x : 0)
UNARY(floor, x)
UNARY(ceil, x)
UNARY(trunc, x)
UNARY(round, x)
UNARY(bitwise_not, ~x)

#endif

#endif
