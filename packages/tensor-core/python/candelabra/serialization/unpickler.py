"""An interpreter of pickles (opcodes of protocols 0 to 5, as the standard library's `pickletools`
documents them) that runs no code.

Names in a pickle are looked up in a table of known objects; nothing is imported. Copies of objects
and the hashing of keys are limited by a budget in proportion to the pickle's length. The standard
library's interpreter would allocate as much memory as a file of twenty bytes demands.
"""

from __future__ import annotations

import collections
import struct

from candelabra import _C

from .errors import FileError, UnsafeFileError, call_given
from .limits import Budget

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Named:
    """A class or a function that a pickle names: its implementation here, and the type it stands
    for, if any.
    """

    __slots__ = ("call", "name", "stands_for")

    def __init__(self, name: str, call: Callable[..., Any] | None = None, stands_for: Any = None) -> None:
        self.name = name
        self.call = call
        self.stands_for = stands_for


class Allowed(Named):
    """A class or a function that the user has allowed."""

    __slots__ = ("object",)

    def __init__(self, name: str, allowed: Any) -> None:
        super().__init__(name, lambda *arguments: call_given(allowed, *arguments))
        self.object = allowed


_MARK = object()


class Machine:
    """Runs one pickle.

    Parameters
    ----------
    text
        The pickle, and possibly further bytes.
    find
        Returns a `Named` or a plain value for the names of a module and an object in it.
    persistent
        Returns the object of a persistent id.
    encoding
        The encoding of Python 2 strings; ``bytes`` keeps them as bytes.
    """

    def __init__(
        self,
        text: bytes,
        find: Callable[[str, str], Any],
        persistent: Callable[[Any], Any],
        budget: Budget | None = None,
        encoding: str = "utf-8",
    ) -> None:
        self._text = text
        self.at = 0
        self._find = find
        self._persistent = persistent
        self._encoding = encoding
        self.budget = Budget(len(text)) if budget is None else budget
        self._stack: list[Any] = []
        # Pickles number what they keep from 0.
        self._memo: list[Any] = []
        self._memo_apart: dict[int, Any] = {}
        #: Instances of allowed classes, which :func:`verified` does not check.
        self.made: dict[int, Any] = {}

    # ---- the text

    def _take(self, count: int) -> bytes:
        if count < 0 or count > len(self._text) - self.at:
            raise EndOfText
        self.budget.memory -= count
        begin, self.at = self.at, self.at + count
        return self._text[begin : self.at]

    def _number(self, count: int, signed: bool = False) -> int:
        return int.from_bytes(self._take(count), "little", signed=signed)

    def _line(self) -> bytes:
        end = self._text.find(b"\n", self.at)
        if end < 0:
            raise EndOfText
        begin, self.at = self.at, end + 1
        self.budget.memory -= end - begin
        return self._text[begin:end]

    def _pop(self) -> Any:
        if not self._stack:
            raise FileError("its pickle takes more than there is")
        return self._stack.pop()

    def _pop_mark(self) -> list[Any]:
        stack = self._stack
        for at in range(len(stack) - 1, -1, -1):
            if stack[at] is _MARK:
                # For a moment the items are here, on the stack, and where they go. Pickles add a
                # thousand at a time, so that honest ones pay next to nothing.
                extra = 16 * (len(stack) - at)
                self.budget.allocate(extra)
                items = stack[at + 1 :]
                del stack[at:]
                self.budget.memory += extra
                return items
        raise FileError("its pickle misses a mark")

    def _top(self, kind: type) -> Any:
        if not self._stack or not isinstance(self._stack[-1], kind):
            raise FileError(f"its pickle adds to what is no {kind.__name__}")
        return self._stack[-1]

    def run(self) -> Any:
        """Return the object of the pickle, and set `at` behind it."""
        text, codes, budget, costs = self._text, _CODES, self.budget, _COSTS
        while True:
            if self.at >= len(text):
                raise EndOfText
            code = text[self.at]
            self.at += 1
            if code == 0x2E:  # STOP
                found = self._pop()
                if self._stack:
                    raise FileError("its pickle leaves something behind")
                return found
            step = codes.get(code)
            if step is None:
                raise UnsafeFileError(f"its pickle has the operation {bytes([code])!r}, which no file of tensors needs")
            budget.memory -= costs[code]
            if budget.memory < 0:
                budget.allocate(0)
            step(self)

    # ---- constants

    def _text_number(self, line: bytes) -> None:
        if line in (b"00", b"01"):
            self._stack.append(line == b"01")
        else:
            self._stack.append(int(line))

    def _old_string(self, data: bytes) -> Any:
        return data if self._encoding == "bytes" else data.decode(self._encoding)

    def _quoted(self) -> None:
        line = self._line().strip()
        if len(line) < 2 or line[:1] not in b"'\"" or line[-1:] != line[:1]:
            raise FileError("its pickle has a string without quotes")
        import codecs

        self._stack.append(self._old_string(codecs.escape_decode(line[1:-1])[0]))  # type: ignore[attr-defined]

    def _unicode(self, data: bytes) -> None:
        # One wide character makes all characters of a str wide.
        self.budget.allocate(0 if data.isascii() else 4 * len(data))
        self._stack.append(data.decode("utf-8", "surrogatepass"))

    def _long(self, count: int) -> None:
        self._stack.append(int.from_bytes(self._take(count), "little", signed=True))

    # ---- containers

    def _tuple(self, count: int) -> None:
        items = [self._pop() for _ in range(count)]
        self._stack.append(tuple(reversed(items)))

    def _append(self) -> None:
        value = self._pop()
        self._top(list).append(value)

    def _appends(self) -> None:
        items = self._pop_mark()
        self._top(list).extend(items)

    def _make_dict(self, items: list[Any]) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        self._fill(made, items)
        return made

    def _fill(self, target: Any, items: list[Any]) -> None:
        if len(items) % 2:
            raise FileError("its pickle has a key without a value")
        key = self.budget.key
        self.budget.allocate(
            len(items) // 2 * (_ORDERED_PAIR if isinstance(target, collections.OrderedDict) else _PAIR)
        )
        if not target:
            self.budget.allocate(_TABLE)
        for at in range(0, len(items), 2):
            target[key(items[at])] = items[at + 1]

    def _set_item(self) -> None:
        value, key = self._pop(), self._pop()
        self._fill(self._top(dict), [key, value])

    def _set_items(self) -> None:
        items = self._pop_mark()
        self._fill(self._top(dict), items)

    def _add_items(self) -> None:
        items = self._pop_mark()
        self.budget.allocate(_MEMBER * len(items))
        self._top(set).update([self.budget.key(item) for item in items])

    def _frozenset(self, items: list[Any]) -> None:
        self.budget.allocate(_MEMBER * len(items))
        self._stack.append(frozenset([self.budget.key(item) for item in items]))

    # ---- names, calls, states

    def _global(self) -> None:
        module, name = self._line().decode("utf-8"), self._line().decode("utf-8")
        self._stack.append(self._find(module, name))

    def _stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise FileError("its pickle names something without a name")
        self._stack.append(self._find(module, name))

    def _reduce(self) -> None:
        arguments, function = self._pop(), self._pop()
        if not isinstance(function, Named) or function.call is None or not isinstance(arguments, tuple):
            name = function.name if isinstance(function, Named) else type(function).__name__
            raise UnsafeFileError(f"its pickle calls {name[:200]}")
        self._call(function, arguments)

    def _call(self, function: Named, arguments: tuple[Any, ...], keywords: Any = None) -> None:
        # Functions may copy their arguments.
        self.budget.spend(sum(_length(argument) for argument in arguments))
        self.budget.allocate(_CALLED + sum(_copied(argument) for argument in arguments))
        if isinstance(function, Allowed):
            plain = [argument.object if isinstance(argument, Allowed) else argument for argument in arguments]
            made = (
                call_given(function.object, *plain)
                if not keywords
                else call_given(lambda: function.object(*plain, **keywords))
            )
            self.made[id(made)] = made
        else:
            assert function.call is not None
            if keywords:
                raise FileError(f"{function.name} with keywords")
            try:
                made = function.call(*arguments)
            except FileError:
                raise
            except TypeError as error:
                raise FileError(f"{function.name} with arguments that it does not take") from error
        self._stack.append(made)

    def _new(self) -> None:
        arguments, cls = self._pop(), self._pop()
        self._make(cls, arguments, None)

    def _new_with_keywords(self) -> None:
        keywords, arguments, cls = self._pop(), self._pop(), self._pop()
        if not isinstance(keywords, dict) or not all(isinstance(key, str) for key in keywords):
            raise FileError("its pickle makes an object with keywords that are none")
        self._make(cls, arguments, keywords)

    def _make(self, cls: Any, arguments: Any, keywords: Any) -> None:
        if not isinstance(arguments, tuple) or not isinstance(cls, Named):
            raise UnsafeFileError("its pickle makes an object of what is no class")
        if isinstance(cls, Allowed):
            if not isinstance(cls.object, type):
                raise UnsafeFileError(f"its pickle makes an object of {cls.name}, which is no class")
            allowed: Any = cls.object
            self.budget.spend(sum(_length(argument) for argument in arguments))
            self.budget.allocate(_CALLED + sum(_copied(argument) for argument in arguments))
            made = call_given(lambda: allowed.__new__(allowed, *arguments, **(keywords or {})))
            self.made[id(made)] = made
            self._stack.append(made)
        elif cls.call is not None and not keywords:
            self._call(cls, arguments)
        else:
            raise UnsafeFileError(f"its pickle makes an object of {cls.name[:200]}")

    def _build(self) -> None:
        state = self._pop()
        if not self._stack:
            raise FileError("its pickle takes more than there is")
        target = self._stack[-1]
        self.budget.spend(_length(state))
        self.budget.allocate(_copied(state))
        if id(target) in self.made:
            call_given(set_state, target, state)
        elif type(target) in BUILDERS:
            BUILDERS[type(target)](target, state, self.budget)
        elif isinstance(target, collections.OrderedDict) or (
            isinstance(target, _C.Tensor) and isinstance(state, (dict, type(None)))
        ):
            if state is not None:
                set_attributes(target, state, self.budget)
        else:
            raise UnsafeFileError(f"its pickle sets the state of {type(target).__name__}")

    def _persistent_id(self) -> None:
        self._stack.append(self._persistent(self._pop()))

    # ---- the memo

    def _get(self, number: int) -> None:
        if 0 <= number < len(self._memo):
            self._stack.append(self._memo[number])
        elif number in self._memo_apart:
            self._stack.append(self._memo_apart[number])
        else:
            raise FileError("its pickle remembers what was not there")

    def _put(self, number: int) -> None:
        if not self._stack or self._stack[-1] is _MARK or number < 0:
            raise FileError("its pickle keeps what is not there")
        if number < len(self._memo):
            self._memo[number] = self._stack[-1]
        elif number == len(self._memo) and number not in self._memo_apart:
            self._memo.append(self._stack[-1])
        else:
            self.budget.allocate(_PAIR)
            self._memo_apart[number] = self._stack[-1]


