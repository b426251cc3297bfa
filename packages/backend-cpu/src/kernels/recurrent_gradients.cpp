// The gradients of recurrent layers over whole sequences: lstm_sequence_backward, and recurrent_sequence_backward of all cells.
#include "../kernels.hpp"
#include "../recurrent/backward.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using recurrent::Backward;
using recurrent::Sequence;

template <typename T>
const T* given(const Call& call, int i) {
  return call.given(i) ? data<T>(call.tensor(i)) : nullptr;
}

// grad_output, grad_cells, grad_activations, h0, c0, weight, output, cells, activations; then what is not alike.
template <typename T>
Backward<T> task_of(const Call& call) {
  return {given<T>(call, 0),
          given<T>(call, 1),
          given<T>(call, 2),
          data<T>(call.tensor(3)),
          given<T>(call, 4),
          data<T>(call.tensor(5)),
          data<T>(call.tensor(6)),
          data<T>(call.tensor(7)),
          data<T>(call.tensor(8)),
          mutable_data<T>(call.output(0)),
          mutable_data<T>(call.output(1)),
          mutable_data<T>(call.output(2)),
          mutable_data<T>(call.output(3)),
          nullptr};
}

void lstm_sequence_backward(Call& call) {
  const cb_tensor& out = call.tensor(6);
  const Sequence sequence(out.sizes[0], out.sizes[1], out.sizes[2], {}, call.boolean(9));
  dispatch<FloatTypes>(out.dtype, [&]<typename T>() { recurrent::run_backward(recurrent::Lstm{}, sequence, task_of<T>(call)); });
}

void recurrent_sequence_backward(Call& call) {
  const cb_tensor &out = call.tensor(6), &h0 = call.tensor(3);
  const std::span<const int64_t> sizes = call.ints(9);
  const bool packed = out.ndim == 2;
  const Sequence sequence(packed ? static_cast<int64_t>(sizes.size()) : out.sizes[0], h0.sizes[0], h0.sizes[1],
                          packed ? sizes : std::span<const int64_t>{}, call.boolean(10));
  const std::string_view name = call.string(11);
  dispatch<FloatTypes>(out.dtype, [&]<typename T>() {
    Backward<T> task = task_of<T>(call);
    if (name == "gru") std::swap(task.grad_c0, task.grad_bias);  // the third result is that of the one or the other
    if (name == "lstm")
      recurrent::run_backward(recurrent::Lstm{}, sequence, task);
    else if (name == "gru")
      recurrent::run_backward(recurrent::Gru{}, sequence, task);
    else
      recurrent::run_backward(recurrent::Elman{name == "rnn_relu"}, sequence, task);
  });
}

}  // namespace

void register_recurrent_gradients(KernelTable& table) {
  table.add<lstm_sequence_backward>("lstm_sequence_backward");
  table.add<recurrent_sequence_backward>("recurrent_sequence_backward");
}

}  // namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE
