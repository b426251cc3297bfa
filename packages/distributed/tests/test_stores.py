"""Test stores: what their methods return, waiting, time limits, and who is let in."""

from __future__ import annotations

import socket
import struct
import threading
import time
from datetime import timedelta

import pytest

from candelabra.distributed import (
    DistNetworkError,
    DistStoreError,
    FileStore,
    HashStore,
    PrefixStore,
    QueueEmptyError,
    TCPStore,
)
from candelabra.distributed.store import wire
from candelabra.distributed.store.client import Connection
from candelabra.distributed.store.server import StoreServer

SHORT = timedelta(seconds=0.05)


@pytest.fixture(params=["tcp", "file", "hash", "prefix"])
def store(request, tmp_path):
    if request.param == "tcp":
        made = TCPStore("127.0.0.1", 0, 1, is_master=True)
        yield made
        made.close()
    elif request.param == "file":
        made = FileStore(str(tmp_path / "store"), 1)
        yield made
        made.close()
        assert not (tmp_path / "store").exists()
    else:
        below = HashStore()
        yield below if request.param == "hash" else PrefixStore("part", below)


def test_values(store):
    store.set("word", "seven")
    store.set("bytes", b"\0\xff")
    assert store.get("word") == b"seven" and store.get("bytes") == b"\0\xff"
    assert store.check(["word"]) and not store.check(["word", "other"])
    assert store.delete_key("word") and not store.delete_key("word")
    assert not store.check(["word"])
    store.append("bytes", b"!")
    store.append("new", "a")
    assert store.get("bytes") == b"\0\xff!" and store.get("new") == b"a"
    store.multi_set(["a", "b"], ["1", "2"])
    assert store.multi_get(["b", "a"]) == [b"2", b"1"]
    before = store.num_keys()
    store.set("one more", "")
    assert store.num_keys() == before + 1 and store.get("one more") == b""
    assert {"a", "b", "one more"} <= set(store.list_keys())


def test_counters_and_comparisons(store):
    assert [store.add("count", amount) for amount in (1, 5, -2)] == [1, 6, 4]
    assert store.get("count") == b"4"
    assert store.compare_set("key", "expected", "new") == b"expected" and not store.check(["key"])
    assert store.compare_set("key", "", "first") == b"first"
    assert store.compare_set("key", "other", "second") == b"first"
    assert store.compare_set("key", "first", "second") == b"second"
    with pytest.raises(DistStoreError, match="no number"):
        store.add("key", 1)


def test_queues(store):
    store.queue_push("line", "a")
    store.queue_push("line", "b")
    assert store.queue_len("line") == 2 and store.check(["line"])
    assert [store.queue_pop("line"), store.queue_pop("line", block=False)] == [b"a", b"b"]
    assert store.queue_len("line") == 0
    with pytest.raises(QueueEmptyError):
        store.queue_pop("line", block=False)


def test_a_missing_key_is_named_after_the_time_limit(store):
    store.set_timeout(SHORT)
    for call in (
        lambda: store.get("absent"),
        lambda: store.wait(["absent"]),
        lambda: store.wait(["absent"], SHORT),
        lambda: store.queue_pop("absent"),
    ):
        start = time.monotonic()
        with pytest.raises(DistStoreError, match=r"wait timeout after 50ms.*absent"):
            call()
        assert 0.04 < time.monotonic() - start < 5
    store.set("absent", "here")  # the store works on
    assert store.get("absent") == b"here" and store.timeout == SHORT


def test_one_waits_for_another(store):
    other = store.clone()
    found = []
    waiting = threading.Thread(target=lambda: found.extend([other.get("key"), other.queue_pop("line")]))
    waiting.start()
    time.sleep(0.02)
    store.set("key", "value")
    store.queue_push("line", "first")
    waiting.join(10)
    assert found == [b"value", b"first"]


def test_barrier(store):
    clones = [store.clone() for _ in range(3)]
    threads = [threading.Thread(target=each.barrier, args=("all", 4, timedelta(seconds=10))) for each in clones]
    for thread in threads:
        thread.start()
    store.barrier("all", 4, timedelta(seconds=10))
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)
    with pytest.raises(DistStoreError):
        store.barrier("nobody else", 2, SHORT)


