"""Files changed at random, with and without regard for what is in them, and what loading them may
do: give an object, or raise FileError.

A mutation follows from a seed and a number, so that one that fails can be had again. Archives are
packed anew around what was changed, with the right checksums, so that the readers behind them are
reached.
"""

from __future__ import annotations

import base64
import collections
import copy
import io
import json
import os
import pickle
import pickletools
import random
import resource
import signal
import struct
import tempfile
import time
import zipfile
from collections.abc import Callable
from typing import Any

import candelabra as c
from candelabra import safetensors
from candelabra.serialization import FileError, save_npy, save_npz

#: Seconds of processor time that one file may take.
SECONDS = 5
#: Bytes of memory that loading may take beyond what the process has.
MEMORY = 1 << 29

INTERESTING = [
    0, 1, 2, 3, 4, 7, 8, 15, 16, 63, 64, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 32,
    (1 << 61) - 1, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1,
]  # fmt: skip
STRANGE: list[Any] = [
    None, True, False, 0, -1, 1, 1 << 31, 1 << 62, 1 << 63, 1 << 64, -(1 << 63), 1e308, -0.5, "", "x", "cpu", "cuda:0", "meta", "float32", [],
    {}, [[]], [1 << 62, 1 << 62], {"tensor": {}}, {"tuple": None}, {"float": "nan"}, {"int": "0x1"}, {"size": [-1]}, {"storage": 0},
    {"dict": [[{"tuple": []}, 1]]}, {"state_dict": [[], []]}, {"bytes": "QQ=="}, {"device": "cpu:1"}, {"dtype": "Tensor"},
]  # fmt: skip


# ---- the files that are changed


