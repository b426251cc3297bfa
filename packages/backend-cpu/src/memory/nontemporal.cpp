#include "memory/nontemporal.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "kernels.hpp"

namespace candelabra::cpu {
namespace {

enum StoreKind { ordinary, non_temporal };
constexpr int undecided = -1;
// Trials of each kind of store. The fastest counts, because first passes over new memory include
// page faults.
constexpr int trials_of_each = 3;
// Required advantage of ordinary stores. If both are alike, non-temporal stores leave the caches to
// other data.
constexpr double required_advantage = 1.05;

std::atomic<int> begun{0}, ended{0}, chosen{undecided};
std::array<std::atomic<double>, 2> best_rates{};  // bytes a second

// The kind of store that CANDELABRA_CPU_STREAMING names, or undecided.
int forced() {
  static const int way = [] {
    const char* text = std::getenv("CANDELABRA_CPU_STREAMING");
    const std::string_view value = text ? text : "";
    if (value.empty()) return undecided;
    if (value != "0" && value != "1")
      throw failure(CB_VALUE_ERROR,
                    "the environment variable CANDELABRA_CPU_STREAMING must be \"0\" or \"1\", but is \"%s\"", text);
    return value == "1" ? static_cast<int>(non_temporal) : static_cast<int>(ordinary);
  }();
  return way;
}

int64_t last_level_cache() {
  static const int64_t bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes;
}

int64_t fraction_of_cache(int64_t parts) {
  return std::clamp<int64_t>(last_level_cache() / parts, int64_t{4} << 20, int64_t{32} << 20);
}

void note(StoreKind way, double rate) {
  std::atomic<double>& best = best_rates[way];
  double seen = best.load();
  while (rate > seen && !best.compare_exchange_weak(seen, rate)) {
  }
  if (ended.fetch_add(1) + 1 == 2 * trials_of_each)
    chosen = best_rates[ordinary] > required_advantage * best_rates[non_temporal] ? ordinary : non_temporal;
}

}  // namespace

int64_t streaming_threshold() {
  static const int64_t bytes = fraction_of_cache(2);
  return forced() == ordinary ? INT64_MAX : bytes;
}

int64_t computed_streaming_threshold() {
  static const int64_t bytes = fraction_of_cache(8);
  return forced() == ordinary ? INT64_MAX : bytes;
}

int64_t memory_move_bytes() {
  static const int64_t bytes = std::max<int64_t>(last_level_cache() / 2, int64_t{8} << 20);
  return bytes;
}

MoveStores move_stores(int64_t written, bool non_temporal) {
  if (non_temporal) return MoveStores::NonTemporal;
  return 2 * written > memory_move_bytes() ? MoveStores::Interleaved : MoveStores::Ordinary;
}

LargeMove::LargeMove(int64_t written, int64_t moved, bool is_steady) : moved_(moved) {
  const int way = forced() == undecided ? chosen.load(std::memory_order_relaxed) : forced();
  non_temporal_ = written >= streaming_threshold() && way != ordinary;
  // A move that fits in the last-level cache says nothing about memory.
  if (!non_temporal_ || !is_steady || moved <= last_level_cache() || way != undecided) return;
  const int trial = begun.fetch_add(1);
  if (trial >= 2 * trials_of_each) return;
  is_trial_ = true;
  non_temporal_ = trial % 2 == 0;
  start_ = std::chrono::steady_clock::now();
}

LargeMove::~LargeMove() {
  if (!is_trial_) return;
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
  note(non_temporal_ ? non_temporal : ordinary, static_cast<double>(moved_) / std::max(passed.count(), 1e-9));
}

void check_streaming_choice() {
  forced();
}

std::string describe_streaming() {
  constexpr const char* names[] = {"ordinary", "non-temporal"};
  std::string line = "stores of large results: ";
  if (forced() != undecided) return line + names[forced()] + " (CANDELABRA_CPU_STREAMING)\n";
  const int way = chosen;
  if (way == undecided) return line + "non-temporal (to be measured on the first large ones)\n";
  char rates[100];
  std::snprintf(rates, sizeof rates, " (measured: non-temporal %.1f GB/s, ordinary %.1f GB/s)\n",
                best_rates[non_temporal] / 1e9, best_rates[ordinary] / 1e9);
  return line + names[way] + rates;
}

}  // namespace candelabra::cpu
