/* The table of kernels, and the messages of those that fail. */
#include "kernels.h"

#include <stdarg.h>
#include <stdio.h>

void add_kernel(kernel_table* table, const char* operator_name, cb_kernel kernel, uint64_t dtypes) {
  table->entries[table->count++] = (cb_kernel_entry){operator_name, kernel, dtypes, 0, 0};
}

int32_t fail(cb_call* call, int32_t status, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(call->error, call->error_capacity, format, arguments);
  va_end(arguments);
  return status;
}