def _saved(value: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    c.save(value, file, **options)
    return file.getvalue()


def _npy(tensor: Any) -> bytes:
    file = io.BytesIO()
    save_npy(file, tensor)
    return file.getvalue()


def _npz(*tensors: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    save_npz(file, *tensors, **options)
    return file.getvalue()


def corpus() -> dict[str, list[bytes]]:
    """Small files of each format."""
    base = c.arange(12.0).reshape(3, 4)
    state = collections.OrderedDict(weight=base, view=base.T[1:, ::2], bias=c.ones(3, dtype=c.bfloat16))
    state._metadata = collections.OrderedDict([("", {"version": 1})])  # type: ignore[attr-defined]
    plain = {
        "n": None,
        "i": [1, -2, 1 << 70],
        "f": (0.5, float("nan")),
        "t": "ß",
        "b": b"\x00\xff",
        3: {"k": 1 - 2j},
        (1, "a"): True,
    }
    more = {
        "dtype": c.float16,
        "size": c.Size([2, 3]),
        "device": c.device("cpu"),
        "state": state,
        "grad": c.ones(2, requires_grad=True),
    }
    sets = {
        "set": {1, 2},
        "default": collections.defaultdict(list, {"a": [1]}),
        "count": collections.Counter("aab"),
        "mem": bytearray(b"xy"),
    }
    kinds = [c.zeros(2, dtype=dtype) for dtype in (c.bool, c.int16, c.uint32, c.float16, c.complex128)]
    both = [state, plain | more, [base, base[1], *kinds], c.zeros(0, 2), 1]
    return {
        "candelabra": [_saved(value) for value in both],
        "pytorch": [_saved(value, format="pytorch") for value in [*both, sets]],
        "legacy": [
            _saved(value, _use_new_zipfile_serialization=False)
            for value in [*both[:2], [base, base[1], c.ones(2)], sets]
        ],
        "safetensors": [
            safetensors.save({"a": base, "b": c.ones(2, dtype=c.bfloat16), "c": c.zeros(0)}, {"epoch": "3"}),
            safetensors.save({"x": c.tensor(1)}),
            safetensors.save({}),
        ],
        "npy": [_npy(base), _npy(base.T), _npy(c.tensor(True)), _npy(c.zeros(0, 3, dtype=c.complex64))],
        "npz": [_npz(base, c.ones(2)), _npz(base, compressed=True)],
    }


# ---- changes of bytes


def change_bytes(data: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    """Flip, set, insert, delete, double, cut or splice bytes, once or a few times."""
    text = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
        at = draw.randrange(len(text) + 1) if text else 0
        kind = draw.randrange(9)
        if kind == 0 and at < len(text):
            text[at] ^= 1 << draw.randrange(8)
        elif kind == 1 and at < len(text):
            text[at] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))
        elif kind == 2:
            text[at:at] = draw.randbytes(draw.randrange(1, 9))
        elif kind == 3:
            del text[at : at + draw.choice((1, 2, 4, 8, 64))]
        elif kind == 4:
            text[at:at] = text[at : at + draw.choice((1, 4, 16, 64, 256))]
        elif kind == 5:
            del text[at:]
        elif kind == 6:
            other = draw.choice(others)
            begin = draw.randrange(len(other) + 1)
            text[at:] = other[begin:]
        else:
            size = draw.choice((1, 2, 4, 8))
            number = draw.choice(INTERESTING) & ((1 << 8 * size) - 1)
            text[at : at + size] = number.to_bytes(size, draw.choice(("little", "big")))
    return bytes(text)


# ---- changes of JSON


def _places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        found.append((value, key))
        _places(part, found)
    return found


def change_json(text: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    """Put something strange in the place of a value, delete it or double it, or move it
    elsewhere.
    """
    try:
        value = json.loads(text)
    except ValueError:
        return change_bytes(text, draw, others)
    for _ in range(draw.choice((1, 1, 2, 4))):
        places = _places(value, [])
        if not places:
            return json.dumps(draw.choice(STRANGE)).encode()
        holder, key = draw.choice(places)
        kind = draw.randrange(6)
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, list):
            holder.insert(key, holder[key])
        elif kind == 1:
            holder[str(key) + draw.choice(("", "x", "_"))] = holder[key]
        elif kind == 2:
            source, name = draw.choice(places)
            holder[key] = json.loads(json.dumps(source[name])) if _has(source, name) else None
        elif kind == 3 and isinstance(holder[key], int):
            holder[key] += draw.choice((-1, 1, 64, 1 << 32, 1 << 62))
        elif kind == 4:
            for _ in range(draw.choice((1, 5, 90))):
                holder[key] = draw.choice(([holder[key]], {"tuple": [holder[key]]}))
        else:
            holder[key] = copy.deepcopy(draw.choice(STRANGE))
    made = json.dumps(value).encode()
    if draw.random() < 0.05 and b":" in made:
        # A name that stands twice.
        made = made[:-1] + b"," + made[1:] if made.startswith(b"{") else made
    return made


def _has(holder: Any, key: Any) -> bool:
    return key in holder if isinstance(holder, dict) else isinstance(key, int) and key < len(holder)


# ---- changes of pickles

_GLOBALS = [
    b"ccollections\nOrderedDict\n", b"ctorch._utils\n_rebuild_tensor_v2\n", b"ctorch._utils\n_rebuild_parameter\n", b"ctorch\nFloatStorage\n",
    b"ctorch\nSize\n", b"ctorch\ndevice\n", b"cbuiltins\nset\n", b"cbuiltins\nbytearray\n", b"cos\nsystem\n", b"c__builtin__\neval\n",
    b"ctorch\nfloat16\n", b"ccollections\ndefaultdict\n", b"c_codecs\nencode\n", b"cbuiltins\ncomplex\n", b"cbuiltins\nlist\n",
    b"ctorch._tensor\n_rebuild_from_type_v2\n", b"ccollections\nCounter\n",
]  # fmt: skip
_CODES = [bytes([code]) for code in b"(.012NQRtd}]ablesu\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x92\x93\x94)"]


def _codes(text: bytes) -> list[bytes]:
    found, places = [], []
    at = 0
    while at < len(text):
        part = [place for _, _, place in pickletools.genops(io.BytesIO(text[at:]))]
        places += [at + place for place in part if place is not None]
        at = places[-1] + 1
    for begin, end in zip(places, [*places[1:], len(text)]):
        found.append(text[begin:end])
    return found


def _number(draw: random.Random) -> bytes:
    number = draw.choice(INTERESTING)
    return draw.choice((
        b"K" + bytes([number & 255]), b"M" + struct.pack("<H", number & 0xFFFF), b"J" + struct.pack("<I", number & 0xFFFFFFFF),
        b"\x8a\x09" + number.to_bytes(9, "little", signed=True), b"\x8a\x08" + (number & ((1 << 64) - 1)).to_bytes(8, "little"),
        b"G" + struct.pack(">d", float(number)), b"r" + struct.pack("<I", number & 0xFFFFFFFF), b"j" + struct.pack("<I", number & 0xFFFFFFFF),
        b"q" + bytes([number & 15]), b"h" + bytes([number & 15]),
    ))  # fmt: skip


def change_pickle(text: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    """Delete, double, swap, insert or replace operations."""
    try:
        codes = _codes(text)
    except Exception:  # (whatever pickletools says to what is no pickle)
        return change_bytes(text, draw, others)
    for _ in range(draw.choice((1, 1, 2, 3, 6))):
        if not codes:
            return draw.choice(_CODES)
        at, other = draw.randrange(len(codes)), draw.randrange(len(codes))
        kind = draw.randrange(9)
        if kind == 0:
            codes[at : at + draw.choice((1, 1, 2, 5))] = []
        elif kind == 1:
            codes[at:at] = codes[at : at + draw.choice((1, 2, 5, 20))] * draw.choice((1, 1, 2, 50))
        elif kind == 2:
            codes[at], codes[other] = codes[other], codes[at]
        elif kind == 3:
            codes.insert(at, draw.choice(_CODES))
        elif kind == 4:
            codes.insert(at, draw.choice(_GLOBALS))
        elif kind == 5 or (kind == 6 and codes[at][:1] in b"KMJ"):
            codes[at] = _number(draw)
        elif kind == 7 and codes[at][:1] == b"c":
            codes[at] = draw.choice(_GLOBALS)
        else:
            codes[at] = change_bytes(codes[at], draw, others)
    return b"".join(codes)


# ---- changes of what archives hold


def _packed(entries: list[tuple[str, bytes]], draw: random.Random) -> bytes:
    file = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if draw.random() < 0.1 else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in entries:
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, compress_type=method)
    return file.getvalue()


def change_archive(data: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    """Change what is in an archive, and pack it again with the right checksums."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = [(name, archive.read(name)) for name in archive.namelist()]
    for _ in range(draw.choice((1, 1, 1, 2))):
        heads = [at for at, (name, _) in enumerate(entries) if name.endswith((".json", ".pkl", ".npy"))]
        at = draw.choice(heads) if heads and draw.random() < 0.8 else draw.randrange(len(entries))
        name, held = entries[at]
        kind = draw.randrange(24)
        if kind == 0:
            entries[at] = (name + draw.choice(("x", "/", "0", "\x01", "é")), held)
        elif kind == 1 and len(entries) > 1:
            del entries[at]
        elif kind == 2:
            entries[at] = (draw.choice(entries)[0] + draw.choice(("", "", "1")), held)
        elif kind == 3:
            entries[at] = (name, held[: draw.randrange(len(held) + 1)] + bytes(draw.choice((0, 0, 1, 64))))
        elif name.endswith(".json"):
            entries[at] = (name, change_json(held, draw, others))
        elif name.endswith(".pkl"):
            entries[at] = (name, change_pickle(held, draw, others))
        elif name.endswith(".npy"):
            entries[at] = (name, change_npy(held, draw, others))
        else:
            entries[at] = (name, change_bytes(held, draw, others))
    import warnings

    with warnings.catch_warnings():
        # Of names that stand twice.
        warnings.simplefilter("ignore")
        return _packed(entries, draw)


def change_legacy(data: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    """Change the pickles at the beginning of a file of PyTorch's old format."""
    file = io.BytesIO(data)
    parts = []
    for _ in range(5):
        begin = file.tell()
        for _ in pickletools.genops(file):
            pass
        parts.append(data[begin : file.tell()])
    at = draw.choice((0, 1, 2, 3, 3, 3, 3, 4))
    parts[at] = change_pickle(parts[at], draw, others)
    return b"".join(parts) + data[file.tell() :]


def change_safetensors(data: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    """Change the header of a safetensors file, and its length with it."""
    length = int.from_bytes(data[:8], "little")
    text = change_json(data[8 : 8 + length], draw, others)
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


def change_npy(data: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    """Change the header of an .npy file, and its length with it."""
    if data[:6] != b"\x93NUMPY" or len(data) < 12:
        return change_bytes(data, draw, others)
    length = int.from_bytes(data[8:10], "little")
    text = data[10 : 10 + length]
    kind = draw.randrange(4)
    if kind == 0:
        text = text.replace(
            b"'<f4'",
            draw.choice((b"'|O'", b"'>f8'", b"'<V8'", b"[('a', '<f4')]", b"'<c16'", b"'=i8'", b"'<U9'", b"'<f4'")),
        )
    elif kind == 1:
        shape = draw.choice(
            ("()", "(0,)", "(-1, 3)", "(9999999999999999999,)", "(4611686018427387904, 4)", "(1,) * 9", "(2, 2, 2)")
        )
        text = text[: text.find(b"(")] + shape.encode() + text[text.find(b")") + 1 :]
    elif kind == 2:
        text = text.replace(b"False", draw.choice((b"True", b"None", b"0", b"'x'")))
    else:
        text = change_bytes(text, draw, others)
    return data[:8] + struct.pack("<H", len(text) & 0xFFFF) + text + data[10 + length :]


STRUCTURED: dict[str, Callable[[bytes, random.Random, list[bytes]], bytes]] = {
    "candelabra": change_archive, "pytorch": change_archive, "npz": change_archive, "legacy": change_legacy,
    "safetensors": change_safetensors, "npy": change_npy,
}  # fmt: skip


# ---- loading


class Fuzzer:
    """Mutations of all formats in turn.

    Parameters
    ----------
    seed
        With a number, it makes one file.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.files = corpus()
        self.formats = list(self.files)
        self.all = [data for files in self.files.values() for data in files]
        #: What became of the files: loaded, or how many of each refusal.
        self.counts: collections.Counter[str] = collections.Counter()
        self.slowest = 0.0
        self._folder = tempfile.TemporaryDirectory()

    def make(self, number: int) -> tuple[str, bytes]:
        """Return the format and the bytes of one file."""
        draw = random.Random(f"{self.seed} {number}")
        kind = self.formats[number % len(self.formats)]
        data = draw.choice(self.files[kind])
        if draw.random() < 0.75:
            data = STRUCTURED[kind](data, draw, self.all)
            if draw.random() < 0.2:
                data = change_bytes(data, draw, self.all)
        else:
            data = change_bytes(data, draw, self.all)
        return kind, data

    def run(self, number: int) -> None:
        """Load one file; anything but an object and a FileError is raised, with what makes the file
        again.
        """
        kind, data = self.make(number)
        began = time.process_time()
        try:
            if number % 8:
                use(c.load(io.BytesIO(data)))
            else:
                # On the file itself.
                path = os.path.join(self._folder.name, "file")
                with open(path, "wb") as file:
                    file.write(data)
                use(c.load(path, mmap=True))
        except FileError:
            self.counts[f"{kind} refused"] += 1
        except c.BackendError:
            # A device of another name, which no backend has.
            self.counts[f"{kind} elsewhere"] += 1
        except BaseException as error:
            text = base64.b85encode(data[:4000]).decode()
            raise AssertionError(f"mutation {number} of seed {self.seed} ({kind}) raised {error!r}: {text}") from error
        else:
            self.counts[f"{kind} loaded"] += 1
        self.slowest = max(self.slowest, time.process_time() - began)


def use(value: Any) -> None:
    """Read every byte of every tensor, and see that everything else is plain data."""
    seen = set()
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, c.Tensor):
            value.detach().untyped_storage().tobytes()
            last = value.detach()
            if value.numel():
                for _ in range(value.ndim):
                    last = last[-1]
                assert last.ndim == 0 and last.item() is not None
        elif isinstance(value, dict):
            waiting += [*value, *value.values()]
        elif isinstance(value, (list, tuple, set, frozenset)):
            waiting += value
        else:
            plain = (
                bool,
                int,
                float,
                complex,
                str,
                bytes,
                bytearray,
                type(None),
                c.dtype,
                c.device,
                c.Storage,
                c.memory_format,
                c.layout,
            )
            assert isinstance(value, plain), f"{type(value)} was loaded"


def used_memory() -> int:
    """The bytes of address space that this process has."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


class Limits:
    """Within this, memory is bounded, and each file has so many seconds."""

    def __enter__(self) -> Limits:
        self._before = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used_memory() + MEMORY, self._before[1]))
        self._handler = signal.signal(signal.SIGPROF, _too_long)
        self.again()
        return self

    def again(self) -> None:
        """Begin the time of the next file."""
        # Of the processor: others on the machine do not count.
        signal.setitimer(signal.ITIMER_PROF, SECONDS)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, self._handler)
        resource.setrlimit(resource.RLIMIT_AS, self._before)


def _too_long(*_: object) -> None:
    raise TimeoutError(f"loading takes more than {SECONDS} seconds")


def pickled(value: Any) -> bytes:
    """A pickle by itself."""
    return pickle.dumps(value, 2)
