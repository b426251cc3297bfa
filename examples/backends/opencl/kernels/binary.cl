// Operators of two operands, tensors or numbers. T is their dtype, R that of the output. One
// formula in `a` and `b` makes two kernels: NAME_flat for contiguous operands, NAME_strided for the
// others.
#define OPERAND(buffer, k, i)                                                                                 \
  (g.is_number[k] ? NUMBER(T, g.numbers[k]) : LOAD(T, AT_CONST(T, buffer, g.offsets[k]), i))

#define BINARY(NAME, FORMULA)                                                                                 \
  __kernel void NAME##_flat(__global char* out, const __global char* self, const __global char* other,        \
                            const Operands g) {                                                               \
    const long i = get_global_id(0);                                                                          \
    if (i >= g.numel) return;                                                                                 \
    const COMPUTE(T) a = OPERAND(self, 1, i), b = OPERAND(other, 2, i);                                       \
    STORE(R, AT(R, out, g.offsets[0]), i, FORMULA);                                                           \
  }                                                                                                           \
  __kernel void NAME##_strided(__global char* out, const __global char* self, const __global char* other,     \
                               const Operands g) {                                                            \
    const long i = get_global_id(0);                                                                          \
    if (i >= g.numel) return;                                                                                 \
    const COMPUTE(T) a = OPERAND(self, 1, position(&g, 1, i));                                                \
    const COMPUTE(T) b = OPERAND(other, 2, position(&g, 2, i));                                               \
    STORE(R, AT(R, out, g.offsets[0]), position(&g, 0, i), FORMULA);                                          \
  }

// The numbers after the tensors of the schema, in order.
#define PARAMETER(k) NUMBER(T, g.parameters[k])

BINARY(eq, a == b)
BINARY(ne, a != b)
BINARY(lt, a < b)
BINARY(le, a <= b)
BINARY(gt, a > b)
BINARY(ge, a >= b)
BINARY(logical_and, a && b)
BINARY(logical_or, a || b)
BINARY(logical_xor, (a != 0) != (b != 0))

#if COMPUTES_NUMBERS

BINARY(add, a + PARAMETER(0) * b)
BINARY(sub, a - PARAMETER(0) * b)
BINARY(mul, a * b)
BINARY(maximum, LARGER(a, b))
BINARY(minimum, SMALLER(a, b))

#ifdef T_IS_FLOAT

// a - floor(a / b) * b in a way that keeps the sign and the exactness of Python's modulo.
static inline COMPUTE(T) floored_remainder(COMPUTE(T) a, COMPUTE(T) b) {
  const COMPUTE(T) rest = fmod(a, b);
  return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;
}
static inline COMPUTE(T) floored_quotient(COMPUTE(T) a, COMPUTE(T) b) {
  if (b == 0) return a / b;
  const COMPUTE(T) rest = fmod(a, b);
  COMPUTE(T) quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return copysign((COMPUTE(T))0, a / b);
  const COMPUTE(T) whole = floor(quotient);
  return quotient - whole > (COMPUTE(T))0.5 ? whole + 1 : whole;
}

BINARY(div, a / b)
BINARY(div_floor, floored_quotient(a, b))
BINARY(div_trunc, trunc(a / b))
BINARY(fmod, fmod(a, b))
BINARY(remainder, floored_remainder(a, b))
BINARY(pow, pow(a, b))
BINARY(atan2, atan2(a, b))

// ---- gradients of activations: a is the gradient of the output

#define HALF_SQRT2 (COMPUTE(T))0.70710678118654752440
#define INVERSE_SQRT_2PI (COMPUTE(T))0.39894228040143267794
#define SQRT_2_OVER_PI (COMPUTE(T))0.79788456080286535588
#define GELU_CUBIC (COMPUTE(T))0.044715

static inline COMPUTE(T) gelu_slope(COMPUTE(T) x) {
  return (1 + erf(x * HALF_SQRT2)) / 2 + x * INVERSE_SQRT_2PI * exp(-x * x / 2);
}
static inline COMPUTE(T) gelu_tanh_slope(COMPUTE(T) x) {
  const COMPUTE(T) t = tanh(SQRT_2_OVER_PI * (x + GELU_CUBIC * x * x * x));
  return (1 + t) / 2 + x * (1 - t * t) / 2 * SQRT_2_OVER_PI * (1 + 3 * GELU_CUBIC * x * x);
}
static inline COMPUTE(T) silu_slope(COMPUTE(T) x) {
  const COMPUTE(T) s = 1 / (1 + exp(-x));
  return s * (1 + x * (1 - s));
}

BINARY(sigmoid_backward, a * (b * (1 - b)))
BINARY(tanh_backward, a * (1 - b * b))
BINARY(silu_backward, a * silu_slope(b))
BINARY(gelu_backward, a * gelu_slope(b))
BINARY(gelu_tanh_backward, a * gelu_tanh_slope(b))

#else

// a to the power of b >= 0; for b < 0 what remains of the fraction.
static inline COMPUTE(T) whole_power(COMPUTE(T) a, COMPUTE(T) b) {
  if (b < 0) return a == 1 ? 1 : a == (COMPUTE(T))-1 ? (b & 1 ? (COMPUTE(T))-1 : 1) : 0;
  COMPUTE(T) result = 1;
  for (; b; b >>= 1, a *= a)
    if (b & 1) result *= a;
  return result;
}

BINARY(pow, whole_power(a, b))
BINARY(bitwise_and, a & b)
BINARY(bitwise_or, a | b)
BINARY(bitwise_xor, a ^ b)

#endif

BINARY(threshold_backward, b <= PARAMETER(0) ? 0 : a)

#endif
