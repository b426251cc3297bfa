// The one place that calls MPI while operations run.
//
// MPI is initialized for serialized threads: whoever holds the engine's lock owns MPI. A thread
// that waits for an operation carries all operations forward itself, so that a small collective
// needs no other thread. The engine's own thread does it while nobody waits, for operations that
// were only started. Polling backs off: it spins, yields the processor, and then sleeps. More ranks
// than processors therefore do not keep each other from working.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "communicator.hpp"
#include "operation.hpp"

namespace candelabra::mpi {

// Operations that were started together and end together.
struct Request {
  std::vector<std::unique_ptr<Operation>> operations;
};

enum class Outcome { finished, failed, timed_out, interrupted, pending };

class Engine {
 public:
  static Engine& engine();

  // Opens and initializes MPI. A second call with the same library does nothing.
  void start(const std::string& path, int64_t timeout_ms);
  // Ends MPI, if it has not failed and other ranks do it, too, within the time.
  void stop(int64_t timeout_ms);
  // From any thread and at any time: what waits raises this, and so does everything later.
  void fail(const std::string& message);
  void check_usable();
  // MPI belongs to the parent process.
  static bool is_in_forked_child();

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  // Makes a communicator. All of its ranks must call it.
  std::shared_ptr<Communicator> duplicate_world(int64_t timeout_ms, const std::string& name);
  std::shared_ptr<Communicator> select(const std::vector<int>& ranks, int number, int64_t timeout_ms,
                                       const std::string& name);
  // Null for ranks with a negative color.
  std::shared_ptr<Communicator> split(const std::shared_ptr<Communicator>& parent, int color, int key,
                                      int64_t timeout_ms, const std::string& name);
  // Waits for the communicator's operations, and frees it.
  void close(const std::shared_ptr<Communicator>& communicator);
  void abort(const std::shared_ptr<Communicator>& communicator, const std::string& reason);
  void query(const std::shared_ptr<Communicator>& communicator);
  void wait_for_all(const std::shared_ptr<Communicator>& communicator, int64_t timeout_ms);

  void run(const std::shared_ptr<Communicator>& communicator, const Arguments& arguments);
  // Starts an operation of the request; the engine's thread carries it forward.
  void start(const std::shared_ptr<Communicator>& communicator, const Arguments& arguments, Request& request);
  // Whether all have finished or failed.
  bool is_done(const Request& request);
  // Returns false if the slice of time is over first. Throws the failure of an operation.
  // limit_ms is the time that ends at the deadline, for messages; 0 for that of the communicator.
  bool wait(Request& request, Clock::time_point slice, Clock::time_point deadline, int64_t limit_ms,
            bool may_interrupt);
  // Forgets a request. One that is not done stays in memory.
  void release(std::unique_ptr<Request> request);

  // The operation that was started last, and has not finished: "all_reduce(float32 8) (number 3)".
  std::string description() const;

  // Asks the core whether the user has interrupted the program.
  std::function<bool()> is_interrupted;

 private:
  using Lock = std::unique_lock<std::mutex>;
  // A thread that waits: the engine's own thread steps back until it has left.
  class Waiting {
   public:
    explicit Waiting(Engine& engine);
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ~Waiting();

   private:
    Engine& engine_;
  };

  Engine();
  // Polls until `finished`. The lock is held, and is held again afterwards unless a failure or the
  // end of the time came first.
  Outcome drive(Lock& lock, Clock::time_point slice, Clock::time_point deadline, bool may_interrupt,
                const std::function<bool()>& finished);
  bool acquire(Lock& lock, Clock::time_point deadline);
  void call_blocking(const char* what, int64_t timeout_ms, std::function<void()> function);
  std::shared_ptr<Communicator> make(const char* what, int64_t timeout_ms, const std::string& name,
                                     std::function<MPI_Comm()> function);
  void finish_collectives(const char* what, int64_t timeout_ms);
  bool poll();
  void add(Operation& operation);
  bool wait(Lock& lock, Request& request, Clock::time_point slice, Clock::time_point deadline, int64_t limit_ms,
            bool may_interrupt);
  Lock acquire_for(const Communicator& communicator);
  bool acquire_after_failure(Lock& lock);
  std::string reason_of(Outcome outcome, int64_t timeout_ms) const;
  void end_all(Communicator& communicator, const std::string& reason, bool timed_out);
  void publish(const Operation& operation);
  std::string reason() const;
  void run_thread();

  std::mutex owner_;
  std::vector<Operation*> active_;        // guarded by owner_, in the order of their starts
  std::atomic<size_t> active_count_ = 0;  // its size
  std::atomic<int> foreground_ = 0;       // threads that wait and drive
  std::mutex wake_mutex_;
  std::condition_variable wake_;
  bool has_thread_ = false;
  std::atomic<std::thread::id> thread_;

  std::atomic<bool> failed_ = false;
  mutable std::mutex failure_mutex_;
  std::string failure_;

  std::atomic<bool> is_open_ = false;
  bool initialized_here_ = false, is_stopped_ = false;
  std::atomic<bool> has_timed_out_ = false;
  int rank_ = -1, ranks_ = 0;

  struct Current {
    std::atomic<bool> runs = false;
    std::atomic<Kind> kind = Kind::barrier;
    std::atomic<int32_t> dtype = 0;
    std::atomic<uint64_t> count = 0, number = 0;
  } current_;
};

}  // namespace candelabra::mpi
