/* A device that is made up: its memory is shelves, anonymous files that are mapped, which other processes open as long as the
 * process that made them lives. It behaves as the drivers of GPUs do: a handle cannot be opened in its own process, a second time,
 * or after a fork, and describe() tells what was asked for. SHELVES names the devices that are visible, "0,1" by default. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../../tensor-core/tests/fake_accelerator/made_up_device.h"
#include "candelabra/accelerator.h"

enum { MOST = 4096, LEAD = 256 };

typedef struct {
  char* base;
  size_t bytes;
  int descriptor; /* -1: of another process */
} shelf;
static shelf shelves[MOST];
static struct {
  long allocated, opened, synchronizations;
} now;
static int forked, visible[8], devices;

static const char* last_error(void) {
  return message;
}
static int32_t usable(void) {
  return forked ? fail(CB_RUNTIME_ERROR, "Cannot use shelves in a forked subprocess") : CB_OK;
}
static void after_fork(void) {
  forked = devices > 0;
}

static int32_t initialize(void) {
  const char* text = getenv("SHELVES");
  devices = 0;
  for (const char* at = text && *text ? text : "0,1"; *at && devices < 8; ++at)
    if (*at >= '0' && *at <= '9') visible[devices++] = *at - '0';
  return CB_OK;
}
static int32_t device_count(int32_t* count) {
  *count = devices;
  return CB_OK;
}
static int32_t device_properties(int32_t device, cb_device_properties* result) {
  snprintf(result->name, sizeof result->name, "Shelf %d", visible[device]);
  return CB_OK;
}
static int32_t device_details(int32_t device, cb_device_details* result) {
  memcpy(result->uuid, "shelf-number-", 13);
  result->uuid[15] = (uint8_t)(visible[device] + 1);
  return CB_OK;
}
static int32_t synchronize(int32_t device) {
  (void)device;
  ++now.synchronizations;
  return usable();
}
static int32_t stream_synchronize(int32_t device, void* stream) {
  (void)stream;
  return synchronize(device);
}

static shelf* find(const void* address) {
  for (int i = 0; i < MOST; ++i)
    if (shelves[i].base && (const char*)address >= shelves[i].base &&
        (const char*)address < shelves[i].base + shelves[i].bytes)
      return &shelves[i];
  return NULL;
}
static int32_t put(int descriptor, size_t bytes, int own, char** base) {
  void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return fail(CB_OUT_OF_MEMORY, "no room for a shelf");
  for (int i = 0; i < MOST; ++i)
    if (!shelves[i].base) {
      shelves[i] = (shelf){memory, bytes, own ? descriptor : -1};
      *base = memory;
      return CB_OK;
    }
  munmap(memory, bytes);
  return fail(CB_OUT_OF_MEMORY, "too many shelves");
}

