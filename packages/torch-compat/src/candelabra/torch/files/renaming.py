"""Rewrites the names in a pickle: Candelabra's classes and functions get PyTorch's names.

pickle writes the module in which an object is defined, and looks it up there. So the names are
replaced afterwards, in the text. Nothing but names is changed.
"""

from __future__ import annotations

import pickletools
import re

import candelabra.serialization as _serialization  # noqa: F401
from candelabra.serialization.pytorch_names import in_pytorch

#: Where the functions of `rebuilding` are in PyTorch.
_FUNCTIONS = {
    "_get_layout": "torch.serialization", "_rebuild_from_type_v2": "torch._tensor",
}  # fmt: skip
_REBUILDING = f"{__package__}.rebuilding"

#: Operations of a fixed length, by the number of bytes of their arguments.
_FIXED = re.compile(
    rb"(?:[0-2NaRQbdtelsuo()\]}\x81\x85-\x89\x8f-\x94]|[Khq\x80\x82].|[M\x83]..|[Jjr\x84].{4}|[G\x95].{8})+", re.DOTALL
)
#: Operations with an argument whose length is given, by the number of bytes of the length.
_COUNTED = {code: size for size, codes in ((1, b"U\x8cC\x8a"), (4, b"TXB\x8b"), (8, b"\x8d\x8e\x96")) for code in codes}
_LINES = b"FILSVPgp"


def _renamed(module: str, name: str) -> tuple[str, str]:
    if module == _REBUILDING:
        return _FUNCTIONS.get(name, "torch._utils"), name
    return in_pytorch(module, name)


def renamed(text: bytes) -> bytes:
    """Return a pickle with PyTorch's names instead of Candelabra's.

    Examples
    --------
    >>> import candelabra, pickle
    >>> from candelabra.torch.files.renaming import renamed
    >>> renamed(pickle.dumps(candelabra.float32, 2))
    b'\\x80\\x02ctorch\\nfloat32\\nq\\x00.'
    """
    if b"candelabra" not in text:
        return text
    return _strings_renamed(text) if text[:1] == b"\x80" and text[1] >= 4 else _globals_renamed(text)


def _globals_renamed(text: bytes) -> bytes:
    """Rename in a pickle of protocols 0 to 3, whose names are arguments of GLOBAL."""
    parts: list[bytes] = []
    at = copied = 0
    while True:
        fixed = _FIXED.match(text, at)
        if fixed is not None:
            at = fixed.end()
        code = text[at]
        if code == 0x2E:  # STOP
            parts.append(text[copied:])
            return b"".join(parts)
        if code in _COUNTED:
            size = _COUNTED[code]
            at += 1 + size + int.from_bytes(text[at + 1 : at + 1 + size], "little")
        elif code in b"ci":
            middle = text.index(b"\n", at + 1)
            end = text.index(b"\n", middle + 1)
            module, name = text[at + 1 : middle].decode(), text[middle + 1 : end].decode()
            if module.startswith("candelabra"):
                parts += [text[copied : at + 1], "{}\n{}".format(*_renamed(module, name)).encode()]
                copied = end
            at = end + 1
        elif code in _LINES:
            at = text.index(b"\n", at) + 1
        else:
            raise ValueError(f"torch.save(): the pickle has the unknown operation {bytes([code])!r}")


def _strings_renamed(text: bytes) -> bytes:
    """Rename in a pickle of protocols 4 and 5, whose names are strings below STACK_GLOBAL. The two
    strings are dropped, and GLOBAL is used instead. Frames, which are hints, are left out.
    """
    parts: list[bytes] = []
    strings: list[str] = []
    memo: dict[int, str | None] = {}
    last: str | None = None
    operations = list(pickletools.genops(text))
    ends = [place for _, _, place in operations[1:]] + [len(text)]
    for (code, argument, begin), end in zip(operations, ends, strict=True):
        assert begin is not None and end is not None
        written = text[begin:end]
        if code.name == "FRAME":
            continue
        if code.name in ("MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT"):
            memo[len(memo) if code.name == "MEMOIZE" else int(str(argument))] = last
        elif code.name == "STACK_GLOBAL":
            module, name = strings[-2:]
            if module.startswith("candelabra"):
                written = b"00c" + "{}\n{}\n".format(*_renamed(module, name)).encode()
            last = None
        else:
            last = argument if code.name.endswith("UNICODE") or code.name == "BINUNICODE8" else None
            if code.name in ("BINGET", "LONG_BINGET", "GET"):
                last = memo.get(int(str(argument)))
            if last is not None:
                strings.append(last)
        parts.append(written)
    return b"".join(parts)
