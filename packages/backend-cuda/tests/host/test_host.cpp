// Tests that need no GPU: the allocator over a fake device, and index arithmetic.
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <thread>

#include "drivers/iterate.hpp"
#include "fake_source.hpp"

using namespace candelabra::cuda;
namespace half_bits = candelabra::half_bits;

namespace {

int failures = 0;

void expect(bool truth, const char* text, int line) {
  if (truth) return;
  std::printf("line %d: %s\n", line, text);
  ++failures;
}
#define EXPECT(condition) expect(condition, #condition, __LINE__)

constexpr size_t MiB = size_t{1} << 20;
StreamId stream(uintptr_t number) {
  return reinterpret_cast<StreamId>(number);
}

struct Fixture {
  FakeSource* source;
  Allocator allocator;
  explicit Fixture(AllocatorOptions options = {}, int64_t capacity = int64_t{1} << 30, size_t page = 0)
      : source(new FakeSource), allocator(0, std::unique_ptr<MemorySource>(source), options) {
    source->capacity = capacity;
    source->page = page;
  }
};

void small_blocks_share_a_segment() {
  Fixture f;
  void* a = f.allocator.allocate(100, nullptr);
  void* b = f.allocator.allocate(1000, nullptr);
  EXPECT(f.source->allocations == 1);
  EXPECT(static_cast<char*>(b) - static_cast<char*>(a) == 512);
  EXPECT(f.allocator.details().allocated.current == 512 + 1024);
  EXPECT(f.allocator.details().requested.current == 1100);
  EXPECT(f.allocator.details().reserved.current == static_cast<int64_t>(2 * MiB));
  f.allocator.deallocate(a);
  void* c = f.allocator.allocate(512, nullptr);
  EXPECT(c == a);  // the best fit
  f.allocator.deallocate(b);
  f.allocator.deallocate(c);
  EXPECT(f.allocator.details().allocated.current == 0);
  EXPECT(f.allocator.details().inactive_split.current == 0);  // merged to a whole segment
  EXPECT(f.allocator.details().inactive_split_blocks.current == 0);
  f.allocator.empty_cache();
  EXPECT(f.source->used == 0 && f.source->frees == 1);
  EXPECT(f.allocator.details().segments.current == 0);
}

void large_blocks() {
  Fixture f;
  void* a = f.allocator.allocate(2 * MiB, nullptr);
  EXPECT(f.source->used == static_cast<int64_t>(20 * MiB));
  void* b = f.allocator.allocate(11 * MiB, nullptr);
  EXPECT(f.source->used == static_cast<int64_t>(20 * MiB));  // from the rest of the first
  void* c = f.allocator.allocate(50 * MiB + 1, nullptr);
  EXPECT(f.source->used == static_cast<int64_t>(72 * MiB));
  f.allocator.deallocate(c);
  void* d = f.allocator.allocate(30 * MiB, nullptr);  // cut from c's segment
  EXPECT(d == c && f.source->allocations == 2);
  f.allocator.deallocate(d);
  f.allocator.deallocate(a);
  f.allocator.deallocate(b);
  EXPECT(f.allocator.details().inactive_split.current == 0);
}

void streams_do_not_share() {
  Fixture f;
  void* a = f.allocator.allocate(4096, stream(1));
  f.allocator.deallocate(a);
  void* b = f.allocator.allocate(4096, stream(2));
  EXPECT(a != b);
  void* c = f.allocator.allocate(4096, stream(1));
  EXPECT(a == c);
}

void recorded_streams_are_waited_for() {
  Fixture f;
  void* a = f.allocator.allocate(4096, stream(1));
  f.source->queued[stream(2)] = 5;
  f.allocator.record_stream(a, stream(2));
  f.allocator.record_stream(a, stream(2));
  f.allocator.record_stream(a, stream(1));  // the segment's own stream: nothing to wait for
  f.allocator.deallocate(a);
  EXPECT(f.source->events.size() == 1);
  EXPECT(f.allocator.details().active.current == 4096 && f.allocator.details().allocated.current == 0);
  void* b = f.allocator.allocate(4096, stream(1));
  EXPECT(b != a);
  f.source->finished[stream(2)] = 5;
  void* c = f.allocator.allocate(4096, stream(1));
  EXPECT(c == a);
  EXPECT(f.source->events.empty());
}

void frees_the_cache_before_it_fails() {
  Fixture f({}, static_cast<int64_t>(100 * MiB));
  void* a = f.allocator.allocate(60 * MiB, stream(1));
  f.allocator.deallocate(a);
  void* b = f.allocator.allocate(80 * MiB, stream(2));  // only after stream 1's memory was freed
  EXPECT(b != nullptr && f.source->frees == 1);
  EXPECT(f.allocator.details().retry_count == 1 && f.allocator.details().failure_count == 0);
  bool failed = false;
  try {
    f.allocator.allocate(40 * MiB, nullptr);
  } catch (const Failure& error) {
    failed = error.status() == CB_OUT_OF_MEMORY && std::strstr(error.what(), "Tried to allocate 40.00 MiB") &&
             std::strstr(error.what(), "80.00 MiB is allocated by Candelabra");
  }
  EXPECT(failed);
  EXPECT(f.allocator.details().failure_count == 1);
  f.allocator.deallocate(b);
  void* c = f.allocator.allocate(40 * MiB, nullptr);  // usable after a failure
  EXPECT(c != nullptr);
}

void waits_for_streams_before_it_fails() {
  Fixture f({}, static_cast<int64_t>(100 * MiB));
  void* a = f.allocator.allocate(60 * MiB, nullptr);
  f.source->queued[stream(3)] = 1;
  f.allocator.record_stream(a, stream(3));
  f.allocator.deallocate(a);
  void* b = f.allocator.allocate(60 * MiB, nullptr);
  EXPECT(b == a && f.allocator.details().sync_count == 1);
}

void limits() {
  Fixture f;
  f.allocator.set_limit(static_cast<int64_t>(30 * MiB));
  void* a = f.allocator.allocate(20 * MiB, nullptr);
  bool failed = false;
  try {
    f.allocator.allocate(20 * MiB, nullptr);
  } catch (const Failure& error) {
    failed = std::strstr(error.what(), "may use 30.00 MiB") != nullptr;
  }
  EXPECT(failed);
  f.allocator.set_limit(-1);
  EXPECT(f.allocator.allocate(20 * MiB, nullptr) != a);
}

void splitting_can_be_bounded() {
  AllocatorOptions options = AllocatorOptions::parse("max_split_size_mb:32");
  Fixture f(options);
  void* a = f.allocator.allocate(100 * MiB, nullptr);
  f.allocator.deallocate(a);
  void* b = f.allocator.allocate(20 * MiB, nullptr);  // not from the large one
  EXPECT(a != b);
  void* c = f.allocator.allocate(99 * MiB, nullptr);  // whole, with little lost
  EXPECT(c == a && f.allocator.details().inactive_split.current == 0);
}

void garbage_is_collected() {
  Fixture f(AllocatorOptions::parse("garbage_collection_threshold:0.5"), static_cast<int64_t>(100 * MiB));
  void* a = f.allocator.allocate(40 * MiB, stream(1));
  f.allocator.deallocate(a);
  f.allocator.allocate(20 * MiB, stream(2));  // would exceed half of the limit
  EXPECT(f.source->frees == 1 && f.allocator.details().retry_count == 0);
}

void expandable_segments() {
  Fixture f(AllocatorOptions::parse("expandable_segments:True"), static_cast<int64_t>(256 * MiB), 2 * MiB);
  auto* a = static_cast<char*>(f.allocator.allocate(10 * MiB, nullptr));
  auto* b = static_cast<char*>(f.allocator.allocate(10 * MiB, nullptr));
  EXPECT(b == a + 10 * MiB && f.source->ranges.size() == 1);
  f.allocator.deallocate(a);
  f.allocator.deallocate(b);
  void* c = f.allocator.allocate(40 * MiB, nullptr);  // the same addresses, more memory behind them
  EXPECT(c == a && f.source->used == static_cast<int64_t>(40 * MiB));
  auto* d = static_cast<char*>(f.allocator.allocate(3 * MiB, nullptr));
  EXPECT(d == a + 40 * MiB);
  f.allocator.deallocate(d);
  f.allocator.empty_cache();
  // The memory behind the last used block was freed
  EXPECT(f.source->used == static_cast<int64_t>(40 * MiB));
  EXPECT(f.source->pages.size() == 20);
  f.allocator.deallocate(c);
  f.allocator.empty_cache();
  EXPECT(f.source->used == 0 && f.source->ranges.empty() && f.source->pages.empty());
  EXPECT(f.allocator.details().reserved.current == 0 && f.allocator.details().inactive_split.current == 0);
}

void pools_of_graphs() {
  Fixture f;
  void* pool = f.allocator.create_pool();
  f.allocator.begin_pool(pool, stream(1));
  f.source->captured.insert(stream(1));
  void* a = f.allocator.allocate(4096, stream(1));
  f.source->queued[stream(2)] = 1;
  f.allocator.record_stream(a, stream(2));
  f.allocator.deallocate(a);  // its events stay pending until the capture ends
  EXPECT(f.source->events.empty());
  void* b = f.allocator.allocate(4096, stream(1));
  EXPECT(b != a);
  f.allocator.deallocate(b);
  f.source->captured.clear();
  f.allocator.end_pool(pool);
  void* c = f.allocator.allocate(4096, stream(1));
  EXPECT(c != a && c != b);  // the pool's memory is its own
  EXPECT(f.source->allocations == 2);
  f.allocator.empty_cache();
  EXPECT(f.source->frees == 0);
  f.source->finished[stream(2)] = 1;
  f.allocator.retain_pool(pool);
  f.allocator.release_pool(pool);
  f.allocator.empty_cache();
  EXPECT(f.source->frees == 0);
  f.allocator.release_pool(pool);
  f.allocator.empty_cache();
  EXPECT(f.source->frees == 1);
  bool refused = false;
  try {
    f.allocator.release_pool(pool);
  } catch (const Failure&) {
    refused = true;
  }
  EXPECT(refused);
}

void pools_of_threads() {
  Fixture f;
  void *outer = f.allocator.create_pool(), *inner = f.allocator.create_pool();
  f.allocator.begin_pool_of_thread(outer);
  void* a = f.allocator.allocate(4096, nullptr);
  f.allocator.begin_pool_of_thread(inner);
  void* b = f.allocator.allocate(4096, stream(1));
  void* elsewhere = nullptr;
  std::thread([&] { elsewhere = f.allocator.allocate(4096, nullptr); }).join();
  EXPECT(f.source->allocations == 3);  // two pools, and the ordinary one for another thread
  f.allocator.end_pool_of_thread(inner);
  f.allocator.deallocate(a);
  EXPECT(f.allocator.allocate(4096, nullptr) == a);
  f.allocator.end_pool_of_thread(outer);
  EXPECT(f.source->allocations == 3);
  void* after = f.allocator.allocate(4096, nullptr);
  // Like the other thread's, in the default pool
  EXPECT(after != a && after != b && f.source->allocations == 3);
  for (void* memory : {a, b, elsewhere, after}) f.allocator.deallocate(memory);
  f.allocator.empty_cache();
  EXPECT(f.source->frees == 1);
  f.allocator.release_pool(outer);
  f.allocator.release_pool(inner);
  EXPECT(f.source->frees == 3 && f.source->used == 0);
  bool refused = false;
  try {
    f.allocator.end_pool_of_thread(outer);
  } catch (const Failure&) {
    refused = true;
  }
  EXPECT(refused);
}

void caching_can_be_switched() {
  Fixture f;
  void* a = f.allocator.allocate(4096, nullptr);
  f.allocator.deallocate(a);
  f.allocator.set_caching(false);
  void* b = f.allocator.allocate(4096, nullptr);
  EXPECT(b != a && f.source->allocations == 2);
  f.allocator.set_caching(true);
  void* c = f.allocator.allocate(4096, nullptr);
  EXPECT(c == a);
  f.allocator.deallocate(b);
  EXPECT(f.source->frees == 1);  // freed immediately, although caching is on again
  f.allocator.set_caching(false);
  f.allocator.deallocate(c);
  EXPECT(f.source->frees == 1);  // blocks of a shared segment are not freed
  f.allocator.empty_cache();
  EXPECT(f.source->used == 0 && f.allocator.details().reserved.current == 0);
}

void options_are_checked() {
  for (const char* text : {"max_split_size_mb:1", "nonsense:3", "garbage_collection_threshold:2",
                           "expandable_segments:maybe", "roundup_power2_divisions:3"}) {
    bool refused = false;
    try {
      AllocatorOptions::parse(text);
    } catch (const Failure& error) {
      refused = error.status() == CB_VALUE_ERROR && std::strstr(error.what(), text);
    }
    expect(refused, text, __LINE__);
  }
  Fixture f(AllocatorOptions::parse("roundup_power2_divisions:4"));
  f.allocator.allocate(1200, nullptr);
  EXPECT(f.allocator.details().allocated.current == 1536);
}

void blocks_of_their_own_without_caching() {
  Fixture f(AllocatorOptions::parse("caching:False"));
  void* a = f.allocator.allocate(100, nullptr);
  void* b = f.allocator.allocate(0, nullptr);
  EXPECT(f.source->allocations == 2 && f.source->used == 112 + 16);
  f.allocator.record_stream(a, stream(1));
  f.source->queued[stream(1)] = 1;
  f.allocator.deallocate(a);
  f.allocator.deallocate(b);
  EXPECT(f.source->frees == 1);  // the other stream may still use it
  f.source->finished[stream(1)] = 1;
  void* c = f.allocator.allocate(100, nullptr);
  EXPECT(f.source->frees == 2);
  f.allocator.deallocate(c);
  EXPECT(f.source->used == 0 && f.allocator.details().reserved.current == 0 &&
         f.allocator.details().active.current == 0);
}

// Blocks of random sizes on several streams: blocks in use never overlap, the statistics agree, and
// in the end all memory is freed.
void random_use(bool expandable) {
  AllocatorOptions options;
  options.expandable_segments = expandable;
  Fixture f(options, static_cast<int64_t>(400 * MiB), expandable ? 2 * MiB : 0);
  std::mt19937_64 random(7);
  struct Held {
    char* at;
    size_t bytes;
  };
  std::vector<Held> held;
  for (int step = 0; step < 20000; ++step) {
    if (random() % 3 != 0 || held.empty()) {
      const size_t bytes = size_t{1} << (random() % 24);
      const size_t wanted = bytes + random() % bytes;
      try {
        auto* at = static_cast<char*>(f.allocator.allocate(wanted, stream(random() % 3)));
        held.push_back({at, wanted});
        if (random() % 8 == 0) {
          const StreamId other = stream(random() % 3);
          ++f.source->queued[other];
          f.allocator.record_stream(at, other);
        }
      } catch (const Failure&) {
        for (size_t i = 0; i < held.size(); ++i) f.allocator.deallocate(held[i].at);
        held.clear();
      }
    } else {
      const size_t i = random() % held.size();
      f.allocator.deallocate(held[i].at);
      held[i] = held.back();
      held.pop_back();
    }
    if (random() % 5 == 0) f.source->finished[stream(random() % 3)] = 1 << 30;
    if (step % 500 == 0) {
      struct Sums {
        int64_t allocated = 0, pending = 0, free = 0;
        uint64_t end = 0;
        bool apart = true;
      } sums;
      f.allocator.snapshot(
          [](void* context, const cb_memory_block* block) {
            auto& s = *static_cast<Sums*>(context);
            s.apart &= block->address >= s.end && block->address % 512 == 0;
            s.end = block->address + block->bytes;
            (block->state == CB_BLOCK_ALLOCATED ? s.allocated
             : block->state == CB_BLOCK_PENDING ? s.pending
                                                : s.free) += static_cast<int64_t>(block->bytes);
          },
          &sums);
      const cb_memory_details details = f.allocator.details();
      EXPECT(sums.apart);
      EXPECT(sums.allocated == details.allocated.current);
      EXPECT(sums.allocated + sums.pending == details.active.current);
      EXPECT(sums.allocated + sums.pending + sums.free == details.reserved.current);
      EXPECT(details.reserved.current == f.source->used);
      EXPECT(details.active_blocks.current >= details.allocations.current);
    }
  }
  for (const Held& each : held) f.allocator.deallocate(each.at);
  f.allocator.empty_cache();
  EXPECT(f.source->used == 0 && f.source->events.empty());
  EXPECT(f.allocator.details().inactive_split.current == 0 && f.allocator.details().inactive_split_blocks.current == 0);
}

// ---- indices

void division() {
  std::mt19937 random(3);
  for (int64_t divisor :
       {1, 2, 3, 5, 7, 10, 31, 32, 33, 641, 65535, 65536, 65537, 1000000007, 2147483646, 2147483647}) {
    const Divider divider(divisor);
    for (int i = 0; i < 2000; ++i) {
      const uint32_t n =
          i < 100 ? static_cast<uint32_t>(divisor) * static_cast<uint32_t>(i) % 0x7fffffffu : random() % 0x80000000u;
      if (divider.quotient(n) != n / static_cast<uint32_t>(divisor)) return expect(false, "division", __LINE__);
    }
    EXPECT(divider.quotient(0x7fffffffu) == 0x7fffffffu / static_cast<uint32_t>(divisor));
  }
}

cb_tensor descriptor(const int64_t* sizes, const int64_t* strides, int64_t numel, int ndim) {
  cb_tensor tensor{};
  tensor.sizes = sizes;
  tensor.strides = strides;
  tensor.numel = numel;
  tensor.ndim = ndim;
  tensor.dtype = CB_FLOAT32;
  return tensor;
}

// Every element of random strided operands is visited once, at the right offset of each operand.
void pieces_cover_everything() {
  std::mt19937_64 random(11);
  for (int round = 0; round < 300; ++round) {
    const int ndim = static_cast<int>(random() % 11);
    std::vector<int64_t> sizes, a_strides(static_cast<size_t>(ndim)), b_strides(static_cast<size_t>(ndim));
    int64_t numel = 1;
    for (int d = 0; d < ndim; ++d) {
      sizes.push_back(static_cast<int64_t>(random() % 3 + (ndim < 5 ? 1 : 1)));
      numel *= sizes.back();
    }
    std::vector<size_t> order(static_cast<size_t>(ndim));
    for (size_t d = 0; d < order.size(); ++d) order[d] = d;
    std::shuffle(order.begin(), order.end(), random);
    int64_t stride = 1;
    for (size_t d : order) {
      a_strides[d] = stride;
      stride *= sizes[d] + static_cast<int64_t>(random() % 2);
      b_strides[d] = random() % 3 == 0 ? 0 : static_cast<int64_t>(random() % 50);
    }
    const cb_tensor a = descriptor(sizes.data(), a_strides.data(), numel, ndim);
    const cb_tensor b = descriptor(sizes.data(), b_strides.data(), numel, ndim);
    std::map<int64_t, int64_t> wanted, found;
    std::vector<int64_t> index(static_cast<size_t>(ndim));
    for (int64_t i = 0; i < numel; ++i) {
      int64_t rest = i, at_a = 0, at_b = 0;
      for (int d = ndim - 1; d >= 0; --d) {
        const auto u = static_cast<size_t>(d);
        at_a += rest % sizes[u] * a_strides[u];
        at_b += rest % sizes[u] * b_strides[u];
        rest /= sizes[u];
      }
      wanted[at_a] = at_b;
    }
    for_each_piece(geometry<2>({&a, &b}), [&](const Geometry<2>& piece, const std::array<int64_t, 2>& offsets) {
      const Indexer<2> indexer(piece);
      for (uint32_t i = 0; i < indexer.count; ++i) {
        uint32_t at[2], rolled[2];
        indexer.at(i, at);
        indexer.at_rolled(i, rolled);
        EXPECT(at[0] == rolled[0] && at[1] == rolled[1]);
        found[offsets[0] + at[0]] = offsets[1] + at[1];
      }
    });
    EXPECT(wanted == found);
  }
}

void pieces_fit_31_bits() {
  const int64_t sizes[] = {70000, 70000}, rows[] = {70000, 1}, columns[] = {1, 70000};
  const cb_tensor a = descriptor(sizes, rows, 70000ll * 70000, 2);
  const cb_tensor b = descriptor(sizes, columns, 70000ll * 70000, 2);
  int64_t numel = 0;
  int count = 0;
  for_each_piece(geometry<2>({&a, &b}), [&](const Geometry<2>& piece, const std::array<int64_t, 2>& offsets) {
    int64_t extent[2] = {0, 0};
    for (int k = 0; k < 2; ++k)
      for (int d = 0; d < piece.ndim; ++d) extent[k] += (piece.sizes[d] - 1) * piece.strides[k][d];
    EXPECT(extent[0] < (int64_t{1} << 31) && extent[1] < (int64_t{1} << 31) && piece.numel < (int64_t{1} << 31));
    EXPECT(offsets[0] >= 0 && offsets[0] + extent[0] < a.numel);
    numel += piece.numel;
    ++count;
  });
  EXPECT(numel == a.numel);
  EXPECT(count <= 64);
}

void half_precisions() {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto word = static_cast<uint16_t>(bits);
    const float value = half_bits::float16_to_float(word);
    if (value == value)
      EXPECT(half_bits::float16_from_double(value) == word);
    else
      EXPECT((half_bits::float16_from_double(value) & 0x7c00) == 0x7c00 &&
             (half_bits::float16_from_double(value) & 0x3ff) != 0);
  }
  EXPECT(half_bits::float16_from_double(65519.0) == 0x7bff && half_bits::float16_from_double(65520.0) == 0x7c00);
  EXPECT(half_bits::float16_from_double(0x1p-25) == 0 && half_bits::float16_from_double(0x1.8p-25) == 1);
  EXPECT(half_bits::float16_from_double(1.0 + 0x1p-11) == 0x3c00 &&
         half_bits::float16_from_double(1.0 + 0x1.8p-10) == 0x3c02);
}

