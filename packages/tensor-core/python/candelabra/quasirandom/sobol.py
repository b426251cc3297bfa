"""Sobol sequences, plain and scrambled."""

from __future__ import annotations

import candelabra
from candelabra import _C

from .direction_numbers import BITS, DIMENSIONS, direction_numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor


class SobolEngine:
    """Draws the points of a Sobol sequence, which fill the unit cube evenly.

    The points of a plain sequence are those of PyTorch. Sources: Joe and Kuo, 2008; Owen,
    "Scrambled nets", 1997.

    Parameters
    ----------
    dimension
        At most 1111.
    scramble
        Whether to scramble the sequence at random, which keeps its evenness.
    seed
        The seed of the scrambling; by default the global generator is used.

    Raises
    ------
    ValueError
        If the dimension is not supported.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.quasirandom.SobolEngine(3).draw(3)
    tensor([[0.0000, 0.0000, 0.0000],
            [0.5000, 0.5000, 0.5000],
            [0.7500, 0.2500, 0.2500]])
    """

    MAXBIT = BITS
    MAXDIM = DIMENSIONS

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}], but got {dimension}"
            )
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        self.sobolstate = candelabra.tensor(direction_numbers(dimension), dtype=candelabra.int64, device="cpu")
        if scramble:
            self._scramble()
        else:
            self.shift = candelabra.zeros(dimension, dtype=candelabra.int64, device="cpu")
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**BITS).reshape(1, -1)
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """Return the next `n` points: (n, dimension).

        Parameters
        ----------
        n
            The number of points.
        out
            Where to write them.
        dtype
            Default: the default dtype.
        """
        dtype = _C.get_default_dtype() if dtype is None else dtype
        if self.num_generated == 0:
            first = self._first_point.to(dtype)
            result = first if n == 1 else candelabra.cat([first, self._next(n - 1, 0, dtype)])
        else:
            result = self._next(n, self.num_generated - 1, dtype)
        self.num_generated += n
        if out is None:
            return result
        out.resize_(result.shape).copy_(result)
        return out

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """Return the next ``2**m`` points.

        Raises
        ------
        ValueError
            If the number of all points would not be a power of two, as evenness needs.
        """
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ValueError(
                f"The balance properties of Sobol' points require n to be a power of 2. {self.num_generated} points have been previously "
                f"generated, then: n={self.num_generated}+2**{m}={total}. If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(2**m, out, dtype)

    def reset(self) -> SobolEngine:
        """Go back to the first point."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skip `n` points."""
        if self.num_generated == 0:
            self._move(n - 1, 0)
        else:
            self._move(n, self.num_generated - 1)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}"]
        if self.scramble:
            parts.append("scramble=True")
        if self.seed is not None:
            parts.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(parts)})"

    # ---- points as integers

    def _next(self, n: int, begin: int, dtype: Any) -> Tensor:
        """Return the `n` points after point `begin`, at which the engine is."""
        if n <= 0:
            return candelabra.empty(0, self.dimension, dtype=dtype)
        # Point k is the sum, without carry, of the numbers of the bits in the Gray code of k.
        numbers = candelabra.arange(begin + 1, begin + n + 1, dtype=candelabra.int64, device="cpu")
        bits = _gray(numbers) ^ _gray(begin)
        points = self.quasi.unsqueeze(0).expand(n, -1).contiguous()
        for bit in range(int(begin + n).bit_length()):
            points ^= (bits >> bit & 1).unsqueeze(1) * self.sobolstate[:, bit]
        self.quasi = points[-1].clone()
        return points.to(dtype) * 2.0**-BITS

    def _move(self, n: int, begin: int) -> None:
        bits = _gray(begin + n) ^ _gray(begin)
        for bit in range(BITS):
            if bits >> bit & 1:
                self.quasi ^= self.sobolstate[:, bit]

    def _scramble(self) -> None:
        generator = None
        if self.seed is not None:
            generator = _C.Generator()
            generator.manual_seed(self.seed)
        shape = (self.dimension, BITS)
        digits = candelabra.randint(2, shape, generator=generator, device="cpu")
        self.shift = (digits << candelabra.arange(BITS)).sum(1)
        lower = candelabra.randint(2, (*shape, BITS), generator=generator, device="cpu").tril()
        self.sobolstate = scrambled(self.sobolstate, lower)


def _gray(number: Any) -> Any:
    return number ^ (number >> 1)


def scrambled(state: Tensor, lower: Tensor) -> Tensor:
    """Return direction numbers whose digits are multiplied by a lower triangular matrix over GF(2).

    Parameters
    ----------
    state
        (dimensions, 30)
    lower
        (dimensions, 30, 30), zeros and ones; its diagonal counts as ones.
    """
    diagonal = candelabra.eye(BITS, dtype=candelabra.int64)
    places = candelabra.arange(BITS - 1, -1, -1)
    digits = state.unsqueeze(-1) >> places & 1  # the most significant digit first
    products = candelabra.einsum("dpk,djk->djp", (lower | diagonal).double(), digits.double()).long() & 1
    return (products << places).sum(-1)
