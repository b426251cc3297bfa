/*
 * A whole Candelabra backend in one C99 file: device type "minic".
 *
 * Its memory has no addresses, like the buffers of OpenCL, Metal and Vulkan. allocate() returns a handle: the position of a block
 * in a private arena, with a tag in the upper bits. The core names memory by a handle and an offset, and only at() turns them into
 * an address.
 *
 * It has few kernels, each for float32 and float64 only: what it lacks, the core composes of what it has or refuses clearly.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "candelabra/backend.h"

/* ---- memory: a first-fit arena ------------------------------------------------------------------------------------------ */

#define ARENA_BYTES ((size_t)256 << 20)
#define ALIGNMENT ((size_t)64)
#define TAG ((uintptr_t)0xC0DE000000000000u) /* no address of x86-64 or of ARM: a handle that is used as one traps */

/* A block of the arena; blocks lie one behind another, and header and data are both multiples of the alignment. */
typedef struct block {
  size_t bytes; /* of the data */
  bool used;
  char padding[55];
} block;

static unsigned char* arena;
static pthread_mutex_t arena_lock;
static cb_memory_statistics statistics = {sizeof(cb_memory_statistics), 0, 0, 0, 0, 0, 0};
static __thread char last_message[256];

static unsigned char* at(const void* handle, uint64_t offset) {
  return handle ? arena + ((uintptr_t)handle ^ TAG) + offset : NULL;
}
static void* handle_of(const void* memory) {
  return (void*)((uintptr_t)((const unsigned char*)memory - arena) ^ TAG);
}
static block* next_block(block* b) {
  return (block*)((unsigned char*)(b + 1) + b->bytes);
}
static bool inside(const block* b) {
  return (const unsigned char*)b < arena + ARENA_BYTES;
}

static int32_t initialize(void) {
  if (sizeof(block) != ALIGNMENT || pthread_mutex_init(&arena_lock, NULL) != 0) return CB_RUNTIME_ERROR;
  void* memory = NULL;
  if (posix_memalign(&memory, ALIGNMENT, ARENA_BYTES) != 0) return CB_OUT_OF_MEMORY;
  arena = memory;
  *(block*)arena = (block){ARENA_BYTES - sizeof(block), false, {0}};
  statistics.reserved = statistics.reserved_peak = (int64_t)ARENA_BYTES;
  return CB_OK;
}

static const char* last_error(void) {
  return last_message;
}

