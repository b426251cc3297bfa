"""Compilation, linking, and the cache of built libraries.

The path of a library is a digest of its inputs: the sources, the flags, the compiler, the headers
of the core, and all other included headers. An existing file is therefore up to date, and a loaded
library is never overwritten. Processes that build the same library wait on a file lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from candelabra import _C

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CPP_ENDINGS = (".cpp", ".cc", ".cxx", ".c++", ".C")
#: Increment when the generated glue code changes without a new version of the core.
_GENERATION = 1


class CompilationError(RuntimeError):
    """Error of the compiler or the linker; the message has the command and its output."""


class Source(NamedTuple):
    """One source to compile."""

    #: File name for messages. Its suffix selects the language.
    name: str
    text: str


class Recipe(NamedTuple):
    """All inputs of a library."""

    name: str
    sources: tuple[Source, ...]
    cflags: tuple[str, ...] = ()
    ldflags: tuple[str, ...] = ()
    include_paths: tuple[str, ...] = ()


#: Source name of formulas. Their flags allow the compiler to vectorize both branches of a selection
#: and to ignore floating-point exceptions and errno.
FORMULAS = "formulas.cpp"
_FORMULA_FLAGS = ("-fno-trapping-math", "-fno-math-errno")


def include_paths(device_type: str = "cpu", torch_include_dirs: bool = True) -> list[str]:
    """Return the include directories that contain ``candelabra/backend.h`` and ``extension.hpp``.

    Parameters
    ----------
    device_type
        The device type; only ``"cpu"`` is supported.
    torch_include_dirs
        If False, the result is empty.

    Raises
    ------
    NotImplementedError
        If the device type is not ``"cpu"``.
    RuntimeError
        If the headers are not installed.

    Examples
    --------
    >>> import pathlib
    >>> from candelabra.utils import cpp_extension
    >>> pathlib.Path(cpp_extension.include_paths()[0], "candelabra", "backend.h").exists()
    True
    """
    if device_type != "cpu":
        raise NotImplementedError(f"include_paths({device_type!r}): extensions are compiled for the CPU only")
    if not torch_include_dirs:
        return []
    package = Path(_C.__file__ or "").parent
    # Headers are inside the package in a wheel, and next to it in a source checkout.
    for folder in (package / "include", package.parent.parent / "include", *_editable_headers()):
        if (folder / "candelabra" / "backend.h").is_file():
            return [str(folder)]
    raise RuntimeError(f"the headers of candelabra-tensor-core are not in {package}: reinstall it")


def _editable_headers() -> Iterator[Path]:
    import candelabra

    for folder in candelabra.__path__:
        yield Path(folder) / "include"
        yield Path(folder).parent.parent / "include"


def library_paths(device_type: str = "cpu", torch_include_dirs: bool = True) -> list[str]:
    """Return an empty list, because extensions link against no library of Candelabra."""
    include_paths(device_type, torch_include_dirs)
    return []


def is_ninja_available() -> bool:
    """Return whether ninja is installed. It is not required."""
    return shutil.which("ninja") is not None


def verify_ninja_availability() -> None:
    """Raise RuntimeError if ninja is not installed."""
    if not is_ninja_available():
        raise RuntimeError("Ninja is not there; nothing in candelabra.utils.cpp_extension needs it")


def get_cxx_compiler() -> str:
    """Return the C++ compiler command: the environment variable ``CXX``, or ``c++``."""
    return os.environ.get("CXX", "").strip() or "c++"


def get_c_compiler() -> str:
    """Return the C compiler command: the environment variable ``CC``, or ``cc``."""
    return os.environ.get("CC", "").strip() or "cc"


@functools.cache
def _version_of(command: str, path: str, modified: int) -> str:
    done = subprocess.run([*shlex.split(command), "--version"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CompilationError(f"{command} --version failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def compiler_version(command: str) -> str:
    """Return the output of ``--version`` of a compiler.

    Raises
    ------
    CompilationError
        If the compiler does not exist; the message says how to install one.
    """
    program = shlex.split(command)[0]
    path = shutil.which(program)
    if path is None:
        raise CompilationError(
            f"there is no compiler '{program}': install one (on Debian and Ubuntu: apt install g++), or name another by the environment "
            "variables CC and CXX"
        )
    return _version_of(command, path, os.stat(path).st_mtime_ns)


def check_compiler_ok_for_platform(compiler: str) -> bool:
    """Return whether a compiler exists and runs."""
    try:
        compiler_version(compiler)
    except CompilationError:
        return False
    return True


def get_compiler_abi_compatibility_and_version(compiler: str) -> tuple[bool, str]:
    """Return whether a compiler is usable, and its version.

    Any compiler is ABI compatible, because the core calls extensions through a C interface.
    """
    if not check_compiler_ok_for_platform(compiler):
        return False, "0.0.0"
    words = compiler_version(compiler).split()
    return True, next((word for word in words if word[0].isdigit() and "." in word), "0.0.0")


def get_default_build_root() -> str:
    """Return the cache directory of compiled extensions.

    The environment variables ``CANDELABRA_EXTENSIONS_DIR`` and ``TORCH_EXTENSIONS_DIR`` override
    it. The default is ``candelabra/extensions`` in the user's cache directory.
    """
    for variable in ("CANDELABRA_EXTENSIONS_DIR", "TORCH_EXTENSIONS_DIR"):
        if os.environ.get(variable):
            return os.path.abspath(os.path.expanduser(os.environ[variable]))
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "candelabra", "extensions")


# ---- building


def is_cpp(name: str) -> bool:
    """Return whether the suffix of a source name is that of C++."""
    return name.endswith(_CPP_ENDINGS)


def check_source_name(name: str) -> None:
    """Raise if a source is neither C nor C++."""
    if name.endswith((".cu", ".cuh", ".sycl", ".mm")):
        raise NotImplementedError(f"{name}: this version of candelabra-utils compiles C and C++ only, for the CPU")
    if not is_cpp(name) and not name.endswith(".c"):
        raise ValueError(
            f"{name}: the ending of a source says its language: .c for C, one of {', '.join(_CPP_ENDINGS)} for C++"
        )


def _flags(source: Source, recipe: Recipe) -> list[str]:
    flags = ["-fPIC", "-fvisibility=hidden", "-O3", "-std=gnu++20" if is_cpp(source.name) else "-std=gnu11"]
    if platform.machine() in ("x86_64", "AMD64"):
        flags.append("-march=x86-64-v3")  # the instruction set that Candelabra itself requires
    if source.name == FORMULAS:
        flags += _FORMULA_FLAGS
    folders = [*recipe.include_paths, *include_paths()]
    return [*flags, *(f"-I{folder}" for folder in folders), *recipe.cflags]


def _command(source: Source) -> str:
    return get_cxx_compiler() if is_cpp(source.name) else get_c_compiler()


def _digest(*parts: str | bytes) -> str:
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()


@functools.cache
def _core_headers() -> str:
    folder = Path(include_paths()[0])
    return _digest(*(path.read_bytes() for path in sorted(folder.rglob("*.h*"))))


def _key(recipe: Recipe) -> str:
    """Return the digest of all inputs that are known before compilation."""
    parts: list[str] = [str(_GENERATION), recipe.name, _core_headers(), platform.machine(), *recipe.ldflags]
    for source in recipe.sources:
        parts += [
            source.name,
            source.text,
            compiler_version(_command(source)),
            _command(source),
            *_flags(source, recipe),
        ]
    return _digest(*parts)


def _contents(paths: Sequence[str]) -> str | None:
    """Return the digest of the contents of files, or None if one is missing."""
    try:
        return _digest(*(part for path in paths for part in (path, Path(path).read_bytes())))
    except OSError:
        return None


@contextlib.contextmanager
def _locked(path: Path, verbose: bool) -> Iterator[None]:
    """Hold an exclusive lock file; the OS releases it when the process ends."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if verbose:
                print(f"another process builds in {path.parent}: waiting", file=sys.stderr)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _ready(folder: Path, name: str) -> Path | None:
    """Return the library in `folder` that matches the current headers, or None."""
    try:
        included = json.loads((folder / "headers.json").read_text())
    except (OSError, ValueError):
        return None
    digest = _contents(included)
    if digest is None:
        return None
    path = folder / f"{name}-{digest[:16]}.so"
    return path if path.is_file() else None


