// Whether large results are written past the caches.
//
// Such stores save reading the lines that are overwritten, a third of what a copy moves, and leave the caches to what is read
// again. How fast they are is another matter: two threads of a Sapphire Rapids copy 64 MiB in 2.6 ms by them and in 4.4 by ordinary
// stores, two of a Cascade Lake apply relu to 128 MiB in 18.9 and in 14.5. No register tells, so both ways are timed on the first
// large moves of a process, and the quicker one is kept.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace candelabra::cpu {

// Results of so many bytes go past the caches: those that the last cache, which others use as well, would not keep until they are
// read. Between 4 and 32 MiB; INT64_MAX where ordinary stores were found to be quicker, or CANDELABRA_CPU_STREAMING is 0. (On 2
// threads beside a cache of more than 64 MiB, a copy of 4 MiB and a pass over it take 190 us by ordinary stores and 290 past the
// caches, of 16 MiB 890 and 1220; beside one of 36 MiB a copy of 8 MiB 415 and 710.)
int64_t streaming_threshold();

// One pass over memory that reads and writes in order and does little else, so that its time tells how quick the stores are.
class LargeMove {
 public:
  // `written` bytes of results, `moved` bytes with what is read.
  LargeMove(int64_t written, int64_t moved);
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
