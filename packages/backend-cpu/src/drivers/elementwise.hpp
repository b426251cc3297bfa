// Turns a scalar formula into a kernel: loops over contiguous arrays, and dispatch over dtypes. A
// formula is a function object; its state is copied into the loop.
#pragma once

#include "drivers/blocks.hpp"
#include "drivers/mixed_blocks.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "simd/load.hpp"
#include "simd/vec.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// Cost of an element in additions, to divide work among threads.
constexpr int64_t light = 1, moderate = 8, heavy = 40;

// A formula with a member `on_vectors` is called with whole registers of float or double instead of
// numbers (vec.hpp).
template <typename Op, typename T>
concept OnVectors = (std::is_same_v<T, float> || std::is_same_v<T, double>) && requires { Op::on_vectors; };
// Such a formula may have a limited domain. Then `outside(x…)` is the mask of lanes outside it, and
// `slow_path(x…)` is the slow path for those.
template <typename Op, typename... V>
concept Limited = requires(const Op op, V... x) { op.outside(x...); };

// A formula on numbers may have a limited domain as well, given by `in_range(x…)`. If any number of
// a block is outside, the whole block uses the slow path `slow_path(x…)`.
template <typename Op, typename... A>
concept Ranged = requires(const Op op, A... x) {
  op.in_range(x...);
  op.slow_path(x...);
};

template <typename Op, typename T, typename... V>
[[gnu::noinline, gnu::cold]] void fix_lanes(const Op& op, T* result, V... x) {
  constexpr int64_t size = math::Vec<T>::size;
  alignas(64) T values[sizeof...(V)][size];
  int k = 0;
  (x.store(values[k++]), ...);
  const math::Mask<T> outside = op.outside(x...);
  for (int lane = 0; lane < size; ++lane)
    if (outside.at(lane))
      result[lane] = [&]<size_t... K>(std::index_sequence<K...>) {
        return op.slow_path(values[K][lane]...);
      }(std::index_sequence_for<V...>{});
}

template <typename Op, typename... V>
[[gnu::always_inline]] inline auto on_registers(const Op& op, V... x) {
  auto result = op(x...);
  if constexpr (Limited<Op, V...>) {
    if (any(op.outside(x...))) [[unlikely]] {
      using Result = decltype(result);
      alignas(64) typename Result::Element values[Result::size];
      result.store(values);
      fix_lanes(op, values, x...);
      result = Result::load(values);
    }
  }
  return result;
}

// Registers per iteration. A cheap formula may set `unroll`, so that loads from L2 are issued
// earlier. AVX2 has too few registers for that.
template <typename Op, typename V>
constexpr int unroll_factor() {
  if constexpr (requires { Op::unroll; })
    return sizeof(V) == 64 ? Op::unroll : 1;
  else
    return 1;
}

// The tail is one partial register, so that the result for a number does not depend on its
// position.
template <typename Op, typename T, typename... A>
[[gnu::always_inline]] inline void vector_loop(const Op& op, T* out, int64_t n, const A*... in) {
  using V = math::Vec<T>;
  int64_t i = 0;
  constexpr int unroll = unroll_factor<Op, V>();
  if constexpr (unroll > 1) {
    for (; i + unroll * V::size <= n; i += unroll * V::size) {
      V results[unroll];
      for (int k = 0; k < unroll; ++k) results[k] = on_registers(op, V::load(in + i + k * V::size)...);
      for (int k = 0; k < unroll; ++k) results[k].store(out + i + k * V::size);
    }
  }
  for (; i + V::size <= n; i += V::size) on_registers(op, V::load(in + i)...).store(out + i);
  if (i < n) on_registers(op, V::load(in + i, n - i)...).store(out + i, n - i);
}

template <typename Op, typename R, typename A>
void loop1(void* out, const void* const* in, int64_t n, const void* context) {
  const Op op = *static_cast<const Op*>(context);
  R* o = static_cast<R*>(out);
  const A* a = static_cast<const A*>(in[0]);
  if constexpr (OnVectors<Op, A> && std::is_same_v<R, A>) {
    vector_loop(op, o, n, a);
  } else {
    if constexpr (Ranged<Op, A>) {
      int32_t outside = 0;
#pragma omp simd reduction(| : outside)
      for (int64_t i = 0; i < n; ++i) outside |= !op.in_range(load(a + i));
      if (outside) {
        for (int64_t i = 0; i < n; ++i) o[i] = op.slow_path(load(a + i));
        return;
      }
    }
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) o[i] = op(load(a + i));
  }
}

