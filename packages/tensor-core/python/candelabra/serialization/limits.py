"""Bounds on what a small file can have done: copies, and the hashing of keys, cost no more than a
file of its size may ask for.
"""

from __future__ import annotations

from candelabra import _C

from .errors import FileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Numbers beyond this share hashes with others, which would make a dict of many slow.
_DISTINCT = (1 << 61) - 1
#: How many keys there may be of which many can have one hash.
_COSTLY_KEYS = 1000
#: The types of what can be a key.
_PLAIN_KEYS = frozenset({str, bytes, bool, int, float, complex, type(None)})


class Budget:
    """How much work and memory reading a file may take, by its length."""

    def __init__(self, length: int) -> None:
        self.left = (1 << 18) + 4 * length
        self._costly = _COSTLY_KEYS

    def spend(self, amount: int) -> None:
        """Raise where this is more than is left."""
        self.left -= amount
        if self.left < 0:
            raise FileError("it asks for far more work or memory than a file of its size needs")

    def key(self, value: Any) -> Any:
        """Return a key of a dict or a member of a set, if hashing it is cheap: a tuple in a tuple
        many times over is not.
        """
        kind = type(value)
        if kind is str or (kind is int and -_DISTINCT < value < _DISTINCT) or kind is bytes:
            return value
        waiting = [value]
        while waiting:
            item = waiting.pop()
            kind = type(item)
            if isinstance(item, (tuple, frozenset)):
                self.spend(len(item) + 1)
                if len(waiting) + len(item) > 10_000:
                    raise FileError("a key with more than 10000 parts")
                waiting.extend(item)
            elif (kind is int and not -_DISTINCT < item < _DISTINCT) or kind is complex:
                self._costly -= 1
                self.spend(item.bit_length() // 8 if kind is int else 1)
                if self._costly < 0:
                    raise FileError("a great many keys that could have the same hash")
            elif kind not in _PLAIN_KEYS and not isinstance(item, (_C.dtype, _C.device)):
                raise FileError(f"a key of type {kind.__name__}")
        self._depth(value)
        return value

    def _depth(self, value: Any) -> None:
        # Python hashes what is nested by recursion.
        level = [value] if isinstance(value, (tuple, frozenset)) else []
        for _ in range(100):
            level = [part for item in level for part in item if isinstance(part, (tuple, frozenset))]
            if not level:
                return
        raise FileError("a key of too many tuples in tuples")
