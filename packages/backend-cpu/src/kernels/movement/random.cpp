// Random numbers. Element i depends only on the seed, the call's first Philox block and i
// (docs/random-numbers.md), so neither threads nor strides matter. Each chunk is generated in three
// steps: random words, numbers, stores.
#include <cmath>

#include "candelabra/arguments/random.hpp"
#include "candelabra/draws.hpp"
#include "candelabra/math.hpp"
#include "candelabra/random.hpp"
#include "drivers/iterate.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "memory/allocator.hpp"
#include "simd/load_elements.hpp"
#include "simd/philox.hpp"
#include "threads/parallel.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

constexpr int64_t chunk = 1024;  // even, and a multiple of the elements per Philox block

enum class Draws { Words32, Words64 };

template <typename T>
constexpr Draws draws_of = std::is_same_v<T, double> || std::is_same_v<T, int64_t> ? Draws::Words64 : Draws::Words32;

// The random words of elements [first, first + n); first is a multiple of 4.
struct Words {
  alignas(64) uint32_t at[2 * chunk];
  static_assert(chunk / 2 % philox_step == 0);
  void fill(const Call& call, Draws draws, int64_t first, int64_t n) {
    int64_t per_block = draws == Draws::Words32 ? 4 : 2;
    philox_words(call.seed(), call.offset() + static_cast<uint64_t>(first / per_block), (n + per_block - 1) / per_block,
                 at);
  }
  uint64_t word64(int64_t i) const { return at[2 * i] | static_cast<uint64_t>(at[2 * i + 1]) << 32; }
};

// Calls f(first, n) for chunks of [0, numel) on all threads.
template <typename F>
void for_chunks(int64_t numel, F&& f) {
  int64_t chunks = (numel + chunk - 1) / chunk;
  parallel_for(chunks, 4, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) f(c * chunk, std::min(chunk, numel - c * chunk));
  });
}

// Stores chunks of values of the compute dtype to a tensor with any strides.
template <typename T>
class Destination {
 public:
  explicit Destination(cb_tensor& out) : g_(geometry<1>({&out}, Order::RowMajor)), base_(data<T>(out)) {}
  int64_t numel() const { return g_.numel; }
  void store(int64_t first, int64_t n, const compute_t<T>* values) const {
    if (g_.contiguous()) return store_contiguous(values, n, base_ + first);
    for_each_run(g_, first, first + n, [&](const int64_t* offsets, int64_t m) {
      for (int64_t i = 0; i < m; ++i) base_[offsets[0] + i * g_.strides[0][0]] = T(*values++);
    });
  }

 private:
  Geometry<1> g_;
  T* base_;
};

// make(words, n, values) computes n values from the words of n elements.
template <typename T, typename F>
void generate(Call& call, Draws draws, F&& make) {
  Destination<T> destination(call.output());
  for_chunks(destination.numel(), [&](int64_t first, int64_t n) {
    Words words;
    alignas(64) compute_t<T> values[chunk];
    words.fill(call, draws, first, (n + 1) & ~int64_t{1});
    make(words, n, values);
    destination.store(first, n, values);
  });
}

template <typename T>
void uniform_numbers(const Words& words, int64_t n, compute_t<T>* values) {
  if constexpr (std::is_same_v<T, double>) {
    for (int64_t i = 0; i < n; ++i) values[i] = uniform_float64(words.word64(i));
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (std::is_same_v<T, Half>)
        values[i] = uniform_float16(words.at[i]);
      else if constexpr (std::is_same_v<T, BFloat16>)
        values[i] = uniform_bfloat16(words.at[i]);
      else
        values[i] = static_cast<float>(static_cast<int32_t>(words.at[i] >> 8)) * 0x1p-24f;
    }
  }
}

void uniform_(Call& call) {
  const arguments::Uniform args(call);
  double from = args.from, to = args.to;
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    auto low = static_cast<C>(from), range = static_cast<C>(to - from);
    generate<T>(call, draws_of<T>, [=](const Words& words, int64_t n, C* values) {
      uniform_numbers<T>(words, n, values);
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) values[i] = low + values[i] * range;
    });
  });
}

