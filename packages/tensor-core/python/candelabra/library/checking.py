"""opcheck: check a custom operator against its schema, its fake function and its gradient."""

from __future__ import annotations

import importlib
from typing import Any

from candelabra import _C

from .definitions import context, definition_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .definitions import CustomOpDef

#: The checks of `opcheck`, under PyTorch's names.
TESTS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


class OpCheckError(RuntimeError):
    """A custom operator does not behave as registered."""


def _tensors(value: Any) -> Iterator[_C.Tensor]:
    if isinstance(value, _C.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for entry in value:
            yield from _tensors(entry)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _cloned(value: Any) -> Any:
    """Return a copy of the values that requires grad if the original does."""
    if isinstance(value, _C.Tensor):
        made = value.detach().clone()
        return made.requires_grad_() if value.requires_grad else made
    if isinstance(value, (list, tuple)):
        return type(value)(_cloned(entry) for entry in value)
    if isinstance(value, dict):
        return {name: _cloned(entry) for name, entry in value.items()}
    return value


def _same(a: Any, b: Any) -> bool:
    return all(
        one.shape == other.shape and one.dtype == other.dtype and bool(_equal(one, other))
        for one, other in zip(_tensors(a), _tensors(b), strict=True)
    )


def _equal(a: Any, b: Any) -> bool:
    if not (a.is_floating_point() or a.is_complex()):
        return bool((a == b).all())
    return bool(((a == b) | (a.isnan() & b.isnan())).all())


def _test_schema(definition: CustomOpDef, arguments: tuple[Any, ...], keywords: dict[str, Any], _: Any) -> None:
    own, own_keywords = _cloned(arguments), _cloned(keywords)
    with _without_gradients():
        definition(*own, **own_keywords)
    parameters = {one.name: one for one in definition._parsed.parameters}
    named = [
        *zip(parameters, zip(arguments, own, strict=True)),
        *((name, (keywords[name], own_keywords[name])) for name in keywords),
    ]
    for name, (before, after) in named:
        if not parameters[name].mutated and not _same(before, after):
            raise OpCheckError(
                f"opcheck(op, ...): test_schema failed: {definition._qualname} changed argument '{name}', which its schema does not say: "
                f"{definition._opoverload.schema}"
            )


class _without_gradients:
    def __enter__(self) -> None:
        self._before = _C.set_grad_enabled(False)

    def __exit__(self, *error: object) -> None:
        _C.set_grad_enabled(self._before)


def _needs_gradient(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    return any(tensor.requires_grad for tensor in _tensors([arguments, keywords]))


def _test_autograd_registration(
    definition: CustomOpDef, arguments: tuple[Any, ...], keywords: dict[str, Any], _: Any
) -> None:
    if (
        not _needs_gradient(arguments, keywords)
        or definition._has_autograd
        or definition._opoverload.composite is not None
    ):
        return
    raise OpCheckError(
        f"opcheck(op, ...): test_autograd_registration failed: an argument requires grad, but {definition._qualname} has no gradient; "
        "candelabra.library.register_autograd() gives it one"
    )


def _test_faketensor(definition: CustomOpDef, arguments: tuple[Any, ...], keywords: dict[str, Any], _: Any) -> None:
    if definition._fake is None:
        if definition._opoverload.composite is not None or not definition._parsed.results:
            return
        raise OpCheckError(
            f"opcheck(op, ...): test_faketensor failed: there was no fake impl registered for {definition!r}; register_fake() takes a function "
            "that describes the results"
        )
    with _without_gradients():
        real = definition(*_cloned(arguments), **_cloned(keywords))
        context.active, context.asked = True, False
        try:
            described = definition._fake(*_cloned(arguments), **_cloned(keywords))
        finally:
            context.active = False
    dynamic = context.asked
    of_real, of_fake = [[value] if not isinstance(value, (list, tuple)) else list(value) for value in (real, described)]
    if len(of_real) != len(of_fake):
        raise OpCheckError(
            f"opcheck(op, ...): test_faketensor failed: {definition._qualname} has {len(of_real)} results, but its description {len(of_fake)}"
        )
    for number, (one, other) in enumerate(zip(of_real, of_fake, strict=True)):
        _compare(definition, number, one, other, dynamic)


def _compare(definition: CustomOpDef, number: int, real: Any, described: Any, dynamic: bool) -> None:
    pairs: list[tuple[str, Any, Any]]
    if isinstance(described, _C.dtype) and isinstance(real, _C.Tensor):  # the sizes depend on values
        pairs = [("dtype", real.dtype, described)]
    elif isinstance(real, _C.Tensor) and isinstance(described, _C.Tensor):
        pairs = [("dtype", real.dtype, described.dtype), ("device", real.device, described.device)]
        if dynamic:
            pairs.append(("number of dimensions", real.ndim, described.ndim))
        else:
            pairs += [
                ("sizes", tuple(real.shape), tuple(described.shape)),
                ("strides", real.stride(), described.stride()),
            ]
    else:
        pairs = [("type", type(real).__name__, type(described).__name__)]
    for what, one, other in pairs:
        if one != other:
            raise OpCheckError(
                f"opcheck(op, ...): test_faketensor failed: result {number} of {definition._qualname} has the {what} {one}, but its "
                f"description says {other}"
            )


def _test_transformed(
    definition: CustomOpDef, arguments: tuple[Any, ...], keywords: dict[str, Any], tolerance: tuple[float, float]
) -> None:
    """Check that values and gradients are the same within function transforms, and with
    non-contiguous arguments.
    """
    with _without_gradients():
        expected = definition(*_cloned(arguments), **_cloned(keywords))
        spread = tuple(_spread(argument) for argument in arguments)
        got = definition(*spread, **_cloned(keywords))
    for one, other in zip(_tensors(expected), _tensors(got), strict=True):
        if not _close(one, other, tolerance):
            raise OpCheckError(
                f"opcheck(op, ...): test_aot_dispatch_dynamic failed: {definition._qualname} gives other values for arguments of other strides"
            )
    if not _needs_gradient(arguments, keywords) or not definition._parsed.is_functional:
        return
    # By name: this package does not import candelabra-autograd.
    autograd: Any = importlib.import_module("candelabra.autograd")
    func: Any = importlib.import_module("candelabra.func")

    places = [at for at, value in enumerate(arguments) if isinstance(value, _C.Tensor) and value.requires_grad]
    if not places:
        return

    def of(*wanted: Any) -> Any:
        every = list(arguments)
        for at, value in zip(places, wanted, strict=True):
            every[at] = value
        made = definition(*every, **keywords)
        return tuple(part for part in _tensors(made) if part.is_floating_point() or part.is_complex())

    own = [_cloned(arguments[at]) for at in places]
    results = of(*own)
    ones = tuple(part.detach().new_ones(part.shape) for part in results)
    on_tape = autograd.grad(results, own, ones, allow_unused=True)
    _, pull = func.vjp(of, *(value.detach() for value in own))
    transformed = pull(ones)
    for at, of_tape, other in zip(places, on_tape, transformed, strict=True):
        first = other.new_zeros(other.shape) if of_tape is None else of_tape
        if not _close(first, other, tolerance):
            raise OpCheckError(
                f"opcheck(op, ...): test_aot_dispatch_dynamic failed: the gradient of argument {at} of {definition._qualname} is another within "
                "candelabra.func.vjp"
            )


def _spread(value: Any) -> Any:
    """Return the same values in memory with gaps."""
    if not isinstance(value, _C.Tensor) or value.ndim == 0 or value.numel() == 0:
        return _cloned(value)
    twice = value.new_zeros((*value.shape, 2))
    twice.select(-1, 0).copy_(value.detach())
    return twice.select(-1, 0)


def _close(a: Any, b: Any, tolerance: tuple[float, float]) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return bool(a.isclose(b, rtol=tolerance[0], atol=tolerance[1], equal_nan=True).all())


_RUNS: dict[str, Callable[..., None]] = dict(
    zip(TESTS, (_test_schema, _test_autograd_registration, _test_faketensor, _test_transformed), strict=True)
)


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = TESTS,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:
    """Check with an example call that a custom operator behaves as registered.

    Parameters
    ----------
    op
        The operator or its definition.
    args, kwargs
        The arguments of the call.
    test_utils
        The checks to run: ``"test_schema"`` (the schema names every mutated argument, and results
        do not alias arguments), ``"test_autograd_registration"`` (a gradient is registered if one
        is required), ``"test_faketensor"`` (the fake function describes the results) and
        ``"test_aot_dispatch_dynamic"`` (values do not depend on strides, and gradients are the same
        within transforms).
    raise_exception
        Whether to raise the first failure.
    atol, rtol
        Tolerances of the last check.

    Returns
    -------
    dict
        For each check, ``"SUCCESS"`` or the exception.

    Raises
    ------
    OpCheckError
        If a check fails, and `raise_exception` is set.

    Notes ----- `candelabra.autograd.gradcheck` checks the values of gradients.

    Examples
    --------
    >>> import candelabra
    >>> @candelabra.library.custom_op("docs::negate", mutates_args=())
    ... def negate(x: candelabra.Tensor) -> candelabra.Tensor:
    ...     return -x
    >>> candelabra.library.opcheck(negate, (candelabra.ones(2),), test_utils="test_schema")
    {'test_schema': 'SUCCESS'}
    """
    definition = definition_of(op)
    names = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    unknown = set(names) - set(TESTS)
    if unknown:
        raise ValueError(f"opcheck(): there is no check {sorted(unknown)[0]!r}; there are {', '.join(TESTS)}")
    if (atol is None) != (rtol is None):
        raise ValueError("opcheck(): atol and rtol must both be given, or neither")
    tolerance = (1e-5 if rtol is None else rtol, 1e-6 if atol is None else atol)
    made: dict[str, Any] = {}
    for name in names:
        try:
            _RUNS[name](definition, tuple(args), dict(kwargs or {}), tolerance)
            made[name] = "SUCCESS"
        except Exception as error:
            if not raise_exception:
                made[name] = error
                continue
            if isinstance(error, OpCheckError):
                raise
            raise OpCheckError(f"opcheck(op, ...): {name} failed with {type(error).__name__}: {error}") from error
    return made
