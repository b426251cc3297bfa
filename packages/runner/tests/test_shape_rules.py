"""Calls of kernels are those that the core makes: its shape rules check each of a file."""

from __future__ import annotations

import collections
import copy
import itertools
import subprocess

import pytest
from operator_programs import Program, program_of, programs
from program_mutations import mutated
from programs import compiled
from running import BACKEND, refusal, rewrite, run_command, saved_mlp

import candelabra
from candelabra.catalogue import OPERATORS


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("runner"), "run_many")


def outcomes(runner, paths):
    """Run files in one process, and return (step, status, message) of each."""
    done = subprocess.run([runner, BACKEND, *paths], capture_output=True, text=True, timeout=600, errors="replace")
    assert done.returncode == 0, (done.returncode, done.stdout[-300:], done.stderr[-3000:])
    found = {}
    for line in done.stdout.splitlines():
        name, _, rest = line.partition(" ")
        if name.endswith(".cex"):
            step, status, *message = rest.split(" ", 2)
            found[name] = (step, int(status), message[0] if message else "")
    assert list(found) == [str(path) for path in paths]
    return list(found.values())


def outcome(runner, folder, program, change=lambda runner: None):
    """Run a program of which something is changed."""
    description = copy.deepcopy(program.runner())
    change(description)
    program.write(folder / "one.cex", description)
    return outcomes(runner, [folder / "one.cex"])[0]


def test_the_calls_of_every_operator_are_accepted(runner, tmp_path):
    texts, paths = [], []
    for number, program in enumerate(programs(2)):
        texts.append(program.text)
        paths.append(tmp_path / f"{number}.cex")
        program.write(paths[-1], program.runner())
    assert len({text.partition("(")[0] for text in texts}) > 250
    refused = [(text, *found) for text, found in zip(texts, outcomes(runner, paths), strict=True) if found[1] != 0]
    assert not refused


def test_calls_in_place_and_into_given_tensors_are_accepted(runner, tmp_path):
    ops = candelabra.ops
    matrix = candelabra.randn(3, 4)
    calls = {
        "add_": (ops.add_, [matrix.clone(), candelabra.randn(4)], {}),
        "add_ of a transposed": (ops.add_, [matrix.clone().t(), candelabra.randn(3)], {}),
        "mul_ of every second": (ops.mul_, [candelabra.randn(3, 8)[:, ::2], 2.5], {}),
        "cumsum_": (ops.cumsum_, [matrix.clone(), 1], {}),
        "index_add_": (
            ops.index_add_, [matrix.clone(), 0, candelabra.tensor([0, 2]), candelabra.randn(2, 4)], {},
        ),
        "scatter_": (ops.scatter_, [matrix.clone(), 1, candelabra.tensor([[0], [1], [3]]), 2.0], {}),
        "mean into": (ops.mean, [matrix, [1]], {"out": candelabra.empty(3)}),
        "add into float64": (ops.add, [matrix, 1], {"out": candelabra.empty(3, 4, dtype=candelabra.float64)}),
        "all into uint8": (ops.all, [matrix > 0], {"out": candelabra.empty(0, dtype=candelabra.uint8)}),
        "a number without dimensions": (ops.add, [candelabra.arange(3), candelabra.tensor(2.0)], {}),
        "fill_ of an expanded": (ops.fill_, [candelabra.zeros(1, 4).expand(3, 4), 7], {}),
    }  # fmt: skip
    for name, (function, arguments, keywords) in calls.items():
        program = program_of(name, function, arguments, keywords)
        assert program is not None
        assert outcome(runner, tmp_path, program) == ("run", 0, ""), name


def test_a_default_dtype_of_the_process_that_saved_is_accepted(runner, tmp_path):
    candelabra.set_default_dtype(candelabra.float64)
    try:
        program = program_of("div", OPERATORS["div"], [candelabra.arange(4), 3], {})
    finally:
        candelabra.set_default_dtype(candelabra.float32)
    assert outcome(runner, tmp_path, program) == ("run", 0, "")


