/*
 * The table: of the kernels that the template has, a few for floating-point numbers only, so that
 * the device lacks nearly everything. What it lacks, the core composes of what it has, computes on
 * the CPU if that is asked for, or refuses clearly.
 */
#include <string.h>

#include "candelabra/positions.h"
#include "device.h"
#include "kernels.h"
#include "tensor.h"

int32_t device_initialize(void); /* in device.c */

static const char* const names[] = {"add",  "sub", "mul",  "div",   "pow", "neg", "exp",  "log",
                                    "sqrt", "abs", "tanh", "fill_", "sum", "mm",  "copy_"};

static kernel_table kernels;
static cb_kernel any_division;

static int32_t divide(cb_call* call) {
  const cb_value* mode = &call->arguments[CB_DIV_ROUNDING_MODE];
  if (mode->kind == CB_NONE) return any_division(call);
  return fail(call, CB_NOT_IMPLEMENTED, "minic divides without a rounding mode only, not with rounding_mode='%s'",
              mode->as.string);
}

static void add_kernels(void) {
  static kernel_table all;
  add_creation_kernels(&all);
  add_elementwise_kernels(&all);
  add_reduction_kernels(&all);
  add_linalg_kernels(&all);
  for (uint64_t i = 0; i < all.count; ++i) {
    const cb_kernel_entry* entry = &all.entries[i];
    for (size_t k = 0; k < sizeof names / sizeof *names; ++k)
      if (strcmp(entry->operator_name, names[k]) == 0)
        add_kernel(&kernels, names[k], entry->kernel, entry->dtypes ? entry->dtypes & FLOATS : 0);
  }
  for (uint64_t i = 0; i < kernels.count; ++i) {
    if (strcmp(kernels.entries[i].operator_name, "div") != 0) continue;
    any_division = kernels.entries[i].kernel;
    kernels.entries[i].kernel = divide;
  }
}

static cb_backend backend = {
    .size = sizeof(cb_backend),
    .abi_major = CB_ABI_MAJOR,
    .abi_minor = CB_ABI_MINOR,
    .device_type = "minic",
    .version = "0.1.0",
    .kernels = kernels.entries,
    .kernel_entry_size = sizeof(cb_kernel_entry),
    .initialize = device_initialize,
    .last_error = device_last_error,
    .allocate = device_allocate,
    .deallocate = device_deallocate,
    .copy_from_host = device_copy_from_host,
    .copy_to_host = device_copy_to_host,
    .copy_within = device_copy_within,
    .memory_statistics = device_memory_statistics,
};

CB_EXPORT const cb_backend* candelabra_backend(const cb_host* host) {
  (void)host;
  if (kernels.count == 0) add_kernels();
  backend.kernel_count = kernels.count;
  return &backend;
}
