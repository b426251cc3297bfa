// Blocks are split from segments, and merged with free neighbours when they are freed. A block
// serves the stream that its segment was allocated for, so that reusing it needs no
// synchronization. Free blocks are found by best fit.
#include "memory/allocator.hpp"

#include <algorithm>
#include <utility>

#include "candelabra/float_index.hpp"
#include "kernels.hpp"
#include "memory/allocator_blocks.hpp"

namespace candelabra::cuda {

namespace {

constexpr size_t mebibyte = size_t{1} << 20;
constexpr size_t min_block = 512;         // also the alignment
constexpr size_t small_limit = mebibyte;  // blocks up to this size come from small segments
constexpr size_t small_segment = 2 * mebibyte;
constexpr size_t large_segment = 20 * mebibyte;
constexpr size_t own_segment = 10 * mebibyte;  // a larger request gets a segment of its own size
constexpr size_t segment_rounding = 2 * mebibyte;

size_t round_up(size_t value, size_t to) {
  return (value + to - 1) / to * to;
}

}  // namespace

// ---- construction

Allocator::Allocator(int device, std::unique_ptr<MemorySource> source, AllocatorOptions options)
    : device_(device),
      source_(std::move(source)),
      options_(options),
      caching_(options.caching),
      ordinary_(std::make_unique<Pool>()) {
  statistics_.size = sizeof statistics_;
}

Allocator::~Allocator() = default;  // the process frees the memory: the driver may be gone before

size_t Allocator::rounded(size_t bytes) const {
  if (bytes > SIZE_MAX - segment_rounding) return bytes;
  if (!caching_) return round_up(std::max<size_t>(bytes, 1), 16);
  size_t result = std::max(min_block, round_up(bytes, min_block));
  if (options_.rounding_divisions > 1 && result > min_block) {
    size_t power = min_block;
    while (power * 2 <= bytes) power *= 2;
    const size_t step = std::max(min_block, power / static_cast<size_t>(options_.rounding_divisions));
    result = round_up(round_up(bytes, step), min_block);
  }
  return result;
}

Pool& Allocator::pool_for(StreamId stream) {
  for (const auto& [captured, pool] : capturing_)
    if (captured == stream || source_->is_captured(stream)) return *pool;
  if (!redirected_.empty()) {
    const auto own = [](const auto& each) { return each.first == std::this_thread::get_id(); };
    const auto found = std::find_if(redirected_.rbegin(), redirected_.rend(), own);
    if (found != redirected_.rend()) return *found->second;
  }
  return *ordinary_;
}

// ---- handing out

void* Allocator::allocate(size_t bytes, StreamId stream) {
  const std::lock_guard lock(mutex_);
  collect_events(false);
  Request request{bytes, rounded(bytes), stream, &pool_for(stream), false};
  request.small = request.bytes <= small_limit;
  Block* block = find_free(request);
  if (!block && options_.collect_threshold > 0) {
    const int64_t most = limit_ >= 0 ? limit_ : source_->total_bytes();
    const int64_t wanted = statistics_.reserved.current + static_cast<int64_t>(request.bytes) -
                           index_from_float<int64_t>(options_.collect_threshold * static_cast<double>(most), 0, most);
    if (wanted > 0) release_enough(wanted);
  }
  if (!block) block = grow(request);
  if (!block) {
    // Frees all cached memory and waits for blocks that other streams still use.
    ++statistics_.retry_count;
    collect_events(true);
    block = find_free(request);
    if (!block) {
      release_all_cached();
      block = grow(request);
    }
  }
  if (!block) fail(request);
  take(block, request);
  return block->address;
}

Block* Allocator::find_free(const Request& request) {
  if (!caching_ && request.pool == ordinary_.get()) return nullptr;
  FreeBlocks& by_stream = request.pool->free_blocks(request.small);
  const auto found = by_stream.find(request.stream);
  if (found == by_stream.end()) return nullptr;
  Block key;
  key.bytes = request.bytes;
  const auto candidate = found->second.lower_bound(&key);
  if (candidate == found->second.end()) return nullptr;
  Block* block = *candidate;
  if (!block->segment->expandable()) {
    const auto most = static_cast<size_t>(options_.max_split_bytes);
    if (request.bytes < most && block->bytes >= most) return nullptr;
    if (request.bytes >= most && block->bytes >= request.bytes + large_segment) return nullptr;
  }
  return block;
}

bool Allocator::has_room_for(size_t bytes) const {
  return limit_ < 0 || statistics_.reserved.current + static_cast<int64_t>(bytes) <= limit_;
}

Block* Allocator::grow(const Request& request) {
  if (caching_ && options_.expandable_segments && source_->granularity() > 0) return grow_expandable(request);
  const size_t bytes = !caching_                     ? request.bytes
                       : request.small               ? small_segment
                       : request.bytes < own_segment ? large_segment
                                                     : round_up(request.bytes, segment_rounding);
  if (bytes < request.bytes || !has_room_for(bytes)) return nullptr;
  void* memory = source_->allocate(bytes);
  if (!memory) return nullptr;
  ++statistics_.device_alloc_count;
  auto segment = std::make_unique<Segment>();
  auto block = std::make_unique<Block>();
  segment->base = static_cast<char*>(memory);
  segment->bytes = bytes;
  segment->stream = request.stream;
  segment->pool = request.pool;
  segment->small = request.small;
  segment->uncached = !caching_ && request.pool == ordinary_.get();
  block->segment = segment.get();
  block->address = segment->base;
  block->bytes = bytes;
  segment->first = segment->last = block.get();
  request.pool->free_blocks(request.small)[request.stream].insert(block.get());
  ++request.pool->segments;
  add(statistics_.reserved, static_cast<int64_t>(bytes));
  add(statistics_.segments, 1);
  segments_.emplace(memory, std::move(segment));
  return block.release();
}

// Each stream and size class has one range of addresses, as long as the device's memory. Pages are
// mapped at its end as needed. So no allocation fails for lack of contiguous addresses.
Block* Allocator::grow_expandable(const Request& request) {
  Segment* segment = nullptr;
  for (const auto& [base, each] : segments_)
    if (each->expandable() && each->stream == request.stream && each->pool == request.pool &&
        each->small == request.small)
      segment = each.get();
  const size_t page = source_->granularity();
  if (!segment) {
    const size_t reserved = round_up(static_cast<size_t>(source_->total_bytes()) / 8 * 9, page);
    void* base = source_->reserve(reserved);
    if (!base) return nullptr;
    auto made = std::make_unique<Segment>();
    made->base = static_cast<char*>(base);
    made->reserved = reserved;
    made->stream = request.stream;
    made->pool = request.pool;
    made->small = request.small;
    segment = segments_.emplace(base, std::move(made)).first->second.get();
    ++request.pool->segments;
    add(statistics_.segments, 1);
  }
  Block* last = segment->last && segment->last->free() ? segment->last : nullptr;
  const size_t there = last ? last->bytes : 0;
  const size_t bytes = round_up(request.bytes - there, std::max(page, request.small ? small_segment : page));
  if (segment->bytes + bytes > segment->reserved || !has_room_for(bytes)) return nullptr;
  if (!source_->map(segment->base + segment->bytes, bytes)) return nullptr;
  ++statistics_.device_alloc_count;
  auto& free_blocks = segment->pool->free_blocks(segment->small)[segment->stream];
  if (last) {
    free_blocks.erase(last);
    if (last->before) {
      add(statistics_.inactive_split, static_cast<int64_t>(bytes));
    }
    last->bytes += bytes;
  } else {
    auto block = std::make_unique<Block>();
    block->segment = segment;
    block->address = segment->base + segment->bytes;
    block->bytes = bytes;
    block->before = segment->last;
    (segment->last ? segment->last->after : segment->first) = block.get();
    if (segment->last) {
      add(statistics_.inactive_split, static_cast<int64_t>(bytes));
      add(statistics_.inactive_split_blocks, 1);
    }
    last = segment->last = block.release();
  }
  segment->bytes += bytes;
  add(statistics_.reserved, static_cast<int64_t>(bytes));
  free_blocks.insert(last);
  return last;
}

// A block is "split" if it is not the whole segment. Every change updates the statistics of
// inactive split blocks.
void Allocator::take(Block* block, const Request& request) {
  Segment& segment = *block->segment;
  auto& free_blocks = segment.pool->free_blocks(segment.small)[segment.stream];
  free_blocks.erase(block);
  const auto is_split = [](const Block* b) { return b->before != nullptr || b->after != nullptr; };
  if (is_split(block)) {
    add(statistics_.inactive_split, -static_cast<int64_t>(block->bytes));
    add(statistics_.inactive_split_blocks, -1);
  }
  const size_t rest = block->bytes - request.bytes;
  const bool cut = segment.small || segment.expandable()
                       ? rest >= min_block
                       : rest > small_limit && request.bytes < static_cast<size_t>(options_.max_split_bytes);
  if (cut) {
    auto made = std::make_unique<Block>();
    made->segment = &segment;
    made->address = block->address + request.bytes;
    made->bytes = rest;
    made->before = block;
    made->after = block->after;
    (block->after ? block->after->before : segment.last) = made.get();
    block->after = made.get();
    block->bytes = request.bytes;
    free_blocks.insert(made.get());
    add(statistics_.inactive_split, static_cast<int64_t>(rest));
    add(statistics_.inactive_split_blocks, 1);
    made.release();
  }
  block->allocated = true;
  block->requested = request.asked;
  allocated_.emplace(block->address, block);
  add(statistics_.allocated, static_cast<int64_t>(block->bytes));
  add(statistics_.active, static_cast<int64_t>(block->bytes));
  add(statistics_.requested, static_cast<int64_t>(request.asked));
  add(statistics_.allocations, 1);
  add(statistics_.active_blocks, 1);
}

// ---- taking back

void Allocator::deallocate(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = allocated_.find(memory);
  // The address is of another allocator, or was freed twice: ignored, because there is nobody to
  // report it to.
  if (found == allocated_.end()) return;
  Block* block = found->second;
  allocated_.erase(found);
  block->allocated = false;
  add(statistics_.allocated, -static_cast<int64_t>(block->bytes));
  add(statistics_.requested, -static_cast<int64_t>(block->requested));
  add(statistics_.allocations, -1);
  if (block->other_streams.empty()) return give_back(block);
  if (!capturing_.empty()) {  // events cannot be queried during a capture: deferred until its end
    ++block->pending;
    deferred_.push_back(block);
    return;
  }
  for (StreamId stream : std::exchange(block->other_streams, {})) {
    pending_.push_back({source_->record(stream), stream, block});
    ++block->pending;
  }
}

void Allocator::record_stream(void* memory, StreamId stream) {
  const std::lock_guard lock(mutex_);
  const auto found = allocated_.find(memory);
  if (found == allocated_.end()) return;
  Block* block = found->second;
  if (stream == block->segment->stream) return;
  if (std::ranges::find(block->other_streams, stream) == block->other_streams.end())
    block->other_streams.push_back(stream);
}

void Allocator::give_back(Block* block) {
  Segment& segment = *block->segment;
  auto& free_blocks = segment.pool->free_blocks(segment.small)[segment.stream];
  add(statistics_.active, -static_cast<int64_t>(block->bytes));
  add(statistics_.active_blocks, -1);
  const auto leave = [&](Block* neighbour) {
    free_blocks.erase(neighbour);
    add(statistics_.inactive_split, -static_cast<int64_t>(neighbour->bytes));
    add(statistics_.inactive_split_blocks, -1);
  };
  if (block->before && block->before->free()) {
    leave(block->before);
    block = join(block->before, block);
  }
  if (block->after && block->after->free()) {
    leave(block->after);
    block = join(block, block->after);
  }
  free_blocks.insert(block);
  if (block->before || block->after) {
    add(statistics_.inactive_split, static_cast<int64_t>(block->bytes));
    add(statistics_.inactive_split_blocks, 1);
  }
  if (segment.uncached && capturing_.empty()) {
    source_->synchronize();
    destroy_segment(segment);
  }
}

Block* Allocator::join(Block* left, Block* right) {
  left->bytes += right->bytes;
  left->after = right->after;
  (right->after ? right->after->before : left->segment->last) = left;
  delete right;
  return left;
}

void Allocator::collect_events(bool wait) {
  if (!capturing_.empty()) return;
  for (Block* block : std::exchange(deferred_, {})) {
    for (StreamId stream : std::exchange(block->other_streams, {})) {
      pending_.push_back({source_->record(stream), stream, block});
      ++block->pending;
    }
    if (--block->pending == 0) give_back(block);
  }
  if (pending_.empty()) return;
  if (wait) ++statistics_.sync_count;
  // The events of a stream complete in order: after one that has not, the rest of the stream is
  // skipped.
  std::vector<StreamId> behind;
  std::vector<Pending> left;
  for (const Pending& each : pending_) {
    if (wait) source_->wait(each.event);
    if (!wait && (std::ranges::find(behind, each.stream) != behind.end() || !source_->done(each.event))) {
      behind.push_back(each.stream);
      left.push_back(each);
      continue;
    }
    source_->destroy(each.event);
    if (--each.block->pending == 0) give_back(each.block);
  }
  pending_ = std::move(left);
}

// ---- back to the source

void Allocator::destroy_segment(Segment& segment) {
  Block* block = segment.first;
  if (block) segment.pool->free_blocks(segment.small)[segment.stream].erase(block);
  if (segment.expandable()) {
    if (segment.bytes) source_->unmap(segment.base, segment.bytes);
    source_->release(segment.base, segment.reserved);
  } else {
    source_->free(segment.base, segment.bytes);
  }
  ++statistics_.device_free_count;
  add(statistics_.reserved, -static_cast<int64_t>(segment.bytes));
  add(statistics_.segments, -1);
  --segment.pool->segments;
  segments_.erase(segment.base);
}

// Unmaps the free pages at the end of an expandable segment. Returns true if the whole segment is
// free.
bool Allocator::shrink_expandable(Segment& segment) {
  Block* last = segment.last;
  if (!last || !last->free()) return false;
  if (!last->before) return true;
  const size_t page = source_->granularity();
  const auto end = static_cast<size_t>(last->address - segment.base);
  const size_t keep = round_up(end, page);
  if (keep >= segment.bytes) return false;
  source_->synchronize();
  source_->unmap(segment.base + keep, segment.bytes - keep);
  ++statistics_.device_free_count;
  const auto freed = static_cast<int64_t>(segment.bytes - keep);
  auto& free_blocks = segment.pool->free_blocks(segment.small)[segment.stream];
  free_blocks.erase(last);
  add(statistics_.reserved, -freed);
  add(statistics_.inactive_split, -static_cast<int64_t>(last->bytes));
  segment.bytes = keep;
  if (keep > end) {
    last->bytes = keep - end;
    add(statistics_.inactive_split, static_cast<int64_t>(last->bytes));
    free_blocks.insert(last);
  } else {
    add(statistics_.inactive_split_blocks, -1);
    last->before->after = nullptr;
    segment.last = last->before;
    delete last;
    // The rest may be one block, which is no longer split.
    if (!segment.last->before && segment.last->free()) {
      add(statistics_.inactive_split, -static_cast<int64_t>(segment.last->bytes));
      add(statistics_.inactive_split_blocks, -1);
    }
  }
  return false;
}

void Allocator::release_cached(Pool& pool) {
  std::vector<Segment*> found;
  for (const auto& [base, segment] : segments_) {
    if (segment->pool != &pool) continue;
    const bool whole = segment->first == segment->last && (!segment->first || segment->first->free());
    if (whole || (segment->expandable() && shrink_expandable(*segment))) found.push_back(segment.get());
  }
  if (!found.empty()) source_->synchronize();
  for (Segment* segment : found) destroy_segment(*segment);
}

void Allocator::release_all_cached() {
  if (!capturing_.empty()) return;  // the driver must not be asked to free memory during a capture
  release_cached(*ordinary_);
  for (auto each = pools_.begin(); each != pools_.end();) {
    Pool& pool = *each->second;
    if (pool.retained == 0) release_cached(pool);
    each = pool.retained == 0 && pool.segments == 0 ? pools_.erase(each) : std::next(each);
  }
}

// Frees whole cached segments, the largest first, until `wanted` bytes have been freed.
void Allocator::release_enough(int64_t wanted) {
  if (!capturing_.empty()) return;
  std::vector<Segment*> found;
  for (const auto& [base, segment] : segments_)
    if (segment->pool == ordinary_.get() && !segment->expandable() && segment->first == segment->last &&
        segment->first->free())
      found.push_back(segment.get());
  std::ranges::sort(found, [](const Segment* a, const Segment* b) { return a->bytes > b->bytes; });
  if (!found.empty()) source_->synchronize();
  for (Segment* segment : found) {
    if (wanted <= 0) return;
    wanted -= static_cast<int64_t>(segment->bytes);
    destroy_segment(*segment);
  }
}

void Allocator::empty_cache() {
  const std::lock_guard lock(mutex_);
  collect_events(true);
  release_all_cached();
}

// ---- pools

void* Allocator::create_pool() {
  const std::lock_guard lock(mutex_);
  auto pool = std::make_unique<Pool>();
  pool->id = pool.get();
  return pools_.emplace(pool->id, std::move(pool)).first->first;
}

Pool& Allocator::known_pool(void* id) {
  const auto found = pools_.find(id);
  if (found == pools_.end()) throw failure(CB_RUNTIME_ERROR, "there is no such memory pool");
  return *found->second;
}

void Allocator::retain_pool(void* id) {
  const std::lock_guard lock(mutex_);
  ++known_pool(id).retained;
}

void Allocator::release_pool(void* id) {
  const std::lock_guard lock(mutex_);
  const auto found = pools_.find(id);
  if (found == pools_.end() || found->second->retained == 0)
    throw failure(CB_RUNTIME_ERROR, "there is no such memory pool");
  if (--found->second->retained == 0) release_all_cached();
}

void Allocator::begin_pool(void* id, StreamId stream) {
  const std::lock_guard lock(mutex_);
  Pool& pool = known_pool(id);
  collect_events(false);
  capturing_.emplace_back(stream, &pool);
}

void Allocator::end_pool(void* id) {
  const std::lock_guard lock(mutex_);
  std::erase_if(capturing_, [&](const auto& each) { return each.second->id == id; });
}

void Allocator::begin_pool_of_thread(void* id) {
  const std::lock_guard lock(mutex_);
  Pool& pool = known_pool(id);
  ++pool.retained;  // never freed
  redirected_.emplace_back(std::this_thread::get_id(), &pool);
}

void Allocator::end_pool_of_thread(void* id) {
  const std::lock_guard lock(mutex_);
  const auto begun = [&](const auto& each) {
    return each.first == std::this_thread::get_id() && each.second->id == id;
  };
  const auto found = std::find_if(redirected_.rbegin(), redirected_.rend(), begun);
  if (found == redirected_.rend()) throw failure(CB_RUNTIME_ERROR, "this thread does not use the memory pool");
  redirected_.erase(std::next(found).base());
  release_pool(id);
}

void Allocator::set_caching(bool enabled) {
  const std::lock_guard lock(mutex_);
  caching_ = enabled;
}

}  // namespace candelabra::cuda
