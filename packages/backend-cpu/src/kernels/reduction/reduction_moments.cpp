// var, std, linalg_vector_norm, logsumexp.
#include <cmath>
#include <complex>

#include "candelabra/arguments/reduction.hpp"
#include "candelabra/math.hpp"
#include "kernels/reduction/reduce_aminmax.hpp"
#include "kernels/reduction/reduce_sum.hpp"
#include "kernels/reduction/reduce_variance.hpp"
#include "simd/vec_complex.hpp"
#include "simd/vec_power.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using namespace reduce;

// ---- var, std

struct Spread {
  double correction;
  bool root;
  double of(double squares, int64_t length) const {
    double variance = squares / std::max(0.0, static_cast<double>(length) - correction);
    return root ? std::sqrt(variance) : variance;
  }
};

template <typename T, typename Acc>
void store_spread(const Acc* results, int64_t count, int64_t length, char* to, int64_t stride, const void* context) {
  const Spread& spread = *static_cast<const Spread*>(context);
  for (int64_t i = 0; i < count; ++i)
    reinterpret_cast<T*>(to)[i * stride] = static_cast<compute_t<T>>(spread.of(results[i].squares, length));
}

// var, std: the same arguments.
template <bool Root>
void variance(Call& call) {
  const arguments::Var args(call);
  const cb_tensor& in = *args.self;
  cb_tensor& out = call.output();
  Spread spread{args.correction ? args.correction->re : 1.0, Root};
  dispatch<decltype(FloatTypes{} + ComplexTypes{})>(in.dtype, [&]<typename T>() {
    using Operation = std::conditional_t<is_complex_v<T>, ComplexVariance<real_t<T>>, Variance<compute_t<T>>>;
    using Acc = typename Operation::Acc;
    run<Operation>(in, out, source_of<T, typename Operation::Value>(in),
                   {static_cast<char*>(out.data), sizeof(real_t<T>), store_spread<real_t<T>, Acc>, &spread});
  });
}

// ---- linalg_vector_norm

// float32 is squared in float64, where it cannot overflow.
template <typename T>
using SumOfSquares = Sum<T, Of::squares>;

struct Magnitude {
  explicit Magnitude(const void*) {}
  template <typename T>
  auto operator()(T value) const {
    if constexpr (is_complex_v<T>)
      return std::hypot(value.real(), value.imag());
    else
      return value < 0 ? -value : value == 0 ? T(0) : value;
  }
};
// A float, not a bool as in IsNonzero: the compiler vectorizes no conversion of bool to float.
struct NotZero {
  explicit NotZero(const void*) {}
  template <typename T>
  float operator()(T value) const {
    return value != T(0) ? 1.0f : 0.0f;
  }
};
struct MagnitudeInDouble {
  explicit MagnitudeInDouble(const void*) {}
  template <typename T>
  double operator()(T value) const {
    return static_cast<double>(std::abs(value));
  }
};
// Powers of magnitudes. `context` points to the exponent.
template <typename T>
void load_powers(const char* from, int64_t stride, int64_t n, void* values, const void* context) {
  using V = math::Vec<double>;
  double* to = static_cast<double*>(values);
  load_through<T, double, MagnitudeInDouble>(from, stride, n, to, nullptr);
  const V exponent = *static_cast<const double*>(context);
  int64_t i = 0;
  for (; i + V::size <= n; i += V::size) math::pow(V::load(to + i), exponent).store(to + i);
  if (i < n) math::pow(V::load(to + i, n - i), exponent).store(to + i, n - i);
}

// T: the type of the output. `context` points to the exponent of the root.
template <typename T, typename Operation>
void store_norm(const typename Operation::Acc* results, int64_t count, int64_t, char* to, int64_t stride,
                const void* context) {
  double root = *static_cast<const double*>(context);
  for (int64_t i = 0; i < count; ++i) {
    double sum = Operation::value(results[i]);
    sum = root == 1 ? sum : root == 0.5 ? std::sqrt(sum) : std::pow(sum, root);
    reinterpret_cast<T*>(to)[i * stride] = static_cast<compute_t<T>>(sum);
  }
}
template <typename T>
void store_extremum(const compute_t<T>* results, int64_t count, int64_t, char* to, int64_t stride, const void*) {
  for (int64_t i = 0; i < count; ++i) reinterpret_cast<T*>(to)[i * stride] = results[i];
}

