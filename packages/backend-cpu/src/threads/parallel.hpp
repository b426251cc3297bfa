// Parallel loops over ranges on one team of threads (libgomp's, shared with MKL and oneDNN).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace candelabra::cpu {

// Number of light elements (one addition each) below which a team costs more than it saves.
constexpr int64_t light_grain = 32768;

namespace parallel_detail {
extern std::atomic<int32_t> threads;
// whether this thread is in a parallel_for: nested ones are serial
extern thread_local bool inside;
// Grains of the first step between two polls: a fraction of a millisecond for most loops.
constexpr int64_t first_step = 16;
// Calls body for parts of [begin, end) on this thread, and polls between them.
void run_steps(int64_t begin, int64_t end, int64_t grain, void (*body)(void*, int64_t, int64_t), void* context);
void run(int64_t n, int64_t pieces, int64_t grain, void (*body)(void*, int64_t, int64_t), void* context);
}  // namespace parallel_detail

int32_t default_thread_count();
inline int32_t thread_count() {
  return parallel_detail::threads.load(std::memory_order_relaxed);
}
void set_thread_count(int32_t count);
// Called in a forked child, which then computes on one thread. libgomp's threads do not survive the
// fork, and its team would wait for them forever.
void forked();
bool in_parallel();

// Limits MKL and oneDNN to `at_most` threads while in scope, and to one inside a parallel_for. Use
// 1 for little work. Sets libgomp's count, which is per thread. The destructor restores it, because
// others in the process may share libgomp.
class LibraryThreads {
 public:
  explicit LibraryThreads(int32_t at_most = INT32_MAX);
  ~LibraryThreads();
  LibraryThreads(const LibraryThreads&) = delete;
  LibraryThreads& operator=(const LibraryThreads&) = delete;

 private:
  int32_t before_, now_;
};

// Calls f(begin, end) on pieces of [0, n), none smaller than `grain` elements but the last. Serial
// inside another parallel_for. Rethrows an exception of f. Long ranges are interruptible: a thread
// calls f for several pieces, between which it polls (threads/interruption.hpp).
//
// What f writes for an index must not depend on where pieces begin. Then results do not depend on
// the number of threads.
template <typename F>
inline void parallel_for(int64_t n, int64_t grain, F&& f) {
  int32_t threads = thread_count();
  const bool is_serial = n <= grain || threads <= 1 || parallel_detail::inside;
  if (is_serial && n / parallel_detail::first_step <= grain) {
    if (n > 0) f(int64_t{0}, n);
    return;
  }
  const auto body = [](void* context, int64_t begin, int64_t end) {
    (*static_cast<std::remove_reference_t<F>*>(context))(begin, end);
  };
  void* const context = const_cast<void*>(static_cast<const void*>(&f));
  if (is_serial) return parallel_detail::run_steps(0, n, grain, body, context);
  int64_t pieces = std::min<int64_t>(threads, (n + grain - 1) / grain);
  parallel_detail::run(n, pieces, grain, body, context);
}

// The grain for items that cost `work` float additions each.
inline int64_t grain_for(int64_t work) {
  return std::max<int64_t>(1, light_grain / std::max<int64_t>(1, work));
}

}  // namespace candelabra::cpu
