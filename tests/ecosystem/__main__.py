"""Run programs of the PyTorch ecosystem on Candelabra, and compare with PyTorch.

``python tests/ecosystem`` runs them in this environment, which has no PyTorch, and compares with
``recorded.json``. ``--record`` runs them on PyTorch instead, and writes that file. ``--write PAGE``
writes the page. ``--keep FILE`` stores each outcome as it comes, and does not run a program again
whose outcome is in the file: a run may be done in parts.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
RECORDED = HERE / "recorded.json"
MARK = "ecosystem-result:"
#: Modules beside the programs that are none.
HELPERS = {"harness", "known_numbers"}
#: A program's limit in seconds.
LIMIT = 600
#: Numbers may differ by this part of themselves, or by this much.
RELATIVE, ABSOLUTE = 2e-3, 2e-5


def names() -> list[str]:
    """Return the names of the programs."""
    return sorted(path.stem for path in PROGRAMS.glob("*.py") if path.stem not in HELPERS)


def described(name: str) -> tuple[str, str]:
    """Return what the first line of a program's docstring says: its libraries, and what it does."""
    line = (PROGRAMS / f"{name}.py").read_text().split('"""')[1]
    libraries, _, what = " ".join(line.split()).partition(": ")
    return libraries, what.rstrip(".")


def run(name: str, on_pytorch: bool) -> dict[str, Any]:
    """Run a program in a process of its own; return its result, or its error."""
    settings = {
        "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONWARNINGS": "ignore", "MPLBACKEND": "agg", "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "2"),
    }  # fmt: skip
    runner = [] if on_pytorch else ["-m", "candelabra.torch"]
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [sys.executable, *runner, str(PROGRAMS / f"{name}.py")], cwd=folder, env=os.environ | settings, timeout=LIMIT,
                capture_output=True, text=True, errors="replace",
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"error": f"not done after {LIMIT} s"}
    found = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if found:
        return json.loads(found[-1][len(MARK) :])
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return {"error": lines[-1] if lines else f"exit status {done.returncode}", "trace": done.stderr[-4000:]}


def difference(found: Any, expected: Any, place: str = "") -> str | None:
    """Return where a result differs from the recorded one, or None."""
    if isinstance(expected, dict) and isinstance(found, dict):
        if found.keys() != expected.keys():
            return f"{place or 'the result'} has other names: {sorted(found.keys() ^ expected.keys())}"
        pairs = [(f"{place}.{key}".lstrip("."), found[key], expected[key]) for key in expected]
    elif isinstance(expected, list) and isinstance(found, list):
        if len(found) != len(expected):
            return f"{place} has {len(found)} entries for {len(expected)}"
        pairs = [(f"{place}[{i}]", a, b) for i, (a, b) in enumerate(zip(found, expected, strict=True))]
    elif isinstance(expected, float) and isinstance(found, int | float):
        same = found == expected or abs(found - expected) <= ABSOLUTE + RELATIVE * abs(expected)
        return None if same or (found != found and expected != expected) else f"{place}: {found:.6g} for {expected:.6g}"
    else:
        return None if found == expected else f"{place}: {found!r} for {expected!r}"
    return next((text for text in (difference(*rest, where) for where, *rest in pairs) if text), None)


def version(library: str) -> str:
    """Return a library's version."""
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return ""


def judged(name: str, result: dict[str, Any], recorded: dict[str, Any]) -> tuple[str, str]:
    """Return a program's status and what is to be said of it."""
    if "error" in result:
        return "fails", result["error"]
    if name not in recorded:
        return "not recorded", ""
    other = difference(result["numbers"], recorded[name]["numbers"])
    return ("differs", other) if other else ("passes", "")


def page(rows: list[tuple[str, str, str, float | None, float | None]]) -> str:
    """Return the page in Markdown."""
    passed = sum(status == "passes" for _, status, *_ in rows)
    ratios = sorted(ours / theirs for *_, ours, theirs in rows if ours and theirs)
    lines = [
        "# Libraries of the PyTorch ecosystem",
        "",
        f"{passed} of {len(rows)} programs on real libraries run unmodified through `python -m candelabra.torch`, in an",
        "environment without PyTorch, with PyTorch's numbers. Each trains, saves, loads or generates something small, as in",
        "`tests/ecosystem/programs`. The time is that of the fastest run on two threads, beside PyTorch's 2.13 on the same kind",
        "of machine. `nox -s ecosystem` writes this page.",
        "",
        *([f"Median of the times beside PyTorch's: {ratios[len(ratios) // 2]:.2f}.", ""] if ratios else []),
        "| libraries | program | status | time | PyTorch |",
        "| -- | -- | -- | --: | --: |",
    ]
    for name, status, said, ours, theirs in rows:
        libraries, what = described(name)
        shown = ", ".join(
            f"{library} {version(library)}".strip() for library in libraries.replace(" and ", ", ").split(", ")
        )
        told = status if not said else f"{status}: {said}"
        told = " ".join(told.split()).replace("|", "\\|")[:160]
        times = [f"{1e3 * seconds:.0f} ms" if seconds else "" for seconds in (ours, theirs)]
        lines.append(f"| {shown} | {what} | {told} | {times[0]} | {times[1]} |")
    return "\n".join(lines) + "\n"


def read(path: Path | None) -> dict[str, Any]:
    """Return the outcomes that a file has, by program; none without the file."""
    return json.loads(path.read_text()) if path and path.exists() else {}


def store(outcomes: dict[str, Any], path: Path) -> None:
    """Write outcomes, a program a line."""
    lines = [f"{json.dumps(name)}:{json.dumps(outcomes[name], separators=(',', ':'))}" for name in sorted(outcomes)]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main() -> int:
    """Run the programs that are named, or all."""
    parser = argparse.ArgumentParser(prog="tests/ecosystem")
    parser.add_argument("names", nargs="*", help="programs; all by default")
    parser.add_argument("--record", action="store_true", help="run on PyTorch, and write recorded.json")
    parser.add_argument("--write", type=Path, help="write the page")
    parser.add_argument("--keep", type=Path, help="reuse the outcomes in this file, and add those of this run")
    parser.add_argument("--require", type=int, default=0, help="the number of programs that have to pass")
    parser.add_argument("--jobs", type=int, default=1, help="programs at a time; times are those of one")
    options = parser.parse_args()
    chosen = options.names or names()
    recorded, kept = read(RECORDED), read(options.keep)
    rows = []

    def outcome(name: str) -> dict[str, Any]:
        return kept[name] if name in kept else run(name, options.record)

    with ThreadPoolExecutor(options.jobs) as pool:
        for name, result in zip(chosen, pool.map(outcome, chosen), strict=True):
            if options.keep and "error" not in result:
                kept[name] = result
                store(kept, options.keep)
            if options.record:
                status, said = ("fails", result["error"]) if "error" in result else ("recorded", "")
                if "error" not in result:
                    recorded[name] = result
                    store(recorded, RECORDED)
            else:
                status, said = judged(name, result, recorded)
            rows.append((name, status, said, result.get("seconds"), recorded.get(name, {}).get("seconds")))
            print(f"{name}: {status} {said}", flush=True)
            if "trace" in result:
                print(result["trace"], flush=True)
    if options.write:
        options.write.write_text(page(rows))
    passed = sum(status in ("passes", "recorded") for _, status, *_ in rows)
    print(f"{passed} of {len(rows)} programs")
    return 0 if passed >= (options.require or len(rows)) else 1


if __name__ == "__main__":
    sys.exit(main())
