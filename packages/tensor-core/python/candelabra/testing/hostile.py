"""Calls with hostile arguments: every function and class of a namespace, with sizes of 2**62,
indices out of range, NaN, 64 dimensions, wrong types, views that overlap, ``out=`` of another
shape, and objects that lie or change other arguments while they are parsed (`hostile_values`).

``python -m candelabra.testing.hostile NAMESPACE... [--calls N] [--seed N] [--device D]`` makes the
calls in subprocesses and lists the failures. The calls depend only on the seed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import candelabra
from candelabra.testing.hostile_values import Draw, arguments, parameters, shown, tensor

#: Exceptions that a rejected call may raise. The last one says which distribution is missing.
REFUSALS = (
    TypeError, ValueError, RuntimeError, IndexError, OverflowError, MemoryError, BufferError, ModuleNotFoundError,
)  # fmt: skip
#: Arguments have fewer elements; the values of more would take the memory of the process.
MOST_ELEMENTS = 4096
#: How much memory the calls may take, in bytes.
MEMORY = 2**31
#: Seconds of the processor that one call may take.
SECONDS = 60 if "CANDELABRA_SANITIZED" in os.environ else 10
#: Seconds that one call may take in all: more is a deadlock.
PATIENCE = 300
#: Methods of tensors with special names that are called.
SPECIAL_METHODS = (
    "__getitem__", "__setitem__", "__add__", "__sub__", "__mul__", "__truediv__", "__floordiv__", "__mod__", "__pow__",
    "__matmul__", "__and__", "__or__", "__xor__", "__lshift__", "__rshift__", "__iadd__", "__imul__", "__ipow__",
    "__radd__", "__rsub__", "__rpow__", "__eq__", "__lt__", "__contains__", "__array__", "__dlpack__", "__format__",
    "__index__", "__float__", "__complex__", "__bool__", "__len__", "__iter__", "__setstate__", "__torch_function__",
)  # fmt: skip
#: Functions that raise other exceptions, as PyTorch's do, by the beginning of their names.
KNOWN: dict[str, type[Exception]] = {
    "candelabra.nn.functional.embedding": AssertionError,
    "candelabra.nn.functional.lp_pool": ZeroDivisionError,
    "candelabra.nn.init.": ZeroDivisionError,
    "candelabra.nn.init.kaiming_": AttributeError,
    "candelabra.nn.factory_kwargs": AttributeError,
    "candelabra.optim.": KeyError,
    "candelabra.autograd.gradcheck": AssertionError,
    "candelabra.autograd.gradgradcheck": AssertionError,
    # These take modules and packed sequences by what they have.
    "candelabra.nn.utils.": AttributeError,
    # Tables of Lua's are dicts.
    "candelabra.legacy.nn.": KeyError,
}
#: Functions that are not called: they change the process, read files, wait, or print.
SKIPPED = re.compile(
    r"^(_|set_|save|load|manual_seed|seed|initial_seed|get_rng_state|from_file|compile|fork|wait|enable_|use_|export|backends|testing|"
    r"multi_head_attention_forward|from_dlpack|from_numpy|frombuffer|install|sym_)"
)


def functions(namespace: str) -> dict[str, Callable[..., Any]]:
    """Return the public functions of a module by name; for ``candelabra.ops``, all operators."""
    if namespace == "candelabra.ops":
        from candelabra.catalogue import OPERATORS

        return {name: operator for name, operator in OPERATORS.items() if not name.endswith("optimizer")}
    if namespace == "candelabra.Tensor":
        owner: Any = candelabra.Tensor
    else:
        owner = importlib.import_module(namespace)
    found = {}
    # Without __all__: not the modules that are imported on attribute access.
    names = [*(getattr(owner, "__all__", None) or sorted(vars(owner)))]
    if inspect.isclass(owner):
        names += SPECIAL_METHODS
    for name in names:
        function = getattr(owner, name, None)
        if name not in SPECIAL_METHODS and SKIPPED.match(name):
            continue
        if inspect.isclass(owner) and inspect.isdatadescriptor(function):
            found[f"{name}="] = _setter(name)
        if not callable(function) or inspect.ismodule(function) or _is_exception(function):
            continue
        with contextlib.suppress(TypeError, ValueError):
            parameters(function)
            found[name] = function
    return found


def _is_exception(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, BaseException)


def _setter(name: str) -> Callable[..., Any]:
    def assign(input: candelabra.Tensor, value: Any) -> None:
        setattr(input, name, value)

    return assign


def follow_up(made: Any, draw: Draw) -> None:
    """Use what a call returned: run a layer, draw from a distribution, take a step of an
    optimizer.
    """
    if inspect.ismethod(getattr(made, "forward", None)):
        positional, keywords = arguments(made.forward, draw)
        made(*positional, **keywords)
    elif callable(getattr(made, "log_prob", None)):
        made.sample(draw.choice(((), (2,), (0, 3))))
        made.log_prob(tensor(draw))
        made.entropy()
    elif hasattr(made, "param_groups") and callable(getattr(made, "step", None)):
        for group in made.param_groups:
            for parameter in group["params"]:
                parameter.grad = candelabra.ones_like(parameter)
        made.step()


def _tensors(values: Any, depth: int = 0) -> Iterator[candelabra.Tensor]:
    for value in values:
        if isinstance(value, candelabra.Tensor):
            yield value
        elif isinstance(value, list) and depth < 3:
            yield from _tensors(value, depth + 1)


def _contents(tensors: list[candelabra.Tensor]) -> list[Any]:
    return [repr(tensor_.tolist()) if tensor_.numel() <= MOST_ELEMENTS else tuple(tensor_.shape) for tensor_ in tensors]


def attack(name: str, function: Callable[..., Any], seed: int, log: Callable[[str], None]) -> str | None:
    """Make one call. Return its fault: an unexpected exception, or a changed argument of a call
    that raised.
    """
    return attack_with(name, function, Draw(f"{name} {seed}"), lambda line: log(f"{seed} {line}"))


def attack_with(name: str, function: Callable[..., Any], draw: Draw, log: Callable[[str], None]) -> str | None:
    """Make a call with the arguments that `draw` makes, and return its fault."""
    positional, keywords = arguments(function, draw)
    description = ", ".join(
        [shown(value) for value in positional] + [f"{key}={shown(value)}" for key, value in keywords.items()]
    )
    log(f"{name}({description})")
    given = list(_tensors([*positional, *keywords.values()]))
    before = _contents(given)
    try:
        signal.alarm(PATIENCE)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        made = function(*positional, **keywords)
        draw.acted = True  # a step that raises has changed what the steps before it have
        follow_up(made, draw)
    except REFUSALS as error:
        if type(error) is RuntimeError and "internal" in str(error).lower():
            return f"{name}({description}): {error}"
        if not draw.acted and _contents(given) != before:
            return f"{name}({description}): an argument was changed, though it raised {type(error).__name__}: {error}"
    except Exception as error:
        # Python's own exception for an object that is not a tensor
        plain = isinstance(error, AttributeError) and not isinstance(error.obj, candelabra.Tensor)
        # As PyTorch's, layers and distributions assert what they are made with.
        plain |= inspect.isclass(function) and isinstance(error, AssertionError | AttributeError | ZeroDivisionError)
        known = tuple(kind for beginning, kind in KNOWN.items() if name.startswith(beginning))
        if not plain and not isinstance(error, known):
            return f"{name}({description}): {type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
    return None


def _note(log: Any, number: int, line: str) -> None:
    log.write(f"{number} {line}\n".encode(errors="replace"))


def _bound_memory(device: str) -> None:
    """Make calls that ask for too much fail, instead of taking the machine's memory."""
    is_limited = True
    try:
        candelabra.backends.set_memory_limit(device, MEMORY)
    except NotImplementedError:
        is_limited = False
    # Sanitizers, and drivers of devices, reserve memory that they never use: there, only the limits
    # of the backends apply.
    is_host = bool(candelabra._C.backend_info(device)["capabilities"] & 1)
    if "CANDELABRA_SANITIZED" not in os.environ and (is_host or not is_limited):
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))


