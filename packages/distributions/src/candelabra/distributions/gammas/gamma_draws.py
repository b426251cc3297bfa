"""Differentiable gamma draws, used by Gamma, Beta, Dirichlet, StudentT and others.

Draws use the rejection method of Marsaglia and Tsang, "A simple method for generating gamma
variables", 2000, vectorized over all elements. Gradients use implicit differentiation. A draw z of
shape a keeps its quantile ``F(z; a)`` when a changes, so ``dz/da = -(dF/da) / (dF/dz)`` (Figurnov,
Mohamed and Mnih, "Implicit reparameterization gradients", 2018). Computations use float64
logarithms, because draws of small shapes underflow in any floating-point dtype.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import candelabra
from candelabra import Tensor, no_grad


def log_gamma_draw(concentration: Tensor) -> Tensor:
    """Draw logarithms of gamma variables with rate 1, differentiable in `concentration`.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions.gammas.gamma_draws import log_gamma_draw
    >>> bool(log_gamma_draw(candelabra.full((100,), 1e-4)).isfinite().all())
    True
    """
    # Tensors of a functorch transform (candelabra.func) do not report requires_grad. Always use the
    # autograd function for them.
    transformed = getattr(concentration, "_layer", None) is not None
    if transformed or (concentration.requires_grad and candelabra.is_grad_enabled()):
        result: Tensor = _recorded()(concentration)
        return result
    return _draw(concentration).to(concentration.dtype)


def _draw(concentration: Tensor) -> Tensor:
    with no_grad():
        shape = concentration.detach().to(candelabra.float64).reshape(-1)
        # For shapes a < 1, draw with shape a + 1 and multiply by U^(1/a) (Stuart's theorem).
        small = shape < 1
        d = candelabra.where(small, shape + 1, shape) - 1 / 3
        d = candelabra.where(shape < 0, candelabra.nan, d)  # no distribution has this shape
        result, accepted = _attempt(d)
        places = (~accepted).nonzero().squeeze(-1)
        while places.numel():
            again, accepted = _attempt(d[places])
            result[places] = again
            places = places[~accepted]
        u = 1 - candelabra.rand(d.shape, dtype=d.dtype, device=d.device)  # in (0, 1]
        result = candelabra.where(small, result + u.log() / shape, result)
        return result.reshape(concentration.shape)


def _attempt(d: Tensor) -> tuple[Tensor, Tensor]:
    """Run one attempt of the rejection method.

    Returns logarithms of draws of shape ``d + 1/3``, and a mask of accepted elements.
    """
    x = candelabra.randn(d.shape, dtype=d.dtype, device=d.device)
    root = 1 + x / (9 * d).sqrt()
    v = root * root * root
    log_v = v.clamp(min=1e-300).log()
    u = candelabra.rand(d.shape, dtype=d.dtype, device=d.device)
    good = (v > 0) & (u.log() < 0.5 * x * x + d * (1 - v + log_v))
    # Accept infinity and NaN, because they would be rejected forever.
    return d.log() + log_v, good | ~d.isfinite()


@cache
def _recorded() -> Any:
    """Return the draw as an autograd function, created on first use.

    Sampling without gradients does not need candelabra.autograd.
    """
    from candelabra.autograd import Function
    from candelabra.autograd.function import once_differentiable

    class Slope(Function):
        """Elementwise function, so a vmap dimension only adds elements."""

        @staticmethod
        def forward(a: Tensor, log_z: Tensor) -> Tensor:
            return log_gamma_slope(a, log_z)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
            """Save nothing, because the second derivative is not implemented."""

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
    """Return ``d log z / d a`` at a fixed quantile of the gamma distribution, in float64.

    Notes
    -----
    With P the regularized incomplete gamma function and p the density, ``d log z / da = -(dP/da) /
    (z p)``. For ``z <= a + 1`` and ``a <= 30``, the series ``P = z^a e^-z / Gamma(a + 1) * sum of
    z^n / ((a + 1) ... (a + n))`` is differentiated term by term. Otherwise, ``dP/da`` is the
    integral of ``(log t - psi(a)) p(t)`` over [0, z], or minus that over [z, inf). The substitution
    ``t = z e^-s`` or ``t = z e^s`` makes the integrand smooth and decaying, so 48-point
    Gauss–Legendre quadrature suffices.
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
    """Return the slope by quadrature over s.

    The integrand is ``side * (log z - psi(a) + side * s) * exp(side * a * s - z * (exp(side * s) -
    1))`` with side 1 for z > a, and -1 otherwise.
    """
    side = candelabra.where(z > a, 1.0, -1.0).to(a.dtype)
    gap = (z - a).abs()
    # Integrate until the exponent, about -(gap s + z s^2 / 2), is below -40. The factor 1.5 covers
    # its slower decay towards t = 0.
    reach = 1.5 * 80 / (gap + (gap * gap + 80 * z).sqrt())
    middle = log_z - candelabra.digamma(a)
    total = candelabra.zeros_like(a)
    for node, weight in _gauss_legendre(48):
        s = side * (node * reach)
        total = total + weight * side * (middle + s) * (a * s - z * candelabra.expm1(s)).exp()
    return total * reach


@cache
def _gauss_legendre(count: int) -> list[tuple[float, float]]:
    """Return nodes and weights of the Gauss–Legendre rule on [0, 1].

    Uses the Golub–Welsch algorithm: eigenvalues of the Jacobi matrix.
    """
    k = candelabra.arange(1, count, dtype=candelabra.float64)
    beside = k / (4 * k * k - 1).sqrt()
    values, vectors = candelabra.linalg.eigh(candelabra.diag(beside, 1) + candelabra.diag(beside, -1))
    return [((node + 1) / 2, weight) for node, weight in zip(values.tolist(), (vectors[0] ** 2).tolist(), strict=True)]
