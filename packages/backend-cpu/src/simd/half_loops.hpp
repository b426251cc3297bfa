// Cheap formulas on half precisions, converted to float32 and back in registers. Separate
// conversion passes (blocks.hpp) would take as long as the memory accesses.
#pragma once

#include <algorithm>
#include <utility>

#include "drivers/elementwise.hpp"
#include "simd/half_registers.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace halves {

template <typename Op, typename T, size_t... K>
void loop_of(const Op& op, T* to, const void* const* in, int64_t n, std::index_sequence<K...>) {
  const auto from = [in](size_t k) { return static_cast<const T*>(in[k]); };
  int64_t i = 0;
  constexpr int unroll = std::max(2, unroll_factor<Op, Floats>());
  static_assert(unroll % 2 == 0);
  for (; i + unroll * Floats::size <= n; i += unroll * Floats::size) {
    Floats results[unroll];
    for (int k = 0; k < unroll; ++k) results[k] = on_registers(op, load(from(K) + i + k * Floats::size)...);
    for (int k = 0; k < unroll; k += 2) store(results[k], results[k + 1], to + i + k * Floats::size);
  }
  for (; i + Floats::size <= n; i += Floats::size) store(on_registers(op, load(from(K) + i)...), to + i);
  if (i < n) store(on_registers(op, load(from(K) + i, n - i)...), to + i, n - i);
}
template <typename Op, typename T, size_t N>
void loop(void* out, const void* const* in, int64_t n, const void* context) {
  loop_of(*static_cast<const Op*>(context), static_cast<T*>(out), in, n, std::make_index_sequence<N>{});
}

}  // namespace halves

// Applies a formula to N operands. Half precisions use `on_registers`, the formula on registers of
// float32. Operands whose dtype differs from the result's (a scalar's may) use the block driver.
template <typename T, size_t N, typename Op, typename OnRegisters>
void map_in_registers(Call& call, const Op& op, const OnRegisters& on_registers, int64_t work) {
  if constexpr (is_half_v<T>) {
    cb_tensor& out = call.output();
    std::array<const cb_tensor*, N> in;
    bool same = true;
    for (size_t k = 0; k < N; ++k) {
      in[k] = &call.tensor(static_cast<int>(k));
      same &= in[k]->dtype == out.dtype;
    }
    if (same) return run<N>({halves::loop<OnRegisters, T, N>, &on_registers, work, false}, out, in);
  }
  if constexpr (N == 1) map1<T>(call, op, work);
  if constexpr (N == 2) map2<T>(call, op, work);
  if constexpr (N == 3) map3<T>(call, op, work);
}

// Like unary() and binary(), for stateless formulas that take registers of float32.
template <typename Op, typename List, int64_t Work, size_t N, uint64_t Accepted>
void of_registers(Call& call) {
  dispatch<List>(widened<Accepted>(call.output().dtype),
                 [&]<typename T>() { map_in_registers<T, N>(call, Op{}, Op{}, Work); });
}
template <typename Op, typename List, int64_t Work, uint64_t Accepted = 0>
void unary_simd(Call& call) {
  of_registers<Op, List, Work, 1, Accepted>(call);
}
template <typename Op, typename List, int64_t Work, uint64_t Accepted = 0>
void binary_simd(Call& call) {
  of_registers<Op, List, Work, 2, Accepted>(call);
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
