/*
 * backend.h: the whole contract between Candelabra's tensor core and a backend.
 *
 * A backend is one shared library that exports one function, candelabra_backend(), which returns one constant table.
 * It links against neither Python nor the core. docs/backends.md explains each field with examples.
 *
 * Version policy: every struct that crosses the boundary by pointer begins with its own size in bytes. A minor version only
 * appends fields, enumerators and arguments; the core reads no field beyond the size that an older backend states and puts a
 * default in its place, and a backend must not read beyond the size that an older core states. A new major version may change
 * anything; the core refuses a backend whose major version is not its own.
 *
 * Threads: kernels may be called from any thread, several at once, with or without Python's global lock; they must not call
 * Python. Nothing may throw or longjmp across this boundary.
 */
#ifndef CANDELABRA_BACKEND_H
#define CANDELABRA_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CB_ABI_MAJOR 1
#define CB_ABI_MINOR 1

#if defined(_WIN32)
#define CB_EXPORT __declspec(dllexport)
#else
#define CB_EXPORT __attribute__((visibility("default")))
#endif

/* ---- status ----------------------------------------------------------------------------------------------------------- */

/* What a function returns. Anything but CB_OK is raised in Python as the exception named here, with the message that was left
 * in cb_call.error (kernels) or that cb_backend.last_error() returns (everything else). */
enum cb_status {
  CB_OK = 0,
  CB_RUNTIME_ERROR = 1,  /* RuntimeError */
  CB_OUT_OF_MEMORY = 2,  /* candelabra.OutOfMemoryError */
  CB_VALUE_ERROR = 3,    /* ValueError */
  CB_INDEX_ERROR = 4,    /* IndexError */
  CB_TYPE_ERROR = 5,     /* TypeError */
  CB_NOT_IMPLEMENTED = 6 /* NotImplementedError: this dtype or this combination of arguments has no kernel */
};

/* ---- dtypes ----------------------------------------------------------------------------------------------------------- */

enum cb_dtype {
  CB_BOOL = 0, /* one byte, 0 or 1 */
  CB_UINT8 = 1,
  CB_INT8 = 2,
  CB_INT16 = 3,
  CB_INT32 = 4,
  CB_INT64 = 5,
  CB_FLOAT16 = 6,  /* IEEE 754 binary16 */
  CB_BFLOAT16 = 7, /* the upper half of a binary32 */
  CB_FLOAT32 = 8,
  CB_FLOAT64 = 9,
  CB_COMPLEX64 = 10,  /* two binary32: real, imaginary */
  CB_COMPLEX128 = 11, /* two binary64: real, imaginary */
  /* since 1.1 */
  CB_UINT16 = 12,
  CB_UINT32 = 13,
  CB_UINT64 = 14,
  CB_DTYPE_COUNT = 15
};

/* ---- what a kernel is given ------------------------------------------------------------------------------------------- */

/* cb_tensor.flags */
enum cb_tensor_flags {
  CB_TENSOR_NUMBER = 1 /* a number stands in for the tensor: data points to one element in host memory, all strides are 0 */
};

/* A view of memory. It lives for the duration of one call. */
typedef struct cb_tensor {
  void* data;             /* address of element 0 (offset applied) in the backend's memory; may be null when numel is 0 */
  const int64_t* sizes;   /* ndim entries, each >= 0 */
  const int64_t* strides; /* ndim entries, in elements; 0 for a broadcast dimension; an input may overlap itself */
  int64_t numel;          /* product of sizes; 1 when ndim is 0 */
  int32_t ndim;
  int32_t dtype; /* enum cb_dtype */
  int32_t device_index;
  uint32_t flags; /* enum cb_tensor_flags */
} cb_tensor;

enum cb_scalar_kind { CB_SCALAR_BOOL = 0, CB_SCALAR_INT = 1, CB_SCALAR_FLOAT = 2, CB_SCALAR_COMPLEX = 3 };

/* cb_scalar.flags */
enum cb_scalar_flags {
  CB_SCALAR_UNSIGNED = 1 /* since 1.1: an int of 2^63 or more, which only a uint64 holds: i has its bits as they are in a uint64 */
};

/* A Python number. re holds the value as a double in every kind; i holds it exactly for bool and int. */
typedef struct cb_scalar {
  int32_t kind;  /* enum cb_scalar_kind */
  int32_t flags; /* enum cb_scalar_flags */
  int64_t i;
  double re;
  double im; /* 0 unless complex */
} cb_scalar;

