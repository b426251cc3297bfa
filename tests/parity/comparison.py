"""Compare results of Candelabra with PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from translate import DEVICE, back, dtype_name

import candelabra

#: Relative and absolute tolerance by dtype, those of ``torch.testing.assert_close``.
TOLERANCES = {
    torch.float64: (1e-7, 1e-7),
    torch.complex128: (1e-7, 1e-7),
    torch.float32: (1.3e-6, 1e-5),
    torch.complex64: (1.3e-6, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float16: (1e-3, 1e-5),
}


class Difference(Exception):
    """Candelabra's result differs from PyTorch's; the message says how."""


def compare(
    theirs: Any, ours: Any, reference: Callable[[], Any], values: bool = True, where: str = "result",
    tolerance: tuple[float, float] | None = None,
) -> None:  # fmt: skip
    """Raise `Difference` unless the two results agree in structure, dtype, shape and, if `values`,
    in their values.

    Parameters
    ----------
    theirs, ours
        The results of PyTorch and Candelabra: tensors, numbers, and tuples, lists and dicts of
        them.
    reference
        Returns PyTorch's result in double precision; only called if values differ by more than the
        tolerance.
    values
        Whether to compare values.
    tolerance
        A wider relative and absolute tolerance, where the operator database sets one.
    """
    if isinstance(theirs, torch.Tensor):
        if not isinstance(ours, candelabra.Tensor):
            raise Difference(f"{where}: a {type(ours).__name__} where PyTorch gives a tensor")
        compare_tensors(theirs, ours, reference, values, where, tolerance)
    elif isinstance(theirs, (tuple, list)) and not isinstance(theirs, torch.Size):
        if not isinstance(ours, (tuple, list)):
            raise Difference(f"{where}: a {type(ours).__name__} where PyTorch gives a {type(theirs).__name__}")
        if len(theirs) != len(ours):
            raise Difference(f"{where}: {len(ours)} results where PyTorch gives {len(theirs)}")
        names, own_names = fields(theirs), fields(ours)
        if names and names != own_names:
            raise Difference(f"{where}: fields {own_names}, PyTorch {names}")
        for index, (left, right) in enumerate(zip(theirs, ours, strict=True)):
            compare(left, right, lambda index=index: reference()[index], values, f"{where}[{index}]", tolerance)
    elif isinstance(theirs, dict):
        if not isinstance(ours, dict) or set(theirs) != set(ours):
            raise Difference(f"{where}: {ours!r}, PyTorch {theirs!r}")
        for key in theirs:
            compare(theirs[key], ours[key], lambda key=key: reference()[key], values, f"{where}[{key!r}]", tolerance)
    elif isinstance(theirs, torch.Size):
        if tuple(theirs) != tuple(ours):
            raise Difference(f"{where}: {ours}, PyTorch {theirs}")
    elif isinstance(theirs, torch.dtype):
        if dtype_name(theirs) != str(ours).removeprefix("candelabra."):
            raise Difference(f"{where}: {ours}, PyTorch {theirs}")
    elif isinstance(theirs, (bool, int, float, complex)):
        same_type = type(theirs) is type(ours)
        if not same_type or (values and not same_number(theirs, ours, tolerance)):
            raise Difference(f"{where}: {ours!r} ({type(ours).__name__}), PyTorch {theirs!r}")
    elif theirs is None and ours is not None:
        raise Difference(f"{where}: {ours!r}, PyTorch None")


def fields(value: Any) -> list[str]:
    """Return the field names of a named tuple; none for a plain tuple."""
    if hasattr(value, "_fields"):
        return list(value._fields)
    if hasattr(value, "n_fields"):
        order = sorted(
            (name for name in dir(type(value)) if type(getattr(type(value), name)).__name__ == "member_descriptor"),
            key=lambda name: next(index for index, item in enumerate(value) if item is getattr(value, name)),
        )
        return order
    return []


def same_number(theirs: Any, ours: Any, tolerance: tuple[float, float] | None) -> bool:
    """Return whether two Python numbers are equal; NaN equals NaN."""
    if isinstance(theirs, (bool, int)):
        return bool(theirs == ours)
    if theirs != theirs:
        return bool(ours != ours)
    relative, absolute = tolerance or (1.3e-6, 1e-5)
    return theirs == ours or abs(theirs - ours) <= absolute + relative * abs(theirs)


def compare_tensors(
    theirs: torch.Tensor, ours: candelabra.Tensor, reference: Callable[[], Any], values: bool, where: str,
    tolerance: tuple[float, float] | None,
) -> None:  # fmt: skip
    """Compare dtype, shape and values of a tensor."""
    name = str(ours.dtype).removeprefix("candelabra.")
    if dtype_name(theirs.dtype) != name:
        raise Difference(f"{where}: dtype {name}, PyTorch {dtype_name(theirs.dtype)}")
    if tuple(theirs.shape) != tuple(ours.shape):
        raise Difference(f"{where}: shape {tuple(ours.shape)}, PyTorch {tuple(theirs.shape)}")
    if ours.device.type != candelabra.device(DEVICE).type:
        raise Difference(f"{where}: on {ours.device}, not on {DEVICE}")
    if not values or theirs.numel() == 0:
        return
    expected = theirs.detach().resolve_conj().resolve_neg()
    actual = back(ours)
    if not (expected.is_floating_point() or expected.is_complex()):
        if not torch.equal(expected, actual):
            count = int((expected != actual).sum())
            raise Difference(
                f"{where}: {count} of {expected.numel()} values differ, {first(expected, actual, expected != actual)}"
            )
        return
    relative, absolute = TOLERANCES[expected.dtype]
    if tolerance is not None:
        relative, absolute = max(relative, tolerance[0]), max(absolute, tolerance[1])
    close = torch.isclose(actual, expected, rtol=relative, atol=absolute, equal_nan=True)
    if bool(close.all()) or nearer_to_the_truth(expected, actual, reference, "gradient" in where):
        return
    raise Difference(
        f"{where}: {int((~close).sum())} of {expected.numel()} values differ, {first(expected, actual, ~close)}"
    )


def nearer_to_the_truth(theirs: torch.Tensor, ours: torch.Tensor, reference: Callable[[], Any], gradient: bool) -> bool:
    """Return whether our distance from the double-precision result is at most twice PyTorch's, plus
    a few roundings.

    Two sums in another order differ by rounding; which of them is off is decided by a third, more
    precise one. Gradients, which divide by differences of what was rounded, may be ten times as
    far.
    """
    if theirs.dtype in (torch.float64, torch.complex128):
        return False
    try:
        truth = reference()
    except Exception:  # PyTorch cannot compute this sample in double precision, so there is no reference.
        return False
    if not isinstance(truth, torch.Tensor) or truth.shape != theirs.shape:
        return False
    wide = torch.complex128 if theirs.is_complex() else torch.float64
    truth = truth.detach().resolve_conj().resolve_neg().to(theirs.dtype).to(wide)
    left, right = theirs.to(wide), ours.to(wide)
    finite = torch.isfinite(truth)
    if not bool(
        (torch.isclose(right, truth, equal_nan=True) | torch.isclose(right, left, equal_nan=True))[~finite].all()
    ):
        return False
    if not bool((torch.isfinite(right) | ~torch.isfinite(left))[finite].all()):
        return False
    scale = torch.where(finite, truth.abs(), 0).max()
    both = finite & torch.isfinite(left) & torch.isfinite(right)
    factor, roundings = (10, 100) if gradient else (2, 4)
    allowed = (
        factor * torch.where(both, (left - truth).abs(), 0).max() + roundings * torch.finfo(theirs.dtype).eps * scale
    )
    return bool(torch.where(both, (right - truth).abs(), 0).max() <= allowed)


def first(expected: torch.Tensor, actual: torch.Tensor, differs: torch.Tensor) -> str:
    """Describe the first value that differs."""
    index = tuple(torch.nonzero(differs)[0].tolist()) if differs.ndim else ()
    return f"at {list(index)} {actual[index].item()!r}, PyTorch {expected[index].item()!r}"


def aliases(result: Any, arguments: list[Any], pointer: Callable[[Any], int]) -> list[int]:
    """Return for each tensor of a result the index of the argument it shares memory with, or -1."""
    pointers = [pointer(argument) for argument in arguments]
    return [
        pointers.index(pointer(item)) if pointer(item) and pointer(item) in pointers else -1 for item in tensors(result)
    ]


def tensors(value: Any) -> list[Any]:
    """Yield all tensors of either library in a structure, in order."""
    if isinstance(value, (torch.Tensor, candelabra.Tensor)):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [item for part in value for item in tensors(part)]
    return []


def is_nan_or_zero(tensor: torch.Tensor) -> bool:
    """Return whether a gradient is all zero or NaN."""
    return not math.isnan(float(tensor.abs().sum())) and not bool(tensor.any())