static int32_t allocate(int32_t device, cb_allocation* allocation) {
  (void)device;
  size_t bytes = allocation->bytes;
  int32_t status = CB_OUT_OF_MEMORY;
  size_t wanted = bytes > ARENA_BYTES ? bytes : (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  pthread_mutex_lock(&arena_lock);
  for (block* b = (block*)arena; inside(b); b = next_block(b)) {
    if (b->used) continue;
    for (block* following = next_block(b); inside(following) && !following->used; following = next_block(b)) {
      b->bytes += sizeof(block) + following->bytes; /* neighbours that are free become one */
    }
    if (b->bytes < wanted) continue;
    if (b->bytes >= wanted + sizeof(block) + ALIGNMENT) {
      size_t rest = b->bytes - wanted - sizeof(block);
      b->bytes = wanted;
      *next_block(b) = (block){rest, false, {0}};
    }
    b->used = true;
    allocation->storage = handle_of(b + 1);
    statistics.allocated += (int64_t)b->bytes;
    statistics.allocation_count += 1;
    if (statistics.allocated > statistics.allocated_peak) statistics.allocated_peak = statistics.allocated;
    status = CB_OK;
    break;
  }
  if (status != CB_OK) {
    snprintf(last_message, sizeof last_message,
             "out of memory: asked for %zu bytes, the arena has %zu, %lld of them in use", bytes, ARENA_BYTES,
             (long long)statistics.allocated);
  }
  pthread_mutex_unlock(&arena_lock);
  return status;
}

static void deallocate(int32_t device, void* storage, uint64_t bytes) {
  (void)device, (void)bytes;
  block* b = (block*)at(storage, 0) - 1;
  pthread_mutex_lock(&arena_lock);
  b->used = false;
  statistics.allocated -= (int64_t)b->bytes;
  pthread_mutex_unlock(&arena_lock);
}

static int32_t copy_from_host(int32_t device, const cb_memory* destination, const void* source, uint64_t bytes,
                              void* stream) {
  (void)device, (void)stream;
  memcpy(at(destination->storage, destination->offset), source, bytes);
  return CB_OK;
}

static int32_t copy_to_host(int32_t device, void* destination, const cb_memory* source, uint64_t bytes, void* stream) {
  (void)device, (void)stream;
  memcpy(destination, at(source->storage, source->offset), bytes);
  return CB_OK;
}

static int32_t copy_within(int32_t device, const cb_memory* destination, const cb_memory* source, uint64_t bytes,
                           void* stream) {
  (void)device, (void)stream;
  memmove(at(destination->storage, destination->offset), at(source->storage, source->offset), bytes);
  return CB_OK;
}

static int32_t memory_statistics(int32_t device, cb_memory_statistics* result) {
  (void)device;
  uint64_t size = result->size < sizeof statistics ? result->size : sizeof statistics;
  pthread_mutex_lock(&arena_lock);
  memcpy(result, &statistics, size);
  pthread_mutex_unlock(&arena_lock);
  result->size = size;
  return CB_OK;
}

/* ---- walking over tensors ----------------------------------------------------------------------------------------------- */

/* Memory of a descriptor: a number that stands in for a tensor is in host memory, everything else in the arena. */
static void* memory_of(const cb_tensor* t) {
  return t->flags & CB_TENSOR_NUMBER ? t->data : at(t->storage, t->offset);
}

/* Where the element with this number, counted in row-major order, lies: in elements from the first. */
static int64_t offset_of(const cb_tensor* t, int64_t number) {
  int64_t offset = 0;
  for (int32_t d = t->ndim - 1; d >= 0; --d) {
    offset += number % t->sizes[d] * t->strides[d];
    number /= t->sizes[d];
  }
  return offset;
}

static bool is_float(const cb_tensor* t) {
  return t->dtype == CB_FLOAT32 || t->dtype == CB_FLOAT64;
}

static double get(const cb_tensor* t, int64_t number) {
  int64_t offset = offset_of(t, number);
  return t->dtype == CB_FLOAT32 ? (double)((const float*)memory_of(t))[offset] : ((const double*)memory_of(t))[offset];
}

static void set(const cb_tensor* t, int64_t number, double value) {
  int64_t offset = offset_of(t, number);
  if (t->dtype == CB_FLOAT32) {
    ((float*)memory_of(t))[offset] = (float)value;
  } else {
    ((double*)memory_of(t))[offset] = value;
  }
}

/* ---- kernels -------------------------------------------------------------------------------------------------------------- */

typedef double (*unary_function)(double);
typedef double (*binary_function)(double, double);

static double negative(double a) {
  return -a;
}
static double positive_part(double a) {
  return a > 0 || isnan(a) ? a : 0;
}
static double plus(double a, double b) {
  return a + b;
}
static double times(double a, double b) {
  return a * b;
}
static double divided(double a, double b) {
  return a / b;
}

static int32_t unary(cb_call* call, unary_function function) {
  const cb_tensor *out = &call->outputs[0], *a = call->arguments[0].as.tensor;
  for (int64_t i = 0; i < out->numel; ++i) set(out, i, function(get(a, i)));
  return CB_OK;
}

static int32_t binary(cb_call* call, binary_function function, double factor) {
  const cb_tensor *out = &call->outputs[0], *a = call->arguments[0].as.tensor, *b = call->arguments[1].as.tensor;
  for (int64_t i = 0; i < out->numel; ++i) set(out, i, function(get(a, i), factor * get(b, i)));
  return CB_OK;
}

static int32_t add(cb_call* call) {
  return binary(call, plus, call->arguments[2].as.scalar->re);
}
static int32_t sub(cb_call* call) {
  return binary(call, plus, -call->arguments[2].as.scalar->re);
}
static int32_t mul(cb_call* call) {
  return binary(call, times, 1);
}
static int32_t power(cb_call* call) {
  return binary(call, pow, 1);
}
static int32_t neg(cb_call* call) {
  return unary(call, negative);
}
static int32_t exponential(cb_call* call) {
  return unary(call, exp);
}
static int32_t logarithm(cb_call* call) {
  return unary(call, log);
}
static int32_t square_root(cb_call* call) {
  return unary(call, sqrt);
}
static int32_t tanh_kernel(cb_call* call) {
  return unary(call, tanh);
}
static int32_t relu(cb_call* call) {
  return unary(call, positive_part);
}

static int32_t divide(cb_call* call) {
  if (call->arguments[2].kind != CB_NONE) {
    snprintf(call->error, call->error_capacity,
             "minic divides without a rounding mode only, not with rounding_mode='%s'", call->arguments[2].as.string);
    return CB_NOT_IMPLEMENTED;
  }
  return binary(call, divided, 1);
}

static int32_t fill(cb_call* call) {
  const cb_tensor* out = &call->outputs[0];
  for (int64_t i = 0; i < out->numel; ++i) set(out, i, call->arguments[1].as.scalar->re);
  return CB_OK;
}

/* Copies any dtype to the same one; converts between the two that this backend computes in. */
static int32_t copy(cb_call* call) {
  const cb_tensor *out = &call->outputs[0], *source = call->arguments[1].as.tensor;
  if (out->dtype == source->dtype) {
    size_t bytes = cb_dtype_size(out->dtype);
    for (int64_t i = 0; i < out->numel; ++i) {
      memmove((char*)memory_of(out) + (size_t)offset_of(out, i) * bytes,
              (const char*)memory_of(source) + (size_t)offset_of(source, i) * bytes, bytes);
    }
    return CB_OK;
  }
  if (!is_float(out) || !is_float(source)) return CB_NOT_IMPLEMENTED;
  for (int64_t i = 0; i < out->numel; ++i) set(out, i, get(source, i));
  return CB_OK;
}

/* The output has as many dimensions as the input; the reduced ones have size 1. So the strides of the output, with 0 for those,
 * say where each element of the input belongs. */
static int32_t sum(cb_call* call) {
  cb_tensor out = call->outputs[0];
  const cb_tensor* a = call->arguments[0].as.tensor;
  for (int64_t i = 0; i < out.numel; ++i) set(&out, i, 0);
  int64_t strides[64];
  for (int32_t d = 0; d < out.ndim; ++d) strides[d] = out.sizes[d] == 1 ? 0 : out.strides[d];
  cb_tensor target = out;
  target.sizes = a->sizes;
  target.strides = strides;
  target.numel = a->numel;
  target.ndim = a->ndim;
  for (int64_t i = 0; i < a->numel; ++i) set(&target, i, get(&target, i) + get(a, i));
  return CB_OK;
}

static int32_t mm(cb_call* call) {
  const cb_tensor *out = &call->outputs[0], *a = call->arguments[0].as.tensor, *b = call->arguments[1].as.tensor;
  int64_t rows = a->sizes[0], inner = a->sizes[1], columns = b->sizes[1];
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      double total = 0;
      for (int64_t k = 0; k < inner; ++k) total += get(a, i * inner + k) * get(b, k * columns + j);
      set(out, i * columns + j, total);
    }
  }
  return CB_OK;
}

