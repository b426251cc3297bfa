// sum, _nansum, mean, count_nonzero, prod, all, any. float32 is accumulated in float64, half
// precisions in float32; integers wrap.
#include "candelabra/arguments/reduction.hpp"
#include "drivers/reduce.cuh"

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
  __device__ void finish(const Acc& acc, int64_t, compute_t<T>* result) const {
    *result = static_cast<compute_t<T>>(acc);
  }
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
void reduce_truth(Call& call, const cb_tensor& self) {
  dispatch<AllTypes>(self.dtype, [&]<typename T>() { reduce(call, Truth<T, Any>{}, self, call.output()); });
}
void all(Call& call) {
  reduce_truth<false>(call, *arguments::All(call).self);
}
void any(Call& call) {
  reduce_truth<true>(call, *arguments::Any(call).self);
}

void sum(Call& call) {
  const cb_tensor& self = *arguments::Sum(call).self;
  if (call.output().dtype == CB_BOOL) return reduce_truth<true>(call, self);
  dispatch<NumberTypes>(call.output().dtype, [&]<typename T>() { reduce(call, Sum<T, false>{}, self, call.output()); });
}

void nansum(Call& call) {
  const cb_tensor& self = *arguments::Nansum(call).self;
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() { reduce(call, NumberSum<T>{}, self, call.output()); });
}

void count_nonzero(Call& call) {
  const cb_tensor& self = *arguments::CountNonzero(call).self;
  dispatch<AllTypes>(self.dtype, [&]<typename T>() { reduce(call, NonzeroCount<T>{}, self, call.output()); });
}

void mean(Call& call) {
  const cb_tensor& self = *arguments::Mean(call).self;
  dispatch<decltype(FloatTypes{} + ComplexTypes{})>(
      call.output().dtype, [&]<typename T>() { reduce(call, Sum<T, true>{}, self, call.output()); });
}

void prod(Call& call) {
  const cb_tensor& self = *arguments::Prod(call).self;
  if (call.output().dtype == CB_BOOL) return reduce_truth<false>(call, self);
  dispatch<NumberTypes>(call.output().dtype, [&]<typename T>() { reduce(call, Product<T>{}, self, call.output()); });
}

}  // namespace

void register_reduction(KernelTable& table) {
  table.add<sum>("sum");
  table.add<nansum>("_nansum");
  table.add<count_nonzero>("count_nonzero");
  table.add<mean>("mean");
  table.add<prod>("prod");
  table.add<all>("all");
  table.add<any>("any");
}

}  // namespace candelabra::cuda
