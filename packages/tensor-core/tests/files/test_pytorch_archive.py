"""Archives of PyTorch: one that it wrote is read, and what is written is read as PyTorch would, by
NumPy; hostile ones are refused.
"""

from __future__ import annotations

import base64
import collections
import io
import pickle
import zipfile
import zlib

import numpy as np
import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra as c

#: What torch.save of PyTorch 2.13 wrote for an OrderedDict of a matrix and a view of it, tensors of
#: several dtypes, a parameter and a list, with `_metadata` as state dicts have it; its files packed
#: anew with compression.
WRITTEN_BY_PYTORCH = (
    "P)h>@6aWAK2mk;8Apkpn3c=w4000F8000mG003cfV`yo1WiMo5bYU)VYixy**>BT87{qPoC|&ORzAuL(G)XBplu}w?5vZ<^{DLCa-o}=Uov}YB"
    "fK-W>1o*F6@0uVU5Pq<=>z$e3?Cv+q_tQ8QK1FGgv-epbG7+psJ~0?A2d3>d4Z|3VXb=)CpVG_^+x>!~IA{G#Y!y))^hqRnn)OFrhMH}=b5fDZ"
    "mEJ(0t|e?OPCeSxlMD^llxr5ybZheK4-3rkCSlhGH@L-XQ_S-kH>Y4f!;)e*VUL5oZe1=OMPiJ7q09;EVIypYO1Xc7n^I{_aX>2%YULrqVFyQ)"
    "GW6nY9M#H-YDHmnmS$kb6j%qxrL9Fcp@1eh$;}B)Y0J}uGY-zWjgmYq62iH^Jm03tVCHvT`E_wY`k91_(y!IhK9>lW9b8dp<0ufg`k&qHF<kqT"
    ")2?=yeMsobPz1Bc>ngGbTSnFit*XL}vcgRreXBw(qC}QwxJ_s~xT7i!z0CWBg@3T9zk)=@(D{7^DsK^8U9nf@$*9Hhbyw#t5$-v-|3eKPe8)ov"
    "k5pJnp~&#~Bc9mYTwgA?LO#myGoHSyFt_y~F+8g#Hlwey=yF->`2;HtUQDqniXFUk=cTkS3BAB04{IuM-7Q`5Y6q{?-5iN5m)9L{xS8kqR{IxF"
    "O9KQH000080000X0Jrblg988n0096102crN0AX@tXlZt3FD_<pa&2LBUv_13b7^mGGXwxoO9KQH000080000X0EIo{83+IX00sa601*HH0AX@t"
    "XlZt3FJgIgWp8q1Wpc~OEGfxJ1prV>0|XQR000O8001EX7m(+X5dZ)H7ytkO4gdfEVRB<=X?A5VWMOn+FEC?Z0D%U3AmIQ+K->Vt3mgDYO9KQH"
    "000080000X00&W8;|2f#00aO401f~E0AX@tXlZt3FJxhKVJ|T|V9#&>08mQ<1QY-O00;m803iTy*5_{p000080000E0001Ca${&|c4aSQVRT_H"
    "GGk|e002-+0|XQR000O8001EXhN|8t1^@s61ONa44gdfEVRB<=X?A5VWMOn+FEe9g`2QaOP)h>@6aWAK2mk;8ApmM>p{xb~000C4000gE003cf"
    "V`yo1WiMo5bYU+vV_;~o2LMn@0|XQR000O8001EX(Vk~j1ONa40ssI24*&oFVRB<=X?A5Vc4cyNX>V>b<^ljvO928D0~7!N00;m803iT7e+t3j"
    "0RR960{{RJ00000000000001h0RR910AX@tXlZt3FJxhKVJ>iMY*0%90u%!j000080000X0Jrblg988n0096102crN00000000000Du7x0ssJE"
    "a${&|c4aRvW^ZzBVRT=1WpZ<AZ*EXa0Rj{Q6aWAK2mk;8ApnIv;~5A5000I6000pH0000000000004jiM*;u<VRB<=X?A5VVtI6BZ*pX1a!^YF"
    "0u%!j000080000X02h$wkr4m@02lxO01f~E00000000000Du900ssJEa${&|c4aSQVRT_HFi=YY0u%!j000080000X00&W8;|2f#00aO401f~E"
    "00000000000Du9z0ssJEa${&|c4aSQVRT_HF;GhZ0u%!j000080000X0C3jlZv_AV00;m801f~E00000000000DuAQ0ssJEa${&|c4aSQVRT_H"
    "GEhqa0u%!j000080000X0EVjGCk6lj00aO401f~E00000000000Du7=0{{SFa${&|c4aSQVRT_HGf+zb0u%!j000080000X0BUNXtOfu800aO4"
    "01f~E00000000000Du8d0{{SFa${&|c4aSQVRT_HG*C+c0u%!j000080000X0MVXjRRjP400IC201p5F00000000000Du940{{SFa${&|c4aSi"
    "WpZ<AZ*EXa1qJ{B000R92>>es006TC00000"
)


