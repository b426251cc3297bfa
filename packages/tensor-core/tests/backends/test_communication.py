"""candelabra.communication over collectives that are made up (fake_accelerator/collectives.h): what
of a call reaches the backend.
"""

from __future__ import annotations

import pytest
from test_accelerator import library, on_device  # noqa: F401

import candelabra
from candelabra import communication

#: In scripts of `on_device`: a communicator of three ranks.
MADE = """
    from candelabra import communication
    ranks = communication.Communicator("fake:1", communication.unique_id("fake"), 2, 3, timeout=1.5, name="three")
    def ones(*sizes, device="fake:1"):
        return candelabra.empty(sizes, device=device).fill_(1.0)
"""


def test_made_and_closed(on_device):  # noqa: F811
    on_device(
        MADE
        + """
    assert communication.is_available("fake") and communication.version("fake") == ("pretended", 42)
    assert told.collective == "create:1:1500:three" and told.communicators == 1
    assert (ranks.rank, ranks.size, ranks.name, ranks.device) == (2, 3, "three", candelabra.device("fake:1"))
    assert repr(ranks) == "<candelabra.communication.Communicator 'three' of fake:1: rank 2 of 3>"
    part = ranks.split(4, 5)
    assert told.collective == "split:0:4:5:0" and (part.rank, part.size) == (0, 2) and told.communicators == 2
    assert ranks.split(None) is None and told.collective.startswith("split:0:-1")
    part.close(), part.close()
    assert told.communicators == 1
    fails(RuntimeError, "was closed", part.query)
    del part
    with communication.Communicator("fake", communication.unique_id("fake"), 0, 1, timeout=None):
        assert told.collective == "create:0:0:" and told.communicators == 2
    assert told.communicators == 1
    fails(RuntimeError, "did not come", communication.Communicator, "fake", bytes([7] * 128), 0, 2, timeout=0.001)
    fails(ValueError, "somebody else", communication.Communicator, "fake", bytes(128), 0, 2)
    fails(ValueError, "128 bytes", communication.Communicator, "fake", b"7", 0, 2)
    fails(ValueError, "timeout must be positive", communication.Communicator, "fake", bytes([7] * 128), 0, 2, timeout=0)
    fails(NotImplementedError, "has no collectives", communication.unique_id, "cpu")
    del ranks
    assert told.communicators == 0
    """
    )


def test_what_is_queued(on_device):  # noqa: F811
    on_device(
        MADE
        + """
    x = ones(2, 3)
    before = x._version
    assert ranks.all_reduce(x) is x and x.tolist() == [[3.0] * 3] * 2 and x._version == before + 1
    assert told.collective == "all_reduce:6:8:0:0", told.collective
    out = ones(6)
    assert ranks.all_reduce(x, "mean", out=out) is out and out.tolist() == [3.0] * 6 and told.collective == "all_reduce:6:8:4:0"
    ranks.broadcast(x, 1)
    assert told.collective == "broadcast:6:8:1:0"
    ranks.reduce(x, 2, "max")
    assert told.collective == "reduce:6:8:32:0"
    assert ranks.all_gather(ones(18), x).tolist() == [3.0] * 18 and told.collective == "all_gather:6:8:0:0"
    assert ranks.reduce_scatter(ones(2), x, "product").tolist() == [3.0, 3.0] and told.collective == "reduce_scatter:2:8:1:0"
    assert ranks.all_to_all(ones(6), x).tolist() == [3.0] * 6 and told.collective == "all_to_all:2:8:0:0"
    ranks.send(x[1:], 0)
    assert told.collective == "send:3:8:0:0"
    assert ranks.receive(x[1:], 1).tolist() == [[0.0] * 3] and x[0].tolist() == [3.0] * 3 and told.collective == "receive:3:8:1:0"
    stream = accelerator.Stream("fake:1")
    with accelerator.stream(stream):
        ranks.all_reduce(x)
    assert told.collective == f"all_reduce:6:8:0:{stream.native_handle}"
    ranks.wait(2.5)
    assert told.collective == "wait:2500:0:0:0"
    ranks.wait()
    assert told.collective == "wait:0:0:0:0"
    ranks.query()
    ranks.abort()
    fails(RuntimeError, "was aborted", ranks.query)
    fails(RuntimeError, "was aborted", ranks.all_reduce, x)
    """
    )


def test_groups_keep_what_they_send(on_device):  # noqa: F811
    on_device(
        MADE
        + """
    def sent():
        x = ones(3)
        ranks.send(x, 0)
        return x.data_ptr()
    with communication.group("fake:1"):
        assert told.group == 1
        first = sent()
        with communication.group("fake:1"):
            assert told.group == 2
            second = sent()
        assert len({first, second, ones(3).data_ptr()}) == 3
    assert told.group == 0
    try:
        with communication.group("fake"):
            raise KeyError("mine")
    except KeyError:
        assert told.group == 0
    """
    )


def test_what_is_refused(on_device):  # noqa: F811
    on_device(
        MADE
        + """
    x = ones(2, 3)
    for kind, text, function, arguments in (
        (ValueError, "must be contiguous", ranks.all_reduce, [x.mT]),
        (ValueError, "communicator's device", ranks.all_reduce, [ones(2, device="fake:0")]),
        (TypeError, "must be a Tensor, not list", ranks.all_reduce, [[1.0]]),
        (ValueError, "op must be one of sum, product, min, max, mean, band, bor, bxor, but got 'xor'", ranks.all_reduce, [x, "xor"]),
        (ValueError, "3 ranks send 6 elements each, for which 6 are not the right number", ranks.all_gather, [x, x]),
        (ValueError, "not the right number", ranks.reduce_scatter, [x, x]),
        (ValueError, "are not 3 parts of one size", ranks.all_to_all, [ones(4), ones(4)]),
        (ValueError, "must not be the tensor that is sent", ranks.all_to_all, [x, x]),
        (ValueError, "color must not be negative", ranks.split, [-1]),
        (TypeError, "cannot be pickled", __import__("pickle").dumps, [ranks]),
    ):
        before = told.collective
        fails(kind, text, function, *arguments)
        assert told.collective == before
    """
    )


def test_a_library_that_cannot_be_loaded(on_device, tmp_path) -> None:  # noqa: F811
    on_device(
        MADE
        + """
    fails(ValueError, "has collectives of its own", communication.load_library, "fake", "/nowhere.so")
    """
    )
    with pytest.raises(OSError, match=r"could not be opened: .*nowhere\.so"):
        communication.load_library("cpu", tmp_path / "nowhere.so")
    with pytest.raises(OSError, match="exports no function candelabra_collectives"):
        communication.load_library("cpu", candelabra._C.__file__)
    assert not communication.is_available("cpu")


def test_without_collectives() -> None:
    assert not communication.is_available("cpu") and not communication.is_available("no such device")
    with pytest.raises(NotImplementedError, match="the device type 'cpu' .* has no collectives"):
        communication.unique_id("cpu")
    with pytest.raises(NotImplementedError, match="has no collectives"), communication.group("cpu"):
        pass
    assert candelabra.communication is communication
