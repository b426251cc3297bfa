"""Files that ask for much memory: what loading takes is bounded by the length of the file.

The bound has a free part, which these tests make small, so that small files show the ratio.
"""

from __future__ import annotations

import io
import pickle
import random
import tracemalloc
import zipfile
from collections.abc import Callable

import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra as c
from candelabra.serialization import FileError, limits

LENGTH = 40_000
FREE = 1 << 15


def archive(name: str, text: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr(name, text)
    return file.getvalue()


def pickled(text: bytes) -> bytes:
    return archive("archive/data.pkl", text)


def repeated(piece: bytes, before: bytes = b"", after: bytes = b"") -> bytes:
    """A pickle of one operation again and again."""
    return pickled(b"\x80\x04" + before + piece * (LENGTH // len(piece)) + after + b".")


def described(content: str) -> bytes:
    text = f'{{"format":"candelabra archive","version":1,"storages":[],"content":{content}}}'
    return archive("description.json", text.encode())


def of_json(piece: str) -> bytes:
    return described("[" + ",".join([piece] * (LENGTH // (len(piece) + 1))) + "]")


def safetensors(piece: str) -> bytes:
    body = ",".join(piece.replace("@", f"{n:x}") for n in range(LENGTH // (len(piece) + 4)))
    header = ("{" + body + "}").encode()
    return len(header).to_bytes(8, "little") + header


# One operation again and again, with the result in one list, in tuples, dicts and sets, and kept.
PIECES = [
    b"N", b"\x88", b")", b"]", b"}", b"\x8f", b"K\x01", b"M\x01\x02", b"J\x01\x02\x03\x04", b"\x8a\x01\x05", b"G" + bytes(8), b"C\x00", b"C\x02ab", b"U\x00",
    b"\x8c\x00", b"\x8c\x02ab", b"\x8c\x03a\xc4\x80", b"\x8c\x04\xf0\x9f\x98\x80", b"\x96" + bytes(8), b"K\x01\x85", b"K\x01K\x02\x86", b"]\x94", b"}\x94", b")\x94", b"(t", b"(l",
    b"(d", b"(\x91", b"](K\x01e", b"](K\x01K\x02e", b"}K\x01K\x02s", b"I1\n", b"L1L\n", b"F1\n", b"V\n", b"S''\n",
]  # fmt: skip
JSON_PIECES = [
    "0", "1000", "1e1", "true", "[]", "{}", '""', '"ab"', '"\\u0100"', "[1,2]", '{"tuple":[1,2]}', '{"tuple":[]}', '{"dict":[]}', '{"set":[]}', '{"ordered_dict":[[1,2]]}', '{"int":"f"}',
    '{"bytes":""}', '{"size":[1]}', '{"complex":["1","2"]}', '{"counter":[]}', "[[[]]]",
]  # fmt: skip


def attacks() -> dict[str, Callable[[], bytes]]:
    found: dict[str, Callable[[], bytes]] = {}
    for piece in PIECES:
        name = piece.decode("latin-1").encode("unicode_escape").decode()
        found[f"list of {name}"] = lambda piece=piece: repeated(piece, b"](", b"e")
        found[f"tuple of {name}"] = lambda piece=piece: repeated(piece, b"(", b"t")
        found[f"appended {name}"] = lambda piece=piece: repeated(piece + b"a", b"]")
        found[f"nested {name}"] = lambda piece=piece: repeated(piece + b"\x86", b"N")
        found[f"kept {name}"] = lambda piece=piece: repeated(piece + b"\x940", b"", b"N")
    for piece in (b"K\x01", b"M\x01\x02", b"J\x01\x02\x03\x04"):
        found[f"dict of {piece!r}"] = lambda piece=piece: repeated(piece * 2, b"}(", b"u")
    found["marks"] = lambda: repeated(b"(", b"", b"t" * 10)
    found["keys of a dict"] = lambda: pickled(pickle.dumps(dict.fromkeys(range(LENGTH // 5)), 4))
    found["members of a set"] = lambda: pickled(pickle.dumps(set(range(LENGTH // 5)), 4))
    for text in JSON_PIECES:
        found[f"JSON list of {text}"] = lambda text=text: of_json(text)
    for depth in (1, 5):
        found[f"JSON lists {depth} deep"] = lambda depth=depth: of_json("[" * depth + "]" * depth)
    for text in ('"@":{}', '"@":[]', '"@":0', '"@":{"a":[]}', '"__metadata__":{"@":""}'):
        found[f"safetensors of {text}"] = lambda text=text: safetensors(text)
    return found


ATTACKS = attacks()


def peak_of(data: bytes) -> tuple[int, str]:
    """The most memory that loading takes, and what came of it."""
    tracemalloc.start()
    try:
        try:
            kept = c.load(io.BytesIO(data))
            result = type(kept).__name__
        except FileError:
            result = "refused"
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


def bound(length: int) -> int:
    """16 bytes of objects for each of the file, and the text itself, as bytes and as characters."""
    return 18 * length + FREE + (1 << 17)


@pytest.mark.parametrize("start", range(0, len(ATTACKS), 20))
def test_memory_of_attacks(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_FREE_MEMORY", FREE)
    for name in list(ATTACKS)[start : start + 20]:
        data = ATTACKS[name]()
        peak, result = peak_of(data)
        assert peak <= bound(len(data)), f"{name}: {peak / len(data):.1f} bytes for each of the file, {result}"


def test_memory_of_random_mixtures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_FREE_MEMORY", FREE)
    chance = random.Random(1)
    for _ in range(30):
        few = [chance.choice(PIECES) for _ in range(chance.randint(1, 6))]
        text = b"".join(chance.choice(few) + chance.choice([b"", b"", b"\x94", b"\x85"]) for _ in range(LENGTH // 8))
        data = pickled(b"\x80\x04](" + text + b"e.")
        peak, result = peak_of(data)
        assert peak <= bound(len(data)), f"{few}: {peak / len(data):.1f} bytes for each of the file, {result}"


@pytest.mark.parametrize(
    "value",
    [
        list(range(50_000)), [True] * 100_000, [[n, n + 1] for n in range(20_000)], [(n, str(n)) for n in range(20_000)], {str(n): n for n in range(20_000)},
        {n: [n] for n in range(20_000)}, [float(n) for n in range(50_000)], [{"a": n, "b": [n]} for n in range(10_000)], [[] for _ in range(20_000)],
    ],
)  # fmt: skip
def test_honest_files_of_many_objects_load(value: object) -> None:
    assert c.load(io.BytesIO(pickled(pickle.dumps(value, 2)))) == value
    file = io.BytesIO()
    c.save(value, file)
    assert c.load(io.BytesIO(file.getvalue())) == value
