"""`Distribution`, the base class: shapes, parameter validation, sampling and densities."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import _C, Size, Tensor, no_grad

from . import constraints
from .utils import is_lazy


class Distribution:
    """Base class of distributions.

    Parameters
    ----------
    batch_shape
        Shape of the batch of distributions. Each element has its own parameters.
    event_shape
        Shape of one draw from a single distribution.
    validate_args
        Whether to validate parameters and values. Defaults to the value set by
        `set_default_validate_args`.

    Raises
    ------
    ValueError
        If a parameter violates its constraint.
    """

    has_rsample: bool = False
    has_enumerate_support: bool = False
    _validate_args: bool = __debug__
    #: Attributes that `expand` expands, with the number of rightmost dimensions that it keeps.
    _expandable: dict[str, int]

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions created from now on validate parameters and values.

        Examples
        --------
        >>> from candelabra.distributions import Distribution
        >>> Distribution.set_default_validate_args(True)
        """
        if value not in [True, False]:
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape: Any = Size(), event_shape: Any = Size(), validate_args: bool | None = None) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            arg_constraints = {}
            _C.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize the distribution with "
                "`validate_args=False` to turn off validation."
            )
        for name, constraint in arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and is_lazy(type(self), name):
                continue  # derived from a parameter that is validated
            value = getattr(self, name)
            if not bool(constraint.check(value).all()):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution {self!r} to satisfy "
                    f"the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    # ---- shapes

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one draw."""
        return self._event_shape

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """Return a copy with a larger batch shape, without copying memory.

        Examples
        --------
        >>> import candelabra
        >>> from candelabra.distributions import Normal
        >>> Normal(0.0, 1.0).expand((2, 3)).batch_shape
        candelabra.Size([2, 3])
        """
        owner: Any = next((base for base in type(self).__mro__ if "_expandable" in base.__dict__), None)
        if owner is None:
            raise NotImplementedError(f"{type(self).__name__} defines no expand()")
        new = self._get_checked_instance(owner, _instance)
        batch_shape = Size(batch_shape)
        for name, dims in owner._expandable.items():
            value = self.__dict__.get(name)
            if isinstance(value, Tensor):
                new.__dict__[name] = value.expand(batch_shape + value.shape[value.ndim - dims :])
        self._expand_rest(new, batch_shape)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        """Set attributes of an expanded copy that are not parameter tensors."""

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        if _instance is None and type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also define a custom "
                ".expand() method."
            )
        return type(self).__new__(type(self)) if _instance is None else _instance

    def _extended_shape(self, sample_shape: Any = Size()) -> Size:
        """Return the shape of draws: ``sample_shape + batch_shape + event_shape``."""
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    # ---- properties

    @property
    def arg_constraints(self) -> dict[str, Any]:
        """The constraints of the parameters, by name."""
        raise NotImplementedError(f"{type(self).__name__} defines no arg_constraints")

    @property
    def support(self) -> Any:
        """The constraint on draws."""
        raise NotImplementedError(f"{type(self).__name__} defines no support")

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError(f"{type(self).__name__} defines no mean")

    @property
    def mode(self) -> Tensor:
        """The mode: a value with the largest density."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError(f"{type(self).__name__} defines no variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    # ---- draws

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        """Draw samples without gradients.

        Examples
        --------
        >>> import candelabra
        >>> from candelabra.distributions import Normal
        >>> Normal(candelabra.zeros(3), 1.0).sample((2,)).shape
        candelabra.Size([2, 3])
        """
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        """Draw reparameterized samples, which are differentiable in the parameters."""
        raise NotImplementedError(f"{type(self).__name__} has no reparameterized draws: has_rsample is False")

    def sample_n(self, n: int) -> Tensor:
        """Draw `n` samples; deprecated, use ``sample((n,))``."""
        _C.warn("sample_n will be deprecated. Use .sample((n,)) instead")
        return self.sample(Size((n,)))

    # ---- densities

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log density, or log probability, at `value`."""
        raise NotImplementedError(f"{type(self).__name__} defines no log_prob()")

    def cdf(self, value: Tensor) -> Tensor:
        """Return the cumulative distribution function at `value`."""
        raise NotImplementedError(f"{type(self).__name__} defines no cdf()")

    def icdf(self, value: Tensor) -> Tensor:
        """Return the inverse of the cumulative distribution function at `value`."""
        raise NotImplementedError(f"{type(self).__name__} defines no icdf()")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values of a discrete distribution, along the first dimension."""
        raise NotImplementedError(f"{type(self).__name__} defines no enumerate_support()")

    def entropy(self) -> Tensor:
        """Return the entropy in nats."""
        raise NotImplementedError(f"{type(self).__name__} defines no entropy()")

    def perplexity(self) -> Tensor:
        """Return the exponential of the entropy."""
        return candelabra.exp(self.entropy())

    def _enumerated(self, values: Tensor, expand: bool) -> Tensor:
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    def _validate_sample(self, value: Any) -> None:
        """Raise ValueError if `value` is no tensor, or its shape or an element is invalid."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        event_start = value.ndim - len(self._event_shape)
        if tuple(value.shape[max(event_start, 0) :]) != tuple(self._event_shape):
            raise ValueError(
                f"The right-most size of value must match event_shape: {tuple(value.shape)} vs {tuple(self._event_shape)}."
            )
        expected = self._batch_shape + self._event_shape
        for given, wanted in zip(reversed(value.shape), reversed(expected), strict=False):
            if given != 1 and wanted != 1 and given != wanted:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {tuple(value.shape)} vs {tuple(expected)}."
                )
        try:
            support = self.support
        except NotImplementedError:
            _C.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the distribution with "
                "`validate_args=False` to turn off validation."
            )
            return
        if not bool(support.check(value).all()):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support ({support!r}) of "
                f"the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        parts = [
            f"{name}: {value if value.numel() == 1 else value.size()}"
            for name in names
            if isinstance(value := self.__dict__[name], Tensor)
        ]
        return type(self).__name__ + "(" + ", ".join(parts) + ")"


__all__ = ["Distribution"]
