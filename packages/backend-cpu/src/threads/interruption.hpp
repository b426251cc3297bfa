// Interruption of kernels that run long, by Ctrl-C or another signal whose Python handler raises.
//
// cb_host.is_cancelled() takes Python's lock and runs the handlers, so that only the thread that
// the core has called may ask, and not while it holds a lock. Other threads of its team read the
// answer.
#pragma once

#include <atomic>
#include <cstdint>

#include "candelabra/backend.h"

namespace candelabra::cpu {

class RunningKernel;

namespace interruption_detail {
// The kernel that this thread computes for; null outside of kernels.
extern constinit thread_local RunningKernel* current;
}  // namespace interruption_detail

// The call of a kernel, on the stack of the thread that the core has called.
class RunningKernel {
 public:
  explicit RunningKernel(cb_call* call);
  ~RunningKernel();
  RunningKernel(const RunningKernel&) = delete;
  RunningKernel& operator=(const RunningKernel&) = delete;

  // Whether the call is to end. Looks for signals a few times a second.
  bool is_to_end();
  // Throws Failure(CB_CANCELLED) if the call is to end.
  void poll() {
    if (is_to_end()) throw_cancelled();
  }
  void throw_if_cancelled() const {
    if (is_cancelled_.load(std::memory_order_relaxed)) throw_cancelled();
  }

 private:
  [[noreturn]] static void throw_cancelled();

  cb_call* const call_;
  RunningKernel** const slot_;  // `current` of the thread that the core has called
  RunningKernel* const outer_;  // a signal's handler may call kernels
  int64_t next_look_ = 0;       // nanoseconds of the steady clock; 0 before the first poll
  std::atomic<bool> is_cancelled_{false};
};

inline RunningKernel* running_kernel() {
  return interruption_detail::current;
}

// Makes a thread of a team compute for a kernel while in scope.
class TeamMember {
 public:
  explicit TeamMember(RunningKernel* kernel) : before_(interruption_detail::current) {
    interruption_detail::current = kernel;
  }
  ~TeamMember() { interruption_detail::current = before_; }
  TeamMember(const TeamMember&) = delete;
  TeamMember& operator=(const TeamMember&) = delete;

 private:
  RunningKernel* const before_;
};

// Throws if the kernel that this thread computes for is to end. parallel_for() polls between steps.
// A loop polls by itself where one item may take longer than a tenth of a second. Callers hold no
// lock and have no AMX tiles configured.
inline void poll_interruption() {
  if (RunningKernel* const kernel = running_kernel()) kernel->poll();
}

// Throws if a poll has ended the kernel that this thread computes for.
inline void throw_if_cancelled() {
  if (const RunningKernel* const kernel = running_kernel()) kernel->throw_if_cancelled();
}

}  // namespace candelabra::cpu