void normal_(Call& call) {
  const arguments::Normal args(call);
  double mean = args.mean, deviation = args.std;
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    using Uniform = std::conditional_t<std::is_same_v<T, double>, double, float>;
    auto middle = static_cast<C>(mean), width = static_cast<C>(deviation);
    generate<T>(call, draws_of<T>, [=](const Words& words, int64_t n, C* values) {
      n = (n + 1) & ~int64_t{1};  // numbers come in pairs; `values` holds one more
      uniform_numbers<Uniform>(words, n, values);
#pragma omp simd
      for (int64_t k = 0; k < n / 2; ++k) {
        auto [first, second] = draws::normal_numbers(values[2 * k], values[2 * k + 1]);
        values[2 * k] = middle + width * first;
        values[2 * k + 1] = middle + width * second;
      }
    });
  });
}

void exponential_(Call& call) {
  double lambda = arguments::Exponential(call).lambd;
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    auto rate = static_cast<C>(lambda);
    generate<T>(call, draws_of<T>, [=](const Words& words, int64_t n, C* values) {
      uniform_numbers<T>(words, n, values);
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) values[i] = draws::exponential(values[i], rate);
    });
  });
}

void bernoulli_(Call& call) {
  double p = arguments::BernoulliInPlace(call).p;
  int32_t threshold = draws::probability_threshold(p);
  dispatch<AllTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    generate<T>(call, Draws::Words32, [=](const Words& words, int64_t n, C* values) {
      for (int64_t i = 0; i < n; ++i) values[i] = static_cast<int32_t>(words.at[i] >> 8) < threshold ? C(1) : C(0);
    });
  });
}

// One probability per element.
void bernoulli(Call& call) {
  const cb_tensor& probabilities = *arguments::Bernoulli(call).self;
  cb_tensor& out = call.output();
  dispatch<FloatTypes>(out.dtype, [&]<typename T>() {
    Geometry<2> g = geometry<2>({&out, &probabilities}, Order::RowMajor);
    T* to = data<T>(out);
    const T* from = data<T>(probabilities);
    std::atomic<bool> outside{false};
    for_chunks(g.numel, [&](int64_t first, int64_t n) {
      Words words;
      words.fill(call, Draws::Words32, first, n);
      const uint32_t* word = words.at;
      bool bad = false;
      for_each_run(g, first, first + n, [&](const int64_t* offsets, int64_t m) {
        for (int64_t i = 0; i < m; ++i) {
          auto p = static_cast<double>(static_cast<compute_t<T>>(from[offsets[1] + i * g.strides[1][0]]));
          bad |= !(p >= 0 && p <= 1);
          to[offsets[0] + i * g.strides[0][0]] = T(uniform_float32(*word++) < p ? 1.0f : 0.0f);
        }
      });
      if (bad) outside = true;
    });
    if (outside) throw failure(CB_RUNTIME_ERROR, "Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
  });
}

void random_range_(Call& call) {
  const arguments::RandomRange args(call);
  int64_t low = args.low, high = args.high;
  auto range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  dispatch<decltype(BoolType{} + RealTypes{})>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    const draws::Modulo modulo(range);
    generate<T>(call, Draws::Words64, [=](const Words& words, int64_t n, C* values) {
      for (int64_t i = 0; i < n; ++i)
        values[i] = static_cast<C>(static_cast<int64_t>(static_cast<uint64_t>(low) + modulo(words.word64(i))));
    });
  });
}

