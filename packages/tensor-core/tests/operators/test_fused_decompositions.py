"""Decompositions of operators that the CPU backend has kernels for, against the references of the
conformance suite.
"""

from __future__ import annotations

import numpy as np
import pytest

from candelabra.catalogue import OPERATORS
from candelabra.testing import conformance
from candelabra.testing.reference import references

NAMES = (
    "_upsample", "_upsample_backward", "grid_sampler", "grid_sampler_backward", "_reflection_replication_pad", "_reflection_replication_pad_backward", "_searchsorted", "scatter_reduce",
    "_embedding_bag", "_embedding_bag_backward", "_cummax_cummin", "_cdist_forward", "_cdist_backward",
    "_lu_pivots_to_permutation",
)  # fmt: skip


class Decomposed:
    """An operator that always takes its decomposition."""

    def __init__(self, name):
        operator = OPERATORS[name]
        self.parameters, self.schema, self.decomposition = operator.parameters, operator.schema, operator.composite

    def __call__(self, *arguments, **keywords):
        return self.decomposition(*arguments, **keywords)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "int64", "bool"])
@pytest.mark.parametrize("name", NAMES)
def test_reference(name, dtype):
    reference = references()[name]
    if dtype not in reference.dtypes:
        assert dtype != "float64" or "int64" in reference.dtypes
        return
    checked = 0
    for sample in reference.samples(np.random.default_rng(1), dtype):
        assert conformance._run_sample(Decomposed(name), reference, sample, dtype, "cpu") is None
        checked += 1
    assert checked > 0
