/*
 * Random numbers: Philox 4x32-10 (Salmon et al. 2011). A seed gives the same numbers on every
 * backend, because docs/random-numbers.md says which word belongs to which element.
 */
#include "candelabra/positions.h"
#include "kernels.h"
#include "tensor.h"

typedef struct philox_block {
  uint32_t words[4];
} philox_block;

static philox_block philox(uint64_t seed, uint64_t block) {
  uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = 0, c3 = 0;
  uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = (uint64_t)0xD2511F53u * c0, product1 = (uint64_t)0xCD9E8D57u * c2;
    c0 = (uint32_t)(product1 >> 32) ^ c1 ^ key0;
    c2 = (uint32_t)(product0 >> 32) ^ c3 ^ key1;
    c1 = (uint32_t)product1;
    c3 = (uint32_t)product0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return (philox_block){{c0, c1, c2, c3}};
}

static uint32_t word32(const cb_call* call, uint64_t i) {
  return philox(call->random_seed, call->random_offset + i / 4).words[i % 4];
}
static uint64_t word64(const cb_call* call, uint64_t i) {
  const philox_block block = philox(call->random_seed, call->random_offset + i / 2);
  return block.words[2 * (i % 2)] | (uint64_t)block.words[2 * (i % 2) + 1] << 32;
}
/* In [0, 1), with as many bits as the significand holds. */
static double unit(const cb_call* call, uint64_t i, int32_t dtype) {
  return dtype == CB_FLOAT64 ? (double)(word64(call, i) >> 11) * 0x1p-53 : (double)(word32(call, i) >> 8) * 0x1p-24;
}

static int32_t uniform(cb_call* call) {
  const cb_tensor* out = &call->outputs[0];
  const double from = call->arguments[CB_UNIFORM_FROM].as.f, to = call->arguments[CB_UNIFORM_TO].as.f;
  walk w = walk_over(out, 1, &out);
  for (int64_t i = 0; i < w.count; ++i, step(&w)) {
    const double u = unit(call, (uint64_t)i, out->dtype);
    store_number(w.at[0], out->dtype, (number){from + u * (to - from), 0});
  }
  return CB_OK;
}

/* Box and Muller, on pairs of elements. */
static int32_t normal(cb_call* call) {
  const cb_tensor* out = &call->outputs[0];
  const double mean = call->arguments[CB_NORMAL_MEAN].as.f, std = call->arguments[CB_NORMAL_STD].as.f;
  const double circle = 6.283185307179586;
  walk w = walk_over(out, 1, &out);
  for (int64_t i = 0; i < w.count; ++i, step(&w)) {
    const uint64_t first = (uint64_t)i / 2 * 2;
    const double u1 = unit(call, first, out->dtype), u2 = unit(call, first + 1, out->dtype);
    const double radius = sqrt(-2 * log(1 - u1));
    const double direction = i % 2 ? sin(circle * u2) : cos(circle * u2);
    store_number(w.at[0], out->dtype, (number){mean + radius * direction * std, 0});
  }
  return CB_OK;
}

static int32_t random_range(cb_call* call) {
  const cb_tensor* out = &call->outputs[0];
  const int64_t low = call->arguments[CB_RANDOM_RANGE_LOW].as.i, high = call->arguments[CB_RANDOM_RANGE_HIGH].as.i;
  walk w = walk_over(out, 1, &out);
  for (int64_t i = 0; i < w.count; ++i, step(&w)) {
    const int64_t drawn = (int64_t)((uint64_t)low + word64(call, (uint64_t)i) % ((uint64_t)high - (uint64_t)low));
    store_number(w.at[0], out->dtype, converted((number){0, drawn}, CB_INT64, out->dtype));
  }
  return CB_OK;
}

void add_random_kernels(kernel_table* table) {
  add_kernel(table, "uniform_", uniform, FLOATS);
  add_kernel(table, "normal_", normal, FLOATS);
  add_kernel(table, "random_range_", random_range, BOOLS | INTEGERS | FLOATS);
}