class EndOfText(FileError):
    """The input ends within the pickle."""

    def __init__(self) -> None:
        super().__init__("its pickle is cut off")


def _length(value: Any) -> int:
    return len(value) + 1 if isinstance(value, (str, bytes, bytearray, list, tuple, dict, set, frozenset)) else 1


def _copied(value: Any) -> int:
    """Return the most memory that a copy of an argument takes, of whatever kind."""
    if isinstance(value, (str, bytes, bytearray)):
        return 4 * len(value)
    return _ORDERED_PAIR * len(value) if isinstance(value, (list, tuple, dict, set, frozenset)) else 0


def set_attributes(target: Any, state: Any, budget: Budget) -> None:
    """Set the attributes of a state, but do not replace methods."""
    if not isinstance(state, dict):
        raise FileError(f"its pickle gives attributes to {type(target).__name__} without names")
    budget.spend(len(state))
    budget.allocate(_PAIR * len(state))
    for name, value in state.items():
        if not isinstance(name, str) or name.startswith("__") or hasattr(type(target), name):
            raise FileError(f"its pickle sets the attribute {str(name)[:100]!r} of {type(target).__name__}")
        target.__dict__[name] = value


def set_state(target: Any, state: Any) -> None:
    """Restore the state of an object of a class that the user has allowed, as Python's own
    implementation does.
    """
    if hasattr(target, "__setstate__"):
        target.__setstate__(state)
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        target.__dict__.update(state)
    for name, value in (slots or {}).items():
        setattr(target, name, value)


