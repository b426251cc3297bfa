// Reports of the allocator: statistics, a snapshot, and the message of an out-of-memory error.
#include <cstdio>
#include <string>

#include "kernels.hpp"
#include "memory/allocator_blocks.hpp"

namespace candelabra::cuda {

namespace {

template <typename F>
void for_each_statistic(cb_memory_details& d, F&& f) {
  for (cb_statistic* statistic : {&d.allocated, &d.requested, &d.active, &d.reserved, &d.inactive_split, &d.allocations,
                                  &d.segments, &d.active_blocks, &d.inactive_split_blocks})
    f(*statistic);
}

std::string in_words(int64_t bytes) {
  char text[64];
  if (bytes < 1024)
    std::snprintf(text, sizeof text, "%lld bytes", static_cast<long long>(bytes));
  else if (bytes < int64_t{1} << 20)
    std::snprintf(text, sizeof text, "%.2f KiB", static_cast<double>(bytes) / 1024.0);
  else if (bytes < int64_t{1} << 30)
    std::snprintf(text, sizeof text, "%.2f MiB", static_cast<double>(bytes) / 1048576.0);
  else
    std::snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / 1073741824.0);
  return text;
}

}  // namespace

void reset_peaks(cb_memory_details& statistics) {
  for_each_statistic(statistics, [](cb_statistic& statistic) { statistic.peak = statistic.current; });
}

void reset_totals(cb_memory_details& statistics) {
  for_each_statistic(statistics, [](cb_statistic& statistic) { statistic.allocated = statistic.freed = 0; });
  statistics.retry_count = statistics.failure_count = statistics.sync_count = 0;
  statistics.device_alloc_count = statistics.device_free_count = 0;
}

void Allocator::set_limit(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  limit_ = bytes < 0 ? -1 : bytes;
}

void Allocator::reset_peaks() {
  const std::lock_guard lock(mutex_);
  candelabra::cuda::reset_peaks(statistics_);
}

void Allocator::reset_totals() {
  const std::lock_guard lock(mutex_);
  candelabra::cuda::reset_totals(statistics_);
}

cb_memory_details Allocator::details() {
  const std::lock_guard lock(mutex_);
  cb_memory_details result = statistics_;
  result.limit = limit_;
  return result;
}

void Allocator::statistics(cb_memory_statistics& result) {
  const std::lock_guard lock(mutex_);
  result.allocated = statistics_.allocated.current;
  result.allocated_peak = statistics_.allocated.peak;
  result.reserved = statistics_.reserved.current;
  result.reserved_peak = statistics_.reserved.peak;
  result.allocation_count = statistics_.allocations.allocated;
  result.cache_hit_count = statistics_.allocations.allocated - statistics_.device_alloc_count;
}

void Allocator::snapshot(void (*visit)(void* context, const cb_memory_block* block), void* context) {
  const std::lock_guard lock(mutex_);
  for (const auto& [base, segment] : segments_) {
    for (const Block* block = segment->first; block; block = block->after) {
      cb_memory_block told{};
      told.size = sizeof told;
      told.segment_address = reinterpret_cast<uint64_t>(segment->base);
      told.segment_bytes = segment->bytes;
      told.stream = segment->stream;
      told.pool = segment->pool->id;
      told.is_expandable = segment->expandable();
      told.is_large = !segment->small;
      told.address = reinterpret_cast<uint64_t>(block->address);
      told.bytes = block->bytes;
      told.requested = block->allocated ? block->requested : 0;
      told.state = block->allocated ? CB_BLOCK_ALLOCATED : block->pending ? CB_BLOCK_PENDING : CB_BLOCK_FREE;
      told.device = device_;
      visit(context, &told);
    }
  }
}

bool Allocator::find_segment(void* address, void** base, size_t* bytes) {
  const std::lock_guard lock(mutex_);
  auto after = segments_.upper_bound(address);
  if (after == segments_.begin()) return false;
  const Segment& segment = *std::prev(after)->second;
  if (static_cast<char*>(address) >= segment.base + segment.bytes || segment.expandable()) return false;
  *base = segment.base;
  *bytes = segment.bytes;
  return true;
}

void Allocator::fail(const Request& request) {
  ++statistics_.failure_count;
  const int64_t total = source_->total_bytes(), free = source_->free_bytes();
  const int64_t held = statistics_.allocated.current, cached = statistics_.reserved.current - held;
  std::string text = "CUDA out of memory. Tried to allocate " + in_words(static_cast<int64_t>(request.asked)) +
                     ". GPU " + std::to_string(device_) + " has a total capacity of " + in_words(total) + " of which " +
                     in_words(free) + " is free. Of the memory of this process " + in_words(held) +
                     " is allocated by Candelabra, and " + in_words(cached) +
                     " is reserved by Candelabra but unallocated.";
  if (limit_ >= 0) text += " The process may use " + in_words(limit_) + " (set_per_process_memory_fraction).";
  if (!options_.expandable_segments && cached > held / 4 && cached >= static_cast<int64_t>(request.bytes))
    text +=
        " Reserved memory that does not fit can be made to by setting "
        "CANDELABRA_CUDA_ALLOC_CONF=expandable_segments:True.";
  throw Failure(CB_OUT_OF_MEMORY, text);
}

}  // namespace candelabra::cuda
