// Elements moved as they are, between descriptors of the same sizes and dtype.
#pragma once

#include <cstring>

#include "../dtypes.hpp"
#include "../iterate.hpp"
#include "../kernels.hpp"
#include "../parallel.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

template <typename U>
[[gnu::always_inline]] inline void move_run(U* out, int64_t out_stride, const U* in, int64_t in_stride, int64_t n) {
  if (out_stride == 1 && in_stride == 1) {
    if (n <= 16)
      for (int64_t i = 0; i < n; ++i) out[i] = in[i];
    else
      std::memcpy(out, in, static_cast<size_t>(n) * sizeof(U));
  } else {
    for (int64_t i = 0; i < n; ++i) out[i * out_stride] = in[i * in_stride];
  }
}

inline void move_elements(const cb_tensor& out, const cb_tensor& in) {
  if (out.numel == 0) return;
  auto g = geometry<2>({&out, &in});
  dispatch_size(itemsize(out.dtype), [&]<typename U>() {
    U* to = mutable_data<U>(out);
    const U* from = data<U>(in);
    parallel_for(g.numel, light_grain, [&](int64_t begin, int64_t end) {
      for_each_run(g, begin, end,
                   [&](const int64_t* at, int64_t n) { move_run(to + at[0], g.strides[0][0], from + at[1], g.strides[1][0], n); });
    });
  });
}

// For functions that change some elements of self: the output begins as a copy of it, unless it is the same memory.
inline void begin_as(const cb_tensor& out, const cb_tensor& self) {
  if (out.data != self.data) move_elements(out, self);
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