enum { FLOATS = CB_DTYPE_BIT(CB_FLOAT32) | CB_DTYPE_BIT(CB_FLOAT64) };

static const cb_kernel_entry kernels[] = {
    {"add", add, FLOATS, 0, 0},          {"sub", sub, FLOATS, 0, 0},       {"mul", mul, FLOATS, 0, 0},
    {"div", divide, FLOATS, 0, 0},       {"pow", power, FLOATS, 0, 0},     {"neg", neg, FLOATS, 0, 0},
    {"exp", exponential, FLOATS, 0, 0},  {"log", logarithm, FLOATS, 0, 0}, {"sqrt", square_root, FLOATS, 0, 0},
    {"tanh", tanh_kernel, FLOATS, 0, 0}, {"relu", relu, FLOATS, 0, 0},     {"fill_", fill, FLOATS, 0, 0},
    {"sum", sum, FLOATS, 0, 0},          {"mm", mm, FLOATS, 0, 0},         {"copy_", copy, 0, 0, 0},
};

static const cb_backend backend = {
    .size = sizeof(cb_backend),
    .abi_major = CB_ABI_MAJOR,
    .abi_minor = CB_ABI_MINOR,
    .device_type = "minic",
    .version = "0.1.0",
    .kernels = kernels,
    .kernel_count = sizeof kernels / sizeof kernels[0],
    .kernel_entry_size = sizeof kernels[0],
    .initialize = initialize,
    .last_error = last_error,
    .allocate = allocate,
    .deallocate = deallocate,
    .copy_from_host = copy_from_host,
    .copy_to_host = copy_to_host,
    .copy_within = copy_within,
    .memory_statistics = memory_statistics,
};

CB_EXPORT const cb_backend* candelabra_backend(const cb_host* host) {
  (void)host;
  return &backend;
}
