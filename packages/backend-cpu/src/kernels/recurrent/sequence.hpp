// What all steps of a recurrent layer share: the rows of each step, and tensors in the compute
// type.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "dtypes.hpp"
#include "memory/allocator.hpp"
#include "simd/load_elements.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace recurrent {

// Rows of the batch that go through the steps together. Their intermediates fit L2.
constexpr int64_t block = 32;
// The weight is packed if all steps together have at least this many rows.
constexpr int64_t rows_worth_packing = 48;
// A weight of more bytes is divided among the threads, so that each keeps its part in L2 through
// all steps. With a smaller weight the threads divide the rows and never wait for each other.
constexpr int64_t divided_weight = int64_t{1} << 20;

// Steps of `batch` sequences. Tensors over time store the rows of one time step after those of the
// previous one. A packed sequence has only the rows of sequences that have not ended, which come
// first.
class Sequence {
 public:
  Sequence(int64_t steps, int64_t batch, int64_t hidden, std::span<const int64_t> batch_sizes, bool reverse)
      : steps(steps), batch(batch), hidden(hidden), reverse_(reverse), counts_(batch_sizes) {
    starts_.resize(static_cast<size_t>(steps) + 1);
    for (int64_t time = 0; time < steps; ++time)
      starts_[static_cast<size_t>(time) + 1] = starts_[static_cast<size_t>(time)] + rows_at(time);
  }
  const int64_t steps, batch, hidden;

  bool is_packed() const { return !counts_.empty(); }
  bool empty() const { return steps == 0 || batch == 0 || hidden == 0; }
  int64_t time(int64_t step) const { return reverse_ ? steps - 1 - step : step; }
  int64_t rows_at(int64_t time) const { return counts_.empty() ? batch : counts_[static_cast<size_t>(time)]; }
  // The number of sequences at a step.
  int64_t rows(int64_t step) const { return rows_at(time(step)); }
  int64_t all_rows() const { return starts_.back(); }
  // The row of a tensor over time that holds a batch row at a step.
  int64_t at(int64_t step, int64_t row) const { return starts_[static_cast<size_t>(time(step))] + row; }
  bool reverse() const { return reverse_; }

 private:
  bool reverse_;
  std::span<const int64_t> counts_;
  std::vector<int64_t> starts_;
};

// A contiguous tensor in the compute type: its own memory, or a copy for half precisions.
template <typename T>
class Numbers {
 public:
  using C = compute_t<T>;
  Numbers(const T* from, int64_t count) : copy_(is_half_v<T> && from ? count : 0) {
    if constexpr (is_half_v<T>) {
      if (!from) return;
      parallel_for(count, light_grain, [&](int64_t begin, int64_t end) {
        load_contiguous(from + begin, end - begin, copy_.data() + begin);
      });
      data_ = copy_.data();
    } else {
      data_ = from;
    }
  }
  const C* data() const { return data_; }

 private:
  Scratch<C> copy_;
  const C* data_ = nullptr;
};

}  // namespace recurrent
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
