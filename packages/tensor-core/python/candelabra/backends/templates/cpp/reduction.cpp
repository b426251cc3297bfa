// Reductions, running sums and sorting. The output of a reduction has as many dimensions as the
// input; reduced dimensions have size 1 and stride 0.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "candelabra/arguments/reduction.hpp"
#include "candelabra/arguments/scan.hpp"
#include "candelabra/arguments/sorting.hpp"
#include "kernels.hpp"
#include "tensors.hpp"

namespace arguments = candelabra::arguments;

namespace {

// Sums of floats are accumulated in double; those of integers wrap.
template <typename T>
using accumulator_t = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;

template <typename T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(value);
  else
    return false;
}
// Whether x comes before the best so far; NaN comes before everything.
template <typename C>
bool is_above(C x, C best) {
  return !is_nan(best) && (is_nan(x) || x > best);
}
template <typename C>
bool is_below(C x, C best) {
  return !is_nan(best) && (is_nan(x) || x < best);
}

// For each element of the output: result = finish(elements...), where `make` returns a fresh
// accumulator with the functions add(x) and result().
template <typename R, typename T, typename Make>
void reduce(const cb_tensor& out, const cb_tensor& self, Make make) {
  View kept(self), reduced(self);
  for (int64_t d = 0; d < self.ndim; ++d) (out.sizes[d] == 1 && self.sizes[d] != 1 ? kept : reduced).set_size(d, 1);
  memory_t<R>* const results = elements<R>(out);
  const memory_t<T>* const data = elements<T>(self);
  const auto inner = geometry<1>({&reduced}, Order::RowMajor);
  for_each(geometry<2>({&out, &kept}), [&](auto offset) {
    auto total = make();
    for_each(inner, [&](auto position) { total.add(load<T>(data + offset[1] + position[0])); });
    results[offset[0]] = static_cast<memory_t<R>>(total.result());
  });
}

template <typename T>
struct Sum {
  accumulator_t<T> total = 0;
  void add(compute_t<T> x) { total += static_cast<accumulator_t<T>>(x); }
  T result() const { return static_cast<T>(static_cast<compute_t<T>>(total)); }
};
template <typename T>
struct Product {
  accumulator_t<T> total = 1;
  void add(compute_t<T> x) { total *= static_cast<accumulator_t<T>>(x); }
  T result() const { return static_cast<T>(static_cast<compute_t<T>>(total)); }
};
template <typename T, bool (*Precedes)(compute_t<T>, compute_t<T>)>
struct Extremum {
  compute_t<T> best{};
  bool is_first = true;
  void add(compute_t<T> x) {
    if (is_first || Precedes(x, best)) best = x;
    is_first = false;
  }
  T result() const { return static_cast<T>(best); }
};
// The first of equal elements.
template <typename T>
struct PositionOfMaximum {
  compute_t<T> best{};
  int64_t position = 0, count = 0;
  void add(compute_t<T> x) {
    if (count == 0 || is_above(x, best)) {
      best = x;
      position = count;
    }
    ++count;
  }
  int64_t result() const { return position; }
};

void sum(Call& call) {
  const arguments::Sum args(call);
  dispatch<RealTypes>(args.self->dtype,
                      [&]<typename T>() { reduce<T, T>(call.output(), *args.self, [] { return Sum<T>{}; }); });
}
void prod(Call& call) {
  const arguments::Prod args(call);
  dispatch<RealTypes>(args.self->dtype,
                      [&]<typename T>() { reduce<T, T>(call.output(), *args.self, [] { return Product<T>{}; }); });
}
void amax(Call& call) {
  const arguments::Amax args(call);
  dispatch<AllTypes>(args.self->dtype, [&]<typename T>() {
    reduce<T, T>(call.output(), *args.self, [] { return Extremum<T, is_above<compute_t<T>>>{}; });
  });
}
void amin(Call& call) {
  const arguments::Amin args(call);
  dispatch<AllTypes>(args.self->dtype, [&]<typename T>() {
    reduce<T, T>(call.output(), *args.self, [] { return Extremum<T, is_below<compute_t<T>>>{}; });
  });
}
void argmax(Call& call) {
  const arguments::Argmax args(call);
  dispatch<AllTypes>(args.self->dtype, [&]<typename T>() {
    reduce<int64_t, T>(call.output(), *args.self, [] { return PositionOfMaximum<T>{}; });
  });
}

// ---- slices along a dimension

void cumsum(Call& call) {
  const arguments::Cumsum args(call);
  const Slices out(call.output(), args.dim), self(*args.self, args.dim);
  dispatch<RealTypes>(call.output().dtype, [&]<typename T>() {
    T* const results = elements<T>(call.output());
    const T* const data = elements<T>(*args.self);
    for_each(geometry<2>({&out.firsts, &self.firsts}), [&](auto offset) {
      Sum<T> total;
      for (int64_t k = 0; k < self.length; ++k) {
        total.add(load<T>(data + offset[1] + k * self.stride));
        results[offset[0] + k * out.stride] = total.result();
      }
    });
  });
}

// Ascending with NaN last, or descending with NaN first. Equal elements keep their order.
void sort(Call& call) {
  const arguments::Sort args(call);
  const cb_tensor &values = call.output(0), &indices = call.output(1);
  const Slices to(values, args.dim), positions(indices, args.dim), self(*args.self, args.dim);
  std::vector<int64_t> order(static_cast<size_t>(self.length));
  dispatch<AllTypes>(args.self->dtype, [&]<typename T>() {
    const auto precedes = [&](compute_t<T> a, compute_t<T> b) {
      return args.descending ? is_above(a, b) : !is_nan(a) && (is_nan(b) || a < b);
    };
    for_each(geometry<3>({&to.firsts, &positions.firsts, &self.firsts}), [&](auto offset) {
      const auto at = [&](int64_t k) { return load<T>(elements<T>(*args.self) + offset[2] + k * self.stride); };
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return precedes(at(a), at(b)); });
      for (int64_t k = 0; k < self.length; ++k) {
        const int64_t from = order[static_cast<size_t>(k)];
        elements<T>(values)[offset[0] + k * to.stride] = static_cast<memory_t<T>>(at(from));
        elements<int64_t>(indices)[offset[1] + k * positions.stride] = from;
      }
    });
  });
}

}  // namespace

void add_reduction_kernels(Table& table) {
  table.add<sum>("sum", 0, mask<RealTypes>);
  table.add<prod>("prod", 0, mask<RealTypes>);
  table.add<amax>("amax", 0, mask<AllTypes>);
  table.add<amin>("amin", 0, mask<AllTypes>);
  table.add<argmax>("argmax", 0, mask<AllTypes>);
  table.add<cumsum>("cumsum", 0, mask<RealTypes>);
  table.add<sort>("sort", 0, mask<AllTypes>);
}