void native_dropout(Call& call) {
  cb_tensor &out = call.output(0), &mask = call.output(1);
  const arguments::NativeDropout args(call);
  const cb_tensor& in = *args.input;
  double p = args.p;
  int32_t threshold = draws::probability_threshold(p);
  dispatch<decltype(FloatTypes{} + ComplexTypes{})>(out.dtype, [&]<typename T>() {
    using C = compute_t<T>;
    auto scale = static_cast<real_t<C>>(p < 1 ? 1 / (1 - p) : 0);
    Geometry<3> g = geometry<3>({&out, &mask, &in}, Order::RowMajor);
    T* to = data<T>(out);
    bool* kept = data<bool>(mask);
    const T* from = data<T>(in);
    for_chunks(g.numel, [&](int64_t first, int64_t n) {
      Words words;
      words.fill(call, Draws::Words32, first, n);
      const uint32_t* word = words.at;
      if (g.contiguous()) {
        uint8_t keep[chunk];  // the compiler vectorizes a loop only if its elements have one size
#pragma omp simd
        for (int64_t i = 0; i < n; ++i) keep[i] = static_cast<int32_t>(word[i] >> 8) >= threshold;
        std::memcpy(kept + first, keep, n);
        if constexpr (std::is_same_v<T, float>) {
#pragma omp simd
          for (int64_t i = 0; i < n; ++i) {
            float value = from[first + i] * scale;
            to[first + i] = static_cast<int32_t>(word[i] >> 8) >= threshold ? value : 0.0f;
          }
        } else {
          for (int64_t i = 0; i < n; ++i) to[first + i] = keep[i] ? T(C(from[first + i]) * scale) : T(C(0));
        }
        return;
      }
      for_each_run(g, first, first + n, [&](const int64_t* offsets, int64_t m) {
        for (int64_t i = 0; i < m; ++i) {
          bool keep = static_cast<int32_t>(*word++ >> 8) >= threshold;
          kept[offsets[1] + i * g.strides[1][0]] = keep;
          to[offsets[0] + i * g.strides[0][0]] = keep ? T(C(from[offsets[2] + i * g.strides[2][0]]) * scale) : T(C(0));
        }
      });
    });
  });
}

// word mod divisor, for divisors from 2 to 2^31, by quotients in float64. The first quotient, of
// the upper 63 bits rounded to 53, leaves a remainder below 2^34. The second is at most one off.
[[gnu::always_inline]] inline int64_t small_modulo(uint64_t word, int64_t divisor) {
  const double inverse = 1.0 / static_cast<double>(divisor);
  // float index: the factors are below 2^63 and at most 1
  const auto first = static_cast<uint64_t>(static_cast<double>(static_cast<int64_t>(word >> 1)) * (2 * inverse));
  auto rest = static_cast<int64_t>(word - first * static_cast<uint64_t>(divisor));
  // float index: the rest is below 2^34
  rest -= static_cast<int64_t>(static_cast<double>(rest) * inverse) * divisor;
  rest += rest < 0 ? divisor : 0;
  return rest >= divisor ? rest - divisor : rest;
}

// The Fisher-Yates shuffle, from the end. Swap partners are computed a chunk ahead so that they can
// be prefetched.
template <typename Index>
void shuffle(const Call& call, Index* order, int64_t n) {
  for (int64_t i = 0; i < n; ++i) order[i] = static_cast<Index>(i);
  Words words;
  int64_t partner[chunk];
  for (int64_t start = (n - 1) / chunk * chunk; start >= 0; start -= chunk) {
    const int64_t count = std::min(chunk, n - start);
    words.fill(call, Draws::Words64, start, count);
    for (int64_t i = start == 0; i < count; ++i)
      partner[i] = sizeof(Index) == 4 ? small_modulo(words.word64(i), start + i + 1)
                                      : static_cast<int64_t>(words.word64(i) % static_cast<uint64_t>(start + i + 1));
    constexpr int64_t ahead = 32;
    for (int64_t i = count - 1; i >= (start == 0); --i) {
      if (i >= ahead) __builtin_prefetch(order + partner[i - ahead], 1);
      std::swap(order[start + i], order[partner[i]]);
    }
  }
}
void randperm(Call& call) {
  cb_tensor& out = call.output();
  const int64_t n = out.numel;
  if (n == 0) return;
  const Geometry<1> g = geometry<1>({&out}, Order::RowMajor);
  auto permute = [&]<typename Index>() {
    Scratch<Index> order(n);
    shuffle(call, order.data(), n);
    dispatch<RealTypes>(out.dtype, [&]<typename T>() {
      T* base = data<T>(out);
      for (int64_t i = 0; i < n; ++i) base[i * g.strides[0][0]] = T(static_cast<compute_t<T>>(order[i]));
    });
  };
  if (n < (int64_t{1} << 31))
    permute.template operator()<uint32_t>();
  else
    permute.template operator()<int64_t>();
}

}  // namespace

void register_random(KernelTable& table) {
  table.add<uniform_>("uniform_");
  table.add<normal_>("normal_");
  table.add<exponential_>("exponential_");
  table.add<bernoulli_>("bernoulli_");
  table.add<bernoulli>("bernoulli");
  table.add<random_range_>("random_range_");
  table.add<native_dropout>("native_dropout");
  table.add<randperm>("randperm");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
