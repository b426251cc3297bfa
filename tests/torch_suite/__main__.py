"""Run PyTorch's own tests on Candelabra, and compare with what passes on PyTorch 2.13.

``python tests/torch_suite`` runs all files in this environment, which has no PyTorch. ``--write
PAGE`` writes the page. ``--record`` runs on PyTorch instead, and writes the names that pass into
``recorded/``. The tests are those of Debian's source package; nothing of them is in the repository.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import fetch
import reasons
import recorded

HERE = Path(__file__).parent
#: The files of PyTorch's folder of tests, without `test_`; in parts, that many.
FILES = {
    "autograd": 1, "complex": 1, "comparison_utils": 1, "dataloader": 1, "dlpack": 1, "foreach": 1, "indexing": 1, "modules": 4, "nn": 2,
    "numpy_interop": 1, "optim": 1, "overrides": 1, "python_dispatch": 1, "pytree": 1, "reductions": 2, "scatter_gather_ops": 1,
    "segment_reductions": 1, "serialization": 1, "shape_ops": 1, "sort_and_select": 1, "spectral_ops": 1, "stateless": 1, "subclass": 1,
    "tensor_creation_ops": 1, "torch": 1, "type_info": 1, "type_promotion": 1, "utils": 1, "view_ops": 1,
}  # fmt: skip
#: Seconds for one test, and for a process to say nothing before it is ended.
TEST_LIMIT, SILENCE = 60, 180


class Outcome(NamedTuple):
    """What became of a test."""

    status: str
    said: str


def read(path: Path) -> tuple[dict[str, Outcome], str | None, bool]:
    """Return what a process has written: outcomes, the test that it was at, whether it ended."""
    outcomes: dict[str, Outcome] = {}
    others: list[tuple[str, str]] = []
    at, ended = None, False
    for line in path.read_text().splitlines() if path.exists() else ():
        entry = json.loads(line)
        if "start" in entry:
            at = entry["start"]
        elif "test" in entry:
            outcomes[entry["test"]] = Outcome(entry["status"], entry["said"])
            at = None
        elif "name" in entry:
            others.append((entry["name"], entry["of"]))
        else:
            ended = True
    for name, test in others:
        if test in outcomes and (name not in outcomes or outcomes[test].status == "failed"):
            outcomes[name] = outcomes[test]
    return outcomes, at, ended


def waited(process: subprocess.Popen[bytes], written: Path) -> None:
    """Wait until a process ends; end it where it has written nothing for long."""
    size, since = -1, time.monotonic()
    while process.poll() is None:
        time.sleep(0.2)
        now = written.stat().st_size if written.exists() else 0
        if now != size:
            size, since = now, time.monotonic()
        elif time.monotonic() - since > SILENCE:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run(file: str, part: int, on_pytorch: bool) -> dict[str, Outcome]:
    """Run a part of a file. A test at which the process crashes or hangs is left out and the rest
    run in another process.
    """
    runner = [] if on_pytorch else ["-m", "candelabra.torch"]
    settings = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    with tempfile.TemporaryDirectory() as name:
        written, done = Path(name) / "written", Path(name) / "done"
        written.touch()
        log = Path(name) / "log"
        while True:
            outcomes, _, _ = read(written)
            done.write_text("\n".join(outcomes))
            with log.open("wb") as errors:
                process = subprocess.Popen(
                    [
                        sys.executable, *runner, str(HERE / "run_file.py"), str(fetch.tests() / f"test_{file}.py"),
                        "--harness", str(fetch.harness()), "--written", str(written), "--done", str(done),
                        "--part", f"{part}/{FILES.get(file, 1)}", "--limit", str(TEST_LIMIT),
                    ],
                    env=settings, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, start_new_session=True,
                )  # fmt: skip
                waited(process, written)
            outcomes, at, ended = read(written)
            if ended:
                return outcomes
            if at is None:
                print(f"{file}: not imported\n{log.read_text(errors='replace')[-3000:]}", flush=True)
                return outcomes
            said = "time limit" if process.returncode == -signal.SIGKILL else f"crash: exit status {process.returncode}"
            with written.open("a") as opened:
                opened.write(json.dumps({"test": at, "status": "failed", "said": said}) + "\n")


#: Where PyTorch has an object: the beginning of the names of tests that are made for each object.
OWNER = re.compile(
    r"\.test_(?:torch|candelabra|Tensor|TensorBase)_(?:_C__[a-z]+_|_functional_|_lobpcg_|_lowrank_)?"
    r"(?:nn_functional_|nn_init_|functional_|fft_|linalg_|special_)*"
)


def common(file: str, name: str) -> str:
    """Return a test's name in the form that both share. Here a function, the method of its name and
    that of PyTorch's compiled modules are one object, for which one test is made.
    """
    return OWNER.sub(".test_object_", name) if file == "overrides" else name


class Row(NamedTuple):
    """The counts of a file."""

    file: str
    passed: int
    wanted: int
    aside: Counter[str]
    causes: Counter[str]
    #: How many of those that pass are of `torch._refs`.
    references: int


def judged(file: str, outcomes: dict[str, Outcome]) -> Row:
    """Compare with what passes on PyTorch."""
    aside: Counter[str] = Counter()
    causes: Counter[str] = Counter()
    passed = wanted = references = 0
    failed_last = sorted(outcomes.items(), key=lambda entry: entry[1].status == "failed")
    outcomes = {common(file, name): outcome for name, outcome in failed_last}
    for name in recorded.load(file):
        status, said = outcomes.get(common(file, name), Outcome("absent", "absent: the test is not made here"))
        if status == "passed":
            passed, wanted = passed + 1, wanted + 1
            references += "__refs_" in name
        elif kind := reasons.kind_aside(name, said):
            aside[kind] += 1
        else:
            wanted += 1
            causes["skipped here" if status == "skipped" else reasons.cause(name, said)] += 1
    return Row(file, passed, wanted, aside, causes, references)


def page(rows: list[Row]) -> str:
    """Return the page in Markdown."""
    passed, wanted = sum(row.passed for row in rows), sum(row.wanted for row in rows)
    aside: Counter[str] = sum((row.aside for row in rows), Counter())
    causes: Counter[str] = sum((row.causes for row in rows), Counter())
    lines = [
        "# PyTorch's own tests",
        "",
        f"{passed} of {wanted} tests of PyTorch 2.6 that pass on PyTorch 2.13 pass here ({100 * passed / max(wanted, 1):.1f} %), run",
        "unmodified through `python -m candelabra.torch` in an environment without PyTorch. The tests come from Debian's source",
        "package `pytorch`, the harness `torch.testing._internal` from PyTorch's wheel. `nox -s torch-suite` runs them and writes this",
        "page. What passes on PyTorch 2.13 is recorded in `tests/torch_suite/recorded`. Of those that pass,",
        f"{sum(row.references for row in rows)} are tests of `torch._refs`, whose functions are here the operators themselves.",
        "",
        f"Left aside, besides: {sum(aside.values())} tests that fail here for lack of "
        + ", ".join(f"{kind} ({count})" for kind, count in aside.most_common())
        + ".",
        "",
        "## By file",
        "",
        "| file | passed here | passed on PyTorch 2.13 | left aside |",
        "| -- | --: | --: | --: |",
        *(
            f"| test_{row.file} | {row.passed} | {row.wanted + row.aside.total()} | {row.aside.total() or ''} |"
            for row in rows
        ),
        "",
        "## By cause",
        "",
        "| cause | tests | files |",
        "| -- | --: | -- |",
    ]
    for cause, count in causes.most_common():
        files = Counter({row.file: row.causes[cause] for row in rows if row.causes[cause]})
        named = ", ".join(f"{file} {number}" for file, number in files.most_common())
        lines.append(f"| {cause} | {count} | {named} |")
    return "\n".join(lines) + "\n"


def kept(folder: Path | None, file: str) -> dict[str, Outcome] | None:
    """Return the outcomes of a file that an earlier run has kept, or None."""
    if folder is None or not (folder / f"{file}.json").exists():
        return None
    return {name: Outcome(*entry) for name, entry in json.loads((folder / f"{file}.json").read_text()).items()}


def keep(folder: Path | None, file: str, outcomes: dict[str, Outcome]) -> None:
    """Write the outcomes of a file."""
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{file}.json").write_text(json.dumps(outcomes, indent=0, sort_keys=True))


def main() -> int:
    """Run the files that are named, or all."""
    parser = argparse.ArgumentParser(prog="tests/torch_suite")
    parser.add_argument("files", nargs="*", help="files without test_; all by default")
    parser.add_argument("--record", action="store_true", help="run on PyTorch, and write recorded/")
    parser.add_argument("--write", type=Path, help="write the page")
    parser.add_argument("--keep", type=Path, help="a folder of outcomes: files that it has are not run again")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--require", type=float, default=0, help="the percentage that has to pass")
    options = parser.parse_args()
    chosen = options.files or list(FILES)
    fetch.tests(), fetch.harness()
    rows = []
    with ThreadPoolExecutor(options.jobs) as pool:
        running = {
            file: [pool.submit(run, file, part, options.record) for part in range(FILES.get(file, 1))]
            for file in chosen
            if kept(options.keep, file) is None
        }
        for file in chosen:
            outcomes = kept(options.keep, file)
            if outcomes is None:
                outcomes = {name: entry for part in running[file] for name, entry in part.result().items()}
                keep(options.keep, file, outcomes)
            if options.record:
                recorded.store(file, (name for name, outcome in outcomes.items() if outcome.status == "passed"))
                print(f"{file}: {sum(outcome.status == 'passed' for outcome in outcomes.values())} pass", flush=True)
                continue
            rows.append(judged(file, outcomes))
            print(f"{file}: {rows[-1].passed} of {rows[-1].wanted}", flush=True)
    if options.write and rows:
        options.write.write_text(page(rows))
    passed, wanted = sum(row.passed for row in rows), sum(row.wanted for row in rows)
    print(f"{passed} of {wanted} tests")
    return 0 if 100 * passed >= options.require * wanted else 1


if __name__ == "__main__":
    sys.exit(main())
