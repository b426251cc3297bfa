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


def write_precompiled(folder: Path, language: str) -> str:
    """Write the header of common includes, and return the name of its precompiled form, which g++
    finds by itself.
    """
    header = folder / "prelude.hpp"
    text = f'#include "{language}"\n#include "runtime/launch.hpp"\n'
    if not header.is_file() or header.read_text() != text:
        header.write_text(text)
    return f"{header}.gch"


def write_rules(folder: Path, given: argparse.Namespace) -> list[str]:
    """Translate the sources and write ``build.ninja``; return the targets."""
    code = folder / "translated"
    sources = translate_folder(BACKEND / "src", code, given.strict)
    generated = folder / "families.cpp"
    text = families(sources)
    if not generated.is_file() or generated.read_text() != text:
        generated.write_text(text)
    core_headers = folder / "core_headers"
    subprocess.run(
        [sys.executable, str(CORE / "tools" / "make_headers.py"), "--with-headers", str(core_headers)], check=True
    )
    include = " ".join(f"-isystem {path}" for path in headers(given.nvidia, folder))
    ccache = None if given.no_ccache else shutil.which("ccache")
    compiler = " ".join(filter(None, [ccache, given.compiler]))
    common = f"-std=gnu++20 -fPIC -g1 -fvisibility=hidden -fvisibility-inlines-hidden -fno-strict-aliasing -ffp-contract=off {given.flags}"
    site = folder / "site"
    package = site / "candelabra_backend_cuda" / "lib"
    kernels = f"-O1 -w {common} {given.architecture} -I{HERE / 'include'} -I{code} -I{core_headers} {include} -DCANDELABRA_VERSION='\"0.1.0\"' -DCANDELABRA_CUDA_ARCHITECTURES='\"90\"' -DCANDELABRA_CUDA_PTX=0"
    own = f"-O2 {common} -Wall -Wextra -I{HERE / 'include'} -I{HERE / 'runtime'} {include}"
    lines = [
        f"builddir = {folder}",
        f"rule compile\n  command = {compiler} $flags -MD -MF $out.d -c $in -o $out\n  depfile = $out.d\n  deps = gcc\n  description = compile $what",
        f"rule link\n  command = {given.compiler} -shared {given.flags} $in -o $out $libraries\n  description = link $out",
        f"rule program\n  command = {given.compiler} {given.flags} $in -o $out $libraries\n  description = link $out",
    ]

    def compile_to(source: Path, name: str, flags: str, after: str = "") -> str:
        out = f"{folder}/objects/{name}.o"
        lines.append(
            f"build {out}: compile {source}{f' | {after}' if after else ''}\n  flags = {flags}\n  what = {name}"
        )
        return out

    language = "strict.hpp" if given.strict else "cuda_language.hpp"
    prelude, precompiled = f"-x c++ -include {language}", ""
    if ccache is None:
        # These headers take two thirds of the compile time of most kernels. ccache does not cache
        # compilations with precompiled headers.
        precompiled = write_precompiled(folder, language)
        lines.append(
            f"build {precompiled}: compile {folder}/prelude.hpp\n  flags = {kernels} -x c++-header\n  what = prelude.hpp"
        )
        prelude = f"-Winvalid-pch -x c++ -include {folder}/prelude.hpp"
    objects = []
    for path in [*sources, generated]:
        source = path if path.is_absolute() else code / path
        name = str(path.name if path.is_absolute() else path).replace("/", "_")
        if path.suffix == ".cu":
            objects.append(compile_to(source, name, f"{kernels} {prelude}", precompiled))
        else:
            objects.append(compile_to(source, name, kernels))
    runtime = package / "libemulated_device.so"
    parts = [
        compile_to(path, f"runtime_{path.stem}", f"{own} -fvisibility=default")
        for path in sorted((HERE / "runtime").glob("*.cpp"))
    ]
    lines.append(
        f"build {runtime}: link {' '.join(parts)}\n  libraries = -Wl,-soname,libemulated_device.so -Wl,-z,nodelete -lpthread -ldl"
    )
    backend = package / "libcandelabra_cuda.so"
    lines.append(
        f"build {backend}: link {' '.join(objects)} | {runtime}\n  libraries = {runtime} -Wl,-rpath,'$$ORIGIN' -Wl,--no-undefined -Wl,--version-script,{BACKEND / 'src' / 'exports.map'} -lpthread -ldl"
    )
    targets = [os.fspath(runtime), os.fspath(backend)]
    for name, place in LIBRARIES.items():
        source = HERE / "libraries" / f"{name}.cpp"
        if not source.is_file():
            continue
        flags, libraries = (
            f"{own} -fvisibility=default {given.architecture}",
            f"{runtime} -Wl,-rpath,{package} -Wl,-soname,{Path(place).name}",
        )
        if name in ON_LAPACK:
            lapack = Path(sys.prefix) / "lib"
            if not (lapack / "libmkl_core.a").is_file():
                print(f"without {name}: {lapack} has no MKL (pip install mkl-static mkl-include)")
                continue
            flags += f" -isystem {Path(sys.prefix) / 'include'}"
            parts = " ".join(f"{lapack}/libmkl_{part}.a" for part in ("intel_lp64", "sequential", "core"))
            libraries += f" -Wl,--start-group {parts} -Wl,--end-group -Wl,--exclude-libs,ALL -lpthread -lm -ldl"
        out = site / "nvidia" / place
        made = " ".join(
            compile_to(HERE / "libraries" / f"{part}.cpp", f"library_{part}", flags)
            for part in (name, *FURTHER.get(name, ()))
        )
        lines.append(f"build {out}: link {made} | {runtime}\n  libraries = {libraries}")
        targets.append(os.fspath(out))
    # A program of kernels with faults, which tests the emulation itself.
    faults = folder / "faults.translated.cu"
    text = translated(HERE / "faults.cu", strict=True)
    if not faults.is_file() or faults.read_text() != text:
        faults.write_text(text)
    made = compile_to(faults, "faults", f"{kernels} -x c++ -include strict.hpp")
    lines.append(f"build {folder}/faults: program {made} | {runtime}\n  libraries = {runtime} -Wl,-rpath,{package}")
    targets.append(f"{folder}/faults")
    (folder / "build.ninja").write_text("\n".join(lines) + "\n")
    return targets


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
    (information / "entry_points.txt").write_text("[candelabra.backends]\ncuda = candelabra_backend_cuda\n")


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
