// _embedding_bag and _embedding_bag_backward: sums, means and maxima of bags of rows of a
// table. Half precisions are summed in float32. The gradient of a row is summed in the order of the
// indices.
#include <algorithm>

#include "candelabra/arguments/indexing.hpp"
#include "drivers/move.hpp"
#include "drivers/scatter_add.hpp"
#include "runtime/fault_messages.hpp"

namespace candelabra::cuda {
namespace {

constexpr int threads = 128;
constexpr int64_t most_pairs = 0x7fffffff;

enum class Mode { Sum, Mean, Max };
Mode mode_named(std::string_view name) {
  return name == "mean" ? Mode::Mean : name == "max" ? Mode::Max : Mode::Sum;
}

unsigned blocks_of(int64_t count) {
  return static_cast<unsigned>(divide_up(count, threads));
}

// The start of each bag, as a position in the indices.
struct Bags {
  const int64_t *offsets, *ordered;
  const int32_t* decreases;
  int64_t bags, count;

#ifdef __CUDACC__
  __device__ int64_t begin(int64_t bag) const {
    if (bag >= bags) return count;
    const int64_t at = (*decreases ? ordered : offsets)[bag];
    return at < 0 ? 0 : at < count ? at : count;
  }
#endif
};

// Reports invalid offsets, and sets `decreases` if they decrease anywhere.
__global__ void __launch_bounds__(threads)
    check_offsets(const int64_t* offsets, int64_t number, int64_t bags, int64_t count, int32_t* decreases,
                  FaultSink not_zero, FaultSink beyond, FaultSink negative) {
  for (int64_t b = first_index(); b < number; b += index_step()) {
    const int64_t at = offsets[b];
    if (b == 0 && at != 0) not_zero.report(FaultKind::Custom, at, 0, count);
    if (b == number - 1 && at > count) beyond.report(FaultKind::Custom, at, 0, count);
    if (at < 0 && b < bags) negative.report(FaultKind::Custom, at, 0, count);
    if (b > 0 && b < bags && at < offsets[b - 1]) *decreases = 1;
  }
}

// Sorts offsets that decrease somewhere, as the CPU backend does: each is written at its rank, in
// quadratic time. Offsets in order need nothing; the kernel reads `decreases` so that the host does
// not wait for it.
__global__ void __launch_bounds__(threads)
    order_offsets(const int64_t* offsets, int64_t bags, const int32_t* decreases, int64_t* ordered) {
  if (*decreases == 0) return;
  for (int64_t b = first_index(); b < bags; b += index_step()) {
    const int64_t at = offsets[b];
    int64_t rank = 0;
    for (int64_t other = 0; other < bags; ++other) rank += offsets[other] < at || (offsets[other] == at && other < b);
    ordered[rank] = at;
  }
}

// Finds the bag of each index: the last bag that begins at or before it.
__global__ void __launch_bounds__(threads) bag_kernel(const __grid_constant__ Bags bags, int64_t* bag_of) {
  for (int64_t i = first_index(); i < bags.count; i += index_step()) {
    int64_t low = 0;
    for (int64_t left = bags.bags; left > 0;) {
      const int64_t half = left / 2;
      const bool after = bags.begin(low + half) <= i;
      low = after ? low + half + 1 : low;
      left = after ? left - half - 1 : half;
    }
    bag_of[i] = low - 1;
  }
}

template <typename T>
struct ForwardArguments {
  const memory_t<T>* weight;
  int64_t rows, columns, row_step, step, padding;
  const int64_t* indices;
  Bags bags;
  const compute_t<T>* factors;  // of each index; null: no per_sample_weights
  memory_t<T>* out;
  int64_t *sizes, *positions;
  Mode mode;
  FaultSink sink;
  int64_t blocks, across;
};

// One thread computes one column of one bag. blockDim: (columns, bags).
template <typename T>
__global__ void __launch_bounds__(threads) forward_kernel(const __grid_constant__ ForwardArguments<T> a) {
  using C = compute_t<T>;
  for (int64_t block = blockIdx.x; block < a.blocks; block += gridDim.x) {
    const int64_t column = block % a.across * blockDim.x + threadIdx.x,
                  bag = block / a.across * blockDim.y + threadIdx.y;
    if (bag >= a.bags.bags) continue;
    const bool there = column < a.columns;
    const int64_t first = a.bags.begin(bag), last = a.bags.begin(bag + 1);
    C sum(0);
    int64_t used = 0, position = 0;
    for (int64_t i = first; i < last; ++i) {
      const int64_t index = a.indices[i];
      const int64_t row = a.sink.checked(index, 0, a.rows, false, FaultKind::RuntimeIndex);
      if (index == a.padding) continue;
      if (there) {
        const C value = loaded<T>(a.weight[row * a.row_step + column * a.step]);
        if (a.mode != Mode::Max) {
          sum += a.factors ? a.factors[i] * value : value;
        } else if (used == 0 || value > sum || (value != value && sum == sum)) {
          sum = value;
          position = index;
        }
      }
      ++used;
    }
    if (a.mode == Mode::Mean && used > 1) sum /= static_cast<C>(used);
    if (there) a.out[bag * a.columns + column] = stored<T>(sum);
    if (there && a.mode == Mode::Max) a.positions[bag * a.columns + column] = position;
    if (column != 0) continue;
    a.sizes[bag] = a.mode == Mode::Sum ? 0 : used;
    if (a.mode != Mode::Max) a.positions[bag] = a.sizes[bag];
  }
}

void refuse_rows(int64_t rows, int64_t count) {
  if (rows == 0 && count > 0)
    throw failure(
        CB_RUNTIME_ERROR,
        "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found %lld indices for a table of no rows",
        static_cast<long long>(count));
}

template <typename T>
void forward(Call& call) {
  using Element = memory_t<T>;
  const arguments::EmbeddingBag args(call);
  const cb_tensor &weight = *args.weight, &offsets = *args.offsets, &out = call.output(0);
  const cb_tensor* factors = args.per_sample_weights;
  const int64_t number = out.sizes[0];
  const Workspace ordered(call, static_cast<size_t>(number) * sizeof(int64_t)), decreases(call, sizeof(int32_t));
  const Bags bags{data<int64_t>(offsets), ordered.as<int64_t>(), decreases.as<int32_t>(), number, args.indices->numel};
  refuse_rows(weight.sizes[0], bags.count);
  fill_bytes(call, decreases.data(), 0, sizeof(int32_t));
  launch(call, check_offsets, grid_for(call, offsets.numel, threads), threads, 0, bags.offsets, offsets.numel, number,
         bags.count, decreases.as<int32_t>(),
         message_sink(call, "embedding_bag",
                      "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position "
                      "0. However, got "
                      "{index}"),
         message_sink(call, "embedding_bag",
                      "offsets[-1] can not be greater than input's length({size}) but got offsets[-1] of {index}"),
         message_sink(call, "embedding_bag", "offsets must not be negative, but got {index}"));
  launch(call, order_offsets, grid_for(call, number, threads), threads, 0, bags.offsets, number, bags.decreases,
         ordered.as<int64_t>());
  if (bags.count > 0)
    launch(call, bag_kernel, grid_for(call, bags.count, threads), threads, 0, bags,
           mutable_data<int64_t>(call.output(1)));
  if (bags.bags == 0) return;
  const int64_t columns = weight.sizes[1];
  unsigned wide = 1;
  while (wide < threads && wide < columns) wide *= 2;
  const unsigned high = threads / wide;
  const int64_t across = std::max<int64_t>(1, divide_up(columns, wide)), blocks = across * divide_up(bags.bags, high);
  const ForwardArguments<T> a{data<Element>(weight),
                              weight.sizes[0],
                              columns,
                              weight.strides[0],
                              weight.strides[1],
                              args.padding_idx,
                              data<int64_t>(*args.indices),
                              bags,
                              factors ? data<compute_t<T>>(*factors) : nullptr,
                              mutable_data<Element>(out),
                              mutable_data<int64_t>(call.output(2)),
                              mutable_data<int64_t>(call.output(3)),
                              mode_named(args.mode),
                              fault_sink(call),
                              blocks,
                              across};
  launch(call, forward_kernel<T>, dim3(static_cast<unsigned>(std::min<int64_t>(blocks, 1 << 30))), dim3(wide, high), 0,
         a);
}

// ---- the gradient

// Counts how often each row is used.
__global__ void __launch_bounds__(threads)
    frequency_kernel(uint32_t* frequencies, const int64_t* indices, uint32_t count, int64_t rows) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i < count && indices[i] >= 0 && indices[i] < rows) atomicAdd(frequencies + indices[i], 1u);
}

