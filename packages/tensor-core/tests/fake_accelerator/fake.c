/* A device that is made up: host memory that says it is not, two devices, streams whose work is done at once, and a record of what
 * the core asked for, told by describe(). With it candelabra.accelerator is tested on machines without one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "candelabra/accelerator.h"
#include "collectives.h"
#include "made_up_device.h"

enum { DEVICES = 2 };

static struct {
  int64_t allocated[DEVICES], peak[DEVICES], count[DEVICES], limit[DEVICES];
  void *allocation_stream, *kernel_stream, *copy_stream;
  int kernel_device, kernels, asynchronous_copies, peer_copies, recorded_memory, pinned, pinned_records,
      synchronizations;
  int capturing, launches, pools;
  uint64_t seed, offset;
  long next_stream, destroyed_streams;
  char range[64];
} now;

static const char* last_error(void) {
  if (*collective_message) {
    snprintf(message, sizeof message, "%s", collective_message);
    *collective_message = 0;
  }
  return message;
}

static int32_t device_count(int32_t* count) {
  *count = DEVICES;
  return CB_OK;
}
static int32_t device_properties(int32_t device, cb_device_properties* result) {
  snprintf(result->name, sizeof result->name, "Fake %d", device);
  result->total_memory = 1 << 20;
  result->free_memory = (1 << 20) - now.allocated[device];
  result->processor_count = 7;
  result->architecture = 42;
  return CB_OK;
}
static int32_t synchronize(int32_t device) {
  (void)device;
  ++now.synchronizations;
  return CB_OK;
}

/* Every block has its size before it. */
static int32_t allocate(int32_t device, cb_allocation* allocation) {
  const size_t bytes = allocation->bytes;
  int64_t most = now.limit[device] >= 0 ? now.limit[device] : 1 << 20;
  if (now.allocated[device] + (int64_t)bytes > most) return fail(CB_OUT_OF_MEMORY, "the fake device is full");
  if (posix_memalign(&allocation->address, 64, bytes)) return CB_OUT_OF_MEMORY;
  memset(allocation->address, 0xab, bytes);
  now.allocation_stream = allocation->stream;
  now.allocated[device] += (int64_t)bytes;
  if (now.allocated[device] > now.peak[device]) now.peak[device] = now.allocated[device];
  ++now.count[device];
  return CB_OK;
}
static void deallocate(int32_t device, void* memory, uint64_t bytes) {
  now.allocated[device] -= (int64_t)bytes;
  free(memory);
}
static int32_t copy(int32_t device, void* to, const void* from, size_t bytes, void* stream) {
  (void)device;
  now.copy_stream = stream;
  memmove(to, from, bytes);
  return CB_OK;
}
static int32_t copy_from_host(int32_t device, const cb_memory* to, const void* from, uint64_t bytes, void* stream) {
  return copy(device, to->address, from, bytes, stream);
}
static int32_t copy_to_host(int32_t device, void* to, const cb_memory* from, uint64_t bytes, void* stream) {
  return copy(device, to, from->address, bytes, stream);
}
static int32_t copy_within(int32_t device, const cb_memory* to, const cb_memory* from, uint64_t bytes, void* stream) {
  return copy(device, to->address, from->address, bytes, stream);
}
static int32_t copy_from_host_async(int32_t device, const cb_memory* to, const void* from, uint64_t bytes,
                                    void* stream) {
  ++now.asynchronous_copies;
  return copy_from_host(device, to, from, bytes, stream);
}
static int32_t copy_to_host_async(int32_t device, void* to, const cb_memory* from, uint64_t bytes, void* stream) {
  ++now.asynchronous_copies;
  return copy_to_host(device, to, from, bytes, stream);
}
static int32_t copy_peer(int32_t to_device, const cb_memory* to, int32_t from_device, const cb_memory* from,
                         uint64_t bytes, void* stream) {
  if (to_device == from_device) return fail(CB_RUNTIME_ERROR, "a copy between a device and itself");
  ++now.peer_copies;
  return copy(from_device, to->address, from->address, bytes, stream);
}
static int32_t memory_statistics(int32_t device, cb_memory_statistics* result) {
  result->allocated = result->reserved = now.allocated[device];
  result->allocated_peak = result->reserved_peak = now.peak[device];
  result->allocation_count = now.count[device];
  return CB_OK;
}
static void reset_peak(int32_t device) {
  now.peak[device] = now.allocated[device];
}
static int32_t set_limit(int32_t device, int64_t bytes) {
  now.limit[device] = bytes;
  return CB_OK;
}

