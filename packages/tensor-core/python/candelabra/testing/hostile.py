"""Calls with hostile arguments: every function of a namespace, with sizes of 2**62, indices out of
range, NaN, wrong types, and ``out=`` of another shape or overlapping an input.

``python -m candelabra.testing.hostile NAMESPACE... [--calls N] [--seed N] [--device D]`` makes the
calls in subprocesses and lists the failures. The calls depend only on the seed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import os
import random
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
from candelabra.catalogue.schemas import parse

#: Exceptions that a rejected call may raise. The last one says which distribution is missing.
REFUSALS = (
    TypeError, ValueError, RuntimeError, IndexError, OverflowError, MemoryError, BufferError, ModuleNotFoundError,
)  # fmt: skip
#: Arguments have fewer elements; the values of more would take the memory of the process.
MOST_ELEMENTS = 4096
#: How much memory the calls may take, in bytes.
MEMORY = 2**31
#: Functions that raise other exceptions, as PyTorch's do.
KNOWN: dict[str, type[Exception]] = {
    "candelabra.nn.functional.embedding": AssertionError,
    "candelabra.nn.functional.embedding_bag": AssertionError,
}
KNOWN |= {f"candelabra.nn.functional.lp_pool{d}d": ZeroDivisionError for d in (1, 2, 3)}
DTYPES = (
    "float32", "float32", "float64", "int64", "int64", "bool", "uint8", "int32", "int8", "float16", "bfloat16", "complex64", "complex128",
)  # fmt: skip
SHAPES: tuple[tuple[int, ...], ...] = (
    (), (0,), (1,), (3,), (3, 3), (3, 3), (2, 3), (3, 2), (0, 3), (3, 0), (0, 0), (2, 3, 3), (2, 0, 3), (2, 3, 4), (1, 2, 5, 5), (1, 2, 3, 4, 5),
)  # fmt: skip
INTEGERS = (
    0,
    0,
    1,
    1,
    2,
    3,
    4,
    -1,
    -1,
    -2,
    -5,
    7,
    100,
    2**31 - 1,
    2**31,
    2**32 + 1,
    2**40,
    2**62,
    2**63 - 1,
    -(2**63),
    2**63,
    -(2**70),
)
REALS = (0.0, 1.0, 0.5, -1.0, 2.0, -0.5, 1e-30, 1e300, -1e300, float("inf"), -float("inf"), float("nan"))
STRINGS = (
    "", "mean", "sum", "none", "amax", "prod", "reduced", "complete", "r", "L", "U", "fro", "nuc", "ortho", "forward", "backward", "linear", "nearest",
    "bilinear", "bicubic", "area", "constant", "reflect", "replicate", "circular", "zeros", "border", "same", "valid", "left", "right", "gelsd", "ij", "xy",
    "trunc", "floor", "tanh", "ij,jk->ik", "...i->i", "i,i", "\0", "é" * 40, "float32",
)  # fmt: skip
#: Functions that are not called: they change the process, read files, wait, or print.
SKIPPED = re.compile(
    r"^(_|set_|save|load|manual_seed|seed|initial_seed|get_rng_state|from_file|compile|fork|wait|enable_|use_|export|backends|testing|"
    r"multi_head_attention_forward|from_dlpack|from_numpy|frombuffer|install|sym_)"
)


def tensor(random_: random.Random, small: bool = False) -> candelabra.Tensor:
    """Return a small tensor of any dtype, in any layout, with extreme values."""
    dtype = getattr(candelabra, random_.choice(DTYPES))
    shape = random_.choice(SHAPES[:7] if small else SHAPES)
    count = 1
    for size in shape:
        count *= size
    kind = random_.random()
    if dtype.is_floating_point or dtype.is_complex:
        choices: Sequence[Any] = REALS if kind < 0.3 else (0.5, 1.5, -0.25, 2.0, 0.0)
    elif dtype is candelabra.bool:
        choices = (True, False)
    else:
        limits = candelabra.iinfo(dtype)
        choices = (limits.min, limits.max, 0, 1, 100) if kind < 0.3 else (0, 1, 2)
    made = candelabra.tensor([random_.choice(choices) for _ in range(count)], dtype=dtype).reshape(shape)
    layout = random_.random()
    if layout < 0.1 and made.ndim >= 2:
        return made.transpose(0, -1)
    if layout < 0.2 and made.ndim and made.shape[0] == 1:
        return made.expand(random_.choice((0, 2, 5)), *made.shape[1:])
    if layout < 0.25 and made.numel() >= 3:
        return made.reshape(-1).as_strided((2, 2), (1, 1))
    if layout < 0.3 and dtype.is_complex:
        return made.conj()
    if layout < 0.32 and count:
        return made.reshape(-1)[:1].expand(2**40)[:0]
    return made


def integers(random_: random.Random) -> Any:
    """Return a list of dimensions or sizes, or one integer."""
    if random_.random() < 0.3:
        return random_.choice(INTEGERS)
    hurt = random_.random() < 0.3
    return [
        random_.choice(INTEGERS if hurt else (0, 1, 2, 3, -1)) for _ in range(random_.choice((0, 1, 1, 2, 2, 3, 4, 6)))
    ]


def anything(random_: random.Random) -> Any:
    """Return an argument of any type."""
    return random_.choice(
        (
            lambda: tensor(random_), lambda: random_.choice(INTEGERS), lambda: random_.choice(REALS), lambda: random_.choice(STRINGS), lambda: None,
            lambda: integers(random_), lambda: True, lambda: 1j, lambda: [tensor(random_), tensor(random_)], lambda: candelabra.float32, object, dict,
            lambda: [None, "a"], lambda: b"ab",
        )
    )()  # fmt: skip


def of_kind(random_: random.Random, kind: str, name: str) -> Any:
    """Return an argument of the type that an annotation or a schema names."""
    if "Tensor" in kind and re.search(r"\[\]|list|Sequence|tuple|\[Tensor", kind):
        return [tensor(random_) for _ in range(random_.choice((0, 1, 2, 2, 3)))]
    if "Tensor" in kind or (kind == "" and name in ("input", "self", "other", "x", "A", "B", "x1", "x2")):
        return tensor(random_)
    if re.search(r"int\[\]|int\[1\]|[Ss]equence\[int|tuple\[int|list\[int|Size", kind):
        return integers(random_)
    if "dtype" in kind:
        return getattr(candelabra, random_.choice(DTYPES))
    if "bool" in kind:
        return random_.random() < 0.5
    if "str" in kind:
        return random_.choice(STRINGS)
    if "float" in kind or "Scalar" in kind or "Number" in kind:
        return random_.choice(REALS if random_.random() < 0.4 else (0.5, 1.0, 2, 1))
    if name == "niter":  # as in PyTorch, 2**62 iterations are computed
        return random_.choice((0, 1, 2, -1))
    if "int" in kind or name in (
        "dim",
        "n",
        "k",
        "size",
        "kernel_size",
        "stride",
        "padding",
        "dilation",
        "output_size",
        "norm",
    ):
        return random_.choice(INTEGERS if random_.random() < 0.4 else (0, 1, 2, -1))
    if "device" in kind:
        return candelabra.get_default_device()
    return anything(random_)


def parameters(function: Callable[..., Any]) -> list[tuple[str, str, bool, bool]]:
    """Return name, type, and whether required and keyword-only, of each parameter of a function or
    operator.
    """
    schema = getattr(function, "schema", None)
    if isinstance(schema, str):
        return [(one.name, one.type, one.default is None, one.keyword_only) for one in parse(schema).parameters]
    found = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_KEYWORD,):
            continue
        kind = "" if parameter.annotation is parameter.empty else str(parameter.annotation)
        required = parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL
        found.append((parameter.name, kind, required, parameter.kind is parameter.KEYWORD_ONLY))
    return found


def arguments(function: Callable[..., Any], random_: random.Random) -> tuple[list[Any], dict[str, Any]]:
    """Return random arguments, mostly of the expected types, so that calls pass the first
    checks.
    """
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    gap = False
    for name, kind, required, keyword in parameters(function):
        if name == "generator" or (not required and random_.random() < 0.5):
            gap = True
            continue
        if name == "out":
            tensors = [value for value in positional if isinstance(value, candelabra.Tensor)]
            value = random_.choice(tensors) if tensors and random_.random() < 0.4 else tensor(random_)
            keywords["out"] = value if random_.random() < 0.9 else anything(random_)
            continue
        value = anything(random_) if random_.random() < 0.06 else of_kind(random_, kind, name)
        if keyword or gap:
            keywords[name] = value
        else:
            positional.append(value)
    if "out" not in keywords and getattr(function, "schema", "").endswith("-> Tensor") and random_.random() < 0.1:
        keywords["out"] = tensor(random_)
    return positional, keywords


def shown(value: Any) -> str:
    """Return the source text of an argument."""
    if isinstance(value, candelabra.Tensor):
        strides = "" if value.is_contiguous() else f" strides {list(value.stride())}"
        values = value.tolist() if 0 < value.numel() <= 9 else ""
        return f"<{str(value.dtype)[11:]}{list(value.shape)}{strides} {values}>"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(shown, value)) + "]"
    return repr(value)


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
    for name in getattr(owner, "__all__", None) or sorted(
        vars(owner)
    ):  # skip modules that are imported on attribute access
        function = getattr(owner, name, None)
        if SKIPPED.match(name) or not callable(function) or inspect.isclass(function) or inspect.ismodule(function):
            continue
        with contextlib.suppress(TypeError, ValueError):
            parameters(function)
            found[name] = function
    return found


def _tensors(values: Any) -> Iterator[candelabra.Tensor]:
    for value in values:
        if isinstance(value, candelabra.Tensor):
            yield value
        elif isinstance(value, list):
            yield from _tensors(value)


def _contents(tensors: list[candelabra.Tensor]) -> list[Any]:
    return [repr(tensor_.tolist()) if tensor_.numel() <= MOST_ELEMENTS else tuple(tensor_.shape) for tensor_ in tensors]


def attack(name: str, function: Callable[..., Any], seed: int, log: Callable[[str], None]) -> str | None:
    """Make one call. Return its fault: an unexpected exception, or a changed argument of a call
    that raised.
    """
    positional, keywords = arguments(function, random.Random(f"{name} {seed}"))
    description = ", ".join(
        [shown(value) for value in positional] + [f"{key}={shown(value)}" for key, value in keywords.items()]
    )
    log(f"{seed} {name}({description})")
    given = list(_tensors([*positional, *keywords.values()]))
    before = _contents(given)
    try:
        signal.alarm(60)
        function(*positional, **keywords)
    except REFUSALS as error:
        if type(error) is RuntimeError and "internal" in str(error).lower():
            return f"{name}({description}): {error}"
        if _contents(given) != before:
            return f"{name}({description}): an argument was changed, though it raised {type(error).__name__}: {error}"
    except Exception as error:
        # Python's own exception for an object that is not a tensor
        plain = isinstance(error, AttributeError) and not isinstance(error.obj, candelabra.Tensor)
        if not plain and not isinstance(error, KNOWN.get(name, ())):
            return f"{name}({description}): {type(error).__name__}: {error}"
    finally:
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
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
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

    crashes: list[str]  #: calls that ended the process, or took a minute
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