def test_wrong_types(store):
    with pytest.raises(TypeError, match="key is a str"):
        store.set(1, "value")
    with pytest.raises(TypeError, match="keeps str or bytes"):
        store.set("key", 1)
    with pytest.raises(ValueError, match="2 keys, but 1 values"):
        HashStore().multi_set(["a", "b"], ["1"])


def test_prefixes_nest():
    below = HashStore()
    inner = PrefixStore("b", PrefixStore("a", below))
    inner.set("key", "value")
    assert below.get("a/b/key") == b"value" and inner.list_keys() == ["key"]
    assert inner.underlying_store.underlying_store is below


def test_file_store_survives_a_torn_record(tmp_path):
    path = tmp_path / "store"
    first = FileStore(str(path))
    first.set("key", "value")
    with path.open("ab") as file:
        file.write(wire.frame(wire.SET, [b"torn", b"x" * 100])[:40])
    second = FileStore(str(path))
    assert second.get("key") == b"value" and not second.check(["torn"])
    second.set("next", "one")
    assert first.get("next") == b"one" and path.exists()


def test_master_waits_for_the_others():
    with pytest.raises(DistStoreError, match="1/2 clients joined"):
        TCPStore("127.0.0.1", 0, 2, is_master=True, timeout=SHORT)


def test_a_port_in_use_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(DistNetworkError, match=rf"port {port} of 127.0.0.1, which is in use"):
            TCPStore("127.0.0.1", port, 1, is_master=True)


def test_nobody_there():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(DistNetworkError, match="could not be reached within"):
        TCPStore("127.0.0.1", port, 1, timeout=timedelta(seconds=0.1))
    with pytest.raises(ValueError, match="port 0 is for the master"):
        TCPStore("127.0.0.1", 0)


def test_only_the_job_gets_in():
    master = TCPStore("127.0.0.1", 0, 1, is_master=True, token="secret")
    with pytest.raises(DistNetworkError, match="another job token"):
        TCPStore("127.0.0.1", master.port, 1, token="guess")
    assert TCPStore("127.0.0.1", master.port, wait_for_workers=False, token="secret").num_keys() == 1
    master.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.0\r\n\r\n" * 20,
        b"\xff" * 64,
        wire.frame(wire.SET, [b"0", b"key", b"value"]),
        wire.frame(wire.HELLO, []),
        struct.pack("!IBI", 1 << 29, wire.HELLO, 2),  # half a GiB from somebody unknown is not waited for
    ],
    ids=["http", "noise", "no-introduction", "empty-introduction", "long-introduction"],
)
def test_noise_does_not_harm_the_server(sent):
    master = TCPStore("127.0.0.1", 0, 1, is_master=True, token="secret")
    with socket.create_connection(("127.0.0.1", master.port), timeout=10) as stranger:
        stranger.sendall(sent)
        while stranger.recv(4096):
            pass
    master.set("key", "value")
    assert master.get("key") == b"value"
    master.close()


def test_server_listens_at_its_address_only():
    server = StoreServer("127.0.0.1", 0, "")
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", server.port), timeout=5)
    server.close()


def test_many_clients_meet():
    server = StoreServer("127.0.0.1", 0, "")
    clients = [Connection("127.0.0.1", server.port, "store", [], "", 10) for _ in range(200)]
    for client in clients:  # all wait, then the last one comes
        client.send(wire.WAIT, [b"20000", b"go"])
    clients[-1].close()
    last = Connection("127.0.0.1", server.port, "store", [], "", 10)
    last.request(wire.SET, [b"go", b""], 0)
    assert all(client.receive(10)[0] == wire.OK for client in clients[:-1])
    server.close()


def test_frames_in_pieces():
    data = wire.frame(wire.SET, [b"key", b"", b"value" * 100])
    buffer = bytearray()
    for byte in data[:-1]:
        buffer.append(byte)
        assert wire.take_frame(buffer) is None
    buffer += data[-1:] + b"rest"
    assert wire.take_frame(buffer) == (wire.SET, [b"key", b"", b"value" * 100]) and buffer == b"rest"
