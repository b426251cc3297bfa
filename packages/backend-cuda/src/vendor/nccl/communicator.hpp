// An NCCL communicator with a timeout.
//
// Communicators are non-blocking: a NCCL call that needs other ranks returns immediately, and the
// calling thread polls until it is done or the timeout is over. A watchdog thread polls events
// behind all collectives. If one hangs on the device, it aborts the communicator: the kernels that
// wait for other ranks return, and the next operator or synchronization of the device raises the
// reason.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "vendor/nccl/nccl.hpp"

namespace candelabra::cuda {

class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  using Clock = std::chrono::steady_clock;

  static std::shared_ptr<Communicator> create(int device, const ncclUniqueId& id, int rank, int ranks,
                                              int64_t timeout_ms, const char* name);
  // Null for ranks without a color.
  std::shared_ptr<Communicator> split(int color, int key, int64_t timeout_ms, const char* name);
  Communicator(int device, int64_t timeout_ms, const char* name);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator();

  int device() const { return device_; }
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  // Calls f(comm) under the lock, with the current device set, and then watches the collective.
  // Within a group, this happens at its end.
  template <typename F>
  void run(const char* what, cudaStream_t stream, F&& f) {
    const Use use(*this);
    const ncclResult_t result = f(comm_);
    if (joins_group(what, stream)) {
      if (result != ncclSuccess && result != ncclInProgress) settle(result, what, deadline());
      return;
    }
    settle(result, what, deadline());
    watch(what, stream);
  }

  void finish();                          // waits for the queued work and destroys the communicator
  void abort(const std::string& reason);  // does not wait
  void query();                           // throws if something failed
  void wait(int64_t timeout_ms);

  // Polls the pending work; true if there is some left. Called by the watchdog thread.
  bool look();

  static void group_begin();
  static void group_end();

 private:
  // Permission to call NCCL with this communicator. Throws if it has ended.
  class Use {
   public:
    explicit Use(Communicator& of);

   private:
    std::unique_lock<std::recursive_mutex> lock_;
    int before_;

   public:
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use();
  };
  struct Pending {
    std::string what;
    uint64_t number;
    cudaEvent_t event;
    Clock::time_point deadline;
  };

  Clock::time_point deadline() const;
  bool joins_group(const char* what, cudaStream_t stream);
  void settle(ncclResult_t result, const char* what, Clock::time_point deadline);
  void watch(const char* what, cudaStream_t stream);
  void adopt(ncclComm_t comm);
  std::string title() const;
  std::string waited_for(const std::string& what, uint64_t number) const;
  // The failure of pending work, or an empty string. Removes completed work from the list.
  std::string trouble(Clock::time_point now);
  void end(const std::string& reason);
  void release_events();

  const int device_;
  const int64_t timeout_ms_;
  const std::string name_;
  int rank_ = -1, ranks_ = 0;

  std::recursive_mutex mutex_;
  ncclComm_t comm_ = nullptr;
  std::string failure_;  // the reason why it has ended
  bool finished_ = false;
  uint64_t count_ = 0;
  std::deque<Pending> pending_;
  std::vector<cudaEvent_t> events_;  // unused
};

}  // namespace candelabra::cuda
