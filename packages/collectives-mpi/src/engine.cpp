#include "engine.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "error.hpp"

namespace candelabra::mpi {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

std::atomic<bool> in_forked_child = false;

// How a thread spends the time between two polls.
class Backoff {
 public:
  // A thread in the background does not yield: threads that compute would keep the processor for
  // long, whereas one that wakes up from a nap gets it.
  explicit Backoff(bool is_background = false) : yield_polls_(is_background ? spin_polls : yield_polls) {}
  void reset() { polls_ = 0; }
  bool spins() const { return polls_ < spin_polls; }
  // Counts a poll, and pauses once it has spun long enough.
  void pause() {
    ++polls_;
    if (polls_ < spin_polls) return;
    if (polls_ < yield_polls_) {
      sched_yield();
      return;
    }
    std::this_thread::sleep_for(polls_ < nap_polls ? microseconds(20) : microseconds(500));
  }
  // Time limits and signals are looked at now and then.
  bool checks_limits() const { return polls_ >= spin_polls && (polls_ >= yield_polls_ || polls_ % 16 == 0); }

 private:
  static constexpr int spin_polls = 200, yield_polls = 2000, nap_polls = 20000;
  const int yield_polls_;
  int polls_ = 0;
};

constexpr auto signal_interval = milliseconds(50);

// The one that Python handles signals on.
bool is_main_thread() {
  static thread_local const bool is_main = gettid() == getpid();
  return is_main;
}

}  // namespace

Engine::Waiting::Waiting(Engine& engine) : engine_(engine) {
  ++engine_.foreground_;
}
Engine::Waiting::~Waiting() {
  if (--engine_.foreground_ > 0 || engine_.active_count_ == 0) return;
  const std::lock_guard lock(engine_.wake_mutex_);
  engine_.wake_.notify_one();
}

Engine::Engine() {
  pthread_atfork(nullptr, nullptr, [] { in_forked_child = true; });
}

Engine& Engine::engine() {
  static auto* made = new Engine();  // threads may use it until the process has ended
  return *made;
}

// ---- failures

void Engine::fail(const std::string& message) {
  const std::lock_guard lock(failure_mutex_);
  if (failed_) return;
  failure_ = message;
  failed_ = true;
}

bool Engine::is_in_forked_child() {
  return in_forked_child;
}

