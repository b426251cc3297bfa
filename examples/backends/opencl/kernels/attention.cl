// Attention by blocks: a group has the scores of ROWS rows and GROUP rows of another tensor at a
// time, in local memory. So memory does not grow with the product of the lengths. T is the dtype.
// An item has the ROWS rows in the lanes of a vector. Each sum is made by one item, in order.
#define ROWS 16
#define PARTS (GROUP / ROWS)  // items that share a row
#define PER_GROUP __kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void

typedef float16 rows_float32, rows_float16, rows_bfloat16;
#ifdef HAS_FLOAT64
typedef double16 rows_float64;
#endif
#define VECTOR JOIN(rows_, T)

// A tensor (N, heads, rows, columns). The structs of the same names are in src/attention.cpp.
typedef struct {
  ulong offset;
  long strides[4];
} Heads;

enum { NO_MASK, BOOL_MASK, NUMBER_MASK };

typedef struct {
  Heads mask;
  ulong scale;
  long is_causal, mask_kind;
} Masking;

#define HEAD(buffer, tensor, n, head) \
  (AT_CONST(T, buffer, (tensor).offset) + (n) * (tensor).strides[0] + (head) * (tensor).strides[1])

// The products of the rows from `first` on, at most `last`, and another row. The items of a group
// call it together: they share the rows in `tile`.
static inline VECTOR multiply_rows(__local SUM(T)* tile, const __global MEMORY(T)* rows, const Heads* tensor,
                                   long first, long last, const __global MEMORY(T)* other, long step, long width) {
  const int item = get_local_id(0);
  VECTOR result = 0;
  for (long start = 0; start < width; start += GROUP) {
    const long e = min(start + item, width - 1), count = min((long)GROUP, width - start);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int r = 0; r < ROWS; ++r)
      tile[item * ROWS + r] = LOAD(T, rows, min(first + r, last) * tensor->strides[2] + e * tensor->strides[3]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (long i = 0; i < count; ++i) result += vload16(i, tile) * (SUM(T))LOAD(T, other, (start + i) * step);
  }
  return result;
}

// Adds `count` rows of a tensor, of which this item has one column, times their weights.
static inline VECTOR add_rows(VECTOR sums, const __local SUM(T)* weights, const __global MEMORY(T)* rows, long step,
                              long count) {
  for (long i = 0; i < count; ++i) sums += vload16(i, weights) * (SUM(T))LOAD(T, rows, i * step);
  return sums;
}

// The score of a query and a key, from their product.
static inline SUM(T) masked(const Masking* m, const __global char* mask, long n, long head, long query, long key,
                            SUM(T) product) {
  if (m->is_causal && key > query) return -INFINITY;
  const SUM(T) score = product * NUMBER(T, m->scale);
  if (m->mask_kind == NO_MASK) return score;
  const long at = n * m->mask.strides[0] + head * m->mask.strides[1] + query * m->mask.strides[2] +
                  key * m->mask.strides[3];
  if (m->mask_kind == NUMBER_MASK) return score + LOAD(T, AT_CONST(T, mask, m->mask.offset), at);
  return LOAD(bool, AT_CONST(bool, mask, m->mask.offset), at) ? score : -INFINITY;
}

typedef struct {
  long heads, share;  // of queries; heads of queries for each head of keys
  long queries, keys, width, columns;
  Heads query, key, value;
  ulong out_offset, statistics_offset;
  Masking masking;
} Attention;

