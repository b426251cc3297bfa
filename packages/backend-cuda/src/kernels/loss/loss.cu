// nll_loss_forward, nll_loss_backward.
#include <algorithm>
#include <array>

#include "candelabra/arguments/loss.hpp"
#include "drivers/slices.hpp"
#include "kernels/loss/weighted_mean.cuh"

namespace candelabra::cuda {
namespace {

using namespace weighted_mean;

constexpr int64_t per_block = threads * 8;  // positions that justify one more block
constexpr int64_t most_blocks = 1024;

template <typename T>
struct Weights {
  const memory_t<T>* values;
  int64_t stride;
  explicit Weights(const cb_tensor* weight)
      : values(weight ? data<memory_t<T>>(*weight) : nullptr), stride(weight ? weight->strides[0] : 0) {}
  __device__ double operator()(int64_t target) const {
    return values ? static_cast<double>(loaded<T>(values[target * stride])) : 1.0;
  }
};

// Checks the target of a position. The result is -1 for ignore_index and for invalid classes, which
// are reported.
struct Classes {
  int64_t count, ignored;
  FaultSink sink;

  __device__ int64_t checked(int64_t number) const {
    if (number == ignored) return -1;
    if (number >= 0 && number < count) return number;
    sink.report(FaultKind::TargetRange, number, 1, count);
    return -1;
  }
};

template <typename T>
struct ForwardArguments {
  memory_t<T>* out;  // one element for each position; null with a reduction
  const int64_t* target;
  const memory_t<T>* self;
  int64_t class_stride;
  Weights<T> weight;
  Classes classes;
  Indexer<3> positions;  // target, self, out
  Pair<double>* partial;
};

// Sums losses and weights: one pair for each block.
template <typename T>
__global__ void __launch_bounds__(threads) forward_kernel(const __grid_constant__ ForwardArguments<T> a) {
  Pair<double> sums{0, 0};
  for (int64_t i = first_index(); i < a.positions.count; i += index_step()) {
    uint32_t at[3];
    a.positions.at_rolled(static_cast<uint32_t>(i), at);
    const int64_t number = a.classes.checked(a.target[at[0]]);
    double here = 0;
    if (number >= 0) {
      const double w = a.weight(number);
      here = -w * static_cast<double>(loaded<T>(a.self[at[1] + number * a.class_stride]));
      sums.first += here;
      sums.second += w;
    }
    if (a.out) a.out[at[2]] = stored<T>(static_cast<compute_t<T>>(here));
  }
  sums = block_sum(sums);
  if (threadIdx.x == 0) a.partial[blockIdx.x] = sums;
}

int64_t blocks_for(int64_t positions) {
  return std::clamp<int64_t>(divide_up(positions, per_block), 1, most_blocks);
}

template <typename T>
void forward(Call& call) {
  using Element = memory_t<T>;
  const arguments::NllLossForward args(call);
  const cb_tensor &self = *args.self, &target = *args.target;
  cb_tensor &out = call.output(0), &total = call.output(1);
  const int64_t reduction = args.reduction;
  const bool each = reduction == None;
  const FirstOfLines first(self, 1);
  const auto g = geometry<3>({&target, &first.tensor(), each ? &out : &target});
  int64_t blocks = 0;
  for_each_piece(g,
                 [&](const Geometry<3>& piece, const std::array<int64_t, 3>&) { blocks += blocks_for(piece.numel); });
  const Workspace partial(call, static_cast<size_t>(std::max<int64_t>(blocks, 1)) * sizeof(Pair<double>));
  int64_t before = 0;
  for_each_piece(g, [&](const Geometry<3>& piece, const std::array<int64_t, 3>& offsets) {
    const ForwardArguments<T> a{each ? data<Element>(out) + offsets[2] : nullptr,
                                data<int64_t>(target) + offsets[0],
                                data<Element>(self) + offsets[1],
                                first.stride(),
                                Weights<T>(args.weight),
                                {first.length(), args.ignore_index, fault_sink(call)},
                                Indexer<3>(piece),
                                partial.as<Pair<double>>() + before};
    const int64_t count = blocks_for(piece.numel);
    launch(call, forward_kernel<T>, static_cast<unsigned>(count), threads, 0, a);
    before += count;
  });
  launch(call, total_kernel<T>, 1, threads, 0, static_cast<const Pair<double>*>(partial.as<Pair<double>>()), blocks,
         reduction == Mean, each ? nullptr : data<Element>(out), data<Element>(total));
}

template <typename T>
struct BackwardArguments {
  memory_t<T>* out;
  const int64_t* target;
  const memory_t<T>* grad;
  const memory_t<T>* total;  // null if the reduction is not mean
  int64_t class_stride;
  Weights<T> weight;
  Classes classes;
  Indexer<3> positions;  // out, target, grad
};

template <typename T>
__global__ void __launch_bounds__(threads) backward_kernel(const __grid_constant__ BackwardArguments<T> a) {
  const double scale = a.total ? 1 / static_cast<double>(loaded<T>(*a.total)) : 1.0;
  for (int64_t i = first_index(); i < a.positions.count; i += index_step()) {
    uint32_t at[3];
    a.positions.at_rolled(static_cast<uint32_t>(i), at);
    const int64_t number = a.classes.checked(a.target[at[1]]);
    if (number < 0) continue;
    const double here = -a.weight(number) * scale * static_cast<double>(loaded<T>(a.grad[at[2]]));
    a.out[at[0] + number * a.class_stride] = stored<T>(static_cast<compute_t<T>>(here));
  }
}

struct Zero {
  __device__ int operator()(int64_t) const { return 0; }
};

template <typename T>
void backward(Call& call) {
  using Element = memory_t<T>;
  const arguments::NllLossBackward args(call);
  const cb_tensor &grad = *args.grad, &target = *args.target, &total = *args.total_weight;
  cb_tensor& out = call.output();
  const int64_t reduction = args.reduction;
  if (out.numel == 0) return;
  if (is_contiguous(out))
    fill_bytes(call, out.data, 0, static_cast<size_t>(out.numel) * sizeof(Element));
  else
    generate<T>(call, out, Zero{});
  const FirstOfLines first(out, 1);
  const std::array<int64_t, max_dims> no_strides{};
  cb_tensor grads = first.tensor();  // with a reduction, one gradient broadcast to all positions
  grads.data = grad.data;
  grads.strides = reduction == None ? grad.strides : no_strides.data();
  for_each_piece(geometry<3>({&first.tensor(), &target, &grads}),
                 [&](const Geometry<3>& piece, const std::array<int64_t, 3>& offsets) {
                   const BackwardArguments<T> a{data<Element>(out) + offsets[0],
                                                data<int64_t>(target) + offsets[1],
                                                data<Element>(grad) + offsets[2],
                                                reduction == Mean ? data<Element>(total) : nullptr,
                                                first.stride(),
                                                Weights<T>(args.weight),
                                                {first.length(), args.ignore_index, fault_sink(call)},
                                                Indexer<3>(piece)};
                   launch(call, backward_kernel<T>, grid_for(call, piece.numel, threads), threads, 0, a);
                 });
}

void nll_loss_forward(Call& call) {
  dispatch<FloatTypes>(arguments::NllLossForward(call).self->dtype, [&]<typename T>() { forward<T>(call); });
}
void nll_loss_backward(Call& call) {
  dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() { backward<T>(call); });
}

}  // namespace

void register_loss(KernelTable& table) {
  table.add<nll_loss_forward>("nll_loss_forward");
  table.add<nll_loss_backward>("nll_loss_backward");
}

}  // namespace candelabra::cuda
