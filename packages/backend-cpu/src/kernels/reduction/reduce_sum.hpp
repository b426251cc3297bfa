// Sums. float32 is summed in float64. float64 is summed in blocks, and block sums with compensation
// for rounding errors. Integers wrap.
#pragma once

#include <cmath>
#include <complex>

#include "kernels/reduction/reduce_distinct.hpp"
#include "simd/half_registers.hpp"
#include "simd/vec.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace reduce {

// A compensated sum: `error` accumulates what rounding lost.
struct CompensatedSum {
  double sum = 0, error = 0;
  [[gnu::always_inline]] void add(double value) {
    double total = sum + value;
    double back = total - sum;
    error += (sum - (total - back)) + (value - back);
    sum = total;
  }
  double value() const {
    double exact = sum + error;
    return std::isfinite(exact) ? exact : sum;  // the error of an infinite sum is NaN
  }
};

// The terms of a sum: the elements, the elements that are not NaN, or the squares.
enum class Of { elements, numbers, squares };

template <Of What, typename Acc, typename T>
[[gnu::always_inline]] inline Acc counted(T value) {
  const Acc wide = static_cast<Acc>(value);
  if constexpr (What == Of::numbers) return value == value ? wide : Acc{};
  return What == Of::squares ? wide * wide : wide;
}

// float32 in float64: 32 independent sums hide latency, and sequential reads let the hardware
// prefetch. Four are added in float32 first, because conversions are the bottleneck. The final
// reduction adds halves in the same order for every vector width, so that results do not depend on
// the instruction set.
#ifdef __AVX512F__
// Eight partial sums. sum_of_floats() reduces them by adding halves.
template <Of What>
[[gnu::always_inline]] inline __m512d partial_sums_of_floats(const float* values, int64_t n) {
  int64_t i = 0;
  const auto taken = [&](int64_t at) {
    const __m256 value = _mm256_loadu_ps(values + at);
    if constexpr (What == Of::numbers) return _mm256_maskz_mov_ps(_mm256_cmp_ps_mask(value, value, _CMP_ORD_Q), value);
    return value;
  };
  const auto wide = [&](int64_t at) { return _mm512_maskz_cvtps_pd(0xff, taken(at)); };
  const auto four = [&](int64_t at) {
    const __m256 low = _mm256_add_ps(taken(at), taken(at + 8)), high = _mm256_add_ps(taken(at + 16), taken(at + 24));
    return _mm512_maskz_cvtps_pd(0xff, _mm256_add_ps(low, high));
  };
  const auto plus = [](__m512d sum, __m512d value) {
    return What == Of::squares ? _mm512_fmadd_pd(value, value, sum) : _mm512_add_pd(sum, value);
  };
  __m512d a = _mm512_setzero_pd(), b = a, c = a, d = a;
  if constexpr (What != Of::squares)
    for (; i + 128 <= n; i += 128) {
      a = _mm512_add_pd(a, four(i));
      b = _mm512_add_pd(b, four(i + 32));
      c = _mm512_add_pd(c, four(i + 64));
      d = _mm512_add_pd(d, four(i + 96));
    }
  for (; i + 32 <= n; i += 32) {
    a = plus(a, wide(i));
    b = plus(b, wide(i + 8));
    c = plus(c, wide(i + 16));
    d = plus(d, wide(i + 24));
  }
  const auto rest = [&](__m512d& part, int64_t at) {
    const auto there = static_cast<__mmask8>(n - at >= 8 ? 0xff : (1 << (n - at)) - 1);
    __m256 value = _mm256_maskz_loadu_ps(there, values + at);
    if constexpr (What == Of::numbers) value = _mm256_maskz_mov_ps(_mm256_cmp_ps_mask(value, value, _CMP_ORD_Q), value);
    part = plus(part, _mm512_maskz_cvtps_pd(0xff, value));
  };
  if (i < n) rest(a, i);
  if (i + 8 < n) rest(b, i + 8);
  if (i + 16 < n) rest(c, i + 16);
  if (i + 24 < n) rest(d, i + 24);
  return _mm512_add_pd(_mm512_add_pd(a, c), _mm512_add_pd(b, d));
}

