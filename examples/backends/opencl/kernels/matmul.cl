// A batch of matrix products, out = beta * bias + alpha * a b, of any strides. T is the dtype. A
// group computes a tile of the output; tiles of a and b go through local memory. Each item computes
// 4 rows of 8 columns, as vectors, so that an element in local memory is read for several products.

#define ROWS 32     // of a tile of the output
#define COLUMNS 64  // of a tile of the output
#define DEPTH 16    // columns of a tile of a
#define SIDE 8      // items of a group, in each direction

typedef float8 vector_float32, vector_float16, vector_bfloat16;
#ifdef HAS_FLOAT64
typedef double8 vector_float64;
#endif
typedef long8 vector_uint8, vector_int8, vector_int16, vector_int32, vector_int64;
typedef long8 vector_uint16, vector_uint32, vector_uint64;
#define VECTOR JOIN(vector_, T)

// The struct of the same name in src/matmul.hpp.
typedef struct {
  long rows, columns, inner;
  long out_strides[3], a_strides[3], b_strides[3], bias_strides[3];  // batch, row, column
  ulong out_offset, a_offset, b_offset, bias_offset;
  ulong alpha, beta;
  long has_bias;
} Product;

// One row of an item's columns: alpha * sums + beta * bias.
static inline void store_row(__global MEMORY(T)* out, const __global MEMORY(T)* bias, const Product* p, VECTOR sums,
                             long row, long first_column) {
  SUM(T) columns[8];
  vstore8(sums, 0, columns);
  if (row >= p->rows) return;
  for (int j = 0; j < 8 && first_column + j < p->columns; ++j) {
    const long column = first_column + j;
    SUM(T) result = (SUM(T))NUMBER(T, p->alpha) * columns[j];
    if (p->has_bias)
      result += (SUM(T))NUMBER(T, p->beta) * LOAD(T, bias, row * p->bias_strides[1] + column * p->bias_strides[2]);
    STORE(T, out, row * p->out_strides[1] + column * p->out_strides[2], result);
  }
}

__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1))) void matmul(__global char* out,
                                                                           const __global char* left,
                                                                           const __global char* right,
                                                                           const __global char* bias,
                                                                           const Product p) {
  __local SUM(T) a_tile[DEPTH * ROWS];
  __local VECTOR b_tile[DEPTH * SIDE];
  __local SUM(T)* b_elements = (__local SUM(T)*)b_tile;
  const int x = get_local_id(0), y = get_local_id(1), item = y * SIDE + x;
  const long first_column = get_group_id(0) * COLUMNS, first_row = get_group_id(1) * ROWS, batch = get_group_id(2);
  const __global MEMORY(T)* a = AT_CONST(T, left, p.a_offset) + batch * p.a_strides[0];
  const __global MEMORY(T)* b = AT_CONST(T, right, p.b_offset) + batch * p.b_strides[0];
  VECTOR sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
  for (long start = 0; start < p.inner; start += DEPTH) {
    for (int n = item; n < DEPTH * ROWS; n += SIDE * SIDE) {
      const long k = start + n % DEPTH, row = first_row + n / DEPTH;
      const bool inside = k < p.inner && row < p.rows;
      a_tile[n % DEPTH * ROWS + n / DEPTH] = inside ? LOAD(T, a, row * p.a_strides[1] + k * p.a_strides[2]) : 0;
    }
    for (int n = item; n < DEPTH * COLUMNS; n += SIDE * SIDE) {
      const long k = start + n / COLUMNS, column = first_column + n % COLUMNS;
      const bool inside = k < p.inner && column < p.columns;
      b_elements[n] = inside ? LOAD(T, b, k * p.b_strides[1] + column * p.b_strides[2]) : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < DEPTH; ++k) {
      const VECTOR columns = b_tile[k * SIDE + x];
      const __local SUM(T)* rows = a_tile + k * ROWS + y * 4;
      sum0 += rows[0] * columns;
      sum1 += rows[1] * columns;
      sum2 += rows[2] * columns;
      sum3 += rows[3] * columns;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  __global MEMORY(T)* results = AT(T, out, p.out_offset) + batch * p.out_strides[0];
  const __global MEMORY(T)* addends = AT_CONST(T, bias, p.bias_offset) + batch * p.bias_strides[0];
  const long row = first_row + y * 4, column = first_column + x * 8;
  store_row(results, addends, &p, sum0, row, column);
  store_row(results, addends, &p, sum1, row + 1, column);
  store_row(results, addends, &p, sum2, row + 2, column);
  store_row(results, addends, &p, sum3, row + 3, column);
}
