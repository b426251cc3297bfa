"""``torch._dynamo``: names of its modules."""

from __future__ import annotations

__all__ = ["TorchDynamoException", "TransformGetItemToIndex", "Unsupported", "is_compile_supported"]


class TorchDynamoException(RuntimeError):
    """What PyTorch's compiler raises."""


class Unsupported(TorchDynamoException):
    """What PyTorch's compiler raises for programs that it cannot compile."""


def is_compile_supported(device_type: str) -> bool:
    """Return False: programs are not compiled by PyTorch's compiler."""
    return False


class TransformGetItemToIndex:
    """A context in which tensors of one integer index without being read.

    In PyTorch, vmap needs it. Here vmap has a rule for such indices, so that nothing is changed.
    """

    def __enter__(self) -> TransformGetItemToIndex:
        return self

    def __exit__(self, *error: object) -> None:
        """Do nothing."""