template <typename Op, typename R, typename A, typename B>
void loop2(void* out, const void* const* in, int64_t n, const void* context) {
  const Op op = *static_cast<const Op*>(context);
  R* o = static_cast<R*>(out);
  const A* a = static_cast<const A*>(in[0]);
  const B* b = static_cast<const B*>(in[1]);
  if constexpr (OnVectors<Op, A> && std::is_same_v<R, A> && std::is_same_v<A, B>) {
    vector_loop(op, o, n, a, b);
  } else {
    if constexpr (Ranged<Op, A, B>) {
      int32_t outside = 0;
#pragma omp simd reduction(| : outside)
      for (int64_t i = 0; i < n; ++i) outside |= !op.in_range(load(a + i), load(b + i));
      if (outside) {
        for (int64_t i = 0; i < n; ++i) o[i] = op.slow_path(load(a + i), load(b + i));
        return;
      }
    }
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) o[i] = op(load(a + i), load(b + i));
  }
}

template <typename Op, typename R, typename A, typename B, typename C>
void loop3(void* out, const void* const* in, int64_t n, const void* context) {
  const Op op = *static_cast<const Op*>(context);
  R* o = static_cast<R*>(out);
  const A* a = static_cast<const A*>(in[0]);
  const B* b = static_cast<const B*>(in[1]);
  const C* c = static_cast<const C*>(in[2]);
  if constexpr (OnVectors<Op, A> && std::is_same_v<R, A> && std::is_same_v<A, B> && std::is_same_v<B, C>) {
    vector_loop(op, o, n, a, b, c);
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) o[i] = op(load(a + i), load(b + i), load(c + i));
  }
}

// The first N arguments of a call, which are the operands in the schema of an elementwise operator.
template <size_t N>
std::array<const cb_tensor*, N> operands(const Call& call) {
  std::array<const cb_tensor*, N> result;
  for (size_t k = 0; k < N; ++k) result[k] = &call.tensor(static_cast<int>(k));
  return result;
}

// Runs a formula whose operands and result have the element type T (float for half precisions).
template <typename T, typename Op>
void map1(Call& call, const Op& op, int64_t work, int first = 0) {
  using C = compute_t<T>;
  run<1>({loop1<Op, C, C>, &op, work}, call.output(), {&call.tensor(first)});
}
template <typename T, typename Op>
void map2(Call& call, const Op& op, int64_t work, int first = 0, int second = 1) {
  using C = compute_t<T>;
  run_any<2>({loop2<Op, C, C, C>, &op, work}, call.output(), {&call.tensor(first), &call.tensor(second)});
}
template <typename T, typename Op>
void map3(Call& call, const Op& op, int64_t work) {
  using C = compute_t<T>;
  run<3>({loop3<Op, C, C, C, C>, &op, work}, call.output(), operands<3>(call));
}

// The loop dtype for the dtypes of the mask `Accepted`; others as they are.
template <uint64_t Accepted>
int32_t widened(int32_t dtype) {
  if constexpr (Accepted != 0)
    if (Accepted >> dtype & 1) return loop_dtype(dtype);
  return dtype;
}

// Kernels of stateless formulas over a list of dtypes. `Accepted` is a mask of widened dtypes that
// are not in the list and that the kernel accepts too.
template <typename Op, typename List, int64_t Work, uint64_t Accepted = 0>
void unary(Call& call) {
  dispatch<List>(widened<Accepted>(call.output().dtype), [&]<typename T>() { map1<T>(call, Op{}, Work); });
}
template <typename Op, typename List, int64_t Work, uint64_t Accepted = 0>
void binary(Call& call) {
  dispatch<List>(widened<Accepted>(call.output().dtype), [&]<typename T>() { map2<T>(call, Op{}, Work); });
}
// Results are bool for any operands.
template <typename Op, typename List, int64_t Work, uint64_t Accepted = 0>
void unary_bool(Call& call) {
  const auto in = operands<1>(call);
  dispatch<List>(widened<Accepted>(in[0]->dtype), [&]<typename T>() {
    static constexpr Op op{};
    run<1>({loop1<Op, bool, compute_t<T>>, &op, Work}, call.output(), in);
  });
}
template <typename Op, typename List, int64_t Work, uint64_t Accepted = 0>
void binary_bool(Call& call) {
  const auto in = operands<2>(call);
  dispatch<List>(widened<Accepted>(in[0]->dtype), [&]<typename T>() {
    static constexpr Op op{};
    run<2>({loop2<Op, bool, compute_t<T>, compute_t<T>>, &op, Work}, call.output(), in);
  });
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
