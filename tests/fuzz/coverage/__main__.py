"""Fuzz all targets with coverage: ``python tests/fuzz/coverage --seconds 600``.

Needs Atheris. With the wheels and libraries that ``nox -s fuzz-coverage`` builds, C++ is covered
and checked by AddressSanitizer and UBSan, too. Inputs that reached something new are kept in
build/fuzz/NAME; one that failed is in build/fuzz, and ``target.py NAME FILE`` runs it again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
OUTPUT = ROOT / "build" / "fuzz"
#: Seconds of one input, and MiB of one allocation.
SECONDS, ALLOCATION = 20, 512
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fsanitize-coverage=trace-pc,trace-cmp"]


def compiled(name: str, sources: list[Path], includes: list[Path], flags: list[str]) -> Path:
    """Compile a library of the targets, and return its path."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    target = OUTPUT / f"{name}.so"
    folders = [f"-I{folder}" for folder in includes]
    subprocess.run(
        [os.environ.get("CXX", "g++"), "-std=c++20", "-O1", "-g1", "-shared", "-fPIC", *flags, *folders, *map(str, sources), "-o", str(target)],
        check=True,
    )  # fmt: skip
    return target


def native_library(flags: list[str]) -> Path:
    """Compile native.cpp with the sources that it calls."""
    core, runner = ROOT / "packages" / "tensor-core", ROOT / "packages" / "runner"
    sources = [
        HERE / "native.cpp", core / "src" / "device" / "backend_table.cpp", core / "src" / "python" / "error_text.cpp", runner / "src" / "npy_files.cpp",
    ]  # fmt: skip
    includes = [
        core / "src",
        core / "include",
        runner / "src",
        runner / "include",
        runner / "src" / "shape_rules" / "interpreter",
    ]
    return compiled("native", sources, includes, flags)


def variables(sanitizers: str) -> dict[str, str]:
    """Return the environment of the targets, with these libraries of sanitizers."""
    made = {
        **os.environ,
        "CANDELABRA_FUZZ_NATIVE": str(native_library(SANITIZERS if sanitizers else [])),
        "OMP_NUM_THREADS": "1",
    }
    if sanitizers:
        counters = compiled("counters", [HERE / "counters.cpp"], [], ["-O2"])
        made["CANDELABRA_FUZZ_COUNTERS"] = str(counters)
        # Before the sanitizers, which have empty functions of the same names.
        made["LD_PRELOAD"] = f"{counters} {sanitizers}"
        made["ASAN_OPTIONS"] = f"{made.get('ASAN_OPTIONS', '')}:verify_asan_link_order=0:quarantine_size_mb=32"
    return made


def fuzz(name: str, seconds: int, environment: dict[str, str], options: list[str]) -> bool:
    """Run one target for a time. Return whether nothing was found."""
    found = OUTPUT / name
    found.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable, str(HERE / "target.py"), name, f"-max_total_time={seconds}", f"-timeout={SECONDS}", f"-malloc_limit_mb={ALLOCATION}",
        "-rss_limit_mb=4096", "-max_len=65536", "-print_final_stats=1", "-verbosity=1", f"-artifact_prefix={OUTPUT}/{name}_", *options,
        str(found), str(HERE / "corpus" / name),
    ]  # fmt: skip
    done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace")
    runs = [line for line in done.stderr.splitlines() if "number_of_executed_units" in line or "DONE" in line]
    print(f"{name:16} {'clean' if done.returncode == 0 else 'FAILED'}  {' '.join(runs)}", flush=True)
    if done.returncode != 0:
        print(done.stdout[-4000:], done.stderr[-12000:], sep="\n", file=sys.stderr, flush=True)
    return done.returncode == 0


def main() -> int:
    """Run the targets of the command line, or all, one after the other."""
    names = sorted(folder.name for folder in (HERE / "corpus").iterdir() if folder.is_dir())
    parser = argparse.ArgumentParser(prog="python tests/fuzz/coverage", description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", help=f"of {', '.join(names)}; by default all")
    parser.add_argument("--seconds", type=int, default=600, help="of all targets together")
    parser.add_argument(
        "--sanitized", metavar="LIBRARIES", default="", help="preloaded, where the wheels need them (nox -s fuzz)"
    )
    options, others = parser.parse_known_args()
    names = options.targets or names
    environment = variables(options.sanitized)
    clean = [fuzz(name, max(options.seconds // len(names), 1), environment, others) for name in names]
    return int(not all(clean))


if __name__ == "__main__":
    sys.exit(main())
