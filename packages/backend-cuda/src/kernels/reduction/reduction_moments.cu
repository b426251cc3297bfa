// var, std, linalg_vector_norm, logsumexp. float32 is accumulated in float64.
#include <cmath>
#include <limits>

#include "candelabra/arguments/reduction.hpp"
#include "candelabra/math.hpp"
#include "drivers/reduce.cuh"

namespace candelabra::cuda {
namespace {

using MomentTypes = decltype(FloatTypes{} + ComplexTypes{});

// ---- var, std

// The mean and the sum of squared deviations. To avoid a division for each element, `batch`
// elements are summed as differences from a reference, the mean so far or the first element. The
// distance of the reference from the mean is itself part of the result, so that the cancellation
// error is bounded by the batch size.
template <typename R>
struct Moments {
  static constexpr int batch = 64;
  double count;
  R mean, squares;     // of the elements that are folded in
  R sum, sum_squares;  // of the differences of the pending elements
  int32_t pending;

  __device__ static Moments identity() { return {0, R(0), R(0), R(0), R(0), 0}; }
  __device__ void take(R value) {
    if (pending == batch) fold();
    if (count == 0 && pending == 0) mean = value;
    const R distance = value - mean;
    sum += distance;
    sum_squares += distance * distance;
    ++pending;
  }
  __device__ void fold() {
    if (pending == 0) return;
    const R n = static_cast<R>(pending), average = sum / n, reference = mean;
    const Moments gathered{
        static_cast<double>(pending), reference + average, sum_squares - sum * average, R(0), R(0), 0};
    sum = sum_squares = R(0);
    pending = 0;
    if (count == 0)
      *this = gathered;
    else
      add(gathered);
  }
  // Chan, Golub, LeVeque, Updating formulae and a pairwise algorithm for computing sample variances
  // (1979).
  __device__ void add(const Moments& other) {
    const double total = count + other.count;
    const R delta = other.mean - mean, share = static_cast<R>(other.count / total);
    mean += delta * share;
    squares += other.squares + delta * delta * (static_cast<R>(count) * share);
    count = total;
  }
  __device__ static Moments merged(Moments a, Moments b) {
    a.fold();
    b.fold();
    if (b.count == 0) return a;
    if (a.count == 0) return b;
    a.add(b);
    return a;
  }
};

// For half precisions float32 is precise enough.
template <typename T>
struct Variance {
  using Part = std::conditional_t<is_half_v<T>, float, double>;
  using Element = T;
  using Acc = Moments<Part>;
  using Results = Types<T>;
  static constexpr bool ordered = false;
  double correction;
  bool root;

  __device__ Acc identity() const { return Acc::identity(); }
  __device__ void take(Acc& acc, compute_t<T> value, int64_t) const { acc.take(static_cast<Part>(value)); }
  __device__ Acc merge(const Acc& a, const Acc& b) const { return Acc::merged(a, b); }
  __device__ void finish(const Acc& acc, int64_t length, compute_t<T>* result) const {
    Acc all = acc;
    all.fold();
    *result = static_cast<compute_t<T>>(of(static_cast<double>(all.squares), length));
  }

  __device__ double of(double squares, int64_t length) const {
    const double freedom = static_cast<double>(length) - correction;
    const double variance = squares / (freedom > 0 ? freedom : 0.0);
    return root ? ::cuda::std::sqrt(variance) : variance;
  }
};

// The variance of complex numbers is the variance of the real parts plus that of the imaginary
// parts.
template <typename R>
struct Variance<::cuda::std::complex<R>> {
  struct Acc {
    Moments<double> real, imaginary;
  };
  using Element = ::cuda::std::complex<R>;
  using Results = Types<R>;
  static constexpr bool ordered = false;
  double correction;
  bool root;

  __device__ Acc identity() const { return {Moments<double>::identity(), Moments<double>::identity()}; }
  __device__ void take(Acc& acc, Element value, int64_t) const {
    acc.real.take(static_cast<double>(value.real()));
    acc.imaginary.take(static_cast<double>(value.imag()));
  }
  __device__ Acc merge(const Acc& a, const Acc& b) const {
    return {Moments<double>::merged(a.real, b.real), Moments<double>::merged(a.imaginary, b.imaginary)};
  }
  __device__ void finish(const Acc& acc, int64_t length, R* result) const {
    Acc all = acc;
    all.real.fold();
    all.imaginary.fold();
    *result = static_cast<R>(Variance<R>{correction, root}.of(all.real.squares + all.imaginary.squares, length));
  }
};

// var, std: the same arguments.
template <bool Root>
void variance(Call& call) {
  const arguments::Var args(call);
  const double correction = args.correction ? args.correction->re : 1.0;
  dispatch<MomentTypes>(args.self->dtype,
                        [&]<typename T>() { reduce(call, Variance<T>{correction, Root}, *args.self, call.output()); });
}

// ---- linalg_vector_norm

// The square root of the sum of squares. bfloat16 has the range of float32, whose squares need
// float64.
template <typename T>
struct EuclideanNorm {
  using Element = T;
  using Acc = std::conditional_t<std::is_same_v<T, Half>, float, double>;
  using Results = Types<real_t<T>>;
  static constexpr bool ordered = false;

