// Random numbers, equal to those of the CPU backend for the same seed (docs/random-numbers.md). A
// thread computes one Philox block, the draws of four elements or two.
#include <bit>
#include <cstring>

#include "candelabra/arguments/random.hpp"
#include "candelabra/draws.hpp"
#include "drivers/elementwise.cuh"
#include "drivers/move.hpp"
#include "drivers/radix_sort.hpp"
#include "drivers/scatter_add.hpp"

namespace candelabra::cuda {
namespace {

constexpr int threads = 256;

template <typename T>
constexpr int draws_of_block = std::is_same_v<T, double> ? 2 : 4;

template <typename C>
__device__ __forceinline__ C multiplied_added(C a, C b, C c) {
  if constexpr (sizeof(C) == 4)
    return __builtin_fmaf(a, b, c);
  else
    return __builtin_fma(a, b, c);
}

// Loads contiguous elements in accesses of at most 16 bytes. The address is aligned to the size of
// an access.
template <int Count, typename M>
__device__ __forceinline__ void load_run(const M* from, M* values) {
  constexpr int bytes = Count * static_cast<int>(sizeof(M)), part = bytes < 16 ? bytes : 16;
  using Word = typename elementwise::PackedType<part>::type;
#pragma unroll
  for (int i = 0; i < bytes / part; ++i) {
    const Word word = reinterpret_cast<const Word*>(from)[i];
    memcpy(reinterpret_cast<unsigned char*>(values) + i * part, &word, part);
  }
}
template <int Count, typename M>
__device__ __forceinline__ void store_run(M* to, const M* values) {
  constexpr int bytes = Count * static_cast<int>(sizeof(M)), part = bytes < 16 ? bytes : 16;
  using Word = typename elementwise::PackedType<part>::type;
#pragma unroll
  for (int i = 0; i < bytes / part; ++i) {
    Word word;
    memcpy(&word, reinterpret_cast<const unsigned char*>(values) + i * part, part);
    reinterpret_cast<Word*>(to)[i] = word;
  }
}

// Whether the elements of a whole Philox block can be loaded and stored as a run.
template <int N>
bool moves_in_runs(const Geometry<N>& piece, int operand, const void* data, int64_t first, int each, size_t size) {
  if (piece.ndim != 1 || piece.strides[operand][0] != 1) return false;
  const size_t alignment = std::min<size_t>(16, static_cast<size_t>(each) * size);
  return (reinterpret_cast<uintptr_t>(data) - static_cast<uintptr_t>(first % each) * size) % alignment == 0;
}

// ---- numbers that depend on the draws alone

// `make(block, values)` computes the `each` elements of a Philox block.
template <typename M, typename Make>
struct FillArguments {
  Make make;
  PhiloxState state;
  Indexer<1> indexer;
  M* out;
  int64_t first;
  bool runs;
};

template <typename M, typename Make>
__global__ void __launch_bounds__(threads) fill_kernel(const __grid_constant__ FillArguments<M, Make> a) {
  constexpr int each = Make::each;
  const int64_t number = a.first / each + first_index(), start = number * each - a.first, count = a.indexer.count;
  if (start >= count) return;
  alignas(16) M values[each];
  a.make(philox_block(a.state.key(), a.state.first() + static_cast<uint64_t>(number)), values);
  if (a.runs && start >= 0 && start + each <= count) return store_run<each>(a.out + start, values);
#pragma unroll
  for (int j = 0; j < each; ++j) {
    const int64_t i = start + j;
    if (i < 0 || i >= count) continue;
    uint32_t at[1];
    a.indexer.at_rolled(static_cast<uint32_t>(i), at);
    a.out[at[0]] = values[j];
  }
}

template <typename M, typename Make>
void fill_with(Call& call, const Make& make) {
  cb_tensor& out = call.output();
  elementwise::check_alignment(out, sizeof(M));
  const PhiloxState state = philox_state(call);
  int64_t first = 0;
  for_each_piece(
      geometry<1>({&out}, Order::RowMajor),
      [&](const Geometry<1>& piece, const std::array<int64_t, 1>& offsets) {
        M* to = static_cast<M*>(out.data) + offsets[0];
        FillArguments<M, Make> a{make, state, Indexer<1>(piece),
                                 to,   first, moves_in_runs(piece, 0, to, first, Make::each, sizeof(M))};
        launch_with(call, reinterpret_cast<const void*>(fill_kernel<M, Make>),
                    divide_up(first % Make::each + piece.numel, int64_t{threads} * Make::each), threads, &a);
        first += piece.numel;
      },
      Pieces::InOrder);
}

// Draw j of a block as a number in [0, 1).
template <typename T>
__device__ __forceinline__ compute_t<T> uniform_number(const PhiloxBlock& block, int j) {
  if constexpr (std::is_same_v<T, double>)
    return uniform_float64(word64_of(block, j));
  else if constexpr (std::is_same_v<T, Half>)
    return uniform_float16(block.words[j]);
  else if constexpr (std::is_same_v<T, BFloat16>)
    return uniform_bfloat16(block.words[j]);
  else
    return uniform_float32(block.words[j]);
}

template <typename T>
struct Uniform {
  static constexpr int each = draws_of_block<T>;
  compute_t<T> low, range;
  __device__ void operator()(const PhiloxBlock& block, T* values) const {
#pragma unroll
    for (int j = 0; j < each; ++j) values[j] = T(multiplied_added(uniform_number<T>(block, j), range, low));
  }
};

void uniform_(Call& call) {
  const arguments::Uniform args(call);
  const double from = args.from, to = args.to;
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    fill_with<T>(call, Uniform<T>{static_cast<C>(from), static_cast<C>(to - from)});
  });
}