// A sum of squares as sum * 4^exponent, for numbers whose squares double cannot represent.
struct ScaledSquares {
  int exponent = 0;
  double sum = 0;
  void add(int other_exponent, double other_sum) {
    if (other_sum == 0) return;
    const int common = sum == 0 ? other_exponent : std::max(exponent, other_exponent);
    sum = std::ldexp(sum, 2 * (exponent - common)) + std::ldexp(other_sum, 2 * (other_exponent - common));
    exponent = common;
  }
};

struct ScaledSumOfSquares {
  using Value = double;
  using Acc = ScaledSquares;
  static constexpr bool ordered = false;

  static Acc identity() { return {}; }
  static void block(Acc& acc, const double* values, int64_t n, int64_t) {
    double largest = 0;
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(values[i]));
    const int exponent = largest > 0 && std::isfinite(largest) ? std::ilogb(largest) : 0;
    // Two factors: the power of two that scales a subnormal number to 1 is out of range.
    const double half = std::ldexp(1.0, -exponent / 2), rest = std::ldexp(1.0, -exponent - (-exponent / 2));
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) {
      const double scaled = values[i] * half * rest;
      sum += scaled * scaled;
    }
    acc.add(exponent, sum);
  }
  static void rows(Acc* acc, const double* values, int64_t stride, int64_t rows, int64_t columns, int64_t) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = 0; j < columns; ++j) block(acc[j], values + r * stride + j, 1, 0);
  }
  static void merge(Acc& acc, const Acc& later) { acc.add(later.exponent, later.sum); }
};

void store_scaled_norm(const ScaledSquares* results, int64_t count, int64_t, char* to, int64_t stride, const void*) {
  for (int64_t i = 0; i < count; ++i)
    reinterpret_cast<double*>(to)[i * stride] = std::ldexp(std::sqrt(results[i].sum), results[i].exponent);
}

// Whether a sum of squares overflowed, or may have lost digits to underflow.
bool out_of_range(const cb_tensor& norms) {
  bool found = false;
  Geometry<1> g = geometry<1>({&norms});
  for_each_run(g, 0, g.numel, [&](const int64_t* at, int64_t n) {
    const double* values = data<double>(norms) + at[0];
    for (int64_t i = 0; i < n; ++i) {
      const double norm = values[i * g.strides[0][0]];
      found |= std::isinf(norm) || norm < 0x1p-480;
    }
  });
  return found;
}

// Squares of half precision are summed in float32. bfloat16 has the range of float32, so sums that
// overflow or underflow are repeated in float64.
template <typename T>
struct SumOfSquaresOfHalves : SumOfHalves<T, Of::squares> {
  using typename SumOfHalves<T, Of::squares>::Acc;
  static void block(Acc& acc, const T* values, int64_t n, int64_t) {
    constexpr double smallest = 0x1p-80, largest = 0x1p126;
    double sum = sum_of_halves<Of::squares>(values, n);
    if constexpr (std::is_same_v<T, BFloat16>)
      if (!(sum > smallest && sum < largest)) {
        sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
      }
    acc += sum;
  }
};

template <typename T>
void norm_of(const cb_tensor& in, const cb_tensor& out, double order) {
  using R = real_t<T>;
  using Value = compute_t<R>;
  const char* from = static_cast<const char*>(in.data);
  char* to = static_cast<char*>(out.data);
  double root = 1;
  if (order == 2) {
    root = 0.5;
    using Memory = std::conditional_t<is_half_v<R>, R, Value>;
    using Operation = std::conditional_t<is_half_v<R>, SumOfSquaresOfHalves<R>, SumOfSquares<Value>>;
    TargetOf<typename Operation::Acc> target{to, sizeof(R), store_norm<R, Operation>, &root};
    const Parts parts = is_complex_v<T> ? Parts::Reduce : Parts::Whole;
    run<Operation>(in, out, source_of<R, Memory>(in), target, parts);
    if constexpr (std::is_same_v<R, double>)
      if (in.numel != 0 && out_of_range(out))
        run<ScaledSumOfSquares>(in, out, source_of<R, Value>(in), {to, sizeof(R), store_scaled_norm}, parts);
    return;
  }
  if (std::isinf(order)) {
    SourceOf<Value> magnitudes{from, sizeof(T), load_through<T, Value, Magnitude>};
    TargetOf<Value> target{to, sizeof(R), store_extremum<R>};
    if (order > 0) return run<Extremum<Value, true>>(in, out, magnitudes, target);
    return run<Extremum<Value, false>>(in, out, magnitudes, target);
  }
  if (order == 0 || order == 1) {
    using Operation = Sum<Value>;
    SourceOf<Value> source{from, sizeof(T),
                           order == 0 ? load_through<T, Value, NotZero> : load_through<T, Value, Magnitude>};
    return run<Operation>(in, out, source, {to, sizeof(R), store_norm<R, Operation>, &root});
  }
  using Operation = Sum<double>;
  root = 1 / order;
  SourceOf<double> powers{from, sizeof(T), load_powers<T>, &order};
  run<Operation>(in, out, powers, {to, sizeof(R), store_norm<R, Operation>, &root});
}

