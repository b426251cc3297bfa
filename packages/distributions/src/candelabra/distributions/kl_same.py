"""KL divergences between distributions of the same class."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor, inf

from .combined.independent import Independent
from .combined.transformed_distribution import TransformedDistribution
from .continuous.cauchy import Cauchy
from .continuous.continuous_bernoulli import ContinuousBernoulli
from .continuous.exponential import Exponential
from .continuous.gumbel import Gumbel
from .continuous.half_normal import HalfNormal
from .continuous.laplace import Laplace
from .continuous.normal import Normal
from .continuous.pareto import Pareto
from .continuous.uniform import Uniform
from .discrete.bernoulli import Bernoulli
from .discrete.binomial import Binomial
from .discrete.categorical import Categorical
from .discrete.geometric import Geometric
from .discrete.one_hot_categorical import OneHotCategorical
from .discrete.poisson import Poisson
from .exp_family import ExponentialFamily
from .gammas.beta import Beta
from .gammas.dirichlet import Dirichlet
from .gammas.gamma import Gamma
from .kl import kl_divergence, register_kl
from .multivariate.lowrank_multivariate_normal import LowRankMultivariateNormal, lowrank_logdet, lowrank_mahalanobis
from .multivariate.multivariate_normal import MultivariateNormal, batch_mahalanobis
from .multivariate.wishart import Wishart, multivariate_digamma
from .utils import euler_constant, softplus, sum_rightmost


@register_kl(Bernoulli, Bernoulli)
def bernoulli_bernoulli(p: Any, q: Any) -> Tensor:
    success = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    failure = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    success = success.masked_fill(q.probs == 0, inf).masked_fill(p.probs == 0, 0)
    failure = failure.masked_fill(q.probs == 1, inf).masked_fill(p.probs == 1, 0)
    return success + failure


@register_kl(Binomial, Binomial)
def binomial_binomial(p: Any, q: Any) -> Tensor:
    # If p has more trials than q, some outcomes are impossible under q. If it has fewer, there is
    # no closed form.
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return kl.masked_fill(p.total_count > q.total_count, inf)


@register_kl(Categorical, Categorical)
def categorical_categorical(p: Any, q: Any) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    terms = candelabra.where(q.probs == 0, inf, terms)
    return candelabra.where(p.probs == 0, 0.0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def onehot_onehot(p: Any, q: Any) -> Tensor:
    return categorical_categorical(p._categorical, q._categorical)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def continuous_bernoulli_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    def constant(d: Any) -> Tensor:
        return d._cont_bern_log_norm() + candelabra.log1p(-d.probs)  # type: ignore[no-any-return]

    return p.mean * (p.logits - q.logits) + constant(p) - constant(q)


@register_kl(Dirichlet, Dirichlet)
def dirichlet_dirichlet(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    means = candelabra.digamma(a) - candelabra.digamma(total).unsqueeze(-1)
    norms = total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return norms + ((a - b) * means).sum(-1)


@register_kl(Beta, Beta)
def beta_beta(p: Any, q: Any) -> Tensor:
    return dirichlet_dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Exponential, Exponential)
def exponential_exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def expfamily_expfamily(p: Any, q: Any) -> Tensor:
    """Return the Bregman divergence of the log normalizer; needs candelabra.autograd."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman divergences"
        )
    natural, normalizer, means = p._normalizer_and_means()
    others = q._natural_params
    result = q._log_normalizer(*others) - normalizer
    for other, own, mean in zip(others, natural, means, strict=True):
        result = result - sum_rightmost((other - own) * mean, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def gamma_gamma(p: Any, q: Any) -> Tensor:
    return (
        q.concentration * (p.rate / q.rate).log()
        + candelabra.lgamma(q.concentration)
        - candelabra.lgamma(p.concentration)
        + (p.concentration - q.concentration) * candelabra.digamma(p.concentration)
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )


@register_kl(Geometric, Geometric)
def geometric_geometric(p: Any, q: Any) -> Tensor:
    return -p.entropy() - candelabra.log1p(-q.probs) / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def gumbel_gumbel(p: Any, q: Any) -> Tensor:
    ratio, moved = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return (
        -ratio.log()
        + moved
        + ratio * euler_constant
        + candelabra.exp((1 + ratio).lgamma() - moved)
        - (1 + euler_constant)
    )


@register_kl(HalfNormal, HalfNormal)
def halfnormal_halfnormal(p: Any, q: Any) -> Tensor:
    return normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def laplace_laplace(p: Any, q: Any) -> Tensor:
    distance = (p.loc - q.loc).abs()
    return (q.scale / p.scale).log() + distance / q.scale + p.scale / q.scale * candelabra.exp(-distance / p.scale) - 1


@register_kl(Normal, Normal)
def normal_normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Cauchy, Cauchy)
def cauchy_cauchy(p: Any, q: Any) -> Tensor:
    # Chyzak and Nielsen, "A closed-form formula for the Kullback-Leibler divergence between Cauchy
    # distributions", 2019
    above = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return above.log() - (4 * p.scale * q.scale).log()


