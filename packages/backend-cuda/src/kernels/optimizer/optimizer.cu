// Optimizer steps over lists of parameters: the parameter, gradient and state of an element are
// read and written once. The formulas are in candelabra/formulas/optimizer.hpp.
//
// A launch passes the addresses of up to `most_parameters` parameters by value, so that it can be
// captured in a graph.
#include <algorithm>
#include <array>
#include <cmath>

#include "candelabra/arguments/optimizer.hpp"
#include "candelabra/formulas/optimizer.hpp"
#include "candelabra/positions.hpp"
#include "drivers/elementwise.cuh"

namespace candelabra::cuda {
namespace {

using namespace formulas;

constexpr int threads = 256;
constexpr uint32_t per_block = threads * 16;  // elements of one parameter for each block
constexpr int most_parameters = 48;

// Parameter, gradient, then the states of the step: N tensors.
template <int N>
using Operands = std::array<const cb_tensor*, N>;

// Parameters whose operands are dense with the same strides.
template <typename Step>
struct ListArguments {
  Step step;
  int count;
  void* data[most_parameters][Step::operands];
  int64_t sizes[most_parameters];
  uint32_t first_block[most_parameters];
};

// A step updates the values of one element. Operand 1, the gradient, is not written back.
template <typename Step, typename T>
__global__ void __launch_bounds__(threads) step_lists(const __grid_constant__ ListArguments<Step> a) {
  constexpr int operands = Step::operands, batch = 4;
  // Bisects for the last parameter that begins at this block or before
  int low = 0, high = a.count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (a.first_block[middle] <= blockIdx.x)
      low = middle;
    else
      high = middle - 1;
  }
  memory_t<T>* data[operands];
#pragma unroll
  for (int k = 0; k < operands; ++k) data[k] = static_cast<memory_t<T>*>(a.data[low][k]);
  const int64_t begin = static_cast<int64_t>(blockIdx.x - a.first_block[low]) * per_block;
  const int64_t end = begin + per_block < a.sizes[low] ? begin + per_block : a.sizes[low];
  for (int64_t i = begin + threadIdx.x; i < end; i += batch * threads) {
    compute_t<T> values[batch][operands];
#pragma unroll
    for (int j = 0; j < batch; ++j)
      if (i + j * threads < end)
#pragma unroll
        for (int k = 0; k < operands; ++k) values[j][k] = loaded<T>(data[k][i + j * threads]);
#pragma unroll
    for (int j = 0; j < batch; ++j) {
      if (i + j * threads >= end) break;
      a.step(values[j]);
#pragma unroll
      for (int k = 0; k < operands; ++k)
        if (k != 1) data[k][i + j * threads] = stored<T>(values[j][k]);
    }
  }
}

// One parameter with any strides.
template <typename Step>
struct StridedArguments {
  Step step;
  void* data[Step::operands];
  Indexer<Step::operands> elements;
};

template <typename Step, typename T>
__global__ void __launch_bounds__(threads) step_strided(const __grid_constant__ StridedArguments<Step> a) {
  constexpr int operands = Step::operands;
  for (int64_t i = first_index(); i < a.elements.count; i += index_step()) {
    uint32_t at[operands];
    a.elements.at_rolled(static_cast<uint32_t>(i), at);
    compute_t<T> values[operands];
#pragma unroll
    for (int k = 0; k < operands; ++k) values[k] = loaded<T>(static_cast<const memory_t<T>*>(a.data[k])[at[k]]);
    a.step(values);
#pragma unroll
    for (int k = 0; k < operands; ++k)
      if (k != 1) static_cast<memory_t<T>*>(a.data[k])[at[k]] = stored<T>(values[k]);
  }
}

// The operands of parameter i; `lists` are the positions of their lists in the schema.
template <int N>
Operands<N> operands_of(const Call& call, const std::array<int, N>& lists, size_t i) {
  Operands<N> operands;
  for (size_t k = 0; k < N; ++k) operands[k] = call.tensors(lists[k])[i];
  return operands;
}

// Steps the parameters of type T.
template <typename Rule, typename T, int N, typename Numbers>
void update_all(const Call& call, const std::array<int, N>& lists, const Numbers& numbers) {
  using Step = typename Rule::template Step<compute_t<T>>;
  static_assert(sizeof(ListArguments<Step>) <= 4000 && Step::operands == N);
  const Step step(numbers);
  const auto parameters = call.tensors(lists.front());
  ListArguments<Step> list{step, 0, {}, {}, {}};
  uint32_t blocks = 0;
  const auto send = [&] {
    launch(call, step_lists<Step, T>, blocks, threads, 0, list);
    list.count = 0;
    blocks = 0;
  };
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i]->dtype != dtype_v<T> || parameters[i]->numel == 0) continue;
    const Operands<N> operands = operands_of<N>(call, lists, i);
    const Geometry<N> g = geometry<N>(operands);
    if (!g.contiguous() || g.numel >= int64_t{1} << 40) {
      for_each_piece(g, [&](const Geometry<N>& piece, const std::array<int64_t, N>& offsets) {
        StridedArguments<Step> a{step, {}, Indexer<N>(piece)};
        for (size_t k = 0; k < N; ++k) a.data[k] = mutable_data<memory_t<T>>(*operands[k]) + offsets[k];
        launch(call, step_strided<Step, T>, grid_for(call, piece.numel, threads), threads, 0, a);
      });
      continue;
    }
    for (size_t k = 0; k < N; ++k) list.data[list.count][k] = operands[k]->data;
    list.sizes[list.count] = g.numel;
    list.first_block[list.count++] = blocks;
    blocks += static_cast<uint32_t>(divide_up(g.numel, per_block));
    if (list.count == most_parameters || blocks >= uint32_t{1} << 28) send();
  }
  if (list.count > 0) send();
}

