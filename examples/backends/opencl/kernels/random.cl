// Random numbers: Philox 4x32-10, with the counters and words of docs/random-numbers.md. R is the
// dtype of the output; element i in row-major order gets the i-th number of the call.

static inline uint4 philox_block(ulong seed, ulong block) {
  uint4 c = (uint4)((uint)block, (uint)(block >> 32), 0, 0);
  uint2 key = (uint2)((uint)seed, (uint)(seed >> 32));
  for (int round = 0; round < 10; ++round) {
    const ulong first = (ulong)0xD2511F53u * c.x, second = (ulong)0xCD9E8D57u * c.z;
    c = (uint4)((uint)(second >> 32) ^ c.y ^ key.x, (uint)second, (uint)(first >> 32) ^ c.w ^ key.y, (uint)first);
    key += (uint2)(0x9E3779B9u, 0xBB67AE85u);
  }
  return c;
}
static inline uint word32(ulong seed, ulong offset, ulong i) {
  const uint4 block = philox_block(seed, offset + i / 4);
  const uint words[4] = {block.x, block.y, block.z, block.w};
  return words[i % 4];
}
static inline ulong word64(ulong seed, ulong offset, ulong i) {
  const uint4 block = philox_block(seed, offset + i / 2);
  return i % 2 ? (ulong)block.z | (ulong)block.w << 32 : (ulong)block.x | (ulong)block.y << 32;
}

// ---- uniform numbers in [0, 1), with as many bits as the significand holds

#define uniform_float32(seed, offset, i) ((word32(seed, offset, i) >> 8) * 0x1p-24f)
#define uniform_float16(seed, offset, i) ((word32(seed, offset, i) >> 21) * 0x1p-11f)
#define uniform_bfloat16(seed, offset, i) ((word32(seed, offset, i) >> 24) * 0x1p-8f)
#define uniform_float64(seed, offset, i) ((word64(seed, offset, i) >> 11) * 0x1p-53)

#ifdef R_IS_FLOAT

#define UNIFORM(i) JOIN(uniform_, R)(seed, offset, i)
#define OUTPUT(value) STORE(R, AT(R, out, g.offsets[0]), position(&g, 0, i), value)

// parameters: from, to
__kernel void uniform_(__global char* out, const Operands g, const ulong seed, const ulong offset) {
  const long i = get_global_id(0);
  if (i >= g.numel) return;
  const COMPUTE(R) low = NUMBER(R, g.parameters[0]), high = NUMBER(R, g.parameters[1]);
  OUTPUT(low + UNIFORM(i) * (high - low));
}

// parameters: mean, std. Pairs of elements come from pairs of uniform numbers (Box and Muller,
// 1958); half precisions from those of float32.
__kernel void normal_(__global char* out, const Operands g, const ulong seed, const ulong offset) {
  const long i = get_global_id(0);
  if (i >= g.numel) return;
#ifdef R_IS_FLOAT64
  const COMPUTE(R) u1 = uniform_float64(seed, offset, i / 2 * 2), u2 = uniform_float64(seed, offset, i / 2 * 2 + 1);
#else
  const COMPUTE(R) u1 = uniform_float32(seed, offset, i / 2 * 2), u2 = uniform_float32(seed, offset, i / 2 * 2 + 1);
#endif
  const COMPUTE(R) radius = sqrt(-2 * log(1 - u1));
  const COMPUTE(R) number = radius * (i % 2 ? sinpi(2 * u2) : cospi(2 * u2));
  OUTPUT(NUMBER(R, g.parameters[0]) + NUMBER(R, g.parameters[1]) * number);
}

// parameters: 1 / (1 - p). Elements are kept where the uniform number is at least p: its 24 bits
// are compared with the threshold.
__kernel void native_dropout(__global char* out, __global uchar* mask, const __global char* input, const Operands g,
                             const ulong seed, const ulong offset, const long threshold) {
  const long i = get_global_id(0);
  if (i >= g.numel) return;
  const bool kept = (word32(seed, offset, i) >> 8) >= threshold;
  mask[g.offsets[1] + position(&g, 1, i)] = kept;
  const COMPUTE(R) x = LOAD(R, AT_CONST(R, input, g.offsets[2]), position(&g, 2, i));
  OUTPUT(kept ? x * NUMBER(R, g.parameters[0]) : 0);
}

#endif

__kernel void bernoulli_(__global char* out, const Operands g, const ulong seed, const ulong offset,
                         const long threshold) {
  const long i = get_global_id(0);
  if (i < g.numel)
    STORE(R, AT(R, out, g.offsets[0]), position(&g, 0, i), (word32(seed, offset, i) >> 8) < threshold);
}

__kernel void random_range_(__global char* out, const Operands g, const ulong seed, const ulong offset, const long low,
                            const long high) {
  const long i = get_global_id(0);
  if (i >= g.numel) return;
  const long number = low + (long)(word64(seed, offset, i) % ((ulong)high - (ulong)low));
  STORE(R, AT(R, out, g.offsets[0]), position(&g, 0, i), number);
}
