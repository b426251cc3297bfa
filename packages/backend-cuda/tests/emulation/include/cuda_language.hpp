// CUDA's language extensions for g++, included before every file of device code. A kernel becomes a
// function that is called for each thread of a block. translate.py translates <<<...>>>, __shared__
// and addresses of kernels.
#pragma once

#include <cuda_runtime.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "emulation.hpp"

#undef __global__
#undef __device__
#undef __host__
#undef __constant__
#undef __shared__
#undef __managed__
#undef __launch_bounds__
#undef __grid_constant__
#undef __forceinline__
#undef __noinline__
#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__ static
#define __launch_bounds__(...)
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define CANDELABRA_EMULATED_DEVICE_CODE 1

// A process runs one block at a time, and one thread of the block.
extern "C" {
extern uint3 emulated_thread_index, emulated_block_index;
extern dim3 emulated_block_size, emulated_grid_size;
}
#define threadIdx emulated_thread_index
#define blockIdx emulated_block_index
#define blockDim emulated_block_size
#define gridDim emulated_grid_size
#define warpSize 32

namespace emulation {

template <typename... P>
struct SignatureOf {
  template <size_t... I>
  static void call_with(const void* kernel, void* const* arguments, std::index_sequence<I...>) {
    reinterpret_cast<void (*)(P...)>(const_cast<void*>(kernel))(
        *static_cast<std::remove_reference_t<P>*>(arguments[I])...);
  }
  static void call(const void* kernel, [[maybe_unused]] void* const* arguments) {
    call_with(kernel, arguments, std::index_sequence_for<P...>{});
  }
  static constexpr size_t sizes[sizeof...(P) + 1] = {sizeof(P)..., 0};
  static constexpr Signature signature{sizeof...(P), sizes, call};
};

template <typename... P>
const void* kernel_address(void (*kernel)(P...)) {
  static_assert((std::is_trivially_copyable_v<std::remove_cv_t<P>> && ...),
                "a kernel's arguments are copied byte by byte");
  static_assert((sizeof(P) + ... + 0) <= 4096, "a kernel's arguments take up to 4 KB");
  return register_kernel(reinterpret_cast<const void*>(kernel), &SignatureOf<P...>::signature);
}
inline const void* kernel_address(const volatile void* data) {
  return const_cast<const void*>(data);
}

// kernel<<<blocks, threads, shared, stream>>>(arguments...)
template <typename... P>
struct Configured {
  void (*kernel)(P...);
  dim3 blocks, threads;
  size_t shared;
  cudaStream_t stream;
  template <typename... A>
  void operator()(A&&... given) const {
    std::tuple<std::remove_cv_t<P>...> values(static_cast<P>(std::forward<A>(given))...);
    std::apply(
        [&](auto&... each) {
          void* addresses[sizeof...(P) + 1] = {static_cast<void*>(&each)..., nullptr};
          cudaLaunchKernel(kernel_address(kernel), blocks, threads, addresses, shared, stream);
        },
        values);
  }
};
template <typename... P>
Configured<P...> configured(void (*kernel)(P...), dim3 blocks, dim3 threads, size_t shared = 0,
                            cudaStream_t stream = nullptr) {
  return {kernel, blocks, threads, shared, stream};
}

#define EMULATION_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

template <typename T>
T shuffled(unsigned mask, T value, int source_of(int lane, int by, int width), int by, int width, Site site) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  const Exchanged all = exchange(mask, word, site);
  const int source = source_of(static_cast<int>(all.own), by, width);
  // The value of a lane that does not take part is undefined: return something unlikely.
  const uint64_t got = all.lanes >> source & 1 ? all.values[source] : 0xf7f7f7f7f7f7f7f7u;
  std::memcpy(&value, &got, sizeof value);
  return value;
}

}  // namespace emulation

// ---- barriers and warps