def _child(namespaces: list[str], calls: int, seed: int, device: str, start: int, log_path: str) -> None:
    """Make the calls from number `start` on. The log names the current call."""
    for number_of_signal in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number_of_signal, signal.SIG_DFL)
    # A fault that a kernel finds on a device must be raised by the call that caused it, not by one
    # that creates the next arguments.
    os.environ["CANDELABRA_LAUNCH_BLOCKING"] = "1"
    candelabra.backends.load(candelabra.device(device).type)
    _bound_memory(device)
    warnings.simplefilter("ignore")
    with contextlib.suppress(NotImplementedError):  # a CPU backend without a thread pool
        candelabra.set_num_threads(1)
    candelabra.set_default_device(device)
    number = 0
    with open(log_path, "ab", buffering=0) as log:
        for namespace in namespaces:
            for name, function in functions(namespace).items():
                for i in range(calls):
                    number += 1
                    if number <= start:
                        continue
                    wrong = attack(f"{namespace}.{name}", function, seed + i, partial(_note, log, number))
                    if wrong:
                        print(wrong.replace("\n", " "), flush=True)
        log.write(b"done\n")


@dataclass
class Report:
    """The results of the calls."""

    crashes: list[str]  #: calls that ended the process, or took longer than SECONDS of the processor
    wrong: list[str]  # calls that raised an unexpected exception, or raised after changing an argument
    calls: int


