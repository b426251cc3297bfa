#include "shared_reduction.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "candelabra/collectives.h"
#include "error.hpp"

namespace candelabra::mpi {
namespace {

// Of each rank's part, so that vectors are aligned.
constexpr int64_t part_multiple = 16;
// Combined at a time, so that the result is cached when it is copied.
constexpr int64_t block_bytes = 16 << 10;

template <typename T>
void add(const std::byte* a, const std::byte* b, std::byte* sum, int64_t count) {
  const auto* left = reinterpret_cast<const T*>(a);
  const auto* right = reinterpret_cast<const T*>(b);
  auto* to = reinterpret_cast<T*>(sum);
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) to[i] = left[i] + right[i];
}

// result = a combined with b; the result may be a. MPI's own loop is not vectorized.
void combine_two(const Reduced& elements, const std::byte* a, const std::byte* b, std::byte* result, int64_t count,
                 int64_t bytes) {
  const int64_t values = count * elements.per_element;
  if (elements.operation == MPI_SUM && elements.type == MPI_FLOAT) return add<float>(a, b, result, values);
  if (elements.operation == MPI_SUM && elements.type == MPI_DOUBLE) return add<double>(a, b, result, values);
  if (result != a) std::memcpy(result, a, static_cast<size_t>(bytes));
  succeed(mpi().reduce_local(b, result, values, elements.type, elements.operation), "MPI_Reduce_local");
}

std::string text(const SharedCall& call) {
  return "all_reduce(" + std::string(dtype_name(call.dtype)) + " " + std::to_string(call.count) + ", reduction " +
         std::to_string(call.reduction) + ")";
}

}  // namespace

SharedReduction::SharedReduction(SharedMemory& memory, const SharedCall& call, const Reduced& elements,
                                 const std::byte* send, std::byte* receive)
    : memory_(memory),
      call_(call),
      elements_(elements),
      send_(send),
      receive_(receive),
      itemsize_(itemsize(call.dtype)),
      piece_(SharedMemory::piece_bytes / itemsize_),
      first_(memory.pieces),
      last_(first_ + (static_cast<int64_t>(call.count) + piece_ - 1) / piece_),
      given_(first_),
      combined_(first_),
      taken_(first_) {
  memory.pieces = last_;
}

SharedReduction::Range SharedReduction::piece(int64_t number) const {
  const int64_t at = (number - first_ - 1) * piece_;
  return {at, std::min(piece_, static_cast<int64_t>(call_.count) - at)};
}

SharedReduction::Range SharedReduction::part(const Range& piece, int rank) const {
  const int64_t ranks = memory_.ranks();
  const int64_t each = ((piece.size + ranks - 1) / ranks + part_multiple - 1) / part_multiple * part_multiple;
  const int64_t begin = std::min(piece.size, rank * each), end = std::min(piece.size, begin + each);
  return {piece.at + begin, end - begin};
}

bool SharedReduction::have_reached(std::atomic<int64_t> SharedMemory::Progress::* what, int64_t number) const {
  for (int rank = 0; rank < memory_.ranks(); ++rank)
    if ((memory_.progress(rank).*what).load(std::memory_order_acquire) < number) return false;
  return true;
}

// Ranks that are ahead fill further slots, rather than wait.
bool SharedReduction::advance() {
  return take() || combine() || give();
}

bool SharedReduction::give() {
  if (given_ == last_) return false;
  const int64_t number = given_ + 1;
  if (!have_reached(&SharedMemory::Progress::combined, number - SharedMemory::slots)) return false;
  const Range all = piece(number), own = part(all, memory_.rank());
  std::byte* to = memory_.given(memory_.rank(), number);
  const auto copy = [&](int64_t begin, int64_t end) {
    std::memcpy(to + (begin - all.at) * itemsize_, send_ + begin * itemsize_,
                static_cast<size_t>((end - begin) * itemsize_));
  };
  copy(all.at, own.at);
  copy(own.at + own.size, all.at + all.size);
  auto& progress = memory_.progress(memory_.rank());
  progress.calls[number % SharedMemory::slots] = call_;
  given_ = number;
  progress.given.store(number, std::memory_order_release);
  return true;
}

void SharedReduction::check_calls() const {
  for (int rank = 0; rank < memory_.ranks(); ++rank) {
    const SharedCall& call = memory_.progress(rank).calls[(first_ + 1) % SharedMemory::slots];
    if (call != call_)
      throw Failure(CB_RUNTIME_ERROR, "ranks call different collectives: " + text(call_) + " on rank " +
                                          std::to_string(memory_.rank()) + ", " + text(call) + " on rank " +
                                          std::to_string(rank));
  }
}

bool SharedReduction::combine() {
  if (combined_ == given_) return false;
  const int64_t number = combined_ + 1;
  if (!have_reached(&SharedMemory::Progress::given, number) ||
      !have_reached(&SharedMemory::Progress::taken, number - SharedMemory::slots))
    return false;
  if (combined_ == first_) check_calls();
  const Range own = part(piece(number), memory_.rank());
  const int64_t block = block_bytes / itemsize_;
  for (int64_t offset = 0; offset < own.size; offset += block)
    combine_block({own.at + offset, std::min(block, own.size - offset)}, offset, number);
  combined_ = number;
  memory_.progress(memory_.rank()).combined.store(number, std::memory_order_release);
  return true;
}

// In the order of the ranks, whichever of them does it.
void SharedReduction::combine_block(const Range& block, int64_t offset, int64_t number) {
  const int64_t bytes = block.size * itemsize_, in_piece = (block.at - piece(number).at) * itemsize_;
  const auto source = [&](int rank) {
    return rank == memory_.rank() ? send_ + block.at * itemsize_ : memory_.given(rank, number) + in_piece;
  };
  std::byte* result = memory_.result(memory_.rank(), number) + offset * itemsize_;
  combine_two(elements_, source(0), source(1), result, block.size, bytes);
  for (int rank = 2; rank < memory_.ranks(); ++rank)
    combine_two(elements_, result, source(rank), result, block.size, bytes);
  if (call_.reduction == CB_REDUCE_MEAN) divide(result, block.size, call_.dtype, memory_.ranks());
  std::memcpy(receive_ + block.at * itemsize_, result, static_cast<size_t>(bytes));
}

bool SharedReduction::take() {
  if (taken_ == combined_) return false;
  const int64_t number = taken_ + 1;
  if (!have_reached(&SharedMemory::Progress::combined, number)) return false;
  const Range all = piece(number);
  for (int rank = 0; rank < memory_.ranks(); ++rank) {
    const Range range = part(all, rank);
    if (rank == memory_.rank() || range.size == 0) continue;
    std::memcpy(receive_ + range.at * itemsize_, memory_.result(rank, number),
                static_cast<size_t>(range.size * itemsize_));
  }
  taken_ = number;
  memory_.progress(memory_.rank()).taken.store(number, std::memory_order_release);
  return true;
}

}  // namespace candelabra::mpi