def test_changed_calls_are_refused_or_run(runner, tmp_path):
    """Files with changed sizes, strides, offsets, dtypes, ranks, values, orders and operators."""
    found: collections.Counter[tuple[str, int]] = collections.Counter()
    files = mutated(tmp_path, 1200, seed=5, calls=2)
    while batch := list(itertools.islice(files, 400)):
        for step, status, message in outcomes(runner, batch):
            found[step, status] += 1
            assert status == 0 or message
        for path in batch:
            path.unlink()
    # Refused files, missing kernels, and indices that are out of range; some changes make sense.
    assert set(found) <= {("open", 1), ("open", 2), ("run", 0), ("run", 4), ("run", 5)}
    assert found["open", 1] > 500
    assert found["run", 0] > 200


def _tensor(program, argument, call=0):
    return program["calls"][call][2][argument][1]


@pytest.mark.parametrize(("change", "message"), [
    (lambda p: _tensor(p, 0).__setitem__(3, [8, 16]),
     "mat1 and mat2 shapes cannot be multiplied (8x16 and 32x64)"),
    (lambda p: _tensor(p, 1).__setitem__(3, [32, 32]), "The expanded size of the tensor (32) must match the existing size (64)"),
    (lambda p: p["calls"][0][1][0].__setitem__(3, [4, 64]), "output 0 is float32[4, 64], which the operator does not give"),
    (lambda p: p["calls"][0][1][0].__setitem__(4, [1, 8]), "output 0 has other strides than the operator gives it"),
    (lambda p: p["calls"][0][1][0].__setitem__(2, 4), "output 0 is int32[8, 64], which the operator does not give"),
    (lambda p: _tensor(p, 2).__setitem__(2, 4), "self and mat2 must have the same dtype, but got Int (bias)"),
    (lambda p: _tensor(p, 2).__setitem__(3, [32]),
     "The expanded size of the tensor (64) must match the existing size (32)"),
    (lambda p: _tensor(p, 0).__setitem__(slice(3, 5), [[8], [32]]), "mat1 and mat2 shapes cannot be multiplied"),
    (lambda p: _tensor(p, 1).__setitem__(slice(3, 5), [[], []]), "both arguments to linear need to be at least 1D"),
    (lambda p: p["calls"][0][2].__setitem__(1, p["calls"][0][2][0]),
     "The expanded size of the tensor (8) must match the existing size (64)"),
    (lambda p: _tensor(p, 1, 2).__setitem__(3, [10, 32]), "mat1 and mat2 shapes cannot be multiplied (8x64 and 32x10)"),
    (lambda p: p["calls"][1][1][0].__setitem__(3, [8, 32]), "output 0 is float32[8, 32], which the operator does not give"),
])  # fmt: skip
def test_calls_whose_sizes_disagree(tmp_path, change, message):
    saved_mlp(tmp_path / "good.cex")
    path = rewrite(tmp_path / "good.cex", tmp_path / "bad.cex", lambda _, program: change(program))
    found = refusal(path, "--list")
    name = "relu" if "[8, 32]" in message else "linear"
    assert found.startswith(f"{path}: a call of {name} makes no sense: ")
    assert message in found


def test_arguments_that_are_missing_or_of_another_kind(runner, tmp_path):
    program = program_of("sum", OPERATORS["sum"], [candelabra.randn(3, 4), [1]], {})

    def changed(position, value):
        return outcome(
            runner, tmp_path, program,
            lambda runner: runner["programs"][0]["calls"][0][2].__setitem__(position, value),
        )[2].partition(": ")[2]  # fmt: skip

    assert changed(0, [0]) == "argument 0 of a call of sum is of another kind"
    assert changed(2, [0]) == "a call of sum makes no sense: argument keepdim is of another kind"
    assert changed(2, [4, 2]) == "a call of sum makes no sense: argument keepdim is of another kind"
    assert changed(1, [6, [2]]).startswith("a call of sum makes no sense: Dimension out of range")
    assert changed(1, [6, [1, 1]]) == "a call of sum makes no sense: dim 1 appears multiple times in the list of dims"
    assert changed(1, [6, [-1]]) == "a call of sum makes no sense: argument dim is not as the kernel takes it"
    assert changed(1, [6, [0]]).startswith("a call of sum makes no sense: output 0 is ")


