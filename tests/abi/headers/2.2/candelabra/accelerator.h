/*
 * accelerator.h: optional device features beyond memory, kernels, streams and events; a supplement
 * to backend.h.
 *
 * A backend with such features returns one constant table, cb_accelerator, from
 * extension("accelerator"). Every field except size may be null. The device then lacks the feature,
 * and candelabra.accelerator reports that when a program asks for it. Versions, threads and texts
 * are as in backend.h; every function is [any] unless its comment says otherwise.
 *
 * Streams, events, graphs and pools are opaque addresses. Functions return enum cb_status;
 * cb_backend.last_error() has the message.
 */
#ifndef CANDELABRA_ACCELERATOR_H
#define CANDELABRA_ACCELERATOR_H

#include "candelabra/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of cb_backend.event_create, or-ed. */
enum cb_event_flags {
  CB_EVENT_TIMING = 1,
  CB_EVENT_BLOCKING = 2,    /* a waiting host thread sleeps instead of spinning */
  CB_EVENT_INTERPROCESS = 4 /* another process may open it; without timing */
};

/* Properties of a device beyond cb_device_properties. */
typedef struct cb_device_details {
  uint64_t size;
  int32_t major; /* of the architecture: compute capability 9.0 is 9, 0 */
  int32_t minor;
  int32_t warp_size;
  int32_t threads_per_processor;
  int32_t threads_per_block;
  int32_t clock_khz;
  int64_t l2_bytes;
  int64_t shared_bytes_per_block;       /* the default limit */
  int64_t shared_bytes_per_block_optin; /* the largest limit that a kernel can request */
  int64_t shared_bytes_per_processor;
  int32_t registers_per_processor;
  int32_t is_integrated;
  int32_t is_multi_gpu_board;
  int32_t pci_domain;
  int32_t pci_bus;
  int32_t pci_device;
  int32_t driver_version; /* in the vendor's encoding: 13000 */
  int32_t runtime_version;
  uint8_t uuid[16];
} cb_device_details;

/* One statistic of the caching allocator, in bytes or as a count. `allocated` and `freed` are
 * totals since the start or the last reset_totals(). */
typedef struct cb_statistic {
  int64_t current, peak, allocated, freed;
  int64_t reserved;
} cb_statistic;

typedef struct cb_memory_details {
  uint64_t size;
  cb_statistic allocated;      /* bytes allocated */
  cb_statistic requested;      /* bytes requested, before rounding */
  cb_statistic active;         /* bytes allocated, or freed and still in use by a stream */
  cb_statistic reserved;       /* bytes obtained from the system */
  cb_statistic inactive_split; /* bytes of the free parts of blocks that are partly in use */
  cb_statistic allocations;    /* this and the following are counts */
  cb_statistic segments;
  cb_statistic active_blocks;
  cb_statistic inactive_split_blocks;
  /* allocations that the system refused and that were retried after the cache was emptied */
  int64_t retry_count;
  int64_t failure_count;      /* out of memory */
  int64_t sync_count;         /* waits for streams in order to reuse memory */
  int64_t device_alloc_count; /* allocation calls to the system */
  int64_t device_free_count;
  int64_t limit; /* bytes; -1: no limit */
} cb_memory_details;

enum cb_block_state {
  CB_BLOCK_ALLOCATED = 0,
  CB_BLOCK_PENDING = 1, /* freed, but still in use by another stream */
  CB_BLOCK_FREE = 2
};

/* One block of a segment, for memory_snapshot. The blocks of a segment come in address order. */
typedef struct cb_memory_block {
  uint64_t size;
  uint64_t segment_address;
  uint64_t segment_bytes;
  void* stream;
  void* pool; /* null: the default pool */
  int32_t is_expandable;
  int32_t is_large;
  uint64_t address;
  uint64_t bytes;
  uint64_t requested;
  int32_t state; /* enum cb_block_state */
  int32_t device;
} cb_memory_block;

/* A handle with which another process opens memory or an event. */
typedef struct cb_ipc_handle {
  uint64_t size;
  uint8_t bytes[128]; /* the vendor's handle, zero-padded */
  uint64_t offset;    /* of the exported memory within the block that the handle identifies */
  uint64_t block_bytes;
} cb_ipc_handle;

/* Which calls from other threads a capture allows. */
enum cb_capture_mode { CB_CAPTURE_GLOBAL = 0, CB_CAPTURE_THREAD_LOCAL = 1, CB_CAPTURE_RELAXED = 2 };

