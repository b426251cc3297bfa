"""Dispatch hooks: what sees every call of an operator on a thread, and tensors that stand for
others.
"""

from __future__ import annotations

import threading

import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra
from candelabra import _C, Tensor


@pytest.fixture
def seen():
    calls = []

    def note(operator, arguments, out, generator, record):
        calls.append((operator.name, arguments, out, generator, record))
        return NotImplemented

    assert _C.set_dispatch_hook(note) is None
    yield calls
    assert _C.set_dispatch_hook(None) is note


def test_all_arguments_are_given_with_defaults(seen):
    x, y = candelabra.ones(2), candelabra.ones(2)
    seen.clear()
    out = candelabra.empty(2)
    generator = candelabra.Generator()
    made = candelabra.add(x, other=y, alpha=2)
    candelabra.add(x, 1, out=out)
    x.mul_(3)
    out.normal_(generator=generator)
    assert made.tolist() == [3.0, 3.0]
    names = [name for name, *_ in seen]
    assert names[-4:] == ["add", "add", "mul_", "normal_"] or set(names) >= {"add", "mul_", "normal_"}
    first = next(call for call in seen if call[0] == "add")
    assert first[1][0] is x and first[1][1] is y and first[1][2] == 2 and first[2] is None and first[4] is True
    assert next(call for call in seen if call[2] is out)[1][1] == 1
    assert next(call for call in seen if call[0] == "normal_")[3] is generator


def test_its_result_stands_for_the_call():
    def answer(operator, arguments, out, generator, record):
        return 42 if operator.name == "sin" else NotImplemented

    x = candelabra.ones(2)
    _C.set_dispatch_hook(answer)
    try:
        assert x.sin() == 42
        assert x.cos().shape == (2,)
    finally:
        _C.set_dispatch_hook(None)
    assert x.sin().shape == (2,)


def test_an_error_in_it_is_the_caller_s():
    def fails(operator, arguments, out, generator, record):
        raise KeyError(operator.name)

    x = candelabra.ones(2)
    _C.set_dispatch_hook(fails)
    try:
        with pytest.raises(KeyError, match="exp"):
            x.exp()
    finally:
        _C.set_dispatch_hook(None)


def test_a_call_can_be_done_again(seen):
    x = candelabra.tensor([1.0, 4.0])
    candelabra.sum(x, 0, keepdim=True)
    name, arguments, out, generator, _ = next(call for call in seen if call[0] == "sum")
    assert getattr(candelabra.ops, name).again(arguments, out, generator).tolist() == [5.0]
    out = candelabra.empty(2)
    assert candelabra.ops.add.again((x, 1, 1), out, None) is out and out.tolist() == [2.0, 5.0]
    with pytest.raises(TypeError, match="a tuple of all 3 arguments"):
        candelabra.ops.add.again((x, 1), None, None)


def test_indexing_is_seen(seen):
    x = candelabra.zeros(3, 3)
    seen.clear()
    _ = x[0], x[1:, None]
    x[0] = 1
    x[1][2] = 5
    names = {name for name, *_ in seen}
    assert {"select", "slice", "unsqueeze", "fill_"} <= names
    assert x.sum().item() == 8.0


def test_other_threads_have_their_own(seen):
    seen.clear()
    thread = threading.Thread(target=lambda: candelabra.ones(2).sin())
    thread.start()
    thread.join()
    assert seen == []


class _Wrapper(Tensor):
    pass


def test_wrappers_have_the_geometry_of_what_they_stand_for():
    x = candelabra.arange(24).reshape(2, 3, 4)
    whole = _C.make_wrapper(_Wrapper, x, -1, None)
    assert type(whole) is _Wrapper and whole.shape == x.shape and whole.data_ptr() == x.data_ptr()
    part = _C.make_wrapper(_Wrapper, x, 1, whole)
    assert part.shape == (2, 4) and part.stride() == (12, 1) and part._base is whole
    assert part.tolist() == x[:, 0].tolist()
    with pytest.raises(IndexError, match="no dimension 3"):
        _C.make_wrapper(_Wrapper, x, 3, None)
    with pytest.raises(TypeError, match="subclass of Tensor"):
        _C.make_wrapper(int, x, -1, None)
    with pytest.raises(TypeError, match="expected a callable"):
        _C.set_dispatch_hook(3)


def test_detached_shares_memory_and_version():
    x = candelabra.ones(2)
    other = x._detached()
    other.add_(1)
    assert x.tolist() == [2.0, 2.0] and x._version == other._version
    assert other._base is None and not other.requires_grad
