// Recurrent layers: gates (T, N, 4H), states (N, H), weight (4H, H).
#include "checks.hpp"
#include "shapes.hpp"

namespace candelabra::shapes {

namespace {

// Steps, batch and hidden size, of the states and of a tensor (T, N, factor * H).
struct Sequence {
  int64_t steps, batch, hidden;
};

Sequence check_sequence(Call& call, int sequence_argument, int64_t factor, int states_argument) {
  const TensorObject &sequence = call.tensor(sequence_argument), &h = call.tensor(states_argument),
                     &c = call.tensor(states_argument + 1), &weight = call.tensor(states_argument + 2);
  if (!is_floating(sequence.dtype)) not_implemented(call, sequence.dtype);
  const bool dims = sequence.ndim() == 3 && h.ndim() == 2 && c.ndim() == 2 && weight.ndim() == 2;
  check(dims && sequence.sizes[2] == factor * h.sizes[1] && h.sizes == c.sizes && h.sizes[0] == sequence.sizes[1] &&
            weight.sizes[0] == 4 * h.sizes[1] && weight.sizes[1] == h.sizes[1],
        PyExc_RuntimeError, base_name(call), "(): shapes ", shown(sequence.sizes), " of the sequence, ", shown(h.sizes), " and ",
        shown(c.sizes), " of the states and ", shown(weight.sizes), " of weight do not fit: expected (T, N, ",
        factor == 1 ? "" : "4", "H), (N, H), (N, H) and (4H, H)");
  for (const TensorObject* other : {&h, &c, &weight}) {
    check(other->dtype == sequence.dtype, PyExc_RuntimeError, base_name(call), "(): expected tensors of one dtype, but got ",
          c_name(sequence.dtype), " and ", c_name(other->dtype), "; convert one of them with to()");
  }
  for (int i : {sequence_argument, states_argument, states_argument + 1, states_argument + 2}) call.make_contiguous(i);
  return {sequence.sizes[0], sequence.sizes[1], h.sizes[1]};
}

}  // namespace

void lstm_sequence(Call& call) {
  const Dtype dtype = call.tensor(0).dtype;
  const auto [steps, batch, hidden] = check_sequence(call, 0, 4, 1);
  call.add_output(dtype, Dims{steps, batch, hidden});
  call.add_output(dtype, Dims{steps, batch, hidden});
  call.add_output(dtype, Dims{steps, batch, 4 * hidden});
}

void lstm_sequence_backward(Call& call) {
  const Dtype dtype = call.tensor(6).dtype;
  const auto [steps, batch, hidden] = check_sequence(call, 6, 1, 3);
  const Dims states{steps, batch, hidden}, gates{steps, batch, 4 * hidden};
  for (int i : {0, 1, 2, 7, 8}) {
    if (!call[i].given()) continue;
    const Dims& wanted = i == 2 || i == 8 ? gates : states;
    check(call.tensor(i).sizes == wanted, PyExc_RuntimeError, "lstm_sequence_backward(): expected argument ", i, " of shape ",
          shown(wanted), ", but got ", shown(call.tensor(i).sizes));
    call.convert(i, dtype);
    call.make_contiguous(i);
  }
  call.add_output(dtype, gates);
  call.add_output(dtype, Dims{batch, hidden});
  call.add_output(dtype, Dims{batch, hidden});
  call.add_output(dtype, Dims{4 * hidden, hidden});
}

}  // namespace candelabra::shapes
