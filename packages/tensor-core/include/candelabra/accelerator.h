/*
 * accelerator.h: what a device may have beyond memory, kernels, streams and events; a supplement to backend.h.
 *
 * A backend that has some of it answers extension("accelerator") with one constant table, cb_accelerator. Every field but size
 * may be null: then the device does not have it, and candelabra.accelerator says so when it is asked for. Versions go as in
 * backend.h: fields are appended only, and nothing is read beyond the size that the other side states.
 *
 * Streams, events, capturing and pools are opaque addresses. Functions return enum cb_status; cb_backend.last_error() has the
 * message.
 */
#ifndef CANDELABRA_ACCELERATOR_H
#define CANDELABRA_ACCELERATOR_H

#include "candelabra/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One more of enum cb_status: the device itself has failed, or its driver; candelabra.AcceleratorError. */
enum cb_accelerator_status { CB_ACCELERATOR_ERROR = 7 };

/* More bits of cb_backend.capabilities. */
enum cb_accelerator_capabilities {
  CB_CAP_GRAPHS = 128,     /* the graph functions are there */
  CB_CAP_COLLECTIVES = 256 /* the table of collectives is there */
};

/* For cb_backend.event_create, or-ed: what stands there as with_timing. */
enum cb_event_flags {
  CB_EVENT_TIMING = 1,
  CB_EVENT_BLOCKING = 2,    /* who waits for it sleeps */
  CB_EVENT_INTERPROCESS = 4 /* may be opened by another process; without timing */
};

/* What is told of a device beyond cb_device_properties. */
typedef struct cb_device_details {
  uint64_t size;
  int32_t major; /* of the architecture: compute capability 9.0 is 9, 0 */
  int32_t minor;
  int32_t warp_size;
  int32_t threads_per_processor;
  int32_t threads_per_block;
  int32_t clock_khz;
  int64_t l2_bytes;
  int64_t shared_bytes_per_block;       /* without asking for more */
  int64_t shared_bytes_per_block_optin; /* at most */
  int64_t shared_bytes_per_processor;
  int32_t registers_per_processor;
  int32_t is_integrated;
  int32_t is_multi_gpu_board;
  int32_t pci_domain;
  int32_t pci_bus;
  int32_t pci_device;
  int32_t driver_version; /* as the vendor counts: 13000 */
  int32_t runtime_version;
  uint8_t uuid[16];
} cb_device_details;

/* Counts of the caching allocator beyond cb_memory_statistics. Bytes unless they are counts; `current`, `peak`, and totals since
 * the start or the last reset of the totals. */
typedef struct cb_memory_figure {
  int64_t current, peak, allocated, freed;
} cb_memory_figure;

typedef struct cb_memory_details {
  uint64_t size;
  cb_memory_figure allocated;      /* bytes handed out */
  cb_memory_figure requested;      /* bytes asked for, before rounding */
  cb_memory_figure active;         /* handed out, or waiting for a stream that still uses them */
  cb_memory_figure reserved;       /* held from the system */
  cb_memory_figure inactive_split; /* free parts of blocks that are partly in use */
  cb_memory_figure allocations;    /* counts, as above */
  cb_memory_figure segments;
  cb_memory_figure active_blocks;
  cb_memory_figure inactive_split_blocks;
  int64_t retry_count;        /* the system refused; the cache was freed and it was asked again */
  int64_t failure_count;      /* out of memory */
  int64_t sync_count;         /* waited for streams to get memory back */
  int64_t device_alloc_count; /* calls of the system */
  int64_t device_free_count;
  int64_t limit; /* bytes, -1 without */
} cb_memory_details;

enum cb_block_state {
  CB_BLOCK_ALLOCATED = 0,
  CB_BLOCK_PENDING = 1, /* given back, in use by another stream */
  CB_BLOCK_FREE = 2
};

/* One block of one segment, for memory_snapshot; blocks of a segment come in the order of their addresses. */
typedef struct cb_memory_block {
  uint64_t size_of_struct;
  uint64_t segment_address;
  uint64_t segment_bytes;
  void* stream;
  void* pool; /* null: the ordinary one */
  int32_t is_expandable;
  int32_t is_large;
  uint64_t address;
  uint64_t bytes;
  uint64_t requested;
  int32_t state; /* enum cb_block_state */
  int32_t device;
} cb_memory_block;

