// Memory of a device: OpenCL buffers, which are cached for the stream that they were allocated for.
#ifndef CANDELABRA_OPENCL_ALLOCATOR_HPP
#define CANDELABRA_OPENCL_ALLOCATOR_HPP

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/device.hpp"

namespace candelabra::opencl {

// What cb_allocation.storage points to.
struct Buffer {
  Memory memory;
  uint64_t bytes = 0;
  void* stream = nullptr;
  std::atomic<bool> shared = false;  // another stream has used it, so that it is not cached
};

// A freed buffer is given to a later allocation of about its size on the same stream: queues are in
// order, so that the new user's work comes after the old one's. A buffer that other streams have
// used goes back to the driver, which keeps it until the queued work that uses it is done.
class Allocator {
 public:
  explicit Allocator(Device& device) : device_(device) {}
  Buffer* allocate(uint64_t bytes, void* stream);
  void deallocate(Buffer* buffer);
  void empty_cache();
  void forget_stream(void* stream);
  void set_limit(int64_t bytes);
  void reset_peaks();
  void report(cb_memory_statistics& result) const;

 private:
  using Key = std::pair<void*, uint64_t>;  // stream and size
  std::unique_ptr<Buffer> cached(uint64_t bytes, void* stream);
  std::unique_ptr<Buffer> create(uint64_t bytes, void* stream);
  void release_all();

  Device& device_;
  mutable std::mutex mutex_;
  std::map<Key, std::vector<std::unique_ptr<Buffer>>> free_;
  cb_memory_statistics statistics_ = {};
  int64_t limit_ = -1;
};

// Fills in the functions of memory and copies.
void add_memory(cb_backend& table);

}  // namespace candelabra::opencl

#endif