def test_results_that_share_memory_with_arguments(runner, tmp_path):
    indices = candelabra.tensor([2, 0, 1])
    program = program_of("take", OPERATORS["index_select"], [candelabra.arange(3), 0, indices], {})

    def into_argument(position):
        def change(runner):
            call = runner["programs"][0]["calls"][0]
            buffer = call[2][position][1][0]
            runner["programs"][0]["buffers"][buffer][0] = 3
            call[1][0][:2] = [buffer, 0]

        return outcome(runner, tmp_path, program, change)[2].partition(": ")[2]

    # The kernel would check indices and then write over them.
    assert into_argument(2) == "a call of index_select writes to what it reads"
    assert into_argument(0) == "a call of index_select writes to what it reads"


def test_indices_are_checked_by_kernels(runner, tmp_path):
    values = candelabra.randn(4, 3)
    for name, arguments in {
        "index_select": [values, 0, candelabra.tensor([0, 3])],
        "gather": [values, 0, candelabra.tensor([[0, 1, 3]])],
        "scatter_add": [values, 0, candelabra.tensor([[0, 1, 3]]), candelabra.ones(1, 3)],
        "index": [values, [candelabra.tensor([0, 3])]],
        "index_put": [values, [candelabra.tensor([0, 3])], candelabra.ones(2, 3), False],
        "embedding": [values, candelabra.tensor([0, 3])],
        "take": [values, candelabra.tensor([0, 11])],
        "nll_loss_forward": [values, candelabra.tensor([0, 1, 2, 2]), None, 1, -100],
    }.items():
        program = program_of(name, OPERATORS[name], arguments, {})
        assert outcome(runner, tmp_path, program) == ("run", 0, ""), name
        position = next(k for k, content in enumerate(program.storages) if content == _bytes(arguments))
        for wrong in (1000, -1000, -(1 << 63), (1 << 63) - 1):
            bad = copy.copy(program)
            bad.storages = list(program.storages)
            bad.storages[position] = program.storages[position][:-8] + wrong.to_bytes(8, "little", signed=True)
            step, status, message = outcome(runner, tmp_path, bad)
            assert (step, status) == ("run", 4), (name, wrong, message)


def _bytes(arguments):
    """Return the memory of the tensor of indices."""
    leaves = [one for value in arguments for one in (value if isinstance(value, list) else [value])]
    found = next(one for one in leaves if isinstance(one, candelabra.Tensor) and one.dtype is candelabra.int64)
    return bytes(found.untyped_storage().tolist())


def test_bools_are_0_or_1(runner, tmp_path):
    condition = candelabra.tensor([True, False, True])
    program = program_of("where", OPERATORS["where"], [condition, candelabra.ones(3), candelabra.zeros(3)], {})
    position = program.storages.index(b"\1\0\1")
    program.storages[position] = b"\1\0\2"
    assert outcome(runner, tmp_path, program)[2].endswith("has bools that are neither 0 nor 1")
    # Memory that changes is checked when it is read.
    buffer = next(k for k, one in enumerate(program.buffers) if one[0] == 2 and one[2] == position)
    program.buffers[buffer][0] = 3
    assert outcome(runner, tmp_path, program) == (
        "run", 4, "where(): an argument has bools that are neither 0 nor 1",
    )  # fmt: skip


def test_memory_that_no_call_has_written_is_zeros(tmp_path):
    """A program cannot read what was in the memory of the process."""
    program = Program("made up", [], [(1 << 16, False, True, None)], {})
    description = program.runner()
    description["programs"][0]["outputs"] = [["output", 8, [1 << 14], 0, 0]]
    description["programs"][0]["calls"] = [["fill", 0, 0, 16, [255] * 16]]
    program.write(tmp_path / "read.cex", description)
    done = run_command(tmp_path / "read.cex", "--output", tmp_path / "read.npy")
    assert done.returncode == 0, done.stderr
    values = candelabra.serialization.load_npy(tmp_path / "read.npy")
    assert values[:4].isnan().all()
    assert values[4:].eq(0).all()


def test_operators_without_kernels_are_refused(runner, tmp_path):
    program = program_of("relu", OPERATORS["relu"], [candelabra.ones(3)], {})
    for name, message in {
        "nonzero": "a call of nonzero has results whose sizes depend on data",
        "system": "it calls the operator system, which is unknown here",
    }.items():
        found = outcome(runner, tmp_path, program, lambda runner, name=name: runner.update(kernels=[[name, 0]]))
        assert found[:2] == ("open", 1)
        assert found[2].partition(": ")[2] == message
