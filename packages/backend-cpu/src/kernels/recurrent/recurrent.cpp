// Recurrent layers over whole sequences: lstm_sequence; recurrent_sequence and recurrent_layer, of
// all cells; and the variants of these two that save nothing for a backward pass.
#include "candelabra/arguments/recurrent.hpp"
#include "kernels.hpp"
#include "kernels/recurrent/forward.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using recurrent::Forward;
using recurrent::Sequence;

template <typename T>
const T* data_or_null(const cb_tensor* tensor) {
  return tensor ? data<T>(*tensor) : nullptr;
}

void lstm_sequence(Call& call) {
  const arguments::LstmSequence args(call);
  const cb_tensor& out = call.output(0);
  const Sequence sequence(out.sizes[0], out.sizes[1], out.sizes[2], {}, args.reverse);
  dispatch<FloatTypes>(args.gates->dtype, [&]<typename T>() {
    recurrent::run_forward(recurrent::Lstm{}, sequence,
                           Forward<T>{nullptr, nullptr, nullptr, 0, data<T>(*args.gates), data<T>(*args.h0),
                                      data<T>(*args.c0), data<T>(*args.weight), nullptr, mutable_data<T>(out),
                                      mutable_data<T>(call.output(1)), mutable_data<T>(call.output(2)), nullptr});
  });
}

// The tensors over time: the input with its weight and bias, or the gates. The other is null.
struct Inputs {
  const cb_tensor *input, *input_weight, *input_bias, *gates;

  explicit Inputs(const arguments::RecurrentSequence& args)
      : input(nullptr), input_weight(nullptr), input_bias(nullptr), gates(args.gates) {}
  explicit Inputs(const arguments::RecurrentLayer& args)
      : input(args.input), input_weight(args.input_weight), input_bias(args.input_bias), gates(nullptr) {}
};

// Args: RecurrentSequence, also for recurrent_states, or RecurrentLayer, also for
// recurrent_layer_states: the same arguments. `saves`: the outputs are those that the gradient
// needs; otherwise the second output is the last cell state.
template <typename Args>
void run(const Call& call, bool saves) {
  const Args args(call);
  const Inputs inputs(args);
  const cb_tensor &over_time = inputs.gates ? *inputs.gates : *inputs.input, &h0 = *args.h0;
  const bool packed = over_time.ndim == 2;
  const Sequence sequence(packed ? static_cast<int64_t>(args.batch_sizes.size()) : over_time.sizes[0], h0.sizes[0],
                          h0.sizes[1], packed ? args.batch_sizes : std::span<const int64_t>{}, args.reverse);
  const std::string_view name = args.cell;
  dispatch<FloatTypes>(over_time.dtype, [&]<typename T>() {
    const auto cell_output = [&](int i) {
      return call.output(i).numel > 0 ? mutable_data<T>(call.output(i)) : nullptr;
    };
    const Forward<T> task{data_or_null<T>(inputs.input),      data_or_null<T>(inputs.input_weight),
                          data_or_null<T>(inputs.input_bias), inputs.gates ? 0 : over_time.sizes[over_time.ndim - 1],
                          data_or_null<T>(inputs.gates),      data<T>(h0),
                          data_or_null<T>(args.c0),           data<T>(*args.weight),
                          data_or_null<T>(args.bias),         mutable_data<T>(call.output(0)),
                          saves ? cell_output(1) : nullptr,   saves ? cell_output(2) : nullptr,
                          saves ? nullptr : cell_output(1)};
    if (name == "lstm")
      recurrent::run_forward(recurrent::Lstm{}, sequence, task);
    else if (name == "gru")
      recurrent::run_forward(recurrent::Gru{}, sequence, task);
    else
      recurrent::run_forward(recurrent::Elman{name == "rnn_relu"}, sequence, task);
  });
}

void recurrent_sequence(Call& call) {
  run<arguments::RecurrentSequence>(call, true);
}
void recurrent_states(Call& call) {
  run<arguments::RecurrentSequence>(call, false);
}
void recurrent_layer(Call& call) {
  run<arguments::RecurrentLayer>(call, true);
}
void recurrent_layer_states(Call& call) {
  run<arguments::RecurrentLayer>(call, false);
}

}  // namespace

void register_recurrent(KernelTable& table) {
  table.add<lstm_sequence>("lstm_sequence");
  table.add<recurrent_sequence>("recurrent_sequence");
  table.add<recurrent_states>("recurrent_states");
  table.add<recurrent_layer>("recurrent_layer");
  table.add<recurrent_layer_states>("recurrent_layer_states");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
