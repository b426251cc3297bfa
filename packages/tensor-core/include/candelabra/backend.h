/*
 * backend.h: the complete contract between Candelabra's tensor core and a backend.
 *
 * A backend is a shared library that exports one function, candelabra_backend(), which returns one
 * constant table. The library links against neither Python nor the core. docs/backends.md explains
 * each field with examples.
 *
 * Versions. A major version may change anything; the core refuses a backend of another major. A
 * minor version only appends: fields at the end of structs, enumerators, flags, arguments of
 * operators. Structs that are passed by pointer begin with their own size, and neither side reads
 * beyond the size that the other states. Structs that lie in arrays (cb_tensor, cb_value) or inside
 * other structs (cb_scalar, cb_memory, cb_statistic) keep their size, and have reserved fields, which
 * are 0. The core never gives a kernel a dtype, a kind or a flag that is newer than the minor version
 * that its backend states: it treats the kernel as absent for that call.
 *
 * Threads. Each function says from which threads the core calls it:
 *   [any]   any thread, concurrently, with or without the GIL; also late in the life of the process
 *   [gil]   any thread, one at a time, because the caller holds the GIL
 *   [once]  one thread, once
 * The functions of cb_host are [any] unless they say otherwise. No function of a backend may call
 * Python, and nothing may throw or longjmp across this boundary.
 *
 * Text is UTF-8 and ends with a zero byte. The core replaces bytes that are not UTF-8. Where a
 * function writes a text into a buffer, the capacity counts the zero byte.
 */
#ifndef CANDELABRA_BACKEND_H
#define CANDELABRA_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CB_ABI_MAJOR 2
#define CB_ABI_MINOR 2

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
  /* NotImplementedError: this dtype or this combination of arguments has no kernel. From a kernel
   * without a message: the core runs the operator's decomposition, if it has one. */
  CB_NOT_IMPLEMENTED = 6,
  CB_ACCELERATOR_ERROR = 7, /* candelabra.AcceleratorError: the device or its driver has failed */
  /* candelabra.AcceleratorError: the device is unusable until reset_device() succeeds */
  CB_DEVICE_LOST = 8,
  /* the kernel stopped because cb_host.is_cancelled() returned 1; the core raises the reason */
  CB_CANCELLED = 9
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
  CB_UINT16 = 12,
  CB_UINT32 = 13,
  CB_UINT64 = 14,
  /* Since 2.1. candelabra/small_floats.hpp defines the float8 formats. */
  CB_FLOAT8_E4M3FN = 15,
  CB_FLOAT8_E5M2 = 16,
  CB_FLOAT8_E4M3FNUZ = 17,
  CB_FLOAT8_E5M2FNUZ = 18,
  CB_FLOAT8_E8M0FNU = 19,
  CB_COMPLEX32 = 20,  /* two binary16: real, imaginary */
  CB_DTYPE_COUNT = 21 /* dtypes of this minor version; later dtypes are numbered from here */
};

/* Numbers below 64 are dtypes of the core, for masks. Reserved, and not used in this version: dtypes
 * of less than a byte, 21 to 26 (uint1, uint2, uint4, int2, int4, float4_e2m1), whose elements are
 * packed, the first in the low bits. Strides count elements, and offsets of such tensors are whole
 * bytes. */
enum { CB_DTYPE_LIMIT = 64 };

/* The bit of a dtype in a mask, such as cb_kernel_entry.dtypes. */
#define CB_DTYPE_BIT(dtype) ((uint64_t)1 << (dtype))

/* The size of an element in bytes; 0 for a number that is not a dtype of this version. */
static inline size_t cb_dtype_size(int32_t dtype) {
  switch (dtype) {
    case CB_BOOL:
    case CB_UINT8:
    case CB_INT8:
    case CB_FLOAT8_E4M3FN:
    case CB_FLOAT8_E5M2:
    case CB_FLOAT8_E4M3FNUZ:
    case CB_FLOAT8_E5M2FNUZ:
    case CB_FLOAT8_E8M0FNU:
      return 1;
    case CB_INT16:
    case CB_UINT16:
    case CB_FLOAT16:
    case CB_BFLOAT16:
      return 2;
    case CB_INT32:
    case CB_UINT32:
    case CB_FLOAT32:
    case CB_COMPLEX32:
      return 4;
    case CB_INT64:
    case CB_UINT64:
    case CB_FLOAT64:
    case CB_COMPLEX64:
      return 8;
    case CB_COMPLEX128:
      return 16;
    default:
      return 0;
  }
}