template <typename T>
struct Normal {
  static constexpr int each = draws_of_block<T>;
  using C = compute_t<T>;
  C mean, deviation;
  __device__ void operator()(const PhiloxBlock& block, T* values) const {
#pragma unroll
    for (int j = 0; j < each; j += 2) {
      const auto pair = draws::normal_numbers<C>(uniform_number<C>(block, j), uniform_number<C>(block, j + 1));
      values[j] = T(multiplied_added(deviation, pair.first, mean));
      values[j + 1] = T(multiplied_added(deviation, pair.second, mean));
    }
  }
};

void normal_(Call& call) {
  const arguments::Normal args(call);
  const double mean = args.mean, deviation = args.std;
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() {
    using C = compute_t<T>;
    fill_with<T>(call, Normal<T>{static_cast<C>(mean), static_cast<C>(deviation)});
  });
}

template <typename T>
struct Exponential {
  static constexpr int each = draws_of_block<T>;
  compute_t<T> rate;
  __device__ void operator()(const PhiloxBlock& block, T* values) const {
#pragma unroll
    for (int j = 0; j < each; ++j) values[j] = T(draws::exponential(uniform_number<T>(block, j), rate));
  }
};

void exponential_(Call& call) {
  const double lambda = arguments::Exponential(call).lambd;
  dispatch<FloatTypes>(call.output().dtype,
                       [&]<typename T>() { fill_with<T>(call, Exponential<T>{static_cast<compute_t<T>>(lambda)}); });
}

// 1 with a given probability, for any dtype: `one` holds the bytes of its 1.
template <typename U>
struct Chance {
  static constexpr int each = 4;
  int32_t threshold;
  U one;
  __device__ void operator()(const PhiloxBlock& block, U* values) const {
#pragma unroll
    for (int j = 0; j < each; ++j) values[j] = static_cast<int32_t>(block.words[j] >> 8) < threshold ? one : U{};
  }
};

void bernoulli_(Call& call) {
  const double p = arguments::BernoulliInPlace(call).p;
  const int32_t dtype = call.output().dtype;
  const ElementBits one = bits_of_scalar(no_factor(), dtype);
  dispatch_size(itemsize(dtype),
                [&]<typename U>() { fill_with<U>(call, Chance<U>{draws::probability_threshold(p), one.as<U>()}); });
}

// Calls f.operator()<M>() with the type that stores an integer: an unsigned integer (its low
// bytes), bool, or a floating-point type. The dtype is not complex.
template <typename F>
void dispatch_integral(int32_t dtype, F&& f) {
  if (is_floating_dtype(dtype)) return dispatch<FloatTypes>(dtype, std::forward<F>(f));
  if (dtype == CB_BOOL) return f.template operator()<bool>();
  dispatch_size(itemsize(dtype), [&]<typename U>() {
    if constexpr (!std::is_same_v<U, Bits128>) f.template operator()<U>();
  });
}

template <typename T>
struct Range {
  static constexpr int each = 2;
  draws::Modulo modulo;
  uint64_t low;
  __device__ void operator()(const PhiloxBlock& block, memory_t<T>* values) const {
#pragma unroll
    for (int j = 0; j < each; ++j)
      values[j] = stored<T>(static_cast<compute_t<T>>(static_cast<int64_t>(low + modulo(word64_of(block, j)))));
  }
};

void random_range_(Call& call) {
  const arguments::RandomRange args(call);
  const int64_t low = args.low, high = args.high;
  const draws::Modulo modulo(static_cast<uint64_t>(high) - static_cast<uint64_t>(low));
  dispatch_integral(call.output().dtype,
                    [&]<typename T>() { fill_with<memory_t<T>>(call, Range<T>{modulo, static_cast<uint64_t>(low)}); });
}

// ---- one probability for each element