enum cb_value_kind {
  CB_NONE = 0,    /* an optional argument that was not given */
  CB_TENSOR = 1,  /* as.tensor */
  CB_TENSORS = 2, /* as.tensors, count of them; an entry is null where an optional tensor was not given */
  CB_SCALAR = 3,  /* as.scalar */
  CB_INT = 4,     /* as.i; also bool (0 or 1) and dtype (enum cb_dtype) */
  CB_FLOAT = 5,   /* as.f */
  CB_INTS = 6,    /* as.ints, count of them; also lists of bool */
  CB_FLOATS = 7,  /* as.floats, count of them */
  CB_STRING = 8   /* as.string, UTF-8, zero-terminated */
};

/* One argument of an operator. */
typedef struct cb_value {
  int32_t kind; /* enum cb_value_kind */
  int32_t count;
  union {
    const cb_tensor* tensor;
    const cb_tensor* const* tensors;
    const cb_scalar* scalar;
    int64_t i;
    double f;
    const int64_t* ints;
    const double* floats;
    const char* string;
  } as;
} cb_value;

struct cb_call;
struct cb_backend;

/* Services of the core to a backend. */
typedef struct cb_host {
  uint64_t size; /* sizeof(cb_host) as the core was compiled */
  uint32_t abi_major;
  uint32_t abi_minor;
  /* For an operator whose result shape depends on data: gives call->outputs[index] contiguous memory for these sizes and fills
   * in the descriptor. At most once for an output. Returns enum cb_status; on failure return it from the kernel. */
  int32_t (*allocate_output)(struct cb_call* call, int32_t index, int32_t ndim, const int64_t* sizes);
} cb_host;

/* One call of one operator. */
typedef struct cb_call {
  uint64_t size; /* sizeof(cb_call) as the core was compiled */
  const cb_host* host;
  const struct cb_backend* backend; /* the table this kernel came with */
  const char* operator_name;        /* "add" */
  int32_t device_index;
  int32_t output_count;
  int32_t argument_count;
  int32_t reserved;
  cb_tensor* outputs;        /* memory is there already, except for an operator whose result shape depends on data */
  const cb_value* arguments; /* in the order of the schema, defaults filled in; without out= and generator */
  void* stream;              /* the current stream of the device; null where there are none */
  uint64_t random_seed;      /* operators tagged random: the key and the first counter that this call owns */
  uint64_t random_offset;
  char* error; /* a failing kernel writes its message here, zero-terminated */
  size_t error_capacity;
  /* since 1.1: for an operator that cb_backend.contents_readers names, one number an argument; null for the others. For a tensor
   * it stands for what its memory holds: it is the same in two calls only where nothing wrote to that memory in between. 0 where
   * that cannot be told: memory that is not from cb_backend.allocate, or whose address somebody outside knows; and for what is not
   * a tensor. A kernel may so keep what it worked out of a tensor (a weight in another order). */
  const uint64_t* contents;
} cb_call;

/* A kernel: reads call->arguments, writes call->outputs. Returns enum cb_status. On anything but CB_OK nothing is assumed of
 * what the outputs hold. For an in-place call outputs[0] has the geometry and address of the argument that is changed. */
typedef int32_t (*cb_kernel)(cb_call* call);

typedef struct cb_kernel_entry {
  const char* operator_name;
  cb_kernel kernel;
} cb_kernel_entry;

/* ---- devices, memory, streams, events --------------------------------------------------------------------------------- */

/* cb_backend.capabilities */
enum cb_capabilities {
  CB_CAP_HOST_MEMORY = 1,  /* the device's memory is ordinary host memory: numpy() and the buffer protocol work on it */
  CB_CAP_STREAMS = 2,      /* the stream functions are there */
  CB_CAP_EVENTS = 4,       /* the event functions are there */
  CB_CAP_ASYNCHRONOUS = 8, /* kernels may return before they are done; synchronize() waits */
  CB_CAP_PINNED_MEMORY = 16,
  CB_CAP_PEER_ACCESS = 32,
  CB_CAP_IPC = 64
};

typedef struct cb_device_properties {
  uint64_t size;
  char name[128];
  int64_t total_memory;    /* bytes; 0 when unknown */
  int64_t free_memory;     /* bytes; 0 when unknown */
  int32_t processor_count; /* cores, multiprocessors */
  int32_t architecture;    /* the backend's own number for it; 0 when it has none */
} cb_device_properties;

typedef struct cb_memory_statistics {
  uint64_t size;
  int64_t allocated; /* bytes handed out and not given back */
  int64_t allocated_peak;
  int64_t reserved; /* bytes held from the system, in use or cached */
  int64_t reserved_peak;
  int64_t allocation_count; /* calls of allocate */
  int64_t cache_hit_count;  /* of these, served without the system */
} cb_memory_statistics;