/* ---- memory */

/* The kind of an allocation. */
enum cb_memory_kind {
  CB_MEMORY_DEVICE = 0,  /* memory of the device, from cb_backend.allocate */
  CB_MEMORY_PINNED = 1,  /* page-locked host memory, from cb_accelerator.allocate_pinned */
  CB_MEMORY_MANAGED = 2, /* migrates between host and device */
  CB_MEMORY_IMPORTED = 3 /* memory with another owner: an array, DLPack, another process, a file */
};

/* A position in memory of a device. */
typedef struct cb_memory {
  void* storage;   /* the handle from cb_allocation; null for imported memory without a handle */
  uint64_t offset; /* in bytes, from the beginning of the storage */
  void* address;   /* the address of the position; null if the storage has no address */
  uint64_t reserved;
} cb_memory;

/* A request for memory, and its answer. */
typedef struct cb_allocation {
  uint64_t size; /* sizeof(cb_allocation) in the core's build */
  /* Set by the core. */
  uint64_t bytes; /* at least 1 */
  void* stream;   /* the stream that will use the memory; null: the default stream */
  /* Set by the backend. The core has set them to null, null, CB_MEMORY_DEVICE, and
   * cb_backend.capabilities & CB_CAP_HOST_MEMORY. */
  void* storage; /* a handle, such as a cl_mem or an MTLBuffer; null: the address */
  /* The device's address of the first byte; null if it has none. The core requires no alignment
   * beyond the element's size; Candelabra's own backends return multiples of 64. */
  void* address;
  int32_t kind;         /* enum cb_memory_kind */
  int32_t host_visible; /* 1: address is valid on the host, once the work that uses it is done */
} cb_allocation;

/* ---- arguments of a kernel */

/* cb_tensor.flags */
enum cb_tensor_flags {
  /* a number in place of a tensor: data points to one element in host memory, all strides are 0 */
  CB_TENSOR_NUMBER = 1,
  CB_TENSOR_HOST_VISIBLE = 2 /* data is valid on the host */
};

/* A tensor argument or output: a view of memory. It is valid during one call only. */
typedef struct cb_tensor {
  /* address of element 0; may be null when numel is 0; null where the storage has no address */
  void* data;
  const int64_t* sizes; /* ndim entries, each >= 0 */
  /* ndim entries, in elements; 0 for a broadcast dimension; an input may overlap itself */
  const int64_t* strides;
  int64_t numel; /* product of sizes; 1 when ndim is 0 */
  int32_t ndim;
  int32_t dtype; /* enum cb_dtype */
  int32_t device_index;
  uint32_t flags;      /* enum cb_tensor_flags */
  void* storage;       /* the handle from cb_allocation; null for a number and for imported memory */
  uint64_t offset;     /* of element 0, in bytes from the beginning of the storage */
  int32_t memory_kind; /* enum cb_memory_kind */
  int32_t reserved;
  uint64_t reserved_2;
} cb_tensor;

enum cb_scalar_kind { CB_SCALAR_BOOL = 0, CB_SCALAR_INT = 1, CB_SCALAR_FLOAT = 2, CB_SCALAR_COMPLEX = 3 };

/* cb_scalar.flags */
enum cb_scalar_flags {
  CB_SCALAR_UNSIGNED = 1 /* an int of 2^63 or more; i holds the bits of its uint64 representation */
};

/* A Python number. re holds the value as a double for every kind. i holds the exact value for
 * bool and int. */
typedef struct cb_scalar {
  int32_t kind;  /* enum cb_scalar_kind */
  int32_t flags; /* enum cb_scalar_flags */
  int64_t i;
  double re;
  double im; /* 0 unless complex */
  uint64_t reserved;
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
  uint64_t reserved;
} cb_value;

struct cb_call;
struct cb_backend;

/* ---- services of the core */

/* Levels of cb_host.log, those of Python's logging module. */
enum cb_log_level { CB_LOG_DEBUG = 10, CB_LOG_INFO = 20, CB_LOG_WARNING = 30, CB_LOG_ERROR = 40 };

