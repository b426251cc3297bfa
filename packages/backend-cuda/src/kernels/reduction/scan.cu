// cumsum, cumprod, logcumsumexp. float32 is accumulated in float64, half precisions in float32;
// integers wrap.
#include "candelabra/arguments/scan.hpp"
#include "drivers/scan.cuh"

#include <limits>

#include "candelabra/math.hpp"

namespace candelabra::cuda {
namespace {

// The type of the running result for elements of type T.
template <typename T>
struct running_type {
  using type = std::conditional_t<is_integer_v<T>, uint64_t, std::conditional_t<is_half_v<T>, float, double>>;
};
template <typename T>
struct running_type<::cuda::std::complex<T>> {
  using type = complex128;
};

template <typename T, bool Product>
struct Accumulate {
  using Element = T;
  using Result = T;
  using Acc = typename running_type<T>::type;
  static constexpr bool sequential = false;

  __device__ Acc identity() const { return Acc(Product ? 1 : 0); }
  __device__ Acc element(compute_t<T> value, int64_t) const { return static_cast<Acc>(value); }
  __device__ Acc apply(const Acc& a, const Acc& b) const {
    if constexpr (Product)
      return a * b;
    else
      return a + b;
  }
  __device__ compute_t<T> result(const Acc& acc) const { return static_cast<compute_t<T>>(acc); }
};

// log(exp(x[0]) + ... + exp(x[i])), stored as the maximum so far and the sum of exp(x - maximum).
template <typename T>
struct RunningLog {
  using V = compute_t<T>;
  using Part = std::conditional_t<is_half_v<T>, float, double>;
  struct Acc {
    V largest;
    Part sum;
  };
  using Element = T;
  using Result = T;
  static constexpr bool sequential = false;

  __device__ Acc identity() const { return {-std::numeric_limits<V>::infinity(), Part(0)}; }
  __device__ Acc element(V value, int64_t) const { return {value, Part(1)}; }
  __device__ Acc apply(const Acc& a, const Acc& b) const {
    if (a.largest == b.largest) return {a.largest, a.sum + b.sum};
    const bool first = (a.largest > b.largest) | (a.largest != a.largest);  // keeps NaN
    const Acc &large = first ? a : b, &small = first ? b : a;
    return {large.largest, large.sum + small.sum * static_cast<Part>(math::exp(small.largest - large.largest))};
  }
  __device__ V result(const Acc& acc) const {
    return static_cast<V>(static_cast<Part>(acc.largest) + ::cuda::std::log(acc.sum));
  }
};

// For complex numbers each step starts from the number with the larger real part and continues its
// angle. The winding of the angle depends on the order, so that elements are accumulated strictly
// in order.
template <typename R>
struct RunningLog<::cuda::std::complex<R>> {
  struct Acc {
    complex128 total;
    bool begun;
  };
  using Element = ::cuda::std::complex<R>;
  using Result = Element;
  static constexpr bool sequential = true;

  __device__ Acc identity() const { return {complex128(0), false}; }
  __device__ Acc element(Element value, int64_t) const {
    return {complex128(static_cast<double>(value.real()), static_cast<double>(value.imag())), true};
  }
  __device__ Acc apply(const Acc& a, const Acc& b) const {
    if (!a.begun) return b;
    const complex128 total = a.total, x = b.total;
    if (!::cuda::std::isfinite(x.real()) && x.real() == total.real()) {
      // Neither is the larger
      if (x.real() > 0) return {::cuda::std::log(::cuda::std::exp(total) + ::cuda::std::exp(x)), true};
      return a;
    }
    const bool larger = x.real() >= total.real();
    const complex128 big = larger ? x : total, part = ::cuda::std::exp((larger ? total : x) - big);
    const double re = part.real(), im = part.imag();
    // log(1 + part)
    return {big + complex128(::cuda::std::log1p(2 * re + (re * re + im * im)) / 2, ::cuda::std::atan2(im, 1 + re)),
            true};
  }
  __device__ Element result(const Acc& acc) const {
    return Element(static_cast<R>(acc.total.real()), static_cast<R>(acc.total.imag()));
  }
};

// Wrapping sums and products have the same bits for signed and unsigned integers.
int32_t unsigned_dtype(int32_t dtype) {
  switch (dtype) {
    case CB_INT8:
      return CB_UINT8;
    case CB_INT16:
      return CB_UINT16;
    case CB_INT32:
      return CB_UINT32;
    case CB_INT64:
      return CB_UINT64;
    default:
      return dtype;
  }
}

// cumsum, cumprod: the same arguments.
template <bool Product>
void accumulate(Call& call) {
  const arguments::Cumsum args(call);
  using Kinds = decltype(Types<uint8_t, uint16_t, uint32_t, uint64_t>{} + FloatTypes{} + ComplexTypes{});
  dispatch<Kinds>(unsigned_dtype(call.output().dtype), [&]<typename T>() {
    scan_along(call, Accumulate<T, Product>{}, *args.self, call.output(), args.dim);
  });
}

void logcumsumexp(Call& call) {
  const arguments::Logcumsumexp args(call);
  dispatch<decltype(FloatTypes{} + ComplexTypes{})>(call.output().dtype, [&]<typename T>() {
    scan_along(call, RunningLog<T>{}, *args.self, call.output(), args.dim);
  });
}

}  // namespace

void register_scan(KernelTable& table) {
  table.add<accumulate<false>>("cumsum");
  table.add<accumulate<true>>("cumprod");
  table.add<logcumsumexp>("logcumsumexp");
}

}  // namespace candelabra::cuda
