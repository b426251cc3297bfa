/* The kernels of this backend. Each file adds its own to the table. */
#ifndef KERNELS_H
#define KERNELS_H

#include "candelabra/backend.h"

enum { MAX_KERNELS = 512 };

typedef struct kernel_table {
  cb_kernel_entry entries[MAX_KERNELS];
  uint64_t count;
} kernel_table;

/* `dtypes` is a mask; 0 means all. */
void add_kernel(kernel_table* table, const char* operator_name, cb_kernel kernel, uint64_t dtypes);

void add_creation_kernels(kernel_table* table);
void add_elementwise_kernels(kernel_table* table);
void add_reduction_kernels(kernel_table* table);
void add_indexing_kernels(kernel_table* table);
void add_linalg_kernels(kernel_table* table);
void add_random_kernels(kernel_table* table);

/* Leaves a message for the exception and returns the status. */
int32_t fail(cb_call* call, int32_t status, const char* format, ...);

#endif
