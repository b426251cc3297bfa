"""The contents of a store, and what its requests do to them, without any waiting."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from . import wire

#: Requests that change the contents if they succeed.
CHANGING = frozenset({
    wire.SET, wire.ADD, wire.DELETE, wire.COMPARE_SET, wire.MULTI_SET, wire.APPEND, wire.QUEUE_PUSH, wire.QUEUE_POP, wire.QUEUE_TAKE,
})  # fmt: skip


class Missing(Exception):
    """A request has to wait for a key (or a value in a queue)."""

    def __init__(self, key: bytes) -> None:
        super().__init__(key)
        self.key = key


class Table:
    """Keys with values, and queues."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.queues: dict[bytes, deque[bytes]] = {}

    def apply(self, code: int, parts: list[bytes]) -> tuple[list[bytes], list[bytes]]:
        """Carry a request out.

        Returns
        -------
        reply, changed : list of bytes
            What the client gets, and the keys for which others may wait.

        Raises
        ------
        Missing
            A request for keys that do not exist yet; nothing has changed.
        ValueError
            A request that cannot be carried out.
        """
        method = _METHODS.get(code)
        if method is None:
            raise ValueError(f"a store has no request {code}")
        try:
            reply, changed = method(self, *parts)
        except TypeError as error:
            raise ValueError(f"request {code} of a store does not have {len(parts)} parts") from error
        return reply, changed

    def _set(self, key: bytes, value: bytes) -> tuple[list[bytes], list[bytes]]:
        self.values[key] = value
        return [], [key]

    def _get(self, *keys: bytes) -> tuple[list[bytes], list[bytes]]:
        self._wait(*keys)
        return [self.values[key] for key in keys], []

    def _wait(self, *keys: bytes) -> tuple[list[bytes], list[bytes]]:
        for key in keys:
            if key not in self.values:
                raise Missing(key)
        return [], []

    def _check(self, *keys: bytes) -> tuple[list[bytes], list[bytes]]:
        return [b"1" if all(key in self.values or self.queues.get(key) for key in keys) else b"0"], []

    def _add(self, key: bytes, amount: bytes) -> tuple[list[bytes], list[bytes]]:
        try:
            total = int(self.values.get(key, b"0")) + int(amount)
        except ValueError:
            raise ValueError(f"add(): the value of {key.decode(errors='replace')!r} is no number") from None
        self.values[key] = str(total).encode()
        return [self.values[key]], [key]

    def _delete(self, key: bytes) -> tuple[list[bytes], list[bytes]]:
        found = self.values.pop(key, None) is not None
        queued = self.queues.pop(key, None) is not None
        return [b"1" if found or queued else b"0"], []

    def _compare_set(self, key: bytes, expected: bytes, desired: bytes) -> tuple[list[bytes], list[bytes]]:
        current = self.values.get(key)
        if current is None and expected:
            return [expected], []
        if current is not None and current != expected:
            return [current], []
        self.values[key] = desired
        return [desired], [key]

    def _num_keys(self) -> tuple[list[bytes], list[bytes]]:
        return [str(len(self.values)).encode()], []

    def _list_keys(self) -> tuple[list[bytes], list[bytes]]:
        return list(self.values), []

    def _multi_set(self, *pairs: bytes) -> tuple[list[bytes], list[bytes]]:
        keys = list(pairs[0::2])
        self.values.update(zip(keys, pairs[1::2], strict=True))
        return [], keys

    def _append(self, key: bytes, value: bytes) -> tuple[list[bytes], list[bytes]]:
        self.values[key] = self.values.get(key, b"") + value
        return [], [key]

    def _queue_push(self, key: bytes, value: bytes) -> tuple[list[bytes], list[bytes]]:
        self.queues.setdefault(key, deque()).append(value)
        return [], [key]

    def _queue_pop(self, key: bytes) -> tuple[list[bytes], list[bytes]]:
        taken, _ = self._queue_take(key)
        if not taken:
            raise Missing(key)
        return taken, []

    def _queue_take(self, key: bytes) -> tuple[list[bytes], list[bytes]]:
        queue = self.queues.get(key)
        if not queue:
            return [], []
        value = queue.popleft()
        if not queue:
            del self.queues[key]
        return [value], []

    def _queue_len(self, key: bytes) -> tuple[list[bytes], list[bytes]]:
        return [str(len(self.queues.get(key, ()))).encode()], []


_METHODS: dict[int, Callable[..., tuple[list[bytes], list[bytes]]]] = {
    wire.SET: Table._set,
    wire.GET: Table._get,
    wire.WAIT: Table._wait,
    wire.CHECK: Table._check,
    wire.ADD: Table._add,
    wire.DELETE: Table._delete,
    wire.COMPARE_SET: Table._compare_set,
    wire.NUM_KEYS: Table._num_keys,
    wire.LIST_KEYS: Table._list_keys,
    wire.MULTI_SET: Table._multi_set,
    wire.APPEND: Table._append,
    wire.QUEUE_PUSH: Table._queue_push,
    wire.QUEUE_POP: Table._queue_pop,
    wire.QUEUE_TAKE: Table._queue_take,
    wire.QUEUE_LEN: Table._queue_len,
}
