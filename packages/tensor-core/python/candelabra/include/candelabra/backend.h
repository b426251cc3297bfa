/*
 * backend.h: the complete contract between Candelabra's tensor core and a backend.
 *
 * A backend is a shared library that exports one function, candelabra_backend(), which returns one
 * constant table. The library links against neither Python nor the core. docs/backends.md explains
 * each field with examples.
 *
 * Versions: every struct that crosses the boundary by pointer begins with its own size in bytes. A
 * minor version only appends fields, enumerators and arguments. The core reads no field beyond the
 * size that a backend states, and uses a default for each missing field. A backend must not read
 * beyond the size that the core states. A new major version may change anything. The core rejects a
 * backend whose major version differs from its own.
 *
 * Threads: any thread may call a kernel, and kernels may run concurrently, with or without the GIL.
 * Kernels must not call Python. Nothing may throw or longjmp across this boundary.
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

/* ---- status */

/* The status that a function returns. The core raises any status but CB_OK in Python as the
 * exception named here. A kernel leaves the message in cb_call.error; every other function
 * provides it through cb_backend.last_error(). */
enum cb_status {
  CB_OK = 0,
  CB_RUNTIME_ERROR = 1, /* RuntimeError */
  CB_OUT_OF_MEMORY = 2, /* candelabra.OutOfMemoryError */
  CB_VALUE_ERROR = 3,   /* ValueError */
  CB_INDEX_ERROR = 4,   /* IndexError */
  CB_TYPE_ERROR = 5,    /* TypeError */
  /* NotImplementedError: this dtype or this combination of arguments has no kernel */
  CB_NOT_IMPLEMENTED = 6
};

/* ---- dtypes */

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

/* ---- arguments of a kernel */

/* cb_tensor.flags */
enum cb_tensor_flags {
  /* a number in place of a tensor: data points to one element in host memory, all strides are 0 */
  CB_TENSOR_NUMBER = 1
};

/* A tensor argument or output: a view of memory. It is valid during one call only. */
typedef struct cb_tensor {
  /* address of element 0, in the backend's memory; may be null when numel is 0 */
  void* data;
  const int64_t* sizes; /* ndim entries, each >= 0 */
  /* ndim entries, in elements; 0 for a broadcast dimension; an input may overlap itself */
  const int64_t* strides;
  int64_t numel; /* product of sizes; 1 when ndim is 0 */
  int32_t ndim;
  int32_t dtype; /* enum cb_dtype */
  int32_t device_index;
  uint32_t flags; /* enum cb_tensor_flags */
} cb_tensor;

enum cb_scalar_kind { CB_SCALAR_BOOL = 0, CB_SCALAR_INT = 1, CB_SCALAR_FLOAT = 2, CB_SCALAR_COMPLEX = 3 };

/* cb_scalar.flags */
enum cb_scalar_flags {
  /* since 1.1: an int of 2^63 or more; i holds the bits of its uint64 representation */
  CB_SCALAR_UNSIGNED = 1
};

/* A Python number. re holds the value as a double for every kind. i holds the exact value for
 * bool and int. */
typedef struct cb_scalar {
  int32_t kind;  /* enum cb_scalar_kind */
  int32_t flags; /* enum cb_scalar_flags */
  int64_t i;
  double re;
  double im; /* 0 unless complex */
} cb_scalar;