void truncation() {
  // The processor decides conversions of numbers out of range; the compiler must not fold them.
  const volatile double large = 3e9, huge = 1e30, nan = NAN;
  EXPECT(truncated<int8_t>(300.0f) == 44 && truncated<uint8_t>(-1.5) == 255);
  EXPECT(truncated<int32_t>(+large) == INT32_MIN && truncated<int32_t>(+nan) == INT32_MIN &&
         truncated<int32_t>(-2147483648.0) == INT32_MIN);
  EXPECT(truncated<int64_t>(+huge) == INT64_MIN && truncated<uint64_t>(0x1p63) == uint64_t{1} << 63);
}

}  // namespace

int main() {
  small_blocks_share_a_segment();
  large_blocks();
  streams_do_not_share();
  recorded_streams_are_waited_for();
  frees_the_cache_before_it_fails();
  waits_for_streams_before_it_fails();
  limits();
  splitting_can_be_bounded();
  garbage_is_collected();
  expandable_segments();
  pools_of_graphs();
  pools_of_threads();
  caching_can_be_switched();
  options_are_checked();
  blocks_of_their_own_without_caching();
  random_use(false);
  random_use(true);
  division();
  pieces_cover_everything();
  pieces_fit_31_bits();
  half_precisions();
  truncation();
  std::printf("%d failures\n", failures);
  return failures ? 1 : 0;
}