def run(namespaces: Sequence[str], calls: int = 20, seed: int = 0, device: str = "cpu") -> Report:
    """Make `calls` calls of every function of the namespaces, in a subprocess that is restarted
    after each crash.

    Parameters
    ----------
    namespaces
        Such as ``"candelabra.linalg"``; ``"candelabra.ops"`` for every operator.
    calls
        The number of calls of each function.
    seed
        The first seed; each call has the next one.
    device
        The device of the tensors.

    Returns
    -------
    Report
        The calls that ended the process, and those with other faults.
    """
    report = Report([], [], 0)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        start = 0
        while True:
            log.write_bytes(b"")
            command = [sys.executable, "-m", "candelabra.testing.hostile", "--child", *namespaces]
            command += [
                "--calls",
                str(calls),
                "--seed",
                str(seed),
                "--device",
                device,
                "--start",
                str(start),
                "--log",
                str(log),
            ]
            done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
            lines = log.read_text(errors="replace").splitlines()
            report.wrong += done.stdout.splitlines()
            if not lines or done.returncode > 0:
                raise RuntimeError(f"the calls could not be made: {done.stderr[-2000:]}")
            if lines[-1] == "done":
                report.calls = int(lines[-2].split()[0]) if len(lines) > 1 else start
                return report
            number, _, call = lines[-1].partition(" ")
            report.crashes.append(f"signal {-done.returncode}: {call}: {done.stderr[-300:].strip()}")
            start = int(number)


def main() -> int:
    """Make the calls of the command line, and list the faults."""
    parser = argparse.ArgumentParser(prog="python -m candelabra.testing.hostile", description=__doc__)
    parser.add_argument("namespaces", nargs="+")
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--start", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--log", help=argparse.SUPPRESS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        _child(options.namespaces, options.calls, options.seed, options.device, options.start, options.log)
        return 0
    report = run(options.namespaces, options.calls, options.seed, options.device)
    print(*report.wrong, *report.crashes, sep="\n")
    print(f"{report.calls} calls: {len(report.crashes)} ended the process, {len(report.wrong)} ended in an unclear way")
    return int(bool(report.crashes or report.wrong))


if __name__ == "__main__":
    sys.exit(main())
