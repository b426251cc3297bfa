// Calls of MPI that wait for other ranks and that MPI has in a blocking form only: the start, the
// end, and communicators. One thread of their own makes them, so that the wait for a rank that is
// missing has an end.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <string_view>
#include <thread>

#include "engine.hpp"
#include "error.hpp"

namespace candelabra::mpi {
namespace {

struct BlockingCall {
  std::function<void()> function;
  std::mutex mutex;
  std::condition_variable ended;
  bool is_done = false;
  std::exception_ptr error;

  void run() {
    std::exception_ptr thrown;
    try {
      function();
    } catch (...) {
      thrown = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    error = thrown;
    is_done = true;
    ended.notify_one();
  }
};

// The thread that starts MPI, and must end it.
class Caller {
 public:
  static Caller& caller() {
    static auto* made = new Caller();  // it may hang in MPI when the process ends
    return *made;
  }
  void add(std::shared_ptr<BlockingCall> call) {
    const std::lock_guard lock(mutex_);
    if (!has_thread_) std::thread([this] { run(); }).detach();
    has_thread_ = true;
    calls_.push_back(std::move(call));
    added_.notify_one();
  }

 private:
  void run() {
    for (;;) {
      std::unique_lock lock(mutex_);
      added_.wait(lock, [this] { return !calls_.empty(); });
      const auto call = std::move(calls_.front());
      calls_.pop_front();
      lock.unlock();
      call->run();
    }
  }

  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<std::shared_ptr<BlockingCall>> calls_;
  bool has_thread_ = false;
};

// MPICH shares memory of the ranks of a machine by a file that it removes at its end. Once all have
// opened it, it is removed here, so that a rank that is killed leaves none.
void remove_shared_files() {
  constexpr std::string_view beginning = "/dev/shm/mpich_shm_";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"), std::fclose);
  char buffer[4096];
  while (maps && std::fgets(buffer, sizeof buffer, maps.get())) {
    const std::string_view line(buffer, std::strcspn(buffer, "\n"));
    const size_t at = line.find(beginning);
    if (at == std::string_view::npos || line.ends_with("(deleted)")) continue;
    unlink(std::string(line.substr(at)).c_str());  // fails where another rank was faster
  }
}

void wait_for_all_ranks() {
  MPI_Request request = MPI_REQUEST_NULL;
  succeed(mpi().ibarrier(MPI_COMM_WORLD, &request), "MPI_Ibarrier");
  for (int is_done = 0; !is_done;) {
    succeed(mpi().test(&request, &is_done, MPI_STATUS_IGNORE), "MPI_Test");
    if (!is_done) std::this_thread::yield();
  }
}

}  // namespace

void Engine::call_blocking(const char* what, int64_t timeout_ms, std::function<void()> function) {
  const auto call = std::make_shared<BlockingCall>();
  call->function = [this, function = std::move(function)] {
    const Lock lock(owner_);
    function();
  };
  Caller::caller().add(call);
  const auto deadline =
      timeout_ms > 0 ? Clock::now() + std::chrono::milliseconds(timeout_ms) : Clock::time_point::max();
  std::unique_lock lock(call->mutex);
  while (!call->is_done) {
    call->ended.wait_for(lock, std::chrono::milliseconds(5));
    if (call->is_done) break;
    if (failed_) throw OperationFailure(CB_RUNTIME_ERROR, what, reason(), false);
    if (Clock::now() < deadline) continue;
    const std::string why = "timed out after " + std::to_string(timeout_ms) + " ms: other ranks did not take part";
    // The thread keeps the lock: MPI cannot be used any more.
    fail(std::string(what) + ": " + why);
    throw OperationFailure(CB_RUNTIME_ERROR, what, why, true);
  }
  if (call->error) std::rethrow_exception(call->error);
}

void Engine::start(const std::string& path, int64_t timeout_ms) {
  if (failed_) check_usable();
  open_mpi(path);
  if (is_stopped_) throw Failure(CB_RUNTIME_ERROR, "MPI has been ended in this process, and cannot start again");
  if (is_open_) return;
  const auto initialize = [this] {
    int is_initialized = 0, level = MPI_THREAD_SINGLE;
    succeed(mpi().initialized(&is_initialized), "MPI_Initialized");
    if (is_initialized)
      succeed(mpi().query_thread(&level), "MPI_Query_thread");
    else
      succeed(mpi().init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level), "MPI_Init_thread");
    initialized_here_ = !is_initialized;
    if (level < MPI_THREAD_SERIALIZED)
      throw Failure(CB_RUNTIME_ERROR, "MPI has been started without support for several threads");
    succeed(mpi().comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    succeed(mpi().comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    succeed(mpi().comm_size(MPI_COMM_WORLD, &ranks_), "MPI_Comm_size");
    wait_for_all_ranks();
  };
  try {
    call_blocking("the start of MPI", timeout_ms, initialize);
  } catch (...) {
    remove_shared_files();
    throw;
  }
  remove_shared_files();
  is_open_ = true;
}

void Engine::stop(int64_t timeout_ms) {
  if (!is_open_ || failed_ || is_stopped_ || !initialized_here_ || is_in_forked_child()) return;
  is_stopped_ = true;
  // Ranks that did not take part in something may be gone.
  if (has_timed_out_) timeout_ms = std::min<int64_t>(timeout_ms, 1000);
  call_blocking("the end of MPI", timeout_ms, [] { succeed(mpi().finalize(), "MPI_Finalize"); });
  fail("MPI has been ended");
}

// While a blocking call has the lock, nothing carries other operations forward. Another rank may
// wait for them before it makes that call, too.
void Engine::finish_collectives(const char* what, int64_t timeout_ms) {
  const Waiting waiting(*this);
  Lock lock(owner_);
  const auto deadline =
      timeout_ms > 0 ? Clock::now() + std::chrono::milliseconds(timeout_ms) : Clock::time_point::max();
  const Outcome outcome = drive(lock, Clock::time_point::max(), deadline, false, [this] {
    return std::ranges::none_of(active_, [](const Operation* each) { return each->is_ordered(); });
  });
  if (outcome != Outcome::finished)
    throw OperationFailure(CB_RUNTIME_ERROR, what, reason_of(outcome, timeout_ms), outcome == Outcome::timed_out);
}

std::shared_ptr<Communicator> Engine::make(const char* what, int64_t timeout_ms, const std::string& name,
                                           std::function<MPI_Comm()> function) {
  check_usable();
  finish_collectives(what, timeout_ms);
  const auto made = std::make_shared<std::shared_ptr<Communicator>>();
  call_blocking(what, timeout_ms, [made, timeout_ms, name, function = std::move(function)] {
    const MPI_Comm comm = function();
    if (comm != MPI_COMM_NULL) *made = std::make_shared<Communicator>(comm, timeout_ms, name);
  });
  return *made;
}

std::shared_ptr<Communicator> Engine::duplicate_world(int64_t timeout_ms, const std::string& name) {
  return make("making a communicator", timeout_ms, name, [] {
    MPI_Comm comm = MPI_COMM_NULL;
    succeed(mpi().comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
    return comm;
  });
}

std::shared_ptr<Communicator> Engine::select(const std::vector<int>& ranks, int number, int64_t timeout_ms,
                                             const std::string& name) {
  return make("making a communicator", timeout_ms, name, [ranks, number] {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Group world = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
    succeed(mpi().comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
    succeed(mpi().group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &group), "MPI_Group_incl");
    succeed(mpi().comm_create_group(MPI_COMM_WORLD, group, number, &comm), "MPI_Comm_create_group");
    succeed(mpi().group_free(&group), "MPI_Group_free");
    succeed(mpi().group_free(&world), "MPI_Group_free");
    return comm;
  });
}

std::shared_ptr<Communicator> Engine::split(const std::shared_ptr<Communicator>& parent, int color, int key,
                                            int64_t timeout_ms, const std::string& name) {
  return make("splitting a communicator", timeout_ms, name, [parent, color, key] {
    MPI_Comm comm = MPI_COMM_NULL;
    succeed(mpi().comm_split(parent->comm(), color < 0 ? MPI_UNDEFINED : color, key, &comm), "MPI_Comm_split");
    return comm;
  });
}

// ---- the end of communicators

void Engine::query(const std::shared_ptr<Communicator>& communicator) {
  const Lock lock = acquire_for(*communicator);
  poll();
  if (!communicator->failure.empty()) throw Failure(CB_RUNTIME_ERROR, communicator->failure);
}

void Engine::wait_for_all(const std::shared_ptr<Communicator>& communicator, int64_t timeout_ms) {
  const Waiting waiting(*this);
  Lock lock = acquire_for(*communicator);
  auto deadline = communicator->deadline();
  if (timeout_ms > 0) deadline = std::min(deadline, Clock::now() + std::chrono::milliseconds(timeout_ms));
  const Outcome outcome =
      drive(lock, Clock::time_point::max(), deadline, true, [&] { return communicator->active == 0; });
  if (outcome != Outcome::finished) {
    const auto limit = timeout_ms > 0 ? timeout_ms : communicator->timeout_ms();
    const std::string why = reason_of(outcome, limit);
    if (acquire_after_failure(lock)) end_all(*communicator, why, outcome == Outcome::timed_out);
    throw OperationFailure(outcome == Outcome::interrupted ? CB_CANCELLED : CB_RUNTIME_ERROR,
                           "waiting for " + communicator->title(), why, outcome == Outcome::timed_out);
  }
  if (!communicator->failure.empty()) throw Failure(CB_RUNTIME_ERROR, communicator->failure);
}

void Engine::close(const std::shared_ptr<Communicator>& communicator) {
  if (failed_ || is_stopped_ || is_in_forked_child()) return;
  {
    const Lock lock = acquire_for(*communicator);
    if (!communicator->failure.empty()) return;
  }
  wait_for_all(communicator, 0);
  const Lock lock = acquire_for(*communicator);
  communicator->free();
}

void Engine::abort(const std::shared_ptr<Communicator>& communicator, const std::string& reason) {
  if (failed_ || is_in_forked_child()) return;
  Lock lock(owner_, std::defer_lock);
  if (acquire_after_failure(lock)) end_all(*communicator, reason, false);
}

}  // namespace candelabra::mpi
