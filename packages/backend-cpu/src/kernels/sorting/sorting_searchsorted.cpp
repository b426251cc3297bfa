// _searchsorted: the insertion indices of values in sorted rows. The binary search has no
// data-dependent branches, which could not be predicted.
#include <bit>
#include <limits>

#include "candelabra/arguments/sorting.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "memory/allocator.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// The number of elements before the value. As in PyTorch, NaN comes after every element that does
// not compare larger.
template <bool Right, typename T, typename At>
int64_t search_one(T value, int64_t length, At&& at) {
  int64_t low = 0;
  while (length > 0) {
    const int64_t half = length / 2;
    const T probe = at(low + half);
    const bool after = Right ? !(probe > value) : !(probe >= value);
    low = after ? low + half + 1 : low;
    length = after ? length - half - 1 : half;
  }
  return low;
}

// The same for several values in one sequence. Searches advance together, so that their memory
// latencies overlap.
template <bool Right, typename C, typename T, typename R>
void search_many(const T* queries, int64_t n, const C* sequence, int32_t length, R* to) {
  constexpr int64_t searches = 16;
  const int steps = std::bit_width(static_cast<uint32_t>(length));
  C value[searches] = {};
  int32_t low[searches], left[searches];
  for (int64_t begin = 0; begin < n; begin += searches) {
    const int64_t count = std::min(searches, n - begin);
    for (int64_t j = 0; j < count; ++j) value[j] = static_cast<C>(queries[begin + j]);
    for (int64_t j = 0; j < searches; ++j) low[j] = 0, left[j] = length;
    for (int step = 0; step < steps; ++step) {
#pragma omp simd
      for (int64_t j = 0; j < searches; ++j) {
        const int32_t half = left[j] >> 1;
        const C probe = sequence[std::min(low[j] + half, length - 1)];
        const bool before = Right ? probe > value[j] : probe >= value[j];
        const bool after = !before & (left[j] > 0);  // a finished search does not move
        low[j] = after ? low[j] + half + 1 : low[j];
        left[j] = after ? left[j] - half - 1 : half;
      }
    }
    for (int64_t j = 0; j < count; ++j) to[begin + j] = static_cast<R>(low[j]);
  }
}

template <typename T, typename R>
void search(Call& call, const arguments::Searchsorted& args) {
  using C = compute_t<T>;
  const cb_tensor &sequence = *args.sorted_sequence, &values = *args.values, &out = call.output();
  const cb_tensor* sorter = args.sorter;
  const bool right = args.right;
  const int64_t length = sequence.sizes[sequence.ndim - 1];
  const bool shared = sequence.ndim == 1;
  const int64_t each =
      shared ? std::max<int64_t>(values.numel, 1) : std::max<int64_t>(values.sizes[values.ndim - 1], 1);
  if (sorter) {
    const int64_t* order = data<int64_t>(*sorter);
    for (int64_t i = 0; i < sorter->numel; ++i)
      if (static_cast<uint64_t>(order[i]) >= static_cast<uint64_t>(length))
        throw failure(CB_RUNTIME_ERROR,
                      "searchsorted(): sorter index %lld is out of range for a sequence of %lld elements",
                      static_cast<long long>(order[i]), static_cast<long long>(length));
  }
  const T* queries = data<T>(values);
  R* to = mutable_data<R>(out);
  if (shared && !sorter && length > 0 && length <= std::numeric_limits<int32_t>::max() && values.numel >= 64) {
    Scratch<C> converted(is_half_v<T> ? length : 0);
    const C* from;
    if constexpr (std::is_same_v<T, C>) {
      from = data<T>(sequence);
    } else {
      to_float(data<T>(sequence), converted.data(), length);
      from = converted.data();
    }
    parallel_for(values.numel, grain_for(32), [&](int64_t begin, int64_t end) {
      if (right)
        search_many<true>(queries + begin, end - begin, from, static_cast<int32_t>(length), to + begin);
      else
        search_many<false>(queries + begin, end - begin, from, static_cast<int32_t>(length), to + begin);
    });
    return;
  }
  parallel_for(values.numel, grain_for(64), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / each * length;
      const T* from = data<T>(sequence) + row;
      const auto value = static_cast<C>(queries[i]);
      const auto found = [&](auto&& at) {
        return right ? search_one<true>(value, length, at) : search_one<false>(value, length, at);
      };
      if (sorter) {
        const int64_t* order = data<int64_t>(*sorter) + row;
        to[i] = static_cast<R>(found([&](int64_t k) { return static_cast<C>(from[order[k]]); }));
      } else {
        to[i] = static_cast<R>(found([&](int64_t k) { return static_cast<C>(from[k]); }));
      }
    }
  });
}

void searchsorted(Call& call) {
  if (call.output().numel == 0) return;
  const arguments::Searchsorted args(call);
  dispatch<RealTypes>(args.sorted_sequence->dtype, [&]<typename T>() {
    if (call.output().dtype == CB_INT32)
      search<T, int32_t>(call, args);
    else
      search<T, int64_t>(call, args);
  });
}

}  // namespace

void register_sorting_searchsorted(KernelTable& table) {
  table.add<searchsorted>("_searchsorted");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