struct BernoulliArguments {
  PhiloxState state;
  Indexer<2> indexer;
  void* out;
  const void* in;
  int64_t first;
  FaultSink sink;
};

template <typename T>
__global__ void __launch_bounds__(threads) bernoulli_kernel(const __grid_constant__ BernoulliArguments a) {
  const int64_t number = a.first / 4 + first_index(), start = number * 4 - a.first, count = a.indexer.count;
  if (start >= count) return;
  const PhiloxBlock block = philox_block(a.state.key(), a.state.first() + static_cast<uint64_t>(number));
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int64_t i = start + j;
    if (i < 0 || i >= count) continue;
    uint32_t at[2];
    a.indexer.at_rolled(static_cast<uint32_t>(i), at);
    const auto p = static_cast<double>(loaded<T>(static_cast<const T*>(a.in)[at[1]]));
    if (!(p >= 0 && p <= 1)) a.sink.report(FaultKind::Custom, 0, 0, 0);
    static_cast<T*>(a.out)[at[0]] = T(uniform_float32(block.words[j]) < p ? 1.0f : 0.0f);
  }
}

void bernoulli(Call& call) {
  const cb_tensor &out = call.output(), &in = *arguments::Bernoulli(call).self;
  if (out.numel == 0) return;
  dispatch<FloatTypes>(out.dtype, [&]<typename T>() {
    elementwise::check_alignment(in, sizeof(T));
    BernoulliArguments a{philox_state(call),
                         {},
                         nullptr,
                         nullptr,
                         0,
                         fault_sink(call, "Expected p_in >= 0 && p_in <= 1 to be true, but got false.")};
    for_each_piece(
        geometry<2>({&out, &in}, Order::RowMajor),
        [&](const Geometry<2>& piece, const std::array<int64_t, 2>& offsets) {
          a.indexer = Indexer<2>(piece);
          a.out = mutable_data<T>(out) + offsets[0];
          a.in = data<T>(in) + offsets[1];
          launch_with(call, reinterpret_cast<const void*>(bernoulli_kernel<T>),
                      divide_up(a.first % 4 + piece.numel, threads * 4), threads, &a);
          a.first += piece.numel;
        },
        Pieces::InOrder);
  });
}

// ---- dropout

template <typename T>
struct DropoutArguments {
  PhiloxState state;
  Indexer<3> indexer;
  T* out;
  uint8_t* mask;
  const T* in;
  int64_t first;
  int32_t threshold;
  real_t<compute_t<T>> scale;
  bool runs;
};

template <typename T>
__global__ void __launch_bounds__(threads) dropout_kernel(const __grid_constant__ DropoutArguments<T> a) {
  using C = compute_t<T>;
  const int64_t number = a.first / 4 + first_index(), start = number * 4 - a.first, count = a.indexer.count;
  if (start >= count) return;
  const bool run = a.runs && start >= 0 && start + 4 <= count;
  alignas(16) T values[4];
  if (run) load_run<4>(a.in + start, values);
  const PhiloxBlock block = philox_block(a.state.key(), a.state.first() + static_cast<uint64_t>(number));
  alignas(4) uint8_t kept[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) kept[j] = static_cast<int32_t>(block.words[j] >> 8) >= a.threshold;
  if (run) {
#pragma unroll
    for (int j = 0; j < 4; ++j) values[j] = kept[j] ? T(C(values[j]) * a.scale) : T(C(0));
    store_run<4>(a.out + start, values);
    store_run<4>(a.mask + start, kept);
    return;
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int64_t i = start + j;
    if (i < 0 || i >= count) continue;
    uint32_t at[3];
    a.indexer.at_rolled(static_cast<uint32_t>(i), at);
    a.out[at[0]] = kept[j] ? T(C(a.in[at[2]]) * a.scale) : T(C(0));
    a.mask[at[1]] = kept[j];
  }
}

void native_dropout(Call& call) {
  const arguments::NativeDropout args(call);
  const cb_tensor &out = call.output(0), &mask = call.output(1), &in = *args.input;
  const double p = args.p;
  dispatch<decltype(FloatTypes{} + ComplexTypes{})>(out.dtype, [&]<typename T>() {
    elementwise::check_alignment(in, sizeof(T));
    DropoutArguments<T> a{};
    a.state = philox_state(call);
    a.threshold = draws::probability_threshold(p);
    a.scale = static_cast<real_t<compute_t<T>>>(p < 1 ? 1 / (1 - p) : 0);
    for_each_piece(
        geometry<3>({&out, &mask, &in}, Order::RowMajor),
        [&](const Geometry<3>& piece, const std::array<int64_t, 3>& offsets) {
          a.indexer = Indexer<3>(piece);
          a.out = mutable_data<T>(out) + offsets[0];
          a.mask = mutable_data<uint8_t>(mask) + offsets[1];
          a.in = data<T>(in) + offsets[2];
          a.runs = moves_in_runs(piece, 0, a.out, a.first, 4, sizeof(T)) &&
                   moves_in_runs(piece, 1, a.mask, a.first, 4, 1) &&
                   moves_in_runs(piece, 2, a.in, a.first, 4, sizeof(T));
          launch_with(call, reinterpret_cast<const void*>(dropout_kernel<T>),
                      divide_up(a.first % 4 + piece.numel, threads * 4), threads, &a);
          a.first += piece.numel;
        },
        Pieces::InOrder);
  });
}

