// Recurrent layers: gates (T, N, 4H), states (N, H), weight (4H, H); of other cells, as many gates as they have.
#include <array>
#include <string_view>

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

namespace {

// Cells that recurrent_sequence knows, and how many gates they have and keep.
struct Cell {
  std::string_view name;
  int64_t gates, kept;
  bool has_state, has_bias;
};
constexpr std::array<Cell, 4> cells{
    {{"lstm", 4, 4, true, false}, {"gru", 3, 4, false, true}, {"rnn_tanh", 1, 0, false, false}, {"rnn_relu", 1, 0, false, false}}};

const Cell& cell_named(Call& call, int i) {
  for (const Cell& cell : cells)
    if (cell.name == call[i].string) return cell;
  raise(PyExc_ValueError, base_name(call), "(): cell must be \"lstm\", \"gru\", \"rnn_tanh\" or \"rnn_relu\", but got \"",
        call[i].string, "\"");
}

// Where a call has the sequence (of so many elements a unit), the states, the weight and the rest.
struct Places {
  int sequence, h0, c0, weight, bias, batch_sizes, cell;
};

struct Layer {
  const Cell& cell;
  Dtype dtype;
  Dims over_time;  // the sizes over time, without the last one
  int64_t batch, hidden;

  Dims of(int64_t width) const {
    Dims sizes = over_time;
    sizes.push_back(width * hidden);
    return sizes;
  }
};

// Of a packed sequence the rows of all times are as many as there are.
void check_batch_sizes(Call& call, std::span<const int64_t> sizes, int64_t have) {
  int64_t rows = 0, before = sizes.empty() ? 0 : sizes[0];
  for (const int64_t size : sizes) {
    check(size >= 1 && size <= before, PyExc_RuntimeError, base_name(call), "(): batch_sizes must be positive and must not grow");
    before = size;
    rows += size;
    check(rows <= have, PyExc_RuntimeError, base_name(call), "(): batch_sizes are of more than the ", have, " rows that there are");
  }
  check(sizes.empty() || rows == have, PyExc_RuntimeError, base_name(call), "(): batch_sizes are of ", rows, " of the ", have,
        " rows that there are");
}

void check_same_dtype(Call& call, const TensorObject& first, const TensorObject& other) {
  check(other.dtype == first.dtype, PyExc_RuntimeError, base_name(call), "(): expected tensors of one dtype, but got ",
        c_name(first.dtype), " and ", c_name(other.dtype), "; convert one of them with to()");
}

// The sequence has `factor` elements a unit, 0: as many as there are gates; negative: any number.
Layer check_layer(Call& call, const Places& at, int64_t factor) {
  const Cell& cell = cell_named(call, at.cell);
  const TensorObject &sequence = call.tensor(at.sequence), &h = call.tensor(at.h0), &weight = call.tensor(at.weight);
  if (!is_floating(sequence.dtype)) not_implemented(call, sequence.dtype);
  const std::span<const int64_t> sizes = call.ints(at.batch_sizes);
  const int dims = sizes.empty() ? 3 : 2;
  const int64_t width = factor ? factor : cell.gates;
  check(call[at.c0].given() == cell.has_state, PyExc_RuntimeError, base_name(call),
        "(): c0 is for the cell \"lstm\", which needs it");
  check(sequence.ndim() == dims && h.ndim() == 2 && weight.ndim() == 2 &&
            (factor < 0 || sequence.sizes[dims - 1] == width * h.sizes[1]) && weight.sizes[0] == cell.gates * h.sizes[1] &&
            weight.sizes[1] == h.sizes[1] && h.sizes[0] == (sizes.empty() ? sequence.sizes[1] : sizes[0]),
        PyExc_RuntimeError, base_name(call), "(): shapes ", shown(sequence.sizes), " of the sequence, ", shown(h.sizes),
        " of h0 and ", shown(weight.sizes), " of weight do not fit: expected (T, N, ", factor < 0 ? "I" : text(width, "H"),
        "), or without T and with all rows for N where there ", "are batch_sizes, (N, H) and (", cell.gates, "H, H)");
  check_batch_sizes(call, sizes, sequence.sizes[0]);
  const auto same_dtype = [&](const TensorObject& other) { check_same_dtype(call, sequence, other); };
  same_dtype(h);
  same_dtype(weight);
  if (cell.has_state) {
    const TensorObject& c = call.tensor(at.c0);
    check(c.sizes == h.sizes, PyExc_RuntimeError, base_name(call), "(): expected c0 of shape ", shown(h.sizes), ", but got ",
          shown(c.sizes));
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
  const Layer layer{cell, sequence.dtype, Dims(std::span<const int64_t>(sequence.sizes.begin(), sequence.sizes.end() - 1)),
                    h.sizes[0], h.sizes[1]};
  for (int i : {at.sequence, at.h0, at.weight}) call.make_contiguous(i);
  return layer;
}

constexpr Places forward_places{0, 1, 2, 3, 4, 5, 7};
constexpr Places layer_places{0, 3, 4, 5, 6, 7, 9};

// The share of the input is a product with input_weight (GH, I), and input_bias (GH) where there is one.
Layer check_layer_of_input(Call& call) {
  constexpr int input_weight = 1, input_bias = 2;
  const TensorObject &input = call.tensor(layer_places.sequence), &weight = call.tensor(input_weight),
                     &recurrent = call.tensor(layer_places.weight);
  const int last = input.ndim() - 1;
  check(weight.ndim() == 2 && last >= 0 && input.sizes[last] == weight.sizes[1] && recurrent.ndim() == 2 &&
            recurrent.sizes[0] == weight.sizes[0],
        PyExc_RuntimeError, base_name(call), "(): shapes ", shown(input.sizes), " of the input, ", shown(weight.sizes),
        " of input_weight and ", shown(recurrent.sizes), " of weight do not fit: expected (T, N, I), (GH, I) and (GH, H)");
  for (int i : {input_weight, input_bias}) {
    if (!call[i].given()) continue;
    const TensorObject& other = call.tensor(i);
    check_same_dtype(call, input, other);
    check(i == input_weight || (other.ndim() == 1 && other.sizes[0] == weight.sizes[0]), PyExc_RuntimeError, base_name(call),
          "(): expected an input_bias of shape [", weight.sizes[0], "], but got ", shown(other.sizes));
    call.make_contiguous(i);
  }
  return check_layer(call, layer_places, -1);
}

void add_results(Call& call, const Layer& layer, bool all) {
  call.add_output(layer.dtype, layer.of(1));
  if (!all) {
    call.add_output(layer.dtype, layer.cell.has_state ? Dims{layer.batch, layer.hidden} : Dims{0});
    return;
  }
  call.add_output(layer.dtype, layer.cell.has_state ? layer.of(1) : Dims{0});
  call.add_output(layer.dtype, layer.cell.kept ? layer.of(layer.cell.kept) : Dims{0});
}

}  // namespace

// recurrent_sequence(gates, h0, c0, weight, bias, batch_sizes, reverse, cell)
void recurrent_sequence(Call& call) {
  add_results(call, check_layer(call, forward_places, 0), true);
}
void recurrent_states(Call& call) {
  add_results(call, check_layer(call, forward_places, 0), false);
}

// recurrent_layer(input, input_weight, input_bias, h0, c0, weight, bias, batch_sizes, reverse, cell)
void recurrent_layer(Call& call) {
  add_results(call, check_layer_of_input(call), true);
}
void recurrent_layer_states(Call& call) {
  add_results(call, check_layer_of_input(call), false);
}

// recurrent_sequence_backward(grad_output, grad_cells, grad_activations, h0, c0, weight, output, cells, activations, batch_sizes,
// reverse, cell)
void recurrent_sequence_backward(Call& call) {
  const Layer layer = check_layer(call, {6, 3, 4, 5, -1, 9, 11}, 1);
  const Dims states = layer.of(1), nothing{0};
  const Dims of_cells = layer.cell.has_state ? states : nothing, kept = layer.cell.kept ? layer.of(layer.cell.kept) : nothing;
  for (int i : {0, 1, 2, 7, 8}) {
    if (!call[i].given()) continue;
    const Dims& wanted = i == 0 ? states : i == 1 || i == 7 ? of_cells : kept;
    check(call.tensor(i).sizes == wanted, PyExc_RuntimeError, "recurrent_sequence_backward(): expected argument ", i, " of shape ",
          shown(wanted), ", but got ", shown(call.tensor(i).sizes));
    call.convert(i, layer.dtype);
    call.make_contiguous(i);
  }
  const Dims first{layer.batch, layer.hidden};
  call.add_output(layer.dtype, layer.of(layer.cell.gates));
  call.add_output(layer.dtype, first);
  call.add_output(layer.dtype, layer.cell.has_state  ? first
                               : layer.cell.has_bias ? Dims{layer.cell.gates * layer.hidden}
                                                     : nothing);
  call.add_output(layer.dtype, Dims{layer.cell.gates * layer.hidden, layer.hidden});
}

namespace {

// Where a call of layers over layers has what; the two numbers and the two flags follow the batch_sizes.
struct StackPlaces {
  int input, weights, h0, c0, batch_sizes, layers, bidirectional, has_biases, cell;
};
constexpr StackPlaces stack_places{0, 1, 2, 3, 4, 5, 6, 7, 8};

// The sizes of the output.
Dims check_stack(Call& call, const StackPlaces& at) {
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
        " of h0 do not fit: expected (T, N, I), or (rows, I) where there are batch_sizes, and (", layers * directions, ", N, H)");
  check_batch_sizes(call, sizes, input.sizes[0]);
  const int64_t hidden = h.sizes[2], gates = cell.gates * hidden, biases = call.boolean(at.has_biases) ? 2 : 0;
  const int64_t first = input.sizes[dims - 1] + hidden + biases, others = directions * hidden + hidden + biases;
  const int64_t wanted = directions * gates * (first + (layers - 1) * others);
  check(weights.ndim() == 1 && weights.sizes[0] == wanted, PyExc_RuntimeError, base_name(call), "(): expected weights of shape [",
        wanted, "], but got ", shown(weights.sizes));
  check_same_dtype(call, input, weights);
  check_same_dtype(call, input, h);
  if (cell.has_state) {
    const TensorObject& c = call.tensor(at.c0);
    check(c.sizes == h.sizes, PyExc_RuntimeError, base_name(call), "(): expected c0 of shape ", shown(h.sizes), ", but got ",
          shown(c.sizes));
    check_same_dtype(call, input, c);
    call.make_contiguous(at.c0);
  }
  Dims output(std::span<const int64_t>(input.sizes.begin(), input.sizes.end() - 1));
  output.push_back(directions * hidden);
  for (int i : {at.input, at.weights, at.h0}) call.make_contiguous(i);
  return output;
}

}  // namespace

