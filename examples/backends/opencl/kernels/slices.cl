// Operators along one dimension: softmax, cumsum, sort. T is the dtype of the elements. `g` walks
// over the slices, with one element each; `along` walks along a slice.

#ifdef T_IS_FLOAT

#define PER_SLICE __kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void

#define SOFTMAX(NAME, RESULT)                                                                                 \
  PER_SLICE NAME(__global char* out, const __global char* self, const Operands g, const Along along) {        \
    __local SUM(T) scratch[GROUP];                                                                            \
    const long s = get_group_id(0), first = get_local_id(0);                                                  \
    const __global MEMORY(T)* from = SLICE_CONST(T, self, 1, s);                                              \
    __global MEMORY(T)* to = SLICE(T, out, 0, s);                                                             \
    SUM(T) largest = -INFINITY;                                                                               \
    for (long i = first; i < along.size; i += GROUP) {                                                        \
      const SUM(T) x = LOAD(T, from, i * along.steps[1]);                                                     \
      largest = LARGER(x, largest);                                                                           \
    }                                                                                                         \
    GROUP_COMBINE(SUM(T), scratch, largest, LARGER(a, b));                                                    \
    SUM(T) total = 0;                                                                                         \
    for (long i = first; i < along.size; i += GROUP)                                                          \
      total += exp(LOAD(T, from, i * along.steps[1]) - largest);                                              \
    GROUP_COMBINE(SUM(T), scratch, total, a + b);                                                             \
    for (long i = first; i < along.size; i += GROUP) {                                                        \
      const SUM(T) x = LOAD(T, from, i * along.steps[1]) - largest;                                           \
      STORE(T, to, i * along.steps[0], RESULT);                                                               \
    }                                                                                                         \
  }

SOFTMAX(softmax, exp(x) / total)
SOFTMAX(log_softmax, x - log(total))

// `x` is an element of the gradient, `y` one of the output; TERM is summed over the slice.
#define SOFTMAX_BACKWARD(NAME, TERM, RESULT)                                                                  \
  PER_SLICE NAME(__global char* out, const __global char* grad, const __global char* output, const Operands g, \
                 const Along along) {                                                                         \
    __local SUM(T) scratch[GROUP];                                                                            \
    const long s = get_group_id(0), first = get_local_id(0);                                                  \
    const __global MEMORY(T)* grads = SLICE_CONST(T, grad, 1, s);                                             \
    const __global MEMORY(T)* outputs = SLICE_CONST(T, output, 2, s);                                         \
    __global MEMORY(T)* to = SLICE(T, out, 0, s);                                                             \
    SUM(T) total = 0;                                                                                         \
    for (long i = first; i < along.size; i += GROUP) {                                                        \
      const SUM(T) x = LOAD(T, grads, i * along.steps[1]), y = LOAD(T, outputs, i * along.steps[2]);          \
      total += TERM;                                                                                          \
    }                                                                                                         \
    GROUP_COMBINE(SUM(T), scratch, total, a + b);                                                             \
    for (long i = first; i < along.size; i += GROUP) {                                                        \
      const SUM(T) x = LOAD(T, grads, i * along.steps[1]), y = LOAD(T, outputs, i * along.steps[2]);          \
      STORE(T, to, i * along.steps[0], RESULT);                                                               \
    }                                                                                                         \
  }

SOFTMAX_BACKWARD(softmax_backward, x * y, y * (x - total))
SOFTMAX_BACKWARD(log_softmax_backward, x, x - exp(y) * total)

#endif

__kernel void cumsum(__global char* out, const __global char* self, const Operands g, const Along along) {
  const long s = get_global_id(0);
  if (s >= g.numel) return;
  const __global MEMORY(T)* from = SLICE_CONST(T, self, 1, s);
  __global MEMORY(T)* to = SLICE(T, out, 0, s);
  SUM(T) total = 0;
  for (long i = 0; i < along.size; ++i) {
    total += LOAD(T, from, i * along.steps[1]);
    STORE(T, to, i * along.steps[0], total);
  }
}

// ---- sort and topk

// Whether element i comes before element j. NaN is larger than all numbers; equal elements keep
// their order, so that every sort is stable.
static inline bool precedes(COMPUTE(T) x, long i, COMPUTE(T) y, long j, int descending) {
  const bool x_is_nan = IS_NAN(x), y_is_nan = IS_NAN(y);
  const bool less = x < y || (y_is_nan && !x_is_nan), more = y < x || (x_is_nan && !y_is_nan);
  return less || more ? (descending ? more : less) : i < j;
}

// The rank of an element is the number of those before it. For short slices: one item an element.
__kernel void sort_by_rank(__global char* values, __global char* indices, const __global char* self, const Operands g,
                           const Along along, const long kept, const long descending) {
  const long n = get_global_id(0), s = n / along.size, i = n % along.size;
  if (s >= g.numel) return;
  const __global MEMORY(T)* from = SLICE_CONST(T, self, 2, s);
  const COMPUTE(T) x = LOAD(T, from, i * along.steps[2]);
  long rank = 0;
  for (long j = 0; j < along.size; ++j) rank += precedes(LOAD(T, from, j * along.steps[2]), j, x, i, descending);
  if (rank >= kept) return;
  STORE(T, SLICE(T, values, 0, s), rank * along.steps[0], x);
  SLICE(int64, indices, 1, s)[rank * along.steps[1]] = i;
}

// Bitonic sort of the order of each slice, padded to a power of 2 by indices beyond its size.
__kernel void sort_start(__global long* order, const long padded, const long count) {
  const long n = get_global_id(0);
  if (n < count) order[n] = n % padded;
}
__kernel void sort_step(__global long* order, const __global char* self, const Operands g, const Along along,
                        const long padded, const long block, const long distance, const long descending) {
  const long n = get_global_id(0), s = n / (padded / 2), pair = n % (padded / 2);
  if (s >= g.numel) return;
  const long low = pair / distance * 2 * distance + pair % distance, high = low + distance;
  const long i = order[s * padded + low], j = order[s * padded + high];
  const __global MEMORY(T)* from = SLICE_CONST(T, self, 2, s);
  bool in_order;
  if (i >= along.size || j >= along.size)
    in_order = i < j;
  else
    in_order = precedes(LOAD(T, from, i * along.steps[2]), i, LOAD(T, from, j * along.steps[2]), j, descending);
  if (in_order == ((low & block) != 0)) {
    order[s * padded + low] = j;
    order[s * padded + high] = i;
  }
}
__kernel void sort_finish(__global char* values, __global char* indices, const __global char* self,
                          const __global long* order, const Operands g, const Along along, const long padded,
                          const long kept) {
  const long n = get_global_id(0), s = n / kept, rank = n % kept;
  if (s >= g.numel) return;
  const long i = order[s * padded + rank];
  STORE(T, SLICE(T, values, 0, s), rank * along.steps[0], LOAD(T, SLICE_CONST(T, self, 2, s), i * along.steps[2]));
  SLICE(int64, indices, 1, s)[rank * along.steps[1]] = i;
}
