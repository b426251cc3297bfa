"""Helpers of the tests: what a compiled function replays."""

import warnings

import candelabra


def is_replayed(compiled):
    """Whether the function has a program that was replayed since it was last recorded."""
    return any(program.calls_left < 1000 for program in compiled.programs)


def refusal(function, *calls):
    """The warning of a compiled function that is called with these arguments in turn."""
    compiled = candelabra.compile(function)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for arguments in calls:
            compiled(*arguments)
    assert not compiled.programs
    messages = [str(one.message) for one in caught if "candelabra.compile" in str(one.message)]
    assert len(messages) == 1, messages
    return messages[0]


def same(a, b):
    """Whether two results are equal, with their dtypes and layouts."""
    if isinstance(a, candelabra.Tensor):
        return a.equal(b) and a.dtype == b.dtype and a.stride() == b.stride() and a.requires_grad == b.requires_grad
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return a == b


def agrees(function, batches, changes=None):
    """Compare calls of a compiled function with ordinary ones, some state changing in between."""
    compiled = candelabra.compile(function)
    for number, arguments in enumerate(batches):
        if changes:
            changes(number)
        expected = function(*arguments)
        assert same(compiled(*arguments), expected), number
    return compiled


def randoms(count=10):
    return [(candelabra.randn(3, 4),) for _ in range(count)]


def agrees_or_refuses(function, change, arguments=lambda number: (candelabra.arange(3.0) + number,), count=18):
    """Compare calls with ordinary ones, of which every sixth changes something. Returns whether
    the function is replayed.
    """
    compiled = candelabra.compile(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(count):
            change(number)
            expected = function(*arguments(number))
            assert same(compiled(*arguments(number)), expected), number
    return is_replayed(compiled)