// recurrent_stack(input, weights, h0, c0, batch_sizes, layers, bidirectional, has_biases, cell)
void recurrent_stack(Call& call) {
  const Dims output = check_stack(call, stack_places);
  const TensorObject& h = call.tensor(stack_places.h0);
  call.add_output(h.dtype, output);
  call.add_output(h.dtype, h.sizes);
  call.add_output(h.dtype, call[stack_places.c0].given() ? h.sizes : Dims{0});
}
void recurrent_stack_kept(Call& call) {
  recurrent_stack(call);
  call.add_output(Dtype::UInt8, Dims{0});  // the kernel says how much it keeps
}

// recurrent_stack_backward(grad_output, grad_h, grad_c, input, weights, h0, c0, output, reserve, batch_sizes, layers,
// bidirectional, has_biases, cell)
void recurrent_stack_backward(Call& call) {
  constexpr StackPlaces at{3, 4, 5, 6, 9, 10, 11, 12, 13};
  constexpr int output_place = 7, reserve_place = 8;
  const Dims output = check_stack(call, at);
  const TensorObject& h = call.tensor(at.h0);
  for (int i : {0, 1, 2, output_place}) {
    if (!call[i].given()) continue;
    const Dims& wanted = i == 1 || i == 2 ? h.sizes : output;
    check(call.tensor(i).sizes == wanted, PyExc_RuntimeError, "recurrent_stack_backward(): expected argument ", i, " of shape ",
          shown(wanted), ", but got ", shown(call.tensor(i).sizes));
    call.convert(i, h.dtype);
    call.make_contiguous(i);
  }
  const TensorObject& reserve = call.tensor(reserve_place);
  check(reserve.dtype == Dtype::UInt8 && reserve.ndim() == 1, PyExc_RuntimeError,
        "recurrent_stack_backward(): expected a reserve of bytes, of one dimension, but got ", shown(reserve.sizes), " of ",
        c_name(reserve.dtype));
  call.make_contiguous(reserve_place);
  call.add_output(h.dtype, call.tensor(at.input).sizes);
  call.add_output(h.dtype, call.tensor(at.weights).sizes);
  call.add_output(h.dtype, h.sizes);
  call.add_output(h.dtype, call[at.c0].given() ? h.sizes : Dims{0});
}

}  // namespace candelabra::shapes