enum cb_reduction {
  CB_REDUCE_SUM = 0,
  CB_REDUCE_PRODUCT = 1,
  CB_REDUCE_MIN = 2,
  CB_REDUCE_MAX = 3,
  CB_REDUCE_MEAN = 4
};

/* Options for a new communicator. */
typedef struct cb_communicator_options {
  uint64_t size;
  int64_t timeout_ms; /* for its creation and for each collective; 0: no time-out */
  const char* name;   /* for messages; may be null */
} cb_communicator_options;

/* Collectives over communicators of processes, with one device per process. Counts are elements
 * of one rank's part. A collective is queued on the stream. All ranks must call the collectives
 * in the same order. Addresses point to contiguous device memory. `send` and `receive` may be
 * equal if a rank's part is already at its position in the result.
 *
 * A failure, or a collective that exceeds the time-out, ends the communicator on this rank.
 * Device work that waits for other ranks is given up, and results of unfinished collectives are
 * undefined. The next operator or synchronization of the device fails with the reason. Every
 * later call on the communicator fails too, except destroy. The process and the device remain
 * usable. */
typedef struct cb_collectives {
  uint64_t size;
  const char* name; /* "nccl" */
  int32_t (*version)(int32_t* result);
  /* One rank creates the id (128 bytes) and passes it to the others by other means. */
  int32_t (*unique_id)(uint8_t id[128]);
  /* Waits for all ranks, at most as long as the time-out. */
  int32_t (*create)(int32_t device, const uint8_t id[128], int32_t rank, int32_t ranks,
                    const cb_communicator_options* options, void** communicator);
  /* All ranks must call it. Ranks with the same color form a new communicator, ordered by key
   * and then by rank. A rank with a negative color joins none and gets null. */
  int32_t (*split)(void* communicator, int32_t color, int32_t key, const cb_communicator_options* options,
                   void** child);
  int32_t (*rank)(void* communicator, int32_t* rank, int32_t* ranks);
  /* waits for queued work, at most as long as the time-out; frees the communicator */
  int32_t (*destroy)(void* communicator);
  /* ends collectives that hang; later calls fail, except destroy */
  int32_t (*abort)(void* communicator);
  /* CB_OK, or the failure that occurred in the meantime. */
  int32_t (*query)(void* communicator);
  /* Waits on the host until all queued work is done. Fails after timeout_ms milliseconds or at
   * the communicator's own time-outs; 0 means only the latter. */
  int32_t (*wait)(void* communicator, int64_t timeout_ms);
  int32_t (*all_reduce)(void* communicator, const void* send, void* receive, uint64_t count, int32_t dtype,
                        int32_t reduction, void* stream);
  int32_t (*broadcast)(void* communicator, const void* send, void* receive, uint64_t count, int32_t dtype, int32_t root,
                       void* stream);
  int32_t (*reduce)(void* communicator, const void* send, void* receive, uint64_t count, int32_t dtype,
                    int32_t reduction, int32_t root, void* stream);
  int32_t (*all_gather)(void* communicator, const void* send, void* receive, uint64_t count, int32_t dtype,
                        void* stream);
  int32_t (*reduce_scatter)(void* communicator, const void* send, void* receive, uint64_t count, int32_t dtype,
                            int32_t reduction, void* stream);
  int32_t (*all_to_all)(void* communicator, const void* send, void* receive, uint64_t count, int32_t dtype,
                        void* stream);
  int32_t (*send)(void* communicator, const void* data, uint64_t count, int32_t dtype, int32_t peer, void* stream);
  int32_t (*receive)(void* communicator, void* data, uint64_t count, int32_t dtype, int32_t peer, void* stream);
  /* Collectives that this thread calls between the two start together. Needed for sends and
   * receives that depend on each other, and for parts of different sizes. */
  int32_t (*group_begin)(void);
  int32_t (*group_end)(void);
} cb_collectives;

