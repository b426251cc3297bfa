"""Checkpoints that keep the results of some operators, and compute the others again."""

from __future__ import annotations

import enum
import functools
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

import candelabra
import candelabra.library
from candelabra import Tensor, pytree
from candelabra.library.aten import OpOverload, OpOverloadPacket
from candelabra.python_dispatch import TorchDispatchMode

Policy = Callable[..., Any]


class CheckpointPolicy(enum.Enum):
    """What becomes of an operator's result between the computation and the recomputation.

    ``MUST_SAVE`` and ``PREFER_SAVE`` keep it, ``MUST_RECOMPUTE`` and ``PREFER_RECOMPUTE`` compute
    it again. Without a compiler, which may decide otherwise on preferences, the two kinds are one.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3


class SelectiveCheckpointContext:
    """What a policy is told of a call besides the operator.

    Parameters
    ----------
    is_recompute
        Whether it is a call of the recomputation.
    """

    def __init__(self, *, is_recompute: bool) -> None:
        self.is_recompute = is_recompute


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Policy | Sequence[Any], allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """Return the contexts of a computation and its recomputation, for `checkpoint`'s `context_fn`.

    Parameters
    ----------
    policy_fn_or_list
        A list of operators such as ``candelabra.ops.aten.mm.default`` whose results are kept, or a
        function ``policy(context, operator, *args, **kwargs)`` that returns a `CheckpointPolicy`,
        or True to keep the result.
    allow_cache_entry_mutation
        Whether kept results may be changed in place before they are used again.

    Raises
    ------
    TypeError
        If it is neither a list nor a function.
    ValueError
        If an element of the list is no operator.

    Examples
    --------
    >>> import candelabra, functools
    >>> from candelabra.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> x = candelabra.ones(2, 2, requires_grad=True)
    >>> keep = functools.partial(create_selective_checkpoint_contexts, [candelabra.ops.aten.mm.default])
    >>> checkpoint(lambda x: (x @ x).sin().sum(), x, use_reentrant=False, context_fn=keep).backward()
    >>> bool(x.grad.isfinite().all())
    True
    """
    if isinstance(policy_fn_or_list, list | tuple):
        for operator in policy_fn_or_list:
            _check_overload(operator)
        policy: Policy = functools.partial(_is_listed, {_name(operator) for operator in policy_fn_or_list})
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    kept: dict[str, deque[Any]] = defaultdict(deque)
    return _Keeping(policy, kept), _Reusing(policy, kept, allow_cache_entry_mutation)


def _check_overload(operator: Any) -> None:
    if isinstance(operator, (OpOverload, candelabra._C.Operator)):
        return
    message = f"Expected op in `op_list` to be an OpOverload but got: {operator} of type {type(operator)}."
    if isinstance(operator, OpOverloadPacket):
        message += " Please update the OpOverloadPacket to a specific OpOverload: torch.ops.aten.add to torch.ops.aten.add.Tensor."
    raise ValueError(message)


def _name(operator: Any) -> str:
    """Return the name of an operator, an overload or an overload packet."""
    packet = getattr(operator, "overloadpacket", operator)
    return str(getattr(packet, "name", None) or packet.__name__) if not hasattr(packet, "op") else str(packet.__name__)


def _is_listed(names: set[str], context: Any, operator: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
    return CheckpointPolicy.MUST_SAVE if _name(operator) in names else CheckpointPolicy.PREFER_RECOMPUTE


class _Mode(TorchDispatchMode):
    is_recompute = False

    def __init__(self, policy: Policy, kept: dict[str, deque[Any]]) -> None:
        super().__init__()
        self.policy = policy
        self.kept = kept

    def keeps(self, operator: Any, args: Any, kwargs: Any) -> bool:
        """Return whether the result of a call is kept."""
        context = SelectiveCheckpointContext(is_recompute=self.is_recompute)
        found = self.policy(context, operator, *args, **kwargs)
        return found is True or found in (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)


class _Keeping(_Mode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = _name(func)
        if self.keeps(func, args, kwargs or {}):
            entries = pytree.tree_map(lambda x: (x.detach(), x._version) if isinstance(x, Tensor) else (x, 0), result)
            self.kept[name].append(entries)
        return result


class _Reusing(_Mode):
    is_recompute = True

    def __init__(self, policy: Policy, kept: dict[str, deque[Any]], mutable: bool) -> None:
        super().__init__(policy, kept)
        self.mutable = mutable

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = _name(func)
        if not self.keeps(func, args, kwargs or {}):
            return func(*args, **(kwargs or {}))
        if name in self.kept and not self.kept[name]:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under selective "
                "activation checkpoint."
            )
        if name not in self.kept:
            raise RuntimeError(
                f"{name} encountered during backward, but not found in storage: the recomputation differs"
            )
        entries = self.kept[name].popleft()
        return pytree.tree_map(self._taken, entries, is_leaf=_is_entry)

    def _taken(self, entry: Any) -> Any:
        value, version = entry
        if isinstance(value, Tensor) and value._version != version and not self.mutable:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated; allow_cache_entry_mutation=True permits it"
            )
        return value


def _is_entry(value: Any) -> bool:
    return (
        isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], int) and not isinstance(value[0], tuple)
    )
