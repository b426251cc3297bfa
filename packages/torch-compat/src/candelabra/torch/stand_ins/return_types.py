"""``torch.return_types``: results of calls with ``out=`` are of the types of the others."""

from __future__ import annotations

from typing import Any

from candelabra import pytree, return_types
from candelabra.pytree.named_tuples import is_namedtuple_class, is_structseq_class

#: The types of the results with ``out=``, by PyTorch's names.
_WITH_OUT = {
    f"{name}_out": value
    for name, value in vars(return_types).items()
    if is_namedtuple_class(value) or is_structseq_class(value)
}
all_return_types = [*dict.fromkeys(_WITH_OUT.values())]

__all__ = ["all_return_types", "pytree_register_structseq", *_WITH_OUT]
globals().update(_WITH_OUT)


def pytree_register_structseq(cls: Any) -> None:
    """Register a type of named results as a container, for `candelabra.pytree`."""
    pytree.register_pytree_node(
        cls,
        lambda values: (list(values), None),
        lambda values, _: cls(values),
        flatten_with_keys_fn=lambda values: ([(pytree.SequenceKey(i), v) for i, v in enumerate(values)], None),
    )
