"""Everything that a machine with an NVIDIA GPU can check, without a network: ``python packages/backend-cuda/tools/gpu_check.py``.

Builds tensor-core and backend-cuda for that GPU into a folder of its own (backend-cpu too where MKL and oneDNN are there; else a backend of
NumPy's functions stands in for the host), then runs the tests, the conformance suite on ``cuda``, the suites of autograd, nn and optim with
their tensors on ``cuda``, a short training run of each example, compute-sanitizer's memcheck over the conformance suite, and the benchmark,
beside PyTorch on the same GPU where it is installed. Steps run side by side but for the benchmark, which has the machine to itself. At the end
one table says how each step went, or why it was left out; ``result.json`` in the folder has the same.

Needs Python with pytest, NumPy, SciPy, hypothesis and pluggy, CMake, Ninja, g++ and nvcc 13 with the headers of NVIDIA's libraries (a toolkit,
or NVIDIA's PyPI packages). ``--ready FOLDER`` takes a folder with a built ``candelabra_backend_cuda`` instead of building, an emulated device's
for one (packages/backend-cuda/tests/emulation), and ``--tiny`` shortens what such a device would take long for.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ROOT / "packages"
#: Packages of Python alone, by the folder of their sources.
PURE = {
    "autograd": "src", "nn": "src", "optim": "src", "multiprocessing": "src", "utils": "src", "distributions": "src", "torch-compat": "src",
}  # fmt: skip
ENTRIES = {"backend-cpu": "cpu = candelabra_backend_cpu", "backend-cuda": "cuda = candelabra_backend_cuda"}
#: Modules that steps need beyond those of the tests.
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
    "digits": None,
    "train_digits_trainer": None,
    "text_model": ("--steps", "2", "--batch", "2", "--width", "16", "--context", "16", "--characters", "20000"),
    "generate_digits": None,
    "cart_pole": ("--rounds", "2", "--moments", "10", "--carts", "8"),
    "expression_trees": ("--steps", "3", "--batch", "2"),
    "hogwild": None,
}  # fmt: skip
WITH_OUTPUT = ("digits", "train_digits_trainer", "text_model", "generate_digits", "cart_pole")


@dataclass
class Step:
    """One line of the table."""

    name: str
    command: list[str]
    timeout: float
    environment: dict[str, str] = field(default_factory=dict)


class Check:
    """The steps and how they went."""

    def __init__(self, folder: Path, jobs: int, minutes: float, only: str) -> None:
        self.folder = folder
        self.jobs = jobs
        self.only = only
        self.end = time.monotonic() + 60 * minutes
        self.rows: list[tuple[str, str, float, str]] = []
        self.site = folder / "site"
        self.lock = threading.Lock()
        self.environment = {**os.environ, "PYTHONPATH": str(self.site), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "2"}
        # CMake and Ninja of this environment, where it was not activated.
        self.environment["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])

    def note(self, name: str, result: str, seconds: float, text: str) -> None:
        """Add a line to the table, and print it."""
        with self.lock:
            self.rows.append((name, result, seconds, text))
            print(f"{name}: {result} in {seconds:.0f} s: {text[:150]}", flush=True)

    def leave_out(self, name: str, why: str) -> None:
        """Note a step that cannot be done here."""
        if self.only in name:
            self.note(name, "left out", 0.0, why)

    def run(self, step: Step) -> bool:
        """Run a step; keep its output in a file and its last line in the table."""
        left = self.end - time.monotonic()
        if left < 5:
            self.note(step.name, "left out", 0.0, "no time was left")
            return False
        start = time.monotonic()
        log = self.folder / f"{step.name.replace(' ', '_').replace('/', '_of_')}.log"
        status: int | str
        with log.open("w") as output:
            try:
                # In a group of its own: what it started ends with it.
                process = subprocess.Popen(
                    step.command, stdout=output, stderr=subprocess.STDOUT, env={**self.environment, **step.environment},
                    cwd=self.folder, start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                output.write(str(error))
                status = "not started"
            else:
                try:
                    status = process.wait(min(step.timeout, left))
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    status = "time is up"
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
        result = "passed" if status == 0 else f"FAILED ({status})"
        self.note(step.name, result, time.monotonic() - start, f"{lines[-1][:110] if lines else ''}  [{log.name}]")
        return status == 0

    def run_all(self, steps: list[Step], at_once: int) -> None:
        """Run steps side by side."""
        chosen = [step for step in steps if self.only in step.name]
        with concurrent.futures.ThreadPoolExecutor(max(1, at_once)) as pool:
            list(pool.map(self.run, chosen))

    # ---- building

    def build(self, package: str, *definitions: str) -> bool:
        """Build a compiled package with CMake alone, and put it where the tests find it."""
        source, binary = PACKAGES / package, self.folder / f"build-{package}"
        configure = [
            "cmake", "-S", str(source), "-B", str(binary), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", f"-DPython_EXECUTABLE={sys.executable}",
            f"-DCANDELABRA_INCLUDE_DIR={PACKAGES / 'tensor-core' / 'include'}", *definitions,
        ]  # fmt: skip
        return (
            self.run(Step(f"configure {package}", configure, 120))
            and self.run(Step(f"build {package}", ["cmake", "--build", str(binary), "-j", str(self.jobs)], 3000))
            and self.run(Step(f"install {package}", ["cmake", "--install", str(binary), "--prefix", str(self.site)], 60))
        )

    def information(self, name: str, entry: str) -> None:
        """Write what pip would, so that a plugin is found."""
        folder = self.site / f"{name.replace('-', '_')}-0.1.0.dist-info"
        folder.mkdir(exist_ok=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
        (folder / "entry_points.txt").write_text(f"[candelabra.backends]\n{entry}\n")

    def lay_out(self, ready: Path | None) -> None:
        """Copy the Python sources, and what is built already."""
        shutil.rmtree(self.site, ignore_errors=True)
        if ready is not None:
            shutil.copytree(ready, self.site, symlinks=True)
        for package, folder in {"tensor-core": "python", "backend-cuda": "python", **PURE}.items():
            left_out = shutil.ignore_patterns("__pycache__", "*.so", "lib", "include")
            shutil.copytree(PACKAGES / package / folder, self.site, dirs_exist_ok=True, ignore=left_out)
        if ready is not None:
            for module in (PACKAGES / "tensor-core" / "python" / "candelabra").glob("_C*.so"):
                shutil.copy(module, self.site / "candelabra")
        self.information("candelabra-backend-cuda", ENTRIES["backend-cuda"])

    def host(self, ready: Path | None, plain: bool) -> None:
        """Give the host a backend: ours where it is built or can be, else the one of examples/backends/numpy."""
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
        """Copy the Python sources of the CPU's backend, and say that it is installed."""
        shutil.copytree(
            folder, self.site, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "*.so", "lib", "include")
        )
        self.information("candelabra-backend-cpu", ENTRIES["backend-cpu"])

    # ---- the end

    def print_table(self) -> int:
        """Print what was done; return the number of steps that failed."""
        print(f"\n{'step':<32}{'result':<22}{'seconds':>8}  last line")
        for name, result, seconds, line in self.rows:
            print(f"{name:<32}{result:<22}{seconds:>8.0f}  {line[:110]}")
        failed = sum(result.startswith("FAILED") for _, result, _, _ in self.rows)
        left_out = sum(result == "left out" for _, result, _, _ in self.rows)
        print(f"\n{len(self.rows)} steps, {failed} failed, {left_out} left out; logs in {self.folder}")
        (self.folder / "result.json").write_text(json.dumps(self.rows, indent=1))
        return failed