def build(recipe: Recipe, build_directory: str | os.PathLike[str] | None = None, verbose: bool = False) -> Path:
    """Return the path of the library, and build it first if it is not in the cache.

    Raises
    ------
    CompilationError
        If the compiler or the linker fails; the message has its output.
    """
    root = Path(get_default_build_root()) if build_directory is None else Path(build_directory)
    if build_directory is not None and not root.is_dir():
        raise ValueError(f"the build directory {root} does not exist")
    folder = root / recipe.name / _key(recipe)[:16]
    found = _ready(folder, recipe.name)
    if found is not None:
        if verbose:
            print(f"{recipe.name}: {found} is up to date", file=sys.stderr)
        return found
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _locked(folder / "lock", verbose):
        found = _ready(folder, recipe.name)  # another process may have built it meanwhile
        return found if found is not None else _build(recipe, folder, verbose)


def _build(recipe: Recipe, folder: Path, verbose: bool) -> Path:
    with tempfile.TemporaryDirectory(dir=folder, prefix="building-") as scratch:
        made = Path(scratch) / "library.so"
        included = sorted(compile_and_link(recipe, Path(scratch), made, verbose))
        digest = _contents(included)
        if digest is None:
            raise CompilationError(f"{recipe.name}: a header was removed while it was compiled")
        path = folder / f"{recipe.name}-{digest[:16]}.so"
        os.replace(made, path)
        listed = Path(scratch) / "headers.json"
        listed.write_text(json.dumps(included))
        os.replace(listed, folder / "headers.json")
    return path


