/* Reading and writing at indices, which are int64. A kernel checks them before it writes. */
#include "candelabra/positions.h"
#include "kernels.h"
#include "tensor.h"

static int32_t check_index(cb_call* call, const cb_tensor* index, int64_t dim, int64_t size) {
  walk w = walk_over(index, 1, &index);
  for (int64_t i = 0; i < w.count; ++i, step(&w)) {
    const int64_t found = load_number(w.at[0], CB_INT64).i;
    if (found < 0 || found >= size)
      return fail(call, CB_RUNTIME_ERROR, "index %lld is out of bounds for dimension %lld with size %lld",
                  (long long)found, (long long)dim, (long long)size);
  }
  return CB_OK;
}

/* `tensor` with stride 0 in `dim`, over the sizes of the index: the index adds what is left out. */
static cb_tensor without(const cb_tensor* tensor, int64_t dim, int64_t* strides) {
  cb_tensor result = *tensor;
  for (int32_t d = 0; d < tensor->ndim; ++d) strides[d] = d == dim ? 0 : tensor->strides[d];
  result.strides = strides;
  return result;
}

static int64_t bytes_along(const cb_tensor* tensor, int64_t dim) {
  return tensor->ndim ? tensor->strides[dim] * (int64_t)cb_dtype_size(tensor->dtype) : 0;
}
static int64_t size_along(const cb_tensor* tensor, int64_t dim) {
  return tensor->ndim ? tensor->sizes[dim] : 1;
}

/* Moves elements, of any dtype. */
static int32_t gather(cb_call* call) {
  const cb_tensor *out = &call->outputs[0], *self = call->arguments[CB_GATHER_SELF].as.tensor;
  const cb_tensor* index = call->arguments[CB_GATHER_INDEX].as.tensor;
  const int64_t dim = call->arguments[CB_GATHER_DIM].as.i;
  const int32_t status = check_index(call, index, dim, size_along(self, dim));
  if (status != CB_OK) return status;
  const size_t bytes = cb_dtype_size(out->dtype);
  const int64_t along = bytes_along(self, dim);
  int64_t strides[MAX_DIMS];
  const cb_tensor source = without(self, dim, strides);
  walk w = walk_over(index, 3, (const cb_tensor*[]){out, index, &source});
  for (int64_t i = 0; i < w.count; ++i, step(&w))
    memcpy(w.at[0], w.at[2] + load_number(w.at[1], CB_INT64).i * along, bytes);
  return CB_OK;
}

/* The output begins as self, unless it is self: then the call is in place. */
static void copy_self(const cb_tensor* out, const cb_tensor* self) {
  if (memory_of(out) == memory_of(self)) return;
  const size_t bytes = cb_dtype_size(out->dtype);
  walk w = walk_over(out, 2, (const cb_tensor*[]){out, self});
  for (int64_t i = 0; i < w.count; ++i, step(&w)) memcpy(w.at[0], w.at[1], bytes);
}

static int32_t write_at_index(cb_call* call, bool adds) {
  const cb_tensor *out = &call->outputs[0], *self = call->arguments[CB_SCATTER_SELF].as.tensor;
  const cb_tensor *index = call->arguments[CB_SCATTER_INDEX].as.tensor,
                  *src = call->arguments[CB_SCATTER_SRC].as.tensor;
  const int64_t dim = call->arguments[CB_SCATTER_DIM].as.i;
  const int32_t status = check_index(call, index, dim, size_along(self, dim));
  if (status != CB_OK) return status;
  copy_self(out, self);
  const size_t bytes = cb_dtype_size(out->dtype);
  const int64_t along = bytes_along(out, dim);
  int64_t strides[MAX_DIMS];
  const cb_tensor target = without(out, dim, strides);
  walk w = walk_over(index, 3, (const cb_tensor*[]){&target, index, src});
  for (int64_t i = 0; i < w.count; ++i, step(&w)) {
    char* at = w.at[0] + load_number(w.at[1], CB_INT64).i * along;
    if (!adds) {
      memcpy(at, w.at[2], bytes);
      continue;
    }
    const number x = load_number(at, out->dtype), y = load_number(w.at[2], src->dtype);
    store_number(at, out->dtype, (number){x.f + y.f, (int64_t)((uint64_t)x.i + (uint64_t)y.i)});
  }
  return CB_OK;
}

static int32_t scatter(cb_call* call) {
  return write_at_index(call, false);
}
static int32_t scatter_add(cb_call* call) {
  return write_at_index(call, true);
}

void add_indexing_kernels(kernel_table* table) {
  add_kernel(table, "gather", gather, 0);
  add_kernel(table, "scatter", scatter, 0);
  add_kernel(table, "scatter_add", scatter_add, BOOLS | INTEGERS | FLOATS);
}
