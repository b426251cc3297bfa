#include "operation.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "candelabra/collectives.h"
#include "error.hpp"

namespace candelabra::mpi {
namespace {

// Larger messages are cut, so that what one rank has reduced is still cached when others read it.
constexpr int64_t piece_bytes = 1 << 20;

constexpr const char* names[] = {"all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter",
                                 "all_to_all", "barrier",   "send",   "receive"};

bool reduces(Kind kind) {
  return kind == Kind::all_reduce || kind == Kind::reduce || kind == Kind::reduce_scatter;
}
bool is_cut(Kind kind) {
  return kind == Kind::all_reduce || kind == Kind::reduce || kind == Kind::broadcast;
}
bool has_peer(Kind kind) {
  return kind == Kind::broadcast || kind == Kind::reduce || kind == Kind::send || kind == Kind::receive;
}

bool overlap(const std::byte* a, int64_t a_bytes, const std::byte* b, int64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

}  // namespace

std::string describe(Kind kind, int32_t dtype, uint64_t count, uint64_t number) {
  std::string text = names[static_cast<size_t>(kind)];
  if (kind == Kind::barrier)
    text += "()";
  else
    text += "(" + std::string(dtype_name(dtype)) + " " + std::to_string(count) + ")";
  return text + " (number " + std::to_string(number) + ")";
}

Operation::Operation(std::shared_ptr<Communicator> communicator, const Arguments& arguments)
    : communicator_(std::move(communicator)),
      arguments_(arguments),
      number_(communicator_->next_number()),
      deadline_(communicator_->deadline()),
      send_(static_cast<const std::byte*>(arguments.send)) {
  const Kind kind = arguments.kind;
  const char* name = names[static_cast<size_t>(kind)];
  if (!communicator_->failure.empty()) throw Failure(CB_RUNTIME_ERROR, communicator_->failure);
  const int peer = arguments.peer;
  const bool is_any = kind == Kind::receive && peer == MPI_ANY_SOURCE;
  if (has_peer(kind) && !is_any && (peer < 0 || peer >= communicator_->ranks()))
    throw Failure(CB_VALUE_ERROR, std::string(name) + ": rank " + std::to_string(peer) + " is not among the " +
                                      std::to_string(communicator_->ranks()) + " ranks");
  itemsize_ = itemsize(arguments.dtype);
  if (reduces(kind))
    elements_ = reduced(name, arguments.dtype, arguments.reduction);
  else
    elements_ = {moved(arguments.dtype), MPI_OP_NULL};
  const auto count = static_cast<int64_t>(arguments.count);
  piece_ = is_cut(kind) ? std::max<int64_t>(1, piece_bytes / itemsize_) : count;
  ++communicator_->active;
}

Operation::~Operation() {
  if (!is_finished_) finish();
}

std::string Operation::title() const {
  return describe(arguments_.kind, arguments_.dtype, arguments_.count, number_) + " of " + communicator_->title();
}

// Copies what the first piece needs in another place.
void Operation::prepare() {
  const auto count = static_cast<int64_t>(arguments_.count);
  auto* receive = static_cast<std::byte*>(arguments_.receive);
  const int64_t bytes = count * itemsize_, all = bytes * communicator_->ranks();
  switch (arguments_.kind) {
    case Kind::broadcast:
      if (communicator_->rank() == arguments_.peer && send_ && send_ != receive)
        std::memmove(receive, send_, static_cast<size_t>(bytes));
      return;
    case Kind::all_reduce:
    case Kind::reduce:
      if (send_ == receive || !receive || !overlap(send_, bytes, receive, bytes)) return;
      staged_ = std::make_unique<std::byte[]>(static_cast<size_t>(bytes));
      std::memcpy(staged_.get(), send_, static_cast<size_t>(bytes));
      break;
    case Kind::all_gather:
      if (send_ == receive + communicator_->rank() * bytes || !overlap(send_, bytes, receive, all)) return;
      staged_ = std::make_unique<std::byte[]>(static_cast<size_t>(bytes));
      std::memcpy(staged_.get(), send_, static_cast<size_t>(bytes));
      break;
    case Kind::reduce_scatter:
    case Kind::all_to_all:
      if (!overlap(send_, all, receive, arguments_.kind == Kind::all_to_all ? all : bytes)) return;
      staged_ = std::make_unique<std::byte[]>(static_cast<size_t>(all));
      std::memcpy(staged_.get(), send_, static_cast<size_t>(all));
      break;
    default:
      return;
  }
  send_ = staged_.get();
}

int Operation::start_reduction(int64_t at, int64_t size) {
  auto* receive = static_cast<std::byte*>(arguments_.receive) + at * itemsize_;
  const std::byte* send = send_ + at * itemsize_;
  const bool in_place = send_ == arguments_.receive;
  const int64_t count = size * elements_.per_element;
  const MPI_Comm comm = communicator_->comm();
  if (arguments_.kind == Kind::all_reduce)
    return mpi().iallreduce(in_place ? MPI_IN_PLACE : send, receive, count, elements_.type, elements_.operation, comm,
                            &request_);
  const bool is_root = communicator_->rank() == arguments_.peer;
  return mpi().ireduce(in_place && is_root ? MPI_IN_PLACE : send, is_root ? receive : nullptr, count, elements_.type,
                       elements_.operation, arguments_.peer, comm, &request_);
}

int Operation::start_piece() {
  const auto total = static_cast<int64_t>(arguments_.count);
  size_ = std::min(piece_, total - at_);
  auto* receive = static_cast<std::byte*>(arguments_.receive);
  const int64_t count = size_ * elements_.per_element;
  const MPI_Comm comm = communicator_->comm();
  const MPI_Datatype type = elements_.type;
  switch (arguments_.kind) {
    case Kind::all_reduce:
    case Kind::reduce:
      return start_reduction(at_, size_);
    case Kind::broadcast:
      return mpi().ibcast(receive + at_ * itemsize_, count, type, arguments_.peer, comm, &request_);
    case Kind::all_gather: {
      const bool in_place = send_ == receive + communicator_->rank() * total * itemsize_;
      return mpi().iallgather(in_place ? MPI_IN_PLACE : send_, count, type, receive, count, type, comm, &request_);
    }
    case Kind::reduce_scatter:
      return mpi().ireduce_scatter_block(send_, receive, count, type, elements_.operation, comm, &request_);
    case Kind::all_to_all:
      return mpi().ialltoall(send_, count, type, receive, count, type, comm, &request_);
    case Kind::barrier:
      return mpi().ibarrier(comm, &request_);
    case Kind::send:
      return mpi().isend(send_, count, type, arguments_.peer, arguments_.tag, comm, &request_);
    case Kind::receive:
      return mpi().irecv(receive, count, type, arguments_.peer, arguments_.tag, comm, &request_);
  }
  return MPI_ERR_INTERN;
}

void Operation::end_piece() {
  const Kind kind = arguments_.kind;
  const bool has_result = kind != Kind::reduce || communicator_->rank() == arguments_.peer;
  if (reduces(kind) && has_result && arguments_.reduction == CB_REDUCE_MEAN)
    divide(static_cast<std::byte*>(arguments_.receive) + at_ * itemsize_, size_, arguments_.dtype,
           communicator_->ranks());
  at_ += size_;
}

void Operation::finish() {
  is_finished_ = true;
  --communicator_->active;
  if (communicator_->running == this) communicator_->running = nullptr;
}

bool Operation::advance_shared() {
  try {
    if (!shared_->advance()) return false;
  } catch (const Failure& failure) {
    abandon(failure.what(), false);
    return true;
  }
  if (shared_->is_finished()) finish();
  return true;
}

bool Operation::advance() {
  int error = MPI_SUCCESS;
  bool has_changed = false;
  if (!is_started_) {
    if (is_ordered()) {
      if (communicator_->running) return false;
      communicator_->running = this;
    }
    is_started_ = has_changed = true;
    try {
      prepare();
    } catch (const std::bad_alloc&) {
      abandon("out of memory", false);
      return true;
    }
    if (SharedMemory* memory = communicator_->shared_memory();
        memory && arguments_.kind == Kind::all_reduce &&
        static_cast<int64_t>(arguments_.count) * itemsize_ >= SharedReduction::least_bytes)
      shared_ = std::make_unique<SharedReduction>(*memory,
                                                  SharedCall{arguments_.count, arguments_.dtype, arguments_.reduction},
                                                  elements_, send_, static_cast<std::byte*>(arguments_.receive));
    else
      error = start_piece();
  }
  if (shared_) return advance_shared() || has_changed;
  int is_done = 0;
  MPI_Status status;
  if (error == MPI_SUCCESS) error = mpi().test(&request_, &is_done, &status);
  if (error == MPI_SUCCESS && !is_done) return has_changed;
  if (error == MPI_SUCCESS) {
    source_ = status.MPI_SOURCE;
    end_piece();
    if (at_ >= static_cast<int64_t>(arguments_.count)) {
      finish();
      return true;
    }
    error = start_piece();
  }
  if (error != MPI_SUCCESS) abandon(error_text(error), false);
  return true;
}

void Operation::abandon(const std::string& reason, bool timed_out) {
  if (is_finished_) return;
  failure_ = reason;
  timed_out_ = timed_out;
  if (communicator_->failure.empty()) communicator_->failure = title() + ": " + reason;
  [[maybe_unused]] const std::byte* leaked = staged_.release();  // MPI may still read it
  finish();
}

void Operation::rethrow() const {
  if (!failure_.empty()) throw OperationFailure(CB_RUNTIME_ERROR, title(), failure_, timed_out_);
}

}  // namespace candelabra::mpi
