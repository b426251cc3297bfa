// 32 threads at once in the CPU backend's allocator, without the interpreter's lock: they allocate,
// hand blocks to each other, free, and ask for statistics, while others empty the cache and set the
// limit. `nox -s sanitize -- thread` compiles it with ThreadSanitizer.
#include <atomic>
#include <barrier>
#include <cstdio>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#define CANDELABRA_KERNEL_DEFINITIONS
#include "candelabra/kernel.hpp"
#include "memory/allocator.hpp"

namespace candelabra::cpu {
// What the allocator gives up where memory is short.
void drop_all_packed_weights();
void drop_all_packed_weights() {}
}  // namespace candelabra::cpu

namespace {

namespace cpu = candelabra::cpu;

constexpr int threads = 32, rounds = 400;

struct Block {
  unsigned char* memory;
  size_t bytes;
  unsigned char mark;
};

std::mutex shared_mutex;
std::vector<Block> shared;  // blocks that another thread frees
std::atomic<int> faults{0};

void free_block(const Block& block) {
  if (block.memory[0] != block.mark || block.memory[block.bytes - 1] != block.mark) ++faults;
  cpu::deallocate(block.memory, block.bytes);
}

void work(int number, std::barrier<>& start) {
  std::mt19937 random(static_cast<unsigned>(number));
  std::vector<Block> held;
  start.arrive_and_wait();
  for (int round = 0; round < rounds; ++round) {
    const size_t bytes = size_t{1} << random() % 22;
    const auto mark = static_cast<unsigned char>(number);
    auto* const memory = static_cast<unsigned char*>(cpu::allocate(bytes));
    memory[0] = memory[bytes - 1] = mark;
    held.push_back({memory, bytes, mark});
    if (random() % 2) {
      const std::lock_guard lock(shared_mutex);
      shared.push_back(held.back());
      held.pop_back();
    }
    if (random() % 2) {
      const std::lock_guard lock(shared_mutex);
      if (!shared.empty()) {
        free_block(shared.back());
        shared.pop_back();
      }
    }
    if (held.size() > 8) {
      free_block(held.front());
      held.erase(held.begin());
    }
    cb_memory_statistics statistics{};
    statistics.size = sizeof statistics;
    if (round % 16 == 0) cpu::memory_statistics(statistics);
    if (round % 64 == number) cpu::empty_cache();
    if (round % 128 == number) cpu::reset_peak_statistics();
    if (round % 128 == number + 1) cpu::set_memory_limit(-1);
  }
  for (const Block& block : held) free_block(block);
}

}  // namespace

int main() {
  std::barrier start(threads);
  std::vector<std::thread> running;
  for (int number = 0; number < threads; ++number) running.emplace_back(work, number, std::ref(start));
  for (std::thread& thread : running) thread.join();
  for (const Block& block : shared) free_block(block);
  cb_memory_statistics statistics{};
  statistics.size = sizeof statistics;
  cpu::memory_statistics(statistics);
  std::printf("%d faults, %lld bytes allocated\n", faults.load(), static_cast<long long>(statistics.allocated));
  return faults || statistics.allocated != 0;
}
