// The caching allocator of device memory. It does not depend on CUDA: a MemorySource provides
// memory and events, and tests replace it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <vector>

#include "candelabra/accelerator.h"

namespace candelabra::cuda {

using StreamId = void*;
using EventId = void*;

// Provides the memory of one device, and events that tell the allocator when streams have finished.
class MemorySource {
 public:
  virtual ~MemorySource() = default;

  // Returns null if no memory is left.
  virtual void* allocate(size_t bytes) = 0;
  virtual void free(void* memory, size_t bytes) = 0;

  // Expandable segments: address ranges to which memory is mapped. A granularity of 0 means that
  // they are not supported.
  virtual size_t granularity() const { return 0; }
  virtual void* reserve(size_t) { return nullptr; }  // reserves addresses without memory
  virtual bool map(void*, size_t) { return false; }  // maps memory to a part of them; false: no memory left
  virtual void unmap(void*, size_t) {}               // frees the memory of a part
  virtual void release(void*, size_t) {}             // frees the addresses
  virtual int64_t total_bytes() const = 0;
  virtual int64_t free_bytes() const = 0;

  // Records an event behind the work that is queued on the stream now. done() may be called at any
  // time; wait() blocks the host.
  virtual EventId record(StreamId stream) = 0;
  virtual bool done(EventId event) = 0;
  virtual void wait(EventId event) = 0;
  virtual void destroy(EventId event) = 0;
  // Whether the stream is being captured. Then it must not be queried, and its allocations belong
  // to the graph.
  virtual bool is_captured(StreamId) const { return false; }
  virtual void synchronize() = 0;
};

struct AllocatorOptions {
  // If false, each block is a segment of its own and is freed immediately, for memcheck and similar
  // tools.
  bool caching = true;
  bool expandable_segments = false;
  int64_t max_split_bytes = INT64_MAX;  // larger blocks are not split
  double collect_threshold =
      0;  // fraction of the limit above which cached segments are freed before new memory is allocated; 0: never
  int64_t rounding_divisions = 0;  // sizes are rounded up to a multiple of 2^k / divisions; 0: of 512 bytes
  // Parses
  // "expandable_segments:True,max_split_size_mb:512,garbage_collection_threshold:0.8,roundup_power2_divisions:4".
  // Throws Failure.
  static AllocatorOptions parse(const char* text);
};

struct Pool;
struct Segment;
struct Block;

class Allocator {
 public:
  Allocator(int device, std::unique_ptr<MemorySource> source, AllocatorOptions options);
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // Allocates memory for work on this stream, aligned to 512 bytes. Throws
  // Failure(CB_OUT_OF_MEMORY).
  void* allocate(size_t bytes, StreamId stream);
  void deallocate(void* memory);
  // Records that this stream uses the memory too. After deallocate(), the memory is reused only
  // when the work queued on it by then is done.
  void record_stream(void* memory, StreamId stream);

  void empty_cache();
  void set_limit(int64_t bytes);  // negative: no limit
  void reset_peaks();
  void reset_totals();
  cb_memory_details details();
  void statistics(cb_memory_statistics& result);
  void snapshot(void (*visit)(void* context, const cb_memory_block* block), void* context);
  // Finds the segment of an address: base and bytes. Returns false if the address is not of this
  // allocator.
  bool find_segment(void* address, void** base, size_t* bytes);

  // Private pools for graphs. Between begin and end, allocations for `stream` come from the pool. A
  // pool keeps its memory until it is released as often as it was retained (creation counts).
  void* create_pool();
  void retain_pool(void* pool);
  void release_pool(void* pool);
  void begin_pool(void* pool, StreamId stream);
  void end_pool(void* pool);
  // Likewise for all allocations of this thread on any stream. The last pool begun is used.
  void begin_pool_of_thread(void* pool);
  void end_pool_of_thread(void* pool);

  // Without caching, each block is a segment of its own and is freed with it.
  void set_caching(bool enabled);

 private:
  struct Request {
    size_t asked;
    size_t bytes;  // rounded
    StreamId stream;
    Pool* pool;
    bool small;
  };

  Pool& known_pool(void* pool);
  Pool& pool_for(StreamId stream);
  Block* find_free(const Request& request);
  Block* grow(const Request& request);
  Block* grow_expandable(const Request& request);
  bool has_room_for(size_t bytes) const;
  void take(Block* block, const Request& request);
  void give_back(Block* block);
  Block* join(Block* left, Block* right);
  void collect_events(bool wait);
  void release_cached(Pool& pool);
  void release_all_cached();
  void release_enough(int64_t wanted);
  bool shrink_expandable(Segment& segment);
  void destroy_segment(Segment& segment);
  [[noreturn]] void fail(const Request& request);
  size_t rounded(size_t bytes) const;

  const int device_;
  const std::unique_ptr<MemorySource> source_;
  const AllocatorOptions options_;
  bool caching_;
  std::recursive_mutex mutex_;
  std::unique_ptr<Pool> ordinary_;
  std::map<void*, std::unique_ptr<Pool>> pools_;
  std::vector<std::pair<StreamId, Pool*>> capturing_;          // streams with a begin_pool but no end_pool yet
  std::vector<std::pair<std::thread::id, Pool*>> redirected_;  // threads with a begin_pool_of_thread but no end yet
  std::unordered_map<void*, Block*> allocated_;
  std::map<void*, std::unique_ptr<Segment>> segments_;
  struct Pending {
    EventId event;
    StreamId stream;
    Block* block;
  };
  std::vector<Pending> pending_;
  std::vector<Block*> deferred_;  // freed during a capture, but used by other streams
  cb_memory_details statistics_{};
  int64_t limit_ = -1;
};

// The allocator of a device.
Allocator& allocator(int device);
// Turns caching on or off for all allocators, including later ones.
void set_caching(bool enabled);
// Whether the allocator exists: memory may be freed late in the life of the process.
bool has_allocator(int device);

}  // namespace candelabra::cuda
