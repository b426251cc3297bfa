// _cummax_cummin (cummax, cummin): the index of the largest or smallest element so far along a
// dimension, the last among equals. NaN counts as the extremum.
#include "candelabra/arguments/scan.hpp"
#include "drivers/scan.cuh"
#include "drivers/sort_keys.cuh"

namespace candelabra::cuda {
namespace {

// Elements are compared by their sort keys, whose order puts NaN last. For the minimum the keys of
// numbers are inverted, those of NaN are not. The identity element has index -1.
template <typename T>
struct CummaxCummin {
  using K = Key<T>;
  struct Acc {
    K key;
    int64_t index;
  };
  using Element = T;
  using Result = int64_t;
  static constexpr bool sequential = false;
  bool larger;

  __device__ Acc identity() const { return {0, -1}; }
  __device__ Acc element(compute_t<T> value, int64_t index) const {
    const K key = key_of<T>(stored<T>(value));
    if (larger) return {key, index};
    if constexpr (is_floating_v<T>)
      if (value != value) return {key, index};
    return {static_cast<K>(key ^ key_mask<T>), index};
  }
  // The larger key; of equal keys the later index, whatever the order of the operands.
  __device__ Acc apply(const Acc& a, const Acc& b) const {
    const bool second = b.key > a.key || (b.key == a.key && b.index > a.index);
    return second ? b : a;
  }
  __device__ int64_t result(const Acc& acc) const { return acc.index; }
};

void cummax_cummin(Call& call) {
  const arguments::CummaxCummin args(call);
  dispatch<SortableTypes>(args.self->dtype, [&]<typename T>() {
    scan_along(call, CummaxCummin<T>{args.larger}, *args.self, call.output(), args.dim);
  });
}

}  // namespace

void register_scan_cummax(KernelTable& table) {
  table.add<cummax_cummin>("_cummax_cummin");
}

}  // namespace candelabra::cuda
