// Whether large results are written past the caches.
//
// Such stores save reading the lines that are overwritten, and leave the caches to what is read again. Where a result is all that
// moves, as in a fill, they halve the traffic; where as much is read, how fast they are is another matter: two threads of a
// Sapphire Rapids copy 64 MiB in 2.6 ms by them and in 4.4 by ordinary stores, two of a Cascade Lake apply relu to 128 MiB in 18.9
// and in 14.5. No register tells, so both ways are timed on the first large moves of a process, and the quicker one is kept for
// those.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace candelabra::cpu {

// Results of so many bytes, half of the last cache, go past the caches, where they are most of what moves. Between 4 and 32 MiB;
// INT64_MAX where CANDELABRA_CPU_STREAMING is 0. (Beside a cache of 36 MiB two threads fill 16 MiB in 620 us by ordinary stores and
// in 1250 past the caches, and join 32 MiB in 6.0 ms and in 3.3.)
int64_t streaming_threshold();

// The same for results that are computed of little input, an eighth: an outer product of 16 MiB takes 1260 us and 870.
int64_t computed_streaming_threshold();

// Moves of more bytes, with what is read, are between memory and memory for the most part: half of the last cache.
int64_t memory_move_bytes();

// One pass over memory that reads as much as it writes.
class LargeMove {
 public:
  // `written` bytes of results, `moved` bytes with what is read. `is_steady`: it reads and writes in order and does little else, so
  // that its time tells how quick the stores are.
  LargeMove(int64_t written, int64_t moved, bool is_steady = true);
  ~LargeMove();
  LargeMove(const LargeMove&) = delete;
  LargeMove& operator=(const LargeMove&) = delete;
  bool past_caches() const { return past_caches_; }

 private:
  int64_t moved_;
  bool past_caches_, is_trial_ = false;
  std::chrono::steady_clock::time_point start_;
};

// Throws Failure(CB_VALUE_ERROR) where CANDELABRA_CPU_STREAMING is neither 0 nor 1.
void check_streaming_choice();

// What was chosen and why, for `python -m candelabra.backends`.
std::string describe_streaming();

}  // namespace candelabra::cpu