inline void __syncthreads(EMULATION_SITE) {
  emulation::sync_block(emulation::Vote::None, 0, {file, line});
}
inline int __syncthreads_count(int predicate, EMULATION_SITE) {
  return emulation::sync_block(emulation::Vote::Count, predicate, {file, line});
}
inline int __syncthreads_and(int predicate, EMULATION_SITE) {
  return emulation::sync_block(emulation::Vote::And, predicate, {file, line});
}
inline int __syncthreads_or(int predicate, EMULATION_SITE) {
  return emulation::sync_block(emulation::Vote::Or, predicate, {file, line});
}
inline void __syncwarp(unsigned mask = 0xffffffffu, EMULATION_SITE) {
  emulation::exchange(mask, 0, {file, line});
}
inline unsigned __ballot_sync(unsigned mask, int predicate, EMULATION_SITE) {
  const auto all = emulation::exchange(mask, predicate != 0, {file, line});
  unsigned votes = 0;
  for (int lane = 0; lane < 32; ++lane) votes |= (all.lanes >> lane & 1 && all.values[lane] ? 1u : 0u) << lane;
  return votes;
}
inline int __any_sync(unsigned mask, int predicate, EMULATION_SITE) {
  return __ballot_sync(mask, predicate, file, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, EMULATION_SITE) {
  return __ballot_sync(mask, predicate == 0, file, line) == 0;
}
template <typename T>
unsigned __match_any_sync(unsigned mask, T value, EMULATION_SITE) {
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  const auto all = emulation::exchange(mask, word, {file, line});
  unsigned same = 0;
  for (int lane = 0; lane < 32; ++lane) same |= (all.lanes >> lane & 1 && all.values[lane] == word ? 1u : 0u) << lane;
  return same;
}
inline unsigned __activemask() {
  return 1u << (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32;
}
template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, EMULATION_SITE) {
  return emulation::shuffled(mask, value,
                             [](int lane, int by, int size) { return (lane & ~(size - 1)) | (by & (size - 1)); },
                             source, width, {file, line});
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, EMULATION_SITE) {
  return emulation::shuffled(mask, value,
                             [](int lane, int by, int size) { return (lane & (size - 1)) < by ? lane : lane - by; },
                             static_cast<int>(delta), width, {file, line});
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, EMULATION_SITE) {
  return emulation::shuffled(
      mask, value, [](int lane, int by, int size) { return (lane & (size - 1)) + by >= size ? lane : lane + by; },
      static_cast<int>(delta), width, {file, line});
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, EMULATION_SITE) {
  return emulation::shuffled(
      mask, value, [](int lane, int by, int size) { return (lane ^ by) / size > lane / size ? lane : lane ^ by; },
      lanes, width, {file, line});
}
#define EMULATION_REDUCTION(name, type, start, expression)                                  \
  inline type name(unsigned mask, type value, EMULATION_SITE) {                             \
    const auto all = emulation::exchange(mask, static_cast<uint32_t>(value), {file, line}); \
    type result = start;                                                                    \
    for (int lane = 0; lane < 32; ++lane)                                                   \
      if (all.lanes >> lane & 1) {                                                          \
        const type each = static_cast<type>(all.values[lane]);                              \
        result = expression;                                                                \
      }                                                                                     \
    return result;                                                                          \
  }
EMULATION_REDUCTION(__reduce_add_sync, unsigned, 0u, result + each)
EMULATION_REDUCTION(__reduce_add_sync, int, 0,
                    static_cast<int>(static_cast<unsigned>(result) + static_cast<unsigned>(each)))
EMULATION_REDUCTION(__reduce_max_sync, unsigned, 0u, std::max(result, each))
EMULATION_REDUCTION(__reduce_max_sync, int, -2147483647 - 1, std::max(result, each))
EMULATION_REDUCTION(__reduce_min_sync, unsigned, 0xffffffffu, std::min(result, each))
EMULATION_REDUCTION(__reduce_min_sync, int, 2147483647, std::min(result, each))
EMULATION_REDUCTION(__reduce_or_sync, unsigned, 0u, result | each)
EMULATION_REDUCTION(__reduce_and_sync, unsigned, 0xffffffffu, result& each)
EMULATION_REDUCTION(__reduce_xor_sync, unsigned, 0u, result ^ each)
#undef EMULATION_REDUCTION

inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) {}
inline void __trap(EMULATION_SITE) {
  emulation::trap("__trap()", {file, line});
}

// ---- atomics: plain operations, because threads do not run at the same time

namespace emulation {
template <typename T>
using same_t = std::type_identity_t<T>;
template <typename T, typename F>
T changed(T* at, F&& f) {
  if (reinterpret_cast<uintptr_t>(at) % sizeof(T))
    trap("an atomic operation at an address that is not aligned", {__FILE__, __LINE__});
  const T before = *at;
  *at = f(before);
  return before;
}
template <typename T>
T added(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
  else
    return a + b;
}
template <typename T, typename... Ts>
constexpr bool one_of = (std::is_same_v<T, Ts> || ...);
// The types for which the device has the operation.
template <typename T>
concept Summed = one_of<T, int, unsigned, unsigned long long, float, double>;
template <typename T>
concept Ordered = one_of<T, int, unsigned, long long, unsigned long long>;
template <typename T>
concept Bitwise = one_of<T, int, unsigned, unsigned long long>;
template <typename T>
concept Swapped = one_of<T, int, unsigned, unsigned long long, unsigned short>;
template <typename T>
concept Exchangeable = one_of<T, int, unsigned, unsigned long long, float>;
}  // namespace emulation

#define EMULATION_ATOMIC(name, concept_, expression)                          \
  template <emulation::concept_ T>                                            \
  T name(T* at, emulation::same_t<T> value) {                                 \
    return emulation::changed(at, [&](T before) -> T { return expression; }); \
  }                                                                           \
  template <emulation::concept_ T>                                            \
  T name##_block(T* at, emulation::same_t<T> value) {                         \
    return name(at, value);                                                   \
  }                                                                           \
  template <emulation::concept_ T>                                            \
  T name##_system(T* at, emulation::same_t<T> value) {                        \
    return name(at, value);                                                   \
  }
