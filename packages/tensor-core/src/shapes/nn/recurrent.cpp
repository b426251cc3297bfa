// Recurrent layers: gates (T, N, GH), states (N, H), weight (GH, H). G is the cell's number of
// gates, 4 for LSTM. A packed sequence has batch_sizes, and (rows, ...) in place of (T, N, ...).
#include <array>
#include <string_view>

#include "candelabra/positions.hpp"
#include "shapes/checks.hpp"
#include "shapes/shapes.hpp"

namespace candelabra::shapes {

namespace {

struct Sequence {
  int64_t steps, batch, hidden;
};

struct SequencePositions {
  int sequence, h0, c0, weight;
};

// Checks an LSTM's sequence (T, N, factor * H), states and weight, and makes them contiguous.
Sequence check_lstm_sequence(Call& call, const SequencePositions& at, int64_t factor) {
  const TensorObject &sequence = call.tensor(at.sequence), &h = call.tensor(at.h0), &c = call.tensor(at.c0),
                     &weight = call.tensor(at.weight);
  if (!is_floating(sequence.dtype)) not_implemented(call, sequence.dtype);
  const bool dims = sequence.ndim() == 3 && h.ndim() == 2 && c.ndim() == 2 && weight.ndim() == 2;
  check(dims && sequence.sizes[2] == factor * h.sizes[1] && h.sizes == c.sizes && h.sizes[0] == sequence.sizes[1] &&
            weight.sizes[0] == 4 * h.sizes[1] && weight.sizes[1] == h.sizes[1],
        PyExc_RuntimeError, base_name(call), "(): shapes ", shown(sequence.sizes), " of the sequence, ", shown(h.sizes),
        " and ", shown(c.sizes), " of the states and ", shown(weight.sizes), " of weight do not fit: expected (T, N, ",
        factor == 1 ? "" : "4", "H), (N, H), (N, H) and (4H, H)");
  for (const TensorObject* other : {&h, &c, &weight}) {
    check(other->dtype == sequence.dtype, PyExc_RuntimeError, base_name(call),
          "(): expected tensors of one dtype, but got ", cpp_type_name(sequence.dtype), " and ",
          cpp_type_name(other->dtype), "; convert one of them with to()");
  }
  for (int i : {at.sequence, at.h0, at.c0, at.weight}) call.make_contiguous(i);
  return {sequence.sizes[0], sequence.sizes[1], h.sizes[1]};
}

}  // namespace

void lstm_sequence(Call& call) {
  namespace at = positions::lstm_sequence;
  const Dtype dtype = call.tensor(at::gates).dtype;
  const auto [steps, batch, hidden] = check_lstm_sequence(call, {at::gates, at::h0, at::c0, at::weight}, 4);
  call.add_output(dtype, Dims{steps, batch, hidden});
  call.add_output(dtype, Dims{steps, batch, hidden});
  call.add_output(dtype, Dims{steps, batch, 4 * hidden});
}

void lstm_sequence_backward(Call& call) {
  namespace at = positions::lstm_sequence_backward;
  const Dtype dtype = call.tensor(at::output).dtype;
  const auto [steps, batch, hidden] = check_lstm_sequence(call, {at::output, at::h0, at::c0, at::weight}, 1);
  const Dims states{steps, batch, hidden}, gates{steps, batch, 4 * hidden};
  for (int i : {at::grad_output, at::grad_cells, at::grad_activations, at::cells, at::activations}) {
    if (!call[i].given()) continue;
    const Dims& expected = i == at::grad_activations || i == at::activations ? gates : states;
    check(call.tensor(i).sizes == expected, PyExc_RuntimeError, "lstm_sequence_backward(): expected argument ", i,
          " of shape ", shown(expected), ", but got ", shown(call.tensor(i).sizes));
    call.convert(i, dtype);
    call.make_contiguous(i);
  }
  call.add_output(dtype, gates);
  call.add_output(dtype, Dims{batch, hidden});
  call.add_output(dtype, Dims{batch, hidden});
  call.add_output(dtype, Dims{4 * hidden, hidden});
}

namespace {

struct Cell {
  std::string_view name;
  int64_t gates;
  // Activations, in multiples of H, that the forward pass saves for the backward pass
  int64_t saved;
  bool has_state;  // c0
  bool has_bias;   // a bias of the recurrent product that cannot be added to the gates beforehand
};
constexpr std::array<Cell, 4> cells{{{"lstm", 4, 4, true, false},
                                     {"gru", 3, 4, false, true},
                                     {"rnn_tanh", 1, 0, false, false},
                                     {"rnn_relu", 1, 0, false, false}}};

const Cell& cell_named(Call& call, int i) {
  for (const Cell& cell : cells)
    if (cell.name == call[i].string) return cell;
  raise(PyExc_ValueError, base_name(call),
        "(): cell must be \"lstm\", \"gru\", \"rnn_tanh\" or \"rnn_relu\", but got \"", call[i].string, "\"");
}

struct LayerPositions {
  int sequence, h0, c0, weight, bias /* -1: the operator has none */, batch_sizes, cell;
};

struct Layer {
  const Cell& cell;
  Dtype dtype;
  Dims leading;  // (T, N), or (rows) of a packed sequence
  int64_t batch, hidden;

