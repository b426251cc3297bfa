"""Crafted files: programs of valid kernel calls of which something was changed.

Buffers have room behind what the calls use, so that most changes stay within bounds: what they
break is the sense of a call's arguments together.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from operator_programs import Program, programs

_TENSOR, _TENSORS, _SCALAR, _INT, _FLOAT, _INTS, _FLOATS, _STRING = 1, 2, 3, 4, 5, 6, 7, 8
_ITEMSIZES = (1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 2, 4, 8, 1, 1, 1, 1, 1, 4)
_INTEGERS = (0, 1, 2, 3, -1, -2, 7, 64, 1000, 1 << 31, -(1 << 31), (1 << 62) + 1, -(1 << 63), (1 << 63) - 1)
_TEXTS = (
    "",
    "none",
    "mean",
    "sum",
    "max",
    "prod",
    "amin",
    "amax",
    "lstm",
    "gru",
    "relu",
    "floor",
    "trunc",
    "tanh",
    "bilinear",
    "reflect",
)


def roomy(program: Program) -> Program:
    """Return the program with four times the memory for each buffer, and twice the elements."""
    made = copy.deepcopy(program)
    made.arena = 0
    for buffer in made.buffers:
        if buffer[0] == 0:
            buffer[1], buffer[2] = 4 * buffer[1] + 64, made.arena
            made.arena += -(-buffer[1] // 64) * 64
        else:
            content = made.storages[buffer[2]]
            made.storages[buffer[2]] = content * 4 + bytes(64)
            buffer[1] = len(made.storages[buffer[2]])
    return made


class Mutator:
    """Changes of the description of a program, chosen at random."""

    def __init__(self, choice: random.Random, kernels: dict[int, list[list[Any]]]) -> None:
        self._choice = choice
        self._kernels = kernels
        self._ways: list[Callable[[dict[str, Any], Program], None]] = [
            self._size, self._size, self._size, self._stride, self._offset, self._dtype, self._rank, self._number, self._number,
            self._list, self._exchange, self._missing, self._buffer, self._operator, self._content, self._output, self._text,
            self._copy,
        ]  # fmt: skip

    def change(self, runner: dict[str, Any], program: Program) -> None:
        """Change one to three things."""
        for _ in range(self._choice.choice((1, 1, 2, 3))):
            self._choice.choice(self._ways)(runner, program)

    def _calls(self, runner: dict[str, Any]) -> list[list[Any]]:
        return [call for call in runner["programs"][0]["calls"] if isinstance(call[0], int)]

    def _tensors(self, runner: dict[str, Any]) -> list[list[Any]]:
        found = []
        for call in self._calls(runner):
            found += call[1]
            for argument in call[2]:
                if argument[0] == _TENSOR:
                    found.append(argument[1])
                elif argument[0] == _TENSORS:
                    found += [one for one in argument[1] if one is not None]
        return [one for one in found if len(one) == 5]

    def _tensor(self, runner: dict[str, Any]) -> list[Any]:
        tensors = self._tensors(runner)
        return self._choice.choice(tensors) if tensors else [0, 0, 8, [], []]

    def _near(self, value: int) -> int:
        return self._choice.choice(
            (value + 1, max(value - 1, 0), 2 * value, value // 2, 0, 1, self._choice.randrange(64))
        )

    def _size(self, runner: dict[str, Any], _: Program) -> None:
        tensor = self._tensor(runner)
        if tensor[3]:
            dim = self._choice.randrange(len(tensor[3]))
            tensor[3][dim] = self._near(tensor[3][dim])
        if self._choice.random() < 0.5:
            self._pack(tensor)

    def _pack(self, tensor: list[Any]) -> None:
        """Give a tensor row-major strides."""
        step = 1
        for dim in reversed(range(len(tensor[3]))):
            tensor[4][dim] = step
            step *= max(tensor[3][dim], 1)

    def _stride(self, runner: dict[str, Any], _: Program) -> None:
        tensor = self._tensor(runner)
        if tensor[4]:
            dim = self._choice.randrange(len(tensor[4]))
            tensor[4][dim] = self._near(tensor[4][dim])

    def _offset(self, runner: dict[str, Any], _: Program) -> None:
        tensor = self._tensor(runner)
        tensor[1] = max(tensor[1] + self._choice.choice((-1, 1, 2, 8)) * _ITEMSIZES[tensor[2]], 0)

    def _dtype(self, runner: dict[str, Any], _: Program) -> None:
        tensor = self._tensor(runner)
        same = [k for k, size in enumerate(_ITEMSIZES) if size == _ITEMSIZES[tensor[2]]]
        tensor[2] = self._choice.choice(same if self._choice.random() < 0.5 else range(len(_ITEMSIZES)))
        tensor[1] -= tensor[1] % _ITEMSIZES[tensor[2]]

    def _rank(self, runner: dict[str, Any], _: Program) -> None:
        tensor = self._tensor(runner)
        dim = self._choice.randrange(len(tensor[3]) + 1)
        if self._choice.random() < 0.5 and dim < len(tensor[3]):
            del tensor[3][dim], tensor[4][dim]
        else:
            tensor[3].insert(dim, self._choice.choice((0, 1, 1, 2, 3)))
            tensor[4].insert(dim, self._choice.choice((0, 1, 4)))

    def _argument(self, runner: dict[str, Any], kinds: tuple[int, ...]) -> list[Any] | None:
        found = [argument for call in self._calls(runner) for argument in call[2] if argument[0] in kinds]
        return self._choice.choice(found) if found else None

    def _integer(self, value: int) -> int:
        return self._choice.choice((value + 1, value - 1, -value, self._choice.choice(_INTEGERS)))

    def _number(self, runner: dict[str, Any], _: Program) -> None:
        argument = self._argument(runner, (_INT, _FLOAT, _SCALAR))
        if argument is None:
            return
        if argument[0] == _INT:
            argument[1] = self._integer(argument[1])
        elif argument[0] == _FLOAT:
            argument[1] = self._choice.choice((0.0, -1.0, 1e300, {"float": "nan"}, {"float": "inf"}))
        elif self._choice.random() < 0.5:
            value = self._integer(argument[3])
            argument[1:] = [1, 0, value, float(value), 0.0]
        else:
            argument[self._choice.randrange(1, 6)] = self._choice.choice((0, 1, 2, 3, 1 << 40))

    def _list(self, runner: dict[str, Any], _: Program) -> None:
        argument = self._argument(runner, (_INTS, _FLOATS, _TENSORS))
        if argument is None:
            return
        values, way = argument[1], self._choice.random()
        if not values or way < 0.2:
            values.append(copy.deepcopy(self._choice.choice(values)) if values else 1)
        elif way < 0.4:
            del values[self._choice.randrange(len(values))]
        elif argument[0] == _INTS:
            place = self._choice.randrange(len(values))
            values[place] = self._integer(values[place])
        elif argument[0] == _TENSORS:
            values[self._choice.randrange(len(values))] = None if way < 0.6 else copy.deepcopy(self._tensor(runner))

    def _exchange(self, runner: dict[str, Any], _: Program) -> None:
        tensors = self._tensors(runner)
        if len(tensors) < 2:
            return
        first, second = self._choice.sample(tensors, 2)
        parts = self._choice.choice(((0, 1), (0, 1, 2, 3, 4), (2,), (3, 4)))
        for part in parts:
            first[part], second[part] = second[part], first[part]

    def _missing(self, runner: dict[str, Any], _: Program) -> None:
        calls = self._calls(runner)
        if not calls:
            return
        call = self._choice.choice(calls)
        way = self._choice.random()
        if way < 0.6 and call[2]:
            call[2][self._choice.randrange(len(call[2]))] = [0]
        elif way < 0.8 and call[2]:
            del call[2][self._choice.randrange(len(call[2]))]
        elif call[1]:
            del call[1][self._choice.randrange(len(call[1]))]

    def _buffer(self, runner: dict[str, Any], _: Program) -> None:
        buffers = runner["programs"][0]["buffers"]
        if self._choice.random() < 0.7:
            self._tensor(runner)[0] = self._choice.randrange(max(len(buffers), 1))
        elif buffers:
            buffer = self._choice.choice(buffers)
            part = self._choice.randrange(3)
            buffer[part] = self._choice.randrange(4) if part == 0 else self._near(buffer[part])

    def _operator(self, runner: dict[str, Any], _: Program) -> None:
        """Call another operator with the same number of arguments."""
        calls = self._calls(runner)
        if not calls:
            return
        call = self._choice.choice(calls)
        others = self._kernels.get(len(call[2]), [])
        if others:
            runner["kernels"].append(self._choice.choice(others))
            call[0] = len(runner["kernels"]) - 1

    def _content(self, _: dict[str, Any], program: Program) -> None:
        """Change stored bytes: indices out of range, bools that are none."""
        filled = [number for number, content in enumerate(program.storages) if content]
        if not filled:
            return
        number = self._choice.choice(filled)
        content = bytearray(program.storages[number])
        for _ in range(self._choice.choice((1, 8, len(content)))):
            content[self._choice.randrange(len(content))] = self._choice.choice((0, 1, 2, 127, 128, 255))
        program.storages[number] = bytes(content)

    def _output(self, runner: dict[str, Any], _: Program) -> None:
        """Let a result be where something else is."""
        tensors = self._tensors(runner)
        outputs = [output for call in self._calls(runner) for output in call[1] if len(output) == 5]
        if outputs:
            self._choice.choice(outputs)[:2] = self._choice.choice(tensors)[:2]

    def _text(self, runner: dict[str, Any], _: Program) -> None:
        argument = self._argument(runner, (_STRING,))
        if argument is not None:
            argument[1] = self._choice.choice(_TEXTS)

    def _copy(self, runner: dict[str, Any], _: Program) -> None:
        """Copy or fill bytes before or between the calls."""
        program = runner["programs"][0]
        count = max(len(program["buffers"]), 1)
        call: list[Any] = ["copy", self._choice.randrange(count), 0, self._choice.randrange(count), 8, 16]
        if self._choice.random() < 0.5:
            call = ["fill", self._choice.randrange(count), 0, 64, [self._choice.choice((0, 1, 2, 255))] * 16]
        program["calls"].insert(self._choice.randrange(len(program["calls"]) + 1), call)


def mutated(folder: Path, count: int, seed: int = 0, calls: int = 4) -> Iterator[Path]:
    """Write `count` changed files of the calls of all operators, up to `calls` of each."""
    bases = [roomy(program) for program in programs(calls, seed)]
    kernels: dict[int, list[list[Any]]] = {}
    for base in bases:
        for call in base.calls:
            if isinstance(call[0], int):
                kernels.setdefault(len(call[2]), []).append(base.kernels[call[0]])
    choice = random.Random(seed)
    mutator = Mutator(choice, kernels)
    for number in range(count):
        program = copy.copy(choice.choice(bases))
        program.storages = list(program.storages)
        runner = copy.deepcopy(program.runner())
        mutator.change(runner, program)
        path = folder / f"{number}.cex"
        program.write(path, runner)
        yield path
