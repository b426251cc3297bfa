"""Distributions and transforms with parameters, for the comparison with PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np

_RNG = np.random.default_rng(5)


def _normal(*shape: int) -> np.ndarray:
    return _RNG.standard_normal(shape)


def _positive(*shape: int) -> np.ndarray:
    return _RNG.uniform(0.3, 3.0, shape)


def _unit(*shape: int) -> np.ndarray:
    return _RNG.uniform(0.1, 0.9, shape)


def _rows(*shape: int) -> np.ndarray:
    made = _RNG.uniform(0.1, 1.0, shape)
    return made / made.sum(-1, keepdims=True)


def _factor(*shape: int) -> np.ndarray:
    made = np.tril(_RNG.standard_normal(shape))
    index = np.arange(shape[-1])
    made[..., index, index] = np.abs(made[..., index, index]) + 0.5
    return made


def _covariance(*shape: int) -> np.ndarray:
    factor = _factor(*shape)
    return factor @ np.swapaxes(factor, -1, -2)


#: Names and options; repeated names differ in parameters and shapes.
DISTRIBUTIONS: list[tuple[str, dict[str, Any]]] = [
    ("Bernoulli", {"probs": _unit(3)}),
    ("Bernoulli", {"logits": _normal(2, 3)}),
    ("Bernoulli", {"probs": np.array([0.0, 0.5, 1.0])}),
    ("Beta", {"concentration1": _positive(3), "concentration0": _positive(3)}),
    ("Binomial", {"total_count": np.array([10.0, 10.0, 10.0]), "probs": _unit(3)}),
    ("Binomial", {"total_count": np.array([3.0, 8.0, 5.0]), "logits": _normal(3)}),
    ("Categorical", {"probs": _rows(3, 4)}),
    ("Categorical", {"logits": _normal(4)}),
    ("Categorical", {"probs": np.array([[0.0, 0.25, 0.75]])}),
    ("Cauchy", {"loc": _normal(3), "scale": _positive(3)}),
    ("Chi2", {"df": _positive(3)}),
    ("ContinuousBernoulli", {"probs": np.array([0.2, 0.5, 0.8])}),
    ("ContinuousBernoulli", {"logits": _normal(3)}),
    ("Dirichlet", {"concentration": _positive(3, 4)}),
    ("Dirichlet", {"concentration": _unit(3, 2)}),
    ("Exponential", {"rate": _positive(3)}),
    ("FisherSnedecor", {"df1": np.array([1.0, 3.0, 6.0]), "df2": np.array([1.5, 3.0, 8.0])}),
    ("Gamma", {"concentration": _positive(3), "rate": _positive(3)}),
    ("GeneralizedPareto", {"loc": _normal(4), "scale": _positive(4), "concentration": np.array([-0.5, 0.0, 0.3, 1.5])}),
    ("Geometric", {"probs": np.array([0.2, 0.7, 1.0])}),
    ("Geometric", {"logits": _normal(3)}),
    ("Gumbel", {"loc": _normal(3), "scale": _positive(3)}),
    ("HalfCauchy", {"scale": _positive(3)}),
    ("HalfNormal", {"scale": _positive(3)}),
    ("Independent", {"base_distribution": ("Normal", {"loc": _normal(2, 3), "scale": _positive(2, 3)}), "reinterpreted_batch_ndims": 1}),
    ("Independent", {"base_distribution": ("Bernoulli", {"probs": _unit(3)}), "reinterpreted_batch_ndims": 0}),
    ("InverseGamma", {"concentration": np.array([0.5, 1.5, 3.0]), "rate": _positive(3)}),
    ("Kumaraswamy", {"concentration1": _positive(3), "concentration0": _positive(3)}),
    ("LKJCholesky", {"dim": 3, "concentration": _positive(2)}),
    ("LKJCholesky", {"dim": 2, "concentration": np.array(1.5)}),
    ("Laplace", {"loc": _normal(3), "scale": _positive(3)}),
    ("LogNormal", {"loc": _normal(3), "scale": _unit(3)}),
    ("LogisticNormal", {"loc": _normal(2, 3), "scale": _positive(2, 3)}),
    ("LowRankMultivariateNormal", {"loc": _normal(2, 4), "cov_factor": _normal(2, 4, 2), "cov_diag": _positive(2, 4)}),
    ("LowRankMultivariateNormal", {"loc": _normal(4), "cov_factor": _normal(4, 1), "cov_diag": _positive(4)}),
    ("MixtureSameFamily", {
        "mixture_distribution": ("Categorical", {"probs": _rows(2, 3)}),
        "component_distribution": ("Normal", {"loc": _normal(2, 3), "scale": _positive(2, 3)}),
    }),
    ("MixtureSameFamily", {
        "mixture_distribution": ("Categorical", {"logits": _normal(3)}),
        "component_distribution": ("MultivariateNormal", {"loc": _normal(3, 2), "scale_tril": _factor(3, 2, 2)}),
    }),
    ("Multinomial", {"total_count": 5, "probs": _rows(2, 3)}),
    ("Multinomial", {"total_count": 4, "logits": _normal(3)}),
    ("MultivariateNormal", {"loc": _normal(2, 4), "covariance_matrix": _covariance(2, 4, 4)}),
    ("MultivariateNormal", {"loc": _normal(4), "precision_matrix": _covariance(4, 4)}),
    ("MultivariateNormal", {"loc": _normal(3, 1, 2), "scale_tril": _factor(2, 2, 2)}),
    ("NegativeBinomial", {"total_count": np.array([1.0, 3.5, 10.0]), "probs": _unit(3)}),
    ("NegativeBinomial", {"total_count": np.array([0.0, 3.0, 10.0]), "logits": _normal(3)}),
    ("Normal", {"loc": _normal(2, 3), "scale": _positive(2, 3)}),
    ("Normal", {"loc": 0.5, "scale": 2.0}),
    ("Normal", {"loc": _normal(3), "scale": 2.0}),
    ("OneHotCategorical", {"probs": _rows(2, 3)}),
    ("OneHotCategoricalStraightThrough", {"logits": _normal(3)}),
    ("Pareto", {"scale": _positive(3), "alpha": np.array([0.5, 1.5, 3.0])}),
    ("Poisson", {"rate": np.array([0.0, 0.7, 12.0])}),
    ("RelaxedBernoulli", {"temperature": np.array(0.7), "probs": _unit(3)}),
    ("RelaxedBernoulli", {"temperature": np.array(2.0), "logits": _normal(3)}),
    ("RelaxedOneHotCategorical", {"temperature": np.array(0.7), "probs": _rows(2, 3)}),
    ("RelaxedOneHotCategorical", {"temperature": np.array(1.5), "logits": _normal(3)}),
    ("StudentT", {"df": np.array([0.5, 1.5, 4.0]), "loc": _normal(3), "scale": _positive(3)}),
    ("TransformedDistribution", {
        "base_distribution": ("Normal", {"loc": _normal(3), "scale": _positive(3)}),
        "transforms": [("AffineTransform", {"loc": 1.0, "scale": -0.5}), ("ExpTransform", {})],
    }),
    ("TransformedDistribution", {
        "base_distribution": ("Normal", {"loc": _normal(3), "scale": _positive(3)}),
        "transforms": [("StickBreakingTransform", {})],
    }),
    ("TransformedDistribution", {
        "base_distribution": ("Uniform", {"low": np.zeros(3), "high": np.ones(3)}),
        "transforms": [("SigmoidTransform", {}), ("AffineTransform", {"loc": _normal(2, 3), "scale": _positive(2, 3)})],
    }),
    ("Uniform", {"low": _normal(3), "high": _normal(3) + 6.0}),
    ("Uniform", {"low": np.array([0.1, 0.2]), "high": np.array([0.4, 0.9])}),
    ("VonMises", {"loc": _normal(3), "concentration": np.array([0.1, 2.0, 50.0])}),
    ("Weibull", {"scale": _positive(3), "concentration": np.array([0.7, 1.0, 3.0])}),
    ("Wishart", {"df": np.array([4.5, 6.0]), "covariance_matrix": _covariance(2, 3, 3)}),
    ("Wishart", {"df": np.array(5.0), "scale_tril": _factor(3, 3)}),
    ("Wishart", {"df": np.array(5.0), "precision_matrix": _covariance(3, 3)}),
]  # fmt: skip

#: Names, options, and values to map.
TRANSFORMS: list[tuple[str, dict[str, Any], np.ndarray]] = [
    ("AbsTransform", {}, _normal(3, 4)),
    ("AffineTransform", {"loc": _normal(4), "scale": _normal(4)}, _normal(3, 4)),
    ("AffineTransform", {"loc": 1.0, "scale": -2.0, "event_dim": 1}, _normal(3, 4)),
    ("AffineTransform", {"loc": _normal(4), "scale": _normal(4), "event_dim": 2}, _normal(3, 4)),
    (
        "CatTransform",
        {"tseq": [("ExpTransform", {}), ("AffineTransform", {"loc": 1.0, "scale": 3.0})], "dim": 1, "lengths": [1, 3]},
        _normal(3, 4),
    ),
    (
        "ComposeTransform",
        {"parts": [("AffineTransform", {"loc": 1.0, "scale": 3.0}), ("SigmoidTransform", {})]},
        _normal(3, 4),
    ),
    ("ComposeTransform", {"parts": [("ExpTransform", {}), ("StickBreakingTransform", {})]}, _normal(3, 4)),
    ("ComposeTransform", {"parts": []}, _normal(3, 4)),
    ("CorrCholeskyTransform", {}, _normal(2, 6)),
    ("CorrCholeskyTransform", {}, _normal(1)),
    ("CumulativeDistributionTransform", {"distribution": ("Normal", {"loc": 0.5, "scale": 2.0})}, _normal(3)),
    ("ExpTransform", {}, _normal(3, 4)),
    ("IndependentTransform", {"base_transform": ("ExpTransform", {}), "reinterpreted_batch_ndims": 1}, _normal(3, 4)),
    ("LowerCholeskyTransform", {}, _normal(2, 3, 3)),
    ("PositiveDefiniteTransform", {}, _normal(2, 3, 3)),
    ("PowerTransform", {"exponent": _normal(4)}, _positive(3, 4)),
    ("ReshapeTransform", {"in_shape": [4], "out_shape": [2, 2]}, _normal(3, 4)),
    ("SigmoidTransform", {}, _normal(3, 4)),
    ("SoftmaxTransform", {}, _normal(3, 4)),
    ("SoftplusTransform", {}, _normal(3, 4)),
    (
        "StackTransform",
        {"tseq": [("ExpTransform", {}), ("AffineTransform", {"loc": 1.0, "scale": 3.0})], "dim": 1},
        _normal(3, 2),
    ),
    ("StickBreakingTransform", {}, _normal(3, 4)),
    ("TanhTransform", {}, _normal(3, 4)),
]
