"""Sample arguments for recurrent layers."""

from __future__ import annotations

from typing import Any


def _lstm(d: Any) -> list[Any]:
    return [((d(3, 2, 8), d(2, 2), d(2, 2), d(8, 2), reverse), {}) for reverse in (False, True)]


def _sequence(d: Any) -> list[Any]:
    samples = []
    for cell, gates in (("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)):
        c0, bias = d(2, 2) if cell == "lstm" else None, d(2 * gates) if cell == "gru" else None
        samples += [
            ((d(3, 2, 2 * gates), d(2, 2), c0, d(2 * gates, 2), bias, [], reverse, cell), {})
            for reverse in (False, True)
        ]
        samples += [
            ((d(4, 2 * gates), d(2, 2), c0, d(2 * gates, 2), None, [2, 1, 1], reverse, cell), {})
            for reverse in (False, True)
        ]
    return samples


def _states(d: Any) -> list[Any]:
    """Return one padded or packed sample per cell. The derivatives of these operators call
    recurrent_sequence.
    """
    return _sequence(d)[::5]


def _layer(d: Any) -> list[Any]:
    samples: list[Any] = []
    for (gates, *rest), keywords in _states(d):
        width = gates.shape[-1]
        samples.append(
            ((d(*gates.shape[:-1], 3), d(width, 3), d(width) if len(samples) % 2 else None, *rest), keywords)
        )
    return samples


def _stack(d: Any) -> list[Any]:
    """Two bidirectional layers and a single layer, padded and packed, with and without biases."""
    samples: list[Any] = []
    for number, (cell, gates) in enumerate((("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1))):
        layers, directions, biases = (2, 2, 2) if number % 2 else (1, 1, 0)
        sizes = [2, 1, 1] if number < 2 else []
        over_time = (4,) if sizes else (3, 2)
        h0 = d(layers * directions, 2, 2)
        count = directions * gates * 2 * (3 + 2 + biases + (layers - 1) * (2 * directions + 2 + biases))
        c0 = d(*h0.shape) if cell == "lstm" else None
        samples.append(((d(*over_time, 3), d(count), h0, c0, sizes, layers, directions == 2, biases > 0, cell), {}))
    return samples


SAMPLERS = {
    "lstm_sequence": _lstm,
    "recurrent_sequence": _sequence,
    "recurrent_states": _states,
    "recurrent_layer": _layer,
    "recurrent_layer_states": _layer,
    "recurrent_stack": _stack,
    "recurrent_stack_kept": _stack,
}
