// Decides whether large results are written with non-temporal stores.
//
// Non-temporal stores do not read the destination's lines first, and they leave the caches to other
// data. In a pass that only writes, such as a fill, they halve the traffic. If as much is read,
// their speed depends on the processor, and no register tells. Both kinds are timed on the first
// large moves of a process, and the faster one is kept for such moves.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace candelabra::cpu {

// Results of at least this many bytes may use non-temporal stores: half of the last-level cache,
// clamped to 4 to 32 MiB. INT64_MAX if CANDELABRA_CPU_STREAMING is 0.
int64_t streaming_threshold();

// The same for results computed from little input: an eighth of the cache.
int64_t computed_streaming_threshold();

// Moves of more bytes, reads included, are mostly between memory and memory: half of the last-level
// cache, at least 8 MiB.
int64_t memory_move_bytes();

// How a move stores that reads as many bytes as it writes: by ordinary stores; by four streams of
// them, for moves between memory and memory; or by non-temporal stores.
enum class MoveStores { Ordinary, Interleaved, NonTemporal };

// For a move of `written` bytes. `non_temporal`: whether non-temporal stores are faster.
MoveStores move_stores(int64_t written, bool non_temporal);
// The same, by the size alone.
inline MoveStores move_stores(int64_t written) {
  return move_stores(written, written >= streaming_threshold());
}

// One pass over memory that reads as much as it writes. Chooses whether its stores are
// non-temporal, and times them during trials.
class LargeMove {
 public:
  // `written`: bytes of results. `moved`: bytes written and read. `is_steady`: the pass is
  // sequential and does little else, so that its time measures the stores.
  LargeMove(int64_t written, int64_t moved, bool is_steady = true);
  ~LargeMove();
  LargeMove(const LargeMove&) = delete;
  LargeMove& operator=(const LargeMove&) = delete;
  bool is_non_temporal() const { return non_temporal_; }

 private:
  int64_t moved_;
  bool non_temporal_, is_trial_ = false;
  std::chrono::steady_clock::time_point start_;
};

// Throws Failure(CB_VALUE_ERROR) if CANDELABRA_CPU_STREAMING is set to neither 0 nor 1.
void check_streaming_choice();

// The choice and its reason, for `python -m candelabra.backends`.
std::string describe_streaming();

}  // namespace candelabra::cpu
