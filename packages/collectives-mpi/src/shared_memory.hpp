// Memory that the ranks of a communicator share, if all of them run on one machine.
//
// MPI copies each message twice, or once by a system call that costs more than a copy. Here a rank
// reads what the others have written. The memory belongs to no file: it ends with the processes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "mpi.hpp"

namespace candelabra::mpi {

// What ranks must have in common before they combine elements.
struct SharedCall {
  uint64_t count;
  int32_t dtype, reduction;
  bool operator==(const SharedCall&) const = default;
};

class SharedMemory {
  // Only make() has it, so that std::make_unique can call a constructor that others cannot.
  struct Passkey {
    explicit Passkey() = default;
  };

 public:
  SharedMemory(Passkey, std::byte* memory, int rank, int ranks) : memory_(memory), rank_(rank), ranks_(ranks) {}
  // Pieces under way at a time: a rank may be so far ahead of the others.
  static constexpr int64_t slots = 4;
  static constexpr int64_t piece_bytes = 128 << 10;

  // Null if the ranks are on several machines, or cannot see one another. All ranks of the
  // communicator must call it; it waits for them.
  static std::unique_ptr<SharedMemory> make(MPI_Comm comm, int rank, int ranks);
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  // The number of the last piece that a rank has put into its slot, has combined its part of, and
  // has taken the other parts of. Each has a cache line of its own.
  struct Progress {
    alignas(64) std::atomic<int64_t> given;
    alignas(64) std::atomic<int64_t> combined;
    alignas(64) std::atomic<int64_t> taken;
    alignas(64) SharedCall calls[slots];
  };
  Progress& progress(int rank) const;
  // The elements of a rank that others combine, and its part of the result.
  std::byte* given(int rank, int64_t piece) const;
  std::byte* result(int rank, int64_t piece) const;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  int64_t pieces = 0;  // that earlier operations had

 private:
  std::byte* const memory_;
  const int rank_, ranks_;
};

}  // namespace candelabra::mpi