// The weights of row r, which are apart by ROWS, become exp(score - largest), where `largest` is the
// maximum of the row so far. `correction` is the factor for earlier sums. NaN is no maximum, and
// makes the sum NaN.
static inline void exponentiate(__local SUM(T)* weights, __local SUM(T)* largest, __local SUM(T)* total,
                                __local SUM(T)* correction, __local SUM(T)* partial) {
  const int item = get_local_id(0), r = item % ROWS;
  __local SUM(T)* part = weights + item / ROWS * (GROUP / PARTS) * ROWS + r;
  SUM(T) best = -INFINITY, sum = 0;
  for (int i = 0; i < GROUP / PARTS; ++i) best = fmax(best, part[i * ROWS]);
  partial[item] = best;
  barrier(CLK_LOCAL_MEM_FENCE);
  best = largest[r];
  for (int k = 0; k < PARTS; ++k) best = fmax(best, partial[k * ROWS + r]);
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = 0; i < GROUP / PARTS; ++i) {
    const SUM(T) x = part[i * ROWS];
    part[i * ROWS] = best == -INFINITY ? (IS_NAN(x) ? x : 0) : exp(x - best);  // all masked so far
    sum += part[i * ROWS];
  }
  partial[item] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < ROWS) {
    for (int k = 1; k < PARTS; ++k) sum += partial[k * ROWS + r];
    const SUM(T) factor = largest[r] == best || largest[r] == -INFINITY ? 1 : exp(largest[r] - best);
    total[r] = total[r] * factor + sum;
    correction[r] = factor;
    largest[r] = best;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

// A group computes GROUP columns of the results of ROWS queries.
PER_GROUP attention(__global char* out, __global char* statistics, const __global char* query,
                    const __global char* key, const __global char* value, const __global char* mask,
                    const Attention a) {
  __local SUM(T) tile[ROWS * GROUP], weights[ROWS * GROUP];
  __local SUM(T) partial[GROUP], largest[ROWS], total[ROWS], correction[ROWS];
  const int item = get_local_id(0);
  const long chunks = max((a.columns + GROUP - 1) / GROUP, 1L), blocks = (a.queries + ROWS - 1) / ROWS;
  const long chunk = get_group_id(0) % chunks, first = get_group_id(0) / chunks % blocks * ROWS;
  const long head = get_group_id(0) / chunks / blocks % a.heads, n = get_group_id(0) / chunks / blocks / a.heads;
  const __global MEMORY(T)* q = HEAD(query, a.query, n, head);
  const __global MEMORY(T)* k = HEAD(key, a.key, n, head / a.share);
  const __global MEMORY(T)* v = HEAD(value, a.value, n, head / a.share);
  const long column = chunk * GROUP + item, end = a.masking.is_causal ? min(a.keys, first + ROWS) : a.keys;
  SUM(T) scores[ROWS], results[ROWS];
  VECTOR sums = 0;
  if (item < ROWS) {
    largest[item] = -INFINITY;
    total[item] = 0;
  }
  for (long start = 0; start < end; start += GROUP) {
    const long j = start + item;
    vstore16(multiply_rows(tile, q, &a.query, first, a.queries - 1, k + min(j, a.keys - 1) * a.key.strides[2],
                           a.key.strides[3], a.width),
             0, scores);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int r = 0; r < ROWS; ++r)
      weights[item * ROWS + r] =
          j < end && first + r < a.queries ? masked(&a.masking, mask, n, head, first + r, j, scores[r]) : -INFINITY;
    barrier(CLK_LOCAL_MEM_FENCE);
    exponentiate(weights, largest, total, correction, partial);
    if (column < a.columns)
      sums = add_rows(sums * vload16(0, correction), weights,
                      v + start * a.value.strides[2] + column * a.value.strides[3], a.value.strides[2],
                      min((long)GROUP, end - start));
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const long row = (n * a.heads + head) * a.queries + first;
  const long rows = min((long)ROWS, a.queries - first);
  // A row whose keys are all masked is zero; its logarithm makes the weights 0 in the gradient.
  if (chunk == 0 && item < rows) {
    __global SUM(T)* logarithms = (__global SUM(T)*)(statistics + a.statistics_offset);
    logarithms[row + item] = total[item] == 0 ? INFINITY : largest[item] + log(total[item]);
  }
  vstore16(sums, 0, results);
  if (column < a.columns)
    for (int r = 0; r < rows; ++r)
      STORE(T, AT(T, out, a.out_offset), (row + r) * a.columns + column,
            total[r] == 0 ? results[r] : results[r] / total[r]);
}

// ---- gradients

// What the gradient of softmax subtracts: the product of each row of the gradient and the result.
__kernel void attention_deltas(__global SUM(T)* deltas, const __global char* grad, const __global char* output,
                               const long heads, const long queries, const long columns, const Heads of_grad,
                               const Heads of_output, const long count) {
  const long i = get_global_id(0);
  if (i >= count) return;
  const long l = i % queries, head = i / queries % heads, n = i / queries / heads;
  const __global MEMORY(T)* d = HEAD(grad, of_grad, n, head) + l * of_grad.strides[2];
  const __global MEMORY(T)* o = HEAD(output, of_output, n, head) + l * of_output.strides[2];
  SUM(T) sum = 0;
  for (long e = 0; e < columns; ++e) sum += LOAD(T, d, e * of_grad.strides[3]) * LOAD(T, o, e * of_output.strides[3]);
  deltas[i] = sum;
}

// The gradient of `rows`: query, key or value. Where `rows` are queries, `others` are keys; else the
// reverse. `rows2` and `others2` are the gradient of the result (for queries) and value (for keys).
typedef struct {
  long heads, count;               // of rows
  long other_heads, others;        // of the others
  long width, columns, out_width;  // of queries and keys, of values, of the gradient
  Heads rows, rows2, other, other2;
  ulong out_offset, statistics_offset;
  Masking masking;
  long rows_are_queries, of_value;
} Gradient;

// The weight of a query and a key, or the slope of their score.
static inline SUM(T) slope(const Gradient* a, const __global SUM(T)* logarithms, const __global SUM(T)* deltas,
                           const __global char* mask, long n, long r, long row_head, long o, long other_head,
                           SUM(T) product, SUM(T) product2) {
  const long query = a->rows_are_queries ? r : o, key = a->rows_are_queries ? o : r;
  const long head = a->rows_are_queries ? row_head : other_head;
  const long heads = a->rows_are_queries ? a->heads : a->other_heads;
  const long at = (n * heads + head) * (a->rows_are_queries ? a->count : a->others) + query;
  const SUM(T) weight = exp(masked(&a->masking, mask, n, head, query, key, product) - logarithms[at]);
  return a->of_value ? weight : weight * (product2 - deltas[at]) * NUMBER(T, a->masking.scale);
}

PER_GROUP attention_backward(__global char* out, const __global char* rows, const __global char* rows2,
                             const __global char* other, const __global char* other2,
                             const __global char* statistics, const __global SUM(T)* deltas,
                             const __global char* mask, const Gradient a) {
  __local SUM(T) tile[ROWS * GROUP], weights[ROWS * GROUP];
  const int item = get_local_id(0);
  const long chunks = (a.out_width + GROUP - 1) / GROUP, blocks = (a.count + ROWS - 1) / ROWS;
  const long chunk = get_group_id(0) % chunks, first = get_group_id(0) / chunks % blocks * ROWS;
  const long head = get_group_id(0) / chunks / blocks % a.heads, n = get_group_id(0) / chunks / blocks / a.heads;
  const __global SUM(T)* logarithms = (const __global SUM(T)*)(statistics + a.statistics_offset);
  const __global MEMORY(T)* x = HEAD(rows, a.rows, n, head);
  const __global MEMORY(T)* x2 = HEAD(rows2, a.rows2, n, head);
  // Several heads of queries share one of keys.
  const long share = a.rows_are_queries ? a.heads / a.other_heads : a.other_heads / a.heads;
  const long first_head = a.rows_are_queries ? head / share : head * share;
  const long last_head = a.rows_are_queries ? first_head + 1 : first_head + share;
  const long begin = a.masking.is_causal && !a.rows_are_queries ? first / GROUP * GROUP : 0;
  const long end = a.masking.is_causal && a.rows_are_queries ? min(a.others, first + ROWS) : a.others;
  const long column = chunk * GROUP + item;
  SUM(T) products[ROWS], products2[ROWS];
  VECTOR sums = 0;
  for (long other_head = first_head; other_head < last_head; ++other_head) {
    const __global MEMORY(T)* y = HEAD(other, a.other, n, other_head);
    const __global MEMORY(T)* y2 = HEAD(other2, a.other2, n, other_head);
    const Heads factor = a.of_value ? a.other2 : a.other;
    const __global MEMORY(T)* z = a.of_value ? y2 : y;
    for (long start = begin; start < end; start += GROUP) {
      const long o = start + item, inside = min(o, a.others - 1);
      vstore16(multiply_rows(tile, x, &a.rows, first, a.count - 1, y + inside * a.other.strides[2],
                             a.other.strides[3], a.width),
               0, products);
      VECTOR of_weights = 0;
      if (!a.of_value)
        of_weights = multiply_rows(tile, x2, &a.rows2, first, a.count - 1, y2 + inside * a.other2.strides[2],
                                   a.other2.strides[3], a.columns);
      vstore16(of_weights, 0, products2);
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int r = 0; r < ROWS; ++r)
        weights[item * ROWS + r] = o < end && first + r < a.count
                                       ? slope(&a, logarithms, deltas, mask, n, first + r, head, o, other_head,
                                               products[r], products2[r])
                                       : 0;
      barrier(CLK_LOCAL_MEM_FENCE);
      if (column < a.out_width)
        sums = add_rows(sums, weights, z + start * factor.strides[2] + column * factor.strides[3], factor.strides[2],
                        min((long)GROUP, end - start));
    }
  }
  vstore16(sums, 0, products);
  if (column < a.out_width)
    for (int r = 0; r < min((long)ROWS, a.count - first); ++r)
      STORE(T, AT(T, out, a.out_offset), ((n * a.heads + head) * a.count + first + r) * a.out_width + column,
            products[r]);
}
