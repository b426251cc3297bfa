"""Files made to do harm: to run code, to take memory or time without end, or to have tensors reach
beyond their memory.
"""

from __future__ import annotations

import array
import fractions
import io
import json
import pickle
import struct
import time
import zipfile

import numpy as np
import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra as c
from candelabra.serialization import FileError, UnsafeFileError, load_npz


def archive(*entries, **options):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", options.get("method", zipfile.ZIP_STORED)) as made:
        for name, data in entries:
            made.writestr(name, data)
    return file.getvalue()


def pickled(text):
    return archive(("archive/data.pkl", text), ("archive/data/0", bytes(16)))


def refused(data, text, kind=FileError):
    began = time.process_time()
    with pytest.raises(kind, match=text) as caught:
        c.load(io.BytesIO(data))
    assert time.process_time() - began < 5
    assert isinstance(caught.value, RuntimeError)
    return caught.value


# ---- pickles


def test_the_memo_takes_no_more_than_it_holds():
    # The standard library's machine makes room for two thousand million entries.
    assert c.load(io.BytesIO(pickled(b"\x80\x02]r\xff\xff\xff\x7f."))) == []
    assert c.load(io.BytesIO(pickled(b"\x80\x02]p4000000000\n0g4000000000\n."))) == []
    refused(pickled(b"\x80\x02]p-1\n."), "keeps what is not there")
    refused(pickled(b"\x80\x02h\x05."), "remembers what was not there")


