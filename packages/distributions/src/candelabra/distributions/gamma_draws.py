"""Draws from gamma distributions, with gradients: what Gamma, Beta, Dirichlet, StudentT and others
are drawn with.

Draws come from the rejection method of Marsaglia and Tsang, "A simple method for generating gamma
variables", 2000, all elements at once. Their gradients come from implicit differentiation: a draw z
of shape a lies at the same probability ``F(z; a)`` when a changes, so that ``dz/da = -(dF/da) /
(dF/dz)`` (Figurnov, Mohamed and Mnih, "Implicit reparameterization gradients", 2018). Everything is
done with logarithms, as small shapes have draws too small for any float, and in float64.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import candelabra
from candelabra import Tensor, no_grad


def log_gamma_draw(concentration: Tensor) -> Tensor:
    """Draw the logarithms of gamma variables of rate 1, one for each element of `concentration`;
    gradients go back to it.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions.gamma_draws import log_gamma_draw
    >>> bool(log_gamma_draw(candelabra.full((100,), 1e-4)).isfinite().all())
    True
    """
    # Tensors of a transformation (candelabra.func) do not show what is wanted of them: it asks the
    # function's rules.
    transformed = getattr(concentration, "_level", None) is not None
    if transformed or (concentration.requires_grad and candelabra.is_grad_enabled()):
        result: Tensor = _recorded()(concentration)
        return result
    return _draw(concentration).to(concentration.dtype)


def _draw(concentration: Tensor) -> Tensor:
    with no_grad():
        shape = concentration.detach().to(candelabra.float64).reshape(-1)
        # Shapes below 1 are drawn one higher, and made smaller by a uniform draw's power (Stuart's
        # theorem).
        small = shape < 1
        d = candelabra.where(small, shape + 1, shape) - 1 / 3
        result, accepted = _attempt(d)
        places = (~accepted).nonzero().squeeze(-1)
        while places.numel():
            again, accepted = _attempt(d[places])
            result[places] = again
            places = places[~accepted]
        u = 1 - candelabra.rand(d.shape, dtype=d.dtype, device=d.device)  # never 0
        result = candelabra.where(small, result + u.log() / shape, result)
        return result.reshape(concentration.shape)


def _attempt(d: Tensor) -> tuple[Tensor, Tensor]:
    """One try of Marsaglia and Tsang's method: logarithms of draws of shape ``d + 1/3``, and where
    they are good.
    """
    x = candelabra.randn(d.shape, dtype=d.dtype, device=d.device)
    root = 1 + x / (9 * d).sqrt()
    v = root * root * root
    log_v = v.clamp(min=1e-300).log()
    u = candelabra.rand(d.shape, dtype=d.dtype, device=d.device)
    good = (v > 0) & (u.log() < 0.5 * x * x + d * (1 - v + log_v))
    # NaN has no draw: it is not looked for forever.
    return d.log() + log_v, good | d.isnan()


@cache
def _recorded() -> Any:
    """The draw as a function of the tape; made when it is first needed, as drawing alone does
    without autograd.
    """
    from candelabra.autograd import Function
    from candelabra.autograd.function import once_differentiable

    class Slope(Function):
        """Element by element, so that a batch of vmap is more elements."""

        @staticmethod
        def forward(a: Tensor, log_z: Tensor) -> Tensor:
            return log_gamma_slope(a, log_z)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
            """Keep nothing: there is no formula for what follows."""

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            raise RuntimeError("draws of gamma variables can be differentiated once, not twice")

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Tensor:
            raise RuntimeError("draws of gamma variables can be differentiated once, not twice")

        @staticmethod
        def vmap(info: Any, in_dims: tuple[int | None, ...], *arguments: Tensor) -> tuple[Tensor, int]:
            moved = [
                x.unsqueeze(0) if dim is None else x.movedim(dim, 0) for x, dim in zip(arguments, in_dims, strict=True)
            ]
            return Slope.apply(*candelabra.broadcast_tensors(*moved)), 0

    def slope_of(ctx: Any, like: Tensor) -> Tensor:
        concentration, log_z = ctx.saved_tensors
        slope: Tensor = Slope.apply(concentration.to(candelabra.float64), log_z.to(candelabra.float64))
        return slope.to(like.dtype)

    class LogGammaDraw(Function):
        @staticmethod
        def forward(concentration: Tensor) -> Tensor:
            return _draw(concentration).to(concentration.dtype)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
            ctx.save_for_backward(*inputs, output)
            ctx.save_for_forward(*inputs, output)

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            return grad * slope_of(ctx, grad)

        @staticmethod
        def jvp(ctx: Any, tangent: Tensor) -> Tensor:
            return tangent * slope_of(ctx, tangent)

        @staticmethod
        def vmap(info: Any, in_dims: tuple[int | None, ...], *arguments: Tensor) -> tuple[Tensor, int]:
            if info.randomness != "different":
                raise RuntimeError(
                    f"vmap: gamma variables are drawn within vmap with randomness='{info.randomness}': each entry has draws of its own only "
                    "with randomness='different'"
                )
            (concentration,), (dim,) = arguments, in_dims
            assert dim is not None
            return LogGammaDraw.apply(concentration.movedim(dim, 0)), 0

    return LogGammaDraw.apply


def log_gamma_slope(a: Tensor, log_z: Tensor) -> Tensor:
    """How ``log z`` changes with the shape `a` when z stays at the same probability of the gamma
    distribution; float64.

    Notes
    -----
    With P the regularized incomplete gamma function and p its density, ``d log z / da = -(dP/da) /
    (z p)``. Below ``a + 1``, for a up to 30, the series ``P = z^a e^-z / Gamma(a + 1) * sum of z^n
    / ((a + 1) ... (a + n))`` is differentiated term by term. Elsewhere ``dP/da`` is an integral of
    ``(log t - psi(a)) p(t)`` from 0 to z or, with the other sign, from z on; with ``t = z e^-s`` or
    ``t = z e^s`` it is a smooth one that decays, and a Gauss–Legendre rule of 48 points has all
    digits that matter.
    """
    with no_grad():
        shape, a, log_z = a.shape, a.reshape(-1), log_z.reshape(-1)
        z = log_z.exp()
        series = (a <= 30) & (z <= a + 1)
        slope = candelabra.empty_like(a)
        for places, rule in ((series.nonzero(), _slope_by_series), ((~series).nonzero(), _slope_by_integral)):
            chosen = places.reshape(-1)
            if chosen.numel():
                slope[chosen] = rule(a[chosen], z[chosen], log_z[chosen])
        return slope.reshape(shape)


def _slope_by_series(a: Tensor, z: Tensor, log_z: Tensor) -> Tensor:
    term, harmonic = candelabra.ones_like(a), candelabra.zeros_like(a)
    total, weighted = term, harmonic
    for n in range(1, 120):
        term = term * z / (a + n)
        harmonic = harmonic + 1 / (a + n)
        total = total + term
        weighted = weighted + term * harmonic
        if n % 8 == 0 and bool((term * harmonic <= 1e-16 * weighted).all()):
            break
    return (weighted - total * (log_z - candelabra.digamma(a + 1))) / a


def _slope_by_integral(a: Tensor, z: Tensor, log_z: Tensor) -> Tensor:
    """The integral over s of ``side * (log z - psi(a) + side * s) * exp(side * a * s - z *
    (exp(side * s) - 1))``, side 1 from a on, else -1.
    """
    side = candelabra.where(z > a, 1.0, -1.0).to(a.dtype)
    gap = (z - a).abs()
    # Where the exponent, about -(gap s + z s^2 / 2), has reached -40; towards 0 it falls a little
    # slower.
    reach = 1.5 * 80 / (gap + (gap * gap + 80 * z).sqrt())
    middle = log_z - candelabra.digamma(a)
    total = candelabra.zeros_like(a)
    for node, weight in _gauss_legendre(48):
        s = side * (node * reach)
        total = total + weight * side * (middle + s) * (a * s - z * candelabra.expm1(s)).exp()
    return total * reach


@cache
def _gauss_legendre(count: int) -> list[tuple[float, float]]:
    """Points and weights of the Gauss–Legendre rule on [0, 1], by Golub and Welsch's eigenvalues of
    the Jacobi matrix.
    """
    k = candelabra.arange(1, count, dtype=candelabra.float64)
    beside = k / (4 * k * k - 1).sqrt()
    values, vectors = candelabra.linalg.eigh(candelabra.diag(beside, 1) + candelabra.diag(beside, -1))
    return [((node + 1) / 2, weight) for node, weight in zip(values.tolist(), (vectors[0] ** 2).tolist(), strict=True)]
