// sum, mean, _nansum, count_nonzero, prod, all, any.
#include <atomic>
#include <complex>
#include <cstring>

#include "candelabra/arguments/reduction.hpp"
#include "kernels/reduction/reduce_aminmax.hpp"
#include "kernels/reduction/reduce_sum.hpp"
#include "simd/vec.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using namespace reduce;

// ---- sum, mean

template <bool Largest>
void reduce_truth(const cb_tensor& in, const cb_tensor& out);

void sum(Call& call) {
  const cb_tensor& in = *arguments::Sum(call).self;
  cb_tensor& out = call.output();
  if (out.dtype == CB_BOOL) return reduce_truth<true>(in, out);
  dispatch<NumberTypes>(out.dtype, [&]<typename T>() { sum_to<T, false>(in, out); });
}

void mean(Call& call) {
  const cb_tensor& in = *arguments::Mean(call).self;
  cb_tensor& out = call.output();
  dispatch<decltype(FloatTypes{} + ComplexTypes{})>(out.dtype, [&]<typename T>() { sum_to<T, true>(in, out); });
}

void nansum(Call& call) {
  const cb_tensor& in = *arguments::Nansum(call).self;
  cb_tensor& out = call.output();
  dispatch<FloatTypes>(out.dtype, [&]<typename T>() { sum_to<T, false, Of::numbers>(in, out); });
}

// ---- count_nonzero

template <size_t bytes>
using Unsigned =
    std::conditional_t<bytes == 1, uint8_t,
                       std::conditional_t<bytes == 2, uint16_t, std::conditional_t<bytes == 4, uint32_t, uint64_t>>>;

template <typename T>
struct CountNonzero {
  using Value = T;
  using Acc = int64_t;
  static constexpr bool ordered = false;

  static Acc identity() { return 0; }
  static void block(Acc& acc, const T* values, int64_t n, int64_t) {
    // Counters are as wide as the elements. A block is too short for them to overflow.
    using Counter = Unsigned<sizeof(T)>;
    constexpr int64_t lanes = 128 / sizeof(Counter);
    static_assert(block_length / lanes <= 255);
    Counter counters[lanes] = {};
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes)
#pragma omp simd
      for (int64_t k = 0; k < lanes; ++k) counters[k] = static_cast<Counter>(counters[k] + is_nonzero(values[i + k]));
    for (const Counter count : counters) acc += static_cast<Acc>(count);
    for (; i < n; ++i) acc += is_nonzero(values[i]);
  }
  static void rows(Acc* acc, const T* values, int64_t stride, int64_t rows, int64_t columns, int64_t) {
    for (int64_t r = 0; r < rows; ++r) {
      const T* row = values + r * stride;
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) acc[j] += is_nonzero(row[j]);
    }
  }
  static void merge(Acc& acc, const Acc& later) { acc += later; }
};

void store_count(const int64_t* results, int64_t count, int64_t, char* to, int64_t stride, const void*) {
  for (int64_t i = 0; i < count; ++i) reinterpret_cast<int64_t*>(to)[i * stride] = results[i];
}

void count_nonzero(Call& call) {
  const cb_tensor& in = *arguments::CountNonzero(call).self;
  const cb_tensor& out = call.output();
  dispatch<AllTypes>(in.dtype, [&]<typename T>() {
    using Value = std::conditional_t<is_integer_v<T>, Unsigned<sizeof(T)>, T>;
    run<CountNonzero<Value>>(in, out, {static_cast<const char*>(in.data), sizeof(T)},
                             {static_cast<char*>(out.data), sizeof(int64_t), store_count});
  });
}

// ---- prod

template <typename T>
struct Product {
  using Value = T;
  using Acc = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
  static constexpr bool ordered = false;

  static Acc identity() { return 1; }
  static void block(Acc& acc, const T* values, int64_t n, int64_t) {
    int64_t i = 0;
    if constexpr (std::is_same_v<T, float>) {
      // Eight independent products of registers hide latency.
      using Wide = math::Vec<double>;
      constexpr int64_t step = 4 * math::Vec<float>::size;
      if (n >= step) {
        Wide p[8], low, high;
        for (Wide& each : p) each = 1.0;
        for (; i + step <= n; i += step)
#pragma GCC unroll 4
          for (int k = 0; k < 4; ++k) {
            math::to_double(math::Vec<float>::load(values + i + k * math::Vec<float>::size), low, high);
            p[2 * k] = p[2 * k] * low;
            p[2 * k + 1] = p[2 * k + 1] * high;
          }
        alignas(64) double lanes[Wide::size];
        (((p[0] * p[1]) * (p[2] * p[3])) * ((p[4] * p[5]) * (p[6] * p[7]))).store(lanes);
        for (const double each : lanes) acc *= each;
      }
    }
    Acc a = 1, b = 1;
    const int64_t half = (n - i) / 2;
    const T *first = values + i, *second = first + half;
#pragma omp simd reduction(* : a, b)
    for (int64_t k = 0; k < half; ++k) {
      a *= static_cast<Acc>(first[k]);
      b *= static_cast<Acc>(second[k]);
    }
    if ((n - i) % 2) a *= static_cast<Acc>(values[n - 1]);
    acc *= a * b;
  }
  static void rows(Acc* acc, const T* values, int64_t stride, int64_t rows, int64_t columns, int64_t) {
    for (int64_t r = 0; r < rows; ++r) {
      const T* row = values + r * stride;
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) acc[j] *= static_cast<Acc>(row[j]);
    }
  }
  static void merge(Acc& acc, const Acc& later) { acc *= later; }
};

template <typename T>
struct Product<std::complex<T>> {
  using Value = std::complex<T>;
  using Acc = complex128;
  static constexpr bool ordered = false;

