/* Collectives of the made-up device: every rank is as good as this one, so that a sum is the number of ranks times what is sent.
 * What was called last is told by describe(). */
#ifndef FAKE_COLLECTIVES_H
#define FAKE_COLLECTIVES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "candelabra/accelerator.h"

static struct {
  char what[160];
  int alive, group;
} collected;
static char collective_message[256];

typedef struct {
  int32_t rank, ranks, aborted;
} fake_communicator;

static int32_t collective_failure(int32_t status, const char* text) {
  snprintf(collective_message, sizeof collective_message, "%s", text);
  return status;
}
static void told(const char* kind, uint64_t count, int32_t dtype, int32_t other, void* stream) {
  snprintf(collected.what, sizeof collected.what, "%s:%lu:%d:%d:%ld", kind, (unsigned long)count, dtype, other,
           (long)(uintptr_t)stream);
}
static size_t element_bytes(int32_t dtype) {
  static const size_t sizes[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 2, 4, 8};
  return sizes[dtype];
}
static int32_t usable(void* c) {
  return ((fake_communicator*)c)->aborted ? collective_failure(CB_RUNTIME_ERROR, "the communicator was aborted")
                                          : CB_OK;
}

static int32_t collective_version(int32_t* result) {
  *result = 42;
  return CB_OK;
}
static int32_t unique_id(uint8_t id[128]) {
  memset(id, 7, 128);
  return CB_OK;
}
static int32_t communicator_create(int32_t device, const uint8_t id[128], int32_t rank, int32_t ranks,
                                   const cb_communicator_options* options, void** result) {
  if (id[0] != 7 || id[127] != 7) return collective_failure(CB_VALUE_ERROR, "an id of somebody else");
  if (options->timeout_ms == 1) return collective_failure(CB_RUNTIME_ERROR, "other ranks did not come");
  fake_communicator* made = calloc(1, sizeof *made);
  made->rank = rank;
  made->ranks = ranks;
  ++collected.alive;
  snprintf(collected.what, sizeof collected.what, "create:%d:%ld:%s", device, (long)options->timeout_ms,
           options->name ? options->name : "");
  *result = made;
  return CB_OK;
}
static int32_t communicator_split(void* c, int32_t color, int32_t key, const cb_communicator_options* options,
                                  void** child) {
  (void)options;
  told("split", 0, color, key, NULL);
  *child = NULL;
  if (color < 0) return CB_OK;
  fake_communicator* made = calloc(1, sizeof *made);
  made->rank = 0;
  made->ranks = ((fake_communicator*)c)->ranks - 1;
  ++collected.alive;
  *child = made;
  return CB_OK;
}
static int32_t communicator_rank(void* c, int32_t* rank, int32_t* ranks) {
  *rank = ((fake_communicator*)c)->rank;
  *ranks = ((fake_communicator*)c)->ranks;
  return CB_OK;
}
static int32_t communicator_destroy(void* c) {
  --collected.alive;
  free(c);
  return CB_OK;
}
static int32_t communicator_abort(void* c) {
  ((fake_communicator*)c)->aborted = 1;
  return CB_OK;
}
static int32_t communicator_query(void* c) {
  return usable(c);
}
static int32_t communicator_wait(void* c, int64_t timeout_ms) {
  told("wait", (uint64_t)timeout_ms, 0, 0, NULL);
  return usable(c);
}

static int32_t all_reduce(void* c, const void* send, void* receive, uint64_t count, int32_t dtype, int32_t reduction,
                          void* stream) {
  told("all_reduce", count, dtype, reduction, stream);
  for (uint64_t i = 0; dtype == CB_FLOAT32 && i < count; ++i)
    ((float*)receive)[i] =
        ((const float*)send)[i] * (float)(reduction == CB_REDUCE_SUM ? ((fake_communicator*)c)->ranks : 1);
  return usable(c);
}
static int32_t broadcast(void* c, const void* send, void* receive, uint64_t count, int32_t dtype, int32_t root,
                         void* stream) {
  told("broadcast", count, dtype, root, stream);
  if (send != receive) return collective_failure(CB_RUNTIME_ERROR, "broadcast is in place");
  return usable(c);
}
static int32_t reduce(void* c, const void* send, void* receive, uint64_t count, int32_t dtype, int32_t reduction,
                      int32_t root, void* stream) {
  const int32_t status = all_reduce(c, send, receive, count, dtype, reduction, stream);
  told("reduce", count, dtype, 10 * reduction + root, stream);
  return status;
}
static int32_t all_gather(void* c, const void* send, void* receive, uint64_t count, int32_t dtype, void* stream) {
  told("all_gather", count, dtype, 0, stream);
  const size_t bytes = count * element_bytes(dtype);
  for (int32_t rank = 0; rank < ((fake_communicator*)c)->ranks; ++rank)
    memcpy((char*)receive + (size_t)rank * bytes, send, bytes);
  return usable(c);
}
static int32_t reduce_scatter(void* c, const void* send, void* receive, uint64_t count, int32_t dtype,
                              int32_t reduction, void* stream) {
  const char* own = (const char*)send + (size_t)((fake_communicator*)c)->rank * count * element_bytes(dtype);
  const int32_t status = all_reduce(c, own, receive, count, dtype, reduction, stream);
  told("reduce_scatter", count, dtype, reduction, stream);
  return status;
}
static int32_t all_to_all(void* c, const void* send, void* receive, uint64_t count, int32_t dtype, void* stream) {
  const char* own = (const char*)send + (size_t)((fake_communicator*)c)->rank * count * element_bytes(dtype);
  const int32_t status = all_gather(c, own, receive, count, dtype, stream);
  told("all_to_all", count, dtype, 0, stream);
  return status;
}
static int32_t send_to(void* c, const void* data, uint64_t count, int32_t dtype, int32_t peer, void* stream) {
  (void)data;
  told("send", count, dtype, peer, stream);
  return usable(c);
}
static int32_t receive_from(void* c, void* data, uint64_t count, int32_t dtype, int32_t peer, void* stream) {
  told("receive", count, dtype, peer, stream);
  memset(data, 0, count * element_bytes(dtype));
  return usable(c);
}
static int32_t group_begin(void) {
  ++collected.group;
  return CB_OK;
}
static int32_t group_end(void) {
  --collected.group;
  return CB_OK;
}

static const cb_collectives collectives = {
    .size = sizeof(cb_collectives),
    .name = "pretended",
    .version = collective_version,
    .unique_id = unique_id,
    .create = communicator_create,
    .split = communicator_split,
    .rank = communicator_rank,
    .destroy = communicator_destroy,
    .abort = communicator_abort,
    .query = communicator_query,
    .wait = communicator_wait,
    .all_reduce = all_reduce,
    .broadcast = broadcast,
    .reduce = reduce,
    .all_gather = all_gather,
    .reduce_scatter = reduce_scatter,
    .all_to_all = all_to_all,
    .send = send_to,
    .receive = receive_from,
    .group_begin = group_begin,
    .group_end = group_end,
};

#endif
