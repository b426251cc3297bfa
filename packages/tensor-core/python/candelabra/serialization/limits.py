"""Limits against files that demand excessive work: copies and the hashing of keys are bounded by
the size of the file.
"""

from __future__ import annotations

import json

from candelabra import _C

from .errors import FileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Larger integers share hashes with others. A dict of many such keys would be slow.
_DISTINCT = (1 << 61) - 1
#: How many keys may share one hash.
_MOST_OF_A_HASH = 64
#: Memory of Python objects that a file may ask for: free bytes, and bytes per byte of the file. A
#: list of bools takes 9 times as much as its pickle, and one of pairs of integers 14 times.
_FREE_MEMORY, _MEMORY_RATIO = 1 << 25, 16
#: Bytes of one entry of a dict or a set that must be kept for its hash.
_KEPT_HASH = 100
#: Types that keys may have.
_PLAIN_KEYS = frozenset({str, bytes, bool, int, float, complex, type(None)})


#: Bytes of a JSON list, of a dict, and of a further pair in a dict, with what reading them takes
#: for a moment. Numbers and text take at most 15 bytes for each of their own.
_JSON_LIST, _JSON_DICT, _JSON_PAIR = 88, 200, 150


def parsed_json(text: bytes, length: int) -> Any:
    """Return what the JSON text in a file of so many bytes describes; refuse repeated names.

    The text is refused before it is read if its lists and dicts would take far more memory than a
    file of its size needs.
    """
    dicts = text.count(b"{")
    pairs = max(0, text.count(b":") - dicts)  # besides the first of a dict
    needed = _JSON_LIST * text.count(b"[") + _JSON_DICT * dicts + _JSON_PAIR * pairs
    if needed > _FREE_MEMORY + _MEMORY_RATIO * length:
        raise FileError("its description asks for far more memory than a file of its size needs")
    return json.loads(text.decode("utf-8"), object_pairs_hook=_no_name_twice)


def _no_name_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise FileError("a name stands twice in its description")
    return made


class Budget:
    """The work and memory that reading a file may take, in proportion to its length."""

    def __init__(self, length: int) -> None:
        self.left = (1 << 18) + 4 * length
        self.memory = _FREE_MEMORY + _MEMORY_RATIO * length
        self._hashes: dict[int, int] = {}

    def spend(self, amount: int) -> None:
        """Subtract from the budget. Raises an error if it is exceeded."""
        self.left -= amount
        if self.left < 0:
            raise FileError("it asks for far more work or memory than a file of its size needs")

    def allocate(self, nbytes: int) -> None:
        """Subtract the memory of new objects. Raises an error if it is exceeded."""
        self.memory -= nbytes
        if self.memory < 0:
            raise FileError("it asks for far more memory than a file of its size needs")

    def key(self, value: Any) -> Any:
        """Return a dict key or set member if hashing it is cheap, unlike that of tuples nested many
        times.
        """
        kind = type(value)
        if kind is str or (kind is int and -_DISTINCT < value < _DISTINCT) or kind is bytes:
            return value
        is_crafted = False  # another key with this hash is easily found
        waiting = [value]
        while waiting:
            item = waiting.pop()
            kind = type(item)
            if isinstance(item, (tuple, frozenset)):
                is_crafted = True
                self.spend(len(item) + 1)
                if len(waiting) + len(item) > 10_000:
                    raise FileError("a key with more than 10000 parts")
                waiting.extend(item)
            elif (kind is int and not -_DISTINCT < item < _DISTINCT) or kind is complex:
                is_crafted = True
                self.spend(item.bit_length() // 8 if kind is int else 1)
            elif (
                kind not in _PLAIN_KEYS
                and not isinstance(item, (_C.dtype, _C.device))
                and (kind.__module__ not in ("datetime", "numpy") or kind.__hash__ is None)
            ):
                raise FileError(f"a key of type {kind.__name__}")
        self._depth(value)
        if is_crafted:
            self.allocate(_KEPT_HASH)
            count = self._hashes[hash(value)] = self._hashes.get(hash(value), 0) + 1
            if count > _MOST_OF_A_HASH:
                raise FileError("a great many keys with one hash")
        return value

    def _depth(self, value: Any) -> None:
        # Python hashes nested tuples recursively.
        level = [value] if isinstance(value, (tuple, frozenset)) else []
        for _ in range(100):
            level = [part for item in level for part in item if isinstance(part, (tuple, frozenset))]
            if not level:
                return
        raise FileError("a key of too many tuples in tuples")
