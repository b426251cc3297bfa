// Operators with indices. T is the dtype of the elements. An operand that is indexed has stride 0
// in that dimension, and its `step` there comes as an argument.

// Reports an index that is not in [low, size).
__kernel void check_indices(const __global char* indices, const Operands g, const long low, const long size,
                            __global IndexReport* report) {
  const long i = get_global_id(0);
  if (i >= g.numel) return;
  const long index = AT_CONST(int64, indices, g.offsets[0])[position(&g, 0, i)];
  if (index < low || index >= size) report_index(report, 0, index);
}

// The same for an index of one of several dimensions, where negative ones count from the end. Adds
// its elements to the offsets of the slices.
__kernel void add_offsets(__global long* offsets, const __global char* indices, const Operands g, const long dim,
                          const long size, const long stride, const long is_first, __global IndexReport* report) {
  const long j = get_global_id(0);
  if (j >= g.numel) return;
  const long index = AT_CONST(int64, indices, g.offsets[0])[position(&g, 0, j)];
  const long wrapped = index < 0 ? index + size : index;
  if (wrapped < 0 || wrapped >= size) report_index(report, dim, index);
  offsets[j] = (is_first ? 0 : offsets[j]) + wrapped * stride;
}

// out[i] = self[index[i]]
__kernel void gather(__global char* out, const __global char* indices, const __global char* self, const Operands g,
                     const long step) {
  const long i = get_global_id(0);
  if (i >= g.numel) return;
  const long index = AT_CONST(int64, indices, g.offsets[1])[position(&g, 1, i)];
  AT(T, out, g.offsets[0])[position(&g, 0, i)] =
      AT_CONST(T, self, g.offsets[2])[position(&g, 2, i) + index * step];
}

// out[index[i]] = src[i]
__kernel void scatter(__global char* out, const __global char* indices, const __global char* src, const Operands g,
                      const long step) {
  const long i = get_global_id(0);
  if (i >= g.numel) return;
  const long index = AT_CONST(int64, indices, g.offsets[1])[position(&g, 1, i)];
  const COMPUTE(T) x =
      g.is_number[2] ? NUMBER(T, g.numbers[2]) : LOAD(T, AT_CONST(T, src, g.offsets[2]), position(&g, 2, i));
  STORE(T, AT(T, out, g.offsets[0]), position(&g, 0, i) + index * step, x);
}

// out[index[i]] += alpha * src[i]. One item adds one slice, in order: the sums are deterministic.
__kernel void scatter_add(__global char* out, const __global char* indices, const __global char* src, const Operands g,
                          const Along along, const ulong alpha, const long skipped) {
  const long s = get_global_id(0);
  if (s >= g.numel) return;
  __global MEMORY(T)* sums = SLICE(T, out, 0, s);
  const __global long* from = SLICE_CONST(int64, indices, 1, s);
  const __global MEMORY(T)* addends = SLICE_CONST(T, src, 2, s);
  for (long i = 0; i < along.size; ++i) {
    const long index = from[i * along.steps[1]];
    if (index == skipped) continue;
    const long target = index * along.steps[0];
    STORE(T, sums, target, LOAD(T, sums, target) + NUMBER(T, alpha) * LOAD(T, addends, i * along.steps[2]));
  }
}

// Writes `count` slices of values at offsets of the output, or adds them. `order` sorts the offsets
// and keeps the order of equal ones. So the last slice wins, and sums are deterministic: one item
// writes an element. Elements of g are those of all slices, the kept dimensions innermost.
__kernel void index_put(__global char* out, const __global char* values, const __global long* offsets,
                        const __global long* order, const Operands g, const long count, const long accumulate) {
  const long n = get_global_id(0);
  if (n >= g.numel) return;
  const long width = g.numel / count, i = n % width;
  long k = n / width;
  const long offset = offsets[order[k]];
  const bool is_other = accumulate ? k > 0 && offsets[order[k - 1]] == offset
                                   : k + 1 < count && offsets[order[k + 1]] == offset;
  if (is_other) return;
  __global MEMORY(T)* target = AT(T, out, g.offsets[0]) + offset + position(&g, 0, i);
  const __global MEMORY(T)* source = AT_CONST(T, values, g.offsets[1]);
  if (!accumulate) {
    *target = source[position(&g, 1, order[k] * width + i)];
    return;
  }
  SUM(T) sum = LOAD(T, target, 0);
  for (; k < count && offsets[order[k]] == offset; ++k) sum += LOAD(T, source, position(&g, 1, order[k] * width + i));
  STORE(T, target, 0, sum);
}