static int32_t stream_create(int32_t device, int32_t priority, void** result) {
  *result = (void*)(uintptr_t)(1000 * (device + 1) + 100 * -priority + ++now.next_stream);
  return CB_OK;
}
static void stream_destroy(int32_t device, void* stream) {
  (void)device, (void)stream;
  ++now.destroyed_streams;
}
static int32_t stream_synchronize(int32_t device, void* stream) {
  (void)device, (void)stream;
  ++now.synchronizations;
  return CB_OK;
}
static int32_t stream_query(int32_t device, void* stream, int32_t* done) {
  (void)device, (void)stream;
  *done = 1;
  return CB_OK;
}
static int32_t record_memory(int32_t device, void* memory, void* stream) {
  (void)device, (void)memory, (void)stream;
  ++now.recorded_memory;
  return CB_OK;
}
static int32_t priorities(int32_t device, int32_t* least, int32_t* greatest) {
  (void)device;
  *least = 0;
  *greatest = -3;
  return CB_OK;
}
static int32_t is_capturing(int32_t device, void* stream, int32_t* result) {
  (void)device, (void)stream;
  *result = now.capturing;
  return CB_OK;
}

static int32_t event_elapsed(int32_t device, void* start, void* end, double* milliseconds) {
  (void)device;
  if (!(((event*)start)->flags & CB_EVENT_TIMING)) return fail(CB_RUNTIME_ERROR, "an event without timing");
  *milliseconds = (double)(((event*)end)->time - ((event*)start)->time);
  return CB_OK;
}

static int32_t device_details(int32_t device, cb_device_details* result) {
  result->major = 4;
  result->minor = 2;
  result->warp_size = 16;
  result->uuid[15] = (uint8_t)device;
  return CB_OK;
}
static int32_t memory_snapshot(int32_t device, void (*visit)(void*, const cb_memory_block*), void* context) {
  for (int i = 0; i < 3; ++i) {
    cb_memory_block block = {sizeof block, 4096,         3072, NULL,  NULL, 0, 0, 4096 + 1024 * (uint64_t)i,
                             1024,         i ? 0 : 1000, i,    device};
    visit(context, &block);
  }
  return CB_OK;
}
static int32_t memory_info(int32_t device, int64_t* free_bytes, int64_t* total) {
  *total = 1 << 20;
  *free_bytes = *total - now.allocated[device];
  return CB_OK;
}
static int32_t allocate_pinned(uint64_t bytes, void** result) {
  ++now.pinned;
  return posix_memalign(result, 64, bytes) ? CB_OUT_OF_MEMORY : CB_OK;
}
static void deallocate_pinned(void* memory, uint64_t bytes) {
  (void)bytes;
  --now.pinned;
  free(memory);
}
static int32_t can_access_peer(int32_t device, int32_t peer, int32_t* result) {
  *result = device < peer;
  return CB_OK;
}
static int32_t ipc_export(int32_t device, void* memory, cb_ipc_handle* result) {
  (void)device;
  memcpy(result->bytes, &memory, sizeof memory);
  result->offset = 0;
  result->block_bytes = 1 << 20;
  return CB_OK;
}
static int32_t ipc_open(int32_t device, const cb_ipc_handle* handle, void** base) {
  (void)device;
  memcpy(base, handle->bytes, sizeof *base);
  return CB_OK;
}
static int32_t ipc_close(int32_t device, void* base) {
  (void)device, (void)base;
  return CB_OK;
}
static int32_t pool_create(int32_t device, void** pool) {
  (void)device;
  *pool = (void*)(uintptr_t)(7000 + ++now.pools);
  return CB_OK;
}
static int32_t pool_retain(int32_t device, void* pool) {
  (void)device, (void)pool;
  ++now.pools;
  return CB_OK;
}
static int32_t pool_release(int32_t device, void* pool) {
  (void)device, (void)pool;
  --now.pools;
  return CB_OK;
}
static int32_t graph_begin(int32_t device, void* stream, void* pool, int32_t mode, uint64_t offset) {
  (void)device, (void)pool, (void)mode, (void)offset;
  if (!stream) return fail(CB_RUNTIME_ERROR, "the default stream cannot be captured");
  now.capturing = 1;
  return CB_OK;
}
static int32_t graph_end(int32_t device, void* stream, void** graph) {
  (void)device, (void)stream;
  now.capturing = 0;
  *graph = &now;
  return CB_OK;
}
static int32_t graph_launch(int32_t device, void* graph, void* stream, uint64_t seed, uint64_t offset) {
  (void)device, (void)graph, (void)stream;
  ++now.launches;
  now.seed = seed;
  now.offset = offset;
  return CB_OK;
}
static void graph_destroy(int32_t device, void* graph) {
  (void)device, (void)graph;
}
static void range_push(const char* text) {
  snprintf(now.range, sizeof now.range, "%s", text);
}

