"""Files of exported programs: round trips, other processes, and files that were made to do harm."""

import io
import json
import os
import subprocess
import sys
import zipfile

import pytest

import candelabra
from candelabra import nn, serialization
from candelabra.export import Dim, export, load, save
from candelabra.export.encoding import encoded
from candelabra.serialization import FileError


def mlp():
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))


def saved(program):
    file = io.BytesIO()
    save(program, file)
    return file.getvalue()


def test_the_file_of_an_mlp_is_small_and_aligned(tmp_path):
    model = mlp()
    path = tmp_path / "mlp.cex"
    save(export(model, (candelabra.ones(8, 32),)), path)
    weights = sum(value.nbytes for value in model.state_dict().values())
    assert path.stat().st_size < weights + 16 * 1024
    with zipfile.ZipFile(path) as archive:
        assert not [name for name in archive.namelist() if name.endswith(".pkl")]
    x = candelabra.randn(8, 32)
    module = load(path).module()
    assert module(x).equal(model(x))
    assert all(parameter.data_ptr() % 16 == 0 for parameter in module.parameters())
    # The mapped file is not written to.
    before = path.read_bytes()
    with candelabra.no_grad():
        next(module.parameters()).zero_()
    assert path.read_bytes() == before


SOURCE = """
import sys
sys.path.insert(0, sys.argv[1])
import candelabra, their_model
model = their_model.Network()
program = candelabra.export.export(
    model, (candelabra.ones(2, 3),), dynamic_shapes={"x": {0: candelabra.export.Dim("n")}}
)
candelabra.export.save(program, sys.argv[2])
x = candelabra.arange(15.0).reshape(5, 3)
candelabra.save(tuple(model(x)), sys.argv[3])
"""
MODEL = """
from collections import namedtuple
from candelabra import nn
Result = namedtuple("Result", ["out", "twice"])
class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
    def forward(self, x):
        y = self.layer(x)
        return Result(y, {"a": [y * 2]})
"""
READER = """
import sys, candelabra
found = candelabra.export.load(sys.argv[1]).module()(candelabra.arange(15.0).reshape(5, 3))
assert "their_model" not in sys.modules and type(found).__name__ == "Result"
candelabra.save((found.out, found.twice), sys.argv[2])
"""


def test_another_process_needs_no_source(tmp_path):
    (tmp_path / "their_model.py").write_text(MODEL)
    writer, reader, program = tmp_path / "writer.py", tmp_path / "reader.py", tmp_path / "program"
    writer.write_text(SOURCE)
    reader.write_text(READER)
    expected, found = tmp_path / "expected", tmp_path / "found"
    environment = {**os.environ, "PATH": ""}
    for command in ([writer, tmp_path, program, expected], [reader, program, found]):
        subprocess.run([sys.executable, *map(str, command)], check=True, env=environment, timeout=300, cwd="/")
    out, twice = candelabra.load(expected)
    again, again_twice = candelabra.load(found)
    assert out.equal(again) and twice["a"][0].equal(again_twice["a"][0])


def test_extra_files_and_another_device():
    class Made(nn.Module):
        def forward(self, x):
            return candelabra.zeros(2, device=x.device) + candelabra.arange(2)

    file = io.BytesIO()
    program = export(Made(), (candelabra.ones(2),))
    save(program, file, extra_files={"notes": "text"})
    extra = {"notes": ""}
    module = load(io.BytesIO(file.getvalue()), extra_files=extra, device="meta").module()
    assert extra == {"notes": "text"}
    assert module(candelabra.ones(2, device="meta")).device.type == "meta"
    with pytest.raises(FileError, match="no extra file 'other'"):
        load(io.BytesIO(file.getvalue()), extra_files={"other": ""})
    with pytest.raises(RuntimeError, match=r"is on cpu.*load\(f, device=...\)"):
        module(candelabra.ones(2))


def test_what_no_file_can_hold():
    with pytest.raises(TypeError, match="ExportedProgram"):
        save(nn.ReLU(), io.BytesIO())


def test_truncated_and_damaged_files():
    data = saved(export(mlp(), (candelabra.ones(8, 32),)))
    for length in (0, 1, 30, len(data) // 2, len(data) - 1):
        with pytest.raises(FileError):
            load(io.BytesIO(data[:length]))
    for at in range(100, 2000, 37):
        damaged = bytearray(data)
        damaged[at] ^= 0x55
        try:
            load(io.BytesIO(bytes(damaged)))
        except FileError:
            continue
    file = io.BytesIO()
    candelabra.save({"weight": candelabra.ones(2)}, file)
    file.seek(0)
    with pytest.raises(FileError, match="is no program"):
        load(file)


def changed(change, args=None, dynamic=None):
    """A file whose content was changed by a function."""
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Flatten())
    content = encoded(export(model, args or (candelabra.ones(2, 3),), dynamic_shapes=dynamic)._graph)
    change(content)
    file = io.BytesIO()
    serialization.save(content, file)
    file.seek(0)
    return file


def node(content, number=0):
    return content["nodes"][number]


def put(container, key, value):
    container[key] = value


