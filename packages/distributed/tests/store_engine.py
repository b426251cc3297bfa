"""A plain engine for the tests: all data goes by the store. It needs no library, and is slow."""

from __future__ import annotations

import ctypes
import itertools
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import reduce
from typing import Any

import candelabra
from candelabra import Tensor
from candelabra.distributed.engines import registry

_POLL = 0.002
_REDUCTIONS = {
    "sum": lambda a, b: a + b,
    "mean": lambda a, b: a + b,
    "product": lambda a, b: a * b,
    "min": candelabra.minimum,
    "max": candelabra.maximum,
    "band": lambda a, b: a & b,
    "bor": lambda a, b: a | b,
    "bxor": lambda a, b: a ^ b,
}


def _data(tensor: Tensor) -> bytes:
    count = tensor.numel() * tensor.element_size()
    return ctypes.string_at(tensor.data_ptr(), count) if count else b""


def _like(data: bytes, tensor: Tensor) -> Tensor:
    if len(data) % tensor.element_size():
        raise RuntimeError("a message has another size than was expected")
    if not data:
        return candelabra.empty(0, dtype=tensor.dtype)
    return candelabra.frombuffer(bytearray(data), dtype=tensor.dtype)


class PooledRequest:
    source = 0

    def __init__(self, future: Future[Any]) -> None:
        self._future = future

    def done(self) -> bool:
        return self._future.done()

    def wait(self, timeout: float | None) -> None:
        self._future.result(timeout)


class Exchange:
    def __init__(self, ranks: StoreCommunicator, receives: list[tuple[Tensor, int, int]]) -> None:
        self.source = -1
        self._ranks = ranks
        self._expected = [
            (tensor, peer, tag, None if peer < 0 else ranks.ticket(peer, tag)) for tensor, peer, tag in receives
        ]

    def done(self) -> bool:
        return all(key is not None and self._ranks.store.check([key]) for *_, key in self._expected)

    def wait(self, timeout: float | None) -> None:
        for tensor, peer, tag, key in self._expected:
            if key is None:
                peer, key = self._ranks.any_source(tag)
            self.source = peer
            (data,) = self._ranks.wait_for([key], timeout)
            tensor.view(-1).copy_(_like(data, tensor))
        self._expected = []


class StoreCommunicator:
    def __init__(self, engine: StoreEngine, ranks: list[int], store: Any, timeout: float | None) -> None:
        self.timeout = timeout
        self.store = store
        self.rank = ranks.index(engine.rank)
        self.size = len(ranks)
        self._engine = engine
        self._numbers = itertools.count()
        self._sent: dict[tuple[int, int], int] = {}
        self._received: dict[tuple[int, int], int] = {}
        self._pool = ThreadPoolExecutor(1)

    def wait_for(self, keys: list[str], timeout: float | None) -> list[bytes]:
        limit = self.timeout if timeout is None else timeout
        end = time.monotonic() + (1e9 if limit is None else limit)
        while not self.store.check(keys):
            if self._engine.failure is not None:
                raise RuntimeError(self._engine.failure)
            if time.monotonic() > end:
                raise TimeoutError(f"timed out after {limit:g} s")
            time.sleep(_POLL)
        return self.store.multi_get(keys)

    def run(self, kind: str, send: Tensor | None, receive: Tensor | None, op: str, peer: int) -> None:
        if not self._pool._work_queue.empty():
            self.start(kind, send, receive, op, peer).wait(None)
            return
        self._run(next(self._numbers), kind, send, receive, op, peer)

    def start(self, kind: str, send: Tensor | None, receive: Tensor | None, op: str, peer: int) -> PooledRequest:
        return PooledRequest(self._pool.submit(self._run, next(self._numbers), kind, send, receive, op, peer))

    def _run(self, number: int, kind: str, send: Tensor | None, receive: Tensor | None, op: str, peer: int) -> None:
        self.store.set(f"{number}/{self.rank}", b"" if send is None else _data(send))
        everyone = self.wait_for([f"{number}/{rank}" for rank in range(self.size)], None)
        if kind == "barrier":
            return
        assert send is not None and receive is not None
        tensors = [_like(data, send) for data in everyone]
        if kind == "broadcast":
            result = tensors[peer]
        elif kind == "all_gather":
            result = candelabra.cat(tensors)
        elif kind == "all_to_all":
            result = candelabra.cat([tensor.chunk(self.size)[self.rank] for tensor in tensors])
        elif kind == "reduce" and self.rank != peer:
            return
        else:
            result = reduce(_REDUCTIONS[op], tensors)
            if op == "mean":
                result = result / self.size
            if kind == "reduce_scatter":
                result = result.chunk(self.size)[self.rank]
        receive.view(-1).copy_(result.to(receive.dtype))

    def exchange(self, sends: list[Any], receives: list[Any]) -> Exchange:
        for tensor, peer, tag in sends:
            number = self._sent[peer, tag] = self._sent.get((peer, tag), 0) + 1
            self.store.set(f"from {self.rank} to {peer} by {tag}: {number}", _data(tensor))
        return Exchange(self, receives)

    def ticket(self, peer: int, tag: int) -> str:
        number = self._received[peer, tag] = self._received.get((peer, tag), 0) + 1
        return f"from {peer} to {self.rank} by {tag}: {number}"

    def any_source(self, tag: int) -> tuple[int, str]:
        while True:
            for peer in range(self.size):
                number = self._received.get((peer, tag), 0) + 1
                key = f"from {peer} to {self.rank} by {tag}: {number}"
                if self.store.check([key]):
                    self._received[peer, tag] = number
                    return peer, key
            time.sleep(_POLL)

    def close(self) -> None:
        self._pool.shutdown(wait=False)


class StoreEngine:
    name = "reference"
    device_types = ("cpu",)
    needs_store = True

    def __init__(self) -> None:
        self.failure: str | None = None
        self.rank = 0

    def start(self, rank: int, size: int, environment: dict[str, str] | None, device: Any) -> None:
        self.rank = rank
        self.failure = None

    def communicator(self, ranks: Any, number: int, name: str, timeout: float | None, **options: Any) -> Any:
        return StoreCommunicator(self, list(ranks), options["store"].clone(), timeout)

    def fail(self, message: str) -> None:
        self.failure = message

    def stop(self) -> None:
        pass


def add() -> None:
    registry.add("reference", StoreEngine)
