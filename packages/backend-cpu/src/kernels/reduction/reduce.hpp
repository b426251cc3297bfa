// The parts of a reduction: an operation, a source of values and a target for results. The driver
// that runs them all is in ../drivers/reducer.hpp.
//
//   struct Operation {
//     using Value = float;                                  // the type that block and rows read
//     struct Acc;                                           // a partial result
//     static constexpr bool ordered = false;                // true: rows must be merged in order
//     static Acc identity();
//     static void block(Acc& acc, const Value* values, int64_t n, int64_t first);                  // n <= block_length
//     static void rows(Acc* acc, const Value* values, int64_t stride, int64_t rows, int64_t columns, int64_t first);
//     static void merge(Acc& acc, const Acc& later);
//     // Optional: block() for `count` results at once, `pitch` values apart.
//     static void blocks(Acc* acc, int64_t count, const Value* values, int64_t pitch, int64_t n);
//   };
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "drivers/iterate.hpp"
#include "drivers/mixed_blocks.hpp"
#include "drivers/reducer.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "memory/allocator.hpp"
#include "memory/gather.hpp"
#include "simd/load.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace reduce {

// A source whose values have the type Value.
template <typename Value>
struct SourceOf : Source {};

// Writes `count` results, each reduced from `length` elements.
template <typename Acc>
using Store = void (*)(const Acc* results, int64_t count, int64_t length, char* to, int64_t stride,
                       const void* context);

// A target for partial results of type Acc.
template <typename Acc>
struct TargetOf : Target {
  TargetOf(char* data, int64_t itemsize, Store<Acc> typed_store, const void* context = nullptr)
      : Target{data, itemsize, store_typed, reinterpret_cast<void (*)()>(typed_store), context} {}

 private:
  static void store_typed(const Target& target, const void* results, int64_t count, int64_t length, char* to,
                          int64_t stride) {
    reinterpret_cast<Store<Acc>>(target.typed_store)(static_cast<const Acc*>(results), count, length, to, stride,
                                                     target.context);
  }
};

// The type-erased table of an operation's functions that the driver calls.
template <typename Operation>
struct StepsOf {
  using Value = typename Operation::Value;
  using Acc = typename Operation::Acc;
  static_assert(sizeof(Value) <= largest_value && sizeof(Acc) <= largest_partial &&
                std::is_trivially_destructible_v<Acc>);

  static void begin(void* partial, int64_t count) {
    std::uninitialized_fill_n(static_cast<Acc*>(partial), count, Operation::identity());
  }
  static void blocks(void* partial, int64_t count, const void* values, int64_t pitch, int64_t n, int64_t first) {
    Acc* acc = static_cast<Acc*>(partial);
    const Value* from = static_cast<const Value*>(values);
    if constexpr (requires { &Operation::blocks; })
      Operation::blocks(acc, count, from, pitch, n);
    else
      for (int64_t i = 0; i < count; ++i) Operation::block(acc[i], from + i * pitch, n, first);
  }
  static void rows(void* partial, const void* values, int64_t stride, int64_t rows, int64_t columns, int64_t first) {
    Operation::rows(static_cast<Acc*>(partial), static_cast<const Value*>(values), stride, rows, columns, first);
  }
  static void merge(void* partial, const void* later, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      Operation::merge(static_cast<Acc*>(partial)[i], static_cast<const Acc*>(later)[i]);
  }
  static constexpr Steps table{sizeof(Value), sizeof(Acc), Operation::ordered, begin, blocks, rows, merge};
};

template <typename Operation>
void run(const cb_tensor& in, const cb_tensor& out, const SourceOf<typename Operation::Value>& source,
         const TargetOf<typename Operation::Acc>& target, Parts parts = Parts::Whole) {
  run(StepsOf<Operation>::table, in, out, source, target, parts);
}

// ---- Loading

// Loads elements of type T as values, each passed through Function.
template <typename T, typename Value, typename Function>
void load_through(const char* from, int64_t stride, int64_t n, void* values, const void* context) {
  const T* in = reinterpret_cast<const T*>(from);
  Value* to = static_cast<Value*>(values);
  Function function(context);
  if constexpr (is_half_v<T> && std::is_same_v<Value, float>) {
    if (stride == 1) {
      to_float(in, to, n);
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) to[i] = function(to[i]);
      return;
    }
    for (int64_t i = 0; i < n; ++i) to[i] = function(static_cast<float>(in[i * stride]));
  } else {
    if (stride == 1) {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<Value>(function(in[i]));
      return;
    }
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<Value>(function(in[i * stride]));
  }
}

struct Unchanged {
  explicit Unchanged(const void*) {}
  template <typename T>
  T operator()(T value) const {
    return value;
  }
};

struct IsNonzero {
  explicit IsNonzero(const void*) {}
  template <typename T>
  bool operator()(T value) const {
    return is_nonzero(value);
  }
};

// The context of load_converted: elements of `dtype` are converted to T, then to the value type.
// They are rounded to T even if the value type is wider.
struct Converting {
  Blocks convert;  // to T
  int32_t dtype;
};

template <typename T, typename Value>
void load_converted(const char* from, int64_t stride, int64_t n, void* values, const void* context) {
  using C = compute_t<T>;
  const Converting& self = *static_cast<const Converting*>(context);
  const int64_t size = itemsize(self.dtype);
  constexpr int64_t chunk = 512;
  alignas(64) std::byte gathered[chunk * largest_value];
  alignas(64) float wide[2 * chunk];  // complex32 takes two
  alignas(64) C converted[chunk];
  for (int64_t done = 0; done < n; done += chunk) {
    const int64_t m = std::min(chunk, n - done);
    const void* in = from + done * stride * size;
    if (stride != 1) gather(gathered, in, stride, size, m), in = gathered;
    if (is_widened_dtype(self.dtype)) widen(self.dtype, in, wide, m), in = wide;
    Value* to = static_cast<Value*>(values) + done;
    if constexpr (std::is_same_v<Value, T>) {
      if constexpr (is_half_v<T>)
        self.convert.loop(converted, &in, m, self.convert.context), from_float(converted, to, m);
      else
        self.convert.loop(to, &in, m, self.convert.context);
    } else {
      self.convert.loop(converted, &in, m, self.convert.context);
      for (int64_t i = 0; i < m; ++i) to[i] = static_cast<Value>(static_cast<T>(converted[i]));
    }
  }
}

// A tensor of dtype T read as Value.
template <typename T, typename Value>
SourceOf<Value> source_of(const cb_tensor& tensor) {
  if constexpr (std::is_same_v<T, Value>)
    return {static_cast<const char*>(tensor.data), sizeof(T)};
  else
    return {static_cast<const char*>(tensor.data), sizeof(T), load_through<T, Value, Unchanged>};
}

// A tensor of any dtype, converted to T and read as Value. `converting` must outlive the source.
template <typename T, typename Value>
SourceOf<Value> any_source_of(const cb_tensor& tensor, Converting& converting) {
  if (tensor.dtype == dtype_v<T>) return source_of<T, Value>(tensor);
  converting = {conversion(loop_dtype(dtype_v<T>), loop_dtype(tensor.dtype)), tensor.dtype};
  return {static_cast<const char*>(tensor.data), itemsize(tensor.dtype), load_converted<T, Value>, &converting};
}

}  // namespace reduce
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
