// Operators with indices. T is the dtype of the elements. An operand that is indexed has stride 0
// in that dimension, and its `step` there comes as an argument.

// Reports an index that is not in [low, size).
__kernel void check_indices(const __global char* indices, const Operands g, const long low, const long size,
                            __global IndexReport* report) {
  const long i = get_global_id(0);
  if (i >= g.numel) return;
  const long index = AT_CONST(int64, indices, g.offsets[0])[position(&g, 0, i)];
  if (index < low || index >= size) report_index(report, index);
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
