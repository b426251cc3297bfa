// Operators of three operands, tensors or numbers. C is the dtype of the first one, T that of the
// others and of the output. One formula in `a`, `b` and `c` makes two kernels: NAME_flat for
// contiguous operands, NAME_strided for the others.
#define OPERAND(T, buffer, k, i)                                                                              \
  (g.is_number[k] ? NUMBER(T, g.numbers[k]) : LOAD(T, AT_CONST(T, buffer, g.offsets[k]), i))

#define TERNARY(NAME, FORMULA)                                                                                \
  __kernel void NAME##_flat(__global char* out, const __global char* first, const __global char* second,      \
                            const __global char* third, const Operands g) {                                   \
    const long i = get_global_id(0);                                                                          \
    if (i >= g.numel) return;                                                                                 \
    const COMPUTE(C) a = OPERAND(C, first, 1, i);                                                             \
    const COMPUTE(T) b = OPERAND(T, second, 2, i), c = OPERAND(T, third, 3, i);                               \
    STORE(T, AT(T, out, g.offsets[0]), i, FORMULA);                                                           \
  }                                                                                                           \
  __kernel void NAME##_strided(__global char* out, const __global char* first, const __global char* second,   \
                               const __global char* third, const Operands g) {                                \
    const long i = get_global_id(0);                                                                          \
    if (i >= g.numel) return;                                                                                 \
    const COMPUTE(C) a = OPERAND(C, first, 1, position(&g, 1, i));                                            \
    const COMPUTE(T) b = OPERAND(T, second, 2, position(&g, 2, i));                                           \
    const COMPUTE(T) c = OPERAND(T, third, 3, position(&g, 3, i));                                            \
    STORE(T, AT(T, out, g.offsets[0]), position(&g, 0, i), FORMULA);                                          \
  }

#define PARAMETER(k) NUMBER(T, g.parameters[k])

TERNARY(where, a != 0 ? b : c)
TERNARY(addcmul, a + PARAMETER(0) * b * c)

// NaN in the tensor or in a limit is the result.
static inline COMPUTE(T) at_least(COMPUTE(T) x, COMPUTE(T) low) { return x < low || IS_NAN(low) ? low : x; }
static inline COMPUTE(T) at_most(COMPUTE(T) x, COMPUTE(T) high) { return x > high || IS_NAN(high) ? high : x; }

TERNARY(clamp, at_most(at_least(a, b), c))
TERNARY(clamp_min, at_least(a, b))
TERNARY(clamp_max, at_most(a, c))

#ifdef T_IS_FLOAT
TERNARY(addcdiv, a + PARAMETER(0) * b / c)
// From the nearer end, so that weights of 0 and 1 are exact.
TERNARY(lerp, fabs(c) < (COMPUTE(T))0.5 ? a + c * (b - a) : b - (b - a) * (1 - c))
#endif
