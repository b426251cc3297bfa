#include "vendor/cudnn/cudnn_recurrent.hpp"
#include "candelabra/arguments/recurrent.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "dtypes.hpp"
#include "runtime/device.hpp"
#include "runtime/launch.hpp"
#include "runtime/settings.hpp"
#include "vendor/cudnn/cudnn_convolution.hpp"

namespace candelabra::cuda {
namespace {

using cudnn::check;
using cudnn::is_unsupported;

struct Functions {
  const Library& library = cudnn::library();
  Function<decltype(cudnnCreateTensorDescriptor)> create_tensor{library, "cudnnCreateTensorDescriptor"};
  Function<decltype(cudnnDestroyTensorDescriptor)> destroy_tensor{library, "cudnnDestroyTensorDescriptor"};
  Function<decltype(cudnnSetTensorNdDescriptor)> set_tensor{library, "cudnnSetTensorNdDescriptor"};
  Function<decltype(cudnnGetTensorNdDescriptor)> get_tensor{library, "cudnnGetTensorNdDescriptor"};
  Function<decltype(cudnnCreateDropoutDescriptor)> create_dropout{library, "cudnnCreateDropoutDescriptor"};
  Function<decltype(cudnnDestroyDropoutDescriptor)> destroy_dropout{library, "cudnnDestroyDropoutDescriptor"};
  Function<decltype(cudnnSetDropoutDescriptor)> set_dropout{library, "cudnnSetDropoutDescriptor"};
  Function<decltype(cudnnCreateRNNDescriptor)> create{library, "cudnnCreateRNNDescriptor"};
  Function<decltype(cudnnDestroyRNNDescriptor)> destroy{library, "cudnnDestroyRNNDescriptor"};
  Function<decltype(cudnnSetRNNDescriptor_v8)> set{library, "cudnnSetRNNDescriptor_v8"};
  Function<decltype(cudnnCreateRNNDataDescriptor)> create_data{library, "cudnnCreateRNNDataDescriptor"};
  Function<decltype(cudnnDestroyRNNDataDescriptor)> destroy_data{library, "cudnnDestroyRNNDataDescriptor"};
  Function<decltype(cudnnSetRNNDataDescriptor)> set_data{library, "cudnnSetRNNDataDescriptor"};
  Function<decltype(cudnnGetRNNWeightSpaceSize)> weight_space{library, "cudnnGetRNNWeightSpaceSize"};
  Function<decltype(cudnnGetRNNWeightParams)> weight_address{library, "cudnnGetRNNWeightParams"};
  Function<decltype(cudnnGetRNNTempSpaceSizes)> spaces{library, "cudnnGetRNNTempSpaceSizes"};
  Function<decltype(cudnnRNNForward)> forward{library, "cudnnRNNForward"};
  Function<decltype(cudnnRNNBackwardData_v8)> backward_data{library, "cudnnRNNBackwardData_v8"};
  Function<decltype(cudnnRNNBackwardWeights_v8)> backward_weights{library, "cudnnRNNBackwardWeights_v8"};
};
const Functions& functions() {
  static const Functions table;
  return table;
}

template <typename Raw>
OwnedDescriptor<Raw> created(const Function<cudnnStatus_t(Raw*)>& function, const char* name) {
  Raw raw = nullptr;
  check(function(&raw), name);
  return OwnedDescriptor<Raw>(raw);
}
using TensorDescriptor = OwnedDescriptor<cudnnTensorDescriptor_t>;
TensorDescriptor make_tensor() {
  return created(functions().create_tensor, "cudnnCreateTensorDescriptor");
}

// The number of elements of one weight matrix or bias.
int64_t count_of(const TensorDescriptor& descriptor) {
  std::array<int, CUDNN_DIM_MAX> sizes{}, strides{};
  cudnnDataType_t type{};
  int dims = 0;
  check(functions().get_tensor(descriptor.get(), CUDNN_DIM_MAX, &type, &dims, sizes.data(), strides.data()),
        "cudnnGetTensorNdDescriptor");
  return std::accumulate(sizes.begin(), sizes.begin() + dims, int64_t{1}, std::multiplies<>());
}

// A run of bytes that is contiguous both in cuDNN's weight space and in the operator's weight
// tensor. `space` and `tensor` are its offsets there.
struct Piece {
  int64_t space, tensor, bytes;
};

// Cached for a stack of layers: where cuDNN expects its weights.
struct Layout {
  RecurrentDescriptor descriptor;
  size_t bytes = 0;
  std::vector<Piece> pieces;

