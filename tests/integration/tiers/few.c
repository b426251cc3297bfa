/* A device with exactly the kernels of the tier "required", in memory that the host cannot touch:
 * storages are numbers that are no addresses. The kernels are those of the CPU backend, whose
 * library is CPU_LIBRARY; few.inc has a line TIER(name) for each operator. */
#include <candelabra/backend.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Not a multiple of any alignment, so that a handle used as an address is noticed. */
enum { DISGUISE = 3 };

static char* at(void* storage, uint64_t offset) {
  return (char*)storage - DISGUISE + offset;
}

static int32_t allocate(int32_t device, cb_allocation* allocation) {
  (void)device;
  char* memory = aligned_alloc(64, (allocation->bytes + 63) / 64 * 64);
  if (!memory) return CB_OUT_OF_MEMORY;
  allocation->storage = memory + DISGUISE;
  allocation->address = NULL;
  allocation->host_visible = 0;
  return CB_OK;
}

static void deallocate(int32_t device, void* storage, uint64_t bytes) {
  (void)device, (void)bytes;
  free(at(storage, 0));
}

static int32_t from_host(int32_t device, const cb_memory* to, const void* from, uint64_t bytes, void* stream) {
  (void)device, (void)stream;
  memcpy(at(to->storage, to->offset), from, bytes);
  return CB_OK;
}

static int32_t to_host(int32_t device, void* to, const cb_memory* from, uint64_t bytes, void* stream) {
  (void)device, (void)stream;
  memcpy(to, at(from->storage, from->offset), bytes);
  return CB_OK;
}

static int32_t within(int32_t device, const cb_memory* to, const cb_memory* from, uint64_t bytes, void* stream) {
  (void)device, (void)stream;
  memmove(at(to->storage, to->offset), at(from->storage, from->offset), bytes);
  return CB_OK;
}

static const cb_backend* cpu;

/* Writes the address into the core's descriptor, which lives as long as the call. */
static void show(const cb_tensor* tensor) {
  cb_tensor* seen = (cb_tensor*)tensor;
  if (!seen || seen->flags & CB_TENSOR_NUMBER || !seen->storage) return;
  seen->data = at(seen->storage, seen->offset);
}

#define TIER(name) index_##name,
enum {
#include "few.inc"
  count
};
#undef TIER

/* Which kernels have been called, in the order of the tier. */
static unsigned char called[count];

unsigned char* few_called(void) {
  return called;
}

static int32_t forward(cb_call* call, cb_kernel kernel, int index) {
  called[index] = 1;
  for (int32_t k = 0; k < call->output_count; ++k) show(&call->outputs[k]);
  for (int32_t i = 0; i < call->argument_count; ++i) {
    const cb_value* value = &call->arguments[i];
    if (value->kind == CB_TENSOR) show(value->as.tensor);
    for (int32_t k = 0; value->kind == CB_TENSORS && k < value->count; ++k) show(value->as.tensors[k]);
  }
  call->backend = cpu;
  return kernel(call);
}

#define TIER(name)                                  \
  static cb_kernel cpu_##name;                      \
  static int32_t run_##name(cb_call* call) {        \
    return forward(call, cpu_##name, index_##name); \
  }
#include "few.inc"
#undef TIER

static cb_kernel_entry entries[] = {
#define TIER(name) {#name, run_##name, 0, 0, 0},
#include "few.inc"
#undef TIER
};

/* Takes over the dtypes and flags of the CPU's entry, and its function. */
static void adopt(cb_kernel_entry* entry, cb_kernel* kernel) {
  for (uint64_t i = 0; i < cpu->kernel_count; ++i) {
    const cb_kernel_entry* known = (const cb_kernel_entry*)((const char*)cpu->kernels + i * cpu->kernel_entry_size);
    if (strcmp(known->operator_name, entry->operator_name) != 0) continue;
    entry->dtypes = known->dtypes;
    entry->flags = known->flags & ~(uint32_t)CB_KERNEL_READS_VERSIONS;
    *kernel = known->kernel;
  }
}

const cb_backend* candelabra_backend(const cb_host* host) {
  static cb_backend backend = {.size = sizeof(cb_backend),
                               .abi_major = CB_ABI_MAJOR,
                               .abi_minor = CB_ABI_MINOR,
                               .device_type = "few",
                               .kernels = entries,
                               .kernel_count = sizeof entries / sizeof *entries,
                               .kernel_entry_size = sizeof(cb_kernel_entry),
                               .allocate = allocate,
                               .deallocate = deallocate,
                               .copy_from_host = from_host,
                               .copy_to_host = to_host,
                               .copy_within = within};
  void* library = dlopen(CPU_LIBRARY, RTLD_NOW);
  if (!library) return NULL;
  const cb_backend* (*entry)(const cb_host*);
  *(void**)&entry = dlsym(library, "candelabra_backend");
  cpu = entry(host);
  cb_kernel_entry* next = entries;
#define TIER(name) adopt(next++, &cpu_##name);
#include "few.inc"
#undef TIER
  return &backend;
}