def _do(name: str) -> Callable[[Machine], None]:
    return getattr(Machine, name)  # type: ignore[no-any-return]


def _ignored_frame(machine: Machine) -> None:
    # Frames are hints for reading ahead; here all input is in memory.
    if machine._number(8) > len(machine._text) - machine.at:
        raise EndOfText


def _protocol(machine: Machine) -> None:
    if machine._number(1) > 5:
        raise FileError("its pickle is of a protocol that is not known")


def _push(make: Callable[[Machine], Any]) -> Callable[[Machine], None]:
    return lambda machine: machine._stack.append(make(machine))


def _duplicate(machine: Machine) -> None:
    machine._stack.append(machine._pop())
    machine._stack.append(machine._stack[-1])


def _pop_only(machine: Machine) -> None:
    machine._pop()


class _ShortIntegers(dict[int, int]):
    """The integers of two bytes, made at first use. Long lists share them."""

    def __missing__(self, number: int) -> int:
        self[number] = number
        return number


_SHORT = _ShortIntegers()

_CODES: dict[int, Callable[[Machine], Any]] = {
    ord(code): step
    for code, step in {
        "\x80": _protocol, "\x95": _ignored_frame, "(": _push(lambda m: _MARK), "0": _pop_only, "1": lambda m: m._pop_mark(),
        "2": _duplicate, "N": _push(lambda m: None), "\x88": _push(lambda m: True), "\x89": _push(lambda m: False),
        "I": lambda m: m._text_number(m._line()), "L": _push(lambda m: int(m._line().rstrip(b"L"))),
        "J": _push(lambda m: m._number(4, True)), "K": _push(lambda m: m._number(1)), "M": _push(lambda m: _SHORT[m._number(2)]),
        "\x8a": lambda m: m._long(m._number(1)), "\x8b": lambda m: m._long(m._number(4, True)),
        "F": _push(lambda m: float(m._line())), "G": _push(lambda m: struct.unpack(">d", m._take(8))[0]),
        "S": _do("_quoted"), "T": _push(lambda m: m._old_string(m._take(m._number(4, True)))),
        "U": _push(lambda m: m._old_string(m._take(m._number(1)))),
        "B": _push(lambda m: m._take(m._number(4))), "C": _push(lambda m: m._take(m._number(1))),
        "\x8e": _push(lambda m: m._take(m._number(8))), "\x96": _push(lambda m: bytearray(m._take(m._number(8)))),
        "V": _push(lambda m: m._line().decode("raw-unicode-escape")), "X": lambda m: m._unicode(m._take(m._number(4))),
        "\x8c": lambda m: m._unicode(m._take(m._number(1))), "\x8d": lambda m: m._unicode(m._take(m._number(8))),
        ")": _push(lambda m: ()), "t": _push(lambda m: tuple(m._pop_mark())), "\x85": lambda m: m._tuple(1),
        "\x86": lambda m: m._tuple(2), "\x87": lambda m: m._tuple(3),
        "]": _push(lambda m: []), "l": _push(lambda m: m._pop_mark()), "a": _do("_append"), "e": _do("_appends"),
        "}": _push(lambda m: {}), "d": _push(lambda m: m._make_dict(m._pop_mark())), "s": _do("_set_item"), "u": _do("_set_items"),
        "\x8f": _push(lambda m: set()), "\x90": _do("_add_items"),
        "\x91": lambda m: m._frozenset(m._pop_mark()),
        "c": _do("_global"), "\x93": _do("_stack_global"), "R": _do("_reduce"), "\x81": _do("_new"), "\x92": _do("_new_with_keywords"),
        "b": _do("_build"), "Q": _do("_persistent_id"),
        "g": lambda m: m._get(int(m._line())), "h": lambda m: m._get(m._number(1)), "j": lambda m: m._get(m._number(4)),
        "p": lambda m: m._put(int(m._line())), "q": lambda m: m._put(m._number(1)), "r": lambda m: m._put(m._number(4)),
        "\x94": lambda m: m._put(len(m._memo) + len(m._memo_apart)),
    }.items()
}  # fmt: skip