  // Whether the weight tensor can serve as cuDNN's weight space: same layout and alignment.
  bool is_space(const void* tensor) const {
    constexpr uintptr_t alignment = 256;
    return pieces.size() == 1 && pieces[0].space == 0 && static_cast<size_t>(pieces[0].bytes) == bytes &&
           reinterpret_cast<uintptr_t>(tensor) % alignment == 0;
  }
};

int64_t gates_of(cudnnRNNMode_t cell) {
  return cell == CUDNN_LSTM ? 4 : cell == CUDNN_GRU ? 3 : 1;
}

// cuDNN and the operators order gates alike: input, forget, cell, output; reset, update, new.
std::vector<Piece> find_pieces(cudnnHandle_t handle, const RecurrentStack& stack, const Layout& layout, void* tensor) {
  const int64_t gates = gates_of(stack.cell), directions = stack.directions(), element = itemsize(stack.dtype);
  std::vector<Piece> pieces;
  int64_t tensor_offset = 0;
  const TensorDescriptor matrix = make_tensor(), bias = make_tensor();
  // cuDNN computes addresses from it but reads nothing.
  const auto base = reinterpret_cast<uintptr_t>(tensor);
  for (const bool biases : {false, true}) {
    if (biases && !stack.has_biases) break;
    for (int64_t layer = 0; layer < stack.layers * directions; ++layer)
      for (int64_t linear = 0; linear < 2 * gates; ++linear) {
        void *matrix_at = nullptr, *bias_at = nullptr;
        check(functions().weight_address(handle, layout.descriptor.layers.get(), static_cast<int32_t>(layer),
                                         layout.bytes, tensor, static_cast<int32_t>(linear), matrix.get(), &matrix_at,
                                         bias.get(), &bias_at),
              "cudnnGetRNNWeightParams");
        const int64_t row = linear >= gates      ? stack.hidden
                            : layer < directions ? stack.input
                                                 : directions * stack.hidden;
        const int64_t count = biases ? stack.hidden : stack.hidden * row;
        const auto at = reinterpret_cast<uintptr_t>(biases ? bias_at : matrix_at);
        const auto space = static_cast<int64_t>(at - base);
        if (at < base || count_of(biases ? bias : matrix) != count ||
            static_cast<size_t>(space + count * element) > layout.bytes)
          throw failure(CB_RUNTIME_ERROR,
                        "cuDNN: cudnnGetRNNWeightParams: the %s %lld of layer %lld is not where it can be",
                        biases ? "bias" : "matrix", static_cast<long long>(linear), static_cast<long long>(layer));
        if (!pieces.empty() && pieces.back().space + pieces.back().bytes == space)
          pieces.back().bytes += count * element;
        else
          pieces.push_back({space, tensor_offset, count * element});
        tensor_offset += count * element;
      }
  }
  return pieces;
}

// The cache is thread-local, as cuDNN's handle is.
const Layout& layout_of(const Call& call, cudnnHandle_t handle, const RecurrentStack& stack, void* weights) {
  constexpr size_t cache_limit = 1024;
  thread_local std::map<std::pair<int, RecurrentStack>, Layout> kept;
  const std::pair key(call.device(), stack);
  const auto found = kept.find(key);
  if (found != kept.end()) return found->second;
  Layout layout{describe_layers(handle, stack), 0, {}};
  if (layout.descriptor.layers) {
    check(functions().weight_space(handle, layout.descriptor.layers.get(), &layout.bytes),
          "cudnnGetRNNWeightSpaceSize");
    layout.pieces = find_pieces(handle, stack, layout, weights);
  }
  if (kept.size() >= cache_limit) kept.clear();
  return kept.emplace(key, std::move(layout)).first->second;
}

// The weights in cuDNN's layout: the tensor itself if its layout agrees, else a workspace.
class WeightSpace {
 public:
  WeightSpace(const Call& call, const Layout& layout, void* tensor)
      : layout_(layout), tensor_(static_cast<std::byte*>(tensor)) {
    if (!layout.is_space(tensor)) own_ = Workspace(call, layout.bytes);
  }
  void* data() const { return own_.data() ? own_.data() : tensor_; }
  // Copies the tensor to the weight space; write() copies back.
  void read(const Call& call) const {
    for_each_piece([&](std::byte* space, std::byte* tensor, size_t bytes) { copy_bytes(call, space, tensor, bytes); });
  }
  void write(const Call& call) const {
    for_each_piece([&](std::byte* space, std::byte* tensor, size_t bytes) { copy_bytes(call, tensor, space, bytes); });
  }

