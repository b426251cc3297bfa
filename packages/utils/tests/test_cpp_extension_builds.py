"""Test builds of C and C++ operators: the cache, concurrent processes, and setup.py."""

import doctest
import importlib
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import candelabra
from candelabra.utils import cpp_extension
from candelabra.utils.cpp_extension import building

sys.path.insert(0, str(Path(__file__).parent))

from extensions import quick

pytestmark = [
    pytest.mark.host_only("the extensions are compiled for the CPU"),
    pytest.mark.usefixtures("extension_folder"),
]


SIMPLE = "int f(cb_tensor* o, const cb_tensor* x) { *(float*)o->data = NUMBER; return 0; }"


def test_what_was_built_is_found_again_and_what_changed_is_built(monkeypatch):
    runs = []
    run = building._run
    monkeypatch.setattr(building, "_run", lambda *given: (runs.append(given), run(*given)))

    def load(number, **options):
        return quick("testcache", SIMPLE.replace("NUMBER", number), ["f(Tensor x) -> Tensor"], **options)

    x = candelabra.ones(1)
    first = load("1")
    assert (first.f(x).item(), len(runs)) == (1.0, 2)
    assert load("1") is first
    assert len(runs) == 2
    second = load("2")
    assert (second.f(x).item(), first.f(x).item(), len(runs)) == (2.0, 1.0, 4)
    assert candelabra.ops.testcache.f is second.f
    third = load("2", extra_ldflags=["-Wl,-O1"])  # other flags give another library
    assert (third.__file__ != second.__file__, len(runs)) == (True, 6)


def test_headers_count(tmp_path):
    (tmp_path / "number with space.h").write_text("#define NUMBER 3\n")
    (tmp_path / "kernel.c").write_text('#include "candelabra/backend.h"\n#include "number with space.h"\n' + SIMPLE)
    options = {"functions": ["f(Tensor x) -> Tensor"], "extra_cflags": ["-O0"]}
    x = candelabra.ones(1)
    assert cpp_extension.load("testheader", tmp_path / "kernel.c", **options).f(x).item() == 3.0
    (tmp_path / "number with space.h").write_text("#define NUMBER 4\n")
    made = cpp_extension.load("testheader", [tmp_path / "kernel.c"], **options)
    assert made.f(x).item() == 4.0
    path = cpp_extension.load("testheader", [tmp_path / "kernel.c"], is_python_module=False, **options)
    assert path == made.__file__
    candelabra.ops.load_library(path)
    assert candelabra.ops.testheader.f(x).item() == 4.0


def test_several_files_in_two_languages(tmp_path):
    (tmp_path / "shared.h").write_text('#ifdef __cplusplus\nextern "C"\n#endif\nfloat of_c(float x);\n')
    (tmp_path / "part.c").write_text('#include "shared.h"\nfloat of_c(float x) { return x + 1; }\n')
    (tmp_path / "main.cpp").write_text(
        '#include "candelabra/extension.hpp"\n#include "shared.h"\nvoid next(float* out, const float* x) { *out = of_c(*x); }\n'
    )
    made = cpp_extension.load(
        "testfiles", [tmp_path / "part.c", tmp_path / "main.cpp"], functions=["next(Tensor x) -> Tensor"], build_directory=tmp_path,
        extra_cflags=["-O0"],
    )  # fmt: skip
    assert made.next(candelabra.ones(1)).item() == 2.0
    assert Path(made.__file__).is_relative_to(tmp_path)


PROGRAM = """
import os, sys
import candelabra
from candelabra.utils import cpp_extension
made = cpp_extension.load_inline("testrace", c_sources='''{source}''', functions=["f(Tensor x) -> Tensor"], extra_cflags=["-O0"], verbose=True)
print(made.f(candelabra.ones(1)).item(), made.__file__)
"""


def test_processes_that_build_the_same_wait_for_one_of_them(tmp_path):
    program = PROGRAM.replace("{source}", SIMPLE.replace("NUMBER", "5"))
    environment = os.environ | {"CANDELABRA_EXTENSIONS_DIR": str(tmp_path)}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    said = [process.communicate(timeout=300) for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], said
    assert len({out for out, _ in said}) == 1
    assert said[0][0].startswith("5.0 ")
    assert sum(" -shared " in err for _, err in said) == 1
    (folder,) = (tmp_path / "testrace").iterdir()
    assert sorted(path.suffix for path in folder.iterdir()) == ["", ".json", ".so"]
    assert json.loads((folder / "headers.json").read_text()) == []


def test_a_build_that_was_killed_leaves_nothing_in_the_way(tmp_path, monkeypatch):
    monkeypatch.setenv("CANDELABRA_EXTENSIONS_DIR", str(tmp_path))
    killed = (
        "import os, signal\nfrom candelabra.utils.cpp_extension import building\n"
        "building._run = lambda *given: os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    program = killed + PROGRAM.replace("{source}", SIMPLE.replace("NUMBER", "6"))
    assert subprocess.run([sys.executable, "-c", program], check=False, capture_output=True).returncode == -9
    made = quick("testrace", SIMPLE.replace("NUMBER", "6"), ["f(Tensor x) -> Tensor"])
    assert made.f(candelabra.ones(1)).item() == 6.0


def test_libraries_that_are_no_operators(tmp_path):
    (tmp_path / "broken.so").write_bytes(b"no library")
    with pytest.raises(OSError, match="could not be opened"):
        cpp_extension.load_library(tmp_path / "broken.so")
    with pytest.raises(RuntimeError, match="says nothing of operators"):
        cpp_extension.load_library(candelabra._C.__file__)


# ---- setup.py


SETUP = """
from setuptools import setup
from candelabra.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="waves", version="1", packages=["waves"],
    ext_modules=[CppExtension(
        "waves.kernels", ["kernels.c"], functions={"wave(Tensor x) -> Tensor": "Wave."}, define_macros=[("STEP", "2")], namespace="waves",
    )],
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=False)},
)
"""


def test_setup_builds_a_library_for_every_python(tmp_path):
    pytest.importorskip("setuptools")
    (tmp_path / "waves").mkdir()
    (tmp_path / "waves" / "__init__.py").write_text(
        textwrap.dedent("""
        from pathlib import Path
        from candelabra.utils.cpp_extension import load_library
        wave = load_library(Path(__file__).parent / "kernels.so").wave
        """)
    )
    (tmp_path / "kernels.c").write_text(
        '#include "candelabra/backend.h"\n'
        "int wave(cb_tensor* o, const cb_tensor* x) { *(float*)o->data = STEP * *(const float*)x->data; return CB_OK; }\n"
    )
    (tmp_path / "setup.py").write_text(SETUP)
    done = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = subprocess.run(
        [sys.executable, "-c", "import candelabra, waves; print(waves.wave(candelabra.ones(1)).item(), candelabra.ops.waves.wave.__doc__)"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.stdout == "2.0 Wave.\n", said.stderr
    with pytest.raises(TypeError, match="a function cannot be put into a library"):
        cpp_extension.CppExtension("x", [], shapes={"f": len})


def test_include_paths_are_of_the_core():
    assert Path(cpp_extension.include_paths()[0], "candelabra", "extension.hpp").is_file()
    assert cpp_extension.library_paths() == []
    with pytest.raises(NotImplementedError, match="for the CPU only"):
        cpp_extension.include_paths("cuda")


@pytest.mark.parametrize("module", ["building", "loading"])
def test_examples_run(module):
    result = doctest.testmod(importlib.import_module(f"candelabra.utils.cpp_extension.{module}"))
    assert result.attempted > 0
    assert result.failed == 0
