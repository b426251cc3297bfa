"""Counts the floating-point operations of a program, gradients included."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import candelabra
from candelabra import dispatch_hooks

__all__ = [
    "FlopCounterMode", "addmm_flop", "baddbmm_flop", "bmm_flop", "conv_flop", "conv_flop_count", "flop_registry", "mm_flop",
    "register_flop_formula", "sdpa_flop", "sdpa_flop_count",
]  # fmt: skip


def mm_flop(a_shape: Any, b_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Return the operations of a matrix product: a multiplication and an addition count two.

    Examples
    --------
    >>> from candelabra.utils.flop_counter import mm_flop
    >>> mm_flop((2, 3), (3, 4))
    48
    """
    return 2 * math.prod(a_shape) * b_shape[-1]


def bmm_flop(a_shape: Any, b_shape: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Return the operations of a batch of matrix products."""
    return 2 * math.prod(a_shape) * b_shape[-1]


def addmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Return the operations of a matrix product; those of the sum do not count."""
    return mm_flop(a_shape, b_shape)


def baddbmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Return the operations of a batch of matrix products; those of the sum do not count."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape: Any, w_shape: Any, out_shape: Any, transposed: bool = False) -> int:
    """Return the operations of a convolution.

    Examples
    --------
    >>> from candelabra.utils.flop_counter import conv_flop_count
    >>> conv_flop_count((1, 3, 8, 8), (4, 3, 3, 3), (1, 4, 6, 6))
    7776
    """
    # Every input place of a transposed convolution meets the whole filter, of others every output.
    places = math.prod((x_shape if transposed else out_shape)[2:])
    return 2 * x_shape[0] * math.prod(w_shape) * places


def conv_flop(
    x_shape: Any, w_shape: Any, _bias: Any, _stride: Any, _padding: Any, _dilation: Any, transposed: Any, *args: Any,
    out_shape: Any = None, **kwargs: Any,
) -> int:  # fmt: skip
    """Return the operations of a convolution, from its arguments."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


def sdpa_flop_count(query_shape: Any, key_shape: Any, value_shape: Any) -> int:
    """Return the operations of attention: two products, of which masks leave out nothing."""
    *leading, queries, width = query_shape
    return 2 * math.prod(leading) * queries * key_shape[-2] * (width + value_shape[-1])


def sdpa_flop(
    query_shape: Any, key_shape: Any, value_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    """Return the operations of attention."""
    return sdpa_flop_count(query_shape, key_shape, value_shape)


def _linear_flop(input_shape: Any, weight_shape: Any, *args: Any, out_shape: Any = None) -> int:
    return 2 * math.prod(input_shape) * weight_shape[0]


def _matmul_flop(a_shape: Any, b_shape: Any, *args: Any, out_shape: Any = None) -> int:
    return 2 * math.prod(out_shape) * a_shape[-1]


def _convolution_flop(
    x_shape: Any,
    w_shape: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: Any,
    *args: Any,
    out_shape: Any = None,
) -> int:
    return conv_flop_count(x_shape, w_shape, out_shape)


def _transposed_flop(grad_shape: Any, w_shape: Any, *args: Any, out_shape: Any = None) -> int:
    return conv_flop_count(grad_shape, w_shape, out_shape, True)


def _filter_flop(grad_shape: Any, x_shape: Any, size: Any, *args: Any, out_shape: Any = None) -> int:
    return conv_flop_count(x_shape, out_shape, grad_shape)


def _attention_gradient_flop(grad_shape: Any, q: Any, k: Any, v: Any, *args: Any, out_shape: Any = None) -> int:
    # The scores again, and the gradients of the values, the weights, the queries and the keys.
    *leading, queries, width = q
    return 2 * math.prod(leading) * queries * k[-2] * (3 * width + 2 * v[-1])


def _recurrent_layer_flop(
    input_shape: Any,
    weight_shape: Any,
    bias: Any,
    h: Any,
    c: Any,
    hidden_weight: Any,
    *args: Any,
    out_shape: Any = None,
) -> int:
    steps = math.prod(input_shape[:-1])
    return 2 * steps * (math.prod(weight_shape) + math.prod(hidden_weight))


def _recurrent_flop(gates_shape: Any, h: Any, c: Any, weight_shape: Any, *args: Any, out_shape: Any = None) -> int:
    return 2 * math.prod(gates_shape[:-1]) * math.prod(weight_shape)


#: Rows of gates for each unit of a recurrent layer, by its kind.
_GATES = {"lstm": 4, "gru": 3}


def _stack_products(
    input_shape: Any, weights: Any, h: Any, c: Any, sizes: Any, layers: int, both: bool, has_biases: bool, cell: str
) -> int:
    biases = 2 * _GATES.get(cell, 1) * h[-1] * layers * (1 + both) if has_biases else 0
    return math.prod(input_shape[:-1]) * (math.prod(weights) - biases)


def _stack_flop(*args: Any, out_shape: Any = None) -> int:
    return 2 * _stack_products(*args)


def _stack_gradient_flop(*args: Any, out_shape: Any = None) -> int:
    _, _, _, input_shape, weights, h, c, _, _, *rest = args
    return 4 * _stack_products(input_shape, weights, h, c, *rest)


def _recurrent_gradient_flop(
    grad_shape: Any, gh: Any, gc: Any, h: Any, c: Any, hidden_weight: Any, *args: Any, out_shape: Any = None
) -> int:
    # The gradients of the states and of the weights that multiply them.
    return 4 * math.prod(grad_shape[:-1]) * math.prod(hidden_weight)


#: Formulas of operators, by name.
flop_registry: dict[Any, Callable[..., int]] = {
    "mm": mm_flop, "addmm": addmm_flop, "bmm": bmm_flop, "baddbmm": baddbmm_flop, "linear": _linear_flop, "matmul": _matmul_flop,
    "mv": _matmul_flop, "dot": _matmul_flop, "convolution": _convolution_flop, "convolution_backward_input": _transposed_flop,
    "convolution_backward_weight": _filter_flop, "_scaled_dot_product_attention": sdpa_flop,
    "_scaled_dot_product_attention_backward": _attention_gradient_flop,
    "recurrent_layer": _recurrent_layer_flop, "recurrent_layer_states": _recurrent_layer_flop, "lstm_sequence": _recurrent_flop,
    "recurrent_sequence": _recurrent_flop, "recurrent_states": _recurrent_flop, "recurrent_stack": _stack_flop,
    "recurrent_stack_kept": _stack_flop, "recurrent_stack_backward": _stack_gradient_flop,
    "recurrent_sequence_backward": _recurrent_gradient_flop, "lstm_sequence_backward": _recurrent_gradient_flop,
}  # fmt: skip


def _name(target: Any) -> str:
    packet = getattr(target, "_overloadpacket", target)
    name = getattr(packet, "__name__", None) or getattr(packet, "name", None) or packet
    return str(name)


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Register the formula of operators, a function of the shapes of their arguments, as a
    decorator.

    Parameters
    ----------
    targets
        Operators, such as ``candelabra.ops.mm``, or a list of them.
    get_raw
        Whether the function takes the arguments themselves, and ``out_val``.
    """

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        def of_shapes(*args: Any, out_shape: Any = None, **kwargs: Any) -> int:
            return formula(*args, out_shape=out_shape, **kwargs)

        chosen = formula if get_raw else of_shapes
        chosen._get_raw = get_raw  # type: ignore[attr-defined]
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            flop_registry[_name(target)] = chosen
        return formula

    return register


def _shapes(value: Any) -> Any:
    return tuple(value.shape) if isinstance(value, candelabra.Tensor) else value


class FlopCounterMode:
    """Context manager that counts the operations of the calls within, gradients included.

    Parameters
    ----------
    mods
        Accepted for compatibility: modules are found when they are called.
    depth
        How deep the table shows modules.
    display
        Whether to print the table at the end.
    custom_mapping
        Formulas of further operators, by operator.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.utils.flop_counter import FlopCounterMode
    >>> with FlopCounterMode(display=False) as counter:
    ...     _ = candelabra.ones(2, 3) @ candelabra.ones(3, 4)
    >>> counter.get_total_flops()
    48
    """

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: dict[Any, Any] | None = None
    ) -> None:
        self.depth = depth
        self.display = display
        self.flop_counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._formulas = {**flop_registry, **{_name(key): value for key, value in (custom_mapping or {}).items()}}
        self._modules: list[str] = ["Global"]

    def get_total_flops(self) -> int:
        """Return the number of all operations."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Return the operations by module and operator, such as ``candelabra.ops.aten.mm``."""
        aten = candelabra.ops.aten
        return {
            module: {getattr(aten, name): count for name, count in counts.items()}
            for module, counts in self.flop_counts.items()
        }

    def get_table(self, depth: int | None = None) -> str:
        """Return a table of modules and their operations."""
        depth = self.depth if depth is None else depth
        total = max(self.get_total_flops(), 1)
        rows = [("Module", "FLOP", "% Total")]
        for module in sorted(self.flop_counts, key=lambda name: (name != "Global", name)):
            level = 0 if module == "Global" else module.count(".") + 1
            if level > depth:
                continue
            counts = self.flop_counts[module]
            for name, count in [(module, sum(counts.values())), *((f" - aten.{op}", n) for op, n in counts.items())]:
                rows.append((f"{' ' * level}{name}", str(count), f"{100 * count / total:.2f}%"))
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = ["  ".join(part.ljust(width) for part, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self._before = dispatch_hooks._thread.inner
        dispatch_hooks.set_inner(self._count)
        hooks = getattr(candelabra, "nn", None)
        self._handles = [] if hooks is None else self._follow_modules(hooks.modules.module)
        return self

    def __exit__(self, *exception: Any) -> None:
        dispatch_hooks.set_inner(self._before)
        for handle in self._handles:
            handle.remove()
        if self.display:
            print(self.get_table())

    def _follow_modules(self, module: Any) -> list[Any]:
        names: dict[int, str] = {}

        def enter(called: Any, args: Any) -> None:
            if id(called) not in names:
                for name, part in called.named_modules(prefix=type(called).__name__):
                    names.setdefault(id(part), name)
            self._modules.append(names[id(called)])

        def leave(called: Any, args: Any, output: Any) -> None:
            self._modules.pop()

        return [
            module.register_module_forward_pre_hook(enter),
            module.register_module_forward_hook(leave, always_call=True),
        ]

    def _count(self, operator: Any, arguments: tuple[Any, ...], out: Any, generator: Any, record: bool) -> Any:
        dispatch_hooks.set_inner(self._before)
        try:
            result = operator.again(arguments, out, generator)
        finally:
            dispatch_hooks.set_inner(self._count)
        formula = self._formulas.get(operator.name)
        if formula is not None:
            first = result[0] if isinstance(result, tuple) else result
            if getattr(formula, "_get_raw", False):
                count = formula(*arguments, out_val=result)
            else:
                count = formula(*map(_shapes, arguments), out_shape=_shapes(first))
            for module in dict.fromkeys(self._modules):
                self.flop_counts[module][operator.name] += count
        return result
