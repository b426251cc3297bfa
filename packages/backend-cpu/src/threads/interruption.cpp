#include "threads/interruption.hpp"

#include <algorithm>
#include <chrono>

#include "kernels.hpp"

namespace candelabra::cpu {

namespace interruption_detail {
constinit thread_local RunningKernel* current = nullptr;
}  // namespace interruption_detail

namespace {

using interruption_detail::current;

int64_t nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

RunningKernel::RunningKernel(cb_call* call) : call_(call), slot_(&current), outer_(*slot_) {
  *slot_ = this;
}

RunningKernel::~RunningKernel() {
  *slot_ = outer_;
}

bool RunningKernel::is_to_end() {
  constexpr int64_t shortest = 20'000'000, longest = 500'000'000;
  if (slot_ == &current) {
    const int64_t now = nanoseconds();
    if (next_look_ == 0) next_look_ = now + shortest;
    if (now >= next_look_) {
      // A handler may call kernels, and loops outside of kernels must not poll for this one.
      *slot_ = nullptr;
      if (call_->host->is_cancelled(call_)) is_cancelled_.store(true, std::memory_order_relaxed);
      *slot_ = this;
      // Where other threads compute in Python, the wait for its lock takes milliseconds.
      const int64_t end = nanoseconds();
      next_look_ = end + std::clamp(50 * (end - now), shortest, longest);
    }
  }
  return is_cancelled_.load(std::memory_order_relaxed);
}

void RunningKernel::throw_cancelled() {
  throw Failure(CB_CANCELLED, "");
}

}  // namespace candelabra::cpu
