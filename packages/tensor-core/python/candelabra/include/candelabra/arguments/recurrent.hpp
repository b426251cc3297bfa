// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.
// Arguments of the operators of the family recurrent, for kernels:
//
//   const arguments::LstmSequence args(call);
//
// A tensor or number that was not given is a null pointer; other optional arguments are std::optional.
#ifndef CANDELABRA_ARGUMENTS_RECURRENT_HPP
#define CANDELABRA_ARGUMENTS_RECURRENT_HPP

#include <optional>
#include <span>
#include <string_view>

#include "candelabra/kernel.hpp"

namespace candelabra::arguments {

// lstm_sequence(Tensor gates, Tensor h0, Tensor c0, Tensor weight, bool reverse) -> (Tensor output, Tensor cells, Tensor activations)
struct LstmSequence {
  const cb_tensor* gates;
  const cb_tensor* h0;
  const cb_tensor* c0;
  const cb_tensor* weight;
  bool reverse;

  explicit LstmSequence(const kernel::Call& call)
      : gates(call.optional_tensor(0)),
        h0(call.optional_tensor(1)),
        c0(call.optional_tensor(2)),
        weight(call.optional_tensor(3)),
        reverse(call.boolean(4)) {}
};

// lstm_sequence_backward(Tensor? grad_output, Tensor? grad_cells, Tensor? grad_activations, Tensor h0, Tensor c0, Tensor weight, Tensor output, Tensor cells, Tensor activations, bool reverse) -> (Tensor grad_gates, Tensor grad_h0, Tensor grad_c0, Tensor grad_weight)
struct LstmSequenceBackward {
  const cb_tensor* grad_output;
  const cb_tensor* grad_cells;
  const cb_tensor* grad_activations;
  const cb_tensor* h0;
  const cb_tensor* c0;
  const cb_tensor* weight;
  const cb_tensor* output;
  const cb_tensor* cells;
  const cb_tensor* activations;
  bool reverse;

  explicit LstmSequenceBackward(const kernel::Call& call)
      : grad_output(call.optional_tensor(0)),
        grad_cells(call.optional_tensor(1)),
        grad_activations(call.optional_tensor(2)),
        h0(call.optional_tensor(3)),
        c0(call.optional_tensor(4)),
        weight(call.optional_tensor(5)),
        output(call.optional_tensor(6)),
        cells(call.optional_tensor(7)),
        activations(call.optional_tensor(8)),
        reverse(call.boolean(9)) {}
};

// recurrent_sequence(Tensor gates, Tensor h0, Tensor? c0, Tensor weight, Tensor? bias, int[] batch_sizes, bool reverse, str cell) -> (Tensor output, Tensor cells, Tensor activations)
struct RecurrentSequence {
  const cb_tensor* gates;
  const cb_tensor* h0;
  const cb_tensor* c0;
  const cb_tensor* weight;
  const cb_tensor* bias;
  std::span<const int64_t> batch_sizes;
  bool reverse;
  std::string_view cell;

  explicit RecurrentSequence(const kernel::Call& call)
      : gates(call.optional_tensor(0)),
        h0(call.optional_tensor(1)),
        c0(call.optional_tensor(2)),
        weight(call.optional_tensor(3)),
        bias(call.optional_tensor(4)),
        batch_sizes(call.ints(5)),
        reverse(call.boolean(6)),
        cell(call.string(7)) {}
};

// recurrent_states(Tensor gates, Tensor h0, Tensor? c0, Tensor weight, Tensor? bias, int[] batch_sizes, bool reverse, str cell) -> (Tensor output, Tensor cell_state)
struct RecurrentStates {
  const cb_tensor* gates;
  const cb_tensor* h0;
  const cb_tensor* c0;
  const cb_tensor* weight;
  const cb_tensor* bias;
  std::span<const int64_t> batch_sizes;
  bool reverse;
  std::string_view cell;

  explicit RecurrentStates(const kernel::Call& call)
      : gates(call.optional_tensor(0)),
        h0(call.optional_tensor(1)),
        c0(call.optional_tensor(2)),
        weight(call.optional_tensor(3)),
        bias(call.optional_tensor(4)),
        batch_sizes(call.ints(5)),
        reverse(call.boolean(6)),
        cell(call.string(7)) {}
};

// recurrent_sequence_backward(Tensor? grad_output, Tensor? grad_cells, Tensor? grad_activations, Tensor h0, Tensor? c0, Tensor weight, Tensor output, Tensor cells, Tensor activations, int[] batch_sizes, bool reverse, str cell) -> (Tensor grad_gates, Tensor grad_h0, Tensor grad_third, Tensor grad_weight)
struct RecurrentSequenceBackward {
  const cb_tensor* grad_output;
  const cb_tensor* grad_cells;
  const cb_tensor* grad_activations;
  const cb_tensor* h0;
  const cb_tensor* c0;
  const cb_tensor* weight;
  const cb_tensor* output;
  const cb_tensor* cells;
  const cb_tensor* activations;
  std::span<const int64_t> batch_sizes;
  bool reverse;
  std::string_view cell;

  explicit RecurrentSequenceBackward(const kernel::Call& call)
      : grad_output(call.optional_tensor(0)),
        grad_cells(call.optional_tensor(1)),
        grad_activations(call.optional_tensor(2)),
        h0(call.optional_tensor(3)),
        c0(call.optional_tensor(4)),
        weight(call.optional_tensor(5)),
        output(call.optional_tensor(6)),
        cells(call.optional_tensor(7)),
        activations(call.optional_tensor(8)),
        batch_sizes(call.ints(9)),
        reverse(call.boolean(10)),
        cell(call.string(11)) {}
};

// recurrent_layer(Tensor input, Tensor input_weight, Tensor? input_bias, Tensor h0, Tensor? c0, Tensor weight, Tensor? bias, int[] batch_sizes, bool reverse, str cell) -> (Tensor output, Tensor cells, Tensor activations)
struct RecurrentLayer {
  const cb_tensor* input;
  const cb_tensor* input_weight;
  const cb_tensor* input_bias;
  const cb_tensor* h0;
  const cb_tensor* c0;
  const cb_tensor* weight;
  const cb_tensor* bias;
  std::span<const int64_t> batch_sizes;
  bool reverse;
  std::string_view cell;