enum cb_value_kind {
  CB_NONE = 0,   /* an optional argument that was not given */
  CB_TENSOR = 1, /* as.tensor */
  /* as.tensors, count of them; an entry is null where an optional tensor was not given */
  CB_TENSORS = 2,
  CB_SCALAR = 3, /* as.scalar */
  CB_INT = 4,    /* as.i; also bool (0 or 1) and dtype (enum cb_dtype) */
  CB_FLOAT = 5,  /* as.f */
  CB_INTS = 6,   /* as.ints, count of them; also lists of bool */
  CB_FLOATS = 7, /* as.floats, count of them */
  CB_STRING = 8  /* as.string, UTF-8, zero-terminated */
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

/* Functions that the core provides to a backend. */
typedef struct cb_host {
  uint64_t size; /* sizeof(cb_host) in the core's build */
  uint32_t abi_major;
  uint32_t abi_minor;
  /* For operators whose output shape depends on data: allocates contiguous memory of these sizes
   * for call->outputs[index] and fills in the descriptor. Call it at most once per output.
   * Returns enum cb_status; on failure, return that status from the kernel. */
  int32_t (*allocate_output)(struct cb_call* call, int32_t index, int32_t ndim, const int64_t* sizes);
} cb_host;

/* One call of one operator. */
typedef struct cb_call {
  uint64_t size; /* sizeof(cb_call) in the core's build */
  const cb_host* host;
  const struct cb_backend* backend; /* the table that this kernel comes from */
  const char* operator_name;        /* "add" */
  int32_t device_index;
  int32_t output_count;
  int32_t argument_count;
  int32_t reserved;
  cb_tensor* outputs; /* allocated by the core, except where the output shape depends on data */
  /* in schema order, with defaults filled in; without out= and generator */
  const cb_value* arguments;
  void* stream; /* the current stream of the device; null if the device has no streams */
  /* operators tagged random: the key, and in random_offset the first counter of this call */
  uint64_t random_seed;
  uint64_t random_offset;
  char* error; /* a failing kernel writes its message here, zero-terminated */
  size_t error_capacity;
  /* since 1.1: content versions, one per argument. Null for operators that are not in
   * cb_backend.contents_readers. The entry of a tensor identifies the contents of its memory:
   * two calls see the same number only if nothing wrote to the memory in between. The entry is 0
   * where the core cannot tell: for memory that is not from cb_backend.allocate, for memory
   * whose address is known outside the core, and for arguments that are not tensors. A kernel
   * may use the number as a key of a cache, such as one of repacked weights. */
  const uint64_t* contents;
} cb_call;

/* A kernel reads call->arguments, writes call->outputs and returns enum cb_status. After any
 * status but CB_OK, the contents of the outputs are unspecified. For an in-place call,
 * outputs[0] has the geometry and the address of the argument that is modified. */
typedef int32_t (*cb_kernel)(cb_call* call);

typedef struct cb_kernel_entry {
  const char* operator_name;
  cb_kernel kernel;
} cb_kernel_entry;

/* ---- devices, memory, streams, events */

/* cb_backend.capabilities */
enum cb_capabilities {
  CB_CAP_HOST_MEMORY = 1, /* the device uses host memory: numpy() and the buffer protocol work */
  CB_CAP_STREAMS = 2,     /* the stream functions are present */
  CB_CAP_EVENTS = 4,      /* the event functions are present */
  /* kernels may return before they complete; synchronize() waits for them */
  CB_CAP_ASYNCHRONOUS = 8,
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
  int32_t architecture;    /* a number of the backend's choice; 0 when it has none */
} cb_device_properties;

typedef struct cb_memory_statistics {
  uint64_t size;
  int64_t allocated; /* bytes allocated and not yet freed */
  int64_t allocated_peak;
  int64_t reserved; /* bytes obtained from the system, in use or cached */
  int64_t reserved_peak;
  int64_t allocation_count; /* calls of allocate */
  int64_t cache_hit_count;  /* of these, served from the cache */
} cb_memory_statistics;

/* The table of a backend. A function marked (optional) may be null; its comment then states the
 * default. */
typedef struct cb_backend {
  uint64_t size;           /* sizeof(cb_backend) in the backend's build */
  uint32_t abi_major;      /* CB_ABI_MAJOR */
  uint32_t abi_minor;      /* CB_ABI_MINOR */
  const char* device_type; /* the name that device= takes, such as "cpu" */
  const char* version;     /* version of the backend, for python -m candelabra.backends */
  uint64_t capabilities;   /* enum cb_capabilities, or-ed */
  void* context;           /* (optional) for the backend's own use; the core never reads it */

  const cb_kernel_entry* kernels;
  uint64_t kernel_count;

  /* Called once, before any other function. The host services live as long as the process.
   * (optional) no initialization. */
  int32_t (*initialize)(const cb_host* host);
  /* The message of this thread's last failure outside a kernel. (optional) a generic message. */
  const char* (*last_error)(void);

  /* Devices. */
  int32_t (*device_count)(int32_t* count); /* (optional) one device */
  /* (optional) zeros, and the device type as the name */
  int32_t (*device_properties)(int32_t device, cb_device_properties* result);
  int32_t (*synchronize)(int32_t device); /* (optional) does nothing */

  /* Memory. The core never asks allocate() for 0 bytes. The address is at least 64-byte aligned.
   * deallocate() must accept calls from any thread, and calls late in the life of the process. */
  int32_t (*allocate)(int32_t device, size_t bytes, void* stream, void** result);
  void (*deallocate)(int32_t device, void* memory, size_t bytes, void* stream);
  /* Copies bytes between the device and host memory. The copy is complete on return. */
  int32_t (*copy_from_host)(int32_t device, void* destination, const void* source, size_t bytes, void* stream);
  int32_t (*copy_to_host)(int32_t device, void* destination, const void* source, size_t bytes, void* stream);
  /* (optional) the core copies through host memory. */
  int32_t (*copy_within)(int32_t device, void* destination, const void* source, size_t bytes, void* stream);
  /* (optional) zeros */
  int32_t (*memory_statistics)(int32_t device, cb_memory_statistics* result);
  void (*reset_peak_statistics)(int32_t device); /* (optional) does nothing */
  void (*empty_cache)(int32_t device);           /* (optional) does nothing */
  /* (optional) NotImplementedError; bytes < 0: no limit */
  int32_t (*set_memory_limit)(int32_t device, int64_t bytes);

  /* Threads, for a backend that computes on the host. */
  int32_t (*thread_count)(void);              /* (optional) 1 */
  int32_t (*set_thread_count)(int32_t count); /* (optional) NotImplementedError */
  void (*after_fork_in_child)(void);          /* (optional) does nothing */

  /* Streams (CB_CAP_STREAMS). A null stream is the device's default stream. */
  int32_t (*stream_create)(int32_t device, int32_t priority, void** result);
  void (*stream_destroy)(int32_t device, void* stream);
  int32_t (*stream_synchronize)(int32_t device, void* stream);
  int32_t (*stream_query)(int32_t device, void* stream, int32_t* done);
  /* Records that this stream uses the memory. The allocator must not reuse the memory before the
   * work that is now queued on the stream completes. */
  int32_t (*stream_record_memory)(int32_t device, void* memory, void* stream);

  /* Events (CB_CAP_EVENTS). */
  int32_t (*event_create)(int32_t device, int32_t with_timing, void** result);
  void (*event_destroy)(int32_t device, void* event);
  int32_t (*event_record)(int32_t device, void* event, void* stream);
  /* the stream waits, not the host */
  int32_t (*event_wait)(int32_t device, void* event, void* stream);
  int32_t (*event_synchronize)(int32_t device, void* event);
  int32_t (*event_query)(int32_t device, void* event, int32_t* done);
  int32_t (*event_elapsed)(int32_t device, void* start, void* end, double* milliseconds);

  /* Returns a backend-specific table by name, or null if there is none. (optional) none */
  const void* (*extension)(const char* name);
  /* Plain text that tells how the backend selects its kernels, one line each, for python -m
   * candelabra.backends. (optional) none */
  const char* (*describe)(void);

  /* since 1.1: operators whose kernels read cb_call.contents. A null entry ends the list.
   * (optional) none */
  const char* const* contents_readers;
  /* since 1.1: operators whose kernels accept tensors in the caller's dtype and convert each
   * element to the dtype of outputs[0] as they read it. For other operators the core converts
   * such a tensor first. A null entry ends the list. (optional) none */
  const char* const* converting;
  /* since 1.1: operators whose kernels accept and return channels-last tensors unchanged. It
   * applies to the operators for which the core otherwise passes contiguous tensors only
   * (native_group_norm and its gradient). A null entry ends the list. (optional) none */
  const char* const* channels_last;
} cb_backend;

/* The only symbol that a backend's library exports. */
typedef const cb_backend* (*cb_backend_entry)(void);
CB_EXPORT const cb_backend* candelabra_backend(void);

#ifdef __cplusplus
}
#endif

#endif
