// running_extremum: where the largest or smallest element so far is along a dimension, the last among equals. NaN wins for good.
#include "scan.cuh"
#include "sort_keys.cuh"

namespace candelabra::cuda {
namespace {

// Elements are compared as keys of their order, in which NaN is above all: turned around but for NaN where the smallest is looked
// for. Nothing so far has index -1.
template <typename T>
struct RunningExtremum {
  using K = Key<T>;
  struct Acc {
    K key;
    int64_t index;
  };
  using Element = T;
  using Result = int64_t;
  static constexpr bool in_turn = false;
  bool larger;

  __device__ Acc nothing() const { return {0, -1}; }
  __device__ Acc taken(compute_t<T> value, int64_t index) const {
    const K key = key_of<T>(stored<T>(value));
    if (larger) return {key, index};
    if constexpr (is_floating_v<T>)
      if (value != value) return {key, index};
    return {static_cast<K>(key ^ key_mask<T>), index};
  }
  // The larger key, and of equal ones the later: in whatever order they come.
  __device__ Acc apply(const Acc& a, const Acc& b) const {
    const bool second = b.key > a.key || (b.key == a.key && b.index > a.index);
    return second ? b : a;
  }
  __device__ int64_t given(const Acc& acc) const { return acc.index; }
};

void running_extremum(Call& call) {
  dispatch<SortableTypes>(call.tensor(0).dtype, [&]<typename T>() {
    scan_along(call, RunningExtremum<T>{call.boolean(2)}, call.tensor(0), call.output(), call.integer(1));
  });
}

}  // namespace

void register_scan_extremum(KernelTable& table) {
  table.add<running_extremum>("running_extremum");
}

}  // namespace candelabra::cuda