/* Functions that the core provides to a backend. The table lives as long as the process. */
typedef struct cb_host {
  uint64_t size; /* sizeof(cb_host) in the core's build */
  uint32_t abi_major;
  uint32_t abi_minor;

  /* For operators whose output shape depends on data: allocates contiguous memory of these sizes
   * for call->outputs[index] and fills in the descriptor. At most once per output, from the thread
   * that runs the kernel. Returns enum cb_status; on failure, return that status from the kernel. */
  int32_t (*allocate_output)(struct cb_call* call, int32_t index, int32_t ndim, const int64_t* sizes);
  /* Temporary memory on the device of the call, from cb_backend.allocate with the stream of the
   * call. The core frees it when the kernel has returned. From the thread that runs the kernel.
   * Returns enum cb_status; on failure, return that status from the kernel. */
  int32_t (*allocate_workspace)(struct cb_call* call, uint64_t bytes, cb_memory* result);
  /* Returns 1 if the user has interrupted the program (Ctrl-C). A long kernel asks now and then, and
   * returns CB_CANCELLED. From the thread that runs the kernel. */
  int32_t (*is_cancelled)(struct cb_call* call);

  /* Runs body on [begin, end) in parts of at least `grain` on the threads of the core, the caller's
   * included, and returns when all are done. A call from inside a body runs serially. */
  void (*parallel_for)(int64_t begin, int64_t end, int64_t grain,
                       void (*body)(void* context, int64_t begin, int64_t end), void* context);

  /* Writes a line to the Python logger "candelabra.backends.DEVICE_TYPE". It takes the GIL: do not
   * call it while holding a lock that a function of the backend also takes. */
  void (*log)(const char* device_type, int32_t level, const char* message);
  /* Writes the path of a directory for compiled programs and the like, which exists and is private
   * to the backend's device type, version and `key`. The key names what the programs depend on, such
   * as a device's name and its driver's version; other characters than letters, digits, ".", "-" and
   * "_" are replaced. $CANDELABRA_CACHE_DIR or $XDG_CACHE_HOME/candelabra is its root. Returns
   * CB_VALUE_ERROR if the capacity is too small, CB_RUNTIME_ERROR if there can be no directory. */
  int32_t (*cache_directory)(const struct cb_backend* backend, const char* key, char* path, uint64_t capacity);
  /* Writes the value of an option of this device type: what candelabra.backends.set_option(type,
   * name, value) set, else the environment variable CANDELABRA_TYPE_NAME. Returns CB_OK, or
   * CB_NOT_IMPLEMENTED if it is not set, or CB_VALUE_ERROR if the capacity is too small. */
  int32_t (*option)(const char* device_type, const char* name, char* value, uint64_t capacity);
} cb_host;

/* ---- a call */

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
  char* error;             /* a failing kernel writes its message here, UTF-8 */
  uint64_t error_capacity; /* at least 512, with the zero byte that the core adds if it is missing */
  /* Content versions, one per argument; null unless the kernel has CB_KERNEL_READS_VERSIONS. The
   * version of a tensor identifies the contents of its memory: two calls see the same number only
   * if nothing wrote to the memory in between. It is 0 where the core cannot tell: for imported
   * memory, for memory whose address is known outside the core, and for arguments that are not
   * tensors. A kernel may use the number as a key of a cache, such as one of repacked weights. */
  const uint64_t* content_versions;
} cb_call;

/* A kernel reads call->arguments, writes call->outputs and returns enum cb_status. After any
 * status but CB_OK, the contents of the outputs are unspecified. For an in-place call,
 * outputs[0] has the geometry and the address of the argument that is modified. [any] */
typedef int32_t (*cb_kernel)(cb_call* call);

/* cb_kernel_entry.flags */
enum cb_kernel_flags {
  /* The kernel accepts tensors in the caller's dtype and converts each element to the dtype of
   * outputs[0] as it reads it. Otherwise the core converts such a tensor first. */
  CB_KERNEL_CONVERTS = 1,
  /* The kernel accepts and returns channels-last tensors unchanged. It applies to the operators for
   * which the core otherwise passes contiguous tensors only (native_group_norm and its gradient). */
  CB_KERNEL_CHANNELS_LAST = 2,
  /* The core makes all tensors contiguous, outputs included, before it calls the kernel; also those
   * that it would pass with the strides of a broadcast. A number in place of a tensor stays one:
   * CB_TENSOR_NUMBER. */
  CB_KERNEL_CONTIGUOUS = 4,
  CB_KERNEL_READS_VERSIONS = 8 /* the kernel reads cb_call.content_versions */
};