def test_read():
    found = c.load(io.BytesIO(base64.b85decode(WRITTEN_BY_PYTORCH)))
    assert type(found) is collections.OrderedDict and found._metadata == {"": {"version": 1}}
    assert list(found) == ["weight", "view", "half", "count", "wide", "param", "other"]
    assert found["weight"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] and found["view"].tolist() == [
        [1.0, 2.0],
        [4.0, 5.0],
    ]
    found["view"].fill_(9)
    assert found["weight"].tolist() == [[0.0, 9.0, 9.0], [3.0, 9.0, 9.0]]  # the memory is shared again
    assert found["half"].dtype is c.bfloat16 and found["half"].tolist() == [1.5, -2.0]
    assert found["count"].shape == () and found["count"].item() == 7
    assert found["wide"].dtype is c.uint16 and found["wide"].tolist() == [1, 65535]
    assert found["param"].requires_grad and not found["weight"].requires_grad
    assert found["other"] == [1, 2.5, "x", None, (c.float16, c.Size([2]))]


#: The same, without the tensor of 16-bit integers, by torch.save(...,
#: _use_new_zipfile_serialization=False); compressed.
WRITTEN_BEFORE_ARCHIVES = (
    "c-nPS%Wl&^6!j|!7+T7k@+@zMM{t_NBy1WXR2GIp-HkVu6`W~oWa1oqk^)ktY!V9Jz=9>8(cj?{kXUg2pini8JY&zDJLjDH@L2ky2EV?p{#<(d{q<sHE"
    "WP|8)4Bsevlj$G7(^it-"
    "7s)QEQ<ZG50M<~IXVe^&I9JKe%J5xA??~K8Tp3+b7KD^iy`ko(d+^lV=s(23Z`VswDbEMMN_er1S9PCP%@R_kT_kU37E@?C01WWT^6zKGvDPZgt7%uvx"
    "{_NoB2JDLvnc-xn9K?azBVwCt`1ge$aI|>&Ic_jFwf%nr4?0cJl1>7?kXax*CKXzL6PK6zqBOY1Q?n(a`l;Rj(U$6jPz@U`X1EYaB<`O~I5*d5WW^Y>H"
    "E;pS?uWF^=OF=F(6`KHJ8;N35RW%|t!nWoQfQrbuYg6elyZQyJQ6jx!d{rf6O#*uuFCE!X`t6<#&=rJw&xQm@vUjas8--~y3IM6#Glp5US>PH-tBxXf|"
    "I!qv1UZaAbmTsy$<f~v8PzH|`1Wf*!B*9l!D^c#d;E@!AWIc{0FouUppQRf}*{HHkSDdQ|sarbbd5|*Z+w+v``4COqAdr1uUGqwjD4=q%7)6Jt#&@EI`"
    ">X3UZ!ty3+nkhbSCrPAXi?qB)eJu}hE6bsZMsC=kUR7ZvG><1}T4+u2geC2`nfwAXGAz!LEX~T6JgW;7R*^Do!rqFo_vc#>#w*Db^Ia)_7lnUE;v=-"
    "_p*g1ct^FHP#Pe|"
)


