// A fake MemorySource: a counter of bytes, addresses that are never accessed, and streams whose
// work completes when the test says so.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "kernels.hpp"
#include "memory/allocator.hpp"

namespace candelabra::cuda {

class FakeSource : public MemorySource {
 public:
  int64_t capacity = int64_t{1} << 30;
  size_t page = 0;  // page size of expandable segments; 0: not supported
  int64_t used = 0;
  int allocations = 0, frees = 0, synchronizations = 0;
  std::map<char*, size_t> blocks;    // results of allocate()
  std::map<char*, size_t> ranges;    // results of reserve()
  std::set<char*> pages;             // mapped
  std::map<StreamId, int> queued;    // work queued per stream
  std::map<StreamId, int> finished;  // completed work
  std::map<EventId, std::pair<StreamId, int>> events;
  std::set<StreamId> captured;

  void* allocate(size_t bytes) override {
    if (used + static_cast<int64_t>(bytes) > capacity) return nullptr;
    used += static_cast<int64_t>(bytes);
    ++allocations;
    char* address = next_;
    next_ += (bytes + (size_t{1} << 21)) / (size_t{1} << 21) * (size_t{1} << 21);
    blocks[address] = bytes;
    return address;
  }
  void free(void* memory, size_t bytes) override {
    const auto found = blocks.find(static_cast<char*>(memory));
    if (found == blocks.end() || found->second != bytes)
      throw failure(CB_RUNTIME_ERROR, "freed what was not allocated");
    used -= static_cast<int64_t>(bytes);
    ++frees;
    blocks.erase(found);
  }
  size_t granularity() const override { return page; }
  void* reserve(size_t bytes) override {
    char* address = next_;
    next_ += bytes + (size_t{1} << 21);
    ranges[address] = bytes;
    return address;
  }
  bool map(void* at, size_t bytes) override {
    if (bytes % page != 0) throw failure(CB_RUNTIME_ERROR, "mapped a part of a page");
    if (used + static_cast<int64_t>(bytes) > capacity) return false;
    for (size_t done = 0; done < bytes; done += page)
      if (!pages.insert(static_cast<char*>(at) + done).second) throw failure(CB_RUNTIME_ERROR, "mapped a page twice");
    used += static_cast<int64_t>(bytes);
    ++allocations;
    return true;
  }
  void unmap(void* at, size_t bytes) override {
    for (size_t done = 0; done < bytes; done += page)
      if (!pages.erase(static_cast<char*>(at) + done))
        throw failure(CB_RUNTIME_ERROR, "unmapped a page that was not mapped");
    used -= static_cast<int64_t>(bytes);
    ++frees;
  }
  void release(void* at, size_t) override {
    if (!ranges.erase(static_cast<char*>(at))) throw failure(CB_RUNTIME_ERROR, "released what was not reserved");
  }
  int64_t total_bytes() const override { return capacity; }
  int64_t free_bytes() const override { return capacity - used; }

  EventId record(StreamId stream) override {
    const auto event = reinterpret_cast<EventId>(++event_count_);
    events[event] = {stream, queued[stream]};
    return event;
  }
  bool done(EventId event) override { return finished[events.at(event).first] >= events.at(event).second; }
  void wait(EventId event) override {
    finished[events.at(event).first] = std::max(finished[events.at(event).first], events.at(event).second);
  }
  void destroy(EventId event) override {
    if (!events.erase(event)) throw failure(CB_RUNTIME_ERROR, "destroyed an event twice");
  }
  bool is_captured(StreamId stream) const override { return captured.contains(stream); }
  void synchronize() override { ++synchronizations; }

 private:
  char* next_ = reinterpret_cast<char*>(uintptr_t{1} << 40);
  uintptr_t event_count_ = 0;
};

}  // namespace candelabra::cuda
