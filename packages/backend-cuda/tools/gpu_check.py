"""Run all checks that need a machine with an NVIDIA GPU, without a network: ``python
packages/backend-cuda/tools/gpu_check.py``.

The script builds tensor-core and backend-cuda for that GPU into a folder of its own. It also builds
backend-cpu if MKL and oneDNN are installed; otherwise a backend of NumPy functions serves the CPU.
It checks that there is a GPU and that NVIDIA's libraries load. Then it runs the tests, the
conformance suite on ``cuda``, the suites of autograd, nn and optim with their tensors on ``cuda``,
a short training run of each example, compute-sanitizer's memcheck over the conformance suite, and
the benchmark (beside PyTorch on the same GPU if it is installed). Steps run in parallel, except for
the benchmark, which has the machine to itself and reserved time. At the end a table shows the
result of each step, or why it was skipped, and the failures. ``result.json`` in the folder has the
same, and describes the machine.

Needs Python 3.11 with pytest, NumPy, SciPy, hypothesis and pluggy, CMake, Ninja, g++ 12 and nvcc 13
with the headers of NVIDIA's libraries (a toolkit, or NVIDIA's PyPI packages: ``--nvcc``,
``--nvidia``). ``--ready FOLDER`` uses a folder with a built ``candelabra_backend_cuda``, such as
that of an emulated device (packages/backend-cuda/tests/emulation). ``--tiny`` shortens the steps
for such a device.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from gpu_machine import (
    architecture,
    describe_machine,
    find_header,
    find_nvcc,
    find_sanitizer,
    missing,
    needs,
    takes_one_process,
)

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ROOT / "packages"
#: Pure Python packages, by the folder of their sources.
PURE = {
    "autograd": "src", "nn": "src", "optim": "src", "multiprocessing": "src", "utils": "src", "distributions": "src", "torch-compat": "src",
    "array-api": "src",
}  # fmt: skip
ENTRIES = {"backend-cpu": "cpu = candelabra_backend_cpu", "backend-cuda": "cuda = candelabra_backend_cuda"}
#: Examples and their arguments, on a GPU and on an emulated one.
EXAMPLES = {
    "digits": ("--epochs", "2"),
    "train_digits_trainer": ("--epochs", "2"),
    "text_model": ("--steps", "20", "--batch", "8", "--width", "32", "--characters", "100000"),
    "generate_digits": ("--steps", "50", "--rounds", "20"),
    "cart_pole": ("--rounds", "4", "--moments", "50"),
    "expression_trees": ("--steps", "20"),
    "hogwild": ("--processes", "2", "--epochs", "2"),
}
TINY = {
    "digits": ("--epochs", "1"),
    "train_digits_trainer": ("--epochs", "1"),
    "text_model": ("--steps", "2", "--batch", "2", "--width", "16", "--context", "16", "--characters", "20000"),
    "generate_digits": ("--steps", "10", "--rounds", "5"),
    "cart_pole": ("--rounds", "2", "--moments", "10", "--carts", "8"),
    "expression_trees": ("--steps", "3", "--batch", "2"),
    "hogwild": ("--processes", "2", "--epochs", "1"),
}  # fmt: skip
WITH_OUTPUT = ("digits", "train_digits_trainer", "text_model", "generate_digits", "cart_pole")


#: Seconds reserved for the benchmark.
FOR_THE_BENCHMARK = 100.0
#: Failures in logs: of pytest, the conformance suite, compilers, CMake, compute-sanitizer, Python.
FAILURE = re.compile(
    r"^(FAILED |ERROR |.* MISSED$|.{44}FAILED |  \S+ +failed |      (?!and \d+ more)\S+\(|.*\berror: |CMake Error|ninja: |========= (?:Invalid|Program hit|Error|ERROR SUMMARY)|=========     at "
    r"|Fatal Python error|emulation: |(?:\w+: )?\w*(?:Error|Exception|Failure)\b)"
)
#: One operator per library, which loads it; then the list of loaded libraries.
LIBRARIES = """
import candelabra
from candelabra.backends.__main__ import describe
x = candelabra.rand(4, 4, device="cuda") + candelabra.eye(4, device="cuda")
image = candelabra.rand(1, 3, 8, 8, device="cuda")
calls = {
    "cuBLASLt": lambda: x @ x,
    "cuBLAS": lambda: candelabra.linalg.solve_triangular(x, x, upper=True),
    "cuSOLVER": lambda: candelabra.linalg.qr(x),
    "cuFFT": lambda: candelabra.fft.fft(x),
    "cuDNN": lambda: candelabra.ops.convolution(image, image[:, :, :3, :3], None, [1, 1], [0, 0], [1, 1], 1),
    "NCCL": lambda: candelabra.communication.unique_id("cuda"),
}
absent = []
for name, call in calls.items():
    try:
        call()
        candelabra.cuda.synchronize()
        print(name, "answers")
    except Exception as error:
        absent.append(name)
        print(f"{name}: {type(error).__name__}: {error}")