@register_kl(Pareto, Pareto)
def pareto_pareto(p: Any, q: Any) -> Tensor:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return candelabra.where(p.scale < q.scale, inf, result)


@register_kl(Poisson, Poisson)
def poisson_poisson(p: Any, q: Any) -> Tensor:
    return candelabra.xlogy(p.rate, p.rate / q.rate) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def uniform_uniform(p: Any, q: Any) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return candelabra.where((q.low > p.low) | (q.high < p.high), inf, result)


@register_kl(TransformedDistribution, TransformedDistribution)
def transformed_transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError(
            "the divergence of transformed distributions is that of their bases, where transforms and event shapes are the same"
        )
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def independent_independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("the two distributions treat different numbers of dimensions as one event")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# ---- matrix-valued parameters


def _check_sizes(p: Any, q: Any, names: str) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(f"KL-divergence between two {names} with different event shapes cannot be computed")


def _half_log_det(factor: Tensor) -> Tensor:
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _solved_square(factor: Tensor, other: Tensor) -> Tensor:
    """Return the squared Frobenius norm of ``L^-1 B`` for batches that broadcast."""
    shape = candelabra.broadcast_shapes(factor.shape[:-2], other.shape[:-2])
    solved = candelabra.linalg.solve_triangular(
        factor.expand(shape + factor.shape[-2:]), other.expand(shape + other.shape[-2:]), upper=False
    )
    return solved.pow(2).sum((-2, -1))


@register_kl(MultivariateNormal, MultivariateNormal)
def multivariatenormal_multivariatenormal(p: Any, q: Any) -> Tensor:
    _check_sizes(p, q, "Multivariate Normals")
    mine, other = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    trace = _solved_square(other, mine)
    distance = batch_mahalanobis(other, q.loc - p.loc)
    return _half_log_det(other) - _half_log_det(mine) + 0.5 * (trace + distance - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def lowrank_lowrank(p: Any, q: Any) -> Tensor:
    _check_sizes(p, q, "Low Rank Multivariate Normals")
    log_dets = lowrank_logdet(q._unbroadcasted_cov_diag, q._capacitance_tril) - lowrank_logdet(
        p._unbroadcasted_cov_diag, p._capacitance_tril
    )
    distance = _lowrank_distance(q, q.loc - p.loc)
    root = p._unbroadcasted_cov_diag.sqrt()
    trace = _lowrank_trace(q, p._unbroadcasted_cov_factor) + _lowrank_trace(q, root.diag_embed())
    return 0.5 * (log_dets + distance + trace - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def multivariatenormal_lowrank(p: Any, q: Any) -> Tensor:
    _check_sizes(p, q, "(Low Rank) Multivariate Normals")
    log_dets = lowrank_logdet(q._unbroadcasted_cov_diag, q._capacitance_tril) - 2 * _half_log_det(
        p._unbroadcasted_scale_tril
    )
    trace = _lowrank_trace(q, p._unbroadcasted_scale_tril)
    return 0.5 * (log_dets + _lowrank_distance(q, q.loc - p.loc) + trace - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def lowrank_multivariatenormal(p: Any, q: Any) -> Tensor:
    _check_sizes(p, q, "(Low Rank) Multivariate Normals")
    factor = q._unbroadcasted_scale_tril
    log_dets = 2 * _half_log_det(factor) - lowrank_logdet(p._unbroadcasted_cov_diag, p._capacitance_tril)
    distance = batch_mahalanobis(factor, q.loc - p.loc)
    trace = _solved_square(factor, p._unbroadcasted_cov_factor) + _solved_square(
        factor, p._unbroadcasted_cov_diag.sqrt().diag_embed()
    )
    return 0.5 * (log_dets + distance + trace - p.event_shape[0])


def _lowrank_distance(q: Any, difference: Tensor) -> Tensor:
    return lowrank_mahalanobis(q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, difference, q._capacitance_tril)


def _lowrank_trace(q: Any, factor: Tensor) -> Tensor:
    """Return the trace of the precision of q times ``B B^T``, by the Woodbury identity."""
    weighted = factor / q._unbroadcasted_cov_diag.unsqueeze(-1)
    projected = q._unbroadcasted_cov_factor.mT @ weighted
    return (factor * weighted).sum((-2, -1)) - _solved_square(q._capacitance_tril, projected)


@register_kl(Wishart, Wishart)
def wishart_wishart(p: Any, q: Any) -> Tensor:
    n = p.event_shape[-1]
    log_dets = 2 * (_half_log_det(q._unbroadcasted_scale_tril) - _half_log_det(p._unbroadcasted_scale_tril))
    trace = _solved_square(q._unbroadcasted_scale_tril, p._unbroadcasted_scale_tril)
    return (
        q.df / 2 * log_dets
        + p.df / 2 * (trace - n)
        + candelabra.mvlgamma(q.df / 2, n)
        - candelabra.mvlgamma(p.df / 2, n)
        + (p.df - q.df) / 2 * multivariate_digamma(p.df / 2, n)
    )
