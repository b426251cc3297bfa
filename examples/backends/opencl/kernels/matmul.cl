// A batch of matrix products, out = beta * bias + alpha * a b, of any strides. T is the dtype.
// A group computes a tile of the output; tiles of a and b go through local memory. Each item computes
// 4 x 4 elements, so that an element in local memory is read for four products.

#define TILE 32   // rows and columns of a tile of the output
#define DEPTH 16  // columns of a tile of a
#define SIDE 4    // elements that an item computes, in each direction
#define ITEMS (TILE / SIDE)

// The struct of the same name in src/matmul.hpp.
typedef struct {
  long rows, columns, inner;
  long out_strides[3], a_strides[3], b_strides[3], bias_strides[3];  // batch, row, column
  ulong out_offset, a_offset, b_offset, bias_offset;
  ulong alpha, beta;
  long has_bias;
} Product;

__kernel __attribute__((reqd_work_group_size(ITEMS, ITEMS, 1))) void matmul(__global char* out,
                                                                             const __global char* left,
                                                                             const __global char* right,
                                                                             const __global char* bias,
                                                                             const Product p) {
  __local SUM(T) a_tile[DEPTH][TILE], b_tile[DEPTH][TILE];
  const int x = get_local_id(0), y = get_local_id(1), item = y * ITEMS + x;
  const long first_column = get_group_id(0) * TILE, first_row = get_group_id(1) * TILE, batch = get_global_id(2);
  const __global MEMORY(T)* a = AT_CONST(T, left, p.a_offset) + batch * p.a_strides[0];
  const __global MEMORY(T)* b = AT_CONST(T, right, p.b_offset) + batch * p.b_strides[0];
  SUM(T) sums[SIDE][SIDE];
  for (int i = 0; i < SIDE; ++i)
    for (int j = 0; j < SIDE; ++j) sums[i][j] = 0;
  for (long start = 0; start < p.inner; start += DEPTH) {
    for (int n = item; n < DEPTH * TILE; n += ITEMS * ITEMS) {
      // Neighbours in memory are loaded by neighbours in the group: along k for row-major a.
      const int ka = n % DEPTH, row = n / DEPTH, kb = n / TILE, column = n % TILE;
      a_tile[ka][row] = start + ka < p.inner && first_row + row < p.rows
                            ? LOAD(T, a, (first_row + row) * p.a_strides[1] + (start + ka) * p.a_strides[2])
                            : 0;
      b_tile[kb][column] = start + kb < p.inner && first_column + column < p.columns
                               ? LOAD(T, b, (start + kb) * p.b_strides[1] + (first_column + column) * p.b_strides[2])
                               : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < DEPTH; ++k)
      for (int i = 0; i < SIDE; ++i)
        for (int j = 0; j < SIDE; ++j) sums[i][j] += a_tile[k][y * SIDE + i] * b_tile[k][x + j * ITEMS];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  __global MEMORY(T)* results = AT(T, out, p.out_offset) + batch * p.out_strides[0];
  const __global MEMORY(T)* addends = AT_CONST(T, bias, p.bias_offset) + batch * p.bias_strides[0];
  for (int i = 0; i < SIDE; ++i)
    for (int j = 0; j < SIDE; ++j) {
      const long row = first_row + y * SIDE + i, column = first_column + x + j * ITEMS;
      if (row >= p.rows || column >= p.columns) continue;
      SUM(T) result = (SUM(T))NUMBER(T, p.alpha) * sums[i][j];
      if (p.has_bias)
        result += (SUM(T))NUMBER(T, p.beta) * LOAD(T, addends, row * p.bias_strides[1] + column * p.bias_strides[2]);
      STORE(T, results, row * p.out_strides[1] + column * p.out_strides[2], result);
    }
}
