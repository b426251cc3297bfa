// Reductions of expanded tensors: each element in memory is read once.
#pragma once

#include "kernels/reduction/reduce.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace reduce {

// Shrinks dimensions of stride 0 to size 1. If such a dimension is reduced, a sum must be
// multiplied by `times`; if it is kept, copy() repeats the results along it.
struct Distinct {
  int64_t in_sizes[max_dims], out_sizes[max_dims], copied[max_dims];
  cb_tensor in, out;
  int64_t times = 1, copies = 1;

  Distinct(const cb_tensor& whole, const cb_tensor& results) : in(whole), out(results) {
    if (whole.numel == 0) return;
    bool any_expanded = false;
    for (int d = 0; d < whole.ndim; ++d) any_expanded |= whole.strides[d] == 0 && whole.sizes[d] > 1;
    if (!any_expanded) return;
    std::copy_n(whole.sizes, whole.ndim, in_sizes);
    std::copy_n(results.sizes, results.ndim, out_sizes);
    std::copy_n(results.strides, results.ndim, copied);
    for (int d = 0; d < whole.ndim; ++d) {
      if (whole.strides[d] != 0 || whole.sizes[d] == 1) continue;
      const bool kept = results.ndim == whole.ndim && results.sizes[d] == whole.sizes[d];
      (kept ? copies : times) *= whole.sizes[d];
      in_sizes[d] = 1;
      if (kept) out_sizes[d] = 1, copied[d] = 0;
    }
    in.sizes = in_sizes;
    in.numel /= times * copies;
    out.sizes = out_sizes;
    out.numel /= copies;
  }
  Distinct(const Distinct&) = delete;

  template <typename T>
  void copy(const cb_tensor& results) const {
    if (copies == 1) return;
    cb_tensor first = results;
    first.strides = const_cast<int64_t*>(copied);
    const auto g = geometry<2>({&results, &first});
    T* to = mutable_data<T>(results);
    for_each_run(g, 0, g.numel, [&](const int64_t* at, int64_t n) {
      for (int64_t i = 0; i < n; ++i) to[at[0] + i * g.strides[0][0]] = to[at[1] + i * g.strides[1][0]];
    });
  }
};

}  // namespace reduce
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
