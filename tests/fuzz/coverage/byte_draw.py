"""Choices that bytes make, so that a fuzzer that changes the bytes changes the choices."""

from __future__ import annotations

from candelabra.testing.hostile_values import Draw


class ByteDraw(Draw):
    """Random numbers out of the bytes of an input; zeros behind its end."""

    def __init__(self, data: bytes) -> None:
        super().__init__("")
        self._data, self._at = data, 0

    def integer(self, size: int) -> int:
        """Return the next bytes as an unsigned integer."""
        taken = self._data[self._at : self._at + size]
        self._at += size
        return int.from_bytes(taken, "little")

    def getrandbits(self, k: int, /) -> int:
        return self.integer((k + 7) // 8) & ((1 << k) - 1)

    def random(self) -> float:
        return self.integer(2) / 65536

    def chance(self, probability: float) -> bool:
        """Return true with this probability."""
        return self.random() < probability

    def size(self) -> int:
        """Return a size or a stride: mostly a small one."""
        kind = self.integer(1)
        if kind < 200:
            return kind % 7
        return self.choice((-1, 2**31, 2**32 + 1, 2**61, 2**62, 2**63 - 1, -(2**63), 1000))
