"""SciPy's own code, which is written for the array API standard, computes with our arrays and
tensors as with NumPy's.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")
pytest.importorskip("scipy", minversion="1.16")

# SciPy reads the variable when it is imported, so this runs in a process of its own.
SCRIPT = """
import numpy as np
import scipy.cluster.vq, scipy.fft, scipy.integrate, scipy.signal, scipy.special, scipy.stats
from scipy.spatial.transform import Rotation

import candelabra
import candelabra.array_api as xp

a = np.random.default_rng(0).normal(size=(50, 3))
CASES = {
    "skew": lambda c: scipy.stats.skew(c(a)),
    "kurtosis": lambda c: scipy.stats.kurtosis(c(a)),
    "zscore": lambda c: scipy.stats.zscore(c(a)),
    "gmean": lambda c: scipy.stats.gmean(c(np.abs(a))),
    "ttest_1samp": lambda c: scipy.stats.ttest_1samp(c(a), 0.1).pvalue,
    "pearsonr": lambda c: scipy.stats.pearsonr(c(a[:, 0]), c(a[:, 1])).statistic,
    "rankdata": lambda c: scipy.stats.rankdata(c(a)),
    "whiten": lambda c: scipy.cluster.vq.whiten(c(a)),
    "vq": lambda c: scipy.cluster.vq.vq(c(a), c(a[:4]))[1],
    "trapezoid": lambda c: scipy.integrate.trapezoid(c(a)),
    "logsumexp": lambda c: scipy.special.logsumexp(c(a), axis=1),
    "fft": lambda c: scipy.fft.fft(c(a)),
    "hilbert": lambda c: scipy.signal.hilbert(c(a)),
    "detrend": lambda c: scipy.signal.detrend(c(a)),
    "Rotation": lambda c: Rotation.from_rotvec(c(a)).as_matrix(),
}
for name, case in CASES.items():
    wanted = case(np.asarray)
    for convert in (xp.asarray, candelabra.tensor):
        got = case(convert)
        assert type(got) is xp.Array, (name, type(got))
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-9, atol=1e-12, err_msg=name)
print("all", len(CASES))
"""


def test_scipy_computes_with_arrays() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.strip() == "all 15", done.stderr
