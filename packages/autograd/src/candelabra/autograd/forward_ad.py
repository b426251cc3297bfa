"""Forward-mode differentiation: tensors that carry a tangent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from . import functorch_layers
from .transforms.jvp_layer import JvpLayer, is_forward_enabled, set_forward_enabled

if TYPE_CHECKING:
    from candelabra import Tensor

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class _Entered(NamedTuple):
    layer: JvpLayer
    context: Any


class _State(functorch_layers.threading.local):
    entered: _Entered | None = None


_state = _State()


class UnpackedDualTensor(NamedTuple):
    """The result of :func:`unpack_dual`: the primal, and its tangent or None."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Enter a forward-mode level; prefer :class:`dual_level`.

    :func:`exit_dual_level` leaves the level.

    Returns
    -------
    int
        The level number, always 0.

    Raises
    ------
    RuntimeError
        If a level is already active.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.autograd import forward_ad
    >>> level = forward_ad.enter_dual_level()
    >>> forward_ad.exit_dual_level(level=level)
    """
    if _state.entered is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    layer = JvpLayer(lifting=False)
    context = functorch_layers.entered(layer)
    context.__enter__()
    _state.entered = _Entered(layer, context)
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Leave the forward-mode level; dual tensors lose their tangents.

    Raises
    ------
    RuntimeError
        If no level is active, or `level` is not the active one.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.autograd import forward_ad
    >>> _ = forward_ad.enter_dual_level()
    >>> forward_ad.exit_dual_level()
    """
    if _state.entered is None or level not in (None, 0):
        number = -1 if _state.entered is None else 0
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
            if _state.entered is not None
            else f"Trying to exit a forward AD level, but none is entered (level {number})."
        )
    entered, _state.entered = _state.entered, None
    entered.context.__exit__(None, None, None)


def __getattr__(name: str) -> int:
    """Return the number of the active level for ``_current_level``, or -1."""
    if name == "_current_level":
        return -1 if _state.entered is None else 0
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class dual_level:
    """Enter a forward-mode level within the block, in which tensors may carry tangents.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(candelabra.tensor(2.0), candelabra.tensor(1.0))
    ...     forward_ad.unpack_dual(x**3)
    UnpackedDualTensor(primal=tensor(8.), tangent=tensor(12.))
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *error: object) -> None:
        exit_dual_level(level=0)


class _set_fwd_grad_enabled:
    """Turn computation of tangents on or off, until the block ends if it is used for one."""

    def __init__(self, mode: bool) -> None:
        self._before = is_forward_enabled()
        set_forward_enabled(mode)

    def __enter__(self) -> None:
        """Keep what has been set."""

    def __exit__(self, *error: object) -> None:
        set_forward_enabled(self._before)


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Return a tensor that carries a tangent.

    Results computed from it carry the directional derivative along `tangent`.

    Parameters
    ----------
    tensor
        The primal.
    tangent
        The direction, with the primal's shape, dtype and device.
    level
        The number of the active level, or None.

    Raises
    ------
    RuntimeError
        If no level is active, or shape, dtype or device of the two differ.
    ValueError
        If the dtype of one of the two is not differentiable.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(candelabra.tensor(0.0), candelabra.tensor(1.0))
    ...     forward_ad.unpack_dual(x.sin()).tangent
    tensor(1.)
    """
    if _state.entered is None or level not in (None, 0):
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for what, value in (("primal", tensor), ("tangent", tangent)):
        if not functorch_layers.differentiable(value):
            raise ValueError(
                f"Expected {what} to be floating point or complex, but got: {getattr(value, 'dtype', type(value))}"
            )
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            f"Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. Tensor "
            f"is of size {list(tensor.shape)} while the given forward gradient is of size {list(tangent.shape)}."
        )
    if tensor.dtype is not tangent.dtype:
        raise RuntimeError(
            f"Expected the tangent to have the dtype of its primal, {tensor.dtype}, but got {tangent.dtype}"
        )
    if tensor.device != tangent.device:
        raise RuntimeError(
            f"Expected the tangent to be on the device of its primal, {tensor.device}, but got {tangent.device}"
        )
    own = _state.entered.layer
    if own.owns(tensor) and own.tangent_of(tensor) is not None:
        raise RuntimeError("make_dual: the tensor has a tangent already")
    return own.dual(own.unwrap(tensor), own.unwrap(tangent))


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return the primal and the tangent of a tensor.

    The tangent is None if the tensor has none or if no level is active.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     forward_ad.unpack_dual(candelabra.ones(1)).tangent is None
    True
    """
    if _state.entered is None:
        return UnpackedDualTensor(tensor, None)
    own = _state.entered.layer
    return UnpackedDualTensor(own.unwrap(tensor), own.tangent_of(tensor))


def _is_fwd_grad_enabled() -> bool:
    return is_forward_enabled()
