// Shared by the normalizations: vectors of statistics and parameters of any dtype, and runs of
// input in the compute dtype.
#pragma once

#include "kernels/reduction/reduce_variance.hpp"
#include "memory/allocator.hpp"
#include "simd/half_registers.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// A small vector as values of type V: the tensor's own memory if it is contiguous and of that
// dtype, else a copy. Without a tensor every element is `fallback`.
template <typename V>
class Vector {
 public:
  Vector(const cb_tensor* tensor, int64_t n, V fallback)
      : direct_(tensor && tensor->dtype == dtype_v<V> && is_contiguous(*tensor)), copy_(direct_ ? 0 : n) {
    if (direct_) {
      values_ = cpu::data<V>(*tensor);
      return;
    }
    values_ = copy_.data();
    if (!tensor) {
      std::fill_n(copy_.data(), n, fallback);
      return;
    }
    auto g = geometry<1>({tensor}, Order::RowMajor);
    dispatch<FloatTypes>(tensor->dtype, [&]<typename T>() {
      V* to = copy_.data();
      for_each_run(g, 0, g.numel, [&](const int64_t* at, int64_t count) {
        for (int64_t i = 0; i < count; ++i)
          *to++ = static_cast<V>(static_cast<compute_t<T>>(cpu::data<T>(*tensor)[at[0] + i * g.strides[0][0]]));
      });
    });
  }
  const V* data() const { return values_; }
  V operator[](int64_t i) const { return values_[i]; }

 private:
  bool direct_;
  Scratch<V> copy_;
  const V* values_;
};

// Writes value(i) to element i of a tensor in row-major order.
template <typename F>
void write_vector(const cb_tensor& tensor, F&& value) {
  if (tensor.numel == 0) return;
  auto g = geometry<1>({&tensor}, Order::RowMajor);
  dispatch<FloatTypes>(tensor.dtype, [&]<typename T>() {
    int64_t i = 0;
    for_each_run(g, 0, g.numel, [&](const int64_t* at, int64_t count) {
      for (int64_t k = 0; k < count; ++k, ++i)
        mutable_data<T>(tensor)[at[0] + k * g.strides[0][0]] = static_cast<T>(static_cast<compute_t<T>>(value(i)));
    });
  });
}

constexpr int64_t values_per_block = 1024;  // half-precision values converted at a time

// Calls f(inputs..., output, i, n) on blocks of a contiguous run, with half precision converted to
// float32. Block elements begin at element i of the run. f of other dtypes is called once.
template <typename T, typename F, typename... In>
[[gnu::always_inline]] inline void transform(int64_t n, F&& f, T* out, const In*... in) {
  if constexpr (!is_half_v<T>) {
    f(in..., out, int64_t{0}, n);
  } else {
    alignas(64) float buffer[sizeof...(In) + 1][values_per_block];
    for (int64_t i = 0; i < n; i += values_per_block) {
      int64_t count = std::min(values_per_block, n - i);
      int k = 0;
      (to_float(in + i, buffer[k++], count), ...);
      [&]<size_t... K>(std::index_sequence<K...>) {
        f(buffer[K]..., buffer[sizeof...(In)], i, count);
      }(std::index_sequence_for<In...>{});
      from_float(buffer[sizeof...(In)], out + i, count);
    }
  }
}

// The same without an output: f(inputs..., i, n).
template <typename T, typename F, typename... In>
[[gnu::always_inline]] inline void consume(int64_t n, F&& f, const T* first, const In*... in) {
  if constexpr (!is_half_v<T>) {
    f(first, in..., int64_t{0}, n);
  } else {
    alignas(64) float buffer[sizeof...(In) + 1][values_per_block];
    for (int64_t i = 0; i < n; i += values_per_block) {
      int64_t count = std::min(values_per_block, n - i);
      to_float(first + i, buffer[0], count);
      int k = 1;
      (to_float(in + i, buffer[k++], count), ...);
      [&]<size_t... K>(std::index_sequence<K...>) {
        f(buffer[0], buffer[K + 1]..., i, count);
      }(std::index_sequence_for<In...>{});
    }
  }
}

// ---- Formulas on whole registers: half precision is rounded once, when the result is stored.

template <typename T>
math::Vec<compute_t<T>> operand(const T* from, int64_t i, int64_t n) {
  return load_some(from + i, n);
}
// The same value for all elements.
template <typename V>
math::Vec<V> operand(V number, int64_t, int64_t) {
  return number;
}

// out[i] = f(operand[i]...) for n contiguous elements. An operand is a pointer to the result's
// dtype or to the compute dtype, or one value for all elements.
template <typename T, typename F, typename... Operands>
[[gnu::always_inline]] inline void transform_registers(int64_t n, F&& f, T* out, Operands... operands) {
  constexpr int64_t size = math::Vec<compute_t<T>>::size;
  const auto some = [&](int64_t i, int64_t count) { store_some<T>(f(operand(operands, i, count)...), out + i, count); };
  int64_t i = 0;
  for (; i + size <= n; i += size) some(i, size);
  if (i < n) some(i, n - i);
}

// Sums of grad and of grad * (x - mean).
struct GradientSums {
  double grad = 0, product = 0;
  template <typename V>
  void add(const V* g, const V* x, double mean, int64_t n) {
    double a = 0, b = 0;
#pragma omp simd reduction(+ : a, b)
    for (int64_t i = 0; i < n; ++i) {
      double gradient = static_cast<double>(g[i]);
      a += gradient;
      b += gradient * (static_cast<double>(x[i]) - mean);
    }
    grad += a;
    product += b;
  }
};

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
