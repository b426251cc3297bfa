"""The methods that all stores have."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from datetime import timedelta
from typing import overload

from ..errors import DistStoreError, QueueEmptyError
from . import wire

DEFAULT_TIMEOUT = timedelta(seconds=300)


def seconds(timeout: float | timedelta) -> float:
    """Return a time limit in seconds."""
    return timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)


def _bytes(value: str | bytes) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"a store keeps str or bytes, not {type(value).__name__}")


def _key(key: str) -> bytes:
    if not isinstance(key, str):
        raise TypeError(f"a store's key is a str, not {type(key).__name__}")
    return key.encode()


class Store(ABC):
    """Keys and values that the processes of a job share; the base class of all stores."""

    def __init__(self) -> None:
        self._timeout = DEFAULT_TIMEOUT

    @abstractmethod
    def _request(self, code: int, parts: list[bytes], timeout: float) -> list[bytes]:
        """Carry a request out; wait for its keys at most `timeout` seconds."""

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long `get` and `wait` wait."""
        self._timeout = timeout if isinstance(timeout, timedelta) else timedelta(seconds=timeout)

    def set(self, key: str, value: str | bytes) -> None:
        """Give a key a value.

        Examples
        --------
        >>> from candelabra.distributed import HashStore
        >>> store = HashStore()
        >>> store.set("word", "seven")
        >>> store.get("word")
        b'seven'
        """
        self._request(wire.SET, [_key(key), _bytes(value)], 0)

    def get(self, key: str) -> bytes:
        """Return the value of a key; wait until it has one.

        Raises
        ------
        DistStoreError
            The key got no value within the store's timeout.
        """
        return self._request(wire.GET, [_key(key)], self._timeout.total_seconds())[0]

    def add(self, key: str, amount: int) -> int:
        """Add a number to a counter, which starts at 0, and return the sum."""
        return int(self._request(wire.ADD, [_key(key), str(int(amount)).encode()], 0)[0])

    def check(self, keys: list[str]) -> bool:
        """Return whether all keys exist, without waiting."""
        return self._request(wire.CHECK, [_key(key) for key in keys], 0)[0] == b"1"

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Set a key if it has the expected value (or is missing and ``""`` is expected).

        Returns
        -------
        bytes
            The value that the key has afterwards; the expected one if the key is missing.
        """
        return self._request(wire.COMPARE_SET, [_key(key), _bytes(expected_value), _bytes(desired_value)], 0)[0]

    def delete_key(self, key: str) -> bool:
        """Remove a key, and return whether it existed."""
        return self._request(wire.DELETE, [_key(key)], 0)[0] == b"1"

    def num_keys(self) -> int:
        """Return the number of keys."""
        return int(self._request(wire.NUM_KEYS, [], 0)[0])

    def list_keys(self) -> list[str]:
        """Return all keys."""
        return [key.decode() for key in self._request(wire.LIST_KEYS, [], 0)]

    @overload
    def wait(self, keys: list[str]) -> None: ...
    @overload
    def wait(self, keys: list[str], timeout: timedelta) -> None: ...
    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys exist.

        Raises
        ------
        DistStoreError
            A key is still missing after the timeout.
        """
        limit = self._timeout.total_seconds() if timeout is None else seconds(timeout)
        self._request(wire.WAIT, [_key(key) for key in keys], limit)

    def append(self, key: str, value: str | bytes) -> None:
        """Append to the value of a key, which is empty if the key is missing."""
        self._request(wire.APPEND, [_key(key), _bytes(value)], 0)

    def multi_get(self, keys: list[str]) -> list[bytes]:
        """Return the values of several keys; wait until all have one."""
        return self._request(wire.GET, [_key(key) for key in keys], self._timeout.total_seconds())

    def multi_set(self, keys: list[str], values: list[str] | list[bytes]) -> None:
        """Set several keys at once."""
        if len(keys) != len(values):
            raise ValueError(f"multi_set(): {len(keys)} keys, but {len(values)} values")
        pairs = list(zip(map(_key, keys), map(_bytes, values), strict=True))
        self._request(wire.MULTI_SET, [part for pair in pairs for part in pair], 0)

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Append a value to a queue."""
        self._request(wire.QUEUE_PUSH, [_key(key), _bytes(value)], 0)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Remove and return the first value of a queue.

        Raises
        ------
        QueueEmptyError
            There is none, and `block` is false.
        DistStoreError
            There was none within the store's timeout.
        """
        if block:
            return self._request(wire.QUEUE_POP, [_key(key)], self._timeout.total_seconds())[0]
        taken = self._request(wire.QUEUE_TAKE, [_key(key)], 0)
        if not taken:
            raise QueueEmptyError(f"queue {key!r} is empty")
        return taken[0]

    def queue_len(self, key: str) -> int:
        """Return the number of values in a queue."""
        return int(self._request(wire.QUEUE_LEN, [_key(key)], 0)[0])

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Wait until `world_size` callers have reached this call with the same key."""
        if self.add(f"{key}/arrived", 1) == world_size:
            self.set(f"{key}/all", b"1")
        self.wait([f"{key}/all"], self._timeout if timeout is None else timeout)

    def clone(self) -> Store:
        """Return another store with the same contents; its calls do not wait for this one's."""
        return self

    def has_extended_api(self) -> bool:
        """Return True: `append`, `multi_get` and `multi_set` exist."""
        return True


def missing_keys(code: int, parts: list[bytes], timeout: float) -> DistStoreError:
    """Return the error of a request whose keys did not appear in time."""
    keys = ", ".join(part.decode(errors="replace") for part in parts)
    what = "a value in the queue" if code == wire.QUEUE_POP else "key" if len(parts) == 1 else "keys"
    return DistStoreError(f"wait timeout after {round(timeout * 1000)}ms, {what}: {keys}")


class Deadline:
    """The end of a time limit."""

    def __init__(self, timeout: float) -> None:
        self.end = time.monotonic() + timeout

    def left(self) -> float:
        """Return the seconds that are left, at least 0."""
        return max(0.0, self.end - time.monotonic())
