#include "threads/parallel.hpp"

#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "candelabra/float_index.hpp"
#include "simd/denormals.hpp"
#include "simd/processor.hpp"
#include "threads/interruption.hpp"

namespace candelabra::cpu {

namespace parallel_detail {

std::atomic<int32_t> threads{1};
thread_local bool inside = false;

// The mode is a register of each thread, so each thread tracks its own.
static std::atomic<bool> flush_wanted{false};
static thread_local bool flushes = false;

static void follow_flush() {
  const bool wanted = flush_wanted.load(std::memory_order_relaxed);
  if (flushes == wanted) return;
  set_thread_flush_denormal(wanted);
  flushes = wanted;
}

// Pieces of many elements begin at multiples of 64, so that they start on cache lines for every
// dtype. A short range may count a few heavy items (planes, matrices), so it is not rounded.
static int64_t aligned_size(int64_t size) {
  return size >= 4096 ? (size + 63) & ~int64_t{63} : size;
}

void run_steps(int64_t begin, int64_t end, int64_t grain, void (*body)(void*, int64_t, int64_t), void* context) {
  RunningKernel* const kernel = running_kernel();
  if (!kernel || (end - begin) / first_step <= grain) return body(context, begin, end);
  using Clock = std::chrono::steady_clock;
  // Steps of 5 to 20 ms, so that starting f costs nothing beside them.
  constexpr std::chrono::milliseconds wanted(10);
  const int64_t first = aligned_size(first_step * grain);
  auto before = Clock::now();
  for (int64_t step = first;;) {
    kernel->poll();
    const int64_t stop = end - begin - step < step / 2 ? end : begin + step;
    body(context, begin, stop);
    if (stop == end) return;
    begin = stop;
    const auto now = Clock::now();
    const auto duration = now - std::exchange(before, now);
    if (8 * duration < wanted)
      step *= 8;
    else if (2 * duration < wanted)
      step *= 2;
    else if (duration > 2 * wanted)
      step = std::max(first, step / 2);
  }
}

// Static schedule: one piece per thread. Dynamic chunks help compute-bound loops a little, but slow
// down loops whose part fits a thread's cache, and do not help memory-bound ones.
void run(int64_t n, int64_t pieces, int64_t grain, void (*body)(void*, int64_t, int64_t), void* context) {
  std::exception_ptr thrown;
  std::atomic<bool> failed{false};
  const int64_t size = aligned_size((n + pieces - 1) / pieces);
  RunningKernel* const kernel = running_kernel();
#pragma omp parallel num_threads(static_cast<int>(pieces))
  {
    inside = true;
    follow_flush();
    const TeamMember member(kernel);
    // OpenMP may provide fewer threads than requested.
    for (int64_t piece = omp_get_thread_num(); piece * size < n; piece += omp_get_num_threads()) {
      try {
        run_steps(piece * size, std::min(n, (piece + 1) * size), grain, body, context);
      } catch (...) {
        if (!failed.exchange(true)) thrown = std::current_exception();
      }
    }
    inside = false;
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace parallel_detail

namespace {

std::atomic<bool> is_forked_child{false};

int read_number(const std::string& path) {
  std::ifstream file(path);
  int value = -1;
  file >> value;
  return file ? value : -1;
}

// The number of processors that the cgroup's CPU quota allows, rounded up; 0 without a quota.
int32_t quota() {
  constexpr int32_t most = std::numeric_limits<int32_t>::max();
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  std::string limit;
  double period = 0;
  if (v2 >> limit >> period && limit != "max" && period > 0)
    return index_from_float((std::atof(limit.c_str()) + period - 1) / period, 0, most);
  double used = read_number("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
         each = read_number("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (used > 0 && each > 0) return index_from_float((used + each - 1) / each, 0, most);
  return 0;
}

}  // namespace

int32_t default_thread_count() {
  if (const char* text = std::getenv("OMP_NUM_THREADS")) {
    int value = std::atoi(text);
    if (value > 0) return value;
  }
  cpu_set_t* allowed = CPU_ALLOC(4096);
  size_t bytes = CPU_ALLOC_SIZE(4096);
  int32_t count = 1;
  if (allowed && sched_getaffinity(0, bytes, allowed) == 0) {
    std::set<std::pair<int, int>> cores;  // hyperthreads of one core share its vector units
    for (int cpu = 0; cpu < 4096; ++cpu) {
      if (!CPU_ISSET_S(cpu, bytes, allowed)) continue;
      std::string topology = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
      int package = read_number(topology + "physical_package_id"), core = read_number(topology + "core_id");
      cores.insert(core < 0 ? std::pair{-1, cpu} : std::pair{package, core});
    }
    count = std::max<int32_t>(1, static_cast<int32_t>(cores.size()));
  }
  if (allowed) CPU_FREE(allowed);
  if (int32_t limit = quota()) count = std::min(count, limit);
  return count;
}

void set_thread_count(int32_t count) {
  // libgomp ends the process if it cannot create a thread, and MKL allocates memory per thread. So
  // absurdly large counts are clamped.
  const int32_t most = std::max<int32_t>(64, 4 * static_cast<int32_t>(sysconf(_SC_NPROCESSORS_CONF)));
  parallel_detail::threads = is_forked_child ? 1 : std::min(count, most);
}

void set_flush_denormal(bool on) {
  parallel_detail::flush_wanted = on;
  parallel_detail::follow_flush();
  // Set the mode on every thread of the pool, because MKL and oneDNN compute on the same threads.
#pragma omp parallel num_threads(is_forked_child ? 1 : thread_count())
  parallel_detail::follow_flush();
}

void forked() {
  is_forked_child = true;
  parallel_detail::inside = false;
  parallel_detail::threads = 1;
}

bool in_parallel() {
  return parallel_detail::inside;
}

LibraryThreads::LibraryThreads(int32_t at_most)
    : before_(omp_get_max_threads()), now_(in_parallel() ? 1 : std::min(at_most, thread_count())) {
  if (now_ != before_) omp_set_num_threads(now_);
}
LibraryThreads::~LibraryThreads() {
  if (now_ != before_) omp_set_num_threads(before_);
}

}  // namespace candelabra::cpu
