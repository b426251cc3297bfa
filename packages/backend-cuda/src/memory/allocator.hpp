// The caching allocator of device memory. Its logic knows nothing of CUDA: memory comes from a
// MemorySource, which tests replace.
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

// Where the memory of one device comes from, and how the allocator learns what streams are done
// with.
class MemorySource {
 public:
  virtual ~MemorySource() = default;

  // Null where there is none left.
  virtual void* allocate(size_t bytes) = 0;
  virtual void free(void* memory, size_t bytes) = 0;

  // Address ranges that grow: 0 granularity where there are none.
  virtual size_t granularity() const { return 0; }
  virtual void* reserve(size_t) { return nullptr; }  // addresses without memory
  virtual bool map(void*, size_t) { return false; }  // memory behind a part of them; false: none left
  virtual void unmap(void*, size_t) {}               // gives the memory of a part back
  virtual void release(void*, size_t) {}             // gives the addresses back
  virtual int64_t total_bytes() const = 0;
  virtual int64_t free_bytes() const = 0;

  // An event after what is queued on the stream now. done() may be asked at any time; wait() for
  // the host.
  virtual EventId record(StreamId stream) = 0;
  virtual bool done(EventId event) = 0;
  virtual void wait(EventId event) = 0;
  virtual void destroy(EventId event) = 0;
  // Whether the stream is being captured: then it must not be asked, and what it allocates belongs
  // to the graph.
  virtual bool is_captured(StreamId) const { return false; }
  virtual void synchronize() = 0;
};

struct AllocatorOptions {
  // False: each block is a segment of its size and goes back at once, for memcheck and the like
  bool caching = true;
  bool expandable_segments = false;
  int64_t max_split_bytes = INT64_MAX;  // larger blocks are given whole or not at all
  double collect_threshold = 0;  // of the limit: above, cached segments are freed before the system is asked; 0: never
  int64_t rounding_divisions = 0;  // sizes are rounded to 2^k / divisions; 0: to 512 bytes
  // "expandable_segments:True,max_split_size_mb:512,garbage_collection_threshold:0.8,roundup_power2_divisions:4";
  // throws Failure.
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

  // Memory for work on this stream, aligned to 512 bytes. Throws Failure(CB_OUT_OF_MEMORY).
  void* allocate(size_t bytes, StreamId stream);
  void deallocate(void* memory);
  // The memory is used on this stream, too: after deallocate() it waits for what is queued there by
  // then.
  void record_stream(void* memory, StreamId stream);

  void empty_cache();
  void set_limit(int64_t bytes);  // negative: none
  void reset_peaks();
  void reset_totals();
  cb_memory_details details();
  void statistics(cb_memory_statistics& result);
  void snapshot(void (*visit)(void* context, const cb_memory_block* block), void* context);
  // The segment that an address is in: base and bytes; false where the address is not of this
  // allocator.
  bool find_segment(void* address, void** base, size_t* bytes);

  // Pools apart from the ordinary one, for graphs: between begin and end, what is allocated for
  // `stream` comes from the pool. A pool's memory is kept for it until it is released as often as
  // it was retained (creation counts).
  void* create_pool();
  void retain_pool(void* pool);
  void release_pool(void* pool);
  void begin_pool(void* pool, StreamId stream);
  void end_pool(void* pool);
  // Likewise for all that this thread allocates, whatever the stream; the pool that was begun last
  // is the one.
  void begin_pool_of_thread(void* pool);
  void end_pool_of_thread(void* pool);

  // Without caching each block is a segment of its own, which goes back when the block does.
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
  std::vector<std::pair<StreamId, Pool*>> capturing_;          // begin_pool without end_pool
  std::vector<std::pair<std::thread::id, Pool*>> redirected_;  // likewise, of threads
  std::unordered_map<void*, Block*> allocated_;
  std::map<void*, std::unique_ptr<Segment>> segments_;
  struct Pending {
    EventId event;
    StreamId stream;
    Block* block;
  };
  std::vector<Pending> pending_;
  std::vector<Block*> deferred_;  // given back during a capture with streams recorded
  cb_memory_details figures_{};
  int64_t limit_ = -1;
};

// The allocator of a device of this process.
Allocator& allocator(int device);
// The switch of all of them, those that are made later too.
void set_caching(bool enabled);
// Whether there is one yet: deallocation late in the life of the process asks.
bool has_allocator(int device);

}  // namespace candelabra::cuda