 private:
  template <typename F>
  void for_each_piece(F&& f) const {
    if (!own_.data()) return;
    for (const Piece& piece : layout_.pieces)
      f(own_.as<std::byte>() + piece.space, tensor_ + piece.tensor, static_cast<size_t>(piece.bytes));
  }

  const Layout& layout_;
  std::byte* tensor_;
  Workspace own_;
};

// The arguments that the forward and the backward operators share.
struct StackArguments {
  const cb_tensor &input, &weights, &h0;
  const cb_tensor* c0;
  std::span<const int64_t> batch_sizes;
  int64_t layers;
  bool bidirectional, has_biases;
  std::string_view cell;
};
template <typename Arguments>
StackArguments shared_arguments(const Arguments& args) {
  return {*args.input, *args.weights,      *args.h0,        args.c0,  args.batch_sizes,
          args.layers, args.bidirectional, args.has_biases, args.cell};
}

cudnnRNNMode_t cell_named(std::string_view name) {
  return name == "lstm" ? CUDNN_LSTM : name == "gru" ? CUDNN_GRU : name == "rnn_tanh" ? CUDNN_RNN_TANH : CUDNN_RNN_RELU;
}

RecurrentStack stack_of(const StackArguments& args) {
  const cb_tensor& input = args.input;
  return {input.dtype,
          cell_named(args.cell),
          args.has_biases,
          args.bidirectional,
          input.dtype == CB_FLOAT32 && !settings().cudnn_tf32,
          input.sizes[input.ndim - 1],
          args.h0.sizes[2],
          args.layers};
}

// The length of each sequence. cuDNN expects packed sequences sorted by length in descending order,
// as these are.
std::vector<int> lengths_of(const StackArguments& args) {
  const auto batch = static_cast<size_t>(args.h0.sizes[1]);
  if (args.batch_sizes.empty()) return std::vector<int>(batch, static_cast<int>(args.input.sizes[0]));
  std::vector<int> lengths(batch, 0);
  for (const int64_t size : args.batch_sizes)
    for (int64_t i = 0; i < size; ++i) ++lengths[static_cast<size_t>(i)];
  return lengths;
}

// cuDNN's RNNs run cuBLAS on several streams and may choose algorithms by the free memory: NVIDIA
// does not guarantee deterministic results. cuDNN copies lengths from host memory; a captured graph
// would repeat that copy after the memory is freed.
bool may_use_cudnn(const Call& call, const StackArguments& args) {
  constexpr int64_t most = std::numeric_limits<int>::max();
  const cb_tensor &input = args.input, &h0 = args.h0;
  if (!uses_cudnn() || settings().is_deterministic() || is_capturing(call.stream())) return false;
  if (input.numel == 0 || h0.numel == 0) return false;
  return std::max({input.numel, h0.numel, args.weights.numel, call.output(0).numel}) <= most;
}

// The descriptors and sizes of one call of cuDNN.
struct Descriptors {
  cudnnHandle_t handle;
  const Layout& layout;
  OwnedDescriptor<cudnnRNNDataDescriptor_t> input, output;
  TensorDescriptor states;
  size_t workspace = 0, reserve = 0;  // bytes

