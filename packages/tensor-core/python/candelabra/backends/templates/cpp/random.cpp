// Random numbers. A seed gives the same numbers on every backend: docs/random-numbers.md says which
// word of the generator belongs to which element.
#include "candelabra/random.hpp"

#include "candelabra/arguments/random.hpp"
#include "kernels.hpp"
#include "tensors.hpp"

namespace arguments = candelabra::arguments;

namespace {

// The draws of a call.
struct Draws {
  uint64_t seed, offset;
  explicit Draws(const Call& call) : seed(call.seed()), offset(call.offset()) {}
  uint64_t word64(int64_t i) const { return candelabra::random_word64(seed, offset, static_cast<uint64_t>(i)); }
  // In [0, 1), for elements of type T.
  template <typename T>
  compute_t<T> unit(int64_t i) const {
    if constexpr (std::is_same_v<T, double>) {
      return candelabra::uniform_float64(word64(i));
    } else {
      const uint32_t word = candelabra::random_word32(seed, offset, static_cast<uint64_t>(i));
      if constexpr (std::is_same_v<T, float>)
        return candelabra::uniform_float32(word);
      else if constexpr (std::is_same_v<T, candelabra::kernel::Half>)
        return candelabra::uniform_float16(word);
      else
        return candelabra::uniform_bfloat16(word);
    }
  }
};

// Calls f with the number of each element in row-major order, and stores the result.
template <typename T, typename F>
void generate(const cb_tensor& out, F f) {
  memory_t<T>* const results = elements<T>(out);
  int64_t number = 0;
  for_each(geometry<1>({&out}, Order::RowMajor),
           [&](auto offset) { results[offset[0]] = static_cast<memory_t<T>>(f(number++)); });
}

void uniform(Call& call) {
  const arguments::Uniform args(call);
  const Draws draws(call);
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    const C from = static_cast<C>(args.from), width = static_cast<C>(args.to - args.from);
    generate<T>(call.output(), [&](int64_t i) { return T(from + draws.unit<T>(i) * width); });
  });
}

// Box and Muller, on pairs of elements. Half precisions are computed from the draws of float32.
void normal(Call& call) {
  const arguments::Normal args(call);
  const Draws draws(call);
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    generate<T>(call.output(), [&](int64_t i) {
      const int64_t first = i - i % 2;
      const auto [even, odd] = candelabra::normal_pair(draws.unit<C>(first), draws.unit<C>(first + 1));
      return T(static_cast<C>(args.mean) + (i % 2 ? odd : even) * static_cast<C>(args.std));
    });
  });
}

void random_range(Call& call) {
  const arguments::RandomRange args(call);
  const Draws draws(call);
  dispatch<AllTypes>(call.output().dtype, [&]<typename T>() {
    generate<T>(call.output(), [&](int64_t i) {
      return converted<T>(candelabra::random_range(draws.word64(i), args.low, args.high));
    });
  });
}

}  // namespace

void add_random_kernels(Table& table) {
  table.add<uniform>("uniform_", 0, mask<FloatTypes>);
  table.add<normal>("normal_", 0, mask<FloatTypes>);
  table.add<random_range>("random_range_", 0, mask<AllTypes>);
}