  __device__ Acc identity() const { return Acc(0); }
  __device__ void take(Acc& acc, compute_t<T> value, int64_t) const {
    if constexpr (is_complex_v<T>) {
      const Acc real = static_cast<Acc>(value.real()), imaginary = static_cast<Acc>(value.imag());
      acc += real * real + imaginary * imaginary;
    } else {
      acc += static_cast<Acc>(value) * static_cast<Acc>(value);
    }
  }
  __device__ Acc merge(const Acc& a, const Acc& b) const { return a + b; }
  __device__ void finish(const Acc& acc, int64_t, compute_t<real_t<T>>* result) const {
    *result = static_cast<compute_t<real_t<T>>>(::cuda::std::sqrt(acc));
  }
};

// Squares of float64 may overflow or underflow. Large, middling and small numbers have separate
// scaled sums (Blue, A portable Fortran program to find the Euclidean norm of a vector, 1978). The
// scales are powers of two.
struct ScaledSquares {
  static constexpr double large = 0x1p486, small = 0x1p-511, shrink = 0x1p-538, grow = 0x1p537;
  double larges, middles, smalls;

  __device__ void take(double value) {
    const double magnitude = ::cuda::std::fabs(value);
    if (magnitude > large) {
      const double scaled = value * shrink;
      larges += scaled * scaled;
    } else if (magnitude < small) {
      const double scaled = value * grow;
      smalls += scaled * scaled;
    } else {  // includes NaN
      middles += value * value;
    }
  }
  __device__ double root() const {
    if (middles != middles) return middles;
    if (larges > 0) return ::cuda::std::sqrt(larges + middles * shrink * shrink) / shrink;
    if (smalls > 0) {
      const double lower = ::cuda::std::sqrt(smalls) / grow;
      return middles > 0 ? ::cuda::std::hypot(::cuda::std::sqrt(middles), lower) : lower;
    }
    return ::cuda::std::sqrt(middles);
  }
};

template <typename T>
struct ScaledNorm {
  using Element = T;
  using Acc = ScaledSquares;
  using Results = Types<double>;
  static constexpr bool ordered = false;

  __device__ Acc identity() const { return {0, 0, 0}; }
  __device__ void take(Acc& acc, T value, int64_t) const {
    if constexpr (is_complex_v<T>) {
      acc.take(value.real());
      acc.take(value.imag());
    } else {
      acc.take(value);
    }
  }
  __device__ Acc merge(const Acc& a, const Acc& b) const {
    return {a.larges + b.larges, a.middles + b.middles, a.smalls + b.smalls};
  }
  __device__ void finish(const Acc& acc, int64_t, double* result) const { *result = acc.root(); }
};

enum class Norm : int32_t { Largest, Smallest, Count, Sum, Power };

// All other norms. The switch is uniform for all threads; the kernel is bound by memory.
template <typename T>
struct OtherNorm {
  using Element = T;
  using Acc = double;
  using R = compute_t<real_t<T>>;
  using Results = Types<real_t<T>>;
  static constexpr bool ordered = false;
  Norm norm;
  double order;

