// Reductions. T is the dtype of self, R that of the output. One definition makes two kernels:
// NAME_item, where one work item computes one output, and NAME_group, where a group does.

// The struct of the same name in src/reduction.cpp. Kept dimensions are those of the output.
typedef struct {
  long count, kept_ndim, kept_sizes[12], out_strides[12], kept_strides[12];
  long size, ndim, sizes[12], strides[12];  // the reduced dimensions of self
  ulong out_offset, offset;
  ulong parameters[2];
} Reduction;

static inline long kept_position(const Reduction* g, const long* strides, long i) {
  long result = 0;
  for (int d = 0; d < g->kept_ndim; ++d) {
    result += i % g->kept_sizes[d] * strides[d];
    i /= g->kept_sizes[d];
  }
  return result;
}
static inline long reduced_position(const Reduction* g, long i) {
  if (g->ndim == 1) return i * g->strides[0];
  long result = 0;
  for (int d = 0; d < g->ndim; ++d) {
    result += i % g->sizes[d] * g->strides[d];
    i /= g->sizes[d];
  }
  return result;
}

#define ELEMENT(i) LOAD(T, slice, reduced_position(&g, i))

// Accumulates FORMULA of `a`, the sum so far, and `b`, the TERM of an element `x`. RESULT is of
// `a`.
#define REDUCTION(NAME, TYPE, FIRST, TERM, FORMULA, RESULT)                                                   \
  __kernel void NAME##_item(__global char* out, const __global char* self, const Reduction g) {               \
    const long o = get_global_id(0);                                                                          \
    if (o >= g.count) return;                                                                                 \
    const __global MEMORY(T)* slice = AT_CONST(T, self, g.offset) + kept_position(&g, g.kept_strides, o);     \
    TYPE a = FIRST;                                                                                           \
    for (long i = 0; i < g.size; ++i) {                                                                       \
      const COMPUTE(T) x = ELEMENT(i);                                                                        \
      const TYPE b = TERM;                                                                                    \
      a = FORMULA;                                                                                            \
    }                                                                                                         \
    STORE(R, AT(R, out, g.out_offset), kept_position(&g, g.out_strides, o), RESULT);                          \
  }                                                                                                           \
  __kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void NAME##_group(                              \
      __global char* out, const __global char* self, const Reduction g) {                                     \
    __local TYPE scratch[GROUP];                                                                              \
    const long o = get_group_id(0);                                                                           \
    const __global MEMORY(T)* slice = AT_CONST(T, self, g.offset) + kept_position(&g, g.kept_strides, o);     \
    TYPE partial = FIRST;                                                                                     \
    for (long i = get_local_id(0); i < g.size; i += GROUP) {                                                  \
      const COMPUTE(T) x = ELEMENT(i);                                                                        \
      const TYPE a = partial, b = TERM;                                                                       \
      partial = FORMULA;                                                                                      \
    }                                                                                                         \
    GROUP_COMBINE(TYPE, scratch, partial, FORMULA);                                                           \
    if (get_local_id(0) == 0) {                                                                               \
      const TYPE a = partial;                                                                                 \
      STORE(R, AT(R, out, g.out_offset), kept_position(&g, g.out_strides, o), RESULT);                        \
    }                                                                                                         \
  }

REDUCTION(any, int, 0, x != 0, a || b, a)
REDUCTION(all, int, 1, x != 0, a && b, a)

#if COMPUTES_NUMBERS

REDUCTION(sum, SUM(T), 0, x, a + b, a)
REDUCTION(prod, SUM(T), 1, x, a * b, a)
// An element is its own maximum, so that each partial result may start with the first one.
REDUCTION(amax, COMPUTE(T), ELEMENT(0), x, LARGER(a, b), a)
REDUCTION(amin, COMPUTE(T), ELEMENT(0), x, SMALLER(a, b), a)

#ifdef T_IS_FLOAT
REDUCTION(mean, SUM(T), 0, x, a + b, a / g.size)

// The sum of squares of the differences to the mean, over size - correction.
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void var(__global char* out, const __global char* self,
                                                                      const Reduction g) {
  __local SUM(T) scratch[GROUP];
  const long o = get_group_id(0);
  const __global MEMORY(T)* slice = AT_CONST(T, self, g.offset) + kept_position(&g, g.kept_strides, o);
  SUM(T) mean = 0;
  for (long i = get_local_id(0); i < g.size; i += GROUP) mean += ELEMENT(i);
  GROUP_COMBINE(SUM(T), scratch, mean, a + b);
  mean /= g.size;
  SUM(T) squares = 0;
  for (long i = get_local_id(0); i < g.size; i += GROUP) {
    const SUM(T) difference = ELEMENT(i) - mean;
    squares += difference * difference;
  }
  GROUP_COMBINE(SUM(T), scratch, squares, a + b);
  const SUM(T) divisor = fmax((SUM(T))0, g.size - NUMBER(T, g.parameters[0]));
  if (get_local_id(0) == 0)
    STORE(R, AT(R, out, g.out_offset), kept_position(&g, g.out_strides, o), squares / divisor);
}
#endif

// The first of the largest or smallest elements; NaN is before all others.
#define ARGUMENT(NAME, FOUND)                                                                                 \
  __kernel void NAME(__global char* out, const __global char* self, const Reduction g) {                      \
    const long o = get_global_id(0);                                                                          \
    if (o >= g.count) return;                                                                                 \
    const __global MEMORY(T)* slice = AT_CONST(T, self, g.offset) + kept_position(&g, g.kept_strides, o);     \
    COMPUTE(T) best = ELEMENT(0);                                                                             \
    long index = 0;                                                                                           \
    for (long i = 1; i < g.size && !IS_NAN(best); ++i) {                                                      \
      const COMPUTE(T) x = ELEMENT(i);                                                                        \
      if (FOUND) best = x, index = i;                                                                         \
    }                                                                                                         \
    ((__global long*)(out + g.out_offset))[kept_position(&g, g.out_strides, o)] = index;                      \
  }

ARGUMENT(argmax, x > best || IS_NAN(x))
ARGUMENT(argmin, x < best || IS_NAN(x))

#endif
