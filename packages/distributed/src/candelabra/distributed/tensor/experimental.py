"""What PyTorch keeps in ``torch.distributed.tensor.experimental``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from candelabra import Tensor
from candelabra.pytree import tree_flatten, tree_unflatten

from ..device_mesh import DeviceMesh
from .dispatch import implicit_replication
from .dtensor import DTensor
from .placements import Placement

__all__ = ["context_parallel", "implicit_replication", "local_map", "register_sharding"]

_Placements = Sequence[Placement] | None


def local_map(
    func: Callable[..., Any] | None = None,
    out_placements: _Placements | tuple[_Placements, ...] = None,
    in_placements: tuple[_Placements, ...] | None = None,
    in_grad_placements: tuple[_Placements, ...] | None = None,
    device_mesh: DeviceMesh | None = None,
    *,
    redistribute_inputs: bool = False,
) -> Callable[..., Any]:
    """Return a function of distributed tensors that calls one of plain tensors with their parts.

    Parameters
    ----------
    func : callable, optional
        Without it, a decorator is returned.
    out_placements : sequence of Placement, or tuple of them
        Of the results; a tuple has one entry for each, None for what is no tensor.
    in_placements : tuple, optional
        Those that the arguments must have; None for what is no tensor.
    in_grad_placements : tuple, optional
        Those of the gradients of the arguments' parts.
    device_mesh : DeviceMesh, optional
        Of the results; by default that of the first distributed argument.
    redistribute_inputs : bool
        Move arguments that have other placements; otherwise they raise ValueError.

    Examples
    --------
    >>> import candelabra, candelabra.distributed as dist
    >>> from candelabra.distributed.device_mesh import init_device_mesh
    >>> from candelabra.distributed.tensor import Shard, distribute_tensor
    >>> from candelabra.distributed.tensor.experimental import local_map
    >>> dist.init_process_group("fake", rank=0, world_size=2)
    >>> x = distribute_tensor(candelabra.ones(4), init_device_mesh("cpu", (2,)), [Shard(0)])
    >>> local_map(lambda part: part * part.numel(), out_placements=[Shard(0)])(x).to_local()
    tensor([2., 2.])
    >>> dist.destroy_process_group()
    """
    if func is None:
        return functools.partial(
            local_map,
            out_placements=out_placements,
            in_placements=in_placements,
            in_grad_placements=in_grad_placements,
            device_mesh=device_mesh,
            redistribute_inputs=redistribute_inputs,
        )
    of_results = out_placements if isinstance(out_placements, tuple) else (out_placements,)
    inputs = _Inputs(in_placements, in_grad_placements, redistribute_inputs)

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        found, structure = tree_flatten(args)
        local = [inputs.local(number, each) for number, each in enumerate(inputs.checked(found))]
        result = func(*tree_unflatten(local, structure), **kwargs)
        mesh = next((each.device_mesh for each in found if isinstance(each, DTensor)), None)
        return result if mesh is None else _distributed(result, device_mesh or mesh, of_results)

    return call


class _Inputs:
    """What arguments of `local_map` must be, by their number."""

    def __init__(self, placements: Sequence[_Placements] | None, of_gradients: Any, moves: bool) -> None:
        self._placements, self._of_gradients, self._moves = placements, of_gradients, moves

    def checked(self, found: list[Any]) -> list[Any]:
        """Return the arguments, if there are as many as placements."""
        if self._placements is not None and len(self._placements) != len(found):
            raise AssertionError(
                f"in_placements length {len(self._placements)} does not match the number of input args {len(found)}!"
            )
        return found

    def local(self, number: int, given: Any) -> Any:
        """Return what an argument is on this rank."""
        wanted = None if self._placements is None else self._placements[number]
        if not isinstance(given, DTensor):
            if wanted is not None and not isinstance(given, Tensor):
                raise AssertionError(f"Non-Tensor input {given} expects None placements but received {wanted}!")
            return given
        if self._placements is not None:
            if wanted is None:
                raise AssertionError(f"DTensor input {given} expects placements but received {wanted}!")
            if given.placements != tuple(wanted):
                if not self._moves:
                    raise ValueError(
                        f"arg {given} in local_map has a mismatched placements: arg placements is {given.placements} but "
                        f"the input placements is {tuple(wanted)}! If redistribute_inputs is wanted, set "
                        "redistribute_inputs=True to local_map."
                    )
                given = given.redistribute(placements=tuple(wanted))
        if self._of_gradients is None:
            return given.to_local()
        of_gradient = self._of_gradients[number]
        if of_gradient is None:
            raise AssertionError(f"DTensor input {given} expects in grad placements but received {of_gradient}!")
        return given.to_local(grad_placements=tuple(of_gradient))


def _distributed(result: Any, mesh: DeviceMesh, placements: tuple[Any, ...]) -> Any:
    """Return a result with distributed tensors made of this rank's parts."""
    found, structure = tree_flatten(result)
    if len(found) != len(placements):
        raise AssertionError(
            "local_map requires one PlacementType be provided for each output value, "
            f"received {len(placements)} out_placements but {len(found)} is expected!"
        )
    made = []
    for each, wanted in zip(found, placements, strict=True):
        if isinstance(each, DTensor):
            raise AssertionError(f"torch.Tensor output expected but received {type(each)}: {each}")
        if not isinstance(each, Tensor) and wanted is not None:
            raise AssertionError(f"Non-tensor output {each} expects None placements but received {wanted}!")
        made.append(DTensor.from_local(each, mesh, wanted, run_check=False) if isinstance(each, Tensor) else each)
    return tree_unflatten(made, structure)


def context_parallel(
    mesh: DeviceMesh, *, buffers: Any = None, buffer_seq_dims: Any = None, no_restore_buffers: Any = None
) -> NoReturn:
    """Raise NotImplementedError: attention along a sharded sequence is not here."""
    raise NotImplementedError(
        "context_parallel: attention along a sharded sequence is not supported; shard heads by tensor.parallel, or the batch"
    )


def register_sharding(op: Any) -> NoReturn:
    """Raise NotImplementedError: rules for other operators are not taken."""
    raise NotImplementedError(
        "register_sharding: rules for other operators are not taken; compute on the parts by local_map"
    )
