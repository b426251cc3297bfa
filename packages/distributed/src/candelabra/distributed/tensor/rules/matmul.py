"""Products of matrices, and convolutions."""

from __future__ import annotations

from .table import Call, Labels, rule


def _linear(call: Call) -> Labels:
    *batch, _ = range(len(call.layouts[0].shape))
    inputs = [[*batch, "k"], ["n", "k"], ["n"]][: len(call.layouts)]
    linear = [[0], [1]] if len(call.layouts) == 2 else [[0, 2], [1, 2]]
    return Labels(inputs, [[*batch, "n"]], {"k": "sum"}, added=[2], linear=linear)


def _added(call: Call, first: list[str], second: list[str], out: list[str]) -> Labels:
    """Return the labels of a product to which a tensor is added, which may be broadcast."""
    shape = call.layouts[0].shape
    whole = {label: size for labels, layout in ((first, call.layouts[1]), (second, call.layouts[2]))
             for label, size in zip(labels, layout.shape, strict=True)}  # fmt: skip
    names = out[len(out) - len(shape) :]
    own = [label if size == whole[label] else None for label, size in zip(names, shape, strict=True)]
    return Labels([own, first, second], [out], {"k": "sum"}, added=[0])


def _product(first: list[str], second: list[str], out: list[str]) -> Labels:
    return Labels([first, second], [out], {"k": "sum"}, linear=[[0], [1]])


rule("linear", _linear)
rule("mm", lambda call: _product(["m", "k"], ["k", "n"], ["m", "n"]))
rule("bmm", lambda call: _product(["b", "m", "k"], ["b", "k", "n"], ["b", "m", "n"]))
rule("mv", lambda call: _product(["m", "k"], ["k"], ["m"]))
rule("dot", lambda call: _product(["k"], ["k"], []))
rule("addmm", lambda call: _added(call, ["m", "k"], ["k", "n"], ["m", "n"]))
rule("baddbmm", lambda call: _added(call, ["b", "m", "k"], ["b", "k", "n"], ["b", "m", "n"]))


# ---- convolutions: b is the batch, i and o are channels


def _space(call: Call, k: int = 0) -> list[None]:
    return [None] * (len(call.layouts[k].shape) - 2)


def _channels(call: Call) -> tuple[str | None, str | None]:
    return ("i", "o") if call.get("groups", 1) == 1 else (None, None)


def _convolution(call: Call) -> Labels:
    space = _space(call)
    _, o = _channels(call)
    inputs = [["b", None, *space], [o, None, *space], [o]][: len(call.layouts)]
    return Labels(inputs, [["b", o, *space]])


def _of_input(call: Call) -> Labels:
    space = _space(call)
    i, o = _channels(call)
    return Labels([["b", o, *space], [o, i, *space]], [["b", i, *space]], {"o": "sum"}, linear=[[0]])


def _of_weight(call: Call) -> Labels:
    space = _space(call)
    i, o = _channels(call)
    return Labels([["b", o, *space], ["b", i, *space]], [[o, i, *space]], {"b": "sum"}, linear=[[0]])


rule("convolution", _convolution)
rule("convolution_backward_input", _of_input, sizes={"input_size": 0})
rule("convolution_backward_weight", _of_weight, sizes={"weight_size": 0})