def compile_and_link(recipe: Recipe, scratch: Path, library: Path, verbose: bool) -> set[str]:
    """Compile each source, link the objects, and return the included headers.

    Headers of the system and of the core are not returned.
    """
    jobs = int(os.environ.get("MAX_JOBS", "0") or 0) or min(len(os.sched_getaffinity(0)), len(recipe.sources))
    with ThreadPoolExecutor(max(jobs, 1)) as pool:
        done = list(
            pool.map(
                lambda number: _compile(recipe, scratch, number, recipe.sources[number], verbose),
                range(len(recipe.sources)),
            )
        )
    linker = get_cxx_compiler() if any(is_cpp(source.name) for source in recipe.sources) else get_c_compiler()
    objects = [str(path) for path, _ in done]
    _run(
        [*shlex.split(linker), "-shared", "-pthread", *objects, *recipe.ldflags, "-o", str(library)],
        recipe.name,
        verbose,
    )
    return {header for _, headers in done for header in headers}


def _compile(recipe: Recipe, scratch: Path, number: int, source: Source, verbose: bool) -> tuple[Path, list[str]]:
    path = scratch / f"{number}-{Path(source.name).name}"
    path.write_text(source.text)
    made, listed = path.with_suffix(".o"), path.with_suffix(".d")
    command = [
        *shlex.split(_command(source)),
        *_flags(source, recipe),
        "-MMD",
        "-MF",
        str(listed),
        "-c",
        str(path),
        "-o",
        str(made),
    ]
    _run(command, f"{recipe.name}: {source.name}", verbose)
    core = os.path.realpath(include_paths()[0])
    # The file is a make rule: the object, then its dependencies, with spaces escaped.
    words = shlex.split(listed.read_text().partition(":")[2].replace("\\\n", " "))
    headers = [os.path.realpath(word) for word in words]
    return made, [
        header
        for header in headers
        if not header.startswith((core, os.path.realpath(scratch), "/usr/include/", "/usr/lib/"))
    ]


def _run(command: list[str], what: str, verbose: bool) -> None:
    if verbose:
        print(shlex.join(command), file=sys.stderr)
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    said = (done.stdout + done.stderr).strip()
    if done.returncode != 0:
        raise CompilationError(
            f"Error building extension '{what}': the compiler ended with status {done.returncode}\n{shlex.join(command)}\n{said}"
        )
    if verbose and said:
        print(said, file=sys.stderr)
