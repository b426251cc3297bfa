"""The recorder of kernel calls, and programs that replay them."""

import gc
import threading

import pytest

import candelabra
from candelabra import _C

MISSING = object()


def record(function, *tensors):
    recording = _C.Recording()
    recording.start()
    try:
        result = function(*tensors)
    finally:
        recording.stop()
    for tensor in tensors:
        recording.register(tensor)
    return recording, result


def program_of(function, *tensors, debug=False, kept=()):
    recording, result = record(function, *tensors)
    assert recording.reason is None
    for tensor in kept:
        recording.register(tensor)
    program = _C.Program(recording, debug)
    for tensor in tensors:
        program.add_input(tensor, False, None)
    program.add_result("memory", result, -1, None, None)
    program.set_trees(tuple(("tensor", k) for k in range(len(tensors))), (), ("tensor", 0))
    program.finish()
    program.calls_left = 1000
    return program


def replayer_of(function, *tensors, **options):
    def unexpected(*arguments):
        raise AssertionError("the program did not fit")

    replayer = _C.Replayer(unexpected)
    replayer.programs = [program_of(function, *tensors, **options)]
    return replayer


def names(recording):
    return [name for name, _, _ in recording.instructions]


def test_kernels_copies_and_fills_are_noted_with_their_line():
    recording, _ = record(lambda x: candelabra.zeros(2, 3).add_(x.clone()).exp(), candelabra.ones(2, 3))
    assert names(recording) == ["fill", "copy", "add_", "exp"]
    file, line = recording.instructions[-1][1:]
    assert file == __file__
    assert line > 0


def test_nothing_is_noted_outside():
    recording, _ = record(lambda x: x, candelabra.ones(2))
    candelabra.ones(3).exp()
    assert recording.instructions == []
    assert not _C.is_recording()


def test_another_thread_is_not_noted():
    recording = _C.Recording()
    recording.start()
    thread = threading.Thread(target=lambda: candelabra.ones(2).exp())
    thread.start()
    thread.join()
    recording.stop()
    assert recording.instructions == []


def test_a_thread_records_once():
    recording = _C.Recording()
    recording.start()
    try:
        with pytest.raises(RuntimeError, match="records already"):
            _C.Recording().start()
    finally:
        recording.stop()


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x.sum().item(), "reads the value"),
        (lambda x: bool(x.sum() > 0), "reads the value"),
        (lambda x: x.tolist(), "tolist"),
        (lambda x: x.numpy(), "numpy"),
        (lambda x: x.nonzero(), "depends on data"),
        (lambda x: x.data_ptr(), "data_ptr"),
        (lambda x: candelabra.manual_seed(0), "random generator"),
        (lambda x: x.untyped_storage().resize_(0), "resized"),
    ],
)
def test_what_cannot_be_replayed_is_refused(function, reason):
    state = candelabra.get_rng_state()
    recording, _ = record(function, candelabra.ones(2, 3))
    candelabra.set_rng_state(state)
    found, file, line = recording.reason
    assert reason in found
    assert file == __file__
    assert line > 0


def test_a_replay_computes_with_new_arguments():
    def function(x, y):
        return (x @ y).relu() + x.sum()

    replayer = replayer_of(function, candelabra.randn(4, 4), candelabra.randn(4, 4))
    for _ in range(3):
        x, y = candelabra.randn(4, 4), candelabra.randn(4, 4)
        assert replayer(x, y).equal(function(x, y))


def test_results_are_new_tensors():
    replayer = replayer_of(lambda x: x + 1, candelabra.ones(3))
    first = replayer(candelabra.ones(3))
    second = replayer(candelabra.zeros(3))
    assert first.tolist() == [2.0, 2.0, 2.0]
    assert second.tolist() == [1.0, 1.0, 1.0]


def test_arguments_may_begin_elsewhere_in_their_memory():
    data = candelabra.randn(10, 4)
    replayer = replayer_of(lambda x: x * 2, data[2:4])
    for begin in (0, 5, 8):
        assert replayer(data[begin : begin + 2]).equal(data[begin : begin + 2] * 2)


@pytest.mark.parametrize(
    "other",
    [
        candelabra.ones(3, 2),
        candelabra.ones(2, 3, dtype=candelabra.float64),
        candelabra.ones(3, 2).T,
        candelabra.ones(2, 3, requires_grad=True),
    ],
)
def test_other_arguments_do_not_fit(other):
    replayer = _C.Replayer(lambda x: "function")
    replayer.programs = [program_of(lambda x: x + 1, candelabra.ones(2, 3))]
    assert replayer(other) == "function"


def test_arguments_that_share_memory_do_not_fit_a_program_of_others():
    replayer = _C.Replayer(lambda x, y: "function")
    replayer.programs = [program_of(lambda x, y: x.add_(1) + y, candelabra.ones(3), candelabra.ones(3))]
    x = candelabra.ones(3)
    assert replayer(x, x) == "function"
    assert replayer(x, candelabra.ones(3)).tolist() == [3.0, 3.0, 3.0]


def test_arguments_are_changed_in_place_and_their_version_counted():
    replayer = replayer_of(lambda x: x.mul_(2).exp(), candelabra.ones(3))
    x = candelabra.ones(3)
    before = x._version
    replayer(x)
    assert x.tolist() == [2.0, 2.0, 2.0]
    assert x._version == before + 1


