"""Build the backend for an emulated device: ``python packages/backend-cuda/tests/emulation/build.py
FOLDER``.

``translate.py`` translates the backend's sources, and g++ compiles them. ``runtime/`` replaces
CUDA's runtime, and ``libraries/`` replaces NVIDIA's libraries. With ``PYTHONPATH=FOLDER/site`` the
device ``cuda`` is the emulated one. Needs g++ 12, Ninja and the headers of CUDA 13, of its
libraries and of CCCL: a toolkit's, or those of NVIDIA's PyPI packages. ``--help`` lists the
options.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

sys.path.insert(0, os.fspath(Path(__file__).parent))

from translate import translate_folder, translated

HERE = Path(__file__).resolve().parent
BACKEND = HERE.parents[1]
CORE = BACKEND.parent / "tensor-core"

#: Emulated libraries: the folder in which the backend looks for each ``libraries/NAME.cpp``.
LIBRARIES = {
    "cublaslt": "cu13/lib/libcublasLt.so.13",
    "cublas": "cu13/lib/libcublas.so.13",
    "cufft": "cu13/lib/libcufft.so.12",
    "cusolver": "cu13/lib/libcusolver.so.12",
    "cudnn": "cudnn/lib/libcudnn.so.9",
    "nccl": "nccl/lib/libnccl.so.2",
}
#: Additional sources of emulated libraries.
FURTHER = {"cudnn": ("cudnn_recurrent",)}
#: Libraries that need LAPACK: MKL's static libraries (pip install mkl-static mkl-include).
ON_LAPACK = ("cublas", "cusolver")


def roots(given: list[Path]) -> list[Path]:
    """Return the parent folders of the ``include`` folders of toolkits and packages."""
    found = [*given]
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            found.append(Path(os.environ[variable]))
    site = Path(sysconfig.get_path("purelib")) / "nvidia"
    found += [site / part for part in ("cu13", "cudnn", "nccl")]
    found += [Path("/usr/local/cuda"), *sorted(Path("/usr/local").glob("cuda-13*"), reverse=True), Path("/usr")]
    return found


def folder_of(header: str, among: list[Path]) -> Path:
    """Return the include folder that contains a header."""
    for root in among:
        for folder in ("include", "include/cccl", "targets/x86_64-linux/include", "cccl"):
            if (root / folder / header).is_file():
                return root / folder
    raise SystemExit(
        f"{header} was not found: install CUDA 13's headers (pip install nvidia-cuda-runtime nvidia-cuda-cccl …), or give --nvidia FOLDER"
    )


def headers(given: list[Path], folder: Path) -> list[Path]:
    """Return the include folders. Of the libraries, only their own headers are used."""
    among = roots(given)
    links = folder / "library_headers"
    links.mkdir(parents=True, exist_ok=True)
    for first, pattern in (("cublasLt.h", "cublas*.h"), ("cufft.h", "cufft*.h"), ("cusolverDn.h", "cusolver*.h"), ("cusparse.h", "cusparse*.h"), ("cudnn.h", "cudnn*.h"), ("nccl.h", "nccl*.h")):  # fmt: skip
        for header in folder_of(first, among).glob(pattern):
            link = links / header.name
            if not link.is_symlink():
                link.symlink_to(header)
    return [folder_of("cuda_runtime_api.h", among), folder_of("cuda/std/complex", among), links]


def families(sources: list[Path]) -> str:
    """Return the file that CMakeLists.txt generates to register the families."""
    names = [path.stem for path in sources if path.parts[0] == "kernels" and "." not in path.stem]
    declared = "".join(f"void register_{name}(KernelTable& table);\n" for name in names)
    called = "".join(f"  register_{name}(table);\n" for name in names)
    return (
        f'#include "families.hpp"\nnamespace candelabra::cuda {{\n{declared}'
        f"void register_families(KernelTable& table) {{\n{called}}}\n}}  // namespace candelabra::cuda\n"
    )


def write_changed(path: Path, text: str) -> None:
    """Write a file whose text changed; one that did not keeps its time, by which Ninja goes."""
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)


class Rules:
    """The lines of a ``build.ninja``, and the targets that they build."""

    def __init__(self, folder: Path, given: argparse.Namespace) -> None:
        self.folder = folder
        self.targets: list[str] = []
        self.ccache = None if given.no_ccache else shutil.which("ccache")
        compiler = " ".join(filter(None, [self.ccache, given.compiler]))
        self.lines = [
            f"builddir = {folder}",
            f"rule compile\n  command = {compiler} $flags -MD -MF $out.d -c $in -o $out\n  depfile = $out.d\n  deps = gcc\n  description = compile $what",
            f"rule link\n  command = {given.compiler} -shared {given.flags} $in -o $out $libraries\n  description = link $out",
            f"rule program\n  command = {given.compiler} {given.flags} $in -o $out $libraries\n  description = link $out",
        ]

    def compile(self, source: Path, name: str, flags: str, after: str = "") -> str:
        """Compile a source, once another target is there if one is given; return the object."""
        out = f"{self.folder}/objects/{name}.o"
        self.lines.append(
            f"build {out}: compile {source}{f' | {after}' if after else ''}\n  flags = {flags}\n  what = {name}"
        )
        return out

    def precompile(self, language: str, flags: str) -> str:
        """Precompile the header of common includes; return its form that g++ finds by itself."""
        header = self.folder / "prelude.hpp"
        write_changed(header, f'#include "{language}"\n#include "runtime/launch.hpp"\n')
        self.lines.append(
            f"build {header}.gch: compile {header}\n  flags = {flags} -x c++-header\n  what = prelude.hpp"
        )
        return f"{header}.gch"

    def link(self, rule: str, out: Path, given: str, libraries: str) -> None:
        """Link a library (``link``) or a program (``program``), which becomes a target."""
        self.lines.append(f"build {out}: {rule} {given}\n  libraries = {libraries}")
        self.targets.append(os.fspath(out))


def add_kernels(rules: Rules, sources: list[Path], code: Path, flags: str, strict: bool) -> str:
    """Compile the translated sources of the backend; return the objects."""
    language = "strict.hpp" if strict else "cuda_language.hpp"
    prelude, precompiled = f"-x c++ -include {language}", ""
    if rules.ccache is None:
        # These headers take two thirds of the compile time of most kernels. ccache does not cache
        # compilations with precompiled headers.
        precompiled = rules.precompile(language, flags)
        prelude = f"-Winvalid-pch -x c++ -include {rules.folder}/prelude.hpp"
    objects = []
    for path in sources:
        source = path if path.is_absolute() else code / path
        name = str(path.name if path.is_absolute() else path).replace("/", "_")
        if path.suffix == ".cu":
            objects.append(rules.compile(source, name, f"{flags} {prelude}", precompiled))
        else:
            objects.append(rules.compile(source, name, flags))
    return " ".join(objects)


def add_libraries(rules: Rules, site: Path, runtime: Path, flags: str) -> None:
    """Build the libraries that replace NVIDIA's, where what they need is installed."""
    for name, place in LIBRARIES.items():
        source = HERE / "libraries" / f"{name}.cpp"
        if not source.is_file():
            continue
        own = flags
        libraries = f"{runtime} -Wl,-rpath,{runtime.parent} -Wl,-soname,{Path(place).name}"
        if name in ON_LAPACK:
            lapack = Path(sys.prefix) / "lib"
            if not (lapack / "libmkl_core.a").is_file():
                print(f"without {name}: {lapack} has no MKL (pip install mkl-static mkl-include)")
                continue
            own += f" -isystem {Path(sys.prefix) / 'include'}"
            parts = " ".join(f"{lapack}/libmkl_{part}.a" for part in ("intel_lp64", "sequential", "core"))
            libraries += f" -Wl,--start-group {parts} -Wl,--end-group -Wl,--exclude-libs,ALL -lpthread -lm -ldl"
        made = " ".join(
            rules.compile(HERE / "libraries" / f"{part}.cpp", f"library_{part}", own)
            for part in (name, *FURTHER.get(name, ()))
        )
        rules.link("link", site / "nvidia" / place, f"{made} | {runtime}", libraries)


