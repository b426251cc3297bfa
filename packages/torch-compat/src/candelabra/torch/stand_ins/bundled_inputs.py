"""``torch.utils.bundled_inputs``: example inputs that are kept with a compiled program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

__all__ = [
    "InflatableArg", "augment_many_model_functions_with_bundled_inputs", "augment_model_with_bundled_inputs", "bundle_inputs",
    "bundle_large_tensor", "bundle_randn",
]  # fmt: skip


class InflatableArg(NamedTuple):
    """An input that is stored in a short form, and the program text that makes it from that."""

    value: Any
    fmt: str = "{}"
    fmt_fn: str = ""


def bundle_randn(*size: int, dtype: Any = None) -> InflatableArg:
    """Return the short form of a random tensor.

    Examples
    --------
    >>> from candelabra.torch.stand_ins.bundled_inputs import bundle_randn
    >>> bundle_randn(2, 3).fmt
    'torch.randn_like({})'
    """
    import candelabra

    return InflatableArg(candelabra.zeros(1, dtype=dtype).expand(*size), "torch.randn_like({})")


def bundle_large_tensor(t: Any) -> InflatableArg:
    """Return a tensor that is stored in full."""
    return InflatableArg(t, "{}")


def _refuse(name: str) -> Callable[..., NoReturn]:
    def refuse(*arguments: Any, **options: Any) -> NoReturn:
        raise NotImplementedError(
            f"torch.utils.bundled_inputs.{name}(): inputs are kept with programs of TorchScript, and there are none on Candelabra; save the "
            "inputs with torch.save"
        )

    refuse.__name__ = name
    return refuse


bundle_inputs = _refuse("bundle_inputs")
augment_model_with_bundled_inputs = _refuse("augment_model_with_bundled_inputs")
augment_many_model_functions_with_bundled_inputs = _refuse("augment_many_model_functions_with_bundled_inputs")
