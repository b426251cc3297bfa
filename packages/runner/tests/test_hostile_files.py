"""Files that are damaged, or were made to do harm: a message, and no kernel runs."""

from __future__ import annotations

import json
import random
import struct
import subprocess
import zipfile

import pytest
from programs import compiled
from running import BACKEND, entries_of, refusal, rewrite, run_command, saved_mlp, write_entries

import candelabra
from candelabra import nn
from candelabra.export import export, save


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.cex"
    saved_mlp(path)
    return path


def _call(program, number=0):
    return program["calls"][number]


def _tensor(program):
    """Return the first argument of the first call: buffer, offset, dtype, sizes, strides."""
    return _call(program)[2][0][1]


def _set(where, number, value):
    def change(_, program):
        where(program)[number] = value

    return change


def _swap_places(_, program):
    """Give two results that are in use at once the same memory."""
    arena = [buffer for buffer in program["buffers"] if buffer[0] == 0]
    arena[1][2] = arena[0][2]


def _of_runner(name, value):
    return lambda runner, _: runner.update({name: value})


def _of_program(name, value):
    return lambda _, program: program.update({name: value})


@pytest.mark.parametrize(("change", "message"), [
    (_of_runner("version", 2), "its programs are of version 2, and this runner reads 1"),
    (_of_runner("abi", [3, 0]), "it was saved for another version of backend.h"),
    (_of_runner("abi", [2]), "abi has 1 entries instead of 2"),
    (_of_runner("device", "../x"), "the device of the program has no name"),
    (_of_runner("kernels", [["system", 0], ["relu", 0]]), "it calls the operator system, which is unknown here"),
    (_of_runner("kernels", [["linear", 0]]), "a kernel is 1, which must be from 0 to 0"),
    (_of_runner("storages", [{"storage": 9}] * 4), "a storage is 9, which must be from 0 to 3"),
    (_of_runner("storages", [{"storage": 1}] * 4), "buffer 2 is of another size than what is stored"),
    (_of_runner("storages", 7), "storages of the programs is no list"),
    (_of_program("arena", 1 << 60), "the size of the arena is 1152921504606846976, which must be from 0 to 140737488355328"),
    (_of_program("arena", 64), "buffer 0 reaches beyond the arena"),
    (_of_program("arena", "4096"), "the size of the arena is no integer of 64 bits"),
    (_of_program("buffers", []), "input input is in no buffer"),
    (_of_program("inputs", []), "buffer 1 is of another size than its argument"),
    (_of_program("calls", [[]]), "a call of nothing"),
    (_of_program("calls", [["jump", 1, 2]]), "a call of something unknown"),
    (_of_program("calls", []), "output output is in a buffer that no call writes"),
    (_of_program("calls", [["copy", 2, 0, 0, 0, 64]]), "a call writes to buffer 2, which must not change"),
    (_of_program("calls", [["copy", 1, 0, 0, 0, 64]]), "a call writes to buffer 1, which must not change"),
    (_of_program("calls", [["copy", 0, 2000, 2, 0, 64]]), "a call reaches beyond buffer 0"),
    (_of_program("calls", [["fill", 0, 0, 4096, [0] * 16]]), "a call reaches beyond buffer 0"),
    (_of_program("calls", [["fill", 0, 0, 64, [256] * 16]]), "a pattern is 256, which must be from 0 to 255"),
    (_of_program("outputs", [["../../x", 8, [8, 10], 5, 0]]), "an input or output has no name"),
    (_of_program("outputs", [["x", 8, [8, 10], 5, 64]]), "output x reaches beyond its buffer"),
    (_of_program("outputs", [["x", 8, [8, 1 << 61], 5, 0]]), "sizes that are too large"),
    (_of_program("outputs", [["x", 8, [8, 10], -1, 0]]), "output x is in no buffer"),
    (_of_program("outputs", [["x", 99, [8, 10], 5, 0]]), "a dtype is 99, which must be from 0 to 20"),
    (_set(_tensor, 0, 3), "a call reaches beyond buffer 3"),
    (_set(_tensor, 0, 99), "a buffer is 99, which must be from 0 to 7"),
    (_set(_tensor, 0, -2), "a buffer is -2, which must be from 0 to 7"),
    (_set(_tensor, 1, 4), "a call reaches beyond buffer 1"),
    (_set(_tensor, 1, 2), "a call reaches beyond buffer 1"),
    (_set(_tensor, 1, -4), "an offset is -4, which must be from 0 to 140737488355328"),
    (_set(_tensor, 1, 1 << 70), "an offset is no integer of 64 bits"),
    (_set(_tensor, 2, 9), "a call reaches beyond buffer 1"),
    (_set(_tensor, 3, [8, -32]), "a size is -32, which must be from 0 to 4611686018427387904"),
    (_set(_tensor, 3, [1 << 40, 1 << 40]), "sizes that are too large"),
    (_set(_tensor, 3, [8, 33]), "a call reaches beyond buffer 1"),
    (_set(_tensor, 3, [8, 32, 1]), "a tensor of 3 sizes and 2 strides"),
    (_set(_tensor, 3, [1] * 65), "a tensor of 65 sizes and 2 strides"),
    (_set(_tensor, 4, [1 << 61, 1 << 61]), "a stride is 2305843009213693952, which must be from 0 to 72057594037927936"),
    (_set(_tensor, 4, [1 << 56, 1 << 56]), "sizes that are too large"),
    (_set(_tensor, 4, [33, 1]), "a call reaches beyond buffer 1"),
    (_set(_tensor, 4, [-32, 1]), "a stride is -32, which must be from 0 to 72057594037927936"),
    (_set(_call, 0, 5), "a kernel is 5, which must be from 0 to 1"),
    (_set(_call, 1, []), "a call of linear has 0 outputs instead of 1"),
    (_set(_call, 2, []), "a call of linear has 0 arguments instead of 3"),
    (_set(lambda program: _call(program)[2], 0, [0]), "argument 0 of a call of linear is of another kind"),
    (_set(lambda program: _call(program)[2], 0, [4, 1]), "argument 0 of a call of linear is of another kind"),
    (_set(lambda program: _call(program)[2], 0, [8, "x"]), "argument 0 of a call of linear is of another kind"),
    (_set(lambda program: _call(program)[2], 0, [9, 1]), "the kind of an argument is 9, which must be from 0 to 8"),
    (_set(lambda program: _call(program)[1][0], 0, 2), "a call writes to buffer 2, which must not change"),
    (_set(lambda program: _call(program)[1], 0, [-1, [0, 0, 0, 0], 8, []]), "a call writes to a number"),
    (_swap_places, "two buffers overlap in the arena"),
])  # fmt: skip
def test_descriptions_that_make_no_sense(good, tmp_path, change, message):
    rewrite(good, tmp_path / "bad.cex", change)
    assert refusal(tmp_path / "bad.cex", "--list") == f"{tmp_path}/bad.cex: {message}"


