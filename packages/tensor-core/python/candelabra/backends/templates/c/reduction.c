/*
 * Reductions, running sums and sorting. The output of a reduction has as many dimensions as the
 * input; reduced dimensions have size 1 and stride 0.
 */
#include <stdlib.h>

#include "candelabra/positions.h"
#include "kernels.h"
#include "tensor.h"

/* One element of the output: its elements of the input. */
typedef struct group {
  const char* first;
  int32_t dtype;
  int32_t ndim;
  int64_t count;
  int64_t sizes[MAX_DIMS];
  int64_t steps[MAX_DIMS]; /* in bytes */
} group;

typedef number (*reducer)(const group* elements);

/* Calls `add` for each element, and for its number. */
static number accumulate(const group* g, number start, number (*add)(number, number, int64_t, bool)) {
  const bool floats = is_floating(g->dtype);
  number total = start;
  int64_t index[MAX_DIMS] = {0};
  const char* at = g->first;
  for (int64_t i = 0; i < g->count; ++i) {
    total = add(total, load_number(at, g->dtype), i, floats);
    for (int32_t d = g->ndim - 1; d >= 0; --d) {
      at += g->steps[d];
      if (++index[d] < g->sizes[d]) break;
      at -= g->steps[d] * g->sizes[d];
      index[d] = 0;
    }
  }
  return total;
}

static number add_to_sum(number total, number x, int64_t i, bool floats) {
  (void)i, (void)floats;
  return (number){total.f + x.f, (int64_t)((uint64_t)total.i + (uint64_t)x.i)};
}
static number add_to_product(number total, number x, int64_t i, bool floats) {
  (void)i, (void)floats;
  return (number){total.f * x.f, (int64_t)((uint64_t)total.i * (uint64_t)x.i)};
}
/* Whether x comes before the best so far; NaN comes before everything. */
static bool is_above(number x, number best, bool floats) {
  return floats ? !isnan(best.f) && (isnan(x.f) || x.f > best.f) : x.i > best.i;
}
static bool is_below(number x, number best, bool floats) {
  return floats ? !isnan(best.f) && (isnan(x.f) || x.f < best.f) : x.i < best.i;
}
static number add_to_maximum(number best, number x, int64_t i, bool floats) {
  return i == 0 || is_above(x, best, floats) ? x : best;
}
static number add_to_minimum(number best, number x, int64_t i, bool floats) {
  return i == 0 || is_below(x, best, floats) ? x : best;
}

static number sum_of(const group* g) {
  return accumulate(g, (number){0, 0}, add_to_sum);
}
static number product_of(const group* g) {
  return accumulate(g, (number){1, 1}, add_to_product);
}
static number maximum_of(const group* g) {
  return accumulate(g, (number){0, 0}, add_to_maximum);
}
static number minimum_of(const group* g) {
  return accumulate(g, (number){0, 0}, add_to_minimum);
}
/* The first of equal elements. The group has one dimension. */
static number position_of_maximum(const group* g) {
  const bool floats = is_floating(g->dtype);
  number best = {0, 0};
  int64_t position = 0;
  for (int64_t i = 0; i < g->count; ++i) {
    const number x = load_number(g->first + i * (g->ndim ? g->steps[0] : 0), g->dtype);
    if (i == 0 || is_above(x, best, floats)) {
      best = x;
      position = i;
    }
  }
  return (number){0, position};
}

static int32_t reduce(cb_call* call, reducer function) {
  const cb_tensor *out = &call->outputs[0], *a = call->arguments[CB_SUM_SELF].as.tensor;
  const int64_t itemsize = (int64_t)cb_dtype_size(a->dtype);
  group g = {.dtype = a->dtype, .count = 1};
  int64_t kept_strides[MAX_DIMS];
  for (int32_t d = 0; d < a->ndim; ++d) {
    const bool is_reduced = out->sizes[d] == 1 && a->sizes[d] != 1;
    kept_strides[d] = is_reduced ? 0 : a->strides[d];
    if (!is_reduced) continue;
    g.sizes[g.ndim] = a->sizes[d];
    g.steps[g.ndim++] = a->strides[d] * itemsize;
    g.count *= a->sizes[d];
  }
  cb_tensor firsts = *a; /* the first element of each group */
  firsts.strides = kept_strides;
  walk w = walk_over(out, 2, (const cb_tensor*[]){out, &firsts});
  for (int64_t i = 0; i < w.count; ++i, step(&w)) {
    g.first = w.at[1];
    store_number(w.at[0], out->dtype, function(&g));
  }
  return CB_OK;
}

static int32_t sum(cb_call* call) {
  return reduce(call, sum_of);
}
static int32_t prod(cb_call* call) {
  return reduce(call, product_of);
}
static int32_t amax(cb_call* call) {
  return reduce(call, maximum_of);
}
static int32_t amin(cb_call* call) {
  return reduce(call, minimum_of);
}
static int32_t argmax(cb_call* call) {
  return reduce(call, position_of_maximum);
}