static int32_t add(cb_call* call) {
  int32_t status = add_elements(call);
  if (status) return status;
  now.kernel_stream = call->stream;
  now.kernel_device = call->device_index;
  ++now.kernels;
  return CB_OK;
}
static int32_t uniform(cb_call* call) {
  const cb_tensor* out = &call->outputs[0];
  for (int64_t i = 0; i < out->numel; ++i) ((float*)out->data)[i] = (float)call->random_offset;
  return CB_OK;
}

static const char* describe(void) {
  static char text[1024];
  snprintf(
      text, sizeof text,
      "allocation_stream=%ld kernel_stream=%ld copy_stream=%ld kernel_device=%d kernels=%d asynchronous=%d peer=%d "
      "recorded=%d pinned=%d "
      "waits=%ld synchronizations=%d launches=%d pools=%d seed=%lu offset=%lu destroyed_streams=%ld events=%ld "
      "range=%s "
      "communicators=%d group=%d collective=%s",
      (long)(uintptr_t)now.allocation_stream, (long)(uintptr_t)now.kernel_stream, (long)(uintptr_t)now.copy_stream,
      now.kernel_device, now.kernels, now.asynchronous_copies, now.peer_copies, now.recorded_memory, now.pinned,
      events.waits, now.synchronizations, now.launches, now.pools, (unsigned long)now.seed, (unsigned long)now.offset,
      now.destroyed_streams, events.alive, now.range, collected.alive, collected.group, collected.what);
  return text;
}

static const cb_accelerator table = {
    .size = sizeof(cb_accelerator),
    .device_details = device_details,
    .stream_priorities = priorities,
    .stream_is_capturing = is_capturing,
    .memory_snapshot = memory_snapshot,
    .memory_info = memory_info,
    .allocate_pinned = allocate_pinned,
    .deallocate_pinned = deallocate_pinned,
    .copy_from_host_async = copy_from_host_async,
    .copy_to_host_async = copy_to_host_async,
    .can_access_peer = can_access_peer,
    .copy_peer = copy_peer,
    .ipc_export_memory = ipc_export,
    .ipc_open_memory = ipc_open,
    .ipc_close_memory = ipc_close,
    .pool_create = pool_create,
    .pool_retain = pool_retain,
    .pool_release = pool_release,
    .graph_begin = graph_begin,
    .graph_end = graph_end,
    .graph_launch = graph_launch,
    .graph_destroy = graph_destroy,
    .range_push = range_push,
    .collectives = &collectives,
};

static const void* extension(const char* name) {
  return strcmp(name, "accelerator") == 0 ? &table : NULL;
}

static const cb_kernel_entry kernels[] = {
    {"add", add, 0, 0, 0}, {"fill_", fill_elements, 0, 0, 0}, {"uniform_", uniform, 0, 0, 0}};

#ifndef FAKE_TYPE
#define FAKE_TYPE "fake"
#endif

const cb_backend* candelabra_backend(const cb_host* host) {
  (void)host;
  static const cb_backend backend = {
      .size = sizeof(cb_backend),
      .abi_major = CB_ABI_MAJOR,
      .abi_minor = CB_ABI_MINOR,
      .device_type = FAKE_TYPE,
      .version = "1",
      .capabilities = CB_CAP_STREAMS | CB_CAP_EVENTS | CB_CAP_ASYNCHRONOUS | CB_CAP_PINNED_MEMORY | CB_CAP_PEER_ACCESS |
                      CB_CAP_IPC | CB_CAP_GRAPHS | CB_CAP_COLLECTIVES,
      .kernels = kernels,
      .kernel_count = sizeof kernels / sizeof *kernels,
      .kernel_entry_size = sizeof(cb_kernel_entry),
      .last_error = last_error,
      .device_count = device_count,
      .device_properties = device_properties,
      .synchronize = synchronize,
      .allocate = allocate,
      .deallocate = deallocate,
      .copy_from_host = copy_from_host,
      .copy_to_host = copy_to_host,
      .copy_within = copy_within,
      .memory_statistics = memory_statistics,
      .reset_peak_statistics = reset_peak,
      .set_memory_limit = set_limit,
      .stream_create = stream_create,
      .stream_destroy = stream_destroy,
      .stream_synchronize = stream_synchronize,
      .stream_query = stream_query,
      .stream_record_memory = record_memory,
      .event_create = event_create,
      .event_destroy = event_destroy,
      .event_record = event_record,
      .event_wait = event_wait,
      .event_synchronize = event_synchronize,
      .event_query = event_query,
      .event_elapsed = event_elapsed,
      .extension = extension,
      .describe = describe,
  };
  for (int i = 0; i < DEVICES; ++i) now.limit[i] = -1;
  return &backend;
}
