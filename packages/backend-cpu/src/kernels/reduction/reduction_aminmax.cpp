// amax, amin, aminmax, and with the index: argmax, argmin, max_with_indices, min_with_indices.
#include "candelabra/arguments/reduction.hpp"
#include "kernels/reduction/reduce_aminmax.hpp"
#include "kernels/reduction/reduce_distinct.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using namespace reduce;

// The type as which elements of type T are compared.
template <typename T>
using Compared = std::conditional_t<std::is_same_v<T, bool>, uint8_t, compute_t<T>>;

template <typename T>
SourceOf<Compared<T>> compared_source(const cb_tensor& in) {
  if constexpr (std::is_same_v<T, bool>)
    // A bool in memory may be any byte (load.hpp).
    return {static_cast<const char*>(in.data), 1, load_through<uint8_t, uint8_t, IsNonzero>};
  else
    return source_of<T, Compared<T>>(in);
}

using ComparableTypes = decltype(BoolType{} + RealTypes{});

template <typename T>
void store_value(const Compared<T>* results, int64_t count, int64_t, char* to, int64_t stride, const void*) {
  for (int64_t i = 0; i < count; ++i) reinterpret_cast<T*>(to)[i * stride] = static_cast<T>(results[i]);
}

// amax, amin: the same arguments.
template <bool Largest>
void extremum(Call& call) {
  const cb_tensor& out = call.output();
  const Distinct distinct(*arguments::Amax(call).self, out);
  dispatch<ComparableTypes>(distinct.in.dtype, [&]<typename T>() {
    run<Extremum<Compared<T>, Largest>>(distinct.in, distinct.out, compared_source<T>(distinct.in),
                                        {static_cast<char*>(out.data), sizeof(T), store_value<T>});
    distinct.copy<T>(out);
  });
}

// ---- Minimum and maximum in one pass

template <typename T>
struct Aminmax {
  using Value = T;
  using Least = Extremum<T, false>;
  using Most = Extremum<T, true>;
  struct Acc {
    T low = Least::identity(), high = Most::identity();
  };
  static constexpr bool ordered = false;

  static Acc identity() { return {}; }

  static void block(Acc& acc, const T* values, int64_t n, int64_t) {
    using L = Lanes<T>;
    constexpr int64_t step = 4 * L::count;
    int64_t i = 0;
    if (n >= step) {
      typename L::type low[4], high[4];
      for (int k = 0; k < 4; ++k) low[k] = high[k] = L::load(values + k * L::count);
      for (i = step; i + step <= n; i += step)
        for (int k = 0; k < 4; ++k) {
          const auto value = L::load(values + i + k * L::count);
          low[k] = Least::pick(low[k], value);
          high[k] = Most::pick(high[k], value);
        }
      alignas(L::bytes) T lanes[2][L::count];
      L::store(lanes[0], Least::pick(Least::pick(low[0], low[1]), Least::pick(low[2], low[3])));
      L::store(lanes[1], Most::pick(Most::pick(high[0], high[1]), Most::pick(high[2], high[3])));
      for (int k = 0; k < L::count; ++k) merge(acc, {lanes[0][k], lanes[1][k]});
    }
    for (; i < n; ++i) merge(acc, {values[i], values[i]});
  }

  static void rows(Acc* acc, const T* values, int64_t stride, int64_t rows, int64_t columns, int64_t first) {
    T low[tile_columns], high[tile_columns];
    std::fill_n(low, columns, Least::identity());
    std::fill_n(high, columns, Most::identity());
    constexpr int64_t cached_rows = 16;  // both passes over them hit the L1 cache
    for (int64_t r = 0; r < rows; r += cached_rows) {
      const int64_t count = std::min(cached_rows, rows - r);
      Least::rows(low, values + r * stride, stride, count, columns, first + r);
      Most::rows(high, values + r * stride, stride, count, columns, first + r);
    }
    for (int64_t j = 0; j < columns; ++j) merge(acc[j], {low[j], high[j]});
  }

  static void merge(Acc& acc, const Acc& later) {
    acc.low = Least::pick(acc.low, later.low);
    acc.high = Most::pick(acc.high, later.high);
  }
};

// `context` holds the base addresses of both outputs, which have the same strides.
template <typename T>
void store_aminmax(const typename Aminmax<Compared<T>>::Acc* results, int64_t count, int64_t, char* to, int64_t stride,
                   const void* context) {
  const auto* bases = static_cast<char* const*>(context);  // minimum, maximum
  T *low = reinterpret_cast<T*>(to), *high = reinterpret_cast<T*>(bases[1] + (to - bases[0]));
  for (int64_t i = 0; i < count; ++i) {
    low[i * stride] = static_cast<T>(results[i].low);
    high[i * stride] = static_cast<T>(results[i].high);
  }
}

void aminmax(Call& call) {
  cb_tensor &low = call.output(0), &high = call.output(1);
  const Distinct distinct(*arguments::Aminmax(call).self, low);
  dispatch<ComparableTypes>(distinct.in.dtype, [&]<typename T>() {
    char* bases[2] = {static_cast<char*>(low.data), static_cast<char*>(high.data)};
    run<Aminmax<Compared<T>>>(distinct.in, distinct.out, compared_source<T>(distinct.in),
                              {bases[0], sizeof(T), store_aminmax<T>, bases});
    distinct.copy<T>(low);
    distinct.copy<T>(high);
  });
}

// ---- With the index

template <typename T>
struct Found {
  T value;
  int64_t index;  // -1: no element yet
};

template <typename T, bool Largest>
struct ArgExtremum {
  using Value = T;
  using Acc = Found<T>;
  static constexpr bool ordered = true;