// The sums of eight rows. All are reduced at once, in the order in which sum_of_floats() reduces
// one.
template <Of What>
[[gnu::always_inline]] inline void sums_of_rows(const float* values, int64_t pitch, int64_t n, double* sums) {
  const auto halves = [](__m512d a, __m512d b) {
    return _mm512_add_pd(_mm512_maskz_shuffle_f64x2(0xff, a, b, 0x44), _mm512_maskz_shuffle_f64x2(0xff, a, b, 0xee));
  };
  const auto quarters = [](__m512d a, __m512d b) {
    return _mm512_add_pd(_mm512_maskz_shuffle_f64x2(0xff, a, b, 0x88), _mm512_maskz_shuffle_f64x2(0xff, a, b, 0xdd));
  };
  __m512d parts[4];
  for (int k = 0; k < 4; ++k)
    parts[k] = halves(partial_sums_of_floats<What>(values + 2 * k * pitch, n),
                      partial_sums_of_floats<What>(values + (2 * k + 1) * pitch, n));
  const __m512d a = quarters(parts[0], parts[1]), b = quarters(parts[2], parts[3]);
  const __m512d pairs = _mm512_add_pd(_mm512_maskz_unpacklo_pd(0xff, a, b), _mm512_maskz_unpackhi_pd(0xff, a, b));
  const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);  // even lanes hold rows 0 to 3
  _mm512_storeu_pd(sums, _mm512_maskz_permutexvar_pd(0xff, order, pairs));
}
#else
// Four partial sums. sum_of_floats() reduces them by adding halves.
template <Of What>
[[gnu::always_inline]] inline __m256d partial_sums_of_floats(const float* values, int64_t n) {
  int64_t i = 0;
  const auto taken = [&](int64_t at) {
    const __m256 value = _mm256_loadu_ps(values + at);
    if constexpr (What == Of::numbers) return _mm256_and_ps(value, _mm256_cmp_ps(value, value, _CMP_ORD_Q));
    return value;
  };
  const auto wide = [](__m128 value) {
    if constexpr (What == Of::numbers) value = _mm_and_ps(value, _mm_cmpord_ps(value, value));
    return _mm256_cvtps_pd(value);
  };
  const auto plus = [](__m256d sum, __m256d value) {
    return What == Of::squares ? _mm256_fmadd_pd(value, value, sum) : _mm256_add_pd(sum, value);
  };
  // Every index is a constant, so that the sums stay in registers.
  __m256d parts[8];
#pragma GCC unroll 8
  for (int k = 0; k < 8; ++k) parts[k] = _mm256_setzero_pd();
  if constexpr (What != Of::squares)
    for (; i + 128 <= n; i += 128)
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        const int64_t at = i + 32 * k;
        const __m256 low = _mm256_add_ps(taken(at), taken(at + 8)),
                     high = _mm256_add_ps(taken(at + 16), taken(at + 24));
        const __m256 four = _mm256_add_ps(low, high);
        parts[2 * k] = _mm256_add_pd(parts[2 * k], _mm256_cvtps_pd(_mm256_castps256_ps128(four)));
        parts[2 * k + 1] = _mm256_add_pd(parts[2 * k + 1], _mm256_cvtps_pd(_mm256_extractf128_ps(four, 1)));
      }
  for (; i + 32 <= n; i += 32)
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) parts[k] = plus(parts[k], wide(_mm_loadu_ps(values + i + 4 * k)));
#pragma GCC unroll 8
  for (int k = 0; k < 8; ++k) {
    const int64_t left = n - i - 4 * k;
    if (left <= 0) break;
    const __m128i there = _mm_cmpgt_epi32(_mm_set1_epi32(static_cast<int>(left)), _mm_setr_epi32(0, 1, 2, 3));
    parts[k] = plus(parts[k], wide(_mm_maskload_ps(values + i + 4 * k, there)));
  }
  for (int k = 0; k < 4; ++k) parts[k] = _mm256_add_pd(parts[k], parts[k + 4]);
  return _mm256_add_pd(_mm256_add_pd(parts[0], parts[2]), _mm256_add_pd(parts[1], parts[3]));
}

// The sums of four rows. All are reduced at once, in the order in which sum_of_floats() reduces
// one.
template <Of What>
[[gnu::always_inline]] inline void sums_of_rows(const float* values, int64_t pitch, int64_t n, double* sums) {
  const auto halves = [](__m256d a, __m256d b) {
    return _mm256_add_pd(_mm256_permute2f128_pd(a, b, 0x20), _mm256_permute2f128_pd(a, b, 0x31));
  };
  __m256d parts[2];
  for (int k = 0; k < 2; ++k)
    parts[k] = halves(partial_sums_of_floats<What>(values + 2 * k * pitch, n),
                      partial_sums_of_floats<What>(values + (2 * k + 1) * pitch, n));
  // hadd leaves rows 0, 2, 1, 3.
  _mm256_storeu_pd(sums, _mm256_permute4x64_pd(_mm256_hadd_pd(parts[0], parts[1]), 0b11011000));
}
#endif
// Rows that sums_of_rows() sums at once.
constexpr int64_t rows_per_reduction = math::Vec<double>::size;

