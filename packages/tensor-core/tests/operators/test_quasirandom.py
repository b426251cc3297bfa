"""Sobol sequences: the points of PyTorch, evenness, scrambling."""

from __future__ import annotations

import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra as c
from candelabra.quasirandom import SobolEngine


def test_the_points_are_those_of_pytorch():
    expected = [[0, 0, 0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75], [0.375, 0.375, 0.625]]
    assert SobolEngine(3).draw(5, dtype=c.float64).tolist() == expected
    # Recorded from PyTorch 2.13: point 299 of dimension 1111, and the sum of all its points before.
    points = SobolEngine(1111).draw(300)
    assert points.shape == (300, 1111) and points[0].sum() == 0 and points[1].eq(0.5).all()
    assert float(points[299, 1110]) == LAST and float(points[:, 1110].double().sum()) == SUM


LAST, SUM = 0.068359375, 149.0078125


def test_drawing_continues():
    whole = SobolEngine(4).draw(20)
    engine = SobolEngine(4)
    parts = [engine.draw(1), engine.draw(4), engine.fast_forward(3).draw(2), engine.draw(10)]
    assert c.equal(c.cat(parts), c.cat([whole[:5], whole[8:20]]))
    assert c.equal(engine.reset().draw(3), whole[:3]) and engine.num_generated == 3
    out = c.empty(0)
    assert engine.draw(2, out=out) is out and c.equal(out, whole[3:5])


def test_powers_of_two():
    engine = SobolEngine(2)
    assert engine.draw_base2(3).mean(0).tolist() == [0.4375, 0.4375]
    with pytest.raises(ValueError, match="n to be a power of 2. 8 points have been"):
        engine.draw_base2(2)


def test_scrambled_points_are_as_even():
    engine = SobolEngine(5, scramble=True, seed=7)
    points = engine.draw(256)
    # Every interval of 1 / 256 has one point in every dimension.
    assert all(c.equal((points[:, d] * 256).long().sort()[0], c.arange(256)) for d in range(5))
    assert c.equal(SobolEngine(5, scramble=True, seed=7).draw(256), points)
    assert not c.equal(SobolEngine(5, scramble=True, seed=8).draw(256), points)
    assert repr(engine) == "SobolEngine(dimension=5, scramble=True, seed=7)"


@pytest.mark.parametrize("dimension", [0, -1, 1112])
def test_dimensions(dimension):
    with pytest.raises(ValueError, match=r"Supported range of dimensionality for SobolEngine is \[1, 1111\]"):
        SobolEngine(dimension)
