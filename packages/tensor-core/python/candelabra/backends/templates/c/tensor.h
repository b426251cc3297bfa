/* Elements of tensors: loading and storing them by dtype, and walking over them. */
#ifndef TENSOR_H
#define TENSOR_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "device.h"

enum { MAX_DIMS = 64 };

/* The dtypes of these kernels. Another one needs a case in load_number() and store_number(). */
#define INTEGERS                                                                                      \
  (CB_DTYPE_BIT(CB_UINT8) | CB_DTYPE_BIT(CB_INT8) | CB_DTYPE_BIT(CB_INT16) | CB_DTYPE_BIT(CB_INT32) | \
   CB_DTYPE_BIT(CB_INT64))
#define FLOATS (CB_DTYPE_BIT(CB_FLOAT32) | CB_DTYPE_BIT(CB_FLOAT64))
#define BOOLS CB_DTYPE_BIT(CB_BOOL)

/* An element: `f` for floating-point dtypes, `i` for integers and bools. */
typedef struct number {
  double f;
  int64_t i;
} number;

static inline bool is_floating(int32_t dtype) {
  return dtype == CB_FLOAT32 || dtype == CB_FLOAT64;
}

static inline bool is_known(int32_t dtype) {
  return (BOOLS | INTEGERS | FLOATS) >> dtype & 1;
}

/* A number that stands for a tensor is in host memory; everything else is in the device's. */
static inline char* memory_of(const cb_tensor* tensor) {
  return tensor->flags & CB_TENSOR_NUMBER ? tensor->data : device_address(tensor->storage, tensor->offset);
}

/* Converts toward zero. Numbers out of range give the smallest integer, as on every backend. */
static inline int64_t truncated(double value, int32_t dtype) {
  if (dtype == CB_INT64) return value >= -0x1p63 && value < 0x1p63 ? (int64_t)value : INT64_MIN;
  return value > -2147483649.0 && value < 2147483648.0 ? (int64_t)value : INT32_MIN;
}

static inline number load_number(const char* at, int32_t dtype) {
  number result = {0, 0};
  switch (dtype) {
    case CB_BOOL:
      result.i = *(const uint8_t*)at != 0;
      break;
    case CB_UINT8:
      result.i = *(const uint8_t*)at;
      break;
    case CB_INT8:
      result.i = *(const int8_t*)at;
      break;
    case CB_INT16:
      result.i = *(const int16_t*)at;
      break;
    case CB_INT32:
      result.i = *(const int32_t*)at;
      break;
    case CB_INT64:
      result.i = *(const int64_t*)at;
      break;
    case CB_FLOAT32:
      result.f = *(const float*)at;
      break;
    case CB_FLOAT64:
      result.f = *(const double*)at;
      break;
    default:
      break; /* kept out by the masks of the entries */
  }
  return result;
}

static inline void store_number(char* at, int32_t dtype, number value) {
  switch (dtype) {
    case CB_BOOL:
      *(uint8_t*)at = value.i != 0;
      break;
    case CB_UINT8:
      *(uint8_t*)at = (uint8_t)value.i;
      break;
    case CB_INT8:
      *(int8_t*)at = (int8_t)value.i;
      break;
    case CB_INT16:
      *(int16_t*)at = (int16_t)value.i;
      break;
    case CB_INT32:
      *(int32_t*)at = (int32_t)value.i;
      break;
    case CB_INT64:
      *(int64_t*)at = value.i;
      break;
    case CB_FLOAT32:
      *(float*)at = (float)value.f;
      break;
    case CB_FLOAT64:
      *(double*)at = value.f;
      break;
    default:
      break;
  }
}

/* A number of one dtype as a number of another one. */
static inline number converted(number value, int32_t from, int32_t to) {
  if (is_floating(from) && to == CB_BOOL) return (number){0, value.f != 0};
  if (is_floating(from) && !is_floating(to)) return (number){0, truncated(value.f, to)};
  if (!is_floating(from) && is_floating(to)) return (number){(double)value.i, 0};
  return value;
}

/* A Python number as an element. */
static inline number number_of(const cb_scalar* scalar, int32_t dtype) {
  const bool is_whole = scalar->kind == CB_SCALAR_BOOL || scalar->kind == CB_SCALAR_INT;
  if (is_floating(dtype)) return (number){scalar->re, 0};
  if (is_whole) return (number){0, scalar->i};
  return converted((number){scalar->re, 0}, CB_FLOAT64, dtype);
}

/*
 * A walk over up to four tensors of the same sizes, in row-major order:
 *
 *   walk w = walk_over(out, 2, (const cb_tensor*[]){out, a});
 *   for (int64_t i = 0; i < w.count; ++i, step(&w)) ... w.at[0] ... w.at[1] ...
 */
typedef struct walk {
  int64_t count;
  char* at[4];
  int operands;
  int32_t ndim;
  const int64_t* sizes;
  int64_t index[MAX_DIMS];
  int64_t steps[4][MAX_DIMS]; /* in bytes */
} walk;

static inline walk walk_over(const cb_tensor* shape, int operands, const cb_tensor* const* tensors) {
  walk w;
  w.count = shape->numel;
  w.operands = operands;
  w.ndim = shape->ndim;
  w.sizes = shape->sizes;
  memset(w.index, 0, sizeof w.index);
  for (int k = 0; k < operands; ++k) {
    const int64_t itemsize = (int64_t)cb_dtype_size(tensors[k]->dtype);
    w.at[k] = memory_of(tensors[k]);
    for (int32_t d = 0; d < w.ndim; ++d) w.steps[k][d] = tensors[k]->strides[d] * itemsize;
  }
  return w;
}

static inline void step(walk* w) {
  for (int32_t d = w->ndim - 1; d >= 0; --d) {
    for (int k = 0; k < w->operands; ++k) w->at[k] += w->steps[k][d];
    if (++w->index[d] < w->sizes[d]) return;
    for (int k = 0; k < w->operands; ++k) w->at[k] -= w->steps[k][d] * w->sizes[d];
    w->index[d] = 0;
  }
}

#endif
