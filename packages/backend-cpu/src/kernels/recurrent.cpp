// Recurrent layers over whole sequences: lstm_sequence, and recurrent_sequence, recurrent_layer and what keeps nothing, of all
// cells.
#include "../kernels.hpp"
#include "../recurrent/forward.hpp"

namespace candelabra::cpu::CANDELABRA_ISA_NAMESPACE {
namespace {

using recurrent::Forward;
using recurrent::Sequence;

template <typename T>
const T* given(const Call& call, int i) {
  return call.given(i) ? data<T>(call.tensor(i)) : nullptr;
}

void lstm_sequence(Call& call) {
  const cb_tensor& out = call.output(0);
  const Sequence sequence(out.sizes[0], out.sizes[1], out.sizes[2], {}, call.boolean(4));
  dispatch<FloatTypes>(call.tensor(0).dtype, [&]<typename T>() {
    recurrent::run_forward(recurrent::Lstm{}, sequence,
                           Forward<T>{nullptr, nullptr, nullptr, 0, data<T>(call.tensor(0)), data<T>(call.tensor(1)),
                                      data<T>(call.tensor(2)), data<T>(call.tensor(3)), nullptr, mutable_data<T>(out),
                                      mutable_data<T>(call.output(1)), mutable_data<T>(call.output(2)), nullptr});
  });
}

// The gates, or the input with its weight and bias; then h0, c0, weight, bias, batch_sizes, reverse, cell. `all`: what the gradient
// needs is wanted, else the last cell state.
void run(const Call& call, bool of_gates, bool all) {
  const int first = of_gates ? 1 : 3;
  const cb_tensor &over_time = call.tensor(0), &h0 = call.tensor(first);
  const std::span<const int64_t> sizes = call.ints(first + 4);
  const bool packed = over_time.ndim == 2;
  const Sequence sequence(packed ? static_cast<int64_t>(sizes.size()) : over_time.sizes[0], h0.sizes[0], h0.sizes[1],
                          packed ? sizes : std::span<const int64_t>{}, call.boolean(first + 5));
  const std::string_view name = call.string(first + 6);
  dispatch<FloatTypes>(over_time.dtype, [&]<typename T>() {
    const auto cell_output = [&](int i) { return call.output(i).numel > 0 ? mutable_data<T>(call.output(i)) : nullptr; };
    const Forward<T> task{of_gates ? nullptr : data<T>(over_time),
                          of_gates ? nullptr : data<T>(call.tensor(1)),
                          of_gates ? nullptr : given<T>(call, 2),
                          of_gates ? 0 : over_time.sizes[over_time.ndim - 1],
                          of_gates ? data<T>(over_time) : nullptr,
                          data<T>(h0),
                          given<T>(call, first + 1),
                          data<T>(call.tensor(first + 2)),
                          given<T>(call, first + 3),
                          mutable_data<T>(call.output(0)),
                          all ? cell_output(1) : nullptr,
                          all ? cell_output(2) : nullptr,
                          all ? nullptr : cell_output(1)};
    if (name == "lstm")
      recurrent::run_forward(recurrent::Lstm{}, sequence, task);
    else if (name == "gru")
      recurrent::run_forward(recurrent::Gru{}, sequence, task);
    else
      recurrent::run_forward(recurrent::Elman{name == "rnn_relu"}, sequence, task);
  });
}

void recurrent_sequence(Call& call) {
  run(call, true, true);
}
void recurrent_states(Call& call) {
  run(call, true, false);
}
void recurrent_layer(Call& call) {
  run(call, false, true);
}
void recurrent_layer_states(Call& call) {
  run(call, false, false);
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