  explicit RecurrentLayer(const kernel::Call& call)
      : input(call.optional_tensor(0)),
        input_weight(call.optional_tensor(1)),
        input_bias(call.optional_tensor(2)),
        h0(call.optional_tensor(3)),
        c0(call.optional_tensor(4)),
        weight(call.optional_tensor(5)),
        bias(call.optional_tensor(6)),
        batch_sizes(call.ints(7)),
        reverse(call.boolean(8)),
        cell(call.string(9)) {}
};

// recurrent_layer_states(Tensor input, Tensor input_weight, Tensor? input_bias, Tensor h0, Tensor? c0, Tensor weight, Tensor? bias, int[] batch_sizes, bool reverse, str cell) -> (Tensor output, Tensor cell_state)
struct RecurrentLayerStates {
  const cb_tensor* input;
  const cb_tensor* input_weight;
  const cb_tensor* input_bias;
  const cb_tensor* h0;
  const cb_tensor* c0;
  const cb_tensor* weight;
  const cb_tensor* bias;
  std::span<const int64_t> batch_sizes;
  bool reverse;
  std::string_view cell;

  explicit RecurrentLayerStates(const kernel::Call& call)
      : input(call.optional_tensor(0)),
        input_weight(call.optional_tensor(1)),
        input_bias(call.optional_tensor(2)),
        h0(call.optional_tensor(3)),
        c0(call.optional_tensor(4)),
        weight(call.optional_tensor(5)),
        bias(call.optional_tensor(6)),
        batch_sizes(call.ints(7)),
        reverse(call.boolean(8)),
        cell(call.string(9)) {}
};

// recurrent_stack(Tensor input, Tensor weights, Tensor h0, Tensor? c0, int[] batch_sizes, int layers, bool bidirectional, bool has_biases, str cell) -> (Tensor output, Tensor h, Tensor c)
struct RecurrentStack {
  const cb_tensor* input;
  const cb_tensor* weights;
  const cb_tensor* h0;
  const cb_tensor* c0;
  std::span<const int64_t> batch_sizes;
  int64_t layers;
  bool bidirectional;
  bool has_biases;
  std::string_view cell;

  explicit RecurrentStack(const kernel::Call& call)
      : input(call.optional_tensor(0)),
        weights(call.optional_tensor(1)),
        h0(call.optional_tensor(2)),
        c0(call.optional_tensor(3)),
        batch_sizes(call.ints(4)),
        layers(call.integer(5)),
        bidirectional(call.boolean(6)),
        has_biases(call.boolean(7)),
        cell(call.string(8)) {}
};

// recurrent_stack_kept(Tensor input, Tensor weights, Tensor h0, Tensor? c0, int[] batch_sizes, int layers, bool bidirectional, bool has_biases, str cell) -> (Tensor output, Tensor h, Tensor c, Tensor reserve)
struct RecurrentStackKept {
  const cb_tensor* input;
  const cb_tensor* weights;
  const cb_tensor* h0;
  const cb_tensor* c0;
  std::span<const int64_t> batch_sizes;
  int64_t layers;
  bool bidirectional;
  bool has_biases;
  std::string_view cell;

  explicit RecurrentStackKept(const kernel::Call& call)
      : input(call.optional_tensor(0)),
        weights(call.optional_tensor(1)),
        h0(call.optional_tensor(2)),
        c0(call.optional_tensor(3)),
        batch_sizes(call.ints(4)),
        layers(call.integer(5)),
        bidirectional(call.boolean(6)),
        has_biases(call.boolean(7)),
        cell(call.string(8)) {}
};

// recurrent_stack_backward(Tensor? grad_output, Tensor? grad_h, Tensor? grad_c, Tensor input, Tensor weights, Tensor h0, Tensor? c0, Tensor output, Tensor reserve, int[] batch_sizes, int layers, bool bidirectional, bool has_biases, str cell) -> (Tensor grad_input, Tensor grad_weights, Tensor grad_h0, Tensor grad_c0)
struct RecurrentStackBackward {
  const cb_tensor* grad_output;
  const cb_tensor* grad_h;
  const cb_tensor* grad_c;
  const cb_tensor* input;
  const cb_tensor* weights;
  const cb_tensor* h0;
  const cb_tensor* c0;
  const cb_tensor* output;
  const cb_tensor* reserve;
  std::span<const int64_t> batch_sizes;
  int64_t layers;
  bool bidirectional;
  bool has_biases;
  std::string_view cell;

  explicit RecurrentStackBackward(const kernel::Call& call)
      : grad_output(call.optional_tensor(0)),
        grad_h(call.optional_tensor(1)),
        grad_c(call.optional_tensor(2)),
        input(call.optional_tensor(3)),
        weights(call.optional_tensor(4)),
        h0(call.optional_tensor(5)),
        c0(call.optional_tensor(6)),
        output(call.optional_tensor(7)),
        reserve(call.optional_tensor(8)),
        batch_sizes(call.ints(9)),
        layers(call.integer(10)),
        bidirectional(call.boolean(11)),
        has_biases(call.boolean(12)),
        cell(call.string(13)) {}
};

}  // namespace candelabra::arguments

#endif  // CANDELABRA_ARGUMENTS_RECURRENT_HPP