for line in describe("cuda", False):
    print(line)
print("not there: " + ", ".join(absent) if absent else "all libraries answer")
raise SystemExit(bool(absent))
"""
DEVICE = """
import candelabra
candelabra.cuda.init()
told = candelabra.cuda.get_device_properties()
print(f"{candelabra.cuda.device_count()} x {told.name}, capability {told.major}.{told.minor}, {told.total_memory / 2**30:.0f} GiB")
"""


@dataclass
class Step:
    """A step to run."""

    name: str
    command: list[str]
    timeout: float
    environment: dict[str, str] = field(default_factory=dict)


@dataclass
class Row:
    """A line of the table: the result of a step."""

    name: str
    result: str
    seconds: float
    text: str
    failures: list[str] = field(default_factory=list)
    log: str = ""


class Check:
    """The steps and their results."""

    def __init__(self, folder: Path, jobs: int, minutes: float, only: str, patience: float) -> None:
        self.folder = folder
        self.jobs = jobs
        self.only = only
        self.patience = patience
        self.start = time.monotonic()
        self.end = self.start + 60 * minutes
        self.rows: list[Row] = []
        self.machine: dict[str, str] = {}
        self.site = folder / "site"
        self.lock = threading.Lock()
        self.running: set[int] = set()
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(self.site),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "2",
        }
        # CMake and Ninja of this environment, which may not be activated.
        self.environment["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])

    def note(self, row: Row) -> None:
        """Add a line to the table, and print it."""
        with self.lock:
            self.rows.append(row)
            print(f"{row.name}: {row.result} in {row.seconds:.0f} s: {row.text[:150]}", flush=True)

    def leave_out(self, name: str, why: str) -> None:
        """Note a step that is skipped."""
        if self.only in name:
            self.note(Row(name, "left out", 0.0, why))

    def run(self, step: Step, kept_back: float = 0.0) -> bool:
        """Run a step. Its output goes to a file, and its last line to the table. `kept_back`
        seconds are reserved for others.
        """
        left = self.end - kept_back - time.monotonic()
        if left < 5:
            self.note(Row(step.name, "left out", 0.0, "no time was left"))
            return False
        start = time.monotonic()
        log = self.folder / f"{step.name.replace(' ', '_').replace('/', '_of_')}.log"
        status: int | str
        with log.open("w") as output:
            try:
                # In a process group of its own, so that its children end with it.
                process = subprocess.Popen(
                    step.command, stdout=output, stderr=subprocess.STDOUT, env={**self.environment, **step.environment},
                    cwd=self.folder, start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                output.write(str(error))
                status = "not started"
            else:
                self.running.add(process.pid)
                try:
                    status = process.wait(min(step.timeout * self.patience, left))
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    status = "time is up"
                finally:
                    self.running.discard(process.pid)
        lines = [line.rstrip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
        last = lines[-1].strip(" =")[:140] if lines else ""
        row = Row(step.name, "passed", time.monotonic() - start, last, log=log.name)
        if status != 0:
            died = isinstance(status, int) and status < 0
            row.result = f"FAILED ({signal.Signals(-status).name if isinstance(status, int) and died else status})"
            # If the step was killed, the table shows that instead of the last line.
            row.failures = (
                failures_in(lines) + ([lines[-1]] if lines and (died or status == "time is up") else []) or lines[-3:]
            )
        self.note(row)
        return status == 0

    def run_all(self, steps: list[Step], jobs: int, kept_back: float = 0.0) -> None:
        """Run steps in parallel."""
        chosen = [step for step in steps if self.only in step.name]
        with concurrent.futures.ThreadPoolExecutor(max(1, jobs)) as pool:
            try:
                for done in [pool.submit(self.run, step, kept_back) for step in chosen]:
                    done.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self.stop()
                raise

    def stop(self) -> None:
        """End the running steps."""
        for group in list(self.running):
            try:
                os.killpg(group, signal.SIGKILL)
            except ProcessLookupError:
                continue

    # ---- building

    def build(self, package: str, *definitions: str) -> bool:
        """Build a compiled package with CMake alone, and install it where the tests find it."""
        source, binary = PACKAGES / package, self.folder / f"build-{package}"
        headers = self.folder / "core_headers"
        writer = PACKAGES / "tensor-core" / "tools" / "make_headers.py"
        subprocess.run([sys.executable, str(writer), "--with-headers", str(headers)], check=True)
        configure = [
            "cmake", "-S", str(source), "-B", str(binary), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", f"-DPython_EXECUTABLE={sys.executable}",
            f"-DCANDELABRA_INCLUDE_DIR={headers}", *definitions,
        ]  # fmt: skip
        return (
            self.run(Step(f"configure {package}", configure, 120))
            and self.run(Step(f"build {package}", ["cmake", "--build", str(binary), "-j", str(self.jobs)], 3000))
            and self.run(
                Step(f"install {package}", ["cmake", "--install", str(binary), "--prefix", str(self.site)], 60)
            )
        )

    def count_warnings(self, package: str) -> None:
        """Note the compilers' warnings, which do not stop the other steps."""
        log = self.folder / f"build_{package}.log"
        found = [line for line in log.read_text(errors="replace").splitlines() if re.search(r"\bwarning\b", line)]
        text = f"{len(found)} by the compilers"
        self.note(Row("warnings", "FAILED" if found else "passed", 0.0, text, found, log.name))

    def information(self, name: str, entry: str) -> None:
        """Write the metadata that pip would, so that a plugin is found."""
        folder = self.site / f"{name.replace('-', '_')}-0.1.0.dist-info"
        folder.mkdir(exist_ok=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
        text = f"[candelabra.backends]\n{entry}\n"
        if entry.startswith("cuda"):
            text += "[candelabra.accelerators]\ncuda = candelabra.cuda.presence:device_count\n"
        (folder / "entry_points.txt").write_text(text)

    def lay_out(self, ready: Path | None) -> None:
        """Copy the Python sources, and what is already built."""
        shutil.rmtree(self.site, ignore_errors=True)
        if ready is not None:
            shutil.copytree(ready, self.site, symlinks=True)
        for package, folder in {"tensor-core": "python", "backend-cuda": "python", **PURE}.items():
            left_out = shutil.ignore_patterns("__pycache__", "*.so", "lib", "include")
            shutil.copytree(PACKAGES / package / folder, self.site, dirs_exist_ok=True, ignore=left_out)
        if ready is not None:
            for module in (PACKAGES / "tensor-core" / "python" / "candelabra").glob("_C*.so"):
                shutil.copy(module, self.site / "candelabra")
            writer = PACKAGES / "tensor-core" / "tools" / "make_headers.py"
            command = [sys.executable, str(writer), "--with-headers", str(self.site / "candelabra" / "include")]
            subprocess.run(command, check=True)
        self.information("candelabra-backend-cuda", ENTRIES["backend-cuda"])

    def host(self, ready: Path | None, plain: bool) -> None:
        """Provide a CPU backend: ours if it is built or can be, else examples/backends/numpy."""
        built = PACKAGES / "backend-cpu" / "python"
        source: Path | None = None
        if plain:
            pass
        elif ready is not None and (built / "candelabra_backend_cpu" / "lib").exists():
            source = built
        elif ready is None and all(find_header(name) for name in ("mkl.h", "dnnl.hpp")):
            self.lay_out_cpu(PACKAGES / "backend-cpu" / "python")
            if self.build("backend-cpu", "-DCANDELABRA_AVX512=OFF"):
                return
        else:
            self.leave_out("build backend-cpu", "MKL or oneDNN is not there: NumPy's functions stand in for the host")
        if source is not None:
            shutil.copytree(source, self.site, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
            self.information("candelabra-backend-cpu", ENTRIES["backend-cpu"])
            return
        shutil.rmtree(self.site / "candelabra_backend_cpu", ignore_errors=True)
        shutil.copytree(
            ROOT / "examples" / "backends" / "numpy" / "src" / "candelabra_numpy",
            self.site / "candelabra_numpy",
            dirs_exist_ok=True,
        )
        self.information("candelabra-backend-cpu", "cpu = candelabra_numpy")

    def lay_out_cpu(self, folder: Path) -> None:
        """Copy the Python sources of the CPU backend, with the metadata of an installation."""
        shutil.copytree(
            folder,
            self.site,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("__pycache__", "*.so", "lib", "include"),
        )
        self.information("candelabra-backend-cpu", ENTRIES["backend-cpu"])

    # ---- the end

    def print_table(self) -> int:
        """Print the table and the failures, and write both to ``result.json``; return the number of
        failed steps.
        """
        print("\n" + "\n".join(f"{name}: {value}" for name, value in self.machine.items()))
        print(f"\n{'step':<32}{'result':<22}{'seconds':>8}  last line")
        for row in self.rows:
            print(f"{row.name:<32}{row.result:<22}{row.seconds:>8.0f}  {row.text[:110]}")
        failed = [row for row in self.rows if row.result.startswith("FAILED")]
        for row in failed:
            print(f"\n{row.name}, {self.folder / row.log}:")
            for line in shortened(row.failures):
                print(f"  {line[:220]}")
        left_out = sum(row.result == "left out" for row in self.rows)
        seconds = time.monotonic() - self.start
        print(
            f"\n{len(self.rows)} steps in {seconds:.0f} s, {len(failed)} failed, {left_out} left out; logs in {self.folder}"
        )
        figures = self.folder / "benchmark.json"
        told = {
            "machine": self.machine,
            "seconds": seconds,
            "steps": [asdict(row) for row in self.rows],
            "benchmark": json.loads(figures.read_text()) if figures.exists() else None,
        }
        (self.folder / "result.json").write_text(json.dumps(told, indent=1))
        return len(failed)


def failures_in(lines: Iterable[str]) -> list[str]:
    """Return the failures that a log names, each line once."""
    return list(dict.fromkeys(line.strip() for line in lines if FAILURE.match(line)))


def shortened(failures: list[str], most: int = 20) -> list[str]:
    """Merge the cases of a test into one line, and limit the lines to a screen; ``result.json`` has
    all.
    """
    cases: dict[str, list[str]] = {}
    for line in failures:
        cases.setdefault(line.partition("[")[0] if line.startswith(("FAILED ", "ERROR ")) else line, []).append(line)
    lines = [each[0] + (f" and {len(each) - 1} other cases" if len(each) > 1 else "") for each in cases.values()]
    return lines[:most] + ([f"and {len(lines) - most} more"] if len(lines) > most else [])


def suites(python: list[str], tiny: bool) -> list[Step]:
    """Run the packages' suites with their tensors on cuda, in parts of similar duration."""
    steps = []
    pytest = [*python, "-m", "pytest", "-v", "-p", "no:cacheprovider", "--tb=short"]
    device = {"CANDELABRA_TEST_DEVICE": "cuda", "CANDELABRA_LAUNCH_BLOCKING": "1"}
    shares = {"autograd": 1 if tiny else 6, "nn": 1 if tiny else 3, "optim": 1 if tiny else 2, "distributions": 1}
    for package, parts in shares.items():
        files = sorted(map(str, (PACKAGES / package / "tests").glob("test_*.py")))
        for part in range(parts):
            name = f"tests {package} on cuda" + (f" {part + 1}/{parts}" if parts > 1 else "")
            steps.append(Step(name, [*pytest, *files[part::parts]], 400, device))
    steps.append(
        Step("tests between processes", [*pytest, str(PACKAGES / "multiprocessing/tests/test_device_memory.py")], 200)
    )
    return steps


def conformance(python: list[str], parts: int, sanitizer: str | None, jobs: int) -> list[Step]:
    """Run the conformance suite in parts, and again under memcheck."""
    verify = [*python, "-m", "candelabra.backends", "--verify", "cuda"]
    steps = [
        Step(f"conformance {part + 1}/{parts}", [*verify, "--part", f"{part + 1}/{parts}"], 300)
        for part in range(parts)
    ]
    if sanitizer:
        # Without the cache each tensor is an allocation of its own, so that memcheck sees
        # out-of-bounds accesses.
        alone = {"CANDELABRA_CUDA_ALLOC_CONF": "caching:False"}
        # Calls that may fail and are expected to (peers, capture) are not memory errors.
        check = [
            sanitizer,
            "--tool",
            "memcheck",
            "--error-exitcode",
            "9",
            "--launch-timeout",
            "0",
            "--report-api-errors",
            "no",
        ]
        steps += [
            Step(f"memcheck {part + 1}/{jobs}", [*check, *verify, "--part", f"{part + 1}/{jobs}"], 420, alone)
            for part in range(jobs)
        ]
    return steps


def examples(check: Check, python: list[str], tiny: bool) -> list[Step]:
    """Run a short training of each example."""
    absent = missing("sklearn", "tqdm", "matplotlib")
    steps = []
    for name, arguments in (TINY if tiny else EXAMPLES).items():
        needs = (
            missing("tqdm")
            if name == "expression_trees"
            else missing("tqdm", "matplotlib")
            if name in ("cart_pole", "text_model")
            else absent
        )
        if name == "hogwild":
            needs = missing("sklearn")
        if needs:
            check.leave_out(f"example {name}", needs)
        else:
            output = ["--output", str(check.folder / "output" / name)] if name in WITH_OUTPUT else []
            script = str(ROOT / "examples" / f"{name}.py")
            steps.append(Step(f"example {name}", [*python, script, "--device", "cuda", *arguments, *output], 200))
    return steps


def main() -> int:
    """Run all steps; return 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "gpu", help="where builds and logs go")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="compilers, and steps, at once")
    parser.add_argument(
        "--architecture", default="", help="compute capability without the point; that of the GPU by default"
    )
    parser.add_argument(
        "--minutes", type=float, default=10.0, help="no step begins later, and those that run are ended"
    )
    parser.add_argument("--only", default="", help="steps whose names have this in them, besides building")
    parser.add_argument("--ready", type=Path, help="a folder with candelabra_backend_cuda, built already")
    parser.add_argument(
        "--plain-host", action="store_true", help="NumPy's functions for the host, though backend-cpu could be had"
    )
    parser.add_argument(
        "--tiny", action="store_true", help="for an emulated device: shorter runs, and sizes that say nothing of speed"
    )
    parser.add_argument("--nvcc", help="the compiler, where neither the path nor a toolkit has it")
    parser.add_argument("--nvidia", type=Path, help="a site-packages folder with NVIDIA's PyPI packages for CUDA 13")
    given = parser.parse_args()
    # Emulated threads run in turn, so that a test may take long.
    check = Check(given.folder.resolve(), given.jobs, given.minutes, given.only, 6.0 if given.tiny else 1.0)
    nvcc = given.nvcc or find_nvcc(given.nvidia)
    absent = needs(given.ready is None, nvcc, check.environment["PATH"])
    if absent:
        print("gpu_check needs what is not there:\n" + "\n".join(f"  {line}" for line in absent), file=sys.stderr)
        return 2
    check.folder.mkdir(parents=True, exist_ok=True)
    (check.folder / "benchmark.json").unlink(missing_ok=True)
    check.machine = describe_machine(nvcc)
    try:
        do_all(check, given, nvcc)
    except KeyboardInterrupt:
        check.stop()
        print("\ninterrupted", file=sys.stderr)
        check.print_table()
        return 130
    return 1 if check.print_table() else 0


def prepare(check: Check, given: argparse.Namespace, nvcc: str | None) -> bool:
    """Build, and check for a GPU, without which the other steps are pointless."""
    check.lay_out(given.ready)
    if given.ready is None:
        number = given.architecture or architecture()
        definitions = [f"-DCANDELABRA_CUDA_ARCHITECTURES={number}", "-DCANDELABRA_CUDA_PTX=0"]
        definitions.append(f"-DCANDELABRA_NVCC={nvcc}")
        if given.nvidia is not None:
            definitions.append(f"-DCANDELABRA_NVIDIA_DIR={given.nvidia.resolve()}")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            core = pool.submit(check.build, "tensor-core")
            cuda = pool.submit(check.build, "backend-cuda", *definitions)
            built = [core.result(), cuda.result()]
        if not all(built):
            return False
        check.count_warnings("backend-cuda")
    if given.nvidia is not None:
        folders = [given.nvidia.resolve() / "nvidia" / part / "lib" for part in ("cu13", "cudnn", "nccl")]
        before = check.environment.get("CANDELABRA_CUDA_LIBRARIES")
        check.environment["CANDELABRA_CUDA_LIBRARIES"] = ":".join([*map(str, folders), *([before] if before else [])])
    check.host(given.ready, given.plain_host)
    return (
        check.run(Step("backends", [sys.executable, "-m", "candelabra.backends"], 60))
        and check.run(Step("device", [sys.executable, "-c", DEVICE], 60))
    )  # fmt: skip


def do_all(check: Check, given: argparse.Namespace, nvcc: str | None) -> None:
    """Run all steps in order."""
    python = [sys.executable]
    if not prepare(check, given, nvcc):
        return
    check.run_all([Step("libraries", [*python, "-c", LIBRARIES], 120)], 1)
    jobs = 1 if takes_one_process() else max(1, given.jobs // 2)
    sanitizer = find_sanitizer()
    if sanitizer is None:
        check.leave_out("memcheck", "compute-sanitizer is neither on the path nor in a toolkit")
    parts = 1 if given.tiny else min(4, jobs)
    memcheck_parts = max(1, jobs // 2)
    pytest = [*python, "-m", "pytest", "-v", "-p", "no:cacheprovider", "--tb=short"]
    hostile = [*python, "-m", "candelabra.testing.hostile", "candelabra.ops", "--device", "cuda"]
    steps = [
        # The longest steps first.
        *sorted(
            conformance(python, parts, sanitizer, memcheck_parts), key=lambda step: not step.name.startswith("memcheck")
        ),
        Step("tests backend-cuda", [*pytest, str(PACKAGES / "backend-cuda" / "tests")], 300),
        *suites(python, given.tiny),
        Step("hostile", [*hostile, *(("--calls", "2") if given.tiny else ())], 300),
        *examples(check, python, given.tiny),
    ]
    check.run_all(steps, jobs, FOR_THE_BENCHMARK)
    # Alone, with the GPU and all cores.
    benchmark = [*python, "-m", "benchmarks", "--device", "cuda", "--json", str(check.folder / "benchmark.json")]
    absent = missing("tqdm")
    if absent:
        check.leave_out("benchmark", absent)
        return
    where = {"PYTHONPATH": os.pathsep.join([str(check.site), str(ROOT)])}
    check.run_all([Step("benchmark", [*benchmark, *(("--tiny",) if given.tiny else ())], 240, where)], 1)
    log = check.folder / "benchmark.log"
    if check.only in "benchmark" and log.exists():
        print(f"\n{log.read_text(errors='replace')}")


if __name__ == "__main__":
    sys.exit(main())