std::string Engine::reason() const {
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

void Engine::check_usable() {
  if (in_forked_child)
    throw Failure(CB_RUNTIME_ERROR,
                  "MPI belongs to the process that this one was forked from, and cannot be used here");
  if (failed_) throw Failure(CB_RUNTIME_ERROR, reason());
  if (!is_open_) throw Failure(CB_RUNTIME_ERROR, "MPI has not been started: call candelabra_collectives_mpi.start()");
}

// ---- polling

bool Engine::poll() {
  if (failed_) return false;
  bool has_changed = false;
  for (size_t i = 0; i < active_.size();) {
    Operation& each = *active_[i];
    has_changed |= each.advance();
    if (each.is_finished()) {
      active_.erase(active_.begin() + static_cast<ptrdiff_t>(i));
      active_count_ = active_.size();
    } else {
      ++i;
    }
  }
  return has_changed;
}

// Takes the lock; false if something failed or the time is over first. A thread may hold it for
// long, in a call of MPI that waits for other ranks.
bool Engine::acquire(Lock& lock, Clock::time_point deadline) {
  Backoff backoff;
  while (!lock.try_lock()) {
    backoff.pause();
    if (backoff.checks_limits() && (failed_ || Clock::now() > deadline)) return false;
  }
  return true;
}

Outcome Engine::drive(Lock& lock, Clock::time_point slice, Clock::time_point deadline, bool may_interrupt,
                      const std::function<bool()>& finished) {
  Backoff backoff(std::this_thread::get_id() == thread_);
  auto next_signal = Clock::time_point::min();
  for (;;) {
    if (poll()) backoff.reset();
    if (finished()) return Outcome::finished;
    if (failed_) return Outcome::failed;
    if (backoff.spins()) {
      backoff.pause();
      continue;
    }
    lock.unlock();
    backoff.pause();
    auto outcome = Outcome::finished;
    if (backoff.checks_limits()) {
      const auto now = Clock::now();
      if (next_signal == Clock::time_point::min()) next_signal = now + signal_interval;
      if (now > deadline)
        outcome = Outcome::timed_out;
      else if (now > slice)
        outcome = Outcome::pending;
      else if (may_interrupt && is_main_thread() && is_interrupted && now > next_signal) {
        next_signal = now + signal_interval;
        if (is_interrupted()) outcome = Outcome::interrupted;
      }
    }
    if (!acquire(lock, deadline)) return failed_ ? Outcome::failed : Outcome::timed_out;
    if (outcome != Outcome::finished) return finished() ? Outcome::finished : outcome;
  }
}

void Engine::run_thread() {
  // Naps are as short as asked for, so that a collective advances while Python computes.
  prctl(PR_SET_TIMERSLACK, 1000UL);
  thread_ = std::this_thread::get_id();
  for (;;) {
    {
      std::unique_lock lock(wake_mutex_);
      wake_.wait(lock, [this] { return active_count_ > 0 && foreground_ == 0 && !failed_; });
    }
    Lock lock(owner_);
    drive(lock, Clock::time_point::max(), Clock::time_point::max(), false,
          [this] { return active_.empty() || foreground_ > 0; });
  }
}

void Engine::publish(const Operation& operation) {
  current_.kind.store(operation.arguments().kind, std::memory_order_relaxed);
  current_.dtype.store(operation.arguments().dtype, std::memory_order_relaxed);
  current_.count.store(operation.arguments().count, std::memory_order_relaxed);
  current_.number.store(operation.number(), std::memory_order_relaxed);
  current_.runs.store(true, std::memory_order_relaxed);
}

std::string Engine::description() const {
  if (!current_.runs || current_.number == 0) return "";
  return describe(current_.kind, current_.dtype, current_.count, current_.number);
}

void Engine::add(Operation& operation) {
  active_.push_back(&operation);
  active_count_ = active_.size();
  publish(operation);
}

// Ends all operations of a communicator on this rank. MPI may still have their requests.
void Engine::end_all(Communicator& communicator, const std::string& reason, bool timed_out) {
  std::erase_if(active_, [&](Operation* each) {
    if (&each->communicator() != &communicator) return false;
    each->abandon(reason, timed_out);
    return true;
  });
  active_count_ = active_.size();
  if (communicator.failure.empty()) communicator.failure = communicator.title() + ": " + reason;
  if (timed_out) has_timed_out_ = true;
}

std::string Engine::reason_of(Outcome outcome, int64_t timeout_ms) const {
  if (outcome == Outcome::failed) return reason();
  if (outcome == Outcome::interrupted) return "was interrupted";
  return "timed out after " + std::to_string(timeout_ms) + " ms: other ranks did not take part";
}

// Takes the lock after a failure. False if a call of MPI that hangs holds it.
bool Engine::acquire_after_failure(Lock& lock) {
  const auto end = Clock::now() + std::chrono::seconds(1);
  while (!lock.owns_lock() && !lock.try_lock()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

// ---- operations

Engine::Lock Engine::acquire_for(const Communicator& communicator) {
  check_usable();
  Lock lock(owner_, std::defer_lock);
  if (acquire(lock, communicator.deadline())) return lock;
  check_usable();
  throw Failure(CB_RUNTIME_ERROR, communicator.title() + ": MPI was in use for longer than the timeout");
}

void Engine::run(const std::shared_ptr<Communicator>& communicator, const Arguments& arguments) {
  Request request;
  {
    const Waiting waiting(*this);
    Lock lock = acquire_for(*communicator);
    add(*request.operations.emplace_back(std::make_unique<Operation>(communicator, arguments)));
    wait(lock, request, Clock::time_point::max(), request.operations[0]->deadline(), 0, true);
  }
}

void Engine::start(const std::shared_ptr<Communicator>& communicator, const Arguments& arguments, Request& request) {
  {
    const Lock lock = acquire_for(*communicator);
    add(*request.operations.emplace_back(std::make_unique<Operation>(communicator, arguments)));
    poll();
  }
  const std::lock_guard lock(wake_mutex_);
  if (!has_thread_) {
    std::thread([this] { run_thread(); }).detach();
    has_thread_ = true;
  }
  wake_.notify_one();
}

// Waits with the lock held. A failure ends the communicators of the request on this rank.
bool Engine::wait(Lock& lock, Request& request, Clock::time_point slice, Clock::time_point deadline, int64_t limit_ms,
                  bool may_interrupt) {
  const auto finished = [&] {
    return std::ranges::all_of(request.operations, [](const auto& each) { return each->is_finished(); });
  };
  const Outcome outcome = drive(lock, slice, deadline, may_interrupt, finished);
  if (outcome == Outcome::pending) return false;
  if (outcome != Outcome::finished) {
    const bool has_lock = acquire_after_failure(lock);
    if (!has_lock && !failed_) fail("MPI hangs in a call that waits for other ranks");
    const auto first = std::ranges::find_if(request.operations, [](const auto& each) { return !each->is_finished(); });
    Operation& operation = **first;
    const std::string why = reason_of(outcome, limit_ms ? limit_ms : operation.communicator().timeout_ms());
    const std::string title = operation.title();
    if (has_lock) {
      for (const auto& each : request.operations) end_all(each->communicator(), why, outcome == Outcome::timed_out);
    } else {
      for (auto& each : request.operations) static_cast<void>(each.release());  // others refer to them
      request.operations.clear();
    }
    throw OperationFailure(outcome == Outcome::interrupted ? CB_CANCELLED : CB_RUNTIME_ERROR, title, why,
                           outcome == Outcome::timed_out);
  }
  current_.runs.store(!active_.empty(), std::memory_order_relaxed);
  for (const auto& each : request.operations) each->rethrow();
  return true;
}

bool Engine::wait(Request& request, Clock::time_point slice, Clock::time_point deadline, int64_t limit_ms,
                  bool may_interrupt) {
  if (in_forked_child) check_usable();
  const Waiting waiting(*this);
  Lock lock(owner_, std::defer_lock);
  acquire(lock, std::min(slice, deadline));
  if (!lock.owns_lock() && !failed_ && Clock::now() < deadline) return false;
  if (!lock.owns_lock()) check_usable();
  if (!lock.owns_lock()) throw Failure(CB_RUNTIME_ERROR, "MPI was in use for longer than the timeout");
  for (const auto& each : request.operations) {
    if (each->deadline() >= deadline) continue;
    deadline = each->deadline();
    limit_ms = 0;
  }
  return wait(lock, request, slice, deadline, limit_ms, may_interrupt);
}

bool Engine::is_done(const Request& request) {
  if (failed_) return true;
  const Lock lock(owner_, std::try_to_lock);
  if (!lock) return false;
  if (active_count_ > 0) poll();
  return std::ranges::all_of(request.operations, [](const auto& each) { return each->is_finished(); });
}

void Engine::release(std::unique_ptr<Request> request) {
  Lock lock(owner_, std::defer_lock);
  if (acquire_after_failure(lock) &&
      std::ranges::all_of(request->operations, [](const auto& each) { return each->is_finished(); }))
    return;
  static_cast<void>(request.release());  // still referred to
}

}  // namespace candelabra::mpi
