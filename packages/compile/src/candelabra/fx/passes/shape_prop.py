"""Shapes and dtypes of the values of a graph."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import candelabra
from candelabra import Tensor

from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its values."""

    shape: candelabra.Size
    dtype: candelabra.dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: candelabra.memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """Return what is known of a tensor without its values."""
    found = None
    if include_contiguity:
        formats = (candelabra.contiguous_format, candelabra.channels_last, candelabra.channels_last_3d)
        dims = {candelabra.channels_last: 4, candelabra.channels_last_3d: 5}
        found = next(
            (
                each
                for each in formats
                if dims.get(each, result.ndim) == result.ndim and result.is_contiguous(memory_format=each)
            ),
            None,
        )
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, tuple(result.stride()), found, is_quantized=False, qparams={}
    )


class ShapeProp(Interpreter):
    """Runs a graph and notes in the meta of its nodes the ``tensor_meta`` and ``type`` of their
    values.

    Parameters
    ----------
    gm
        The module.
    fake_mode
        A `candelabra.fake_tensor.FakeTensorMode` to run it in: nothing is computed then.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import fx, nn
    >>> traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3)))
    >>> _ = fx.passes.shape_prop.ShapeProp(traced).propagate(candelabra.ones(5, 2))
    >>> traced.graph.output_node().meta["tensor_meta"].shape
    candelabra.Size([5, 3])
    """

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)
        self.fake_mode = fake_mode
        self.real_module = self.module

    def run_node(self, n: Node) -> Any:
        """Run a node, and note what is known of its value."""
        with self.fake_mode or contextlib.nullcontext():
            result = super().run_node(n)
        found = False

        def extract(value: Any) -> Any:
            nonlocal found
            if isinstance(value, Tensor):
                found = True
                return _extract_tensor_metadata(value)
            return value

        meta = map_aggregate(result, extract)
        if found:
            n.meta["tensor_meta"] = meta
        if self.fake_mode:
            n.meta["val"] = result
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph on some arguments, and return the result."""
        if self.fake_mode is not None:
            args = tuple(self.fake_mode.from_tensor(value) if isinstance(value, Tensor) else value for value in args)
        return super().run(*args)
