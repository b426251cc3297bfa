// scatter_reduce: the values for one element are combined in the order of the index, in one pass.
// Half precisions are combined in float32 and rounded once.
#include <cmath>
#include <limits>

#include "candelabra/arguments/indexing.hpp"
#include "kernels/indexing/scatter_slices.hpp"
#include "memory/allocator.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

enum class Reduction { sum, prod, mean, amax, amin };

Reduction reduction_named(std::string_view name) {
  if (name == "sum") return Reduction::sum;
  if (name == "prod") return Reduction::prod;
  if (name == "mean") return Reduction::mean;
  return name == "amax" ? Reduction::amax : Reduction::amin;
}

// The identity element of the reduction.
template <typename C>
C identity(Reduction reduction) {
  if (reduction == Reduction::prod) return C(1);
  if constexpr (!is_complex_v<C>) {
    using Limits = std::numeric_limits<C>;
    if (reduction == Reduction::amax) return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    if (reduction == Reduction::amin) return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
  return C(0);
}

// The maximum and minimum; NaN in either number gives NaN.
template <typename C>
C larger(C a, C b) {
  return (a > b) | (a != a) ? a : b;
}
template <typename C>
C smaller(C a, C b) {
  return (a < b) | (a != a) ? a : b;
}

// A contiguous descriptor with the sizes of another.
struct Dense {
  int64_t strides[max_dims];
  cb_tensor tensor;
  Dense(const cb_tensor& like, void* memory, int32_t dtype) : tensor(like) {
    int64_t step = 1;
    for (int d = like.ndim - 1; d >= 0; --d) {
      strides[d] = step;
      step *= like.sizes[d];
    }
    tensor.strides = strides;
    tensor.data = memory;
    tensor.dtype = dtype;
    tensor.flags = 0;
  }
  Dense(const Dense&) = delete;
};

template <typename C, typename T>
void combine(Reduction reduction, const cb_tensor& out, const cb_tensor& index, const cb_tensor& source, int64_t dim) {
  const auto with = [&](auto f) {
    scatter_slices<C, T>(out, index, source, dim,
                         [f](C& to, const T& value) { to = f(load(&to), static_cast<C>(load(&value))); });
  };
  constexpr bool truth = std::is_same_v<C, bool>;
  switch (reduction) {
    case Reduction::sum:
    case Reduction::mean:
      return with([](C a, C b) {
        if constexpr (truth)
          return a || b;
        else
          return static_cast<C>(a + b);
      });
    case Reduction::prod:
      return with([](C a, C b) {
        if constexpr (truth)
          return a && b;
        else
          return static_cast<C>(a * b);
      });
    case Reduction::amax:  // not of complex numbers
      if constexpr (!is_complex_v<C>) with([](C a, C b) { return larger(a, b); });
      return;
    case Reduction::amin:
      if constexpr (!is_complex_v<C>) with([](C a, C b) { return smaller(a, b); });
      return;
  }
}

// counts = `first` + the number of values scattered to each element.
void count_values(const cb_tensor& counts, const cb_tensor& index, const cb_tensor& source, int64_t dim,
                  int64_t first) {
  std::fill_n(mutable_data<int64_t>(counts), counts.numel, first);
  int64_t one = 1;
  cb_tensor ones = source;
  ones.data = &one;
  ones.dtype = CB_INT64;
  ones.flags = CB_TENSOR_NUMBER;
  scatter_slices<int64_t>(counts, index, ones, dim, [](int64_t& to, const int64_t& value) { to += value; });
}

// Divides each element by its count; integers round toward negative infinity.
template <typename C>
void divide_by_counts(const cb_tensor& out, const cb_tensor& counts) {
  auto g = geometry<2>({&out, &counts});
  parallel_for(g.numel, light_grain / 4, [&](int64_t begin, int64_t end) {
    for_each_run(g, begin, end, [&](const int64_t* at, int64_t n) {
      C* to = mutable_data<C>(out) + at[0];
      const int64_t* count = data<int64_t>(counts) + at[1];
      for (int64_t i = 0; i < n; ++i) {
        C& value = to[i * g.strides[0][0]];
        const int64_t number = count[i * g.strides[1][0]];
        if (number <= 1) continue;
        if constexpr (is_integer_v<C>) {
          const auto dividend = static_cast<__int128>(value);
          const __int128 quotient = dividend / number;
          value = static_cast<C>(quotient - (dividend % number != 0 && dividend < 0));
        } else {
          value = value / static_cast<real_t<C>>(number);
        }
      }
    });
  });
}

template <typename C, typename T>
void reduce(const arguments::ScatterReduce& args, const cb_tensor& out) {
  const cb_tensor &index = *args.index, &source = *args.src;
  const int64_t dim = args.dim;
  const Reduction reduction = reduction_named(args.reduce);
  const bool include_self = args.include_self;
  if (!include_self) {
    const C start = identity<C>(reduction);
    scatter_slices<C, T>(out, index, source, dim, [start](C& to, const T&) { to = start; });
  }
  combine<C, T>(reduction, out, index, source, dim);
  if (reduction != Reduction::mean) return;
  if constexpr (!std::is_same_v<C, bool>) {
    Scratch<int64_t> counts(out.numel);
    const Dense counted(out, counts.data(), CB_INT64);
    count_values(counted.tensor, index, source, dim, include_self);
    divide_by_counts<C>(out, counted.tensor);
  }
}

template <typename T>
void to_wide(const cb_tensor& from, const cb_tensor& to) {
  auto g = geometry<2>({&to, &from});
  for_each_run(g, 0, g.numel, [&](const int64_t* at, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      mutable_data<float>(to)[at[0] + i * g.strides[0][0]] = data<T>(from)[at[1] + i * g.strides[1][0]];
  });
}
template <typename T>
void from_wide(const cb_tensor& from, const cb_tensor& to) {
  auto g = geometry<2>({&to, &from});
  for_each_run(g, 0, g.numel, [&](const int64_t* at, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      mutable_data<T>(to)[at[0] + i * g.strides[0][0]] = T(data<float>(from)[at[1] + i * g.strides[1][0]]);
  });
}

void scatter_reduce(Call& call) {
  const arguments::ScatterReduce args(call);
  const cb_tensor &self = *args.self, &index = *args.index;
  cb_tensor& out = call.output();
  const int64_t dim = args.dim;
  check_indices(index, dim, self.ndim ? self.sizes[dim] : 1);
  initialize_from(out, self);
  if (index.numel == 0) return;
  dispatch<AllTypes>(out.dtype, [&]<typename T>() {
    if constexpr (is_half_v<T>) {
      Scratch<float> memory(out.numel);
      const Dense wide(out, memory.data(), CB_FLOAT32);
      to_wide<T>(out, wide.tensor);
      reduce<float, T>(args, wide.tensor);
      from_wide<T>(wide.tensor, out);
    } else {
      reduce<T, T>(args, out);
    }
  });
}

}  // namespace

void register_scatter_reduce(KernelTable& table) {
  table.add<scatter_reduce>("scatter_reduce");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
