// The gradients of recurrent layers over whole sequences: lstm_sequence_backward, and
// recurrent_sequence_backward of all cells.
#include "candelabra/arguments/recurrent.hpp"
#include "kernels.hpp"
#include "kernels/recurrent/backward.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using recurrent::Backward;
using recurrent::Sequence;

template <typename T>
const T* data_or_null(const cb_tensor* tensor) {
  return tensor ? data<T>(*tensor) : nullptr;
}

// Args: LstmSequenceBackward or RecurrentSequenceBackward.
template <typename T, typename Args>
Backward<T> task_of(const Call& call, const Args& args) {
  return {data_or_null<T>(args.grad_output),
          data_or_null<T>(args.grad_cells),
          data_or_null<T>(args.grad_activations),
          data<T>(*args.h0),
          data_or_null<T>(args.c0),
          data<T>(*args.weight),
          data<T>(*args.output),
          data<T>(*args.cells),
          data<T>(*args.activations),
          mutable_data<T>(call.output(0)),
          mutable_data<T>(call.output(1)),
          mutable_data<T>(call.output(2)),
          mutable_data<T>(call.output(3)),
          nullptr};
}

void lstm_sequence_backward(Call& call) {
  const arguments::LstmSequenceBackward args(call);
  const cb_tensor& out = *args.output;
  const Sequence sequence(out.sizes[0], out.sizes[1], out.sizes[2], {}, args.reverse);
  dispatch<FloatTypes>(
      out.dtype, [&]<typename T>() { recurrent::run_backward(recurrent::Lstm{}, sequence, task_of<T>(call, args)); });
}

void recurrent_sequence_backward(Call& call) {
  const arguments::RecurrentSequenceBackward args(call);
  const cb_tensor &out = *args.output, &h0 = *args.h0;
  const bool packed = out.ndim == 2;
  const Sequence sequence(packed ? static_cast<int64_t>(args.batch_sizes.size()) : out.sizes[0], h0.sizes[0],
                          h0.sizes[1], packed ? args.batch_sizes : std::span<const int64_t>{}, args.reverse);
  const std::string_view name = args.cell;
  dispatch<FloatTypes>(out.dtype, [&]<typename T>() {
    Backward<T> task = task_of<T>(call, args);
    if (name == "gru") std::swap(task.grad_c0, task.grad_bias);  // grad_third of a GRU
    if (name == "lstm")
      recurrent::run_backward(recurrent::Lstm{}, sequence, task);
    else if (name == "gru")
      recurrent::run_backward(recurrent::Gru{}, sequence, task);
    else
      recurrent::run_backward(recurrent::Elman{name == "rnn_relu"}, sequence, task);
  });
}

}  // namespace

void register_recurrent_backward(KernelTable& table) {
  table.add<lstm_sequence_backward>("lstm_sequence_backward");
  table.add<recurrent_sequence_backward>("recurrent_sequence_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