// ---- randperm
//
// A parallel form of the Fisher-Yates shuffle of the CPU backend. Step j, from the last to the
// first, swaps the elements at j and key[j] <= j. The element at p before step p came from position
// j, by the nearest step j > p with key[j] = p; without such a step it is p itself. These steps are
// adjacent in the list of steps sorted by key. Following them back takes a logarithmic number of
// steps on average (Shun, Gu, Blelloch, Fineman, Gibbons, "Sequential random permutation, list
// contraction and tree contraction are highly parallel", 2015).

constexpr uint32_t none = ~uint32_t{0};

__global__ void __launch_bounds__(threads)
    swap_kernel(uint32_t* keys, uint32_t* steps, const __grid_constant__ PhiloxState state, uint32_t n) {
  const int64_t number = first_index();
  if (number * 2 >= n) return;
  const PhiloxBlock block = philox_block(state.key(), state.first() + static_cast<uint64_t>(number));
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    const auto j = static_cast<uint64_t>(number) * 2 + static_cast<uint64_t>(k);
    if (j >= n) break;
    keys[j] = static_cast<uint32_t>(word64_of(block, k) % (j + 1));
    steps[j] = static_cast<uint32_t>(j);
  }
}

// Sets before[p] to the step that moved to p the element that is there before step p.
__global__ void __launch_bounds__(threads)
    link_kernel(uint32_t* before, const uint32_t* keys, const uint32_t* steps, uint32_t n) {
  const int64_t s = first_index();
  if (s >= n) return;
  const uint32_t p = keys[s];
  if (s > 0 && keys[s - 1] == p) return;
  if (steps[s] != p)
    before[p] = steps[s];
  else if (s + 1 < n && keys[s + 1] == p)
    before[p] = steps[s + 1];
}

template <typename T>
__global__ void __launch_bounds__(threads) permute_kernel(memory_t<T>* out, int64_t stride, const uint32_t* before,
                                                          const uint32_t* keys, const uint32_t* steps, uint32_t n) {
  const int64_t s = first_index();
  if (s >= n) return;
  uint32_t value = keys[s];
  if (s + 1 < n && keys[s + 1] == value) {
    value = steps[s + 1];
    for (uint32_t next = before[value]; next != none; next = before[value]) value = next;
  }
  out[steps[s] * stride] = stored<T>(static_cast<compute_t<T>>(value));
}

void randperm(Call& call) {
  cb_tensor& out = call.output();
  const int64_t n = out.numel;
  if (n == 0) return;
  if (n >= none)
    throw failure(CB_RUNTIME_ERROR, "randperm: at most 2**32 - 2 numbers are permuted on a GPU, but got n=%lld",
                  static_cast<long long>(n));
  const Geometry<1> g = geometry<1>({&out}, Order::RowMajor);
  const auto count = static_cast<uint32_t>(n);
  const auto each = static_cast<size_t>(n) * sizeof(uint32_t);
  const Workspace memory(call, 5 * each);
  const PairBuffers<uint32_t> buffers{{memory.as<uint32_t>(), memory.as<uint32_t>(each)},
                                      {memory.as<uint32_t>(2 * each), memory.as<uint32_t>(3 * each)}};
  auto* before = memory.as<uint32_t>(4 * each);
  const auto blocks = static_cast<unsigned>(divide_up(n, threads));
  launch(call, swap_kernel, static_cast<unsigned>(divide_up(n, 2 * threads)), threads, 0, buffers.keys[0],
         buffers.positions[0], philox_state(call), count);
  const int sorted = radix_sort(call, buffers, count, std::bit_width(count - 1));
  const uint32_t *keys = buffers.keys[sorted], *steps = buffers.positions[sorted];
  fill_bytes(call, before, 0xff, each);
  launch(call, link_kernel, blocks, threads, 0, before, keys, steps, count);
  dispatch_integral(out.dtype, [&]<typename T>() {
    if constexpr (!std::is_same_v<T, bool>)
      launch(call, permute_kernel<T>, blocks, threads, 0, mutable_data<memory_t<T>>(out), g.strides[0][0], before, keys,
             steps, count);
  });
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

}  // namespace candelabra::cuda
