#include "memory/allocator.hpp"

#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#include "kernels.hpp"
#include "vendor/packed_weights.hpp"

namespace candelabra::cpu {
namespace {

// Blocks are rounded up to a size class: multiples of 64 bytes up to 1 KiB, then eight classes per
// power of two.
constexpr int class_count = 16 + 8 * 38;
constexpr size_t largest_block = size_t{1} << 47;
// Each thread keeps a few free blocks of every class up to 32 KiB in its magazine and takes them
// without a lock.
constexpr int magazine_classes = 16 + 8 * 5;
constexpr int magazine_capacity = 16;
// Blocks of at least this size are anonymous mappings, with huge pages from 2 MiB on. Smaller ones
// come from malloc.
constexpr size_t mapping_threshold = size_t{1} << 20;
constexpr size_t huge_page = size_t{1} << 21;

struct SizeClass {
  int index;
  size_t bytes;
};

inline SizeClass size_class(size_t bytes) {
  if (bytes <= 1024) {
    size_t units = bytes ? (bytes + 63) / 64 : 1;
    return {static_cast<int>(units - 1), units * 64};
  }
  int power = std::bit_width(bytes - 1) - 1;
  size_t step = size_t{1} << (power - 3);
  size_t eighth = (bytes - 1) >> (power - 3);  // 8…15
  return {16 + (power - 10) * 8 + static_cast<int>(eighth - 8), (eighth + 1) * step};
}

// Header of a free block, in its first bytes.
struct FreeBlock {
  FreeBlock* next;
};

struct ClassList {
  FreeBlock* head = nullptr;
  uint64_t last_use = 0;
};

int64_t read_memory_limit(const char* path) {
  std::ifstream file(path);
  int64_t value = 0;
  return file >> value && value > 0 ? value : INT64_MAX;  // "max" is not a number
}

std::string readable(int64_t bytes) {
  char text[64];
  double value = static_cast<double>(bytes);
  const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  int unit = 0;
  while (value >= 1024 && unit < 6) value /= 1024, ++unit;
  std::snprintf(text, sizeof text, unit ? "%.2f %s" : "%.0f %s", value, units[unit]);
  return text;
}

int64_t swap_memory() {
  struct sysinfo information{};
  return sysinfo(&information) == 0 ? static_cast<int64_t>(information.totalswap) * information.mem_unit : 0;
}

void* system_allocate(size_t bytes) {
  if (bytes < mapping_threshold) return std::aligned_alloc(memory_alignment, bytes);
  size_t extra = bytes >= huge_page ? huge_page : 0;
  void* mapped = mmap(nullptr, bytes + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  if (!extra) return mapped;
  auto address = reinterpret_cast<uintptr_t>(mapped);
  uintptr_t aligned = (address + huge_page - 1) & ~(huge_page - 1);
  if (aligned != address) munmap(mapped, aligned - address);
  if (size_t rest = address + extra - aligned) munmap(reinterpret_cast<void*>(aligned + bytes), rest);
  // a hint: without huge pages the block still works
  madvise(reinterpret_cast<void*>(aligned), bytes, MADV_HUGEPAGE);
  return reinterpret_cast<void*>(aligned);
}

void system_free(void* memory, size_t bytes) {
  if (bytes < mapping_threshold)
    std::free(memory);
  else
    munmap(memory, bytes);
}

// With AddressSanitizer, accesses past the requested size are reported although the block is
// larger.
inline void* poison_tail(void* block, [[maybe_unused]] size_t asked, [[maybe_unused]] size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(block, asked);
  __asan_poison_memory_region(static_cast<char*>(block) + asked, bytes - asked);
#endif
  return block;
}

inline void unpoison([[maybe_unused]] void* block, [[maybe_unused]] size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(block, bytes);
#endif
}

struct Magazine;

class Cache {
 public:
  Cache() {
    bound_ = cached_bytes_allowed();
    refuse_above_ = physical_memory() + swap_memory();
  }

  // Upper bound on the bytes of free blocks kept: 1.25 times the peak allocation plus 64 MiB.
  // Without it, sizes that change from step to step would fill the cache up to its configured
  // limit.
  int64_t bound() const {
    int64_t most = std::max(past_peak.load(std::memory_order_relaxed), allocated_peak.load(std::memory_order_relaxed));
    return std::min(bound_, most + most / 4 + (int64_t{1} << 26));
  }
  void note_past_peak() {
    past_peak.store(std::max(past_peak.load(), allocated_peak.load()), std::memory_order_relaxed);
  }

  void* take(SizeClass wanted, bool& hit) {
    {
      std::lock_guard lock(mutex_);
      void* block = pop(wanted);
      if (!block && wanted.bytes >= mapping_threshold) block = pop_larger(wanted);
      if (block) {
        hit = true;
        return block;
      }
    }
    // When memory is short, a new block is worth more than cached blocks of other sizes.
    if (wanted.bytes >= 32 * huge_page && available_memory() < static_cast<int64_t>(wanted.bytes)) release_all();
    void* block = system_allocate(wanted.bytes);
    if (!block) {
      empty_cache();
      block = system_allocate(wanted.bytes);
    }
    if (!block) return nullptr;
    note_reserved(static_cast<int64_t>(wanted.bytes));
    return block;
  }

  void put(void* memory, SizeClass size) {
    int64_t most = bound();
    std::unique_lock lock(mutex_);
    if (size.bytes >= mapping_threshold) size = true_size(memory, size);
    if (static_cast<int64_t>(size.bytes) > most) {
      lock.unlock();
      return release(memory, size.bytes);
    }
    while (cached_ + static_cast<int64_t>(size.bytes) > most && evict_oldest()) {
    }
    push(memory, size);
  }

  // Returns several blocks of one class, for magazines.
  void put_all(void** blocks, int count, SizeClass size) {
    for (int i = 0; i < count; ++i) put(blocks[i], size);
  }

  void release_all() {
    std::lock_guard lock(mutex_);
    while (evict_oldest()) {
    }
  }

  void release(void* memory, size_t bytes) {
    system_free(memory, bytes);
    reserved.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  }

  int64_t refuse_above() const { return refuse_above_; }
  std::mutex& mutex() { return mutex_; }

  std::atomic<int64_t> allocated{0}, allocated_peak{0}, reserved{0}, reserved_peak{0};
  std::atomic<int64_t> past_peak{0};  // the highest allocated_peak before a reset
  std::atomic<int64_t> limit{-1};
  std::atomic<int64_t> slow_calls{0}, slow_hits{0};
  Magazine* magazines = nullptr;  // of live threads, guarded by mutex()
  int64_t past_calls = 0;         // allocations by threads that have ended

 private:
  void push(void* memory, SizeClass size) {
    auto* block = static_cast<FreeBlock*>(memory);
    ClassList& list = lists_[size.index];
    block->next = list.head;
    list.head = block;
    list.last_use = ++clock_;
    cached_ += static_cast<int64_t>(size.bytes);
  }

  void* pop(SizeClass size) {
    ClassList& list = lists_[size.index];
    FreeBlock* block = list.head;
    if (!block) return nullptr;
    list.head = block->next;
    list.last_use = ++clock_;
    cached_ -= static_cast<int64_t>(size.bytes);
    return block;
  }

  // Takes a free block of one of the next larger classes, so that idle memory of one size serves
  // requests for another.
  void* pop_larger(SizeClass wanted) {
    constexpr int classes_above = 4;  // at most half as large again
    for (int i = wanted.index + 1; i <= std::min(wanted.index + classes_above, class_count - 1); ++i)
      if (lists_[i].head) {
        larger_.emplace(lists_[i].head, i);
        return pop({i, bytes_of_class(i)});
      }
    return nullptr;
  }
  // The class of a block before pop_larger() handed it out as a smaller one.
  SizeClass true_size(void* memory, SizeClass size) {
    const auto found = larger_.find(memory);
    if (found == larger_.end()) return size;
    size = {found->second, bytes_of_class(found->second)};
    larger_.erase(found);
    return size;
  }

  bool evict_oldest() {
    int oldest = -1;
    for (int i = 0; i < class_count; ++i)
      if (lists_[i].head && (oldest < 0 || lists_[i].last_use < lists_[oldest].last_use)) oldest = i;
    if (oldest < 0) return false;
    size_t bytes = bytes_of_class(oldest);
    void* block = lists_[oldest].head;
    lists_[oldest].head = lists_[oldest].head->next;
    cached_ -= static_cast<int64_t>(bytes);
    release(block, bytes);
    return true;
  }

  static size_t bytes_of_class(int index) {
    if (index < 16) return static_cast<size_t>(index + 1) * 64;
    int power = 10 + (index - 16) / 8;
    return static_cast<size_t>((index - 16) % 8 + 9) << (power - 3);
  }

  void note_reserved(int64_t bytes) {
    int64_t now = reserved.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    int64_t peak = reserved_peak.load(std::memory_order_relaxed);
    while (now > peak && !reserved_peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
  }

  std::mutex mutex_;
  std::array<ClassList, class_count> lists_{};
  std::unordered_map<void*, int> larger_;  // class of each block that pop_larger() handed out
  int64_t cached_ = 0;
  uint64_t clock_ = 0;
  int64_t bound_;
  int64_t refuse_above_;
};

// Never destroyed: tensors may be freed during process exit.
Cache& cache() {
  static Cache* const instance = std::construct_at(static_cast<Cache*>(std::malloc(sizeof(Cache))));
  return *instance;
}

// Free blocks owned by one thread.
struct Magazine {
  void* blocks[magazine_classes][magazine_capacity];
  uint8_t counts[magazine_classes] = {};
  // allocations served, all of them cache hits; written by this thread only
  std::atomic<int64_t> calls{0};
  Magazine* next = nullptr;
  Magazine** link = nullptr;

  Magazine();
  ~Magazine();
  void flush();
};

enum class MagazineState : uint8_t { Unborn, Alive, Dead };
thread_local MagazineState magazine_state = MagazineState::Unborn;
thread_local Magazine* current_magazine = nullptr;

Magazine::Magazine() {
  std::lock_guard lock(cache().mutex());
  next = cache().magazines;
  link = &cache().magazines;
  if (next) next->link = &next;
  cache().magazines = this;
}

Magazine::~Magazine() {
  magazine_state = MagazineState::Dead;
  current_magazine = nullptr;
  flush();
  std::lock_guard lock(cache().mutex());
  *link = next;
  if (next) next->link = link;
  cache().past_calls += calls.load(std::memory_order_relaxed);
}

void Magazine::flush() {
  for (int i = 0; i < magazine_classes; ++i) {
    if (!counts[i]) continue;
    SizeClass size{
        i, i < 16 ? static_cast<size_t>(i + 1) * 64 : static_cast<size_t>((i - 16) % 8 + 9) << (7 + (i - 16) / 8)};
    cache().put_all(blocks[i], counts[i], size);
    counts[i] = 0;
  }
}

// Null while the thread ends, and when less than 16 MiB may be cached.
[[gnu::noinline]] Magazine* make_magazine() {
  if (magazine_state == MagazineState::Dead || cache().bound() < (int64_t{1} << 24)) return nullptr;
  thread_local Magazine magazine;
  magazine_state = MagazineState::Alive;
  return current_magazine = &magazine;
}

inline Magazine* magazine() {
  Magazine* mine = current_magazine;
  return mine ? mine : make_magazine();
}

[[noreturn, gnu::cold]] void out_of_memory(size_t bytes) {
  Cache& all = cache();
  int64_t limit = all.limit.load();
  std::string text = "DefaultCPUAllocator: can't allocate memory: you tried to allocate " + std::to_string(bytes) +
                     " bytes (" + readable(static_cast<int64_t>(bytes & INT64_MAX)) + "). " +
                     readable(all.allocated.load()) + " are in use by tensors, " + readable(available_memory()) +
                     " of " + readable(physical_memory()) + " of this machine's memory are available";
  if (limit >= 0) text += ", and the limit for this process is " + readable(limit);
  throw Failure(CB_OUT_OF_MEMORY, text + ".");
}

inline bool count_allocated(Cache& all, int64_t bytes) {
  int64_t now = all.allocated.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t limit = all.limit.load(std::memory_order_relaxed);
  if (limit >= 0 && now > limit) [[unlikely]] {
    all.allocated.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  int64_t peak = all.allocated_peak.load(std::memory_order_relaxed);
  while (now > peak && !all.allocated_peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  return true;
}

[[gnu::noinline]] void* allocate_slow_path(size_t bytes, SizeClass size) {
  Cache& all = cache();
  all.slow_calls.fetch_add(1, std::memory_order_relaxed);
  bool hit = false;
  void* block = all.take(size, hit);
  if (!block && drop_all_packed_weights()) block = all.take(size, hit);
  if (!block) {
    all.allocated.fetch_sub(static_cast<int64_t>(size.bytes), std::memory_order_relaxed);
    out_of_memory(bytes);
  }
  if (hit) all.slow_hits.fetch_add(1, std::memory_order_relaxed);
  return block;
}

}  // namespace

void* allocate(size_t bytes) {
  Cache& all = cache();
  if (bytes > largest_block || (bytes >= mapping_threshold && static_cast<int64_t>(bytes) > all.refuse_above()))
    out_of_memory(bytes);
  SizeClass size = size_class(bytes);
  const auto counted = [&] { return count_allocated(all, static_cast<int64_t>(size.bytes)); };
  if (!counted() && !(drop_all_packed_weights() && counted())) out_of_memory(bytes);
  if (size.index < magazine_classes) {
    Magazine* mine = magazine();
    if (mine && mine->counts[size.index]) {
      mine->calls.store(mine->calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return poison_tail(mine->blocks[size.index][--mine->counts[size.index]], bytes, size.bytes);
    }
  }
  return poison_tail(allocate_slow_path(bytes, size), bytes, size.bytes);
}

void deallocate(void* memory, size_t bytes) noexcept {
  if (!memory) return;
  Cache& all = cache();
  SizeClass size = size_class(bytes);
  unpoison(memory, size.bytes);
  all.allocated.fetch_sub(static_cast<int64_t>(size.bytes), std::memory_order_relaxed);
  if (size.index < magazine_classes) {
    if (Magazine* mine = magazine()) {
      uint8_t& count = mine->counts[size.index];
      if (count == magazine_capacity) {  // keep half: the next burst may allocate or free
        all.put_all(mine->blocks[size.index] + magazine_capacity / 2, magazine_capacity / 2, size);
        count = magazine_capacity / 2;
      }
      mine->blocks[size.index][count++] = memory;
      return;
    }
  }
  all.put(memory, size);
}

void empty_cache() noexcept {
  if (Magazine* mine = current_magazine) mine->flush();
  cache().release_all();
}

void memory_statistics(cb_memory_statistics& result) {
  Cache& all = cache();
  int64_t fast = 0;
  {
    std::lock_guard lock(all.mutex());
    fast = all.past_calls;
    for (Magazine* each = all.magazines; each; each = each->next) fast += each->calls.load(std::memory_order_relaxed);
  }
  result.allocated = all.allocated.load();
  result.allocated_peak = all.allocated_peak.load();
  result.reserved = all.reserved.load();
  result.reserved_peak = all.reserved_peak.load();
  result.allocation_count = fast + all.slow_calls.load();
  result.cache_hit_count = fast + all.slow_hits.load();
}

void reset_peak_statistics() {
  cache().note_past_peak();
  cache().allocated_peak = cache().allocated.load();
  cache().reserved_peak = cache().reserved.load();
}

void set_memory_limit(int64_t bytes) {
  cache().limit = bytes;
}

int64_t bytes_from_environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  if (!text) return otherwise;
  const std::string_view digits = text;
  int64_t bytes = -1;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), bytes);
  if (error != std::errc() || end != digits.end() || bytes < 0)
    throw failure(CB_VALUE_ERROR,
                  "the environment variable %s must be a number of bytes, such as 1073741824, but is \"%s\"", name,
                  text);
  return bytes;
}

int64_t cached_bytes_allowed() {
  static const int64_t bytes = bytes_from_environment("CANDELABRA_CPU_CACHE_BYTES", physical_memory() / 4);
  return bytes;
}

// Of the machine, or of its container (cgroup v1 or v2).
int64_t physical_memory() {
  static const int64_t value = [] {
    struct sysinfo information{};
    int64_t total =
        sysinfo(&information) == 0 ? static_cast<int64_t>(information.totalram) * information.mem_unit : INT64_MAX / 4;
    total = std::min(total, read_memory_limit("/sys/fs/cgroup/memory.max"));
    return std::min(total, read_memory_limit("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
  }();
  return value;
}

int64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  int64_t kibibytes = 0;
  while (file >> word)
    if (word == "MemAvailable:" && file >> kibibytes) return std::min(kibibytes * 1024, physical_memory());
  return 0;
}

void allocator_before_fork() {
  cache().mutex().lock();
}
void allocator_after_fork() {
  cache().mutex().unlock();
}

}  // namespace candelabra::cpu