// `numbers` are what the step is made from.
template <typename Rule, int N, typename Numbers>
void update(const Call& call, const std::array<int, N>& lists, const Numbers& numbers) {
  const auto parameters = call.tensors(lists.front());
  const auto any = [&](int32_t dtype) {
    return std::any_of(parameters.begin(), parameters.end(),
                       [&](const cb_tensor* each) { return each->dtype == dtype; });
  };
  for (const int32_t dtype : {CB_FLOAT16, CB_BFLOAT16, CB_FLOAT32, CB_FLOAT64})
    if (any(dtype)) dispatch<FloatTypes>(dtype, [&]<typename T>() { update_all<Rule, T, N>(call, lists, numbers); });
}

void fused_sgd(Call& call) {
  namespace at = positions::fused_sgd;
  const arguments::FusedSgd args(call);
  if (args.momentum_buffers.empty() || args.momentum == 0) return update<Sgd, 2>(call, {at::params, at::grads}, args);
  update<SgdWithMomentum, 3>(call, {at::params, at::grads, at::momentum_buffers}, args);
}

void fused_adam(Call& call) {
  namespace at = positions::fused_adam;
  const arguments::FusedAdam args(call);
  const AdamNumbers numbers(args);
  if (args.amsgrad)
    update<Adam<true>, 5>(call, {at::params, at::grads, at::exp_avgs, at::exp_avg_sqs, at::max_exp_avg_sqs}, numbers);
  else
    update<Adam<false>, 4>(call, {at::params, at::grads, at::exp_avgs, at::exp_avg_sqs}, numbers);
}

void fused_rmsprop(Call& call) {
  namespace at = positions::fused_rmsprop;
  const arguments::FusedRmsprop args(call);
  const bool has_momentum = args.momentum > 0;
  if (args.centered && has_momentum)
    update<Rmsprop<true, true>, 5>(call, {at::params, at::grads, at::square_avgs, at::grad_avgs, at::momentum_buffers},
                                   args);
  else if (args.centered)
    update<Rmsprop<true, false>, 4>(call, {at::params, at::grads, at::square_avgs, at::grad_avgs}, args);
  else if (has_momentum)
    update<Rmsprop<false, true>, 4>(call, {at::params, at::grads, at::square_avgs, at::momentum_buffers}, args);
  else
    update<Rmsprop<false, false>, 3>(call, {at::params, at::grads, at::square_avgs}, args);
}

void fused_adagrad(Call& call) {
  namespace at = positions::fused_adagrad;
  update<Adagrad, 3>(call, {at::params, at::grads, at::state_sums}, arguments::FusedAdagrad(call));
}

}  // namespace

void register_optimizer(KernelTable& table) {
  table.add<fused_sgd>("_fused_sgd_");
  table.add<fused_adam>("_fused_adam_");
  table.add<fused_rmsprop>("_fused_rmsprop_");
  table.add<fused_adagrad>("_fused_adagrad_");
}

}  // namespace candelabra::cuda