def test_constants_of_the_host_are_kept():
    def function(x):
        table = candelabra.tensor([1.0, 2.0, 3.0])
        table.mul_(2)
        return x + table + candelabra.tensor([1.0, 1.0, 1.0])

    replayer = replayer_of(function, candelabra.ones(3))
    for _ in range(2):
        assert replayer(candelabra.zeros(3)).tolist() == [3.0, 5.0, 7.0]


def test_random_numbers_are_those_of_ordinary_calls():
    def function(x):
        return x.bernoulli(0.5) + candelabra.rand(3, 5)

    probabilities = candelabra.full((3, 5), 0.5)
    replayer = replayer_of(function, probabilities)
    candelabra.manual_seed(7)
    expected = [function(probabilities) for _ in range(3)]
    candelabra.manual_seed(7)
    assert all(replayer(probabilities).equal(one) for one in expected)
    candelabra.manual_seed(7)
    mixed = [replayer(probabilities), function(probabilities), replayer(probabilities)]
    assert all(a.equal(b) for a, b in zip(mixed, expected, strict=True))


def test_a_generator_is_advanced():
    generator = candelabra.Generator().manual_seed(3)

    def function(x):
        return x + candelabra.rand(4, generator=generator)

    replayer = replayer_of(function, candelabra.zeros(4))
    generator.manual_seed(3)
    expected = [function(candelabra.zeros(4)) for _ in range(2)]
    generator.manual_seed(3)
    assert all(replayer(candelabra.zeros(4)).equal(one) for one in expected)


@pytest.mark.parametrize("debug", [False, True])
def test_memory_is_reused_and_never_while_in_use(debug):
    def function(x):
        kept = x.exp()
        for _ in range(20):
            x = (x * 1.01).sin() + kept
        return x.softmax(1)

    x = candelabra.randn(64, 64)
    program = program_of(function, x, debug=debug)
    if debug:
        assert program.planned_bytes == program.unplanned_bytes
    else:
        assert program.planned_bytes <= program.unplanned_bytes / 5
    replayer = _C.Replayer(function)
    replayer.programs = [program]
    assert replayer(x).equal(function(x))
    assert program.calls_left == 999


def test_live_numbers_are_asked_for_in_each_replay():
    parameter, grad = candelabra.ones(3), candelabra.ones(3)
    rates = [0.5]

    def numbers():
        return (rates[0], 0.0, 0.0, 0.0, False, False, False)

    def function(g):
        candelabra.ops._fused_sgd_([parameter], [g], [], *numbers())
        _C.record_live(numbers)
        return g * 1

    replayer = replayer_of(function, grad, kept=[parameter])
    parameter.fill_(1)
    rates[0] = 0.25
    replayer(grad)
    assert parameter.tolist() == [0.75, 0.75, 0.75]


@pytest.mark.parametrize(
    ("change", "description"),
    [
        (lambda space, entries, x: space.update(a=2), "item 'a'"),
        (lambda space, entries, x: entries.append(1), "list"),
        (lambda space, entries, x: x.requires_grad_(True), "requires_grad"),
        (lambda space, entries, x: setattr(x, "data", candelabra.zeros(2)), "memory"),
    ],
)
def test_guards(change, description):
    space, entries, x = {"a": 1, "b": 2}, list("ab"), candelabra.ones(2)
    program = program_of(lambda y: y + 1, candelabra.ones(2))
    program.add_guard(_C.Guard(("items", space, (("a", 1), ("none", MISSING)), MISSING, -1)))
    program.add_guard(_C.Guard(("list", entries, tuple(entries))))
    program.add_guard(_C.Guard(("tensor", x, 2)))
    program.add_guard(_C.Guard(("modes",)))
    space["b"] = 3
    assert program.failed_guard() is None
    change(space, entries, x)
    assert description in program.failed_guard()


def test_modes_are_guarded():
    program = program_of(lambda y: y + 1, candelabra.ones(2))
    program.add_guard(_C.Guard(("modes",)))
    with candelabra.no_grad():
        assert "mode" in program.failed_guard()
    assert program.failed_guard() is None


def test_two_recordings_are_compared():
    def function(x, factor):
        return x * factor

    x = candelabra.ones(2)
    first, _ = record(lambda x: function(x, 2.0), x)
    same, _ = record(lambda x: function(x, 2.0), x)
    other, _ = record(lambda x: function(x, 3.0), x)
    longer, _ = record(lambda x: function(x, 2.0).exp(), x)
    assert first.difference(same, [(0, 0, 0)]) == ""
    assert "argument 'other' of mul()" in first.difference(other, [(0, 0, 0)])
    assert "exp()" in first.difference(longer, [(0, 0, 0)])


def test_memory_that_lives_on_is_known():
    kept = []
    recording = _C.Recording()
    recording.start()
    x = candelabra.ones(3).exp()
    kept.append(x.sin())
    del x
    gc.collect()
    living = recording.living
    recording.stop()
    assert [recording.first_use(buffer).split(",")[0] for buffer in living] == ["sin()"]


def test_a_failing_kernel_is_not_noted():
    recording = _C.Recording()
    recording.start()
    with pytest.raises(IndexError):
        candelabra.ones(3).index_select(0, candelabra.full((1,), 5))
    candelabra.ones(2).exp()
    recording.stop()
    assert "index_select" not in names(recording)
    assert names(recording)[-1] == "exp"