  static Acc identity() { return {T(), -1}; }
  [[gnu::always_inline]] static bool better(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return Largest ? a > b : a < b;
    else
      return (Largest ? a > b : a < b) | ((a != a) & (b == b));
  }
  static void merge(Acc& acc, const Acc& later) {
    if (later.index >= 0 && (acc.index < 0 || better(later.value, acc.value))) acc = later;
  }

  static int64_t find(const T* values, int64_t n, T value) {
    auto is_it = [&](int64_t i) { return (values[i] == value) | (value != value && values[i] != values[i]); };
    int64_t i = 0;
    for (; i + 64 <= n; i += 64) {
      int hit = 0;
#pragma omp simd reduction(| : hit)
      for (int64_t j = 0; j < 64; ++j) hit |= is_it(i + j);
      if (hit) break;
    }
    while (!is_it(i)) ++i;
    return i;
  }

  static void block(Acc& acc, const T* values, int64_t n, int64_t first) {
    T value = Extremum<T, Largest>::of(values, n);
    if (acc.index < 0 || better(value, acc.value)) acc = {value, first + find(values, n, value)};
  }

  static void rows(Acc* acc, const T* values, int64_t stride, int64_t rows, int64_t columns, int64_t first) {
    using Index = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
    constexpr int64_t most = int64_t{1} << 30;
    for (int64_t begin = 0; begin < rows; begin += most) {
      T best[tile_columns];
      Index at[tile_columns];
      const T* top = values + begin * stride;
      for (int64_t j = 0; j < columns; ++j) best[j] = top[j], at[j] = 0;
      int64_t count = std::min(most, rows - begin);
      for (int64_t r = 1; r < count; ++r) {
        const T* row = top + r * stride;
#pragma omp simd
        for (int64_t j = 0; j < columns; ++j) {
          bool wins = better(row[j], best[j]);
          best[j] = wins ? row[j] : best[j];
          at[j] = wins ? static_cast<Index>(r) : at[j];
        }
      }
      for (int64_t j = 0; j < columns; ++j) merge(acc[j], {best[j], first + begin + at[j]});
    }
  }
};

template <typename T>
void store_index(const Found<Compared<T>>* results, int64_t count, int64_t, char* to, int64_t stride, const void*) {
  for (int64_t i = 0; i < count; ++i) reinterpret_cast<int64_t*>(to)[i * stride] = results[i].index;
}

// argmax, argmin: the same arguments.
template <bool Largest>
void arg_extremum(Call& call) {
  const cb_tensor& out = call.output();
  const Distinct distinct(*arguments::Argmax(call).self, out);
  dispatch<ComparableTypes>(distinct.in.dtype, [&]<typename T>() {
    run<ArgExtremum<Compared<T>, Largest>>(distinct.in, distinct.out, compared_source<T>(distinct.in),
                                           {static_cast<char*>(out.data), sizeof(int64_t), store_index<T>});
    distinct.copy<int64_t>(out);
  });
}

// Both outputs are written in one pass if they have the same strides, which only out= tensors may
// not have.
struct BothOutputs {
  char* values;
  char* indices;
};

template <typename T>
void store_both(const Found<Compared<T>>* results, int64_t count, int64_t, char* to, int64_t stride,
                const void* context) {
  const BothOutputs& outputs = *static_cast<const BothOutputs*>(context);
  T* values = reinterpret_cast<T*>(to);
  int64_t* indices =
      reinterpret_cast<int64_t*>(outputs.indices) + (to - outputs.values) / static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < count; ++i) {
    values[i * stride] = static_cast<T>(results[i].value);
    indices[i * stride] = results[i].index;
  }
}

template <typename T>
void store_found_value(const Found<Compared<T>>* results, int64_t count, int64_t, char* to, int64_t stride,
                       const void*) {
  for (int64_t i = 0; i < count; ++i) reinterpret_cast<T*>(to)[i * stride] = static_cast<T>(results[i].value);
}

// max_with_indices, min_with_indices: the same arguments.
template <bool Largest>
void extremum_with_indices(Call& call) {
  const cb_tensor& self = *arguments::MaxWithIndices(call).self;
  const cb_tensor &values = call.output(0), &indices = call.output(1);
  const Distinct distinct(self, values), found(self, indices);
  const cb_tensor& in = distinct.in;
  bool same_strides = values.ndim == indices.ndim;
  for (int d = 0; same_strides && d < values.ndim; ++d)
    same_strides = values.sizes[d] == 1 || values.strides[d] == indices.strides[d];
  dispatch<ComparableTypes>(in.dtype, [&]<typename T>() {
    using Operation = ArgExtremum<Compared<T>, Largest>;
    char *to_values = static_cast<char*>(values.data), *to_indices = static_cast<char*>(indices.data);
    BothOutputs both{to_values, to_indices};
    if (same_strides) {
      run<Operation>(in, distinct.out, compared_source<T>(in), {to_values, sizeof(T), store_both<T>, &both});
    } else {
      run<Operation>(in, distinct.out, compared_source<T>(in), {to_values, sizeof(T), store_found_value<T>});
      run<Operation>(in, found.out, compared_source<T>(in), {to_indices, sizeof(int64_t), store_index<T>});
    }
    distinct.copy<T>(values);
    found.copy<int64_t>(indices);
  });
}

}  // namespace

void register_reduction_aminmax(KernelTable& table) {
  table.add<extremum<true>>("amax");
  table.add<extremum<false>>("amin");
  table.add<aminmax>("_aminmax");
  table.add<arg_extremum<true>>("argmax");
  table.add<arg_extremum<false>>("argmin");
  table.add<extremum_with_indices<true>>("max_with_indices");
  table.add<extremum_with_indices<false>>("min_with_indices");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
