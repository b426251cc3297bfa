"""Torch 7's files: what they hold, both forms, and files that are damaged or hostile."""

from __future__ import annotations

import io
import random
import struct
from pathlib import Path
from typing import Any

import pytest

import candelabra
from candelabra.legacy import T7ReaderException, Torch7Object, load_lua, nn, save_lua
from candelabra.testing import assert_close


def integer(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}i", *values)


def long(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def number(value: float) -> bytes:
    return integer(1) + struct.pack("<d", value)


def text(value: bytes) -> bytes:
    return integer(len(value)) + value


def string(value: bytes) -> bytes:
    return integer(2) + text(value)


def table(index: int, *entries: bytes) -> bytes:
    return integer(3, index, len(entries) // 2) + b"".join(entries)


def torch(index: int, name: bytes, content: bytes = b"") -> bytes:
    return integer(4, index) + text(b"V 1") + text(name) + content


def storage(index: int, name: bytes, data: bytes, count: int) -> bytes:
    return torch(index, b"torch." + name + b"Storage", long(count) + data)


def tensor(index: int, name: bytes, sizes: list[int], strides: list[int], offset: int, content: bytes) -> bytes:
    shape = integer(len(sizes)) + long(*sizes, *strides, offset)
    return torch(index, b"torch." + name + b"Tensor", shape + content)


def load(data: bytes, **settings: Any) -> Any:
    return load_lua(io.BytesIO(data), **settings)


FLOATS = storage(2, b"Float", struct.pack("<6f", *range(6)), 6)


def test_simple_values() -> None:
    assert load(integer(0)) is None
    assert load(number(3)) == 3 and type(load(number(3))) is int
    assert load(number(0.5)) == 0.5 and load(number(float("inf"))) == float("inf")
    assert load(integer(5, 1)) is True and load(integer(5, 0)) is False
    assert load(string(b"caf\xc3\xa9")) == "café" and load(string(b"\xff")) == b"\xff" and load(string(b"")) == ""
    assert load(table(1)) == {}
    assert load(table(1, number(2), string(b"b"), number(1), string(b"a"))) == ["a", "b"]
    assert load(table(1, number(0), string(b"a"), number(1), string(b"b"))) == {0: "a", 1: "b"}
    assert load(table(1, string(b"k"), integer(5, 1), number(1.5), integer(0))) == {"k": True, 1.5: None}


def test_tensors() -> None:
    found = load(tensor(1, b"Float", [2, 2], [3, 1], 2, FLOATS))
    assert found.tolist() == [[1.0, 2.0], [4.0, 5.0]] and found.dtype == candelabra.float32
    assert load(tensor(1, b"Double", [], [], 1, integer(0))).shape == (0,)
    assert load(FLOATS).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    for name, code, dtype in (
        (b"Byte", "B", "uint8"), (b"Char", "b", "int8"), (b"Short", "h", "int16"), (b"Int", "i", "int32"),
        (b"Long", "q", "int64"), (b"Double", "d", "float64"), (b"Half", "e", "float16"), (b"Cuda", "f", "float32"),
        (b"CudaHalf", "e", "float16"),
    ):  # fmt: skip
        data = storage(2, name, struct.pack(f"<3{code}", 1, 2, 3), 3)
        found = load(tensor(1, name, [3], [1], 1, data))
        assert found.tolist() == [1, 2, 3] and found.dtype == getattr(candelabra, dtype)
    # The form before versions: the name of the class alone.
    old = integer(4, 1) + text(b"torch.FloatStorage") + long(1) + struct.pack("<f", 7)
    assert load(old).tolist() == [7.0]


def test_tensors_with_32_bit_longs() -> None:
    data = torch(2, b"torch.LongStorage", integer(2, 40, 50))
    content = torch(1, b"torch.LongTensor", integer(1) + integer(2, 1, 1) + data)
    assert load(content, long_size=4).tolist() == [40, 50]
    with pytest.raises(ValueError, match="4 or 8 bytes"):
        load(content, long_size=2)


def test_what_is_there_once_is_one_object() -> None:
    one = tensor(2, b"Float", [3], [1], 1, storage(3, b"Float", struct.pack("<6f", *range(6)), 6))
    other = tensor(4, b"Float", [3], [1], 4, integer(4, 3))
    data = table(1, number(1), one, number(2), other, number(3), integer(4, 2), number(4), integer(3, 1))
    found = load(data)
    assert found[2] is found[0] and found[3] is found
    assert found[0].untyped_storage().data_ptr() == found[1].untyped_storage().data_ptr()
    assert found[1].tolist() == [3.0, 4.0, 5.0]


def test_text_files() -> None:
    lines = (
        b"3\n1\n3\n1\n1\n4\n2\n3\nV 1\n17\ntorch.FloatTensor\n2\n2 2\n2 1\n1\n4\n3\n3\nV 1\n18\ntorch.FloatStorage\n"
        b"4\n1 2.5 -3e-05 nan\n1\n2\n2\n5\nh\n \xc3\xa9\n1\n3\n5\n1\n"
    )
    first, second, third = load(lines)
    assert first[0].tolist() == [1.0, 2.5] and first[1, 0] == candelabra.tensor(-3e-05) and first[1, 1].isnan()
    assert second == "h\n é" and third is True
    assert load(b"1\n0.1\n") == 0.1


VALUES = [
    None, True, -3, 0.1, "text", ["a", 2, None, False], {"k": [1.5], "empty": "", 7: {}}, candelabra.arange(6.0).view(2, 3).t(),
    candelabra.tensor([1, -2]), candelabra.tensor([[1, 255]], dtype=candelabra.uint8), candelabra.tensor([1.5], dtype=candelabra.float16),
    candelabra.tensor([-1, 3], dtype=candelabra.int8), candelabra.tensor([1 / 3], dtype=candelabra.float64), candelabra.empty(0),
    candelabra.tensor([2, 3], dtype=candelabra.int16), candelabra.tensor([2, 3], dtype=candelabra.int32),
]  # fmt: skip


@pytest.mark.parametrize("ascii", [False, True])
@pytest.mark.parametrize("value", VALUES, ids=[str(i) for i in range(len(VALUES))])
def test_written_values_are_read(value: Any, ascii: bool, tmp_path: Path) -> None:
    save_lua(value, tmp_path / "value.t7", ascii=ascii)
    found = load_lua(tmp_path / "value.t7")
    if isinstance(value, candelabra.Tensor):
        assert_close(found, value)
    else:
        assert found == value
    assert load_lua(str(tmp_path / "value.t7"), ascii=ascii) is not None or value is None


def test_the_bytes_of_written_values() -> None:
    file = io.BytesIO()
    save_lua(["a", candelabra.tensor([1.0, 2.0])], file)
    vector = tensor(2, b"Float", [2], [1], 1, storage(3, b"Float", struct.pack("<2f", 1, 2), 2))
    assert file.getvalue() == table(1, number(1), string(b"a"), number(2), vector)
    file = io.BytesIO()
    save_lua([True], file, ascii=True)
    assert file.getvalue() == b"3\n1\n1\n1\n1\n5\n1\n"
    for value in (object(), 1j, candelabra.tensor([1j])):
        with pytest.raises(TypeError, match="Torch 7 has no"):
            save_lua(value, io.BytesIO())


def test_written_references() -> None:
    loop: list[Any] = [candelabra.zeros(4)]
    loop += [loop, loop[0], loop[0][1:3]]
    file = io.BytesIO()
    save_lua(loop, file)
    found = load(file.getvalue())
    assert found[1] is found and found[2] is found[0]
    found[0].fill_(5)
    assert found[3].tolist() == [5.0, 5.0]


# ---- modules


def module(class_name: bytes, /, **fields: bytes) -> bytes:
    entries = [part for key, value in fields.items() for part in (string(key.encode()), value)]
    return torch(1, b"nn." + class_name, table(2, *entries))


def matrix(index: int, *sizes: int) -> bytes:
    count = 1
    strides: list[int] = []
    for size in reversed(sizes):
        strides.insert(0, count)
        count *= size
    data = storage(index + 1, b"Float", struct.pack(f"<{count}f", *range(count)), count)
    return tensor(index, b"Float", list(sizes), strides, 1, data)


def test_a_module_of_torch_7() -> None:
    found = load(
        module(
            b"Linear",
            weight=matrix(10, 2, 3),
            bias=matrix(20, 2),
            _type=string(b"torch.FloatTensor"),
            output=matrix(30, 2),
        )
    )
    assert type(found) is nn.Linear and found.output.numel() == 0
    assert found.forward(candelabra.ones(3)).tolist() == [3.0, 13.0]
    found.backward(candelabra.ones(3), candelabra.ones(2))
    assert found.gradWeight.tolist() == [[1.0] * 3] * 2


def test_indices_count_from_zero_here() -> None:
    assert load(module(b"JoinTable", dimension=number(2))).dimension == 1
    found = load(module(b"Narrow", dimension=number(2), index=number(3), length=number(1)))
    assert (found.dimension, found.offset, found.length) == (1, 2, 1)
    assert load(module(b"SelectTable", index=number(-1))).index == -1
    pairs = table(5, number(1), table(6, number(1), number(2), number(2), number(3)))
    assert load(module(b"Transpose", permutations=pairs)).forward(candelabra.ones(2, 3, 4)).shape == (2, 4, 3)
    assert load(module(b"LookupTable", weight=matrix(10, 3, 2), paddingValue=number(0))).paddingValue == -1


def test_fields_that_older_files_lack_or_name_otherwise() -> None:
    assert load(module(b"Dropout", p=number(0.25))).v2 is False
    assert load(module(b"Dropout", p=number(0.25), v2=integer(5, 1))).v2 is True
    found = load(module(b"BatchNormalization", running_mean=matrix(10, 2), running_std=matrix(20, 2), eps=number(0)))
    assert found.running_var.tolist() == [float("inf"), 1.0]
    assert load(module(b"Threshold", threshold=number(1), val=number(2))).value == 2
    sizes = storage(9, b"Long", long(2, 3), 2)
    assert load(module(b"View", size=sizes, numElements=number(6))).forward(candelabra.ones(4, 6)).shape == (4, 2, 3)
    assert load(module(b"Reshape", size=sizes)).forward(candelabra.ones(2, 3)).shape == (2, 3)
    planes = {name: number(1) for name in ("nInputPlane", "nOutputPlane", "dW", "dH")}
    kernels = {"kW": number(3), "kH": number(2), "padW": number(0), "padH": number(0)}
    found = load(module(b"SpatialConvolutionMM", weight=matrix(10, 1, 6), bias=matrix(20, 1), **planes, **kernels))
    assert found.forward(candelabra.ones(1, 2, 3)).tolist() == [[[15.0]]]
    planes["padding"] = number(1)
    kernels = {"kW": number(3), "kH": number(3)}
    found = load(module(b"SpatialConvolution", weight=matrix(10, 1, 1, 3, 3), bias=matrix(20, 1), **planes, **kernels))
    assert found.forward(candelabra.ones(1, 1, 1)).tolist() == [[[4.0]]]
    data = torch(1, b"cudnn.ReLU", table(2, string(b"mode"), string(b"CUDNN_ACTIVATION_RELU")))
    assert type(load(data)) is nn.ReLU
    network = table(3, string(b"modules"), table(4))
    assert load(torch(1, b"nn.Sequential", network)).forward(3) == 3


def everything() -> nn.Module:
    net = nn.Sequential()
    net.add(nn.SpatialConvolution(1, 4, 3, 3)).add(nn.SpatialBatchNormalization(4)).add(nn.ReLU(True))
    net.add(nn.SpatialMaxPooling(2, 2)).add(nn.SpatialLPPooling(4, 2, 2, 2)).add(nn.View(-1).setNumInputDims(3))
    split = nn.ConcatTable().add(nn.Linear(16, 3)).add(nn.Sequential().add(nn.Dropout(0.1)).add(nn.Linear(16, 3)))
    return (
        net.add(split).add(nn.JoinTable(1)).add(nn.PartialLinear(6, 4)).add(nn.Narrow(1, 1, 2)).add(nn.SoftShrink(0.1))
    )


@pytest.mark.parametrize("ascii", [False, True])
def test_a_written_network_is_read(ascii: bool) -> None:
    net = everything()
    net.getParameters()
    net.evaluate()
    file = io.BytesIO()
    save_lua({"net": net, "criterion": nn.MultiCriterion().add(nn.MSECriterion(), 0.5)}, file, ascii=ascii)
    found = load(file.getvalue())
    value = candelabra.randn(2, 1, 10, 10)
    assert_close(found["net"].forward(value), net.forward(value))
    # Flat parameters are one storage in the file and afterwards.
    assert len({p.untyped_storage().data_ptr() for p in found["net"].parameters()[0]}) == 1
    assert found["criterion"].forward(value, value * 0) == pytest.approx(0.5 * float((value**2).mean()))
    assert repr(found["net"]) == repr(net)


def test_unknown_classes() -> None:
    data = torch(1, b"my.Thing", table(2, string(b"size"), number(3)))
    with pytest.raises(T7ReaderException, match="class 'my.Thing' is not known"):
        load(data)
    found = load(data, unknown_classes=True)
    assert isinstance(found, Torch7Object) and found.typename == "my.Thing" and found.fields == {"size": 3}
    assert repr(found) == "Torch7Object('my.Thing')"


# ---- damaged and hostile files

DAMAGED = {
    "nothing": (b"", "a number needs 4 bytes, but the file has 0 more"),
    "unknown type": (integer(9), "9 is not the code of a type"),
    "a function": (integer(8, 1, 4) + b"\x1bLua", "function of Lua"),
    "an old function": (integer(6), "function of Lua"),
    "a long string": (integer(2, 2**31 - 1) + b"abc", "a string needs 2147483647 bytes, but the file has 3 more"),
    "a negative string": (integer(2, -1), "a string needs -1 bytes"),
    "a large table": (integer(3, 1, 2**31 - 1) + number(1), "a number needs"),
    "a negative table": (integer(3, 1, -1), "a table of -1 entries"),
    "a table as a key": (table(1, table(2), number(1)), "neither a number nor a string"),
    "not a number as a key": (table(1, number(float("nan")), number(1)), "neither a number nor a string"),
    "a large storage": (torch(1, b"torch.ByteStorage", long(2**40)), "a storage needs 1099511627776 bytes"),
    "an overflowing storage": (torch(1, b"torch.DoubleStorage", long(2**61)), "a storage needs"),
    "a negative storage": (torch(1, b"torch.DoubleStorage", long(-1)), "a storage needs -1 bytes"),
    "too many dimensions": (torch(1, b"torch.FloatTensor", integer(10**6)), "a tensor of 1000000 dimensions"),
    "outside of the storage": (tensor(1, b"Float", [7], [1], 1, FLOATS), "not within a storage of 6 elements"),
    "before the storage": (tensor(1, b"Float", [2], [1], -1, FLOATS), "not within a storage"),
    "a far stride": (tensor(1, b"Float", [2, 2], [2**62, 1], 1, FLOATS), "not within a storage"),
    "a negative stride": (tensor(1, b"Float", [2], [-1], 2, FLOATS), "a negative size or stride"),
    "more elements than counts": (tensor(1, b"Float", [2**40, 2**40], [0, 0], 1, FLOATS), "not within a storage"),
    "another storage": (tensor(1, b"Double", [2], [1], 1, FLOATS), "a DoubleTensor without a DoubleStorage"),
    "a table as a storage": (tensor(1, b"Float", [2], [1], 1, table(2)), "a FloatTensor without a FloatStorage"),
    "a table that is a tensor": (table(1, number(1), FLOATS, number(2), integer(3, 2)), "referred to as something"),
    "a tensor inside of itself": (tensor(1, b"Float", [2], [1], 1, integer(4, 1) + b"\0" * 8), "characters"),
    "no name": (integer(4, 1) + text(b""), "a class whose name has 0 characters"),
    "a strange name": (integer(4, 1) + text(b"V 1") + text(b"os.system('rm')"), "is not the name of a class"),
    "depth": (b"".join(integer(3, i, 1) + number(1) for i in range(1, 5000)), "more than 150 deep"),
    "no fields": (torch(1, b"nn.Linear", number(1)), "nn.Linear without its fields"),
    "a module that is none": (torch(1, b"nn.Sequential", table(2, string(b"modules"), table(3, number(1), number(2)))), "are not modules"),
    "a weight that is none": (module(b"Linear", weight=number(1)), "not a floating-point tensor"),
    "an expanded weight": (module(b"Linear", weight=tensor(5, b"Float", [2**30, 2**30], [0, 0], 1, storage(6, b"Float", b"\0" * 4, 1))), "more elements than the file"),
    "expanded connections": (module(b"SpatialConvolutionMap", connTable=tensor(5, b"Float", [2**30, 2], [0, 0], 1, storage(6, b"Float", b"\0" * 4, 1))), "more elements than the file"),
    "expanded sizes": (module(b"View", size=tensor(5, b"Long", [2**40], [0], 1, storage(6, b"Long", b"\0" * 8, 1))), "more elements than the file"),
    "an epsilon that is none": (module(b"BatchNormalization", eps=string(b"x"), running_std=matrix(10, 2)), "is no number"),
    "sizes that are none": (module(b"View", size=table(5, number(1), string(b"x"))), "no list of whole numbers"),
    "a convolution without sizes": (module(b"SpatialConvolution", weight=matrix(10, 1, 1, 1, 1)), "without nInputPlane"),
    "an unpooling without pooling": (module(b"SpatialMaxUnpooling"), "without its pooling module"),
    "text without an end": (b"3\n1\n5\n1\n", "a number is missing"),
    "text that is no number": (b"1\nabc\n", "is not a number"),
    "text with a large storage": (b"4\n1\n3\nV 1\n18\ntorch.FloatStorage\n99999999999\n1 2\n", "needs more than the"),
    "text with large numbers": (b"4\n1\n3\nV 1\n16\ntorch.IntStorage\n2\n1 99999999999\n", "too large for a IntStorage"),
    "text with many digits": (b"1\n" + b"9" * 100000, "is not a number|missing|has 0 more|is not the code"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files_are_refused(name: str) -> None:
    data, message = DAMAGED[name]
    with pytest.raises(T7ReaderException, match=message):
        load(data)


def test_indices_in_a_table_of_itself() -> None:
    found = load(
        module(b"Transpose", permutations=table(5, number(1), integer(3, 5), number(2), number(4)))
    ).permutations
    assert found[0] is found and found[1] == 3


def sharing(name: bytes, field: bytes, count: int) -> bytes:
    """Return a file whose modules have one storage, by a tensor of their own each."""
    kept = storage(2, b"Float", b"\0" * 400000, 100000)
    entries = [number(1), torch(3, b"nn.Identity", table(4, string(b"kept"), kept))]
    for i in range(2, count + 2):
        vector = tensor(1000 + i, b"Float", [100000], [1], 1, integer(4, 2))
        entries += [number(i), torch(2000 + i, b"nn." + name, table(3000 + i, string(field), vector))]
    return table(1, *entries)


def test_many_modules_with_one_storage_do_not_multiply_memory() -> None:
    found = load(sharing(b"CMul", b"weight", 40))
    assert len({layer.gradWeight.data_ptr() for layer in found[1:]}) == 1 and len(found) == 41
    with pytest.raises(T7ReaderException, match="far more memory than the file"):
        load(sharing(b"SpatialConvolutionMap", b"connTable", 40))


def test_a_module_within_itself() -> None:
    network = torch(20, b"nn.Sequential", table(21, string(b"modules"), table(22, number(1), integer(4, 20))))
    with pytest.raises(T7ReaderException, match="without its nn.LookupTable"):
        load(module(b"PartialLinear", network=network))


def test_methods_stay_what_they_are() -> None:
    found = load(module(b"Identity", forward=number(1), _compute=number(2), __class__=number(3), name=string(b"mine")))
    assert found.forward(candelabra.ones(2)).tolist() == [1.0, 1.0] and found.name == "mine"


def test_references_do_not_multiply_memory() -> None:
    # Each table has the one before twice: without shared objects, there would be 2 ** 100.
    data = b"".join(integer(3, i, 2) + number(1) for i in range(1, 101)) + integer(3, 200, 0)
    data += b"".join(number(2) + integer(3, i + 1 if i < 100 else 200) for i in reversed(range(1, 101)))
    found = load(data)
    for _ in range(100):
        assert found[0] is found[1]
        found = found[0]


@pytest.mark.parametrize("ascii", [False, True])
def test_changed_files_are_read_or_refused(ascii: bool) -> None:
    file = io.BytesIO()
    net = (
        nn.Sequential()
        .add(nn.SpatialConvolution(1, 2, 2, 2))
        .add(nn.Transpose((1, 2)))
        .add(nn.View(2))
        .add(nn.Dropout())
    )
    save_lua(
        [net, nn.ClassNLLCriterion(candelabra.ones(3)), {"a": 1.5, "b": [True, "x"]}, candelabra.arange(4)],
        file,
        ascii=ascii,
    )
    data, draw = file.getvalue(), random.Random(5)
    refused = 0
    for _ in range(400):
        changed = bytearray(data)
        for _ in range(draw.randint(1, 3)):
            changed[draw.randrange(len(data))] = (
                draw.choice(b"\x00\x01\x02\x04\x7f\xff 0129-\n") if draw.random() < 0.7 else draw.randrange(256)
            )
        if draw.random() < 0.2:
            del changed[draw.randrange(len(data)) :]
        try:
            load(bytes(changed), ascii=ascii)
        except T7ReaderException:
            refused += 1
    assert 80 < refused < 400