typedef struct cb_kernel_entry {
  const char* operator_name;
  cb_kernel kernel;
  /* Mask of CB_DTYPE_BIT: the dtypes that the kernel computes in, that is of its first tensor
   * argument, or of outputs[0] if it has none. For other dtypes the core does not call the kernel:
   * it runs the decomposition, or raises NotImplementedError. 0: all dtypes of the minor version
   * that the backend states; the kernel refuses others by CB_NOT_IMPLEMENTED. */
  uint64_t dtypes;
  uint32_t flags; /* enum cb_kernel_flags */
  uint32_t reserved;
} cb_kernel_entry;

/* ---- devices, memory, streams, events */

/* cb_backend.capabilities */
enum cb_capabilities {
  /* all memory of the device is host memory: numpy() and the buffer protocol work */
  CB_CAP_HOST_MEMORY = 1,
  CB_CAP_STREAMS = 2, /* the stream functions are present */
  CB_CAP_EVENTS = 4,  /* the event functions are present */
  /* kernels may return before they complete; synchronize() waits for them */
  CB_CAP_ASYNCHRONOUS = 8,
  /* The following promise functions of cb_accelerator, which the core checks when it loads the
   * backend. */
  CB_CAP_PINNED_MEMORY = 16, /* allocate_pinned and deallocate_pinned */
  CB_CAP_PEER_ACCESS = 32,   /* can_access_peer and copy_peer */
  CB_CAP_IPC = 64,           /* ipc_export_memory, ipc_open_memory and ipc_close_memory */
  CB_CAP_GRAPHS = 128,       /* pool_create, _retain and _release, graph_begin, _end, _launch and _destroy */
  CB_CAP_COLLECTIVES = 256   /* collectives, with all but version, split and the groups */
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
  const char* device_type; /* the name that device= takes, such as "cpu": a letter, then letters and digits */
  const char* version;     /* version of the backend, for python -m candelabra.backends; may be null */
  uint64_t capabilities;   /* enum cb_capabilities, or-ed */
  void* context;           /* (optional) for the backend's own use; the core never reads it */

  const cb_kernel_entry* kernels; /* kernel_count entries; an operator has at most one */
  uint64_t kernel_count;
  uint64_t kernel_entry_size; /* sizeof(cb_kernel_entry) in the backend's build */

  /* Called before all others but candelabra_backend(). (optional) no initialization. [once] */
  int32_t (*initialize)(void);
  /* Called when the interpreter ends, after the program's exit functions. Only deallocate() and the
   * functions that destroy streams and events are called afterwards, except by threads that the
   * program has left running. (optional) nothing. [once] */
  void (*shutdown)(void);
  /* The message of this thread's last failure outside a kernel; valid until the thread's next call.
   * The core reads at most 4096 bytes. (optional) a generic message. [any] */
  const char* (*last_error)(void);
  /* Whether the kernel of this operator computes in these dtypes, of its tensor arguments in order:
   * 1 or 0. It is asked without a call, for masks that depend on the device.
   * (optional) what the mask of the kernel's entry says. [any] */
  int32_t (*supports)(int32_t device, const char* operator_name, const int32_t* dtypes, int32_t count);

  /* Devices. */
  int32_t (*device_count)(int32_t* count); /* at least 1, at most 127 (optional) one device [gil] */
  /* (optional) zeros, and the device type as the name [any] */
  int32_t (*device_properties)(int32_t device, cb_device_properties* result);
  int32_t (*synchronize)(int32_t device); /* (optional) does nothing [any] */
  /* The state of the device: CB_OK, or the error of work that had been queued, which stays until
   * reset_device(). The message is written to `message`. (optional) CB_OK [any] */
  int32_t (*device_status)(int32_t device, char* message, uint64_t capacity);
  /* Makes a lost device usable again. All memory, streams and events of it are invalid afterwards.
   * (optional) NotImplementedError [gil] */
  int32_t (*reset_device)(int32_t device);