void vector_norm(Call& call) {
  const arguments::LinalgVectorNorm args(call);
  const cb_tensor& in = *args.self;
  cb_tensor& out = call.output();
  double order = args.ord->re;
  dispatch<decltype(FloatTypes{} + ComplexTypes{})>(in.dtype, [&]<typename T>() { norm_of<T>(in, out, order); });
}

// ---- logsumexp

// The sum of exp(x - shift). The shift is the largest x, or 0 if that is infinite.
struct ScaledSum {
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0;
  static double shift(double largest) { return std::isinf(largest) ? 0.0 : largest; }
  void add(double other_largest, double other_sum) {
    double common = other_largest > largest || other_largest != other_largest ? other_largest : largest;
    double to = shift(common);
    double kept = sum == 0 ? 0 : sum * std::exp(shift(largest) - to);
    double added = other_sum == 0 ? 0 : other_sum * std::exp(shift(other_largest) - to);
    sum = kept + added;
    largest = common;
  }
};

template <typename T>
struct LogSumExp {
  using Value = T;
  using Acc = ScaledSum;
  static constexpr bool ordered = false;

  static Acc identity() { return {}; }
  static T finite(T value) { return std::isinf(value) ? T(0) : value; }

  static void block(Acc& acc, const T* values, int64_t n, int64_t) {
    T largest = Extremum<T, true>::of(values, n);
    T shift = finite(largest);
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(math::exp(values[i] - shift));
    acc.add(largest, sum);
  }
  static void rows(Acc* acc, const T* values, int64_t stride, int64_t rows, int64_t columns, int64_t) {
    constexpr int64_t group = 32;
    T largest[tile_columns], shift[tile_columns];
    double sum[tile_columns];
    for (int64_t r = 0; r < rows; r += group) {
      int64_t count = std::min(group, rows - r);
      const T* top = values + r * stride;
      for (int64_t j = 0; j < columns; ++j) largest[j] = Extremum<T, true>::identity(), sum[j] = 0;
      Extremum<T, true>::rows(largest, top, stride, count, columns, 0);
      for (int64_t j = 0; j < columns; ++j) shift[j] = finite(largest[j]);
      for (int64_t i = 0; i < count; ++i) {
        const T* row = top + i * stride;
#pragma omp simd
        for (int64_t j = 0; j < columns; ++j) sum[j] += static_cast<double>(math::exp(row[j] - shift[j]));
      }
      for (int64_t j = 0; j < columns; ++j) acc[j].add(largest[j], sum[j]);
    }
  }
  static void merge(Acc& acc, const Acc& later) { acc.add(later.largest, later.sum); }
};

// The same for complex numbers, scaled by the largest real part.
struct ComplexScaledSum {
  double largest = -std::numeric_limits<double>::infinity();
  complex128 sum = 0;
  void add(double other_largest, complex128 other_sum) {
    double common = other_largest > largest || other_largest != other_largest ? other_largest : largest;
    double to = ScaledSum::shift(common);
    auto scaled = [to](complex128 part, double from) {
      return part == 0.0 ? part : part * std::exp(ScaledSum::shift(from) - to);
    };
    sum = scaled(sum, largest) + scaled(other_sum, other_largest);
    largest = common;
  }
};

template <typename T>
struct LogSumExp<std::complex<T>> {
  using Value = std::complex<T>;
  using Acc = ComplexScaledSum;
  static constexpr bool ordered = false;