EMULATION_ATOMIC(atomicAdd, Summed, emulation::added(before, value))
EMULATION_ATOMIC(atomicSub, Bitwise, static_cast<T>(before - value))
EMULATION_ATOMIC(atomicMax, Ordered, before < value ? value : before)
EMULATION_ATOMIC(atomicMin, Ordered, value < before ? value : before)
EMULATION_ATOMIC(atomicAnd, Bitwise, before& value)
EMULATION_ATOMIC(atomicOr, Bitwise, before | value)
EMULATION_ATOMIC(atomicXor, Bitwise, before ^ value)
#undef EMULATION_ATOMIC
template <emulation::Exchangeable T>
T atomicExch(T* at, emulation::same_t<T> value) {
  return emulation::changed(at, [&](T) { return value; });
}
template <emulation::Swapped T>
T atomicCAS(T* at, emulation::same_t<T> expected, emulation::same_t<T> value) {
  return emulation::changed(at, [&](T before) { return before == expected ? value : before; });
}
// Atomics on memory that the host reads, too.
inline int atomicExch_system(int* at, int value) {
  return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);
}
inline int atomicCAS_system(int* at, int expected, int value) {
  __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
}

// ---- intrinsics

// If one number is NaN, the other one is returned.
template <typename A, typename B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  using T = std::common_type_t<A, B>;
  const T x = static_cast<T>(a), y = static_cast<T>(b);
  return x < y || x != x ? y : x;
}
template <typename A, typename B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  using T = std::common_type_t<A, B>;
  const T x = static_cast<T>(a), y = static_cast<T>(b);
  return y < x || x != x ? y : x;
}
template <typename T>
T __ldg(const T* at) {
  return *at;
}
template <typename T>
T __ldcg(const T* at) {
  return *at;
}
template <typename T>
T __ldcs(const T* at) {
  return *at;
}
template <typename T>
void __stcs(T* at, std::type_identity_t<T> value) {
  *at = value;
}
template <typename T>
void __stcg(T* at, std::type_identity_t<T> value) {
  *at = value;
}
inline int __popc(unsigned x) {
  return std::popcount(x);
}
inline int __popcll(unsigned long long x) {
  return std::popcount(x);
}
inline int __clz(int x) {
  return std::countl_zero(static_cast<unsigned>(x));
}
inline int __clzll(long long x) {
  return std::countl_zero(static_cast<unsigned long long>(x));
}
inline int __ffs(int x) {
  return __builtin_ffs(x);
}
inline int __ffsll(long long x) {
  return __builtin_ffsll(x);
}
inline unsigned __brev(unsigned x) {
  unsigned result = 0;
  for (int i = 0; i < 32; ++i) result |= (x >> i & 1u) << (31 - i);
  return result;
}
inline unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 |
         __brev(static_cast<unsigned>(x >> 32));
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
inline int __mulhi(int a, int b) {
  return static_cast<int>(static_cast<int64_t>(a) * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31));
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const uint64_t bytes = static_cast<uint64_t>(y) << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i)
    result |= static_cast<unsigned>(bytes >> (8 * (selector >> (4 * i) & 7)) & 0xff) << (8 * i);
  return result;
}
inline int __float_as_int(float x) {
  return std::bit_cast<int>(x);
}
inline unsigned __float_as_uint(float x) {
  return std::bit_cast<unsigned>(x);
}
inline float __int_as_float(int x) {
  return std::bit_cast<float>(x);
}
inline float __uint_as_float(unsigned x) {
  return std::bit_cast<float>(x);
}
inline long long __double_as_longlong(double x) {
  return std::bit_cast<long long>(x);
}
inline double __longlong_as_double(long long x) {
  return std::bit_cast<double>(x);
}
inline float __fmaf_rn(float a, float b, float c) {
  return std::fma(a, b, c);
}
inline double __fma_rn(double a, double b, double c) {
  return std::fma(a, b, c);
}
inline float __fadd_rn(float a, float b) {
  return a + b;
}
inline float __fmul_rn(float a, float b) {
  return a * b;
}
inline float __fdiv_rn(float a, float b) {
  return a / b;
}
inline float __fdividef(float a, float b) {
  return a / b;
}
inline float __fsqrt_rn(float a) {
  return std::sqrt(a);
}
inline double __dadd_rn(double a, double b) {
  return a + b;
}
inline double __dmul_rn(double a, double b) {
  return a * b;
}
inline double __ddiv_rn(double a, double b) {
  return a / b;
}
inline double __dsqrt_rn(double a) {
  return std::sqrt(a);
}
inline float __expf(float a) {
  return std::exp(a);
}
inline float __logf(float a) {
  return std::log(a);
}
inline float rsqrtf(float a) {
  return 1 / std::sqrt(a);
}
inline float rsqrt(float a) {
  return 1 / std::sqrt(a);
}
inline double rsqrt(double a) {
  return 1 / std::sqrt(a);
}