/* The table of a backend. A function marked (optional) may be null; then what its line says happens. */
typedef struct cb_backend {
  uint64_t size;           /* sizeof(cb_backend) as the backend was compiled */
  uint32_t abi_major;      /* CB_ABI_MAJOR */
  uint32_t abi_minor;      /* CB_ABI_MINOR */
  const char* device_type; /* "cpu": the name that device= takes */
  const char* version;     /* of the backend, for python -m candelabra.backends */
  uint64_t capabilities;   /* enum cb_capabilities, or-ed */
  void* context;           /* (optional) the backend's own; the core never looks at it */

  const cb_kernel_entry* kernels;
  uint64_t kernel_count;

  /* Called once, before anything else, with services that live as long as the process. (optional) nothing to do. */
  int32_t (*initialize)(const cb_host* host);
  /* The message of this thread's last failure outside a kernel. (optional) a general message is used. */
  const char* (*last_error)(void);

  /* Devices. */
  int32_t (*device_count)(int32_t* count);                                    /* (optional) one device */
  int32_t (*device_properties)(int32_t device, cb_device_properties* result); /* (optional) zeros and the device type's name */
  int32_t (*synchronize)(int32_t device);                                     /* (optional) nothing to wait for */

  /* Memory. allocate() is never asked for 0 bytes; the address is at least 64-byte aligned. deallocate() must accept any thread
   * and may be called late in the life of the process. */
  int32_t (*allocate)(int32_t device, size_t bytes, void* stream, void** result);
  void (*deallocate)(int32_t device, void* memory, size_t bytes, void* stream);
  /* Plain bytes between the device and host memory, complete on return. */
  int32_t (*copy_from_host)(int32_t device, void* destination, const void* source, size_t bytes, void* stream);
  int32_t (*copy_to_host)(int32_t device, void* destination, const void* source, size_t bytes, void* stream);
  /* (optional) by way of the host. */
  int32_t (*copy_within)(int32_t device, void* destination, const void* source, size_t bytes, void* stream);
  int32_t (*memory_statistics)(int32_t device, cb_memory_statistics* result); /* (optional) zeros */
  void (*reset_peak_statistics)(int32_t device);                              /* (optional) nothing */
  void (*empty_cache)(int32_t device);                                        /* (optional) nothing is cached */
  int32_t (*set_memory_limit)(int32_t device, int64_t bytes);                 /* (optional) NotImplementedError; bytes < 0: none */

  /* Threads of a backend that computes on the host. */
  int32_t (*thread_count)(void);              /* (optional) 1 */
  int32_t (*set_thread_count)(int32_t count); /* (optional) NotImplementedError */
  void (*after_fork_in_child)(void);          /* (optional) nothing */

  /* Streams (CB_CAP_STREAMS). A null stream is the device's default. */
  int32_t (*stream_create)(int32_t device, int32_t priority, void** result);
  void (*stream_destroy)(int32_t device, void* stream);
  int32_t (*stream_synchronize)(int32_t device, void* stream);
  int32_t (*stream_query)(int32_t device, void* stream, int32_t* done);
  /* The memory is also used on this stream: it is not reused before what is queued there now is done. */
  int32_t (*stream_record_memory)(int32_t device, void* memory, void* stream);

  /* Events (CB_CAP_EVENTS). */
  int32_t (*event_create)(int32_t device, int32_t with_timing, void** result);
  void (*event_destroy)(int32_t device, void* event);
  int32_t (*event_record)(int32_t device, void* event, void* stream);
  int32_t (*event_wait)(int32_t device, void* event, void* stream); /* the stream waits, not the host */
  int32_t (*event_synchronize)(int32_t device, void* event);
  int32_t (*event_query)(int32_t device, void* event, int32_t* done);
  int32_t (*event_elapsed)(int32_t device, void* start, void* end, double* milliseconds);

  /* A table that only this backend has, by name; null when it has none. (optional) */
  const void* (*extension)(const char* name);
  /* Plain text about how kernels were chosen, one line each, for python -m candelabra.backends. (optional) */
  const char* (*describe)(void);

  /* since 1.1: operators whose kernels read cb_call.contents; a null entry ends the list. (optional) none */
  const char* const* contents_readers;
  /* since 1.1: operators whose kernels take tensors in the caller's dtype, and read each element as one of the dtype of
   * outputs[0], for which the core otherwise makes a converted tensor first; a null entry ends the list. (optional) none */
  const char* const* converting;
  /* since 1.1: of the operators that otherwise give kernels contiguous tensors alone (native_group_norm and its gradient), those
   * whose kernels take and give tensors with the channels innermost in memory as they are; a null entry ends the list.
   * (optional) none */
  const char* const* channels_last;
} cb_backend;

/* The one symbol that a backend's library exports. */
typedef const cb_backend* (*cb_backend_entry)(void);
CB_EXPORT const cb_backend* candelabra_backend(void);

#ifdef __cplusplus
}
#endif

#endif
