// One collective, send or receive: its pieces, each a non-blocking call of MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "communicator.hpp"
#include "reductions.hpp"
#include "shared_reduction.hpp"

namespace candelabra::mpi {

enum class Kind : uint8_t {
  all_reduce,
  broadcast,
  reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  barrier,
  send,
  receive
};

struct Arguments {
  Kind kind;
  const void* send;
  void* receive;
  uint64_t count;  // elements of one rank's part
  int32_t dtype;
  int32_t reduction;
  int32_t peer;  // or the root
  int32_t tag;
};

std::string describe(Kind kind, int32_t dtype, uint64_t count, uint64_t number);

class Operation {
 public:
  // Throws if the arguments are not valid, or the communicator has ended.
  Operation(std::shared_ptr<Communicator> communicator, const Arguments& arguments);
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  ~Operation();

  // Starts it, or tests it and starts the next piece. Returns whether that changed anything. Needs
  // the engine's lock.
  bool advance();
  // Collectives of a communicator run one after another; sends and receives do not wait for them.
  bool is_ordered() const { return arguments_.kind != Kind::send && arguments_.kind != Kind::receive; }
  bool is_finished() const { return is_finished_; }
  // Ends it without its result. MPI may still write to its memory.
  void abandon(const std::string& reason, bool timed_out);
  void rethrow() const;  // throws its failure, if it has one

  Communicator& communicator() const { return *communicator_; }
  const Arguments& arguments() const { return arguments_; }
  uint64_t number() const { return number_; }
  Clock::time_point deadline() const { return deadline_; }
  int source() const { return source_; }  // of what was received
  std::string title() const;

 private:
  void prepare();
  bool advance_shared();
  int start_piece();
  int start_reduction(int64_t at, int64_t size);
  void end_piece();
  void finish();

  const std::shared_ptr<Communicator> communicator_;
  const Arguments arguments_;
  const uint64_t number_;
  const Clock::time_point deadline_;
  int64_t itemsize_ = 1;
  Reduced elements_{};
  int64_t piece_ = 0;  // elements in a piece
  int64_t at_ = 0;     // elements before the piece that runs
  int64_t size_ = 0;   // elements in it
  MPI_Request request_ = MPI_REQUEST_NULL;
  bool is_started_ = false, is_finished_ = false;
  int source_ = -1;
  const std::byte* send_ = nullptr;
  std::unique_ptr<SharedReduction> shared_;  // null where MPI does it
  // A copy of what is sent, where the result would overwrite it.
  std::unique_ptr<std::byte[]> staged_;
  std::string failure_;
  bool timed_out_ = false;
};

}  // namespace candelabra::mpi