template <Of What>
[[gnu::always_inline]] inline double sum_of_floats(const float* values, int64_t n) {
  const auto all = partial_sums_of_floats<What>(values, n);
#ifdef __AVX512F__
  const __m256d sum =
      _mm256_add_pd(_mm512_maskz_extractf64x4_pd(0xf, all, 0), _mm512_maskz_extractf64x4_pd(0xf, all, 1));
#else
  const __m256d sum = all;
#endif
  const __m128d pair = _mm_add_pd(_mm256_castpd256_pd128(sum), _mm256_extractf128_pd(sum, 1));
  return _mm_cvtsd_f64(pair) + _mm_cvtsd_f64(_mm_unpackhi_pd(pair, pair));
}

template <typename Acc, Of What = Of::elements, typename T>
[[gnu::always_inline]] inline Acc sum_of(const T* values, int64_t n) {
  if constexpr (std::is_same_v<T, float> && std::is_same_v<Acc, double>) {
    return sum_of_floats<What>(values, n);
  } else {
    constexpr int64_t lanes = 32;
    Acc sum{};
    int64_t i = 0;
    if (n >= 2 * lanes) {
      alignas(64) Acc sums[lanes] = {};
      for (; i + lanes <= n; i += lanes)
#pragma omp simd
        for (int64_t k = 0; k < lanes; ++k) sums[k] += counted<What, Acc>(values[i + k]);
      for (int64_t half = lanes / 2; half > 0; half /= 2)
        for (int64_t k = 0; k < half; ++k) sums[k] += sums[k + half];
      sum = sums[0];
    }
    for (; i < n; ++i) sum += counted<What, Acc>(values[i]);
    return sum;
  }
}

template <Of What>
[[gnu::always_inline]] inline __m256 plus_half(__m256 sum, __m256 value) {
  if constexpr (What == Of::squares) return _mm256_fmadd_ps(value, value, sum);
  if constexpr (What == Of::numbers) value = _mm256_and_ps(value, _mm256_cmp_ps(value, value, _CMP_ORD_Q));
  return _mm256_add_ps(sum, value);
}
[[gnu::always_inline]] inline void add_to(double* sums, __m256 values) {
  _mm256_storeu_pd(sums, _mm256_add_pd(_mm256_loadu_pd(sums), _mm256_cvtps_pd(_mm256_castps256_ps128(values))));
  _mm256_storeu_pd(sums + 4,
                   _mm256_add_pd(_mm256_loadu_pd(sums + 4), _mm256_cvtps_pd(_mm256_extractf128_ps(values, 1))));
}
#ifdef __AVX512F__
template <Of What>
[[gnu::always_inline]] inline __m512 plus_half(__m512 sum, __m512 value) {
  if constexpr (What == Of::squares) return _mm512_fmadd_ps(value, value, sum);
  if constexpr (What == Of::numbers) value = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(value, value, _CMP_ORD_Q), value);
  return _mm512_add_ps(sum, value);
}
[[gnu::always_inline]] inline void add_to(double* sums, __m512 values) {
  const __m512d low = _mm512_maskz_cvtps_pd(0xff, _mm512_maskz_extractf32x8_ps(0xff, values, 0));
  const __m512d high = _mm512_maskz_cvtps_pd(0xff, _mm512_maskz_extractf32x8_ps(0xff, values, 1));
  _mm512_storeu_pd(sums, _mm512_add_pd(_mm512_loadu_pd(sums), low));
  _mm512_storeu_pd(sums + 8, _mm512_add_pd(_mm512_loadu_pd(sums + 8), high));
}
#endif

