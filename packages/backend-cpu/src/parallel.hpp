// Loops over ranges on one team of threads (libgomp's, shared with MKL and oneDNN).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace candelabra::cpu {

// Elements of light work (an addition) below which a team costs more than it brings.
constexpr int64_t light_grain = 32768;

namespace parallel_detail {
extern std::atomic<int32_t> threads;
extern thread_local bool inside;  // of a parallel_for: nested ones are serial
void run(int64_t n, int64_t pieces, void (*body)(void*, int64_t, int64_t), void* context);
}  // namespace parallel_detail

int32_t default_thread_count();
inline int32_t thread_count() {
  return parallel_detail::threads.load(std::memory_order_relaxed);
}
void set_thread_count(int32_t count);
// In a forked child libgomp's threads are gone and its team would wait for them for ever: the child computes on one thread.
void forked();
bool in_parallel();

// While there is one, MKL and oneDNN compute on no more threads than this, and inside a parallel_for on one: their number is
// libgomp's, which every thread has of its own. Afterwards it is what it was, for others in the process may share libgomp with us.
// `at_most` 1 for little work.
class LibraryThreads {
 public:
  explicit LibraryThreads(int32_t at_most = INT32_MAX);
  ~LibraryThreads();
  LibraryThreads(const LibraryThreads&) = delete;
  LibraryThreads& operator=(const LibraryThreads&) = delete;

 private:
  int32_t before_, now_;
};

// f(begin, end) over pieces of [0, n), none smaller than `grain` elements but for the last; serial inside another parallel_for.
// What is written for an index must not depend on where the pieces begin, so that results do not depend on the number of threads.
// An exception in f is thrown again here.
template <typename F>
inline void parallel_for(int64_t n, int64_t grain, F&& f) {
  int32_t threads = thread_count();
  if (n <= grain || threads <= 1 || parallel_detail::inside) {
    if (n > 0) f(int64_t{0}, n);
    return;
  }
  int64_t pieces = std::min<int64_t>(threads, (n + grain - 1) / grain);
  parallel_detail::run(
      n, pieces,
      [](void* context, int64_t begin, int64_t end) { (*static_cast<std::remove_reference_t<F>*>(context))(begin, end); },
      const_cast<void*>(static_cast<const void*>(&f)));
}

// The grain for items that each cost `work` times as much as a float addition.
inline int64_t grain_for(int64_t work) {
  return std::max<int64_t>(1, light_grain / std::max<int64_t>(1, work));
}

}  // namespace candelabra::cpu