/* What another process opens: memory (with the place in the block that was exported) or an event. */
typedef struct cb_ipc_handle {
  uint64_t size;
  uint8_t bytes[128]; /* the vendor's handle, zero-filled */
  uint64_t offset;    /* of the memory in the block that the handle stands for */
  uint64_t block_bytes;
} cb_ipc_handle;

/* How strict a capture is about what other threads do. */
enum cb_capture_mode { CB_CAPTURE_GLOBAL = 0, CB_CAPTURE_THREAD_LOCAL = 1, CB_CAPTURE_RELAXED = 2 };

enum cb_reduction { CB_REDUCE_SUM = 0, CB_REDUCE_PRODUCT = 1, CB_REDUCE_MIN = 2, CB_REDUCE_MAX = 3, CB_REDUCE_MEAN = 4 };

/* What a communicator is made with. */
typedef struct cb_communicator_options {
  uint64_t size;
  int64_t timeout_ms; /* of making it and of each collective; 0: without end */
  const char* name;   /* for messages; may be null */
} cb_communicator_options;

/* Collectives over communicators of processes, one device of each. Counts are elements of one rank's part; all are queued on the
 * stream, in the order in which they are called, which has to be the same on all ranks. Addresses are device memory without gaps;
 * `send` and `receive` may be the same where a rank's part lies where it would be written.
 *
 * A failure or a collective that takes longer than the time-out ends the communicator on this rank: what waits on the device for
 * other ranks gives up, results of what was under way are undefined, the next operator or synchronization of the device fails with
 * the reason, and so does everything else that is asked of the communicator, but destroy. The process and the device go on. */
typedef struct cb_collectives {
  uint64_t size;
  const char* name; /* "nccl" */
  int32_t (*version)(int32_t* result);
  /* One rank makes the id (128 bytes) and the others get it by other means. */
  int32_t (*unique_id)(uint8_t id[128]);
  /* Waits for all ranks; not longer than the time-out. */
  int32_t (*create)(int32_t device, const uint8_t id[128], int32_t rank, int32_t ranks, const cb_communicator_options* options,
                    void** communicator);
  /* All ranks call it: those with the same color make a new communicator, in the order of key and then of rank. A negative color
   * takes no part: null. */
  int32_t (*split)(void* communicator, int32_t color, int32_t key, const cb_communicator_options* options, void** child);
  int32_t (*rank)(void* communicator, int32_t* rank, int32_t* ranks);
  int32_t (*destroy)(void* communicator); /* waits for what is queued, not longer than the time-out; the communicator is gone */
  int32_t (*abort)(void* communicator);   /* ends what hangs; what is asked of it later fails, but destroy */
  /* CB_OK, or the failure that has happened meanwhile. */
  int32_t (*query)(void* communicator);
  /* Waits on the host until all that was queued is done, or fails after so many milliseconds (and with the communicator's own
   * time-outs); 0: only with those. */
  int32_t (*wait)(void* communicator, int64_t timeout_ms);
  int32_t (*all_reduce)(void* communicator, const void* send, void* receive, uint64_t count, int32_t dtype, int32_t reduction,
                        void* stream);
  int32_t (*broadcast)(void* communicator, const void* send, void* receive, uint64_t count, int32_t dtype, int32_t root,
                       void* stream);
  int32_t (*reduce)(void* communicator, const void* send, void* receive, uint64_t count, int32_t dtype, int32_t reduction,
                    int32_t root, void* stream);
  int32_t (*all_gather)(void* communicator, const void* send, void* receive, uint64_t count, int32_t dtype, void* stream);
  int32_t (*reduce_scatter)(void* communicator, const void* send, void* receive, uint64_t count, int32_t dtype, int32_t reduction,
                            void* stream);
  int32_t (*all_to_all)(void* communicator, const void* send, void* receive, uint64_t count, int32_t dtype, void* stream);
  int32_t (*send)(void* communicator, const void* data, uint64_t count, int32_t dtype, int32_t peer, void* stream);
  int32_t (*receive)(void* communicator, void* data, uint64_t count, int32_t dtype, int32_t peer, void* stream);
  /* What this thread calls between the two is begun together: sends and receives that need each other, parts of different sizes. */
  int32_t (*group_begin)(void);
  int32_t (*group_end)(void);
} cb_collectives;