typedef struct cb_accelerator {
  uint64_t size; /* sizeof(cb_accelerator) in the backend's build */

  int32_t (*device_details)(int32_t device, cb_device_details* result);

  /* Streams: the range of priorities (the greatest priority is the smallest number), and whether
   * the stream is capturing a graph. */
  int32_t (*stream_priorities)(int32_t device, int32_t* least, int32_t* greatest);
  int32_t (*stream_is_capturing)(int32_t device, void* stream, int32_t* result);

  /* Memory. */
  int32_t (*memory_details)(int32_t device, cb_memory_details* result);
  int32_t (*reset_totals)(int32_t device);
  /* Calls visit for every block. visit must not call the backend. */
  int32_t (*memory_snapshot)(int32_t device, void (*visit)(void* context, const cb_memory_block* block), void* context);
  int32_t (*memory_info)(int32_t device, int64_t* free_bytes, int64_t* total_bytes);

  /* Pinned host memory, which asynchronous copies require. */
  int32_t (*allocate_pinned)(uint64_t bytes, void** result);
  void (*deallocate_pinned)(void* memory, uint64_t bytes);
  int32_t (*is_pinned)(const void* memory, int32_t* result);
  /* not reused before the stream's queued work is done */
  int32_t (*record_pinned)(void* memory, int32_t device, void* stream);
  void (*empty_pinned_cache)(void);

  /* Copies that return immediately if the host memory is pinned. */
  int32_t (*copy_from_host_async)(int32_t device, const cb_memory* destination, const void* source, uint64_t bytes,
                                  void* stream);
  int32_t (*copy_to_host_async)(int32_t device, void* destination, const cb_memory* source, uint64_t bytes,
                                void* stream);

  /* Peer devices of the same type. The stream belongs to the source device. */
  int32_t (*can_access_peer)(int32_t device, int32_t peer, int32_t* result);
  int32_t (*copy_peer)(int32_t to, const cb_memory* destination, int32_t from, const cb_memory* source, uint64_t bytes,
                       void* stream);

  /* Inter-process sharing. An opened block is closed by its base address. */
  int32_t (*ipc_export_memory)(int32_t device, void* memory, cb_ipc_handle* result);
  int32_t (*ipc_open_memory)(int32_t device, const cb_ipc_handle* handle, void** base);
  int32_t (*ipc_close_memory)(int32_t device, void* base);
  int32_t (*ipc_export_event)(int32_t device, void* event, cb_ipc_handle* result);
  int32_t (*ipc_open_event)(int32_t device, const cb_ipc_handle* handle, void** event);

  /* Graphs: work queued on the stream between begin and end is recorded instead of run. Memory
   * allocated in between comes from the pool and stays reserved as long as the pool lives.
   * random_offset is the generator's offset at the start of the capture. A replay draws its
   * random numbers from the seed and the offset that graph_launch gets. */
  int32_t (*pool_create)(int32_t device, void** pool);
  int32_t (*pool_retain)(int32_t device, void* pool);
  int32_t (*pool_release)(int32_t device, void* pool);
  int32_t (*graph_begin)(int32_t device, void* stream, void* pool, int32_t mode, uint64_t random_offset);
  int32_t (*graph_end)(int32_t device, void* stream, void** graph);
  int32_t (*graph_launch)(int32_t device, void* graph, void* stream, uint64_t seed, uint64_t offset);
  int32_t (*graph_write_dot)(int32_t device, void* graph, const char* path);
  void (*graph_destroy)(int32_t device, void* graph);

  /* Ranges and marks for the vendor's profiler; no effect without one. */
  void (*range_push)(const char* text);
  void (*range_pop)(void);
  void (*mark)(const char* text);

  const cb_collectives* collectives;

  /* Between the two calls, this thread's allocations on the device come from the pool, for every
   * stream. The most recently begun pool applies. The thread that began a pool must end it. */
  int32_t (*pool_begin)(int32_t device, void* pool);
  int32_t (*pool_end)(int32_t device, void* pool);
  /* Whether the allocator caches freed memory. Memory allocated while caching is off returns to
   * the system when it is freed. */
  int32_t (*set_caching)(int32_t is_enabled);

  /* Statistics of the cache of pinned memory. `allocated` and `allocations` count memory in use;
   * `reserved` and `segments` count all of it. */
  int32_t (*pinned_details)(cb_memory_details* result);
  int32_t (*reset_pinned_peaks)(void);
  int32_t (*reset_pinned_totals)(void);

  /* Starts or stops recording by the vendor's profiler, if one is attached. */
  int32_t (*profiler_record)(int32_t is_recording);
  /* Ranges that may start and end on different threads, and may overlap without nesting. */
  uint64_t (*range_start)(const char* text);
  void (*range_end)(uint64_t range);
} cb_accelerator;

#ifdef __cplusplus
}
#endif

#endif
