"""KL divergences between distributions of different classes.

``KL(p | q)`` is the mean of ``-log q`` under p minus the entropy of p. For the classes here, ``log
q`` is a combination of a few functions of x. Only their means under p are needed: x, x^2, log x,
log(1 - x), exp(-x / s), |x - m|.
"""

from __future__ import annotations

import math
from typing import Any

import candelabra
from candelabra import Tensor, inf

from .continuous.continuous_bernoulli import ContinuousBernoulli
from .continuous.exponential import Exponential
from .continuous.gumbel import Gumbel
from .continuous.laplace import Laplace
from .continuous.normal import Normal
from .continuous.pareto import Pareto
from .continuous.uniform import Uniform
from .discrete.bernoulli import Bernoulli
from .discrete.binomial import Binomial
from .discrete.poisson import Poisson
from .gammas.beta import Beta
from .gammas.gamma import Gamma
from .kl import register_kl
from .utils import euler_constant

# ---- means


def _mean_of_log(p: Any) -> Tensor:
    """Return the mean of log x."""
    if isinstance(p, Beta):
        return candelabra.digamma(p.concentration1) - candelabra.digamma(p.concentration1 + p.concentration0)
    if isinstance(p, Exponential):
        return -euler_constant - p.rate.log()
    if isinstance(p, Gamma):
        return candelabra.digamma(p.concentration) - p.rate.log()
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    return _mean_of_log_between(p.low, p.high)


def _mean_of_log_between(low: Tensor, high: Tensor) -> Tensor:
    """Return the mean of log x for x uniform on an interval of nonnegative numbers."""
    return (candelabra.xlogy(high, high) - candelabra.xlogy(low, low)) / (high - low) - 1


def _mean_of_exp(p: Any, scale: Tensor) -> Tensor:
    """Return the mean of ``exp(-x / scale)``."""
    if isinstance(p, Exponential):
        return p.rate / (p.rate + scale.reciprocal())
    if isinstance(p, Gamma):
        return (1 + (p.rate * scale).reciprocal()).pow(-p.concentration)
    if isinstance(p, Normal):
        return candelabra.exp(-p.loc / scale + 0.5 * (p.scale / scale).pow(2))
    return scale * (candelabra.exp(-p.low / scale) - candelabra.exp(-p.high / scale)) / (p.high - p.low)


# ---- means of -log q


def _against_normal(p: Any, q: Any) -> Tensor:
    spread = p.variance + (p.mean - q.loc).pow(2)
    return 0.5 * math.log(2 * math.pi) + q.scale.log() + spread / (2 * q.scale.pow(2))


def _against_exponential(p: Any, q: Any) -> Tensor:
    return q.rate * p.mean - q.rate.log()


def _against_gamma(p: Any, q: Any) -> Tensor:
    a = q.concentration
    return candelabra.lgamma(a) - a * q.rate.log() - (a - 1) * _mean_of_log(p) + q.rate * p.mean


def _against_gumbel(p: Any, q: Any) -> Tensor:
    return q.scale.log() + (p.mean - q.loc) / q.scale + candelabra.exp(q.loc / q.scale) * _mean_of_exp(p, q.scale)


def _against_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    return -p.mean * q.logits - candelabra.log1p(-q.probs) - q._cont_bern_log_norm()


def _outside(p: Any, low: float, high: float) -> Tensor:
    """Return where the support of a uniform p is not within an interval."""
    return (p.low < low) | (p.high > high)


# ---- finite divergences


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Uniform, Normal)
def to_normal(p: Any, q: Any) -> Tensor:
    return _against_normal(p, q) - p.entropy()


@register_kl(Pareto, Normal)
def pareto_normal(p: Any, q: Any) -> Tensor:
    # infinite for alpha <= 2, where the variance of p does not exist
    return candelabra.where(p.alpha > 2, _against_normal(p, q), inf) - p.entropy()


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Gamma, Exponential)
@register_kl(Pareto, Exponential)
def to_exponential(p: Any, q: Any) -> Tensor:
    return _against_exponential(p, q) - p.entropy()


@register_kl(Uniform, Exponential)
def uniform_exponential(p: Any, q: Any) -> Tensor:
    return to_exponential(p, q).masked_fill(p.low < 0, inf)


@register_kl(Beta, Gamma)
@register_kl(Exponential, Gamma)
@register_kl(Pareto, Gamma)
def to_gamma(p: Any, q: Any) -> Tensor:
    return _against_gamma(p, q) - p.entropy()


@register_kl(Uniform, Gamma)
def uniform_gamma(p: Any, q: Any) -> Tensor:
    return to_gamma(p, q).masked_fill(p.low < 0, inf)


@register_kl(Exponential, Gumbel)
@register_kl(Gamma, Gumbel)
@register_kl(Normal, Gumbel)
@register_kl(Uniform, Gumbel)
def to_gumbel(p: Any, q: Any) -> Tensor:
    return _against_gumbel(p, q) - p.entropy()


@register_kl(Normal, Laplace)
def normal_laplace(p: Any, q: Any) -> Tensor:
    # |x - m| is a folded normal variable.
    moved = (p.loc - q.loc) / p.scale
    folded = math.sqrt(2 / math.pi) * candelabra.exp(-0.5 * moved.pow(2)) + moved * candelabra.erf(moved / math.sqrt(2))
    return (2 * q.scale).log() + p.scale * folded / q.scale - p.entropy()


@register_kl(Beta, ContinuousBernoulli)
def beta_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    return _against_continuous_bernoulli(p, q) - p.entropy()


@register_kl(Uniform, ContinuousBernoulli)
def uniform_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    return candelabra.where(_outside(p, 0, 1), inf, _against_continuous_bernoulli(p, q) - p.entropy())


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def to_uniform(p: Any, q: Any) -> Tensor:
    result = (q.high - q.low).log() - p.entropy()
    return candelabra.where((q.low > 0) | (q.high < 1), inf, result)


@register_kl(Uniform, Beta)
def uniform_beta(p: Any, q: Any) -> Tensor:
    a, b = q.concentration1, q.concentration0
    norm = candelabra.lgamma(a) + candelabra.lgamma(b) - candelabra.lgamma(a + b)
    logs = (a - 1) * _mean_of_log(p) + (b - 1) * _mean_of_log_between(1 - p.high, 1 - p.low)
    return candelabra.where(_outside(p, 0, 1), inf, norm - logs - p.entropy())


@register_kl(Uniform, Pareto)
def uniform_pareto(p: Any, q: Any) -> Tensor:
    result = (q.alpha + 1) * _mean_of_log(p) - (q.alpha * q.scale.pow(q.alpha)).log() - p.entropy()
    return candelabra.where(p.low < q.scale, inf, result)


@register_kl(Bernoulli, Poisson)
def bernoulli_poisson(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


# ---- infinite divergences: the support of p is not within that of q


def _infinite(p: Any, q: Any) -> Tensor:
    mean = p.mean
    shape = candelabra.broadcast_shapes(p.batch_shape, q.batch_shape)
    return candelabra.full(shape, inf, dtype=mean.dtype, device=mean.device)


for _p, _qs in {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}.items():
    for _q in _qs:
        register_kl(_p, _q)(_infinite)
