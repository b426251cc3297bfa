// Comparison, logic and selection.
#include "candelabra/arguments/elementwise.hpp"
#include "candelabra/math.hpp"
#include "drivers/elementwise.cuh"

namespace candelabra::cuda {
namespace {

using BoolAndReals = decltype(BoolType{} + RealTypes{});
using FloatsAndComplex = decltype(FloatTypes{} + ComplexTypes{});

struct Equal {
  template <typename T>
  __device__ bool operator()(T a, T b) const {
    return a == b;
  }
};
struct NotEqual {
  template <typename T>
  __device__ bool operator()(T a, T b) const {
    return a != b;
  }
};
struct Less {
  template <typename T>
  __device__ bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessEqual {
  template <typename T>
  __device__ bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct Greater {
  template <typename T>
  __device__ bool operator()(T a, T b) const {
    return a > b;
  }
};
struct GreaterEqual {
  template <typename T>
  __device__ bool operator()(T a, T b) const {
    return a >= b;
  }
};
struct LogicalAnd {
  template <typename T>
  __device__ bool operator()(T a, T b) const {
    return (a != T(0)) & (b != T(0));
  }
};
struct LogicalOr {
  template <typename T>
  __device__ bool operator()(T a, T b) const {
    return (a != T(0)) | (b != T(0));
  }
};
struct LogicalXor {
  template <typename T>
  __device__ bool operator()(T a, T b) const {
    return (a != T(0)) != (b != T(0));
  }
};

// Compiled for each element size: elements are only moved.
struct Select {
  template <typename U>
  __device__ U operator()(uint8_t condition, U a, U b) const {
    return condition ? a : b;
  }
};
void where(Call& call) {
  const arguments::Where args(call);
  dispatch_size(itemsize(call.output().dtype), [&]<typename U>() {
    map<Types<U>, Types<uint8_t, U, U>>(call, Select{}, {&call.output()}, {args.condition, args.input, args.other});
  });
}

// NaN in any of the three gives NaN. If min > max the result is max.
struct Clamp {
  template <typename T>
  __device__ T operator()(T x, T low, T high) const {
    T raised = x < low || low != low ? low : x;
    T lowered = raised > high || high != high ? high : raised;
    return x != x ? x : low != low ? low : lowered;
  }
};
struct ClampMin {
  template <typename T>
  __device__ T operator()(T x, T low) const {
    return x < low || low != low ? (x != x ? x : low) : x;
  }
};
struct ClampMax {
  template <typename T>
  __device__ T operator()(T x, T high) const {
    return x > high || high != high ? (x != x ? x : high) : x;
  }
};
void clamp(Call& call) {
  const arguments::Clamp args(call);
  if (args.min && args.max)
    return dispatch<RealTypes>(call.output().dtype, [&]<typename T>() { map3<T>(call, Clamp{}); });
  dispatch<RealTypes>(call.output().dtype, [&]<typename T>() {
    if (args.min)
      map2<T>(call, ClampMin{}, *args.self, *args.min);
    else
      map2<T>(call, ClampMax{}, *args.self, *args.max);
  });
}

// Computed from the nearer end: weight 1 gives `end` exactly.
struct Lerp {
  template <typename T>
  __device__ T operator()(T start, T end, T weight) const {
    if constexpr (is_complex_v<T>)
      return ::cuda::std::abs(weight) < real_t<T>(0.5) ? start + weight * (end - start)
                                                       : end - (end - start) * (T(1) - weight);
    else
      return math::abs(weight) < T(0.5) ? start + weight * (end - start) : end - (end - start) * (T(1) - weight);
  }
};
void lerp(Call& call) {
  dispatch<FloatsAndComplex>(call.output().dtype, [&]<typename T>() { map3<T>(call, Lerp{}); });
}

template <typename T>
struct AddProduct {
  T value;
  __device__ T operator()(T self, T a, T b) const { return static_cast<T>(self + value * a * b); }
};
template <typename T>
struct AddQuotient {
  T value;
  __device__ T operator()(T self, T a, T b) const { return self + value * (a / b); }
};
void addcmul(Call& call) {
  const arguments::Addcmul args(call);
  dispatch<NumberTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    map3<T>(call, AddProduct<C>{scalar_to<C>(*args.value)});
  });
}
void addcdiv(Call& call) {
  const arguments::Addcdiv args(call);
  dispatch<FloatsAndComplex>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    map3<T>(call, AddQuotient<C>{scalar_to<C>(*args.value)});
  });
}

}  // namespace

void register_elementwise_compare(KernelTable& table) {
  table.add<binary_bool<Equal, AllTypes>>("eq");
  table.add<binary_bool<NotEqual, AllTypes>>("ne");
  table.add<binary_bool<Less, BoolAndReals>>("lt");
  table.add<binary_bool<LessEqual, BoolAndReals>>("le");
  table.add<binary_bool<Greater, BoolAndReals>>("gt");
  table.add<binary_bool<GreaterEqual, BoolAndReals>>("ge");
  table.add<binary_bool<LogicalAnd, AllTypes>>("logical_and");
  table.add<binary_bool<LogicalOr, AllTypes>>("logical_or");
  table.add<binary_bool<LogicalXor, AllTypes>>("logical_xor");
  table.add<where>("where");
  table.add<clamp>("clamp");
  table.add<lerp>("lerp");
  table.add<addcmul>("addcmul");
  table.add<addcdiv>("addcdiv");
}

}  // namespace candelabra::cuda