def find_header(name: str) -> bool:
    """Tell whether a header of a library that backend-cpu needs can be found."""
    folders = [
        Path(sys.prefix) / "include",
        *map(Path, (os.environ.get("MKLROOT", "/opt/intel/oneapi/mkl/latest"), "/usr", "/usr/local")),
    ]
    return any((folder / name).exists() or (folder / "include" / name).exists() for folder in folders)


def missing(*modules: str) -> str:
    """Say which of some modules are not installed; empty where all are."""
    absent = [name for name in modules if importlib.util.find_spec(name) is None]
    return f"Python has no {', '.join(absent)}" if absent else ""


def architecture() -> str:
    """Ask the driver's tool for the compute capability of the first GPU; 90 where it does not answer."""
    try:
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], capture_output=True, text=True, timeout=30
        )
        return done.stdout.split()[0].replace(".", "")
    except (OSError, subprocess.TimeoutExpired, IndexError):
        return "90"


def find_sanitizer() -> str | None:
    """Find compute-sanitizer on the path, or where toolkits have it."""
    places = [
        "/usr/local/cuda/bin",
        "/usr/local/cuda/compute-sanitizer",
        *(str(path) for path in Path("/usr/local").glob("cuda-13*/bin")),
    ]
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=os.pathsep.join(places))