@pytest.mark.parametrize(
    "text",
    [
        b"\x80\x02X\xff\xff\xff\x7fabc.", b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fabc.", b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\xffabc.",
        b"\x80\x05\x96\xff\xff\xff\xff\xff\xff\xff\x7fa.", b"\x80\x02T\xff\xff\xff\xffabc.", b"\x80\x02\x8b\xff\xff\xff\x7f\x01.",
        b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7fN.", b"\x80\x02", b"", b"(" * 1000, b"\x80\x02(t",
    ],
)  # fmt: skip
def test_lengths_beyond_the_text(text):
    refused(pickled(text), "cut off")


@pytest.mark.parametrize(
    "text",
    [
        b"\x80\x02cos\nsystem\n.", b"\x80\x02cbuiltins\neval\nX\x01\x00\x00\x001\x85R.", b"cposix\nsystem\n(S'true'\ntR.",
        b"\x80\x04\x8c\x02os\x8c\x06system\x93.", b"\x80\x02cbuiltins\ngetattr\n.", b"\x80\x02ccandelabra\nload\n.",
        b"\x80\x02ctorch.nn.modules.linear\nLinear\n)\x81}b.", b"\x80\x02cbuiltins\nlist\n)R.", b"\x80\x02cbuiltins\nint\n.",
        b"\x80\x02ccollections\ndefaultdict\nctorch._utils\n_rebuild_tensor_v2\n\x85R.", b"\x80\x02ctorch\nFloatStorage\n.",
        b"\x80\x02ccollections\nOrderedDict\n.", b"(ios\nsystem\n.", b"(cos\nsystem\no.", b"\x80\x02\x82\x01.", b"\x80\x05\x97.",
        b"\x80\x02]}b.", b"Pid\n.", b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n.",
    ],
)  # fmt: skip
def test_names_that_are_not_known(text):
    assert isinstance(refused(pickled(text), "damaged|not loaded: it holds", UnsafeFileError), pickle.UnpicklingError)


@pytest.mark.parametrize(
    "text",
    [
        b"\x80\x02.", b"\x80\x020.", b"\x80\x02(.", b"\x80\x02NN.", b"\x80\x02Na.", b"\x80\x02N]s.", b"\x80\x02}(Nu.", b"\x80\x021.",
        b"\x80\x02Ka\x85\x86.", b"\x80\x02\x93.", b"\x80\x02NN\x93.", b"\x80\x02NR.", b"\x80\x02NNR.", b"\x80\x06N.", b"\x80\x02Q.",
        b"\x80\x02NQ.", b"\x80\x02b.", b"\x80\x02Nb.", b"I1\x00\n.", b"F1..\n.", b"Lx\n.", b"S'a\n.", b"S\n.", b"V\\u12\n.",
        b"\x80\x02X\x01\x00\x00\x00\xff.", b"\x80\x02U\x01\xff.", b"I" + b"9" * 10_000 + b"\n.", b"\x80\x02](a.", b"\x80\x02}]Ns.",
        b"\x80\x04\x8f(]\x90.", b"\x80\x04(]\x91.", b"\x80\x02ctorch\nSize\nNK\x01\x86\x85R.", b"\x80\x02ctorch\nSize\nX\x01\x00\x00\x00a\x85R.",
        b"\x80\x02ctorch\ndevice\n)R.", b"\x80\x02ctorch\ndevice\n]\x85R.", b"\x80\x02c_codecs\nencode\nNN\x86R.",
        b"\x80\x02ccollections\nOrderedDict\nK\x01\x85R.", b"\x80\x02ccollections\nOrderedDict\n)R}X\x05\x00\x00\x00itemsNsb.",
        b"\x80\x02ccollections\nOrderedDict\n)R}K\x01Nsb.", b"\x80\x02cbuiltins\nset\nK\x01\x85R.", b"\x80\x02cbuiltins\ncomplex\n]\x85R.",
    ],
)  # fmt: skip
def test_pickles_that_make_no_sense(text):
    refused(pickled(text), "damaged")


def test_copies_are_paid_for():
    # A megabyte, copied a hundred thousand times.
    content = b"\x80\x02B" + struct.pack("<I", 1 << 20) + bytes(1 << 20) + b"q\x000"
    refused(
        pickled(content + b"cbuiltins\nbytearray\nq\x01h\x00\x85q\x020" + b"h\x01h\x02R0" * 100_000 + b"N."),
        "far more work or memory|far more memory",
    )
    # A list of a hundred thousand, made a set again and again.
    members = b"\x80\x02](" + b"".join(b"J" + struct.pack("<i", n) for n in range(100_000)) + b"e\x85q\x000"
    refused(pickled(members + b"cbuiltins\nset\nq\x01" + b"0h\x01h\x00R" * 1000 + b"."), "far more")


def test_what_is_nested_without_end_is_not_hashed():
    # Tuples of two, each of the one before: hashing the last takes 2 ** 60 steps.
    doubled = b"\x80\x02)q\x00" + b"".join(b"h" + bytes([n]) + b"\x86q" + bytes([n + 1]) for n in range(60))
    refused(pickled(doubled + b"0}h\x3cNs."), "far more work|more than 10000|too many tuples")
    refused(pickled(b"\x80\x02})" + b"\x85" * 100_000 + b"Ns."), "too many tuples")
    refused(pickled(b"\x80\x04\x8f(" + b")" + b"\x85" * 100_000 + b"\x90."), "too many tuples")
    # Not as a key it is only a tuple.
    found = c.load(io.BytesIO(pickled(b"\x80\x02)" + b"\x85" * 100_000 + b".")))
    assert type(found) is tuple and len(found) == 1


def test_keys_with_one_hash():
    # Multiples of 2 ** 61 - 1 have the hash 0, and a dict of many takes quadratic time.
    step = (1 << 61) - 1
    pairs = b"".join(b"\x8a\x0a" + (step * n).to_bytes(10, "little") + b"N" for n in range(1, 100_000))
    refused(pickled(b"\x80\x02}(" + pairs + b"u."), "keys with one hash")
    described = {
        "format": "candelabra archive",
        "version": 1,
        "storages": [],
        "content": {"dict": [[step * n, 0] for n in range(1, 50_000)]},
    }
    refused(archive(("description.json", json.dumps(described))), "keys with one hash")


def test_crafted_tuples_with_one_hash():
    # The hash of a tuple mixes the hashes of its parts, which for integers anyone can compute.
    one, other = (-1, 0), (-2, 0)
    assert hash(one) == hash(other)
    keys = [tuple(n for bit in range(8) for n in (one, other)[number >> bit & 1]) for number in range(256)]
    assert len({hash(key) for key in keys}) == 1
    refused(pickled(pickle.dumps(dict.fromkeys(keys), 2)), "keys with one hash")
    content = {"dict": [[{"tuple": list(key)}, 0] for key in keys]}
    described = {"format": "candelabra archive", "version": 1, "storages": [], "content": content}
    refused(archive(("description.json", json.dumps(described))), "keys with one hash")
    honest = {(a, b): None for a in range(100) for b in range(100)}
    assert c.load(io.BytesIO(pickled(pickle.dumps(honest, 2)))) == honest


MILLION = 1 << 20


@pytest.mark.parametrize(
    "text",
    [
        b"(" + b"\x8f" * MILLION + b"l", b"(" + b"]" * MILLION + b"l", b"(" + b"}" * MILLION + b"l",
        b"(" + b"ccollections\nOrderedDict\nq\x000" + b"h\x00)R" * (MILLION // 4) + b"l",
        b"(" + b")\x85" * MILLION + b"l",
        b"}q\x00(" + b"".join(b"X\x04\x00\x00\x00%04xN" % n for n in range(1 << 16)) + b"u0(cargparse\nNamespace\nq\x01"
        b"0" + b"h\x01)\x81h\x00b" * 10_000 + b"l",
    ],
    ids=["sets", "lists", "dicts", "ordered", "tuples", "attributes"],
)  # fmt: skip
def test_objects_are_paid_for(text):
    refused(pickled(b"\x80\x02" + text + b"."), "far more")


def test_attributes_of_tensors_are_paid_for():
    names = b"".join(b"X\x04\x00\x00\x00%04xN" % n for n in range(1 << 14))
    tensor = (
        b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_meta_tensor_no_storage\nctorch\nTensor\n"
        b"(ctorch\nfloat32\n)) \x89th\x00tR"
    ).replace(b" ", b"")
    text = b"\x80\x02}(" + names + b"uq\x000(" + (tensor + b"q\x010") * 2000 + b"l."
    refused(pickled(text), "far more")


def test_honest_objects_are_not_refused():
    words = {f"word{n}": n for n in range(200_000)}
    numbers = list(range(300, 60_000)) * 20
    nested = [{"name": f"n{n}", "shape": (n, n + 1), "rate": n / 7} for n in range(50_000)]
    for honest in (words, numbers, nested, [None] * 2_000_000, [{n} for n in range(20_000)]):
        for protocol in (2, 4):
            assert c.load(io.BytesIO(pickled(pickle.dumps(honest, protocol)))) == honest


def test_deep_lists_are_made_and_dropped():
    found = c.load(io.BytesIO(pickled(b"\x80\x02" + b"]" * 200_000 + b"a" * 199_999 + b".")))
    assert type(found) is list
    del found


def tensor_text(offset, size, stride, count=4, *, storage=b"ctorch\nFloatStorage\n", metadata=b"", key=b"0"):
    parts = [pickle.dumps(value, 2)[2:-1] for value in (offset, size, stride, False)]
    start = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storage" + storage
    number = pickle.dumps(count, 2)[2:-1]
    hooks = b"ccollections\nOrderedDict\n)R"
    return (
        start
        + b"X\x01\x00\x00\x00"
        + key
        + b"X\x03\x00\x00\x00cpu"
        + number
        + b"tQ"
        + b"".join(parts)
        + hooks
        + metadata
        + b"tR."
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (tensor_text(0, (1,), (1,), 5), "fewer than its 5 elements"), (tensor_text(0, (1,), (1,), -1), "fewer than its -1"),
        (tensor_text(0, (1,), (1,), key=b"7"), "no archive/data/7"), (tensor_text(0, (1,) * 65, (1,) * 65), "65 dimensions"),
        (tensor_text(0, (0, 1 << 62, 1 << 62), (1, 1, 1)), "impossible sizes"), (tensor_text(0, (0,), (1 << 63,)), "impossible sizes"),
        (tensor_text(0, (1 << 40, 1 << 40), (0, 0)), "impossible sizes"), (tensor_text(0, 3, (1,)), "impossible sizes"),
        (tensor_text(True, (1,), (1,)), "impossible sizes"), (tensor_text(0, (1.0,), (1,)), "impossible sizes"),
        (tensor_text(0, (2,), (1,), storage=b"ctorch\nComplexDoubleStorage\n"), "fewer than its 4"),
        (tensor_text(0, (1,), (1,), storage=b"ctorch\nQInt8Storage\n"), "QInt8Storage"),
        (tensor_text(0, (1 << 20, 1 << 20), (0, 0), metadata=b"}X\x03\x00\x00\x00neg\x88s"), "far larger than its storage|far more work"),
    ],
)  # fmt: skip
def test_tensors_that_lie(text, reason):
    refused(pickled(text), reason)


def test_an_expanded_tensor_is_no_memory():
    made = c.load(io.BytesIO(pickled(tensor_text(0, (1 << 20, 1 << 20), (0, 0)))))
    assert made.shape == (1 << 20, 1 << 20) and made[5, 7].item() == 0


# ---- archives


def directory_of(data):
    """Where the directory begins, and each of its entries."""
    start = data.index(b"PK\x01\x02")
    return start, [at for at in range(start, len(data)) if data[at : at + 4] == b"PK\x01\x02"]


def patched(data, at, form, *numbers):
    made = bytearray(data)
    struct.pack_into(form, made, at, *numbers)
    return bytes(made)


TWO = archive(("a.npy", bytes(10)), ("b.npy", bytes(10)))


def test_entries_that_overlap():
    _, entries = directory_of(TWO)
    # Both say that they begin where the first does, as in archives that unpack one entry under many
    # names.
    made = patched(TWO, entries[1] + 42, "<L", 0).replace(b"b.npy", b"a.npy")
    refused(made, "two entries with the name|overlap|another name")
    whole = archive(("x.npy", b"x" * 200))
    inner = whole[: directory_of(whole)[0]]
    outer = archive(("y.npy", inner), ("x.npy", b"x" * 200))
    _, entries = directory_of(outer)
    # The second is said to be within the first.
    refused(patched(outer, entries[1] + 42, "<L", outer.index(inner)), "overlap")


def test_headers_that_do_not_agree():
    _, entries = directory_of(TWO)
    refused(patched(TWO, entries[0] + 24, "<L", 11), "11|10")
    refused(patched(TWO, entries[0] + 20, "<LL", 1 << 20, 1 << 20), "reaches beyond")
    refused(patched(TWO, entries[0] + 20, "<LL", 0xFFFFFFFF, 0xFFFFFFFF), "reaches beyond")
    refused(patched(TWO, entries[0] + 42, "<L", 0xFFFFFFF0), "it ends at")
    refused(patched(TWO, entries[0] + 10, "<H", 12), "method 12")
    refused(patched(TWO, entries[0] + 8, "<H", 1), "encrypted")
    refused(patched(TWO, 8, "<H", 8), "does not agree")
    refused(patched(TWO, 30, "<c", b"z"), "another name")
    refused(patched(TWO, 36, "<c", b"z"), "checksum of a.npy|does not begin as an .npy file")
    refused(patched(TWO, len(TWO) - 22 + 10, "<H", 3), "parts|too short|entries in a directory")
    refused(patched(TWO, len(TWO) - 22 + 8, "<HH", 60000, 60000), "60000 entries in a directory")
    refused(patched(TWO, len(TWO) - 22 + 8, "<HH", 1, 1), "too long")
    refused(patched(TWO, len(TWO) - 22 + 12, "<L", 0x7FFFFFFF), "not where it should be")
    refused(TWO + b"x", "the end of an archive is missing")


def test_names_that_stand_twice():
    with pytest.warns(UserWarning, match="Duplicate name"):
        made = archive(("a.npy", bytes(10)), ("a.npy", bytes(10)))
    refused(made, "two entries with the name a.npy")
    refused(archive(("description.json", '{"format": 1, "format": 2}')), "stands twice")


def test_bombs():
    packed = archive(("archive/data.pkl", b"N."), ("archive/data/0", bytes(80 << 20)), method=zipfile.ZIP_DEFLATED)
    assert len(packed) < 1 << 20
    refused(packed, "claim to unpack to")
    refused(
        archive(("description.json", b"[" + b" " * (20 << 20) + b"]"), method=zipfile.ZIP_DEFLATED),
        "claim to unpack to",
    )
    refused(archive(("archive/data.pkl", b"N" * (10 << 20) + b"."), method=zipfile.ZIP_DEFLATED), "far more memory")


def test_an_entry_that_unpacks_to_more_than_it_says():
    file = io.BytesIO()
    np.savez_compressed(file, x=np.zeros(10_000, "u1"))
    made = file.getvalue()
    _, entries = directory_of(made)
    assert c.load(io.BytesIO(made))["x"].shape == (10_000,)
    refused(patched(made, entries[0] + 24, "<L", 10_127), "ends before the 10000 bytes")
    refused(patched(made, entries[0] + 24, "<L", 20_000), "does not unpack to its 20000 bytes")
    refused(patched(made, entries[0] + 16, "<L", 1), "checksum of x.npy")


def test_checksums_that_are_left_out_everywhere():
    # As PyTorch writes them when told to; a single one that is 0 is wrong.
    file = io.BytesIO()
    c.serialization.set_crc32_options(False)
    try:
        c.save({"x": c.ones(2)}, file)
    finally:
        c.serialization.set_crc32_options(True)
    assert c.load(file)["x"].tolist() == [1, 1]
    c.save({"x": c.ones(2)}, file := io.BytesIO())
    whole = file.getvalue()
    _, entries = directory_of(whole)
    refused(patched(whole, entries[1] + 16, "<L", 0), "checksum of storages/0")


# ---- what is given


def test_globals_that_are_allowed():
    text = b"\x80\x02cfractions\nFraction\nK\x01K\x02\x86R."
    refused(pickled(text), r"add_safe_globals", UnsafeFileError)
    assert c.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(pickled(text))) == ["fractions.Fraction"]
    with c.serialization.safe_globals([fractions.Fraction]):
        assert c.load(io.BytesIO(pickled(text))) == fractions.Fraction(1, 2)
        assert c.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(pickled(text))) == []
        # An exception of what was allowed is not one of the file.
        with pytest.raises(ZeroDivisionError):
            c.load(io.BytesIO(pickled(text.replace(b"K\x02", b"K\x00"))))
        file = io.BytesIO()
        c.save([fractions.Fraction(2, 3)], file, format="pytorch")
        assert c.load(file) == [fractions.Fraction(2, 3)]
    with c.serialization.safe_globals([(array.array, "old.place.Array")]):
        assert c.load(io.BytesIO(pickled(b"\x80\x02cold.place\nArray\nU\x01i](K\x01K\x02e\x86R."))) == array.array(
            "i", [1, 2]
        )
    with c.serialization.safe_globals([Point]):
        file = io.BytesIO()
        c.save({"at": Point(1, c.ones(2))}, file, format="pytorch")
        found = c.load(file)["at"]
        assert type(found) is Point and found.x == 1 and found.y.tolist() == [1, 1]
    refused(pickled(text), "fractions.Fraction", UnsafeFileError)
    with pytest.raises(TypeError, match="Expected a class or a function"):
        c.serialization.add_safe_globals([3])
    with pytest.raises(ValueError, match="a pair"):
        c.serialization.add_safe_globals([(Point, 3)])


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y


