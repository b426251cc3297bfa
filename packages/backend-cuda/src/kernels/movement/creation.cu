// Constants and ranges.
#include <cmath>

#include "candelabra/arguments/creation.hpp"
#include "drivers/elementwise.cuh"

namespace candelabra::cuda {
namespace {

template <typename U>
struct Constant {
  U value;
  __device__ U operator()() const { return value; }
};

void fill_(Call& call) {
  const arguments::Fill args(call);
  cb_tensor& out = call.output();
  if (out.numel == 0) return;
  dispatch<AllTypes>(out.dtype, [&]<typename T>() {
    const T value = scalar_to<T>(*args.value);
    dispatch_size(sizeof(T), [&]<typename U>() {
      if constexpr (sizeof(U) == sizeof(T)) {
        U bits;
        std::memcpy(&bits, &value, sizeof bits);
        map<Types<U>, Types<>>(call, Constant<U>{bits}, {&out}, {});
      }
    });
  });
}

struct WholeRange {  // wraps like the dtype
  uint64_t first, each;
  __device__ uint64_t operator()(int64_t i) const { return first + each * static_cast<uint64_t>(i); }
};
struct FloatRange {
  double first, each;
  __device__ double operator()(int64_t i) const { return first + each * static_cast<double>(i); }
};

void arange(Call& call) {
  const arguments::Arange args(call);
  cb_tensor& out = call.output();
  const cb_scalar &start = *args.start, &step = *args.step;
  const bool whole = start.kind <= CB_SCALAR_INT && step.kind <= CB_SCALAR_INT;
  dispatch<RealTypes>(out.dtype, [&]<typename T>() {
    if constexpr (is_integer_v<T>) {
      // If start or step is a float, both are truncated before the first element, as in PyTorch.
      const WholeRange range = whole ? WholeRange{static_cast<uint64_t>(start.i), static_cast<uint64_t>(step.i)}
                                     : WholeRange{static_cast<uint64_t>(truncated<int64_t>(start.re)),
                                                  static_cast<uint64_t>(truncated<int64_t>(step.re))};
      generate<T>(call, out, range);
    } else {
      generate<T>(call, out, FloatRange{start.re, step.re});
    }
  });
}

// Counts from both ends to the middle, so that both ends are exact.
template <typename C>
struct Spread {
  C first, last, each;
  int64_t steps;
  template <typename I>
  __device__ C at(I i) const {
    return i < steps / 2 || steps == 1 ? first + each * static_cast<real_t<C>>(i)
                                       : last - each * static_cast<real_t<C>>(steps - 1 - i);
  }
  __device__ C operator()(int64_t i) const { return at(i); }
};
struct WholeSpread {
  Spread<double> spread;
  __device__ int64_t operator()(int64_t i) const { return truncated<int64_t>(spread.at(i)); }
};

void linspace(Call& call) {
  const arguments::Linspace args(call);
  cb_tensor& out = call.output();
  const cb_scalar &start = *args.start, &end = *args.end;
  const int64_t steps = out.numel;
  dispatch<NumberTypes>(out.dtype, [&]<typename T>() {
    if constexpr (is_complex_v<T>) {
      const complex128 first(start.re, start.im), last(end.re, end.im);
      const double parts = static_cast<double>(steps > 1 ? steps - 1 : 1);
      const complex128 each =
          steps > 1 ? complex128((end.re - start.re) / parts, (end.im - start.im) / parts) : complex128(0, 0);
      generate<T>(call, out, Spread<complex128>{first, last, each, steps});
    } else {
      using C = std::conditional_t<is_integer_v<T>, double, compute_t<T>>;
      const C first = static_cast<C>(start.re), last = static_cast<C>(end.re);
      const Spread<C> spread{first, last, steps > 1 ? (last - first) / static_cast<C>(steps - 1) : C(0), steps};
      if constexpr (is_integer_v<T>)
        generate<T>(call, out, WholeSpread{spread});
      else
        generate<T>(call, out, spread);
    }
  });
}

}  // namespace

void register_creation(KernelTable& table) {
  table.add<fill_>("fill_");
  table.add<arange>("arange");
  table.add<linspace>("linspace");
}

}  // namespace candelabra::cuda