def suites(python: list[str], tiny: bool) -> list[Step]:
    """The suites of the packages, their tensors on cuda, in parts that take about as long."""
    steps = []
    pytest = [*python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"]
    device = {"CANDELABRA_TEST_DEVICE": "cuda", "CANDELABRA_LAUNCH_BLOCKING": "1"}
    for package, parts in {"autograd": 1 if tiny else 6, "nn": 1 if tiny else 3, "optim": 1 if tiny else 2}.items():
        files = sorted(map(str, (PACKAGES / package / "tests").glob("test_*.py")))
        for part in range(parts):
            name = f"tests {package} on cuda" + (f" {part + 1}/{parts}" if parts > 1 else "")
            steps.append(Step(name, [*pytest, *files[part::parts]], 400, device))
    steps.append(Step("tests between processes", [*pytest, str(PACKAGES / "multiprocessing/tests/test_device_memory.py")], 200))
    return steps


def conformance(python: list[str], parts: int, sanitizer: str | None, jobs: int) -> list[Step]:
    """The conformance suite in parts, and the same under memcheck."""
    verify = [*python, "-m", "candelabra.backends", "--verify", "cuda"]
    steps = [Step(f"conformance {part + 1}/{parts}", [*verify, "--part", f"{part + 1}/{parts}"], 300) for part in range(parts)]
    if sanitizer:
        # Without the cache each tensor is an allocation of its own, so that what reaches beyond it is seen.
        alone = {"CANDELABRA_CUDA_ALLOC_CONF": "caching:False"}
        check = [sanitizer, "--tool", "memcheck", "--error-exitcode", "9", "--launch-timeout", "0"]
        steps += [
            Step(f"memcheck {part + 1}/{jobs}", [*check, *verify, "--part", f"{part + 1}/{jobs}"], 420, alone)
            for part in range(jobs)
        ]
    return steps


def examples(check: Check, python: list[str], tiny: bool) -> list[Step]:
    """A short training run of each example."""
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
        if arguments is None:
            check.leave_out(f"example {name}", "too much for an emulated device")
        elif needs:
            check.leave_out(f"example {name}", needs)
        else:
            output = ["--output", str(check.folder / "output" / name)] if name in WITH_OUTPUT else []
            script = str(ROOT / "examples" / f"{name}.py")
            steps.append(Step(f"example {name}", [*python, script, "--device", "cuda", *arguments, *output], 200))
    return steps


def main() -> int:
    """Do all steps; return 1 where one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "gpu", help="where builds and logs go")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="compilers, and steps, at once")
    parser.add_argument("--architecture", default="", help="compute capability without the point; that of the GPU by default")
    parser.add_argument("--minutes", type=float, default=10.0, help="no step begins later, and those that run are ended")
    parser.add_argument("--only", default="", help="steps whose names have this in them, besides building")
    parser.add_argument("--ready", type=Path, help="a folder with candelabra_backend_cuda, built already")
    parser.add_argument("--plain-host", action="store_true", help="NumPy's functions for the host, though backend-cpu could be had")
    parser.add_argument(
        "--tiny", action="store_true", help="for an emulated device: shorter runs, and sizes that say nothing of speed"
    )
    given = parser.parse_args()
    absent = missing("pytest", "numpy", "scipy", "hypothesis", "pluggy")
    if absent:
        print(f"gpu_check: {absent}, which the tests need", file=sys.stderr)
        return 2
    given.folder.mkdir(parents=True, exist_ok=True)
    check = Check(given.folder.resolve(), given.jobs, given.minutes, given.only)
    python = [sys.executable]
    check.lay_out(given.ready)
    if given.ready is None:
        number = given.architecture or architecture()
        definitions = (f"-DCANDELABRA_CUDA_ARCHITECTURES={number}", "-DCANDELABRA_CUDA_PTX=0", "-DCANDELABRA_WERROR=ON")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            core = pool.submit(check.build, "tensor-core")
            cuda = pool.submit(check.build, "backend-cuda", *definitions)
            built = core.result() and cuda.result()
        if not built:
            return check.print_table() or 1
    check.host(given.ready, given.plain_host)
    if not check.run(Step("backends", [*python, "-m", "candelabra.backends"], 60)):
        return check.print_table() or 1

    at_once = max(1, given.jobs // 2)
    sanitizer = find_sanitizer()
    if sanitizer is None:
        check.leave_out("memcheck", "compute-sanitizer is neither on the path nor in a toolkit")
    parts = 1 if given.tiny else min(4, at_once)
    memcheck_parts = max(1, at_once // 2)
    pytest = [*python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"]
    hostile = [*python, "-m", "candelabra.testing.hostile", "candelabra.ops", "--device", "cuda"]
    steps = [
        # The long ones first.
        *sorted(conformance(python, parts, sanitizer, memcheck_parts), key=lambda step: not step.name.startswith("memcheck")),
        Step("tests backend-cuda", [*pytest, str(PACKAGES / "backend-cuda" / "tests")], 300),
        *suites(python, given.tiny),
        Step("hostile", [*hostile, *(("--calls", "2") if given.tiny else ())], 300),
        *examples(check, python, given.tiny),
    ]
    check.run_all(steps, at_once)
    # Alone: nothing else has the GPU or the cores.
    benchmark = [*python, "-m", "benchmarks", "--device", "cuda", "--json", str(check.folder / "benchmark.json")]
    absent = missing("tqdm")
    if absent:
        check.leave_out("benchmark", absent)
    else:
        where = {"PYTHONPATH": os.pathsep.join([str(check.site), str(ROOT)])}
        check.run_all([Step("benchmark", [*benchmark, *(("--tiny",) if given.tiny else ())], 240, where)], 1)
        log = check.folder / "benchmark.log"
        if log.exists():
            print(f"\n{log.read_text(errors='replace')}")
    return 1 if check.print_table() else 0


if __name__ == "__main__":
    sys.exit(main())
