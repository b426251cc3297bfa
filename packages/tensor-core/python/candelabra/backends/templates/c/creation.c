/* Filling and copying. */
#include "candelabra/positions.h"
#include "kernels.h"
#include "tensor.h"

static int32_t fill(cb_call* call) {
  const cb_tensor* out = &call->outputs[0];
  const number value = number_of(call->arguments[CB_FILL_VALUE].as.scalar, out->dtype);
  walk w = walk_over(out, 1, &out);
  for (int64_t i = 0; i < w.count; ++i, step(&w)) store_number(w.at[0], out->dtype, value);
  return CB_OK;
}

/* Copies between any two dtypes of this backend, and elements of other dtypes unchanged. */
static int32_t copy(cb_call* call) {
  const cb_tensor *out = &call->outputs[0], *source = call->arguments[CB_COPY_SRC].as.tensor;
  walk w = walk_over(out, 2, (const cb_tensor*[]){out, source});
  if (out->dtype == source->dtype) {
    const size_t bytes = cb_dtype_size(out->dtype);
    for (int64_t i = 0; i < w.count; ++i, step(&w)) memmove(w.at[0], w.at[1], bytes);
    return CB_OK;
  }
  if (!is_known(out->dtype) || !is_known(source->dtype)) return CB_NOT_IMPLEMENTED;
  for (int64_t i = 0; i < w.count; ++i, step(&w)) {
    const number value = load_number(w.at[1], source->dtype);
    store_number(w.at[0], out->dtype, converted(value, source->dtype, out->dtype));
  }
  return CB_OK;
}

/* start + i * step. The core has computed the size. */
static int32_t arange(cb_call* call) {
  const cb_tensor* out = &call->outputs[0];
  const cb_scalar *start = call->arguments[CB_ARANGE_START].as.scalar, *by = call->arguments[CB_ARANGE_STEP].as.scalar;
  const bool is_whole = start->kind <= CB_SCALAR_INT && by->kind <= CB_SCALAR_INT;
  walk w = walk_over(out, 1, &out);
  for (int64_t i = 0; i < w.count; ++i, step(&w)) {
    number value = {0, (int64_t)((uint64_t)start->i + (uint64_t)i * (uint64_t)by->i)};
    if (is_floating(out->dtype) || !is_whole)
      value = converted((number){start->re + (double)i * by->re, 0}, CB_FLOAT64, out->dtype);
    store_number(w.at[0], out->dtype, value);
  }
  return CB_OK;
}

void add_creation_kernels(kernel_table* table) {
  add_kernel(table, "fill_", fill, BOOLS | INTEGERS | FLOATS);
  add_kernel(table, "copy_", copy, 0);
  add_kernel(table, "arange", arange, INTEGERS | FLOATS);
}
