// bisect: where values belong in sorted rows. Each search halves what is left without branching on the outcome, so that the
// processor does not guess.
#include <bit>
#include <limits>

#include "../allocator.hpp"
#include "../dtypes.hpp"
#include "../kernels.hpp"
#include "../parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

// The number of elements that go before the value. NaN goes behind all that is not known to be larger, as in PyTorch.
template <bool Right, typename T, typename At>
int64_t place_of(T value, int64_t length, At&& at) {
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

// The same for several values in one sequence, step by step together: each step waits for memory, and the waits overlap.
template <bool Right, typename C, typename T, typename R>
void places_of(const T* wanted, int64_t n, const C* sequence, int32_t length, R* to) {
  constexpr int64_t together = 16;
  const int steps = std::bit_width(static_cast<uint32_t>(length));
  C value[together] = {};
  int32_t low[together], left[together];
  for (int64_t begin = 0; begin < n; begin += together) {
    const int64_t count = std::min(together, n - begin);
    for (int64_t j = 0; j < count; ++j) value[j] = static_cast<C>(wanted[begin + j]);
    for (int64_t j = 0; j < together; ++j) low[j] = 0, left[j] = length;
    for (int step = 0; step < steps; ++step) {
#pragma omp simd
      for (int64_t j = 0; j < together; ++j) {
        const int32_t half = left[j] >> 1;
        const C probe = sequence[std::min(low[j] + half, length - 1)];
        const bool before = Right ? probe > value[j] : probe >= value[j];
        const bool after = !before & (left[j] > 0);  // a search that has ended stays where it is
        low[j] = after ? low[j] + half + 1 : low[j];
        left[j] = after ? left[j] - half - 1 : half;
      }
    }
    for (int64_t j = 0; j < count; ++j) to[begin + j] = static_cast<R>(low[j]);
  }
}

template <typename T, typename R>
void search(Call& call) {
  using C = compute_t<T>;
  const cb_tensor &sequence = call.tensor(0), &values = call.tensor(1), &out = call.output();
  const cb_tensor* sorter = call.optional_tensor(4);
  const bool right = call.boolean(2);
  const int64_t length = sequence.sizes[sequence.ndim - 1];
  const bool shared = sequence.ndim == 1;
  const int64_t each = shared ? std::max<int64_t>(values.numel, 1) : std::max<int64_t>(values.sizes[values.ndim - 1], 1);
  if (sorter) {
    const int64_t* positions = data<int64_t>(*sorter);
    for (int64_t i = 0; i < sorter->numel; ++i)
      if (static_cast<uint64_t>(positions[i]) >= static_cast<uint64_t>(length))
        throw failure(CB_RUNTIME_ERROR, "searchsorted(): sorter index %lld is out of range for a sequence of %lld elements",
                      static_cast<long long>(positions[i]), static_cast<long long>(length));
  }
  const T* wanted = data<T>(values);
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
        places_of<true>(wanted + begin, end - begin, from, static_cast<int32_t>(length), to + begin);
      else
        places_of<false>(wanted + begin, end - begin, from, static_cast<int32_t>(length), to + begin);
    });
    return;
  }
  parallel_for(values.numel, grain_for(64), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / each * length;
      const T* from = data<T>(sequence) + row;
      const auto value = static_cast<C>(wanted[i]);
      const auto found = [&](auto&& at) { return right ? place_of<true>(value, length, at) : place_of<false>(value, length, at); };
      if (sorter) {
        const int64_t* positions = data<int64_t>(*sorter) + row;
        to[i] = static_cast<R>(found([&](int64_t k) { return static_cast<C>(from[positions[k]]); }));
      } else {
        to[i] = static_cast<R>(found([&](int64_t k) { return static_cast<C>(from[k]); }));
      }
    }
  });
}

void bisect(Call& call) {
  if (call.output().numel == 0) return;
  dispatch<RealTypes>(call.tensor(0).dtype, [&]<typename T>() {
    if (call.output().dtype == CB_INT32)
      search<T, int32_t>(call);
    else
      search<T, int64_t>(call);
  });
}

}  // namespace

void register_sorting_search(KernelTable& table) {
  table.add<bisect>("bisect");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
