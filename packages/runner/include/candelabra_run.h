/*
 * candelabra_run.h: runs a program that candelabra.export.save(program, path, runner=True) has
 * written, without Python: kernels of a backend, called through candelabra/backend.h.
 *
 *   cr_program* program;
 *   const cr_tensor* outputs;
 *   int32_t count;
 *   if (cr_open("model.cex", NULL, &program) != CR_OK) fail(cr_error());
 *   cr_tensor input = {values, sizes, 2, CR_FLOAT32, NULL, 0};
 *   if (cr_run(program, &input, 1, &outputs, &count) != CR_OK) fail(cr_error());
 *   ... outputs[0].data ...
 *   cr_close(program);
 *
 * A program is used by one thread at a time; several programs by several threads at once. Nothing is
 * thrown across this boundary. C99 and C++.
 */
#ifndef CANDELABRA_RUN_H
#define CANDELABRA_RUN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(CANDELABRA_RUN_BUILD)
#define CR_EXPORT __attribute__((visibility("default")))
#else
#define CR_EXPORT
#endif

/* What a function returns. cr_error() has the message of any status but CR_OK. */
typedef enum cr_status {
  CR_OK = 0,
  CR_FILE_ERROR = 1,    /* the file cannot be read, is damaged, or has no programs for the runner */
  CR_BACKEND_ERROR = 2, /* the backend is missing, or is not one that the file can run on */
  CR_INPUT_ERROR = 3,   /* the arguments of a function do not fit */
  CR_KERNEL_ERROR = 4,  /* a kernel has failed, such as by an index that is out of range */
  CR_OUT_OF_MEMORY = 5
} cr_status;

/* The numbers of enum cb_dtype in candelabra/backend.h. */
typedef enum cr_dtype {
  CR_BOOL = 0, /* one byte, 0 or 1 */
  CR_UINT8 = 1,
  CR_INT8 = 2,
  CR_INT16 = 3,
  CR_INT32 = 4,
  CR_INT64 = 5,
  CR_FLOAT16 = 6,  /* IEEE 754 binary16 */
  CR_BFLOAT16 = 7, /* the upper half of a binary32 */
  CR_FLOAT32 = 8,
  CR_FLOAT64 = 9,
  CR_COMPLEX64 = 10,  /* two binary32: real, imaginary */
  CR_COMPLEX128 = 11, /* two binary64: real, imaginary */
  CR_UINT16 = 12,
  CR_UINT32 = 13,
  CR_UINT64 = 14
} cr_dtype;

/* A contiguous tensor, the last dimension of which is that of neighbors in memory. */
typedef struct cr_tensor {
  /* The first element. Of an argument: memory of the caller, which is only read, and copied unless
   * its address is a multiple of 64. Of a result: memory of the program, valid until its next
   * cr_run() or cr_close(). Null in a signature. */
  void* data;
  const int64_t* sizes; /* ndim entries */
  int32_t ndim;
  int32_t dtype; /* a cr_dtype, or a later number of enum cb_dtype */
  /* Of a signature and a result: the name of the argument or the result, such as "input". Of an
   * argument of cr_run(): not read. */
  const char* name;
  uint64_t bytes; /* of all elements; of an argument of cr_run(): not read */
} cr_tensor;

/* What one of a file's programs takes and gives. All memory is the cr_program's. */
typedef struct cr_signature {
  const cr_tensor* inputs;
  const cr_tensor* outputs;
  int32_t input_count;
  int32_t output_count;
} cr_signature;

/* How a file is opened. Zeros are the defaults. */
typedef struct cr_options {
  uint64_t size; /* sizeof(cr_options) in the caller's build */
  /* The backend's library. Null: libcandelabra_DEVICE.so of the file's device, in the folder of this
   * library or of the program that it is linked into, or in that of an installed candelabra-backend-DEVICE
   * near it. */
  const char* backend;
  int32_t threads; /* threads that kernels use; 0: the backend's default */
  int32_t reserved;
} cr_options;

/* A file that has been opened: mapped weights, a backend, and its programs. */
typedef struct cr_program cr_program;

/* Opens a file, loads the backend, and checks all programs in the file. options may be null. Bytes
 * of weights are read when kernels first use them. */
CR_EXPORT cr_status cr_open(const char* path, const cr_options* options, cr_program** program);

/* How many programs a file has: one for each of the sizes that it was saved with. */
CR_EXPORT int32_t cr_signature_count(const cr_program* program);

/* What program number `index` takes and gives. */
CR_EXPORT cr_status cr_signature_at(const cr_program* program, int32_t index, cr_signature* signature);

/* Runs the program that takes these dtypes and sizes. If there is none, that is a CR_INPUT_ERROR
 * whose message names those that there are. *outputs has *output_count entries and is the
 * program's. Buffers that the program changes, such as running statistics, stay changed until
 * cr_close(); the file does not change. */
CR_EXPORT cr_status cr_run(cr_program* program, const cr_tensor* inputs, int32_t input_count, const cr_tensor** outputs,
                           int32_t* output_count);

/* The message of this thread's last failure; valid until the thread's next call. */
CR_EXPORT const char* cr_error(void);

/* Frees a program and its results; null is allowed. The backend's library stays loaded. */
CR_EXPORT void cr_close(cr_program* program);

#ifdef __cplusplus
}
#endif

#endif