  /* Memory. allocate() may be called while work on the memory's last use is still queued.
   * deallocate() gets no stream: a tensor may be dropped by any thread, whose current stream says
   * nothing about the memory. A backend orders the reuse of memory after the work on the stream of
   * its allocation, and on those that stream_record_memory() named. [any] */
  int32_t (*allocate)(int32_t device, cb_allocation* allocation);
  void (*deallocate)(int32_t device, void* storage, uint64_t bytes);
  /* Copies bytes between the device and host memory. The copy is complete on return. [any] */
  int32_t (*copy_from_host)(int32_t device, const cb_memory* destination, const void* source, uint64_t bytes,
                            void* stream);
  int32_t (*copy_to_host)(int32_t device, void* destination, const cb_memory* source, uint64_t bytes, void* stream);
  /* Ranges may overlap. (optional) the core copies through host memory. [any] */
  int32_t (*copy_within)(int32_t device, const cb_memory* destination, const cb_memory* source, uint64_t bytes,
                         void* stream);
  /* (optional) zeros [any] */
  int32_t (*memory_statistics)(int32_t device, cb_memory_statistics* result);
  void (*reset_peak_statistics)(int32_t device); /* (optional) does nothing [any] */
  void (*empty_cache)(int32_t device);           /* (optional) does nothing [any] */
  /* (optional) NotImplementedError; bytes < 0: no limit [any] */
  int32_t (*set_memory_limit)(int32_t device, int64_t bytes);

  /* Threads, for a backend that computes on the host. */
  int32_t (*thread_count)(void);              /* (optional) 1 [any] */
  int32_t (*set_thread_count)(int32_t count); /* (optional) NotImplementedError [gil] */
  void (*after_fork_in_child)(void);          /* (optional) does nothing; in the child's only thread */

  /* Streams (CB_CAP_STREAMS). A null stream is the device's default stream. [any] */
  int32_t (*stream_create)(int32_t device, int32_t priority, void** result);
  void (*stream_destroy)(int32_t device, void* stream);
  int32_t (*stream_synchronize)(int32_t device, void* stream);
  int32_t (*stream_query)(int32_t device, void* stream, int32_t* done);
  /* Records that this stream uses the storage. The allocator must not reuse the memory before the
   * work that is now queued on the stream completes. */
  int32_t (*stream_record_memory)(int32_t device, void* storage, void* stream);

  /* Events (CB_CAP_EVENTS). flags: enum cb_event_flags of accelerator.h. [any] */
  int32_t (*event_create)(int32_t device, int32_t flags, void** result);
  void (*event_destroy)(int32_t device, void* event);
  int32_t (*event_record)(int32_t device, void* event, void* stream);
  /* the stream waits, not the host */
  int32_t (*event_wait)(int32_t device, void* event, void* stream);
  int32_t (*event_synchronize)(int32_t device, void* event);
  int32_t (*event_query)(int32_t device, void* event, int32_t* done);
  int32_t (*event_elapsed)(int32_t device, void* start, void* end, double* milliseconds);

  /* Returns a table of optional features by name, or null if there is none. The core asks for:
   *   "accelerator"         cb_accelerator of accelerator.h
   *   "dlpack_device_type"  an int32_t, the DLPack number of the device type
   *   "flush_denormal"      a pointer to int32_t (*)(int32_t on), which returns enum cb_status
   *   "compile"             cb_compile of compile.h, since 2.1; later minor versions append to it
   * (optional) none [any] */
  const void* (*extension)(const char* name);
  /* Plain text that tells how the backend selects its kernels, one line each, for python -m
   * candelabra.backends. (optional) none [any] */
  const char* (*describe)(void);
} cb_backend;

/* The only symbol that a backend's library exports. It gets the host's services, which stay valid,
 * and returns a table that stays valid as long as the process lives. It may look at host->abi_major
 * and abi_minor and return a table for that version. It must not start work: initialize() follows.
 * [once] */
typedef const cb_backend* (*cb_backend_entry)(const cb_host* host);
CB_EXPORT const cb_backend* candelabra_backend(const cb_host* host);

#ifdef __cplusplus
}
#endif

#endif