def add_faults(rules: Rules, runtime: Path, flags: str) -> None:
    """Build a program of kernels with faults, which tests the emulation itself."""
    faults = rules.folder / "faults.translated.cu"
    write_changed(faults, translated(HERE / "faults.cu", strict=True))
    made = rules.compile(faults, "faults", f"{flags} -x c++ -include strict.hpp")
    rules.link("program", rules.folder / "faults", f"{made} | {runtime}", f"{runtime} -Wl,-rpath,{runtime.parent}")


def write_rules(folder: Path, given: argparse.Namespace) -> list[str]:
    """Translate the sources and write ``build.ninja``; return the targets."""
    code = folder / "translated"
    sources = translate_folder(BACKEND / "src", code, given.strict)
    generated = folder / "families.cpp"
    write_changed(generated, families(sources))
    core_headers = folder / "core_headers"
    subprocess.run(
        [sys.executable, str(CORE / "tools" / "make_headers.py"), "--with-headers", str(core_headers)], check=True
    )
    include = " ".join(f"-isystem {path}" for path in headers(given.nvidia, folder))
    common = f"-std=gnu++20 -fPIC -g1 -fvisibility=hidden -fvisibility-inlines-hidden -fno-strict-aliasing -ffp-contract=off {given.flags}"
    kernels = f"-O1 -w {common} {given.architecture} -I{HERE / 'include'} -I{code} -I{core_headers} {include} -DCANDELABRA_VERSION='\"0.1.0\"' -DCANDELABRA_CUDA_ARCHITECTURES='\"90\"' -DCANDELABRA_CUDA_PTX=0"
    own = f"-O2 {common} -Wall -Wextra -I{HERE / 'include'} -I{HERE / 'runtime'} {include} -fvisibility=default"
    rules = Rules(folder, given)
    objects = add_kernels(rules, [*sources, generated], code, kernels, given.strict)
    site = folder / "site"
    package = site / "candelabra_backend_cuda" / "lib"
    runtime = package / "libemulated_device.so"
    parts = " ".join(
        rules.compile(path, f"runtime_{path.stem}", own) for path in sorted((HERE / "runtime").glob("*.cpp"))
    )
    rules.link("link", runtime, parts, "-Wl,-soname,libemulated_device.so -Wl,-z,nodelete -lpthread -ldl")
    rules.link(
        "link",
        package / "libcandelabra_cuda.so",
        f"{objects} | {runtime}",
        f"{runtime} -Wl,-rpath,'$$ORIGIN' -Wl,--no-undefined -Wl,--version-script,{BACKEND / 'src' / 'exports.map'} -lpthread -ldl",
    )
    add_libraries(rules, site, runtime, f"{own} {given.architecture}")
    add_faults(rules, runtime, kernels)
    (folder / "build.ninja").write_text("\n".join(rules.lines) + "\n")
    return rules.targets


