#include "communicator.hpp"

#include <utility>

namespace candelabra::mpi {

Communicator::Communicator(MPI_Comm comm, int64_t timeout_ms, std::string name)
    : comm_(comm), timeout_ms_(timeout_ms), name_(std::move(name)) {
  succeed(mpi().comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  succeed(mpi().comm_rank(comm_, &rank_), "MPI_Comm_rank");
  succeed(mpi().comm_size(comm_, &ranks_), "MPI_Comm_size");
  shared_memory_ = SharedMemory::make(comm_, rank_, ranks_);
}

std::string Communicator::title() const {
  const std::string named = name_.empty() ? "communicator" : "communicator '" + name_ + "'";
  return named + " (rank " + std::to_string(rank_) + " of " + std::to_string(ranks_) + ")";
}

Clock::time_point Communicator::deadline() const {
  const int64_t limit = timeout_ms_;
  return limit > 0 ? Clock::now() + std::chrono::milliseconds(limit) : Clock::time_point::max();
}

// A communicator that has failed may have requests under way, and is kept.
void Communicator::free() {
  if (!failure.empty()) return;
  failure = title() + " was closed";
  mpi().comm_free(&comm_);
}

}  // namespace candelabra::mpi
