"""Arguments of collectives: checks, and tensors as engines take them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import candelabra
from candelabra import _C, Tensor

from ..groups import member, world
from ..process_group import ProcessGroup
from ..reduce_op import ReduceOp, engine_name, supports_complex

_F = TypeVar("_F", bound=Callable[..., Any])


def overridable(collective: _F) -> _F:
    """Let ``__torch_function__`` of its arguments' classes take over a collective."""
    return cast("_F", _C.OverridableFunction(collective))


def check_tensor(tensor: Any, name: str) -> None:
    """Raise TypeError unless an argument is a tensor."""
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor but got {type(tensor)} instead."
        )


def check_list(tensors: Any, name: str) -> None:
    """Raise TypeError unless an argument is a list of tensors."""
    if not isinstance(tensors, (list, tuple)) or not all(isinstance(each, Tensor) for each in tensors):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor] but got {type(tensors)} "
            "instead."
        )


def check_dtypes(tensors: Sequence[Tensor]) -> None:
    """Raise ValueError unless all tensors have one dtype."""
    if any(each.dtype is not tensors[0].dtype for each in tensors):
        found = ", ".join(sorted({str(each.dtype) for each in tensors}))
        raise ValueError(f"Invalid usage of tensors with different dtypes Found {found}")


def root(group: ProcessGroup | None, rank: int | None, group_rank: int | None, name: str) -> int:
    """Return the rank in the group that `src` or `dst`, or `group_src` or `group_dst`, stands
    for.
    """
    if rank is not None and group_rank is not None:
        raise ValueError(f"Can't specify both group_{name} and {name}")
    found = member(group)
    assert found is not None
    if group_rank is not None:
        if not 0 <= group_rank < found.size():
            raise ValueError(f"group_{name} must be between 0 and {found.size() - 1}, but got {group_rank}")
        return group_rank
    if rank is None:
        raise ValueError(f"Must specify {name} or group_{name}")
    if found is world() and not 0 <= rank < found.size():
        raise ValueError(f"{name} must be between 0 and {found.size() - 1}, but got {rank}")
    return found.place(rank)


def reduction(op: ReduceOp, tensor: Tensor, name: str) -> str:
    """Return the engine's name of a reduction of a tensor."""
    wanted = engine_name(op)
    if tensor.is_complex() and not supports_complex(op):
        raise ValueError(f"{name} does not support {op} on complex tensors")
    return wanted


def flat(tensor: Tensor) -> Tensor:
    """Return a tensor as engines take it: without autograd, contiguous, real. It is the same memory
    if the tensor is contiguous.
    """
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.is_complex():
        tensor = candelabra.view_as_real(tensor)
    return tensor if tensor.is_contiguous() else tensor.contiguous()


def write_back(results: Sequence[tuple[Tensor, Tensor]]) -> Callable[[], None] | None:
    """Return a function that copies results to where they belong, or None if they are there.

    Parameters
    ----------
    results : sequence of pairs
        The program's tensor, and what `flat` made of it.
    """
    copies = [(own, made) for own, made in results if own.numel() and own.data_ptr() != made.data_ptr()]
    if not copies:
        return None

    def copy() -> None:
        with candelabra.no_grad():
            for own, made in copies:
                target = own.detach()
                if target.is_complex() and not made.is_complex():
                    made = candelabra.view_as_complex(made)
                target.copy_(made.view(target.shape) if made.shape != target.shape else made)

    return copy