def lay_out(site: Path) -> None:
    """Put the Python packages beside the library, with what pip would write of them."""
    package = site / "candelabra_backend_cuda"
    package.mkdir(parents=True, exist_ok=True)
    for path in (BACKEND / "python" / "candelabra_backend_cuda").iterdir():
        if path.suffix == ".py" or path.name == "py.typed":
            shutil.copy2(path, package / path.name)
    shutil.rmtree(site / "candelabra", ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(BACKEND / "python" / "candelabra", site / "candelabra", ignore=ignored)
    information = site / "candelabra_backend_cuda-0.1.0.dist-info"
    information.mkdir(exist_ok=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: candelabra-backend-cuda\nVersion: 0.1.0\n")
    # No probe: the emulated driver is not the one that candelabra.cuda.presence asks.
    entry = "cuda = candelabra_backend_cuda\n"
    (information / "entry_points.txt").write_text(f"[candelabra.backends]\n{entry}\n[candelabra.accelerators]\n{entry}")


def main() -> int:
    """Build; return Ninja's status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where everything goes; PYTHONPATH is its site/")
    parser.add_argument(
        "--nvidia", type=Path, action="append", default=[], help="a folder with include/ of a toolkit or a library"
    )
    parser.add_argument("--compiler", default=os.environ.get("CXX", "g++"))
    parser.add_argument("--architecture", default="-march=x86-64-v3" if os.uname().machine == "x86_64" else "")
    parser.add_argument("--flags", default="", help="for all that is compiled and linked, such as -fsanitize=undefined")
    parser.add_argument(
        "--strict",
        action="store_true",
        help="kernels look for shared memory read before it is written, and blocks beyond __launch_bounds__",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--no-ccache", action="store_true")
    parser.add_argument("--only", default="", help="compile only the sources with this in their name, and link nothing")
    given = parser.parse_args()
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    targets = write_rules(folder, given)
    ninja = shutil.which("ninja", path=os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")]))
    if ninja is None:
        raise SystemExit("Ninja was not found: pip install ninja")
    if given.only:
        rules = (folder / "build.ninja").read_text().splitlines()
        targets = [
            line.split()[1].rstrip(":")
            for line in rules
            if line.startswith("build ") and ".o:" in line and given.only in line.split()[1]
        ]
    status = subprocess.run(
        [ninja, "-C", os.fspath(folder), "-j", str(given.jobs), "-k", "0", *targets], check=False
    ).returncode
    lay_out(folder / "site")
    return status


if __name__ == "__main__":
    sys.exit(main())
