/* Products of matrices, of any strides: the second one is packed, so that the inner loop is dense. */
#include <stdlib.h>

#include "candelabra/positions.h"
#include "kernels.h"
#include "tensor.h"

typedef struct matrix {
  char* data;
  int64_t row_step, column_step; /* in bytes */
} matrix;

/* The matrix of the last two dimensions. */
static matrix matrix_of(const cb_tensor* tensor, int64_t number_of_batch) {
  const int64_t itemsize = (int64_t)cb_dtype_size(tensor->dtype);
  const int32_t d = tensor->ndim - 2;
  char* data = memory_of(tensor);
  if (d > 0) data += number_of_batch * tensor->strides[0] * itemsize;
  return (matrix){data, tensor->strides[d] * itemsize, tensor->strides[d + 1] * itemsize};
}

static void multiply_floats(matrix out, matrix a, const double* columns, double* row, int64_t m, int64_t n, int64_t k,
                            int32_t dtype) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t p = 0; p < k; ++p) row[p] = load_number(a.data + i * a.row_step + p * a.column_step, dtype).f;
    for (int64_t j = 0; j < n; ++j) {
      double total = 0;
      for (int64_t p = 0; p < k; ++p) total += row[p] * columns[j * k + p];
      store_number(out.data + i * out.row_step + j * out.column_step, dtype, (number){total, 0});
    }
  }
}

static void multiply_integers(matrix out, matrix a, matrix b, int64_t m, int64_t n, int64_t k, int32_t dtype) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      uint64_t total = 0;
      for (int64_t p = 0; p < k; ++p) {
        const number x = load_number(a.data + i * a.row_step + p * a.column_step, dtype);
        total += (uint64_t)x.i * (uint64_t)load_number(b.data + p * b.row_step + j * b.column_step, dtype).i;
      }
      store_number(out.data + i * out.row_step + j * out.column_step, dtype, (number){0, (int64_t)total});
    }
  }
}

/* mm and bmm: without a batch there is one matrix. */
static int32_t multiply(cb_call* call) {
  const cb_tensor *out = &call->outputs[0], *left = call->arguments[CB_MM_SELF].as.tensor;
  const cb_tensor* right = call->arguments[CB_MM_MAT2].as.tensor;
  const int32_t d = out->ndim - 2, dtype = out->dtype;
  const int64_t batch = d > 0 ? out->sizes[0] : 1;
  const int64_t m = out->sizes[d], n = out->sizes[d + 1], k = left->sizes[d + 1];
  double* packed = malloc(sizeof *packed * ((size_t)(n + 1) * (size_t)k + 1));
  if (!packed)
    return fail(call, CB_OUT_OF_MEMORY, "out of memory: a product of %lld x %lld", (long long)k, (long long)n);
  for (int64_t number_of_batch = 0; number_of_batch < batch; ++number_of_batch) {
    const matrix c = matrix_of(out, number_of_batch), a = matrix_of(left, number_of_batch);
    const matrix b = matrix_of(right, number_of_batch);
    if (!is_floating(dtype)) {
      multiply_integers(c, a, b, m, n, k, dtype);
      continue;
    }
    for (int64_t j = 0; j < n; ++j)
      for (int64_t p = 0; p < k; ++p)
        packed[j * k + p] = load_number(b.data + p * b.row_step + j * b.column_step, dtype).f;
    multiply_floats(c, a, packed, packed + n * k, m, n, k, dtype);
  }
  free(packed);
  return CB_OK;
}

void add_linalg_kernels(kernel_table* table) {
  add_kernel(table, "mm", multiply, INTEGERS | FLOATS);
  add_kernel(table, "bmm", multiply, INTEGERS | FLOATS);
}