typedef struct cb_accelerator {
  uint64_t size; /* sizeof(cb_accelerator) as the backend was compiled */

  int32_t (*device_details)(int32_t device, cb_device_details* result);

  /* Streams: the range of priorities (the greatest is the smallest number), and whether what is queued goes to a graph. */
  int32_t (*stream_priorities)(int32_t device, int32_t* least, int32_t* greatest);
  int32_t (*stream_is_capturing)(int32_t device, void* stream, int32_t* result);

  /* Memory. */
  int32_t (*memory_details)(int32_t device, cb_memory_details* result);
  int32_t (*reset_totals)(int32_t device);
  /* Calls visit for every block; visit must not use the backend. */
  int32_t (*memory_snapshot)(int32_t device, void (*visit)(void* context, const cb_memory_block* block), void* context);
  int32_t (*memory_info)(int32_t device, int64_t* free_bytes, int64_t* total_bytes);

  /* Pinned host memory, which asynchronous copies need. */
  int32_t (*allocate_pinned)(size_t bytes, void** result);
  void (*deallocate_pinned)(void* memory, size_t bytes);
  int32_t (*is_pinned)(const void* memory, int32_t* result);
  int32_t (*record_pinned)(void* memory, int32_t device, void* stream); /* not reused before the stream is done with it */
  void (*empty_pinned_cache)(void);

  /* Copies that return at once where the host memory is pinned. */
  int32_t (*copy_from_host_async)(int32_t device, void* destination, const void* source, size_t bytes, void* stream);
  int32_t (*copy_to_host_async)(int32_t device, void* destination, const void* source, size_t bytes, void* stream);

  /* Other devices of the same type. The stream is one of the source's device. */
  int32_t (*can_access_peer)(int32_t device, int32_t peer, int32_t* result);
  int32_t (*copy_peer)(int32_t to, void* destination, int32_t from, const void* source, size_t bytes, void* stream);

  /* Other processes. An opened block is closed by its base. */
  int32_t (*ipc_export_memory)(int32_t device, void* memory, cb_ipc_handle* result);
  int32_t (*ipc_open_memory)(int32_t device, const cb_ipc_handle* handle, void** base);
  int32_t (*ipc_close_memory)(int32_t device, void* base);
  int32_t (*ipc_export_event)(int32_t device, void* event, cb_ipc_handle* result);
  int32_t (*ipc_open_event)(int32_t device, const cb_ipc_handle* handle, void** event);

  /* Graphs: what is queued on the stream between begin and end is recorded and not run. Memory allocated meanwhile comes from the
   * pool and stays its own as long as the pool lives. random_offset is the generator's offset at the beginning: random numbers of a
   * replay begin at the offset that graph_launch gives, with its seed. */
  int32_t (*pool_create)(int32_t device, void** pool);
  int32_t (*pool_retain)(int32_t device, void* pool);
  int32_t (*pool_release)(int32_t device, void* pool);
  int32_t (*graph_begin)(int32_t device, void* stream, void* pool, int32_t mode, uint64_t random_offset);
  int32_t (*graph_end)(int32_t device, void* stream, void** graph);
  int32_t (*graph_launch)(int32_t device, void* graph, void* stream, uint64_t seed, uint64_t offset);
  int32_t (*graph_write_dot)(int32_t device, void* graph, const char* path);
  void (*graph_destroy)(int32_t device, void* graph);

  /* Marks for the vendor's profiler; nothing happens without it. */
  void (*range_push)(const char* text);
  void (*range_pop)(void);
  void (*mark)(const char* text);

  const cb_collectives* collectives;

  /* What this thread allocates on the device between the two comes from the pool, whatever the stream. The last that was begun is
   * the one; a pool is ended by the thread that began it. */
  int32_t (*pool_begin)(int32_t device, void* pool);
  int32_t (*pool_end)(int32_t device, void* pool);
  /* Whether memory that is given back is kept for later. What is asked for while it is not goes back at once. */
  int32_t (*set_caching)(int32_t is_enabled);

  /* The cache of pinned memory: `allocated` and `allocations` are those in use, `reserved` and `segments` all that there are. */
  int32_t (*pinned_details)(cb_memory_details* result);
  int32_t (*reset_pinned_peaks)(void);
  int32_t (*reset_pinned_totals)(void);

  /* The vendor's profiler, if one is attached, begins or ends to record. */
  int32_t (*profiler_record)(int32_t is_recording);
  /* Ranges that begin and end on different threads, or cross each other. */
  uint64_t (*range_start)(const char* text);
  void (*range_end)(uint64_t range);
} cb_accelerator;

#ifdef __cplusplus
}
#endif

#endif
