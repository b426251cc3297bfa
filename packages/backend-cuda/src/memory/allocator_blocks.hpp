// Blocks, into which an allocator splits segments, and the pools of free ones.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "memory/allocator.hpp"

namespace candelabra::cuda {

struct Block {
  Segment* segment = nullptr;
  Block* before = nullptr;
  Block* after = nullptr;
  char* address = nullptr;
  size_t bytes = 0;
  size_t requested = 0;
  bool allocated = false;               // in use
  int pending = 0;                      // recorded events that have not completed
  std::vector<StreamId> other_streams;  // recorded by record_stream, besides the segment's
  bool free() const { return !allocated && pending == 0; }
};

// Smallest first, and among equals the lowest address, which keeps the ends of segments free.
struct SmallerFirst {
  bool operator()(const Block* a, const Block* b) const {
    return a->bytes != b->bytes ? a->bytes < b->bytes : a->address < b->address;
  }
};
using FreeBlocks = std::map<StreamId, std::set<Block*, SmallerFirst>>;

struct Pool {
  void* id = nullptr;  // null: the default pool
  int retained = 1;
  FreeBlocks small, large;
  int64_t segments = 0;
  FreeBlocks& free_blocks(bool is_small) { return is_small ? small : large; }
};

struct Segment {
  char* base = nullptr;
  size_t bytes = 0;     // mapped memory
  size_t reserved = 0;  // addresses of an expandable segment; otherwise 0
  StreamId stream = nullptr;
  Pool* pool = nullptr;
  bool small = false;
  bool uncached = false;  // a single block; freed with it
  Block* first = nullptr;
  Block* last = nullptr;
  bool expandable() const { return reserved != 0; }
  ~Segment() {
    while (first) delete std::exchange(first, first->after);
  }
};

inline void add(cb_statistic& statistic, int64_t amount) {
  statistic.current += amount;
  statistic.peak = std::max(statistic.peak, statistic.current);
  (amount > 0 ? statistic.allocated : statistic.freed) += std::abs(amount);
}

void reset_peaks(cb_memory_details& statistics);
void reset_totals(cb_memory_details& statistics);

}  // namespace candelabra::cuda