// One block of half precision. A float32 sum of so few values is exact enough.
template <Of What, typename T>
[[gnu::always_inline]] inline double sum_of_halves(const T* values, int64_t n) {
  constexpr int64_t lanes = 64;
  alignas(64) __m256 parts[lanes / 8];
  int64_t i = 0;
#ifdef __AVX512F__
  __m512 wide[lanes / 16];
  for (auto& part : wide) part = _mm512_setzero_ps();
  for (; i + lanes <= n; i += lanes)
    for (int64_t k = 0; k < lanes / 16; ++k) wide[k] = plus_half<What>(wide[k], halves::load(values + i + 16 * k).v);
  for (int64_t k = 0; k < lanes / 16; ++k) _mm512_store_ps(reinterpret_cast<float*>(parts + 2 * k), wide[k]);
#else
  for (auto& part : parts) part = _mm256_setzero_ps();
  for (; i + lanes <= n; i += lanes)
    for (int64_t k = 0; k < lanes / 8; ++k) parts[k] = plus_half<What>(parts[k], halves::eight(values + i + 8 * k));
#endif
  for (; i + 8 <= n; i += 8) parts[0] = plus_half<What>(parts[0], halves::eight(values + i));
  __m256d sum = _mm256_setzero_pd();
  for (const __m256 part : parts)
    sum = _mm256_add_pd(sum, _mm256_add_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(part)),
                                           _mm256_cvtps_pd(_mm256_extractf128_ps(part, 1))));
  const __m128d pair = _mm_add_pd(_mm256_castpd256_pd128(sum), _mm256_extractf128_pd(sum, 1));
  double total = _mm_cvtsd_f64(pair) + _mm_cvtsd_f64(_mm_unpackhi_pd(pair, pair));
  for (; i < n; ++i) total += counted<What, double>(static_cast<float>(values[i]));
  return total;
}

template <typename T, Of What = Of::elements>
struct Sum {
  using Value = T;
  using Plain = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
  static constexpr bool compensated = std::is_same_v<T, double>;
  using Acc = std::conditional_t<compensated, CompensatedSum, Plain>;
  static constexpr bool ordered = false;

  static Acc identity() { return Acc{}; }
  [[gnu::always_inline]] static void add(Acc& acc, Plain value) {
    if constexpr (compensated)
      acc.add(value);
    else
      acc += value;
  }
  static void block(Acc& acc, const T* values, int64_t n, int64_t) { add(acc, sum_of<Plain, What>(values, n)); }

  // Blocks of several results, `pitch` elements apart. Short blocks are reduced several at a time,
  // because reducing one register costs as much as the block.
  static void blocks(Acc* acc, int64_t count, const T* values, int64_t pitch, int64_t n) {
    int64_t k = 0;
    if constexpr (std::is_same_v<T, float>) {
      constexpr int64_t longest = 512;
      if (n <= longest)
        for (; k + rows_per_reduction <= count; k += rows_per_reduction) {
          double sums[rows_per_reduction];
          sums_of_rows<What>(values + k * pitch, pitch, n, sums);
          for (int64_t j = 0; j < rows_per_reduction; ++j) add(acc[k + j], sums[j]);
        }
    }
    for (; k < count; ++k) block(acc[k], values + k * pitch, n, 0);
  }

  static void rows(Acc* acc, const T* values, int64_t stride, int64_t rows, int64_t columns, int64_t) {
    // As in partial_sums_of_floats(), four are added in float32.
    using Part = std::conditional_t<std::is_same_v<T, float> && What != Of::squares, float, Plain>;
    int64_t r = 0;
    for (; r + 8 <= rows; r += 8) {
      const T* row = values + r * stride;
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) {
        auto at = [&](int64_t i) { return counted<What, Part>(row[i * stride + j]); };
        auto four = [&](int64_t i) { return static_cast<Plain>((at(i) + at(i + 1)) + (at(i + 2) + at(i + 3))); };
        add(acc[j], four(0) + four(4));
      }
    }
    for (; r < rows; ++r) {
      const T* row = values + r * stride;
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) add(acc[j], counted<What, Plain>(row[j]));
    }
  }

  static void merge(Acc& acc, const Acc& later) {
    if constexpr (compensated) {
      acc.add(later.sum);
      acc.error += later.error;
    } else {
      acc += later;
    }
  }
  static Plain value(const Acc& acc) {
    if constexpr (compensated)
      return acc.value();
    else
      return acc;
  }
};

// Sums of complex numbers: both parts in one pass.
template <typename R>
struct ComplexSum {
  using Value = std::complex<R>;
  using Part = Sum<R>;
  struct Acc {
    typename Part::Acc parts[2] = {Part::identity(), Part::identity()};
  };
  static constexpr bool ordered = false;

