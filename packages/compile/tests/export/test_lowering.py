"""What a file holds for the runner, and what is refused; candelabra-runner tests that it runs."""

import io

import pytest

import candelabra
from candelabra import nn
from candelabra.export import Dim, export, save
from candelabra.export.lowering import lowered


def exported(module, *args, **shapes):
    return export(module, args, dynamic_shapes=shapes or None)


def save_for_runner(program, runner=True):
    file = io.BytesIO()
    save(program, file, runner=runner)
    file.seek(0)
    return candelabra.load(file)["runner"]


def test_a_program_of_kernel_calls():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    content = save_for_runner(exported(model, candelabra.ones(5, 3)))
    assert content["version"] == 1 and content["device"] == "cpu"
    assert [name for name, _ in content["kernels"]] == ["linear", "relu"]
    assert [storage.nbytes() for storage in content["storages"]] == [48, 16, 32, 8]
    (program,) = content["programs"]
    float32 = 8
    assert program["inputs"] == [["input", float32, [5, 3], 1]]
    assert program["outputs"] == [["output", float32, [5, 2], 5, 0]]
    # Of 80, 80 and 40 bytes: the last takes the place of the first.
    assert program["arena"] == 256
    assert [buffer for buffer in program["buffers"] if buffer[0] == 0] == [[0, 80, 0], [0, 80, 128], [0, 40, 0]]
    first = program["calls"][0]
    assert first[0] == 0 and first[1] == [[0, 0, float32, [5, 4], [4, 1]]]
    assert first[2][0] == [1, [1, 0, float32, [5, 3], [3, 1]]]


def test_several_sizes_share_weights():
    program = exported(nn.Linear(3, 2), candelabra.ones(5, 3), input={0: Dim("n", min=1, max=9)})
    content = save_for_runner(program, [{"n": 1}, {}, {"n": 9}])
    assert [one["inputs"][0][2] for one in content["programs"]] == [[1, 3], [5, 3], [9, 3]]
    assert len(content["storages"]) == 2


class Writes(nn.Module):
    def forward(self, x):
        return x.add_(1)


class Draws(nn.Module):
    def forward(self, x):
        return x + candelabra.rand(2)


class Sized(nn.Module):
    def forward(self, x):
        return x, x.shape[0]


@pytest.mark.parametrize(("module", "runner", "message"), [
    (Writes(), True, "runner: the program writes to its argument x"),
    (Draws(), True, r"runner: uniform_\(\).* draws random numbers, which no program of kernel calls can have"),
    (Sized(), True, "runner: a result of the program is a int; the results of a program of kernel calls are tensors"),
    (nn.ReLU(), [{"n": 3}], "runner: the program has no size 'n'; those that may differ: none"),
])  # fmt: skip
def test_what_no_program_of_kernel_calls_can_have(module, runner, message):
    with pytest.raises(ValueError, match=message):
        save_for_runner(exported(module, candelabra.ones(2)), runner)


def test_sizes_that_the_program_does_not_take():
    program = exported(nn.Linear(3, 2), candelabra.ones(5, 3), input={0: Dim("n", min=1, max=9)})
    for size in (0, 10, 2.0):
        with pytest.raises(ValueError, match=f"runner: n must be an int from 1 to 9, but got {size}"):
            save_for_runner(program, [{"n": size}])


class Calls(nn.Module):
    def __init__(self, op):
        super().__init__()
        self.op = op

    def forward(self, x):
        return self.op(x)


def test_operators_in_python_are_the_kernels_that_they_call():
    @candelabra.library.custom_op("runner_tests::doubled", mutates_args=())
    def doubled(x: candelabra.Tensor) -> candelabra.Tensor:
        return x * 2

    doubled.register_fake(candelabra.empty_like)
    content = save_for_runner(exported(Calls(doubled), candelabra.ones(2)))
    assert [name for name, _ in content["kernels"]] == ["mul"]


def test_operators_that_compute_outside_of_kernels_are_refused():
    @candelabra.library.custom_op("runner_tests::reversed", mutates_args=())
    def reversed_values(x: candelabra.Tensor) -> candelabra.Tensor:
        return candelabra.tensor(x.tolist()[::-1])

    reversed_values.register_fake(candelabra.empty_like)
    program = exported(Calls(reversed_values), candelabra.ones(2))
    with pytest.raises(ValueError, match=r"runner: .*, which no program of kernel calls can have"):
        save_for_runner(program)


def test_buffers_that_the_program_changes_keep_their_values():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", candelabra.zeros(()))

        def forward(self, x):
            self.calls += 1
            return x + self.calls

    model = Counts()
    content = save_for_runner(exported(model, candelabra.ones(2)))
    assert model.calls.item() == 0
    changed = 3
    assert [buffer[0] for buffer in content["programs"][0]["buffers"]].count(changed) == 1


def test_no_two_buffers_in_use_share_memory():
    class Wide(nn.Module):
        def forward(self, x):
            parts = [x * k for k in range(1, 9)]
            return sum(part.exp() for part in parts)

    graph = exported(Wide(), candelabra.ones(33))._graph
    (program,) = lowered(graph, [{}])["programs"]
    lives = {}
    for at, (_, outputs, arguments) in enumerate(program["calls"]):
        for tensor in [*outputs, *(value[1] for value in arguments if value[0] == 1)]:
            lives.setdefault(tensor[0], [at, at])[1] = at
    made = [(buffer, *lives[number]) for number, buffer in enumerate(program["buffers"]) if buffer[0] == 0]
    assert len(made) > 8
    for k, ((_, size, place), first, last) in enumerate(made):
        assert place % 64 == 0 and place + size <= program["arena"]
        for (_, other_size, other), begin, end in made[:k]:
            assert end < first or begin > last or other + other_size <= place or place + size <= other