template <typename T>
struct PairArguments {
  uint64_t* keys;
  int64_t *to, *from;
  compute_t<T>* factors;
  const int64_t *indices, *bag_of, *sizes;
  const compute_t<T>* weights;  // per_sample_weights; null: none
  const uint32_t* frequencies;  // null: not scale_grad_by_freq
  int64_t rows, bags, columns, padding;
  uint32_t count;
  bool mean;
  FaultSink sink;
};

template <typename T>
__global__ void __launch_bounds__(threads) pairs_kernel(const __grid_constant__ PairArguments<T> a) {
  using C = compute_t<T>;
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= a.count) return;
  const int64_t index = a.indices[i], bag = a.bag_of[i];
  const int64_t row = a.sink.checked(index, 0, a.rows, false, FaultKind::RuntimeIndex);
  bool counts = row == index && index != a.padding && bag >= 0;
  if (bag < -1 || bag >= a.bags) {
    a.sink.report(FaultKind::IndexError, bag, 0, a.bags);
    counts = false;
  }
  C factor = a.weights ? a.weights[i] : C(1);
  if (counts && a.mean) factor /= static_cast<C>(a.sizes[bag] > 1 ? a.sizes[bag] : 1);
  if (counts && a.frequencies) factor /= static_cast<C>(a.frequencies[row]);
  a.keys[i] = static_cast<uint64_t>(counts ? row : a.rows);
  a.to[i] = row * a.columns;
  a.from[i] = counts ? bag * a.columns : 0;
  a.factors[i] = factor;
}