def test_an_overlapping_stride_of_an_output_is_no_access_out_of_bounds(good, tmp_path):
    # Strides of 0 repeat elements; they stay within the buffer.
    path = rewrite(good, tmp_path / "bad.cex", _set(_tensor, 4, [0, 0]))
    candelabra.serialization.save_npy(tmp_path / "x.npy", candelabra.ones(8, 32))
    assert run_command(path, tmp_path / "x.npy", "--output", tmp_path).returncode == 0


def _patched(path, target, at, value):
    content = bytearray(path.read_bytes())
    content[at : at + len(value)] = value
    target.write_bytes(content)
    return target


def test_archives_that_make_no_sense(good, tmp_path):
    bad = tmp_path / "bad.cex"
    content = good.read_bytes()
    end = len(content) - 22
    directory = struct.unpack("<L", content[end + 16 : end + 20])[0]
    central = content.index(b"PK\x01\x02")
    assert central == directory

    def refused(patched):
        return refusal(patched, "--list").removeprefix(f"{bad}: ")

    for length in (0, 1, 21, 100, end, len(content) - 1):
        bad.write_bytes(content[:length])
        assert refusal(bad, "--list") in (f"{bad} is empty", f"{bad}: the end of an archive is missing")
    # A hole where the archive's beginning was: offsets do not fit.
    bad.write_bytes(content[64:])
    assert "directory of the archive is not where it should be" in refusal(bad, "--list")
    assert (
        refused(_patched(good, bad, end + 16, struct.pack("<L", 1 << 31)))
        == "the directory of the archive is not where it should be"
    )
    assert (
        refused(_patched(good, bad, end + 12, struct.pack("<L", 10)))
        == "the directory of the archive is not where it should be"
    )
    assert refused(_patched(good, bad, end + 8, struct.pack("<2H", 60000, 60000))).startswith(
        "60000 entries in a directory of"
    )
    assert refused(_patched(good, bad, end + 8, struct.pack("<2H", 1, 1))) == "the directory of the archive is too long"
    assert refused(_patched(good, bad, central, b"XXXX")) == "the directory of the archive makes no sense"
    # Sizes, and where the header lies.
    assert (
        refused(_patched(good, bad, central + 24, struct.pack("<L", 7)))
        == "description.json is compressed; save the program again"
    )
    huge = struct.pack("<2L", 1 << 30, 1 << 30)
    assert refused(_patched(good, bad, central + 20, huge)) == "description.json reaches beyond the archive"
    assert (
        refused(_patched(good, bad, central + 42, struct.pack("<L", 5)))
        == "the header of description.json is not where it should be"
    )
    assert (
        refused(_patched(good, bad, central + 46, b"x"))
        == "the header of xescription.json does not agree with the directory"
    )
    assert refused(_patched(good, bad, central + 8, struct.pack("<H", 1))) == "description.json is encrypted"
    # The text, whose checksum is verified.
    assert (
        refused(_patched(good, bad, content.index(b'"runner"'), b'"ranner"'))
        == "the checksum of description.json is wrong"
    )