/* ---- slices along a dimension */

/* The tensor at index 0 of `dim`: a walk over it visits the first element of each slice. */
typedef struct slices {
  cb_tensor tensor;
  int64_t sizes[MAX_DIMS];
  int64_t length; /* of a slice */
  int64_t step;   /* between the elements of a slice, in bytes */
} slices;

static void slices_of(slices* s, const cb_tensor* tensor, int64_t dim) {
  s->tensor = *tensor;
  s->length = tensor->ndim ? tensor->sizes[dim] : 1;
  s->step = tensor->ndim ? tensor->strides[dim] * (int64_t)cb_dtype_size(tensor->dtype) : 0;
  s->tensor.numel = s->length ? tensor->numel / s->length : 0;
  for (int32_t d = 0; d < tensor->ndim; ++d) s->sizes[d] = d == dim ? 1 : tensor->sizes[d];
  s->tensor.sizes = s->sizes;
}

static int32_t cumsum(cb_call* call) {
  const int64_t dim = call->arguments[CB_CUMSUM_DIM].as.i;
  const int32_t dtype = call->outputs[0].dtype;
  slices out, a;
  slices_of(&out, &call->outputs[0], dim);
  slices_of(&a, call->arguments[CB_CUMSUM_SELF].as.tensor, dim);
  walk w = walk_over(&out.tensor, 2, (const cb_tensor*[]){&out.tensor, &a.tensor});
  for (int64_t i = 0; i < w.count; ++i, step(&w)) {
    number total = {0, 0};
    for (int64_t k = 0; k < a.length; ++k) {
      total = add_to_sum(total, load_number(w.at[1] + k * a.step, dtype), k, true);
      store_number(w.at[0] + k * out.step, dtype, total);
    }
  }
  return CB_OK;
}

typedef struct item {
  number value;
  int64_t position;
  bool floats;
} item;

/* Ascending, NaN last. Equal elements keep their order. */
static int ascending(const void* left, const void* right) {
  const item *a = left, *b = right;
  if (a->floats ? isnan(a->value.f) != isnan(b->value.f) : false) return isnan(a->value.f) ? 1 : -1;
  if (a->floats ? a->value.f < b->value.f : a->value.i < b->value.i) return -1;
  if (a->floats ? a->value.f > b->value.f : a->value.i > b->value.i) return 1;
  return a->position < b->position ? -1 : a->position > b->position;
}
static int descending(const void* left, const void* right) {
  const item *a = left, *b = right;
  const item first = {b->value, a->position, a->floats}, second = {a->value, b->position, a->floats};
  return ascending(&first, &second);
}

static int32_t sort(cb_call* call) {
  const int64_t dim = call->arguments[CB_SORT_DIM].as.i;
  const bool is_descending = call->arguments[CB_SORT_DESCENDING].as.i;
  const cb_tensor* self = call->arguments[CB_SORT_SELF].as.tensor;
  slices values, indices, a;
  slices_of(&values, &call->outputs[0], dim);
  slices_of(&indices, &call->outputs[1], dim);
  slices_of(&a, self, dim);
  item* items = malloc(sizeof *items * (size_t)(a.length ? a.length : 1));
  if (!items)
    return fail(call, CB_OUT_OF_MEMORY, "out of memory: sort needs room for %lld elements", (long long)a.length);
  walk w = walk_over(&values.tensor, 3, (const cb_tensor*[]){&values.tensor, &indices.tensor, &a.tensor});
  for (int64_t i = 0; i < w.count; ++i, step(&w)) {
    for (int64_t k = 0; k < a.length; ++k)
      items[k] = (item){load_number(w.at[2] + k * a.step, self->dtype), k, is_floating(self->dtype)};
    qsort(items, (size_t)a.length, sizeof *items, is_descending ? descending : ascending);
    for (int64_t k = 0; k < a.length; ++k) {
      store_number(w.at[0] + k * values.step, self->dtype, items[k].value);
      store_number(w.at[1] + k * indices.step, CB_INT64, (number){0, items[k].position});
    }
  }
  free(items);
  return CB_OK;
}

void add_reduction_kernels(kernel_table* table) {
  add_kernel(table, "sum", sum, INTEGERS | FLOATS);
  add_kernel(table, "prod", prod, INTEGERS | FLOATS);
  add_kernel(table, "amax", amax, BOOLS | INTEGERS | FLOATS);
  add_kernel(table, "amin", amin, BOOLS | INTEGERS | FLOATS);
  add_kernel(table, "argmax", argmax, BOOLS | INTEGERS | FLOATS);
  add_kernel(table, "cumsum", cumsum, INTEGERS | FLOATS);
  add_kernel(table, "sort", sort, BOOLS | INTEGERS | FLOATS);
}
