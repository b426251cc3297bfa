"""Runs the tests of one file of PyTorch's, and writes a line of JSON for each.

``python -m candelabra.torch run_file.py OPTIONS``; without ``-m candelabra.torch``, on PyTorch.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import json
import os
import resource
import signal
import sys
import tempfile
import time
import types
import unittest
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

sys.path.insert(0, str(Path(__file__).parent))

import lenient

#: Address space of a process in bytes, so that a test that asks for more fails alone.
MEMORY = 24 << 30


class Slow(BaseException):
    """A test has run for its time limit."""


def stop(number: int, frame: Any) -> None:
    raise Slow("time limit")


class Result(unittest.TestResult):
    """Writes what became of each test."""

    def __init__(self, written: TextIO, limit: float) -> None:
        super().__init__()
        self.written, self.limit = written, limit
        self.status, self.said, self.started = "", "", 0.0

    def _write(self, **entry: Any) -> None:
        self.written.write(json.dumps(entry) + "\n")
        self.written.flush()

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.status, self.said = "passed", ""
        self.started = time.perf_counter()
        self._write(start=name_of(test))
        signal.setitimer(signal.ITIMER_REAL, self.limit)

    def stopTest(self, test: unittest.TestCase) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        seconds = round(time.perf_counter() - self.started, 3)
        self._write(test=name_of(test), status=self.status, said=self.said, seconds=seconds)
        super().stopTest(test)

    def _failed(self, error: Any) -> None:
        if self.status == "failed":
            return
        place = error[2]
        while place and place.tb_next:
            place = place.tb_next
        where = f"{Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}" if place else ""
        self.status, self.said = "failed", f"{error[0].__name__}: {error[1]}"[:600] + f" @ {where}"

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        self._failed(err)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        self._failed(err)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        if err is not None:
            self._failed(err)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        if self.status == "passed":
            self.status, self.said = "skipped", reason[:200]

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        self.status, self.said = "failed", "unexpected success"


def name_of(test: unittest.TestCase) -> str:
    """Return a test's name: its class and its method."""
    return f"{type(test).__name__}.{test._testMethodName}"


def cases(suite: Any) -> Iterator[unittest.TestCase]:
    """Return the tests of a suite."""
    for entry in suite:
        if isinstance(entry, unittest.TestSuite):
            yield from cases(entry)
        else:
            yield entry


def aliases(module: types.ModuleType) -> Iterator[tuple[str, str]]:
    """Yield names that PyTorch's tests of overrides have, and the tests made here for the objects.

    Where PyTorch has two functions of one meaning, such as ``abs`` and ``absolute``, there is one
    object here, for which one test is made.
    """
    import torch

    made = module.get_testing_overrides()
    resolved = {torch.overrides.resolve_name(function): function for function in made}
    places = (
        torch, torch.Tensor, torch.distributed, torch.fft, torch.functional, torch.linalg, torch.nn.functional, torch.nn.init,
        torch.special,
    )  # fmt: skip
    for place in places:
        # PyTorch's tests have the module that defines the collectives in their names.
        module_of_test = "distributed_distributed_c10d_" if place is torch.distributed else ""
        lazy = {
            name.rpartition(".")[2] for name in resolved if name and name.count(".") == place.__name__.count(".") + 1
        }
        for name in {*dir(place), *lazy}:
            found = getattr(place, name, None)
            found = (
                getattr(found, "__get__", None) if isinstance(found, property | types.GetSetDescriptorType) else found
            )
            try:
                if found not in made:
                    continue
            except TypeError:  # what cannot be hashed
                continue
            suffix = ""
            if found.__name__ == "__get__":
                suffix = "___get__"
                owner = getattr(found.__self__, "__qualname__", None) or f"Tensor.{found.__self__.fget.__name__}"
            else:
                owner = "Tensor" if module.is_tensor_method_or_property(found) else found.__module__
            test = f"test_{owner.replace('.', '_')}_{found.__name__}" if owner else f"test_{found.__name__}"
            of_pytorch = f"test_torch_{module_of_test}{name}{suffix}"
            yield f"TestTorchFunctionOverride.{of_pytorch}", f"TestTorchFunctionOverride.{test}"


class SparseChecks:
    """What the harness switches before each test; without sparse tensors there is nothing to
    check.
    """

    @staticmethod
    def is_enabled() -> bool:
        return False

    @staticmethod
    def enable() -> None:
        """Do nothing."""

    disable = enable


@contextlib.contextmanager
def frozen_rng_state() -> Iterator[None]:
    """Restore the state of the default generator afterwards, as the harness does around modes."""
    import torch

    state = torch.get_rng_state()
    try:
        yield
    finally:
        torch.set_rng_state(state)


def run_plainly() -> None:
    """Leave out of the harness what prepares tests for TorchDynamo and sparse tensors, and what
    reports on them."""
    import torch.testing._utils
    from torch.testing._internal import common_utils

    torch.testing._utils.freeze_rng_state = frozen_rng_state
    common_utils.TestCase.run = unittest.TestCase.run
    common_utils.open_source_signpost = lambda **named: None
    common_utils.freeze_rng_state = frozen_rng_state
    torch = common_utils.torch
    if not hasattr(torch, "sparse"):
        torch.sparse = types.SimpleNamespace(check_sparse_tensor_invariants=SparseChecks)


def main() -> None:
    """Run the tests that the command line names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--harness", type=Path, required=True, help="folder of the wheel's files")
    parser.add_argument("--only", type=Path, help="file of the tests' names")
    parser.add_argument("--done", type=Path, help="file of the names of tests to leave out")
    parser.add_argument("--written", type=Path, required=True)
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--limit", type=float, default=60)
    options = parser.parse_args()
    for place in ("file", "harness", "only", "done", "written"):
        if getattr(options, place):
            setattr(options, place, getattr(options, place).resolve())
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.meta_path.insert(0, lenient.HarnessFinder(options.harness, options.file.parent))
    sys.path.insert(1, str(options.file.parent))
    warnings.simplefilter("ignore")
    os.chdir(tempfile.mkdtemp())
    # Tests read the program's arguments and its file.
    sys.argv = [str(options.file)]
    with options.written.open("a") as written:
        if "candelabra" in sys.modules:
            run_plainly()
        module = lenient.load(options.file.stem, options.file)
        if "candelabra" in sys.modules and options.file.stem == "test_overrides":
            for name, test in aliases(module):
                written.write(json.dumps({"name": name, "of": test}) + "\n")
        signal.signal(signal.SIGALRM, stop)
        tests = sorted(cases(unittest.defaultTestLoader.loadTestsFromModule(module)), key=name_of)
        only = set(options.only.read_text().split()) if options.only else None
        done = set(options.done.read_text().split()) if options.done else set()
        mine, parts = (int(value) for value in options.part.split("/"))
        result = Result(written, options.limit)
        for number, test in enumerate(tests):
            if number % parts != mine or name_of(test) in done or (only is not None and name_of(test) not in only):
                continue
            try:
                test.run(result)
            except Slow:
                result.status, result.said = "failed", "time limit"
                result.stopTest(test)
        written.write(json.dumps({"end": True}) + "\n")


if __name__ == "__main__":
    main()