HOSTILE = {
    "version": (lambda c: put(c, "candelabra_program", 99), "its version is 99"),
    "no nodes": (lambda c: c.pop("nodes"), "its nodes are missing"),
    "nodes of another kind": (lambda c: put(c, "nodes", {}), "its nodes are missing"),
    "node of another length": (lambda c: node(c).pop(), "its nodes make no sense"),
    "unknown operator": (lambda c: put(node(c), 0, "no_such_operator"), "'no_such_operator', which is unknown"),
    "attribute": (lambda c: put(node(c), 0, "__class__"), "is unknown here"),
    "custom operator": (lambda c: put(node(c), 0, "mine::run"), r"namespaces=\('mine',\)"),
    "long name": (lambda c: put(node(c), 0, "a" * 1000), "a name that is none"),
    "cycle": (lambda c: put(node(c)[1], 0, ("value", node(c, 1)[3][0][0])), "used before it is computed"),
    "itself": (lambda c: put(node(c)[1], 0, ("value", node(c)[3][0][0])), "used before it is computed"),
    "twice": (lambda c: put(node(c, 1)[3][0], 0, node(c)[3][0][0]), "defined twice"),
    "negative value": (lambda c: put(node(c)[1], 0, ("value", -1)), "impossible"),
    "wrong dtype": (lambda c: put(node(c)[3][0], 1, candelabra.int64), "another dtype or other sizes"),
    "wrong sizes": (lambda c: put(node(c)[3][0], 2, [2, 5]), "another dtype or other sizes"),
    "huge sizes": (lambda c: put(node(c)[3][0], 2, [1 << 60]), "impossible"),
    "huge input": (lambda c: put(c["inputs"][0], 4, [1 << 47, 3]), "contradict"),
    "input of another dtype": (lambda c: put(c["inputs"][0], 2, candelabra.int64), "does not take its arguments"),
    "too many arguments": (lambda c: node(c)[1].extend([None] * 20), "23 arguments"),
    "unknown argument": (lambda c: node(c)[2].append(["nothing", 1]), "unknown argument"),
    "other results": (lambda c: node(c)[3].append(None), "2 results"),
    "object": (lambda c: put(node(c)[1], 2, {"a": 1}), "argument is a dict"),
    "reference of another kind": (lambda c: put(node(c)[1], 0, ("file", "/etc/passwd")), "unknown kind"),
    "memory format": (lambda c: put(node(c)[1], 0, ("memory_format", "__doc__")), "unknown kind"),
    "size of nothing": (lambda c: put(node(c)[1], 0, ("size", [], 1, 1, 0, False, False)), "follows from none"),
    "size divided by 0": (lambda c: put(node(c)[1], 0, ("size", [[c["inputs"][0][1], 0]], 1, 0, 0, False, False)), "not there"),
    "size of no dimension": (lambda c: put(node(c)[1], 0, ("size", [[c["inputs"][0][1], 9]], 1, 1, 0, False, False)), "not there"),
    "output": (lambda c: put(c["outputs"], 0, ("value", 1000)), "used before"),
    "leaves": (lambda c: c["outputs"].append(None), "another number of leaves"),
    "form": (lambda c: put(c, "in_spec", ["set", []]), "form of the arguments"),
    "form of no arguments": (lambda c: put(c, "in_spec", None), "form of the arguments"),
    "written": (lambda c: put(c, "written", [999]), "no argument and no state"),
    "state names": (lambda c: put(c["states"][0], 2, c["states"][1][2]), "one name"),
    "state within another": (lambda c: put(c["states"][0], 2, c["states"][1][2] + ".x"), "within a tensor"),
    "state of a class": (lambda c: put(c["states"][0], 2, "__class__"), "no name of a parameter"),
    "state of another kind": (lambda c: put(c["states"][0], 1, "method"), "makes no sense"),
    "state without tensor": (lambda c: put(c["states"][0], 4, None), "makes no sense"),
    "parameter": (lambda c: put(c["states"][0], 4, c["states"][0][4].detach()), "is none"),
    "state of other sizes": (lambda c: put(c["states"][0], 4, nn.Parameter(candelabra.ones(7, 7))), "does not take its arguments"),
    "symbol": (lambda c: put(c["inputs"][0][3], 0, ["nothing", 1, 0]), "follows from none"),
    "name": (lambda c: put(c, "name", "a b; import os"), "is no name"),
    "input name": (lambda c: put(c["inputs"][0], 0, "x=print()"), "is no name"),
    "device": (lambda c: put(c, "device", "cpu"), "its device is missing"),
    "file number": (lambda c: put(node(c), 5, 7), "is of no file"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_content(name):
    change, message = HOSTILE[name]
    with pytest.raises(FileError, match=message):
        load(changed(change))


def test_deep_forms():
    form = None
    for _ in range(90):
        form = ["tuple", [form]]
    with pytest.raises(FileError, match="nested too deeply"):
        load(changed(lambda content: put(content, "out_spec", form)))


def test_operators_that_split_make_no_more_tensors_than_are_noted():
    class Split(nn.Module):
        def forward(self, x):
            return x.split(2)

    content = encoded(export(Split(), (candelabra.ones(4),))._graph)
    huge = 1 << 40
    content["inputs"][0][3], content["inputs"][0][4] = [huge], [huge]
    file = io.BytesIO()
    serialization.save(content, file)
    file.seek(0)
    with pytest.raises(FileError, match="splits a tensor of size"):
        load(file)


def test_lying_sizes_of_weights(tmp_path):
    path = tmp_path / "model.cex"
    save(export(mlp(), (candelabra.ones(8, 32),), dynamic_shapes=({0: Dim("n")},)), path)
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    description = json.loads(entries["description.json"])
    description["storages"][0]["bytes"] = 1 << 50
    entries["description.json"] = json.dumps(description).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    with pytest.raises(FileError, match="bytes instead of"):
        load(path)
