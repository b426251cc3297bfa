// bisect: where values belong in sorted rows. A thread searches for one value.
#include "elementwise.cuh"

namespace candelabra::cuda {
namespace {

constexpr int threads = 256;

template <typename T>
struct Arguments {
  const memory_t<T>* sequence;
  const memory_t<T>* values;
  const int64_t* sorter;  // null: rows are sorted as they are
  void* out;
  int64_t count, length;
  int64_t each;  // values of a row
  bool right, narrow;
};

// NaN goes behind all that is not known to be larger, as in PyTorch.
template <typename T>
__global__ void __launch_bounds__(threads) bisect_kernel(const __grid_constant__ Arguments<T> a) {
  for (int64_t i = first_index(); i < a.count; i += index_step()) {
    const int64_t row = i / a.each * a.length;
    const auto* from = a.sequence + row;
    const auto value = loaded<T>(a.values[i]);
    int64_t low = 0, left = a.length;
    while (left > 0) {
      const int64_t half = left / 2;
      int64_t place = low + half;
      if (a.sorter) place = a.sorter[row + place];
      // Positions that are not in the row are reported by another kernel.
      const auto probe = loaded<T>(from[place >= 0 && place < a.length ? place : 0]);
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

__global__ void __launch_bounds__(threads) check_sorter(const int64_t* sorter, int64_t count, int64_t length, FaultSink sink) {
  for (int64_t i = first_index(); i < count; i += index_step())
    if (sorter[i] < 0 || sorter[i] >= length) sink.report(FaultKind::Custom, sorter[i], 0, length);
}

void bisect(Call& call) {
  const cb_tensor &sequence = call.tensor(0), &values = call.tensor(1), &out = call.output();
  const cb_tensor* sorter = call.optional_tensor(4);
  if (out.numel == 0) return;
  const int64_t length = sequence.sizes[sequence.ndim - 1];
  const int64_t each = sequence.ndim == 1 || values.ndim == 0 ? values.numel : values.sizes[values.ndim - 1];
  if (sorter)
    launch(call, check_sorter, grid_for(call, sorter->numel, threads), threads, 0, data<int64_t>(*sorter), sorter->numel, length,
           fault_sink(call, "searchsorted(): an index of the sorter is out of range"));
  dispatch<RealTypes>(sequence.dtype, [&]<typename T>() {
    const Arguments<T> a{data<memory_t<T>>(sequence),
                         data<memory_t<T>>(values),
                         sorter ? data<int64_t>(*sorter) : nullptr,
                         out.data,
                         values.numel,
                         length,
                         each,
                         call.boolean(2),
                         out.dtype == CB_INT32};
    launch(call, bisect_kernel<T>, grid_for(call, values.numel, threads), threads, 0, a);
  });
}

}  // namespace

void register_sorting_search(KernelTable& table) {
  table.add<bisect>("bisect");
}

}  // namespace candelabra::cuda