def test_entries_that_are_missing_compressed_or_twice(good, tmp_path):
    bad = tmp_path / "bad.cex"
    entries = entries_of(good)
    write_entries(bad, entries, compress=True)
    assert refusal(bad, "--list") == f"{bad}: description.json is compressed; save the program again"
    write_entries(bad, {name: content for name, content in entries.items() if name != "storages/2"})
    assert refusal(bad, "--list") == f"{bad}: there is no storages/2 in it"
    write_entries(bad, {**entries, "storages/2": b"short"})
    assert refusal(bad, "--list") == f"{bad}: storages/2 has 5 bytes instead of 2560"
    with zipfile.ZipFile(bad, "w") as archive:
        archive.writestr("description.json", entries["description.json"])
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("description.json", entries["description.json"])
    assert refusal(bad, "--list") == f"{bad}: two entries with the name description.json"
    with zipfile.ZipFile(bad, "w") as archive:
        archive.writestr("description.json", entries["description.json"])
    assert refusal(bad, "--list") == f"{bad}: description.json is not aligned; save the program again"


@pytest.mark.parametrize(("text", "message"), [
    (b"", "the description is no JSON at byte 0"),
    (b"{", "the description is no JSON at byte 1"),
    (b'{"format":"candelabra archive"}x', "the description goes on after its end"),
    (b"[" * 100_000, "the description is nested too deeply"),
    (b'{"format": "\\ud800"}', "it is no archive of candelabra.save"),
    (b'{"format": "candelabra archive", "content": [1e999, -1.5, true, null]}', "an object with dict is missing"),
    (b"[1, 2]", "an object with format is missing"),
    (b"\xff\xfe", "the description is no JSON at byte 0"),
])  # fmt: skip
def test_texts_that_are_no_description(tmp_path, text, message):
    bad = tmp_path / "bad.cex"
    write_entries(bad, {"description.json": text})
    assert refusal(bad, "--list") == f"{bad}: {message}"


def test_files_that_are_no_programs(tmp_path):
    path = tmp_path / "other.cex"
    save(export(nn.ReLU(), (candelabra.ones(2),)), path)
    wanted = f"{path}: it has no programs for the runner: save it by candelabra.export.save(program, path, runner=True)"
    assert refusal(path, "--list") == wanted
    candelabra.save({"weight": candelabra.ones(2)}, path)
    assert refusal(path, "--list") == wanted
    assert refusal(tmp_path, "--list") == f"{tmp_path} is no regular file"
    assert refusal(tmp_path / "nowhere", "--list") == f"{tmp_path}/nowhere: No such file or directory"


_LEAVES = [
    0, -1, 1, 3, 7, 63, 1 << 20, 1 << 31, (1 << 62) + 1, -(1 << 63), 1 << 64, 0.5, "", "x" * 300, None, True, [], [[]], {},
    {"float": "nan"},
]  # fmt: skip


def _mutate(value, random_number):
    """Change one leaf of plain data at random."""
    places = []

    def walk(node):
        for key in range(len(node)) if isinstance(node, list) else list(node):
            places.append((node, key))
            if isinstance(node[key], list | dict):
                walk(node[key])

    walk(value)
    node, key = random_number.choice(places)
    node[key] = random_number.choice(_LEAVES)


def test_random_changes_are_opened_or_refused(good, tmp_path):
    """One process opens files whose descriptions were changed at random."""
    opener = compiled(tmp_path, "open_many")
    entries = entries_of(good)
    choice = random.Random(1)
    paths = []
    for number in range(150):
        description = json.loads(entries["description.json"])
        runner = next(pair[1] for pair in description["content"]["dict"] if pair[0] == "runner")
        for _ in range(choice.randint(1, 3)):
            _mutate(runner if choice.random() < 0.8 else description, choice)
        paths.append(tmp_path / f"{number}.cex")
        write_entries(paths[-1], {**entries, "description.json": json.dumps(description).encode()})
    content = good.read_bytes()
    for number in range(150):
        changed = bytearray(content)
        for _ in range(choice.randint(1, 4)):
            changed[choice.randrange(len(changed) - 400, len(changed))] = choice.randrange(256)
        paths.append(tmp_path / f"bytes{number}.cex")
        paths[-1].write_bytes(changed)
    done = subprocess.run([opener, BACKEND, *paths], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    statuses = [int(line.partition(" ")[0]) for line in done.stdout.splitlines()]
    assert len(statuses) == len(paths)
    # Refused files, missing kernels, too much memory; some changes make no difference.
    assert set(statuses) <= {0, 1, 2, 5}
    assert statuses.count(1) > 150