def test_read_from_before_archives():
    written = zlib.decompress(base64.b85decode(WRITTEN_BEFORE_ARCHIVES))
    # Such files are read one after the other.
    file = io.BytesIO(written + b"between" + written)
    for begin in (0, len(written) + 7):
        file.seek(begin)
        found = c.load(file)
        assert file.tell() == begin + len(written)
        assert list(found) == ["weight", "view", "half", "count", "param", "other"]
        assert found["view"].tolist() == [[1.0, 2.0], [4.0, 5.0]] and found["view"].stride() == (3, 1)
        found["view"].fill_(9)
        assert found["weight"].tolist() == [[0.0, 9.0, 9.0], [3.0, 9.0, 9.0]]
        assert found["half"].dtype is c.bfloat16 and found["half"].tolist() == [1.5, -2.0]
        assert found["count"].item() == 7 and found["param"].requires_grad and found["param"].tolist() == [1.0, 1.0]
        assert found["other"] == [1, 2.5, "x", None, (c.float16, c.Size([2]))]
    for length in range(0, len(written) - 1, 9):
        with pytest.raises(c.serialization.FileError):
            c.load(io.BytesIO(written[:length]))


def test_map_location():
    file = io.BytesIO(base64.b85decode(WRITTEN_BY_PYTORCH))
    seen = []
    c.load(file, map_location=lambda flat, device: seen.append(device))
    assert set(seen) == {"cpu"} and len(seen) == 5
    assert c.load(file, map_location={"cpu": "cpu"})["count"].device.type == "cpu"


class ByNumPy(pickle.Unpickler):
    """Reads an archive as PyTorch's functions would, with arrays for tensors."""

    def __init__(self, archive):
        super().__init__(io.BytesIO(archive.read("archive/data.pkl")))
        self.archive = archive

    def find_class(self, module, name):
        if name.endswith("Storage"):
            return name
        return {
            ("torch._utils", "_rebuild_tensor_v2"): lambda storage, *rest: self.array(storage, *rest[:3]),
            ("torch._utils", "_rebuild_tensor_v3"): lambda storage, *rest: self.array(storage, *rest[:3], rest[5]),
            ("collections", "OrderedDict"): collections.OrderedDict,
            ("torch", "uint16"): np.uint16,
            ("torch", "float16"): np.float16,
            ("torch", "Size"): tuple,
            ("torch", "device"): lambda *parts: ":".join(map(str, parts)),
            ("_codecs", "encode"): str.encode,
            ("__builtin__", "set"): set,
            ("__builtin__", "complex"): complex,
        }[module, name]

    def persistent_load(self, pid):
        kind, name, key, location, count = pid
        assert kind == "storage" and location == "cpu"
        return name, self.archive.read(f"archive/data/{key}"), count

    def array(self, storage, offset, size, stride, dtype=None):
        names = {
            "FloatStorage": np.float32,
            "DoubleStorage": np.float64,
            "LongStorage": np.int64,
            "ComplexFloatStorage": np.complex64,
        }
        flat = np.frombuffer(storage[1], dtype or names[storage[0]])
        assert storage[2] * (1 if dtype else flat.itemsize) == len(storage[1])
        return np.lib.stride_tricks.as_strided(flat[offset:], size, [step * flat.itemsize for step in stride])


def test_write():
    base = c.arange(12.0).reshape(3, 4)
    state = collections.OrderedDict(
        base=base, view=base[1:, ::2], twice=[base, base], turned=base.t(), double=c.tensor([1.5], dtype=c.float64), wide=c.tensor(5, dtype=c.uint16),
        imaginary=c.tensor([1 + 2j]), plain=[1, -(2**70), 2.5, "x", None, True, (1, b"\xff"), 1j, {3}, c.float16, c.Size([1, 2]), c.device("cpu")],
    )  # fmt: skip
    state._metadata = collections.OrderedDict(a={"version": 2})
    file = io.BytesIO()
    c.save(state, file, format="pytorch")
    archive = zipfile.ZipFile(file)
    assert archive.read("archive/version") == b"3\n" and archive.read("archive/byteorder") == b"little"
    # Views share a storage: there are four.
    assert len([name for name in archive.namelist() if name.startswith("archive/data/")]) == 4
    found = ByNumPy(archive).load()
    expected = np.arange(12, dtype=np.float32).reshape(3, 4)
    for name, values in (("base", expected), ("view", expected[1:, ::2]), ("turned", expected.T), ("double", [1.5]), ("wide", 5),
                         ("imaginary", [1 + 2j])):  # fmt: skip
        np.testing.assert_array_equal(found[name], values)
    assert found["twice"][0] is found["twice"][1] and found["twice"][0] is found["base"]
    assert found["plain"] == [1, -(2**70), 2.5, "x", None, True, (1, b"\xff"), 1j, {3}, np.float16, (1, 2), "cpu"]
    assert found._metadata == {"a": {"version": 2}}
    again = c.load(file)
    assert again["view"].tolist() == expected[1:, ::2].tolist() and again["plain"] == state["plain"]
    again["base"].zero_()
    assert not again["view"].any()


