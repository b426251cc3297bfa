"""A store with a prefix in front of all keys."""

from __future__ import annotations

from datetime import timedelta
from typing import NoReturn

from .base import Store, seconds


class PrefixStore(Store):
    """A store whose keys are those of another with a prefix.

    Parameters
    ----------
    prefix : str
        Put in front of each key, with a slash.
    store : Store
        The store that keeps the values.

    Examples
    --------
    >>> from candelabra.distributed import HashStore, PrefixStore
    >>> all_keys = HashStore()
    >>> PrefixStore("first", all_keys).set("word", "seven")
    >>> all_keys.get("first/word")
    b'seven'
    """

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        self._prefix = prefix
        self._store = store

    @property
    def underlying_store(self) -> Store:
        """The store that keeps the values."""
        return self._store

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait."""
        return self._store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long `get` and `wait` of the store below wait."""
        self._store.set_timeout(timeout)

    def _name(self, key: str) -> str:
        if not isinstance(key, str):
            raise TypeError(f"a store's key is a str, not {type(key).__name__}")
        return f"{self._prefix}/{key}"

    def _request(self, code: int, parts: list[bytes], timeout: float) -> NoReturn:
        raise NotImplementedError("the methods of a PrefixStore call those of the store below")

    def set(self, key: str, value: str | bytes) -> None:
        self._store.set(self._name(key), value)

    def get(self, key: str) -> bytes:
        return self._store.get(self._name(key))

    def add(self, key: str, amount: int) -> int:
        return self._store.add(self._name(key), amount)

    def check(self, keys: list[str]) -> bool:
        return self._store.check([self._name(key) for key in keys])

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        return self._store.compare_set(self._name(key), expected_value, desired_value)

    def delete_key(self, key: str) -> bool:
        return self._store.delete_key(self._name(key))

    def num_keys(self) -> int:
        return self._store.num_keys()

    def list_keys(self) -> list[str]:
        start = f"{self._prefix}/"
        return [key.removeprefix(start) for key in self._store.list_keys() if key.startswith(start)]

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        names = [self._name(key) for key in keys]
        self._store.wait(names, self._store.timeout if timeout is None else timedelta(seconds=seconds(timeout)))

    def append(self, key: str, value: str | bytes) -> None:
        self._store.append(self._name(key), value)

    def multi_get(self, keys: list[str]) -> list[bytes]:
        return self._store.multi_get([self._name(key) for key in keys])

    def multi_set(self, keys: list[str], values: list[str] | list[bytes]) -> None:
        self._store.multi_set([self._name(key) for key in keys], values)

    def queue_push(self, key: str, value: str | bytes) -> None:
        self._store.queue_push(self._name(key), value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        return self._store.queue_pop(self._name(key), block)

    def queue_len(self, key: str) -> int:
        return self._store.queue_len(self._name(key))

    def clone(self) -> PrefixStore:
        return PrefixStore(self._prefix, self._store.clone())