def test_exceptions_of_map_location_are_its_own():
    file = io.BytesIO()
    c.save(c.ones(2), file)

    def raises(storage, place):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        c.load(file, map_location=raises)
    with pytest.raises(TypeError, match="map_location must be"):
        c.load(file, map_location=2.5)


def test_devices_that_are_not_there():
    def described(device):
        content = {
            "tensor": {"storage": 0, "dtype": "uint8", "size": [1], "stride": [1], "offset": 0, "requires_grad": False}
        }
        made = {
            "format": "candelabra archive",
            "version": 1,
            "storages": [{"bytes": 1, "device": device}],
            "content": content,
        }
        return archive(("description.json", json.dumps(made)), ("storages/0", b"\x07"))

    with pytest.raises(c.BackendError, match=r"device no_such_device, which is not there.*map_location='cpu'"):
        c.load(io.BytesIO(described("no_such_device")))
    assert c.load(io.BytesIO(described("no_such_device")), map_location="cpu").item() == 7
    assert c.load(io.BytesIO(described("no_such_device:3")), map_location={"no_such_device:3": "cpu"}).item() == 7
    for device in ("", "x" * 100, "../x", "a b", "meta", "cpu:99999999999999999999", "cpu:-1", "é"):
        refused(described(device), "of the device")