  Dims sequence_sizes(int64_t width) const {
    Dims sizes = leading;
    sizes.push_back(width * hidden);
    return sizes;
  }
};

// Checks that the batch sizes of a packed sequence do not grow and sum to its number of rows.
void check_batch_sizes(Call& call, std::span<const int64_t> sizes, int64_t have) {
  int64_t rows = 0, before = sizes.empty() ? 0 : sizes[0];
  for (const int64_t size : sizes) {
    check(size >= 1 && size <= before, PyExc_RuntimeError, base_name(call),
          "(): batch_sizes must be positive and must not grow");
    before = size;
    rows += size;
    check(rows <= have, PyExc_RuntimeError, base_name(call), "(): batch_sizes are of more than the ", have,
          " rows that there are");
  }
  check(sizes.empty() || rows == have, PyExc_RuntimeError, base_name(call), "(): batch_sizes are of ", rows, " of the ",
        have, " rows that there are");
}

void check_same_dtype(Call& call, const TensorObject& first, const TensorObject& other) {
  check(other.dtype == first.dtype, PyExc_RuntimeError, base_name(call), "(): expected tensors of one dtype, but got ",
        cpp_type_name(first.dtype), " and ", cpp_type_name(other.dtype), "; convert one of them with to()");
}

// Values of `factor` below: the cell's number of gates, and no check.
constexpr int64_t width_of_gates = 0, any_width = -1;

// Checks a sequence (T, N, factor * H), its states and weight, and makes them contiguous.
Layer check_layer(Call& call, const LayerPositions& at, int64_t factor) {
  const Cell& cell = cell_named(call, at.cell);
  const TensorObject &sequence = call.tensor(at.sequence), &h = call.tensor(at.h0), &weight = call.tensor(at.weight);
  if (!is_floating(sequence.dtype)) not_implemented(call, sequence.dtype);
  const std::span<const int64_t> sizes = call.ints(at.batch_sizes);
  const int dims = sizes.empty() ? 3 : 2;
  const int64_t width = factor == width_of_gates ? cell.gates : factor;
  check(call[at.c0].given() == cell.has_state, PyExc_RuntimeError, base_name(call),
        "(): c0 is for the cell \"lstm\", which needs it");
  check(sequence.ndim() == dims && h.ndim() == 2 && weight.ndim() == 2 &&
            (factor == any_width || sequence.sizes[dims - 1] == width * h.sizes[1]) &&
            weight.sizes[0] == cell.gates * h.sizes[1] && weight.sizes[1] == h.sizes[1] &&
            h.sizes[0] == (sizes.empty() ? sequence.sizes[1] : sizes[0]),
        PyExc_RuntimeError, base_name(call), "(): shapes ", shown(sequence.sizes), " of the sequence, ", shown(h.sizes),
        " of h0 and ", shown(weight.sizes), " of weight do not fit: expected (T, N, ",
        factor == any_width ? "I" : text(width, "H"), "), or without T and with all rows for N where there ",
        "are batch_sizes, (N, H) and (", cell.gates, "H, H)");
  check_batch_sizes(call, sizes, sequence.sizes[0]);
  const auto same_dtype = [&](const TensorObject& other) { check_same_dtype(call, sequence, other); };
  same_dtype(h);
  same_dtype(weight);
  if (cell.has_state) {
    const TensorObject& c = call.tensor(at.c0);
    check(c.sizes == h.sizes, PyExc_RuntimeError, base_name(call), "(): expected c0 of shape ", shown(h.sizes),
          ", but got ", shown(c.sizes));
    same_dtype(c);
    call.make_contiguous(at.c0);
  }
  if (at.bias >= 0 && call[at.bias].given()) {
    const TensorObject& bias = call.tensor(at.bias);
    check(cell.has_bias, PyExc_RuntimeError, base_name(call),
          "(): bias is for the cell \"gru\"; that of others is added to the gates");
    check(bias.ndim() == 1 && bias.sizes[0] == weight.sizes[0], PyExc_RuntimeError, base_name(call),
          "(): expected a bias of shape [", weight.sizes[0], "], but got ", shown(bias.sizes));
    same_dtype(bias);
    call.make_contiguous(at.bias);
  }
  const Layer layer{cell, sequence.dtype,
                    Dims(std::span<const int64_t>(sequence.sizes.begin(), sequence.sizes.end() - 1)), h.sizes[0],
                    h.sizes[1]};
  for (int i : {at.sequence, at.h0, at.weight}) call.make_contiguous(i);
  return layer;
}

// recurrent_sequence, recurrent_states: the same positions.
Layer check_gates_layer(Call& call) {
  namespace at = positions::recurrent_sequence;
  return check_layer(call, {at::gates, at::h0, at::c0, at::weight, at::bias, at::batch_sizes, at::cell},
                     width_of_gates);
}

// recurrent_layer, recurrent_layer_states: the same positions. The gates are computed from the
// input (T, N, I) by input_weight (GH, I) and an optional input_bias (GH).
Layer check_input_layer(Call& call) {
  namespace at = positions::recurrent_layer;
  const TensorObject &input = call.tensor(at::input), &weight = call.tensor(at::input_weight),
                     &recurrent = call.tensor(at::weight);
  const int last = input.ndim() - 1;
  check(weight.ndim() == 2 && last >= 0 && input.sizes[last] == weight.sizes[1] && recurrent.ndim() == 2 &&
            recurrent.sizes[0] == weight.sizes[0],
        PyExc_RuntimeError, base_name(call), "(): shapes ", shown(input.sizes), " of the input, ", shown(weight.sizes),
        " of input_weight and ", shown(recurrent.sizes),
        " of weight do not fit: expected (T, N, I), (GH, I) and (GH, H)");
  for (int i : {at::input_weight, at::input_bias}) {
    if (!call[i].given()) continue;
    const TensorObject& other = call.tensor(i);
    check_same_dtype(call, input, other);
    check(i == at::input_weight || (other.ndim() == 1 && other.sizes[0] == weight.sizes[0]), PyExc_RuntimeError,
          base_name(call), "(): expected an input_bias of shape [", weight.sizes[0], "], but got ", shown(other.sizes));
    call.make_contiguous(i);
  }
  return check_layer(call, {at::input, at::h0, at::c0, at::weight, at::bias, at::batch_sizes, at::cell}, any_width);
}

// Adds the output and, if `save`, what the backward pass needs; else the last cell state.
void add_results(Call& call, const Layer& layer, bool save) {
  call.add_output(layer.dtype, layer.sequence_sizes(1));
  if (!save) {
    call.add_output(layer.dtype, layer.cell.has_state ? Dims{layer.batch, layer.hidden} : Dims{0});
    return;
  }
  call.add_output(layer.dtype, layer.cell.has_state ? layer.sequence_sizes(1) : Dims{0});
  call.add_output(layer.dtype, layer.cell.saved ? layer.sequence_sizes(layer.cell.saved) : Dims{0});
}

}  // namespace

void recurrent_sequence(Call& call) {
  add_results(call, check_gates_layer(call), true);
}

void recurrent_states(Call& call) {
  add_results(call, check_gates_layer(call), false);
}

void recurrent_layer(Call& call) {
  add_results(call, check_input_layer(call), true);
}

void recurrent_layer_states(Call& call) {
  add_results(call, check_input_layer(call), false);
}

void recurrent_sequence_backward(Call& call) {
  namespace at = positions::recurrent_sequence_backward;
  const Layer layer = check_layer(call, {at::output, at::h0, at::c0, at::weight, -1, at::batch_sizes, at::cell}, 1);
  const Dims states = layer.sequence_sizes(1), empty{0};
  const Dims cell_states = layer.cell.has_state ? states : empty;
  const Dims activations = layer.cell.saved ? layer.sequence_sizes(layer.cell.saved) : empty;
  for (int i : {at::grad_output, at::grad_cells, at::grad_activations, at::cells, at::activations}) {
    if (!call[i].given()) continue;
    const Dims& expected = i == at::grad_output                    ? states
                           : i == at::grad_cells || i == at::cells ? cell_states
                                                                   : activations;
    check(call.tensor(i).sizes == expected, PyExc_RuntimeError, "recurrent_sequence_backward(): expected argument ", i,
          " of shape ", shown(expected), ", but got ", shown(call.tensor(i).sizes));
    call.convert(i, layer.dtype);
    call.make_contiguous(i);
  }
  const Dims first{layer.batch, layer.hidden};
  call.add_output(layer.dtype, layer.sequence_sizes(layer.cell.gates));
  call.add_output(layer.dtype, first);
  call.add_output(layer.dtype, layer.cell.has_state  ? first
                               : layer.cell.has_bias ? Dims{layer.cell.gates * layer.hidden}
                                                     : empty);
  call.add_output(layer.dtype, Dims{layer.cell.gates * layer.hidden, layer.hidden});
}

namespace {

struct StackPositions {
  int input, weights, h0, c0, batch_sizes, layers, bidirectional, has_biases, cell;
};

// Checks a stack of layers and makes its arguments contiguous. Returns the sizes of the output.
Dims check_stack(Call& call, const StackPositions& at) {
  const Cell& cell = cell_named(call, at.cell);
  const TensorObject &input = call.tensor(at.input), &weights = call.tensor(at.weights), &h = call.tensor(at.h0);
  if (!is_floating(input.dtype)) not_implemented(call, input.dtype);
  const std::span<const int64_t> sizes = call.ints(at.batch_sizes);
  const int dims = sizes.empty() ? 3 : 2;
  const int64_t layers = call.integer(at.layers), directions = call.boolean(at.bidirectional) ? 2 : 1;
  check(layers >= 1, PyExc_RuntimeError, base_name(call), "(): expected one layer or more, but got ", layers);
  check(call[at.c0].given() == cell.has_state, PyExc_RuntimeError, base_name(call),
        "(): c0 is for the cell \"lstm\", which needs it");
  check(input.ndim() == dims && h.ndim() == 3 && h.sizes[0] == layers * directions &&
            h.sizes[1] == (sizes.empty() ? input.sizes[1] : sizes[0]),
        PyExc_RuntimeError, base_name(call), "(): shapes ", shown(input.sizes), " of the input and ", shown(h.sizes),
        " of h0 do not fit: expected (T, N, I), or (rows, I) where there are batch_sizes, and (", layers * directions,
        ", N, H)");
  check_batch_sizes(call, sizes, input.sizes[0]);
  const int64_t hidden = h.sizes[2], gates = cell.gates * hidden, biases = call.boolean(at.has_biases) ? 2 : 0;
  const int64_t first = input.sizes[dims - 1] + hidden + biases, others = directions * hidden + hidden + biases;
  const int64_t expected = directions * gates * (first + (layers - 1) * others);
  check(weights.ndim() == 1 && weights.sizes[0] == expected, PyExc_RuntimeError, base_name(call),
        "(): expected weights of shape [", expected, "], but got ", shown(weights.sizes));
  check_same_dtype(call, input, weights);
  check_same_dtype(call, input, h);
  if (cell.has_state) {
    const TensorObject& c = call.tensor(at.c0);
    check(c.sizes == h.sizes, PyExc_RuntimeError, base_name(call), "(): expected c0 of shape ", shown(h.sizes),
          ", but got ", shown(c.sizes));
    check_same_dtype(call, input, c);
    call.make_contiguous(at.c0);
  }
  Dims output(std::span<const int64_t>(input.sizes.begin(), input.sizes.end() - 1));
  output.push_back(directions * hidden);
  for (int i : {at.input, at.weights, at.h0}) call.make_contiguous(i);
  return output;
}

}  // namespace

// recurrent_stack, recurrent_stack_kept: the same positions.
void recurrent_stack(Call& call) {
  namespace at = positions::recurrent_stack;
  const Dims output = check_stack(call, {at::input, at::weights, at::h0, at::c0, at::batch_sizes, at::layers,
                                         at::bidirectional, at::has_biases, at::cell});
  const TensorObject& h = call.tensor(at::h0);
  call.add_output(h.dtype, output);
  call.add_output(h.dtype, h.sizes);
  call.add_output(h.dtype, call[at::c0].given() ? h.sizes : Dims{0});
}

void recurrent_stack_kept(Call& call) {
  recurrent_stack(call);
  call.add_output(Dtype::UInt8, Dims{0});  // the kernel asks for as many bytes as it needs
}

void recurrent_stack_backward(Call& call) {
  namespace at = positions::recurrent_stack_backward;
  const Dims output = check_stack(call, {at::input, at::weights, at::h0, at::c0, at::batch_sizes, at::layers,
                                         at::bidirectional, at::has_biases, at::cell});
  const TensorObject& h = call.tensor(at::h0);
  for (int i : {at::grad_output, at::grad_h, at::grad_c, at::output}) {
    if (!call[i].given()) continue;
    const Dims& expected = i == at::grad_h || i == at::grad_c ? h.sizes : output;
    check(call.tensor(i).sizes == expected, PyExc_RuntimeError, "recurrent_stack_backward(): expected argument ", i,
          " of shape ", shown(expected), ", but got ", shown(call.tensor(i).sizes));
    call.convert(i, h.dtype);
    call.make_contiguous(i);
  }
  const TensorObject& reserve = call.tensor(at::reserve);
  check(reserve.dtype == Dtype::UInt8 && reserve.ndim() == 1, PyExc_RuntimeError,
        "recurrent_stack_backward(): expected a reserve of bytes, of one dimension, but got ", shown(reserve.sizes),
        " of ", cpp_type_name(reserve.dtype));
  call.make_contiguous(at::reserve);
  call.add_output(h.dtype, call.tensor(at::input).sizes);
  call.add_output(h.dtype, call.tensor(at::weights).sizes);
  call.add_output(h.dtype, h.sizes);
  call.add_output(h.dtype, call[at::c0].given() ? h.sizes : Dims{0});
}

}  // namespace candelabra::shapes