def test_path_is_replaced_at_once(tmp_path):
    path = tmp_path / "state.pt"
    path.write_text("before")
    with pytest.raises(TypeError, match="cannot store .*object.* for PyTorch: only tensors and plain data are stored"):
        c.save({"x": object()}, path, format="pytorch")
    with pytest.raises(TypeError, match="cannot store"):
        c.save({"x": print}, path, format="pytorch")
    assert path.read_text() == "before" and len(list(tmp_path.iterdir())) == 1
    c.save({"x": c.ones(2)}, path, format="pytorch")
    assert c.load(path)["x"].tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="format must be 'candelabra' or 'pytorch', but got 'x'"):
        c.save({}, path, format="x")


def archive_of(text, **files):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", text)
        for name, content in files.items():
            archive.writestr(f"archive/{name}", content)
        archive.writestr("archive/data/0", bytes(16))
    return file


class Call:
    def __init__(self, function, *arguments):
        self.made = function, arguments

    def __reduce__(self):
        return self.made


def tensor_text(offset, size, stride, storage=b"ctorch\nFloatStorage\n"):
    """The pickle of one tensor on storage 0, of 16 bytes."""
    parts = [pickle.dumps(value, 2)[2:-1] for value in (offset, size, stride, False)]
    start = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storage" + storage
    return (
        start + b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ" + b"".join(parts) + b"ccollections\nOrderedDict\n)RtR."
    )


def test_storages_that_are_of_no_tensor():
    matrix = c.tensor([[1.0, 2.0], [3.0, 4.0]])
    text = tensor_text(1, (3,), (1,))
    begin, end = text.index(b"(X\x07\x00\x00\x00storage"), text.index(b"tQ") + 2
    made = c.load(archive_of(b"\x80\x02" + text[begin:end] + b"."))
    assert type(made) is c.storage.TypedStorage
    assert (made.dtype, made.nbytes()) == (c.float32, matrix.untyped_storage().nbytes())


def test_tensors_by_hand():
    assert c.load(archive_of(tensor_text(1, (3,), (1,)))).shape == (3,)
    assert c.load(archive_of(tensor_text(0, (2, 2), (0, 1)))).stride() == (0, 1)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (archive_of(pickle.dumps(Call(print, "run"), 2)), "only tensors and plain data are read"),
        (archive_of(pickle.dumps(Call(eval, "1"), 2)), "only tensors and plain data are read"),
        (archive_of(pickle.dumps(Call(bytearray, 10**15), 2)), "a bytearray without bytes"),
        (archive_of(b"\x80\x02ctorch.nn\nLinear\n."), "it holds torch.nn.Linear"),
        (archive_of(b"\x80\x02K"), ""),
        (archive_of(b""), ""),
        (archive_of(tensor_text(1, (4,), (1,))), "reaches beyond its storage"),
        (archive_of(tensor_text(0, (2, 3), (3, 1))), "reaches beyond its storage"),
        (archive_of(tensor_text(0, (2**62, 4), (2**62, 1))), "reaches beyond its storage"),
        (archive_of(tensor_text(-1, (1,), (1,))), "impossible sizes or strides"),
        (archive_of(tensor_text(0, (-1,), (1,))), "impossible sizes or strides"),
        (archive_of(tensor_text(0, (1,), ())), "impossible sizes or strides"),
        (archive_of(tensor_text(0, (1,), (1,), storage=b"ccollections\nOrderedDict\n")), "an unknown kind of storage"),
        (archive_of(tensor_text(0, (1,), (1,)), byteorder="middle"), "another byte order"),
    ],
)
def test_refused(file, text):
    with pytest.raises(
        RuntimeError, match="is no archive of candelabra.save or torch.save, or it is damaged|is not loaded: it holds"
    ) as caught:
        c.load(file)
    assert text in str(caught.value)