  static Acc identity() { return {}; }
  static double larger(double a, T b) { return (b > a) | (b != b) ? static_cast<double>(b) : a; }
  static complex128 power(Value value, double shift) {
    return std::exp(complex128(static_cast<double>(value.real()) - shift, static_cast<double>(value.imag())));
  }
  // Adds the powers of one register. Returns false, with nothing added, if a number is outside the
  // range of math::exp.
  static bool add_powers(const Value* values, math::Vec<double> shift, math::VecComplex& sum) {
    math::VecComplex z = math::VecComplex::load(values);
    z.real = z.real - shift;
    if (any(!math::is_in_sincos_exp_range(z.imag, z.real))) return false;
    const math::VecComplex e = math::exp(z);
    sum = {sum.real + e.real, sum.imag + e.imag};
    return true;
  }

  static void block(Acc& acc, const Value* values, int64_t n, int64_t) {
    using V = math::VecComplex;
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < n; ++i) largest = larger(largest, values[i].real());
    const double shift = ScaledSum::shift(largest);
    V parts = {0.0, 0.0};
    complex128 sum = 0;
    for (int64_t i = 0; i < n; i += V::size) {
      const int64_t count = std::min(V::size, n - i);
      if (count == V::size && add_powers(values + i, shift, parts)) continue;
      for (int64_t k = i; k < i + count; ++k) sum += power(values[k], shift);
    }
    alignas(64) complex128 each[V::size];
    parts.store(each);
    for (const complex128 part : each) sum += part;
    acc.add(largest, sum);
  }
  static void rows(Acc* acc, const Value* values, int64_t stride, int64_t rows, int64_t columns, int64_t) {
    using V = math::VecComplex;
    constexpr int64_t group = 32;
    for (int64_t r = 0; r < rows; r += group) {
      const int64_t count = std::min(group, rows - r);
      for (int64_t j = 0; j < columns; j += V::size) {
        const Value* top = values + r * stride + j;
        const int64_t wide = std::min(V::size, columns - j);
        double largest[V::size];
        alignas(64) complex128 shift[V::size] = {}, sum[V::size] = {};
        std::fill_n(largest, V::size, -std::numeric_limits<double>::infinity());
        for (int64_t i = 0; i < count; ++i)
          for (int64_t k = 0; k < wide; ++k) largest[k] = larger(largest[k], top[i * stride + k].real());
        for (int64_t k = 0; k < wide; ++k) shift[k] = ScaledSum::shift(largest[k]);
        const math::Vec<double> shifts = V::load(shift).real;
        V parts = {0.0, 0.0};
        for (int64_t i = 0; i < count; ++i) {
          const Value* row = top + i * stride;
          if (wide == V::size && add_powers(row, shifts, parts)) continue;
          for (int64_t k = 0; k < wide; ++k) sum[k] += power(row[k], shift[k].real());
        }
        alignas(64) complex128 each[V::size];
        parts.store(each);
        for (int64_t k = 0; k < wide; ++k) acc[j + k].add(largest[k], sum[k] + each[k]);
      }
    }
  }
  static void merge(Acc& acc, const Acc& later) { acc.add(later.largest, later.sum); }
};

template <typename T, typename Acc>
void store_logarithm(const Acc* results, int64_t count, int64_t, char* to, int64_t stride, const void*) {
  for (int64_t i = 0; i < count; ++i)
    reinterpret_cast<T*>(to)[i * stride] =
        static_cast<compute_t<T>>(std::log(results[i].sum) + ScaledSum::shift(results[i].largest));
}

void logsumexp(Call& call) {
  const cb_tensor& in = *arguments::Logsumexp(call).self;
  cb_tensor& out = call.output();
  dispatch<decltype(FloatTypes{} + ComplexTypes{})>(in.dtype, [&]<typename T>() {
    using Value = compute_t<T>;
    using Acc = typename LogSumExp<Value>::Acc;
    run<LogSumExp<Value>>(in, out, source_of<T, Value>(in),
                          {static_cast<char*>(out.data), sizeof(T), store_logarithm<T, Acc>});
  });
}

}  // namespace

void register_reduction_moments(KernelTable& table) {
  table.add<variance<false>>("var");
  table.add<variance<true>>("std");
  table.add<vector_norm>("linalg_vector_norm");
  table.add<logsumexp>("logsumexp");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
