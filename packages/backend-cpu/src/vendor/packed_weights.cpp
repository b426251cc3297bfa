#include "vendor/packed_weights.hpp"

#include <algorithm>
#include <atomic>
#include <list>
#include <map>
#include <mutex>
#include <utility>

#include "kernels.hpp"

namespace candelabra::cpu {
namespace {

// Reordering a smaller weight costs less than the lookup that every deallocation of memory of this
// size would need.
constexpr size_t smallest = size_t{1} << 14;
// Limit on entries, which include weights that were seen once and are not packed.
constexpr size_t most_entries = 4096;

struct Entry {
  uintptr_t address;
  dnnl::memory::desc given, wanted;
  uint64_t contents;
  PackedWeight room;  // null: seen only once
};

class PackedWeights {
 public:
  PackedWeight find(const WantedWeight& weight, bool& keep) {
    PackedWeight unused;  // released after the lock
    const std::lock_guard lock(mutex_);
    const auto entry = entry_of(weight);
    if (entry == entries_.end()) {
      add(weight, unused);
      return nullptr;
    }
    entries_.splice(entries_.begin(), entries_, entry);
    if (entry->contents == weight.contents) {
      keep = !entry->room;
      return entry->room;
    }
    entry->contents = weight.contents;
    unused = take_room(*entry);
    return nullptr;
  }

  void keep(const WantedWeight& weight, PackedWeight room) {
    std::list<Entry> unused;
    const std::lock_guard lock(mutex_);
    const auto entry = entry_of(weight);
    // Another thread may have cached it, or the weight has changed or been freed.
    if (entry == entries_.end() || entry->contents != weight.contents || entry->room) return;
    bytes_ += size_of(*entry);
    entry->room = std::move(room);
    while (bytes_ > kept_bytes_allowed() && !entries_.empty()) drop(std::prev(entries_.end()), unused);
  }

  void forget(uintptr_t begin, uintptr_t end) {
    if (count_.load(std::memory_order_relaxed) == 0) return;
    std::list<Entry> unused;
    const std::lock_guard lock(mutex_);
    for (auto at = by_address_.lower_bound(begin); at != by_address_.end() && at->first < end;)
      drop((at++)->second, unused);
  }

  bool forget_all() {
    std::list<Entry> unused;
    const std::lock_guard lock(mutex_);
    const bool had = bytes_ > 0;
    while (!entries_.empty()) drop(entries_.begin(), unused);
    return had;
  }

  std::mutex& mutex() { return mutex_; }

 private:
  using Place = std::list<Entry>::iterator;

  static int64_t size_of(const Entry& entry) { return static_cast<int64_t>(entry.wanted.get_size()); }

  Place entry_of(const WantedWeight& weight) {
    const auto [begin, end] = by_address_.equal_range(reinterpret_cast<uintptr_t>(weight.data));
    for (auto at = begin; at != end; ++at)
      if (at->second->given == weight.given && at->second->wanted == weight.wanted) return at->second;
    return entries_.end();
  }

  void add(const WantedWeight& weight, PackedWeight& unused) {
    if (entries_.size() >= most_entries) {
      std::list<Entry> last;
      drop(std::prev(entries_.end()), last);
      unused = std::move(last.front().room);
    }
    const auto address = reinterpret_cast<uintptr_t>(weight.data);
    entries_.push_front({address, weight.given, weight.wanted, weight.contents, nullptr});
    by_address_.emplace(address, entries_.begin());
    count_.store(entries_.size(), std::memory_order_relaxed);
  }

  PackedWeight take_room(Entry& entry) {
    if (entry.room) bytes_ -= size_of(entry);
    return std::exchange(entry.room, nullptr);
  }

  void drop(Place entry, std::list<Entry>& unused) {
    if (entry->room) bytes_ -= size_of(*entry);
    const auto [begin, end] = by_address_.equal_range(entry->address);
    by_address_.erase(std::find_if(begin, end, [&](const auto& each) { return each.second == entry; }));
    unused.splice(unused.begin(), entries_, entry);
    count_.store(entries_.size(), std::memory_order_relaxed);
  }

  std::mutex mutex_;
  std::list<Entry> entries_;  // most recently used first
  std::multimap<uintptr_t, Place> by_address_;
  int64_t bytes_ = 0;
  std::atomic<size_t> count_{0};
};

// Never destroyed: tensors may be freed during process exit.
PackedWeights& kept() {
  static PackedWeights* const instance =
      std::construct_at(static_cast<PackedWeights*>(std::malloc(sizeof(PackedWeights))));
  return *instance;
}

}  // namespace

int64_t kept_bytes_allowed() {
  static const int64_t bytes = bytes_from_environment("CANDELABRA_CPU_PACKED_WEIGHTS", physical_memory() / 8);
  return bytes;
}

PackedWeight find_packed_weight(const WantedWeight& weight, bool& keep) {
  keep = false;
  if (weight.given.get_size() < smallest || kept_bytes_allowed() <= 0) return nullptr;
  return kept().find(weight, keep);
}

PackedWeight room_for_weight(size_t bytes) {
  if (static_cast<int64_t>(bytes) > kept_bytes_allowed()) return nullptr;
  try {
    return std::make_shared<Scratch<char>>(static_cast<int64_t>(bytes));
  } catch (const Failure& failure) {
    if (failure.status() != CB_OUT_OF_MEMORY) throw;
    return nullptr;  // the caller retries with less
  }
}

void cache_packed_weight(const WantedWeight& weight, PackedWeight room) {
  kept().keep(weight, std::move(room));
}

void drop_packed_weights(const void* memory, size_t bytes) noexcept {
  if (bytes < smallest) return;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  kept().forget(begin, begin + bytes);
}

bool drop_all_packed_weights() noexcept {
  return kept().forget_all();
}

void packed_weights_before_fork() {
  kept().mutex().lock();
}
void packed_weights_after_fork() {
  kept().mutex().unlock();
}

}  // namespace candelabra::cpu
