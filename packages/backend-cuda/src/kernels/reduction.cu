// sum, nan_sum, mean, count_nonzero, prod, all, any. float32 is added in float64, half precisions in float32, as much as a device
// does in one go; integers wrap.
#include "reduce.cuh"

namespace candelabra::cuda {
namespace {

template <typename T, bool Mean>
struct Sum {
  using Element = T;
  using Acc = typename sum_type<T>::type;
  using Results = Types<T>;
  static constexpr bool ordered = false;

  __device__ Acc identity() const { return Acc(0); }
  __device__ void take(Acc& acc, compute_t<T> value, int64_t) const { acc = acc + static_cast<Acc>(value); }
  __device__ Acc merge(const Acc& a, const Acc& b) const { return a + b; }
  __device__ void finish(const Acc& acc, int64_t length, compute_t<T>* result) const {
    if constexpr (Mean)
      *result = static_cast<compute_t<T>>(acc / static_cast<real_t<Acc>>(length));
    else
      *result = static_cast<compute_t<T>>(acc);
  }
};

template <typename T>
struct NumberSum : Sum<T, false> {  // NaN counts as 0
  __device__ void take(typename Sum<T, false>::Acc& acc, compute_t<T> value, int64_t) const {
    acc = acc + (value != value ? 0 : static_cast<typename Sum<T, false>::Acc>(value));
  }
};

template <typename T>
struct NonzeroCount {
  using Element = T;
  using Acc = int64_t;
  using Results = Types<int64_t>;
  static constexpr bool ordered = false;

  __device__ Acc identity() const { return 0; }
  __device__ void take(Acc& acc, compute_t<T> value, int64_t) const { acc += value != compute_t<T>(0); }
  __device__ Acc merge(const Acc& a, const Acc& b) const { return a + b; }
  __device__ void finish(const Acc& acc, int64_t, int64_t* result) const { *result = acc; }
};

template <typename T>
struct Product {
  using Element = T;
  using Acc = typename sum_type<T>::type;
  using Results = Types<T>;
  static constexpr bool ordered = false;

  __device__ Acc identity() const { return Acc(1); }
  __device__ void take(Acc& acc, compute_t<T> value, int64_t) const { acc = acc * static_cast<Acc>(value); }
  __device__ Acc merge(const Acc& a, const Acc& b) const { return a * b; }
  __device__ void finish(const Acc& acc, int64_t, compute_t<T>* result) const { *result = static_cast<compute_t<T>>(acc); }
};

template <typename T, bool Any>
struct Truth {
  using Element = T;
  using Acc = uint32_t;
  using Results = Types<bool>;
  static constexpr bool ordered = false;

  __device__ Acc identity() const { return Any ? 0u : 1u; }
  __device__ void take(Acc& acc, compute_t<T> value, int64_t) const {
    const uint32_t truth = value != compute_t<T>(0);
    acc = Any ? acc | truth : acc & truth;
  }
  __device__ Acc merge(const Acc& a, const Acc& b) const { return Any ? a | b : a & b; }
  __device__ void finish(const Acc& acc, int64_t, bool* result) const { *result = acc != 0; }
};

template <bool Any>
void reduce_truth(Call& call) {
  dispatch<AllTypes>(call.tensor(0).dtype, [&]<typename T>() { reduce(call, Truth<T, Any>{}, call.tensor(0), call.output()); });
}

void sum(Call& call) {
  if (call.output().dtype == CB_BOOL) return reduce_truth<true>(call);
  dispatch<NumberTypes>(call.output().dtype, [&]<typename T>() { reduce(call, Sum<T, false>{}, call.tensor(0), call.output()); });
}

void nan_sum(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() { reduce(call, NumberSum<T>{}, call.tensor(0), call.output()); });
}

void count_nonzero(Call& call) {
  dispatch<AllTypes>(call.tensor(0).dtype, [&]<typename T>() { reduce(call, NonzeroCount<T>{}, call.tensor(0), call.output()); });
}

void mean(Call& call) {
  dispatch<decltype(FloatTypes{} + ComplexTypes{})>(
      call.output().dtype, [&]<typename T>() { reduce(call, Sum<T, true>{}, call.tensor(0), call.output()); });
}

void prod(Call& call) {
  if (call.output().dtype == CB_BOOL) return reduce_truth<false>(call);
  dispatch<NumberTypes>(call.output().dtype, [&]<typename T>() { reduce(call, Product<T>{}, call.tensor(0), call.output()); });
}

}  // namespace

void register_reduction(KernelTable& table) {
  table.add<sum>("sum");
  table.add<nan_sum>("nan_sum");
  table.add<count_nonzero>("count_nonzero");
  table.add<mean>("mean");
  table.add<prod>("prod");
  table.add<reduce_truth<false>>("all");
  table.add<reduce_truth<true>>("any");
}

}  // namespace candelabra::cuda