/* Memory begins inside of its shelf, as a tensor's does in an allocator's segment. */
static int32_t allocate(int32_t device, cb_allocation* allocation) {
  (void)device;
  const size_t bytes = allocation->bytes;
  if (usable()) return CB_RUNTIME_ERROR;
  int descriptor = memfd_create("shelf", MFD_CLOEXEC);
  if (descriptor < 0 || ftruncate(descriptor, (off_t)bytes + LEAD))
    return fail(CB_OUT_OF_MEMORY, "no file for a shelf");
  char* base;
  int32_t status = put(descriptor, bytes + LEAD, 1, &base);
  if (status) return close(descriptor), status;
  ++now.allocated;
  allocation->address = base + LEAD;
  return CB_OK;
}
static void deallocate(int32_t device, void* memory, uint64_t bytes) {
  (void)device, (void)bytes;
  shelf* found = find((char*)memory - LEAD);
  if (forked || !found) return;
  munmap(found->base, found->bytes);
  close(found->descriptor);
  *found = (shelf){0};
  --now.allocated;
}
static int32_t copy(int32_t device, void* to, const void* from, size_t bytes, void* stream) {
  (void)device, (void)stream;
  if (usable()) return CB_RUNTIME_ERROR;
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
static int32_t statistics(int32_t device, cb_memory_statistics* result) {
  (void)device;
  result->allocated = now.allocated;
  return CB_OK;
}

static int32_t export_memory(int32_t device, void* memory, cb_ipc_handle* result) {
  (void)device;
  if (usable()) return CB_RUNTIME_ERROR;
  shelf* found = find(memory);
  if (!found || found->descriptor < 0) return fail(CB_RUNTIME_ERROR, "this memory is not of a shelf of this process");
  int pid = (int)getpid();
  memset(result->bytes, 0, sizeof result->bytes);
  memcpy(result->bytes, &pid, sizeof pid);
  memcpy(result->bytes + 4, &found->descriptor, sizeof found->descriptor);
  result->offset = (uint64_t)((char*)memory - found->base);
  result->block_bytes = found->bytes;
  return CB_OK;
}
static int32_t open_memory(int32_t device, const cb_ipc_handle* handle, void** base) {
  (void)device;
  if (usable()) return CB_RUNTIME_ERROR;
  int pid, number;
  memcpy(&pid, handle->bytes, sizeof pid);
  memcpy(&number, handle->bytes + 4, sizeof number);
  if (pid == (int)getpid()) return fail(CB_RUNTIME_ERROR, "a shelf cannot be opened by the process that made it");
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, number);
  int descriptor = open(path, O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return fail(CB_RUNTIME_ERROR, "the shelf is gone");
  char* address = NULL;
  int32_t status = put(descriptor, handle->block_bytes, 0, &address);
  close(descriptor);
  if (status) return status;
  ++now.opened;
  *base = address;
  return CB_OK;
}
static int32_t close_memory(int32_t device, void* base) {
  (void)device;
  if (usable()) return CB_RUNTIME_ERROR;
  shelf* found = find(base);
  if (!found || found->descriptor >= 0) return fail(CB_RUNTIME_ERROR, "no such shelf of another process");
  munmap(found->base, found->bytes);
  *found = (shelf){0};
  --now.opened;
  return CB_OK;
}

/* Another process gets an event of its own. */
static int32_t make_event(int32_t device, int32_t flags, void** result) {
  return usable() ? CB_RUNTIME_ERROR : event_create(device, flags, result);
}
static int32_t export_event(int32_t device, void* e, cb_ipc_handle* result) {
  (void)device;
  if (!(((event*)e)->flags & CB_EVENT_INTERPROCESS)) return fail(CB_RUNTIME_ERROR, "an event of this process alone");
  memset(result->bytes, 1, sizeof result->bytes);
  return CB_OK;
}
static int32_t open_event(int32_t device, const cb_ipc_handle* handle, void** result) {
  if (handle->bytes[0] != 1) return fail(CB_RUNTIME_ERROR, "no event");
  return make_event(device, CB_EVENT_INTERPROCESS, result);
}

static int32_t refused(cb_call* call) {
  if (!forked) return CB_OK;
  snprintf(call->error, call->error_capacity, "Cannot use shelves in a forked subprocess");
  return CB_RUNTIME_ERROR;
}
static int32_t add(cb_call* call) {
  return refused(call) ? CB_RUNTIME_ERROR : add_elements(call);
}
static int32_t fill(cb_call* call) {
  return refused(call) ? CB_RUNTIME_ERROR : fill_elements(call);
}
static int32_t copy_elements(cb_call* call) {
  const cb_tensor *out = &call->outputs[0], *source = call->arguments[1].as.tensor;
  if (refused(call)) return CB_RUNTIME_ERROR;
  if (out->dtype != CB_FLOAT32 || source->dtype != CB_FLOAT32) return CB_NOT_IMPLEMENTED;
  for (int64_t i = 0; i < out->numel; ++i) *at(out, i) = *at(source, i);
  return CB_OK;
}

static const char* describe(void) {
  static char text[256];
  snprintf(text, sizeof text, "allocated=%ld opened=%ld events=%ld waits=%ld synchronizations=%ld", now.allocated,
           now.opened, events.alive, events.waits, now.synchronizations);
  return text;
}

static const cb_accelerator table = {
    .size = sizeof(cb_accelerator),
    .device_details = device_details,
    .ipc_export_memory = export_memory,
    .ipc_open_memory = open_memory,
    .ipc_close_memory = close_memory,
    .ipc_export_event = export_event,
    .ipc_open_event = open_event,
};
static const void* extension(const char* name) {
  return strcmp(name, "accelerator") == 0 ? &table : NULL;
}
static const cb_kernel_entry kernels[] = {
    {"add", add, 0, 0, 0}, {"fill_", fill, 0, 0, 0}, {"copy_", copy_elements, 0, 0, 0}};

const cb_backend* candelabra_backend(const cb_host* host) {
  (void)host;
  static const cb_backend backend = {
      .size = sizeof(cb_backend),
      .abi_major = CB_ABI_MAJOR,
      .abi_minor = CB_ABI_MINOR,
      .device_type = "shelf",
      .version = "1",
      .capabilities = CB_CAP_EVENTS | CB_CAP_IPC,
      .kernels = kernels,
      .kernel_count = sizeof kernels / sizeof *kernels,
      .kernel_entry_size = sizeof(cb_kernel_entry),
      .initialize = initialize,
      .last_error = last_error,
      .device_count = device_count,
      .device_properties = device_properties,
      .synchronize = synchronize,
      .allocate = allocate,
      .deallocate = deallocate,
      .copy_from_host = copy_from_host,
      .copy_to_host = copy_to_host,
      .copy_within = copy_within,
      .memory_statistics = statistics,
      .after_fork_in_child = after_fork,
      .stream_synchronize = stream_synchronize,
      .event_create = make_event,
      .event_destroy = event_destroy,
      .event_record = event_record,
      .event_wait = event_wait,
      .event_query = event_query,
      .event_synchronize = event_synchronize,
      .extension = extension,
      .describe = describe,
  };
  return &backend;
}