  cudnnRNNDescriptor_t layers() const { return layout.descriptor.layers.get(); }
};

// Returns nullopt if cuDNN may not be used or does not support the layers.
std::optional<Descriptors> describe_call(const Call& call, const StackArguments& args, cudnnForwardMode_t mode) {
  if (!may_use_cudnn(call, args)) return std::nullopt;
  const RecurrentStack stack = stack_of(args);
  const cudnnHandle_t handle = cudnn::target_of(call).handle;
  const Layout& layout = layout_of(call, handle, stack, args.weights.data);
  if (!layout.descriptor.layers) return std::nullopt;
  const std::vector<int> lengths = lengths_of(args);
  Descriptors made{handle, layout, describe_rows(stack.dtype, lengths, stack.input),
                   describe_rows(stack.dtype, lengths, stack.directions() * stack.hidden), make_tensor()};
  const cb_tensor& h0 = args.h0;
  const std::array sizes{static_cast<int>(h0.sizes[0]), static_cast<int>(h0.sizes[1]), static_cast<int>(h0.sizes[2])};
  const std::array strides{sizes[1] * sizes[2], sizes[2], 1};
  check(functions().set_tensor(made.states.get(), cudnn::data_type(stack.dtype), 3, sizes.data(), strides.data()),
        "cudnnSetTensorNdDescriptor");
  check(functions().spaces(handle, made.layers(), mode, made.input.get(), &made.workspace, &made.reserve),
        "cudnnGetRNNTempSpaceSizes");
  return made;
}

const void* optional_data(const cb_tensor* tensor) {
  return tensor ? tensor->data : nullptr;
}

}  // namespace

void DestroyDescriptor::operator()(cudnnRNNDescriptor_t raw) const {
  functions().destroy(raw);
}
void DestroyDescriptor::operator()(cudnnRNNDataDescriptor_t raw) const {
  functions().destroy_data(raw);
}
void DestroyDescriptor::operator()(cudnnTensorDescriptor_t raw) const {
  functions().destroy_tensor(raw);
}
void DestroyDescriptor::operator()(cudnnDropoutDescriptor_t raw) const {
  functions().destroy_dropout(raw);
}

RecurrentDescriptor describe_layers(cudnnHandle_t handle, const RecurrentStack& s) {
  RecurrentDescriptor made;
  if (handle) {
    made.dropout = created(functions().create_dropout, "cudnnCreateDropoutDescriptor");
    check(functions().set_dropout(made.dropout.get(), handle, 0.0f, nullptr, 0, 0), "cudnnSetDropoutDescriptor");
  }
  made.layers = created(functions().create, "cudnnCreateRNNDescriptor");
  // CUDNN_DEFAULT_MATH computes float32 in TF32 on tensor cores. A projection size equal to the
  // hidden size means no projection.
  const cudnnStatus_t status = functions().set(
      made.layers.get(), CUDNN_RNN_ALGO_STANDARD, s.cell, s.has_biases ? CUDNN_RNN_DOUBLE_BIAS : CUDNN_RNN_NO_BIAS,
      s.bidirectional ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, cudnn::data_type(s.dtype),
      s.dtype == CB_FLOAT64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT,
      is_half_dtype(s.dtype) ? CUDNN_TENSOR_OP_MATH
      : s.full_float32       ? CUDNN_FMA_MATH
                             : CUDNN_DEFAULT_MATH,
      static_cast<int32_t>(s.input), static_cast<int32_t>(s.hidden), static_cast<int32_t>(s.hidden),
      static_cast<int32_t>(s.layers), made.dropout.get(), CUDNN_RNN_PADDED_IO_DISABLED);
  if (is_unsupported(status))
    made.layers.reset();
  else
    check(status, "cudnnSetRNNDescriptor_v8");
  return made;
}

OwnedDescriptor<cudnnRNNDataDescriptor_t> describe_rows(int32_t dtype, const std::vector<int>& lengths, int64_t width) {
  auto made = created(functions().create_data, "cudnnCreateRNNDataDescriptor");
  check(
      functions().set_data(made.get(), cudnn::data_type(dtype), CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, lengths.front(),
                           static_cast<int>(lengths.size()), static_cast<int>(width), lengths.data(), nullptr),
      "cudnnSetRNNDataDescriptor");
  return made;
}

bool cudnn_recurrent_forward(const Call& call, bool training) {
  // recurrent_stack and recurrent_stack_kept have the same arguments.
  const arguments::RecurrentStack args(call);
  const cudnnForwardMode_t mode = training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
  const std::optional<Descriptors> made = describe_call(call, shared_arguments(args), mode);
  if (!made) return false;
  const WeightSpace weights(call, made->layout, args.weights->data);
  weights.read(call);
  const Workspace workspace(call, made->workspace);
  void* reserve = nullptr;
  if (training) {
    const auto bytes = static_cast<int64_t>(made->reserve);
    reserve = call.allocate_output(3, std::span(&bytes, 1)).data;
  }
  const cudnnStatus_t status = functions().forward(
      made->handle, made->layers(), mode, nullptr, made->input.get(), args.input->data, made->output.get(),
      call.output(0).data, made->states.get(), args.h0->data, call.output(1).data, made->states.get(),
      optional_data(args.c0), args.c0 ? call.output(2).data : nullptr, made->layout.bytes, weights.data(),
      made->workspace, workspace.data(), training ? made->reserve : 0, reserve);
  if (is_unsupported(status)) return false;
  check(status, "cudnnRNNForward");
  return true;
}

bool cudnn_recurrent_backward(const Call& call) {
  const arguments::RecurrentStackBackward args(call);
  const cb_tensor &output = *args.output, &reserve = *args.reserve, &grad_weights = call.output(1);
  if (reserve.numel == 0) return false;  // cuDNN did not run the forward pass
  const std::optional<Descriptors> made = describe_call(call, shared_arguments(args), CUDNN_FWD_MODE_TRAINING);
  if (!made || static_cast<int64_t>(made->reserve) != reserve.numel) return false;
  const WeightSpace weights(call, made->layout, args.weights->data);
  weights.read(call);
  const Workspace workspace(call, made->workspace);
  // cuDNN overwrites the reserve, but the graph may be run backward again.
  const Workspace reserve_copy(call, made->reserve);
  copy_bytes(call, reserve_copy.data(), reserve.data, made->reserve);
  Workspace zeros;
  if (!args.grad_output) {
    zeros = Workspace(call, static_cast<size_t>(output.numel * itemsize(output.dtype)));
    fill_bytes(call, zeros.data(), 0, zeros.bytes());
  }
  const void* grad_output = args.grad_output ? args.grad_output->data : zeros.data();
  const bool has_cells = args.c0 != nullptr;
  const cudnnStatus_t status = functions().backward_data(
      made->handle, made->layers(), nullptr, made->output.get(), output.data, grad_output, made->input.get(),
      call.output(0).data, made->states.get(), args.h0->data, optional_data(args.grad_h), call.output(2).data,
      made->states.get(), optional_data(args.c0), has_cells ? optional_data(args.grad_c) : nullptr,
      has_cells ? call.output(3).data : nullptr, made->layout.bytes, weights.data(), made->workspace, workspace.data(),
      made->reserve, reserve_copy.data());
  if (is_unsupported(status)) return false;
  check(status, "cudnnRNNBackwardData_v8");
  // cuDNN can only accumulate into the gradients.
  const WeightSpace gradients(call, made->layout, grad_weights.data);
  fill_bytes(call, gradients.data(), 0, made->layout.bytes);
  check(functions().backward_weights(made->handle, made->layers(), CUDNN_WGRAD_MODE_ADD, nullptr, made->input.get(),
                                     args.input->data, made->states.get(), args.h0->data, made->output.get(),
                                     output.data, made->layout.bytes, gradients.data(), made->workspace,
                                     workspace.data(), made->reserve, reserve_copy.data()),
        "cudnnRNNBackwardWeights_v8");
  gradients.write(call);
  return true;
}

}  // namespace candelabra::cuda
