// An all_reduce by memory that the ranks share.
//
// Each rank combines one part of a piece and takes the others' parts, so that an element is
// combined once and all ranks have the same bits. Three steps per piece, none of which waits: a
// step runs when the other ranks have come far enough.
#pragma once

#include "reductions.hpp"
#include "shared_memory.hpp"

namespace candelabra::mpi {

class SharedReduction {
 public:
  // Tensors of at least so many bytes are worth it; smaller ones are left to MPI.
  static constexpr int64_t least_bytes = 4 << 10;

  // `call` is what other ranks must call, too; a mean is divided here.
  SharedReduction(SharedMemory& memory, const SharedCall& call, const Reduced& elements, const std::byte* send,
                  std::byte* receive);

  // Does the next step. Returns whether there was one. Throws if ranks have called different
  // things.
  bool advance();
  bool is_finished() const { return taken_ == last_; }

 private:
  struct Range {
    int64_t at, size;  // in elements of the tensor
  };
  Range piece(int64_t number) const;
  Range part(const Range& piece, int rank) const;
  bool have_reached(std::atomic<int64_t> SharedMemory::Progress::* what, int64_t number) const;
  bool give();
  bool combine();
  bool take();
  void combine_block(const Range& block, int64_t offset, int64_t number);
  void check_calls() const;

  SharedMemory& memory_;
  const SharedCall call_;
  const Reduced elements_;
  const std::byte* const send_;
  std::byte* const receive_;
  const int64_t itemsize_, piece_, first_, last_;  // the pieces are numbered from first_ + 1 to last_
  int64_t given_, combined_, taken_;
};

}  // namespace candelabra::mpi