  static Acc identity() { return {1, 0}; }
  static void merge(Acc& acc, const Acc& later) {
    acc = {acc.real() * later.real() - acc.imag() * later.imag(),
           acc.real() * later.imag() + acc.imag() * later.real()};
  }
  static void block(Acc& acc, const Value* values, int64_t n, int64_t) {
    // Independent products hide latency.
    constexpr int64_t lanes = 16;
    const T* numbers = reinterpret_cast<const T*>(values);
    alignas(64) double real[lanes], imag[lanes] = {};
    std::fill_n(real, lanes, 1.0);
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes)
#pragma omp simd
      for (int64_t k = 0; k < lanes; ++k) {
        const auto x = static_cast<double>(numbers[2 * (i + k)]), y = static_cast<double>(numbers[2 * (i + k) + 1]);
        const double old_real = real[k];
        real[k] = old_real * x - imag[k] * y;
        imag[k] = old_real * y + imag[k] * x;
      }
    for (; i < n; ++i) merge(acc, Acc(values[i]));
    if (n < lanes) return;
    for (int64_t half = lanes / 2; half > 0; half /= 2)
      for (int64_t k = 0; k < half; ++k) {
        Acc both(real[k], imag[k]);
        merge(both, Acc(real[k + half], imag[k + half]));
        real[k] = both.real(), imag[k] = both.imag();
      }
    merge(acc, Acc(real[0], imag[0]));
  }
  static void rows(Acc* acc, const Value* values, int64_t stride, int64_t rows, int64_t columns, int64_t) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = 0; j < columns; ++j) merge(acc[j], Acc(values[r * stride + j]));
  }
};

template <typename T, typename Acc>
void store_product(const Acc* results, int64_t count, int64_t, char* to, int64_t stride, const void*) {
  for (int64_t i = 0; i < count; ++i) reinterpret_cast<T*>(to)[i * stride] = narrowed<T>(results[i]);
}

void prod(Call& call) {
  const cb_tensor& in = *arguments::Prod(call).self;
  cb_tensor& out = call.output();
  if (out.dtype == CB_BOOL) return reduce_truth<false>(in, out);
  dispatch<NumberTypes>(out.dtype, [&]<typename T>() {
    using Value = std::conditional_t<is_integer_v<T>, int64_t, compute_t<T>>;
    using Operation = Product<Value>;
    Converting converting;
    run<Operation>(in, out, any_source_of<T, Value>(in, converting),
                   {static_cast<char*>(out.data), sizeof(T), store_product<T, typename Operation::Acc>});
  });
}

// ---- all, any: the minimum and maximum of bytes that are 0 for zero

void store_truth(const uint8_t* results, int64_t count, int64_t, char* to, int64_t stride, const void*) {
  for (int64_t i = 0; i < count; ++i) to[i * stride] = results[i] != 0;
}

// One result for all elements. No chunk is started once an element has decided the result.
template <bool Largest>
void decide(const cb_tensor& in, const SourceOf<uint8_t>& source, const cb_tensor& out) {
  constexpr int64_t chunk = 1 << 15;
  const Geometry<1> g = geometry<1>({&in});
  const int64_t stride = g.strides[0][0];
  const Load load = source.load ? source.load : stride == 1 ? nullptr : load_through<uint8_t, uint8_t, Unchanged>;
  std::atomic<bool> decided{false};
  parallel_for((g.numel + chunk - 1) / chunk, 1, [&](int64_t first, int64_t last) {
    uint8_t truths[block_length];
    for (int64_t c = first; c < last && !decided.load(std::memory_order_relaxed); ++c)
      for_each_run(g, c * chunk, std::min((c + 1) * chunk, g.numel), [&](const int64_t* at, int64_t n) {
        for (int64_t i = 0; i < n; i += block_length) {
          const int64_t count = std::min(block_length, n - i);
          const char* from = source.data + (at[0] + i * stride) * source.itemsize;
          if (load) load(from, stride, count, truths, nullptr);
          const uint8_t* values = load ? truths : reinterpret_cast<const uint8_t*>(from);
          if ((Extremum<uint8_t, Largest>::of(values, count) != 0) == Largest)
            decided.store(true, std::memory_order_relaxed);
        }
      });
  });
  const bool result = decided ? Largest : !Largest;
  std::memcpy(out.data, &result, 1);
}

template <bool Largest>
void reduce_truth(const cb_tensor& in, const cb_tensor& out) {
  SourceOf<uint8_t> source{static_cast<const char*>(in.data), itemsize(in.dtype)};
  dispatch<AllTypes>(in.dtype, [&]<typename T>() {
    if constexpr (sizeof(T) != 1) source.load = load_through<T, uint8_t, IsNonzero>;
  });
  if (out.numel == 1 && in.numel > (1 << 15)) return decide<Largest>(in, source, out);
  run<Extremum<uint8_t, Largest>>(in, out, source, {static_cast<char*>(out.data), 1, store_truth});
}

void all(Call& call) {
  reduce_truth<false>(*arguments::All(call).self, call.output());
}
void any(Call& call) {
  reduce_truth<true>(*arguments::Any(call).self, call.output());
}

}  // namespace

void register_reduction(KernelTable& table) {
  table.add<sum>("sum", CB_KERNEL_CONVERTS);
  table.add<mean>("mean", CB_KERNEL_CONVERTS);
  table.add<nansum>("_nansum", CB_KERNEL_CONVERTS);
  table.add<count_nonzero>("count_nonzero");
  table.add<prod>("prod", CB_KERNEL_CONVERTS);
  table.add<all>("all");
  table.add<any>("any");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
