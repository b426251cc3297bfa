// amax, amin, and the same with the index: argmax, argmin, max_with_indices, min_with_indices.
//
// Maximum or minimum is a runtime argument of the kernels: they are bound by memory, not by the
// branch.
#include <limits>

#include "candelabra/arguments/reduction.hpp"
#include "drivers/reduce.cuh"

namespace candelabra::cuda {
namespace {

using ComparableTypes = decltype(BoolType{} + RealTypes{});

// The type that elements of type T are compared as.
template <typename T>
using Compared = std::conditional_t<std::is_same_v<T, bool>, uint8_t, compute_t<T>>;

template <typename C>
constexpr C lowest_value =
    std::numeric_limits<C>::has_infinity ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::lowest();
template <typename C>
constexpr C highest_value =
    std::numeric_limits<C>::has_infinity ? std::numeric_limits<C>::infinity() : std::numeric_limits<C>::max();

// Whether a comes before b; NaN comes before all numbers.
template <typename C>
__device__ __forceinline__ bool better(C a, C b, bool largest) {
  const bool wins = largest ? a > b : a < b;
  if constexpr (std::is_integral_v<C>)
    return wins;
  else
    return wins | ((a != a) & (b == b));
}

template <typename T>
struct Extremum {
  using Element = T;
  using Acc = Compared<T>;
  using Results = Types<T>;
  static constexpr bool ordered = false;
  bool largest;

  __device__ Acc identity() const { return largest ? lowest_value<Acc> : highest_value<Acc>; }
  __device__ void take(Acc& acc, compute_t<T> value, int64_t) const {
    const auto now = static_cast<Acc>(value);
    if (better(now, acc, largest)) acc = now;
  }
  __device__ Acc merge(const Acc& a, const Acc& b) const { return better(b, a, largest) ? b : a; }
  __device__ void finish(const Acc& acc, int64_t, compute_t<T>* result) const {
    *result = static_cast<compute_t<T>>(acc);
  }
};

// The value and its first index. A thread reads the elements of a result in order, but the results
// of threads are merged in any order.
template <typename T>
struct FirstExtremum {
  struct Acc {
    Compared<T> value;
    int64_t index;  // -1: nothing yet
  };
  using Element = T;
  using Results = Types<T, int64_t>;
  static constexpr bool ordered = true;
  bool largest;
  bool with_values;  // otherwise only the indices are written

  __device__ Acc identity() const { return {Compared<T>(0), -1}; }
  __device__ void take(Acc& acc, compute_t<T> value, int64_t index) const {
    const auto now = static_cast<Compared<T>>(value);
    if (acc.index < 0 || better(now, acc.value, largest)) acc = {now, index};
  }
  __device__ Acc merge(const Acc& a, const Acc& b) const {
    if (b.index < 0) return a;
    if (a.index < 0 || better(b.value, a.value, largest)) return b;
    if (better(a.value, b.value, largest)) return a;
    return b.index < a.index ? b : a;
  }
  __device__ void finish(const Acc& acc, int64_t, compute_t<T>* value, int64_t* index) const {
    *value = static_cast<compute_t<T>>(acc.value);
    *index = acc.index;
  }
};

}  // namespace

namespace reduction {

template <typename T>
struct Writer<FirstExtremum<T>, Types<T, int64_t>> {
  __device__ static void write(const FirstExtremum<T>& op, const typename FirstExtremum<T>::Acc& acc, int64_t length,
                               void* const* outs, const uint32_t* offsets) {
    compute_t<T> value;
    int64_t index;
    op.finish(acc, length, &value, &index);
    if (op.with_values) static_cast<memory_t<T>*>(outs[0])[offsets[0]] = stored<T>(value);
    static_cast<int64_t*>(outs[1])[offsets[1]] = index;
  }
};

}  // namespace reduction

namespace {

// amax, amin: the same arguments.
template <bool Largest>
void extremum(Call& call) {
  const cb_tensor& self = *arguments::Amax(call).self;
  dispatch<ComparableTypes>(self.dtype, [&]<typename T>() { reduce(call, Extremum<T>{Largest}, self, call.output()); });
}

// argmax, argmin: the same arguments.
template <bool Largest>
void arg_extremum(Call& call) {
  const cb_tensor& self = *arguments::Argmax(call).self;
  // The first output stands in for the values, which are not written.
  const std::array<const cb_tensor*, 2> outs{&call.output(), &call.output()};
  dispatch<ComparableTypes>(self.dtype,
                            [&]<typename T>() { reduce(call, FirstExtremum<T>{Largest, false}, self, outs); });
}

// max_with_indices, min_with_indices: the same arguments.
template <bool Largest>
void extremum_with_indices(Call& call) {
  const cb_tensor& self = *arguments::MaxWithIndices(call).self;
  const std::array<const cb_tensor*, 2> outs{&call.output(0), &call.output(1)};
  dispatch<ComparableTypes>(self.dtype,
                            [&]<typename T>() { reduce(call, FirstExtremum<T>{Largest, true}, self, outs); });
}

}  // namespace

void register_reduction_aminmax(KernelTable& table) {
  table.add<extremum<true>>("amax");
  table.add<extremum<false>>("amin");
  table.add<arg_extremum<true>>("argmax");
  table.add<arg_extremum<false>>("argmin");
  table.add<extremum_with_indices<true>>("max_with_indices");
  table.add<extremum_with_indices<false>>("min_with_indices");
}

}  // namespace candelabra::cuda
