/* What devices that are made up for tests have in common: the message of the latest failure, events, and kernels. Work is done at
 * once, so that an event is the time at which it was recorded. */
#ifndef MADE_UP_DEVICE_H
#define MADE_UP_DEVICE_H
#include <stdio.h>
#include <stdlib.h>

#include "candelabra/accelerator.h"

static char message[256];
static int32_t fail(int32_t status, const char* text) {
  snprintf(message, sizeof message, "%s", text);
  return status;
}

typedef struct {
  long time;
  int flags;
} event;
/* How many there are, the time of the latest, and how often a stream waited for one. */
static struct {
  long alive, clock, waits;
} events;

static int32_t event_create(int32_t device, int32_t flags, void** result) {
  (void)device;
  event* made = calloc(1, sizeof *made);
  if (!made) return CB_OUT_OF_MEMORY;
  made->flags = flags;
  ++events.alive;
  *result = made;
  return CB_OK;
}
static void event_destroy(int32_t device, void* e) {
  (void)device;
  --events.alive;
  free(e);
}
static int32_t event_record(int32_t device, void* e, void* stream) {
  (void)device, (void)stream;
  ((event*)e)->time = ++events.clock;
  return CB_OK;
}
static int32_t event_wait(int32_t device, void* e, void* stream) {
  (void)device, (void)e, (void)stream;
  ++events.waits;
  return CB_OK;
}
static int32_t event_synchronize(int32_t device, void* e) {
  (void)device, (void)e;
  return CB_OK;
}
static int32_t event_query(int32_t device, void* e, int32_t* done) {
  (void)device, (void)e;
  *done = 1;
  return CB_OK;
}

/* Kernels of float32 with any strides. */
static float* at(const cb_tensor* tensor, int64_t index) {
  int64_t offset = 0;
  for (int d = tensor->ndim; d-- > 0; index /= tensor->sizes[d])
    offset += index % tensor->sizes[d] * tensor->strides[d];
  return (float*)tensor->data + offset;
}
static int32_t add_elements(cb_call* call) {
  const cb_tensor *out = &call->outputs[0], *a = call->arguments[0].as.tensor, *b = call->arguments[1].as.tensor;
  if (out->dtype != CB_FLOAT32 || a->dtype != CB_FLOAT32 || b->dtype != CB_FLOAT32) return CB_NOT_IMPLEMENTED;
  for (int64_t i = 0; i < out->numel; ++i) *at(out, i) = *at(a, i) + *at(b, i);
  return CB_OK;
}
static int32_t fill_elements(cb_call* call) {
  const cb_tensor* out = &call->outputs[0];
  if (out->dtype != CB_FLOAT32) return CB_NOT_IMPLEMENTED;
  for (int64_t i = 0; i < out->numel; ++i) *at(out, i) = (float)call->arguments[1].as.scalar->re;
  return CB_OK;
}

#endif