@pytest.mark.parametrize("module", ["dill", "cloudpickle"])
def test_other_pickles_are_refused(module):
    import types

    given = types.ModuleType(module)
    with pytest.raises(RuntimeError, match=f"nothing is stored by way of {module}"):
        c.save(1, io.BytesIO(), pickle_module=given)
    with pytest.raises(RuntimeError, match=f"can not safely load by way of {module}"):
        c.load(io.BytesIO(), pickle_module=given)
    file = io.BytesIO()
    c.save(1, file, pickle, 2)
    assert c.load(file, None, pickle, weights_only=True) == 1
    with pytest.raises(TypeError, match="unexpected keyword argument 'errors'"):
        c.load(file, errors="strict")


def test_what_is_no_file(tmp_path):
    for f in (3, None, object(), io.StringIO("x")):
        with pytest.raises((AttributeError, FileError)):
            c.load(f)
    with pytest.raises(IsADirectoryError):
        c.load(tmp_path)
    with pytest.raises(OSError, match="ordinary files"):
        c.load("/dev/zero")

    class Stream(io.RawIOBase):
        def seekable(self):
            return False

    with pytest.raises(AttributeError, match="seekable"):
        c.load(Stream())
    refused(b"", "there is nothing in it")
    refused(pickle.dumps([1], 2), "a pickle by itself", UnsafeFileError)
    refused(b"hello, this is text", "no format that is known")
    with pytest.raises(FileError, match="it is no archive"):
        load_npz(io.BytesIO(b"abc"))


def test_a_tar_archive_says_so():
    import tarfile

    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as made:
        made.addfile(tarfile.TarInfo("storages"))
    refused(file.getvalue(), "tar archive of PyTorch before")


def test_names_of_pytorch_that_are_not_there():
    with pytest.raises(AttributeError, match="no attribute 'register_package': where storages go"):
        c.serialization.register_package
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'$"):
        c.serialization.no_such_name
    c.serialization.set_default_load_endianness(c.serialization.LoadEndianness.BIG)
    try:
        assert c.serialization.get_default_load_endianness() is c.serialization.LoadEndianness.BIG
        file = io.BytesIO()
        c.save(c.tensor([1, 256], dtype=c.int16), file, format="pytorch", _disable_byteorder_record=True)
        # Without a record of it, the order that was set.
        assert c.load(file).tolist() == [256, 1]
    finally:
        c.serialization.set_default_load_endianness(None)
    assert c.load(file).tolist() == [1, 256]
    with pytest.raises(TypeError, match="Invalid argument type"):
        c.serialization.set_default_load_endianness("big")
