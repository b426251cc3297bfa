"""Everything that a machine with an NVIDIA GPU can check, without a network: ``python packages/backend-cuda/tools/gpu_check.py``.

Builds tensor-core and backend-cuda (backend-cpu where MKL is there) into a folder of their own, runs the tests, the conformance suite on
``cuda``, the suites of the other packages, memcheck where compute-sanitizer is there, and prints one table. Needs Python with pytest, NumPy,
SciPy, hypothesis and pluggy, CMake, Ninja, g++ and nvcc 13.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ROOT / "packages"
PURE = {"autograd": "src", "nn": "src", "optim": "src", "multiprocessing": "src", "utils": "src", "distributions": "src"}


class Check:
    """The steps and how they went."""

    def __init__(self, folder: Path, jobs: int) -> None:
        self.folder = folder
        self.jobs = jobs
        self.rows: list[tuple[str, str, float, str]] = []
        self.site = folder / "site"
        self.environment = {**os.environ, "PYTHONPATH": str(self.site), "PYTHONDONTWRITEBYTECODE": "1"}

    def step(self, name: str, command: list[str], timeout: float, cwd: Path | None = None) -> bool:
        """Run a command; keep its output and its last line."""
        start = time.monotonic()
        log = self.folder / f"{name.replace(' ', '_')}.log"
        with log.open("w") as output:
            try:
                status = subprocess.run(
                    command, stdout=output, stderr=subprocess.STDOUT, env=self.environment, timeout=timeout, cwd=cwd or self.folder
                ).returncode
            except subprocess.TimeoutExpired:
                status = 124
            except OSError as error:
                output.write(str(error))
                status = 127
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        self.rows.append(
            (name, "passed" if status == 0 else f"status {status}", time.monotonic() - start, lines[-1] if lines else "")
        )
        print(f"{name}: {self.rows[-1][1]} in {self.rows[-1][2]:.0f} s; {log}", flush=True)
        return status == 0

    def leave_out(self, name: str, why: str) -> None:
        """Note a step that cannot be done here."""
        self.rows.append((name, "left out", 0.0, why))
        print(f"{name}: left out: {why}", flush=True)

    def build(self, package: str, *definitions: str) -> bool:
        """Build a compiled package with CMake alone, and put it where the tests find it."""
        source, binary = PACKAGES / package, self.folder / f"build-{package}"
        tools = [sysconfig.get_path("scripts"), os.environ.get("PATH", "")]
        self.environment["PATH"] = os.pathsep.join(tools)
        configured = self.step(
            f"configure {package}",
            ["cmake", "-S", str(source), "-B", str(binary), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", f"-DPython_EXECUTABLE={sys.executable}",
             f"-DCANDELABRA_INCLUDE_DIR={PACKAGES / 'tensor-core' / 'include'}", *definitions],
            300,
        )  # fmt: skip
        return (
            configured
            and self.step(f"build {package}", ["cmake", "--build", str(binary), "-j", str(self.jobs)], 3000)
            and self.step(f"install {package}", ["cmake", "--install", str(binary), "--prefix", str(self.site)], 300)
        )

    def lay_out(self) -> None:
        """Copy the Python sources, with what pip would write of them, so that plugins are found."""
        for package, folder in {"tensor-core": "python", "backend-cpu": "python", "backend-cuda": "python", **PURE}.items():
            shutil.copytree(
                PACKAGES / package / folder,
                self.site,
                dirs_exist_ok=True,
                ignore=shutil.ignore_patterns("__pycache__", "*.so", "lib", "include"),
            )
        for package, entry in {
            "backend-cpu": "cpu = candelabra_backend_cpu",
            "backend-cuda": "cuda = candelabra_backend_cuda",
        }.items():
            information = self.site / f"candelabra_{package.replace('-', '_')}-0.1.0.dist-info"
            information.mkdir(exist_ok=True)
            (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: candelabra-{package}\nVersion: 0.1.0\n")
            (information / "entry_points.txt").write_text(f"[candelabra.backends]\n{entry}\n")

    def print_table(self) -> int:
        """Print what was done; return the number of steps that failed."""
        print(f"\n{'step':<34}{'result':<14}{'seconds':>8}  last line")
        for name, result, seconds, line in self.rows:
            print(f"{name:<34}{result:<14}{seconds:>8.0f}  {line[:110]}")
        (self.folder / "result.json").write_text(json.dumps(self.rows, indent=1))
        return sum(result.startswith("status") for _, result, _, _ in self.rows)


def main() -> int:
    """Do all steps; return 1 where one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "gpu", help="where builds and logs go")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--architecture", default="90", help="compute capability of the GPU, without the point")
    parser.add_argument("--only", default="", help="steps whose names have this in them, besides building")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    check = Check(given.folder.resolve(), given.jobs)
    check.lay_out()
    if not check.build("tensor-core") or not check.build(
        "backend-cuda", f"-DCANDELABRA_CUDA_ARCHITECTURES={given.architecture}", "-DCANDELABRA_CUDA_PTX=0"
    ):
        return check.print_table() or 1
    # The wheel's layout puts tensor-core's module into the package; an install without scikit-build does the same.
    pytest = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    steps: list[tuple[str, list[str], float]] = [
        ("backends", [sys.executable, "-m", "candelabra.backends"], 60),
        ("tests backend-cuda", [*pytest[:-3], "-p", "no:cacheprovider", str(PACKAGES / "backend-cuda" / "tests")], 600),
        ("conformance", [sys.executable, "-m", "candelabra.backends", "--verify", "cuda"], 900),
        ("hostile", [sys.executable, "-m", "candelabra.testing.hostile", "candelabra.ops", "--device", "cuda"], 900),
    ]
    for name, command, timeout in steps:
        if given.only in name:
            check.step(name, command, timeout)
    sanitizer = shutil.which("compute-sanitizer")
    if given.only in "memcheck":
        if sanitizer:
            command = [sanitizer, "--tool", "memcheck", "--error-exitcode", "9", *steps[1][1]]
            check.step("memcheck", command, 1800)
        else:
            check.leave_out("memcheck", "compute-sanitizer is not on the path")
    return 1 if check.print_table() else 0


if __name__ == "__main__":
    sys.exit(main())