  static Acc identity() { return Acc{}; }
  static void block(Acc& acc, const Value* values, int64_t n, int64_t) {
    constexpr int64_t lanes = 32;
    const R* numbers = reinterpret_cast<const R*>(values);
    alignas(64) double sums[lanes] = {};
    int64_t i = 0;
    for (; i + lanes <= 2 * n; i += lanes)
#pragma omp simd
      for (int64_t k = 0; k < lanes; ++k) sums[k] += static_cast<double>(numbers[i + k]);
    for (int64_t k = 0; i + k < 2 * n; ++k) sums[k] += static_cast<double>(numbers[i + k]);
    for (int64_t half = lanes / 2; half > 1; half /= 2)
      for (int64_t k = 0; k < half; ++k) sums[k] += sums[k + half];
    for (int k = 0; k < 2; ++k) Part::add(acc.parts[k], sums[k]);
  }
  static void rows(Acc* acc, const Value* values, int64_t stride, int64_t rows, int64_t columns, int64_t first) {
    Part::rows(acc->parts, reinterpret_cast<const R*>(values), 2 * stride, rows, 2 * columns, first);
  }
  static void merge(Acc& acc, const Acc& later) {
    for (int k = 0; k < 2; ++k) Part::merge(acc.parts[k], later.parts[k]);
  }
  static std::complex<double> value(const Acc& acc) { return {Part::value(acc.parts[0]), Part::value(acc.parts[1])}; }
};

// Sums of half precision, converted in registers.
template <typename T, Of What = Of::elements>
struct SumOfHalves {
  using Value = T;
  using Acc = double;
  static constexpr bool ordered = false;

  static Acc identity() { return 0; }
  static void block(Acc& acc, const T* values, int64_t n, int64_t) { acc += sum_of_halves<What>(values, n); }
  static void rows(Acc* acc, const T* values, int64_t stride, int64_t rows, int64_t columns, int64_t) {
    // float32 is exact enough for the sum of sixteen rows.
    constexpr int64_t rows_per_sum = 16;
    for (int64_t r = 0; r < rows; r += rows_per_sum) {
      const int64_t count = std::min(rows_per_sum, rows - r);
      const T* from = values + r * stride;
      int64_t j = 0;
#ifdef __AVX512F__
      for (; j + 16 <= columns; j += 16) {
        __m512 sum = _mm512_setzero_ps();
        for (int64_t i = 0; i < count; ++i) sum = plus_half<What>(sum, halves::load(from + i * stride + j).v);
        add_to(acc + j, sum);
      }
#else
      for (; j + 8 <= columns; j += 8) {
        __m256 sum = _mm256_setzero_ps();
        for (int64_t i = 0; i < count; ++i) sum = plus_half<What>(sum, halves::eight(from + i * stride + j));
        add_to(acc + j, sum);
      }
#endif
      for (; j < columns; ++j) {
        float sum = 0;
        for (int64_t i = 0; i < count; ++i) sum += counted<What, float>(static_cast<float>(from[i * stride + j]));
        acc[j] += static_cast<double>(sum);
      }
    }
  }
  static void merge(Acc& acc, const Acc& later) { acc += later; }
  static double value(const Acc& acc) { return acc; }
};

template <typename T, typename From>
T narrowed(From value) {
  if constexpr (is_half_v<T>)
    return T(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

// `context` points to the factor of each sum (Distinct::times).
template <typename T, typename Operation, bool Mean>
void store_sum(const typename Operation::Acc* results, int64_t count, int64_t length, char* to, int64_t stride,
               const void* context) {
  T* out = reinterpret_cast<T*>(to);
  const int64_t times = *static_cast<const int64_t*>(context);
  for (int64_t i = 0; i < count; ++i) {
    auto sum = Operation::value(results[i]);
    if constexpr (Mean)
      sum /= static_cast<double>(length);
    else if (times != 1)
      sum *= static_cast<real_t<decltype(sum)>>(times);
    out[i * stride] = narrowed<T>(sum);
  }
}

// Sums or means over the dimensions that have size 1 in `results`.
template <typename T, bool Mean, Of What = Of::elements>
void sum_to(const cb_tensor& whole, const cb_tensor& results) {
  const Distinct distinct(whole, results);
  const auto run_as = [&]<typename Operation>() {
    using Value = typename Operation::Value;
    Converting converting;
    run<Operation>(distinct.in, distinct.out, any_source_of<T, Value>(distinct.in, converting),
                   {static_cast<char*>(results.data), sizeof(T), store_sum<T, Operation, Mean>, &distinct.times},
                   Parts::Whole);
  };
  if constexpr (is_complex_v<T>)
    run_as.template operator()<ComplexSum<real_t<T>>>();
  else if constexpr (is_half_v<T>)
    run_as.template operator()<SumOfHalves<T, What>>();
  else
    run_as.template operator()<Sum<std::conditional_t<is_integer_v<T>, int64_t, T>, What>>();
  distinct.template copy<T>(results);
}

}  // namespace reduce
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
