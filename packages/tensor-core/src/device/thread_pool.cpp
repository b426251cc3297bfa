#include "device/thread_pool.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace candelabra {

namespace {

// A loop in progress. Threads take part after part.
struct Loop {
  int64_t begin, end, part, part_count;
  void (*body)(void*, int64_t, int64_t);
  void* context;
  std::atomic<int64_t> next{0};

  void work() {
    for (int64_t taken; (taken = next.fetch_add(1, std::memory_order_relaxed)) < part_count;) {
      const int64_t first = begin + taken * part;
      body(context, first, std::min(first + part, end));
    }
  }
};

thread_local bool is_inside = false;

// The processors that this process may use.
int processor_count() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(CPU_COUNT(&set), 1);
  return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

// One thread fewer than there are processors: the caller is one.
class Pool {
 public:
  Pool() {
    for (int i = 1; i < processor_count(); ++i) std::thread([this] { serve(); }).detach();
  }
  int thread_count() const { return processor_count(); }

  void run(Loop& loop) {
    const std::lock_guard one_loop(loops_);
    {
      const std::lock_guard locked(mutex_);
      loop_ = &loop;
      ++generation_;
    }
    wake_.notify_all();
    loop.work();
    std::unique_lock locked(mutex_);
    loop_ = nullptr;  // threads that come late find nothing
    done_.wait(locked, [this] { return working_ == 0; });
  }

 private:
  void serve() {
    is_inside = true;
    uint64_t seen = 0;
    std::unique_lock locked(mutex_);
    for (;;) {
      wake_.wait(locked, [&] { return generation_ != seen; });
      seen = generation_;
      Loop* const loop = loop_;
      if (!loop) continue;
      ++working_;
      locked.unlock();
      loop->work();
      locked.lock();
      if (--working_ == 0) done_.notify_all();
    }
  }

  std::mutex loops_;  // held by the caller whose loop runs
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  Loop* loop_ = nullptr;
  uint64_t generation_ = 0;
  int working_ = 0;
};

// Made at the first loop; made again in a forked child, which has none of the threads. Never
// destroyed, because its threads run until the process ends.
std::atomic<Pool*> pool{nullptr};
std::mutex pool_creation;

Pool& current_pool() {
  if (Pool* found = pool.load(std::memory_order_acquire)) return *found;
  const std::lock_guard locked(pool_creation);
  if (!pool.load()) {
    static const int registered = pthread_atfork([] { pool_creation.lock(); }, [] { pool_creation.unlock(); },
                                                 [] {
                                                   pool_creation.unlock();
                                                   pool = nullptr;
                                                 });
    (void)registered;
    pool = std::make_unique<Pool>().release();
  }
  return *pool.load();
}

}  // namespace

void parallel_for(int64_t begin, int64_t end, int64_t grain, void (*body)(void*, int64_t, int64_t), void* context) {
  if (begin >= end) return;
  const int64_t count = end - begin;
  grain = std::max<int64_t>(grain, 1);
  if (is_inside || count <= grain) return body(context, begin, end);
  Pool& shared = current_pool();
  const int threads = shared.thread_count();
  // A few parts a thread, so that a slow one delays little.
  const int64_t part = std::max(grain, (count + 4 * threads - 1) / (4 * threads));
  Loop loop{begin, end, part, (count + part - 1) / part, body, context};
  is_inside = true;
  threads > 1 ? shared.run(loop) : loop.work();
  is_inside = false;
}

}  // namespace candelabra
