"""Operators of nn's family that move numbers, on float8 dtypes and complex32."""

import pytest

import candelabra as c

MOVES = {
    "pad": lambda x: c.constant_pad_nd(x, (1, 1), 4.0),
    "embedding": lambda x: c.embedding(x, c.tensor([1, 0], device="cpu")),
}


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize(
    "name", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "complex32"]
)
def test_moves(name, move):
    numbers = c.tensor([[1.0, 2.0, 4.0], [0.5, 8.0, 0.25]], device="cpu")  # Other devices lack the dtypes.
    dtype = getattr(c, name)
    found = MOVES[move](numbers.to(dtype))
    assert found.dtype is dtype and found.float().tolist() == MOVES[move](numbers).tolist()