  __device__ Acc identity() const {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return norm == Norm::Largest ? -infinity : norm == Norm::Smallest ? infinity : 0.0;
  }
  __device__ static double magnitude(compute_t<T> value) {
    if constexpr (is_complex_v<T>)
      return static_cast<double>(::cuda::std::hypot(value.real(), value.imag()));
    else
      return ::cuda::std::fabs(static_cast<double>(value));
  }
  __device__ void take(Acc& acc, compute_t<T> value, int64_t) const {
    switch (norm) {
      case Norm::Count:
        acc += value != compute_t<T>(0) ? 1.0 : 0.0;
        break;
      case Norm::Power:
        acc += ::cuda::std::pow(magnitude(value), order);
        break;
      default:
        acc = merge(acc, magnitude(value));
    }
  }
  __device__ Acc merge(const Acc& a, const Acc& b) const {
    switch (norm) {
      case Norm::Largest:
        return (b > a) | (b != b) ? b : a;
      case Norm::Smallest:
        return (b < a) | (b != b) ? b : a;
      default:
        return a + b;
    }
  }
  __device__ void finish(const Acc& acc, int64_t, R* result) const {
    *result = static_cast<R>(norm == Norm::Power ? ::cuda::std::pow(acc, 1 / order) : acc);
  }
};

void vector_norm(Call& call) {
  const arguments::LinalgVectorNorm args(call);
  const cb_tensor& in = *args.self;
  const cb_tensor& out = call.output();
  const double order = args.ord->re;
  dispatch<MomentTypes>(in.dtype, [&]<typename T>() {
    if (order == 2) {
      if constexpr (std::is_same_v<real_t<T>, double>)
        reduce(call, ScaledNorm<T>{}, in, out);
      else
        reduce(call, EuclideanNorm<T>{}, in, out);
      return;
    }
    const Norm norm = std::isinf(order) ? (order > 0 ? Norm::Largest : Norm::Smallest)
                      : order == 0      ? Norm::Count
                      : order == 1      ? Norm::Sum
                                        : Norm::Power;
    reduce(call, OtherNorm<T>{norm, order}, in, out);
  });
}

// ---- logsumexp

// The maximum and the sum of exp(x - maximum).
template <typename T>
struct LogSumExp {
  using V = compute_t<T>;
  using Part = std::conditional_t<is_half_v<T>, float, double>;
  struct Acc {
    V largest;
    Part sum;
  };
  using Element = T;
  using Results = Types<T>;
  static constexpr bool ordered = false;

  __device__ Acc identity() const { return {-std::numeric_limits<V>::infinity(), Part(0)}; }
  __device__ void take(Acc& acc, V x, int64_t) const {
    // Equal numbers, also equal infinities, have difference 0. NaN propagates through the sum.
    const V smaller = x == acc.largest ? V(1) : math::exp(x > acc.largest ? acc.largest - x : x - acc.largest);
    if (x > acc.largest) {
      acc.sum = acc.sum * static_cast<Part>(smaller) + Part(1);
      acc.largest = x;
    } else {
      acc.sum += static_cast<Part>(smaller);
    }
  }
  __device__ Acc merge(const Acc& a, const Acc& b) const {
    if (a.largest == b.largest) return {a.largest, a.sum + b.sum};
    if (a.largest > b.largest) return {a.largest, a.sum + b.sum * static_cast<Part>(math::exp(b.largest - a.largest))};
    return {b.largest, b.sum + a.sum * static_cast<Part>(math::exp(a.largest - b.largest))};
  }
  __device__ void finish(const Acc& acc, int64_t, V* result) const {
    *result = static_cast<V>(::cuda::std::log(acc.sum) + static_cast<Part>(acc.largest));
  }
};

// Complex numbers are scaled by the largest real part, unless that is infinite.
template <typename R>
struct LogSumExp<::cuda::std::complex<R>> {
  struct Acc {
    double largest;
    complex128 sum;
  };
  using Element = ::cuda::std::complex<R>;
  using Results = Types<Element>;
  static constexpr bool ordered = false;

  __device__ Acc identity() const { return {-std::numeric_limits<double>::infinity(), complex128(0)}; }
  __device__ static double shift(double largest) { return ::cuda::std::isinf(largest) ? 0.0 : largest; }
  __device__ static complex128 scaled(complex128 part, double from, double to) {
    return part == complex128(0) ? part : part * ::cuda::std::exp(shift(from) - to);
  }
  __device__ void take(Acc& acc, Element value, int64_t) const {
    const double real = static_cast<double>(value.real());
    acc = merge(acc, {real, ::cuda::std::exp(complex128(real - shift(real), static_cast<double>(value.imag())))});
  }
  __device__ Acc merge(const Acc& a, const Acc& b) const {
    const double largest = (b.largest > a.largest) | (b.largest != b.largest) ? b.largest : a.largest,
                 to = shift(largest);
    return {largest, scaled(a.sum, a.largest, to) + scaled(b.sum, b.largest, to)};
  }
  __device__ void finish(const Acc& acc, int64_t, Element* result) const {
    const complex128 logarithm = ::cuda::std::log(acc.sum);
    *result = Element(static_cast<R>(logarithm.real() + shift(acc.largest)), static_cast<R>(logarithm.imag()));
  }
};

void logsumexp(Call& call) {
  const cb_tensor& self = *arguments::Logsumexp(call).self;
  dispatch<MomentTypes>(self.dtype, [&]<typename T>() { reduce(call, LogSumExp<T>{}, self, call.output()); });
}

}  // namespace

void register_reduction_moments(KernelTable& table) {
  table.add<variance<false>>("var");
  table.add<variance<true>>("std");
  table.add<vector_norm>("linalg_vector_norm");
  table.add<logsumexp>("logsumexp");
}

}  // namespace candelabra::cuda
