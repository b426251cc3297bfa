// _searchsorted (searchsorted): the insertion index of values in sorted rows. One thread searches
// for one value.
#include "candelabra/arguments/sorting.hpp"
#include "drivers/elementwise.cuh"

namespace candelabra::cuda {
namespace {

constexpr int threads = 256;

template <typename T>
struct Arguments {
  const memory_t<T>* sequence;
  const memory_t<T>* values;
  const int64_t* sorter;  // null: the rows themselves are sorted
  void* out;
  int64_t count, length;
  int64_t each;  // values of a row
  bool right, narrow;
};

// As in PyTorch the search moves right unless an element compares larger: NaN is inserted at the
// end.
template <typename T>
__global__ void __launch_bounds__(threads) bisect_kernel(const __grid_constant__ Arguments<T> a) {
  for (int64_t i = first_index(); i < a.count; i += index_step()) {
    const int64_t row = i / a.each * a.length;
    const auto* from = a.sequence + row;
    const auto value = loaded<T>(a.values[i]);
    int64_t low = 0, left = a.length;
    while (left > 0) {
      const int64_t half = left / 2;
      int64_t index = low + half;
      if (a.sorter) index = a.sorter[row + index];
      // check_sorter reports indices outside the row.
      const auto probe = loaded<T>(from[index >= 0 && index < a.length ? index : 0]);
      const bool after = a.right ? !(probe > value) : !(probe >= value);
      low = after ? low + half + 1 : low;
      left = after ? left - half - 1 : half;
    }
    if (a.narrow)
      static_cast<int32_t*>(a.out)[i] = static_cast<int32_t>(low);
    else
      static_cast<int64_t*>(a.out)[i] = low;
  }
}

__global__ void __launch_bounds__(threads)
    check_sorter(const int64_t* sorter, int64_t count, int64_t length, FaultSink sink) {
  for (int64_t i = first_index(); i < count; i += index_step())
    if (sorter[i] < 0 || sorter[i] >= length) sink.report(FaultKind::Custom, sorter[i], 0, length);
}

void searchsorted(Call& call) {
  const arguments::Searchsorted args(call);
  const cb_tensor &sequence = *args.sorted_sequence, &values = *args.values, &out = call.output();
  const cb_tensor* sorter = args.sorter;
  if (out.numel == 0) return;
  const int64_t length = sequence.sizes[sequence.ndim - 1];
  const int64_t each = sequence.ndim == 1 || values.ndim == 0 ? values.numel : values.sizes[values.ndim - 1];
  if (sorter)
    launch(call, check_sorter, grid_for(call, sorter->numel, threads), threads, 0, data<int64_t>(*sorter),
           sorter->numel, length, fault_sink(call, "searchsorted(): an index of the sorter is out of range"));
  dispatch<RealTypes>(sequence.dtype, [&]<typename T>() {
    const Arguments<T> a{data<memory_t<T>>(sequence),
                         data<memory_t<T>>(values),
                         sorter ? data<int64_t>(*sorter) : nullptr,
                         out.data,
                         values.numel,
                         length,
                         each,
                         args.right,
                         out.dtype == CB_INT32};
    launch(call, bisect_kernel<T>, grid_for(call, values.numel, threads), threads, 0, a);
  });
}

}  // namespace

void register_sorting_searchsorted(KernelTable& table) {
  table.add<searchsorted>("_searchsorted");
}

}  // namespace candelabra::cuda
