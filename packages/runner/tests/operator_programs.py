"""Files of one call each: the calls of kernels that the conformance suite's samples make."""

from __future__ import annotations

import json
import math
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from running import write_entries

import candelabra
from candelabra.catalogue import OPERATORS
from candelabra.catalogue.declaration import DATA_DEPENDENT, RANDOM
from candelabra.testing.conformance import _materialize, _stable, applicable
from candelabra.testing.reference import references

#: What a buffer is: memory of the arena, stored bytes, stored bytes that calls change.
_ARENA, _STORED, _CHANGED = 0, 2, 3
_TENSOR, _TENSORS = 1, 2


def samples(name: str, most: int, seed: int = 0) -> Iterator[tuple[str, list[Any], dict[str, Any]]]:
    """Yield a text and the arguments of up to `most` calls of an operator."""
    reference = references()[name]
    found = []
    for dtype in reference.dtypes:
        rng = np.random.default_rng(_stable(name + dtype))
        found += [(f"{name}({sample})", sample) for sample in reference.samples(rng, dtype)]
    random.Random(f"{seed}{name}").shuffle(found)
    for text, sample in found[:most]:
        arguments = [_materialize(value, "cpu")[0] for value in sample.arguments]
        keywords = {key: _materialize(value, "cpu")[0] for key, value in sample.keywords.items()}
        yield text, arguments, keywords


def names() -> list[str]:
    """Return the operators whose calls a file may have."""
    return [name for name in applicable() if not OPERATORS[name].tags & (RANDOM | DATA_DEPENDENT)]


class Program:
    """The description of a file of one program, and its storages."""

    def __init__(self, text: str, calls: list[Any], buffers: list[tuple[Any, ...]], contents: dict[int, bytes]) -> None:
        self.text = text
        self.storages: list[bytes] = []
        self.kernels: list[list[Any]] = []
        self.buffers: list[list[int]] = []
        self.arena = 0
        for number, (size, _, is_written, constant) in enumerate(buffers):
            content = contents.get(number, constant)
            if content is None:
                self.buffers.append([_ARENA, size, self.arena])
                self.arena += -(-max(size, 1) // 64) * 64
            else:
                self.buffers.append([_CHANGED if is_written else _STORED, len(content), len(self.storages)])
                self.storages.append(bytes(content))
        self.calls = [self._call(call) for call in calls]

    def _call(self, call: tuple[Any, ...]) -> list[Any]:
        if call[0] == "copy":
            return ["copy", *call[1], *call[2], call[3]]
        if call[0] == "fill":
            return ["fill", *call[1], call[2], list(call[3])]
        _, name, flags, outputs, arguments = call
        if [name, flags] not in self.kernels:
            self.kernels.append([name, flags])
        return [
            self.kernels.index([name, flags]),
            [_described(one) for one in outputs],
            [_argument(*one) for one in arguments],
        ]

    def runner(self) -> dict[str, Any]:
        """Return what the file holds for the runner, with plain dicts."""
        return {
            "version": 1,
            "abi": [2, 1],
            "device": "cpu",
            "kernels": self.kernels,
            "storages": [{"storage": number} for number in range(len(self.storages))],
            "programs": [
                {
                    "inputs": [],
                    "outputs": [],
                    "arena": self.arena,
                    "buffers": self.buffers,
                    "calls": self.calls,
                }
            ],
        }

    def write(self, path: Path, runner: dict[str, Any]) -> None:
        """Write a file with this description."""
        runner = {**runner, "programs": [_as_entries(one) for one in runner["programs"]]}
        description = {
            "format": "candelabra archive",
            "content": _as_entries({"runner": _as_entries(runner)}),
            "storages": [{"bytes": len(one)} for one in self.storages],
        }
        entries = {f"storages/{number}": one for number, one in enumerate(self.storages)}
        write_entries(path, {"description.json": json.dumps(description).encode(), **entries})


def _as_entries(value: dict[str, Any]) -> dict[str, Any]:
    return {"dict": [[key, one] for key, one in value.items()]}


def _described(one: Any) -> list[Any] | None:
    if one is None:
        return None
    if one[0] is None:
        return [-1, list(one[1]), one[2], list(one[3])]
    return [*one[:3], list(one[3]), list(one[4])]


def _plain(value: Any) -> Any:
    """Return a value as archives have it: JSON has no infinities."""
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value if not isinstance(value, float) or math.isfinite(value) else {"float": repr(value)}


def _argument(kind: int, *held: Any) -> list[Any]:
    if kind == _TENSOR:
        return [kind, _described(held[0])]
    if kind == _TENSORS:
        return [kind, [_described(one) for one in held[0]]]
    return [kind, *(_plain(one) for one in held)]


def _tensors(values: Any) -> Iterator[candelabra.Tensor]:
    for value in values:
        if isinstance(value, candelabra.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def program_of(text: str, function: Any, arguments: list[Any], keywords: dict[str, Any]) -> Program | None:
    """Return the program of the kernel calls that a call of a function makes; None for none."""
    contents = {}
    recording = candelabra._C.Recording()
    tensors = list(_tensors([*arguments, *keywords.values()]))
    for tensor in tensors:
        number = recording.register(tensor)
        contents[number] = bytes(tensor.untyped_storage().tolist())
    recording.start()
    try:
        result = function(*arguments, **keywords)
    finally:
        recording.stop()
    if recording.reason is not None:
        return None
    try:
        calls = recording.lowered_instructions()
    except ValueError:
        return None
    del result
    return Program(text, calls, recording.lowered_buffers(), contents) if calls else None


def programs(most: int, seed: int = 0) -> Iterator[Program]:
    """Yield programs of up to `most` calls of each operator."""
    for name in names():
        for text, arguments, keywords in samples(name, most, seed):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # as of var() of a single value
                try:
                    found = program_of(text, OPERATORS[name], arguments, keywords)
                except NotImplementedError:
                    continue
            if found is not None:
                yield found
