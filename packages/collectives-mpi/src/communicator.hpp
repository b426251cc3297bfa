// A communicator of MPI: its ranks, its time limit, and the reason why it ended.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "mpi.hpp"
#include "shared_memory.hpp"

namespace candelabra::mpi {

class Operation;
using Clock = std::chrono::steady_clock;

class Communicator {
 public:
  // All of its ranks make it at the same time.
  Communicator(MPI_Comm comm, int64_t timeout_ms, std::string name);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  MPI_Comm comm() const { return comm_; }
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  SharedMemory* shared_memory() const { return shared_memory_.get(); }  // or null
  std::string title() const;                                            // "communicator 'name' (rank 0 of 2)"

  int64_t timeout_ms() const { return timeout_ms_; }
  void set_timeout(int64_t timeout_ms) { timeout_ms_ = timeout_ms; }
  // The end of an operation that starts now.
  Clock::time_point deadline() const;

  // The following need the engine's lock.
  uint64_t next_number() { return ++count_; }
  // Collectives run one after another, so that the order of their pieces is the same on all ranks.
  const Operation* running = nullptr;
  int active = 0;       // operations that are queued or running
  std::string failure;  // the reason why it has ended
  void free();

 private:
  MPI_Comm comm_;
  int rank_ = -1, ranks_ = 0;
  std::atomic<int64_t> timeout_ms_;
  const std::string name_;
  std::unique_ptr<SharedMemory> shared_memory_;
  uint64_t count_ = 0;
};

}  // namespace candelabra::mpi