// For mode max: each element of the gradient belongs to the row that held the maximum.
__global__ void __launch_bounds__(threads)
    max_pairs_kernel(uint64_t* keys, int64_t* to, int64_t* from, const int64_t* positions, const int64_t* sizes,
                     int64_t first, int64_t columns, int64_t rows, uint32_t count, FaultSink sink) {
  const uint32_t i = blockIdx.x * threads + threadIdx.x;
  if (i >= count) return;
  const int64_t at = first + i, bag = at / columns, column = at - bag * columns;
  int64_t key = rows * columns, offset = 0;
  if (sizes[bag] != 0) {
    const int64_t row = sink.checked(positions[at], 0, rows, false, FaultKind::RuntimeIndex);
    offset = row * columns + column;
    if (row == positions[at]) key = offset;
  }
  keys[i] = static_cast<uint64_t>(key);
  to[i] = offset;
  from[i] = at;
}

void backward_of_max(const Call& call, const arguments::EmbeddingBagBackward& args, const FaultSink& sink) {
  const cb_tensor &grad = *args.grad, &out = call.output();
  const int64_t columns = grad.sizes[1], rows = args.num_weights;
  Geometry<2> element{};
  element.numel = element.sizes[0] = element.strides[0][0] = element.strides[1][0] = 1;
  for (int64_t first = 0; first < grad.numel; first += most_pairs) {
    const int64_t count = std::min(most_pairs, grad.numel - first);
    const DeterministicScatterAdd scatter_add(call, count, rows * columns);
    launch(call, max_pairs_kernel, blocks_of(count), threads, 0, scatter_add.keys(), scatter_add.to(),
           scatter_add.from(), data<int64_t>(*args.max_indices), data<int64_t>(*args.bag_size), first, columns, rows,
           static_cast<uint32_t>(count), sink);
    scatter_add.run(out, grad.data, element, no_factor());
  }
}

template <typename T>
void backward(Call& call) {
  using C = compute_t<T>;
  const arguments::EmbeddingBagBackward args(call);
  const cb_tensor &grad = *args.grad, &out = call.output();
  const Mode mode = mode_named(args.mode);
  const int64_t count = args.indices->numel, rows = args.num_weights, columns = grad.sizes[1];
  clear(call, out);
  const FaultSink sink = fault_sink(call);
  if (mode == Mode::Max) {
    refuse_rows(rows, grad.numel);
    return backward_of_max(call, args, sink);
  }
  refuse_rows(rows, count);
  if (count == 0) return;
  if (count > most_pairs)
    throw failure(CB_RUNTIME_ERROR, "%lld indices are more than one call can take on CUDA (2147483647): embed in parts",
                  static_cast<long long>(count));
  const cb_tensor* weights = args.per_sample_weights;
  const bool by_frequency = args.scale_grad_by_freq;
  const size_t frequency_bytes = by_frequency ? static_cast<size_t>(rows) * sizeof(uint32_t) : 0;
  const Workspace frequencies(call, frequency_bytes), factors(call, static_cast<size_t>(count) * sizeof(C));
  const int64_t* indices = data<int64_t>(*args.indices);
  if (by_frequency) {
    fill_bytes(call, frequencies.data(), 0, frequency_bytes);
    launch(call, frequency_kernel, blocks_of(count), threads, 0, frequencies.as<uint32_t>(), indices,
           static_cast<uint32_t>(count), rows);
  }
  const DeterministicScatterAdd scatter_add(call, count, rows);
  const PairArguments<T> a{scatter_add.keys(),
                           scatter_add.to(),
                           scatter_add.from(),
                           factors.as<C>(),
                           indices,
                           data<int64_t>(*args.offset2bag),
                           data<int64_t>(*args.bag_size),
                           weights ? data<C>(*weights) : nullptr,
                           by_frequency ? frequencies.as<uint32_t>() : nullptr,
                           rows,
                           grad.sizes[0],
                           columns,
                           args.padding_idx,
                           static_cast<uint32_t>(count),
                           mode == Mode::Mean,
                           sink};
  launch(call, pairs_kernel<T>, blocks_of(count), threads, 0, a);
  Geometry<2> slice{};
  slice.numel = slice.sizes[0] = columns;
  slice.strides[0][0] = slice.strides[1][0] = 1;
  scatter_add.run(out, grad.data, slice, no_factor(), factors.data());
}

void embedding_bag(Call& call) {
  dispatch<FloatTypes>(arguments::EmbeddingBag(call).weight->dtype, [&]<typename T>() { forward<T>(call); });
}
void embedding_bag_backward(Call& call) {
  dispatch<FloatTypes>(arguments::EmbeddingBagBackward(call).grad->dtype, [&]<typename T>() { backward<T>(call); });
}

}  // namespace

void register_embedding_bag(KernelTable& table) {
  table.add<embedding_bag>("_embedding_bag");
  table.add<embedding_bag_backward>("_embedding_bag_backward");
}

}  // namespace candelabra::cuda