#: Bytes of a pair in a dict and in an OrderedDict, of a member of a set, of a new object, and of
#: knowing that a container has been verified.
_PAIR, _ORDERED_PAIR, _MEMBER, _CALLED, _SEEN = 110, 160, 80, 300, 88
#: Bytes of a dict's first table.
_TABLE = 120
#: Bytes of what an operation makes, with its place in a list. What depends on a length is added
#: where the length is known.
_COSTS = [8] * 256
for _bytes, _codes in (
    (32, "IL"), (40, "J\x8a\x8b"), (32, "FG"), (64, "STUVX\x8c\x8d"), (48, "BC\x8e"), (72, "\x96"),
    (56, "t\x85\x86\x87"), (72, "]l"), (72, "}d"), (224, "\x8f\x91"), (9, "pqr\x94"),
):  # fmt: skip
    for _code in _codes:
        _COSTS[ord(_code)] = _bytes

#: Types of loaded objects besides containers.
_LEAVES = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    bytearray,
    type(None),
    _C.Tensor,
    _C.dtype,
    _C.device,
    _C.Size,
    _C.memory_format,
)


def verified(found: Any, machine: Machine) -> Any:
    """Return the result of a pickle if it consists of plain data, tensors and allowed objects."""
    seen: set[int] = set()
    if isinstance(found, Allowed):
        return found.object
    waiting = [found]
    while waiting:
        value = waiting.pop()
        if isinstance(value, _LEAVES) or id(value) in seen or id(value) in machine.made:
            continue
        machine.budget.allocate(_SEEN)
        seen.add(id(value))
        if isinstance(value, dict):
            waiting += [item for item in value.values() if not isinstance(item, _LEAVES)]
            waiting += [item for item in value if not isinstance(item, _LEAVES)]
            if isinstance(value, collections.OrderedDict):
                waiting.extend(vars(value).values())
        elif isinstance(value, (list, tuple, set, frozenset)):
            waiting += [item for item in value if not isinstance(item, _LEAVES)]
        elif type(value) in EXTRA_LEAVES:
            continue
        elif type(value) in FINISHED:
            FINISHED[type(value)](value)
        elif type(value) in ATTRIBUTED:
            waiting.extend(vars(value).values())
        elif value is _MARK:
            raise FileError("its pickle keeps a mark")
        else:
            name = (
                getattr(value, "name", type(value).__name__)
                if type(value).__module__.startswith("candelabra")
                else type(value).__name__
            )
            raise UnsafeFileError(f"it holds {name}, and only tensors and plain data are read", name)
    return found


#: Types of further values that :func:`verified` accepts.
EXTRA_LEAVES: set[type] = set()
#: Types of values that it accepts, and what completes them when the pickle has run.
FINISHED: dict[type, Callable[[Any], None]] = {}
#: Types of values that it accepts if their attributes are accepted.
ATTRIBUTED: set[type] = set()
#: What sets the state of values of these types.
BUILDERS: dict[type, Callable[[Any, Any, Budget], None]] = {}
