"""Backends as plugins: what is found, loaded, refused, and what stays usable. Each case runs in a
process of its own, with fake distributions on its path, made as pip would install them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest

import candelabra

# Host memory and one kernel in Python: a backend that anybody could write.
WORKING = """
    from candelabra.backends import hookimpl

    @hookimpl
    def candelabra_register_backend(registrar):
        assert registrar.device_type == "{device}"
        registrar.kernel("fill_", fill)

    def fill(out, self, value):
        memory = memoryview(out).cast("B").cast("f")
        for i in range(len(memory)):
            memory[i] = value
"""


class Installed:
    """A folder that looks like site-packages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def distribution(
        self, name: str, version: str, device: str, module: str, source: str, object_: str = "", accelerator: str = ""
    ) -> None:
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        target = f"{module}:{object_}" if object_ else module
        declared = f"[candelabra.accelerators]\n{device} = {accelerator}\n" if accelerator else ""
        (info / "entry_points.txt").write_text(f"[candelabra.backends]\n{device} = {target}\n{declared}")
        (self.folder / f"{module}.py").write_text(textwrap.dedent(source.replace("{device}", device)))

    def run(self, code: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
        # -S and a path of our own: nothing but tensor-core, pluggy and the fakes, whatever else is
        # installed beside them.
        path = [str(self.folder), str(self.alone())]
        kept = {
            name: os.environ[name]
            for name in ("PATH", "LD_PRELOAD", "ASAN_OPTIONS", "UBSAN_OPTIONS")
            if name in os.environ
        }
        return subprocess.run(
            [sys.executable, "-S", *options, *(["-c", textwrap.dedent(code)] if code else [])],
            env={"PYTHONPATH": os.pathsep.join(path), **kept, **environment},
            capture_output=True,
            text=True,
            timeout=60,
        )

    def alone(self) -> Path:
        """Return a folder with pluggy and what tensor-core itself brings, but no other
        distribution.
        """
        import pluggy

        from candelabra.assembly import SUBPACKAGES

        folder = self.folder / "alone"
        if not folder.exists():
            (folder / "candelabra").mkdir(parents=True)
            (folder / "pluggy").symlink_to(Path(pluggy.__file__).parent)
            for item in Path(candelabra.__file__).parent.iterdir():
                if item.name not in SUBPACKAGES:
                    (folder / "candelabra" / item.name).symlink_to(item)
        return folder

    def check(self, code: str) -> str:
        done = self.run(code)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path)


def test_import_without_any_backend(installed):
    out = installed.check("""
        import candelabra as c
        assert c.float32.itemsize == 4 and c.Size([2, 3]).numel() == 6
        try:
            c.ones(2)
        except c.BackendError as error:
            print(error)
        assert issubclass(c.BackendError, RuntimeError)
    """)
    assert "no backend for device 'cpu' is installed: pip install candelabra-backend-cpu" in out
    assert "no backend is installed" in out


def test_a_python_backend_computes(installed):
    installed.distribution("acme-backend", "1.2", "acme", "acme_backend", WORKING)
    out = installed.check("""
        import sys
        import candelabra as c
        assert "acme_backend" not in sys.modules and "pluggy" not in sys.modules
        x = c.full((3,), 2.5, device="acme")
        assert "acme_backend" in sys.modules
        print(x, x.device, x.tolist())
        print(c.backends.device_count("acme"), c.backends.is_available("acme"), c.backends.is_available("cuda"))
    """)
    assert "tensor([2.5000, 2.5000, 2.5000], device='acme') acme [2.5, 2.5, 2.5]" in out
    assert out.splitlines()[-1] == "1 True False"


def test_installed_plugins_are_looked_up_once_until_the_path_changes(installed):
    installed.distribution("acme-backend", "1.2", "acme", "acme_backend", "")
    out = installed.check("""
        import importlib.metadata, pathlib, sys
        import candelabra as c
        asked, plain = [], importlib.metadata.entry_points
        importlib.metadata.entry_points = lambda **names: (asked.append(names), plain(**names))[1]
        c.backends.installed().clear()
        print(sorted(c.backends.installed()), len(asked))
        info = pathlib.Path(sys.path[1], "late-1.0.dist-info")
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\\nName: late\\nVersion: 1.0\\n")
        (info / "entry_points.txt").write_text("[candelabra.backends]\\nlate = late\\n")
        print(sorted(c.backends.installed()), len(asked))
    """)
    assert out.splitlines() == ["['acme'] 1", "['acme', 'late'] 2"]


def test_no_such_device_names_those_there_are(installed):
    installed.distribution("acme-backend", "1.2", "acme", "acme_backend", WORKING)
    out = installed.check("""
        import candelabra as c
        for device in ("acne", "cuda", "cpu"):
            try:
                c.empty(2, device=device)
            except c.BackendError as error:
                print(error)
        print(c.full((1,), 1.0, device="acme").item())
    """)
    first, second, third, value = out.splitlines()
    assert "device 'acne'" in first and "installed device types: acme" in first
    assert "pip install candelabra-backend-cuda" in second
    assert "pip install candelabra-backend-cpu" in third
    assert value == "1.0"


def test_a_plugin_that_fails_to_import(installed):
    installed.distribution("acme-backend", "1.2", "acme", "acme_backend", WORKING)
    installed.distribution("broken-backend", "0.3", "broken", "broken_backend", "import missing_library\n")
    out = installed.check("""
        import candelabra as c
        for attempt in range(2):
            try:
                c.empty(2, device="broken")
            except c.BackendError as error:
                print(type(error.__cause__).__name__, error)
        print(c.full((1,), 1.0, device="acme").item())
    """)
    first, second, value = out.splitlines()
    assert first == second
    assert first.startswith(
        "ModuleNotFoundError the backend for device 'broken' (broken-backend 0.3) could not be loaded"
    )
    assert "No module named 'missing_library'" in first
    assert value == "1.0"


def test_a_failed_plugin_is_tried_again(installed):
    installed.distribution(
        "late-backend", "1", "late", "late_backend", "import os\nos.environ['READY']\n" + textwrap.dedent(WORKING)
    )
    out = installed.check("""
        import os
        import candelabra as c
        try:
            c.empty(2, device="late")
        except c.BackendError as error:
            print("KeyError" in str(error))
        os.environ["READY"] = "1"
        print(c.full((1,), 3.0, device="late").item())
    """)
    assert out.split() == ["True", "3.0"]


def test_a_hook_that_raises_leaves_nothing_behind(installed):
    source = textwrap.dedent(WORKING) + "\n_hook = candelabra_register_backend\n"
    source = source.replace(
        'registrar.kernel("fill_", fill)', 'registrar.kernel("fill_", fill); raise OSError("no driver")'
    )
    installed.distribution("half-backend", "1", "half", "half_backend", source)
    out = installed.check("""
        import candelabra as c
        try:
            c.empty(2, device="half")
        except c.BackendError as error:
            print(error)
        print(c._C.loaded_device_types())
    """)
    assert "half-backend 1" in out and "OSError: no driver" in out
    assert out.splitlines()[-1] == "[]"


def test_two_distributions_for_one_device_type(installed):
    installed.distribution("acme-backend", "1.2", "acme", "acme_backend", WORKING)
    installed.distribution("zenith-backend", "4.5", "acme", "zenith_backend", WORKING)
    installed.distribution("other-backend", "1", "other", "other_backend", WORKING)
    out = installed.check("""
        import candelabra as c
        try:
            c.empty(2, device="acme")
        except c.BackendError as error:
            print(error)
        print(c.full((1,), 1.0, device="other").item())
    """)
    message, value = out.splitlines()
    assert "acme-backend 1.2" in message and "zenith-backend 4.5" in message and "pip uninstall" in message
    assert value == "1.0"


def test_the_same_distribution_twice_on_the_path(installed, tmp_path):
    installed.distribution("acme-backend", "1.2", "acme", "acme_backend", WORKING)
    again = tmp_path / "again"
    again.mkdir()
    other = Installed(again)
    other.distribution("acme-backend", "1.2", "acme", "acme_backend", WORKING)
    out = installed.check(f"""
        import sys
        sys.path.append({str(again)!r})
        import candelabra as c
        print(c.full((1,), 1.0, device="acme").item())
    """)
    assert out.strip() == "1.0"


def test_a_plugin_without_the_hook(installed):
    installed.distribution("empty-backend", "1", "empty", "empty_backend", "value = 1\n")
    out = installed.check("""
        import candelabra as c
        try:
            c.zeros(2, device="empty")
        except c.BackendError as error:
            print(error)
    """)
    assert "empty-backend 1 has no function candelabra_register_backend" in out


def test_a_plugin_that_registers_nothing(installed):
    source = (
        "from candelabra.backends import hookimpl\n@hookimpl\ndef candelabra_register_backend(registrar):\n    pass\n"
    )
    installed.distribution("idle-backend", "1", "idle", "idle_backend", source)
    out = installed.check("""
        import candelabra as c
        try:
            c.zeros(2, device="idle")
        except c.BackendError as error:
            print(error)
    """)
    assert "idle-backend 1 registered neither a library nor a kernel" in out


def test_an_operator_of_a_newer_core_is_a_warning(installed):
    source = textwrap.dedent(WORKING).replace(
        "registrar.kernel(", 'registrar.kernel("from_the_future", fill); registrar.kernel('
    )
    installed.distribution("new-backend", "9", "new", "new_backend", source)
    done = installed.run("""
        import candelabra as c
        print(c.full((1,), 1.0, device="new").item())
    """)
    assert done.returncode == 0 and done.stdout.strip() == "1.0"
    assert "RuntimeWarning" in done.stderr and "'from_the_future'" in done.stderr and "new-backend 9" in done.stderr


def test_an_operator_without_kernel_or_composite(installed):
    installed.distribution("acme-backend", "1.2", "acme", "acme_backend", WORKING)
    out = installed.check("""
        import candelabra as c
        x = c.full((2,), 1.0, device="acme")
        try:
            x.exp()
        except NotImplementedError as error:
            print(error)
        print(x.tolist())
    """)
    message, value = out.splitlines()
    assert "exp" in message and "acme" in message and value == "[1.0, 1.0]"


def test_a_kernel_that_raises(installed):
    source = textwrap.dedent(WORKING) + textwrap.dedent("""
        def fill(out, self, value):
            raise ValueError(f"cannot fill with {value}")
    """)
    installed.distribution("acme-backend", "1.2", "acme", "acme_backend", source)
    out = installed.check("""
        import candelabra as c
        try:
            c.full((200,), 4.0, device="acme")
        except ValueError as error:
            print(error)
        print(c.empty(2, device="acme").shape)
    """)
    assert out.splitlines() == ["cannot fill with 4.0", "candelabra.Size([2])"]


def test_tensors_on_two_devices_in_one_call(installed):
    installed.distribution("acme-backend", "1.2", "acme", "acme_backend", WORKING)
    installed.distribution("other-backend", "1", "other", "other_backend", WORKING)
    out = installed.check("""
        import candelabra as c
        x, y = c.full((2,), 1.0, device="acme"), c.full((2,), 1.0, device="other")
        try:
            x + y
        except RuntimeError as error:
            print(error)
    """)
    assert "same device" in out and "acme" in out and "other" in out and "add" in out


def test_a_missing_library_file(installed):
    source = """
        from candelabra.backends import hookimpl

        @hookimpl
        def candelabra_register_backend(registrar):
            registrar.library("/nowhere/libacme.so")
    """
    installed.distribution("acme-backend", "1.2", "acme", "acme_backend", source)
    out = installed.check("""
        import candelabra as c
        try:
            c.zeros(2, device="acme")
        except c.BackendError as error:
            print(error)
    """)
    assert "acme-backend 1.2" in out and "/nowhere/libacme.so" in out and "reinstall" in out


LIBRARY = """
#include <stdlib.h>
#include <string.h>
#include "candelabra/backend.h"
static int32_t allocate(int32_t d, cb_allocation *a) {
  a->address = aligned_alloc(64, (a->bytes + 63) / 64 * 64);
  return a->address ? CB_OK : CB_OUT_OF_MEMORY;
}
static void deallocate(int32_t d, void *m, uint64_t n) { free(m); }
static int32_t copy_in(int32_t d, const cb_memory *a, const void *b, uint64_t n, void *s) { memcpy(a->address, b, n); return CB_OK; }
static int32_t copy_out(int32_t d, void *a, const cb_memory *b, uint64_t n, void *s) { memcpy(a, b->address, n); return CB_OK; }
static int32_t fill(cb_call *call) {
  float *out = call->outputs[0].data;
  for (int64_t i = 0; i < call->outputs[0].numel; ++i) out[i] = (float)call->arguments[1].as.scalar->re;
  return CB_OK;
}
static int32_t fails(cb_call *call) { strcpy(call->error, "the fan stopped"); return CB_RUNTIME_ERROR; }
static const cb_kernel_entry kernels[] = {{"fill_", fill, 0, 0, 0}, {"exp", fails, 0, 0, 0}, {"of_tomorrow", fails, 0, 0, 0}};
static const cb_backend table = {
  .size = TABLE_SIZE, .abi_major = MAJOR, .abi_minor = MINOR, .device_type = "acme", .version = "1.2",
  .capabilities = CB_CAP_HOST_MEMORY, .kernels = kernels, .kernel_count = 3, .kernel_entry_size = sizeof(cb_kernel_entry),
  .allocate = allocate, .deallocate = deallocate, .copy_from_host = copy_in, .copy_to_host = copy_out};
const cb_backend *candelabra_backend(const cb_host *host) { return &table; }
"""
PLUGIN = """
from pathlib import Path
from candelabra.backends import hookimpl

@hookimpl
def candelabra_register_backend(registrar):
    registrar.library(Path(__file__).with_name("libacme.so"))
"""


def compiled(
    installed: Installed, major: str = "CB_ABI_MAJOR", minor: str = "CB_ABI_MINOR", size: str = "sizeof(cb_backend)"
) -> None:
    compiler = next(
        (
            c
            for c in ("cc", "gcc", "clang")
            if any((Path(p) / c).exists() for p in os.environ["PATH"].split(os.pathsep))
        ),
        None,
    )
    if compiler is None:
        pytest.skip("no C compiler")
    include = next(
        (
            str(p)
            for folder in candelabra.__path__
            for p in (Path(folder) / "include", Path(folder).parents[1] / "include")
            if p.exists()
        ),
        None,
    )
    assert include, "the header of backends is not where the package is"
    source = installed.folder / "acme.c"
    source.write_text(LIBRARY)
    subprocess.run(
        [compiler, "-std=c11", "-shared", "-fPIC", f"-DMAJOR={major}", f"-DMINOR={minor}", f"-DTABLE_SIZE={size}", "-I", include,
         "-o", str(installed.folder / "libacme.so"), str(source)],
        check=True,
    )  # fmt: skip
    installed.distribution("acme-backend", "1.2", "acme", "acme_backend", PLUGIN)


def test_a_compiled_backend(installed):
    compiled(installed)
    out = installed.check("""
        import candelabra as c
        x = c.full((2,), 2.0, device="acme")
        print(x.tolist())
        try:
            x.exp()
        except RuntimeError as error:
            print(error)
        print(c.backends.memory_statistics("acme")["allocated"])
        c.backends.empty_cache("acme")
        try:
            c.backends.set_memory_limit("acme", 10)
        except NotImplementedError as error:
            print(error)
    """)
    values, failure, statistics, limit = out.splitlines()
    assert values == "[2.0, 2.0]" and "exp" in failure and "the fan stopped" in failure
    assert statistics == "0" and "set_memory_limit" in limit


@pytest.mark.parametrize("major,advice", [("3", "candelabra-tensor-core"), ("1", "acme-backend")])
def test_another_abi_major_is_refused(installed, major, advice):
    compiled(installed, major=major)
    out = installed.check("""
        import candelabra as c
        try:
            c.zeros(2, device="acme")
        except c.BackendVersionError as error:
            print(error)
        assert issubclass(c.BackendVersionError, c.BackendError)
    """)
    assert f"ABI {major}." in out and f"ABI {candelabra._C.ABI_MAJOR}.{candelabra._C.ABI_MINOR}" in out
    assert f"pip install --upgrade {advice}" in out


def test_an_older_table_works(installed):
    # As compiled against a header that ended after copy_to_host: everything behind it gets
    # defaults.
    compiled(installed, size="offsetof(cb_backend, copy_within)")
    out = installed.check("""
        import candelabra as c
        x = c.full((2,), 2.0, device="acme")
        c.synchronize("acme") if hasattr(c, "synchronize") else c.backends.synchronize("acme")
        print(x.tolist(), c.backends.memory_statistics("acme")["reserved"])
    """)
    assert out.strip() == "[2.0, 2.0] 0"


def test_a_library_for_another_device_type(installed):
    compiled(installed)
    info = next(installed.folder.glob("*.dist-info"))
    (info / "entry_points.txt").write_text("[candelabra.backends]\nother = acme_backend\n")
    out = installed.check("""
        import candelabra as c
        try:
            c.zeros(2, device="other")
        except c.BackendError as error:
            print(error)
    """)
    assert "'acme'" in out and "'other'" in out and "acme-backend 1.2" in out


def test_python_kernels_on_top_of_a_library(installed):
    compiled(installed)
    (installed.folder / "acme_backend.py").write_text(
        PLUGIN + "    registrar.kernel('neg', lambda out, self: out.fill_(-9.0))\n"
    )
    out = installed.check("""
        import candelabra as c
        print((-c.full((2,), 2.0, device="acme")).tolist())
    """)
    assert out.strip() == "[-9.0, -9.0]"


def test_the_table_of_backends(installed):
    compiled(installed)
    installed.distribution("broken-backend", "0.3", "broken", "broken_backend", "import missing_library\n")
    done = installed.run("", "-m", "candelabra.backends")
    assert done.returncode == 0, done.stderr
    assert "acme: acme-backend 1.2" in done.stdout
    assert f"ABI          {candelabra._C.ABI_MAJOR}.{candelabra._C.ABI_MINOR} (compiled kernels)" in done.stdout
    assert "kernels      2 of " in done.stdout and "have a decomposition" in done.stdout
    assert "tier         none; 45 kernels are missing for required" in done.stdout
    assert "broken: broken-backend 0.3" in done.stdout and "missing_library" in done.stdout


def test_the_table_without_backends(installed):
    done = installed.run("", "-m", "candelabra.backends")
    assert done.returncode == 1 and "pip install candelabra-backend-cpu" in done.stdout


@pytest.mark.parametrize(
    "statement,error",
    [
        ("import candelabra.nn", "MissingPackageError"),
        ("candelabra.nn", "AttributeError"),
        ("from candelabra import nn", "MissingPackageError"),
        ("import candelabra.nn.functional", "MissingPackageError"),
    ],
)
def test_missing_packages_say_what_to_install(installed, statement, error):
    done = installed.run(f"""
        import sys
        import candelabra
        {statement}
    """)
    assert done.returncode == 1
    assert error in done.stderr and "pip install candelabra-nn" in done.stderr


def test_asking_whether_a_package_is_there_is_no_error(installed):
    out = installed.check("""
        import importlib.util
        import candelabra
        print(importlib.util.find_spec("candelabra.nn"), hasattr(candelabra, "nn"), isinstance(candelabra.assembly.MissingPackageError("nn"), ImportError))
    """)
    assert out.split() == ["None", "False", "True"]


def test_backward_without_autograd_says_what_to_install(installed):
    installed.distribution("acme-backend", "1.2", "acme", "acme_backend", WORKING)
    done = installed.run("""
        import candelabra
        x = candelabra.full((1,), 1.0, device="acme", requires_grad=True)
        x.backward()
    """)
    assert done.returncode == 1
    assert "ModuleNotFoundError" in done.stderr and "pip install candelabra-autograd" in done.stderr


@pytest.mark.parametrize(
    ("use", "distribution"),
    [("x.__array_namespace__()", "candelabra-array-api"), ("candelabra.hub", "candelabra-utils")],
)
def test_what_other_packages_do_says_what_to_install(installed, use, distribution):
    installed.distribution("acme-backend", "1.2", "acme", "acme_backend", WORKING)
    done = installed.run(f"""
        import candelabra
        x = candelabra.full((1,), 1.0, device="acme")
        {use}
    """)
    assert done.returncode == 1
    assert "MissingPackageError" in done.stderr and f"pip install {distribution}" in done.stderr


def test_a_distribution_elsewhere_adds_a_subpackage(installed, tmp_path):
    package = tmp_path / "candelabra" / "nn"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("answer = 42\n")
    out = installed.check("""
        import candelabra
        print(candelabra.nn.answer, candelabra.__version__)
    """)
    assert out.split()[0] == "42"


def test_registrar_refuses_bad_arguments():
    from candelabra.backends.registrar import Registrar

    registrar = Registrar("acme", "acme-backend 1.2")
    with pytest.raises(TypeError, match="callable"):
        registrar.kernel("add", 3)
    with pytest.raises(candelabra.BackendError, match="missing: /nowhere"):
        registrar.library("/nowhere")
    registrar.library(sysconfig.get_paths()["stdlib"])
    with pytest.raises(candelabra.BackendError, match="two libraries"):
        registrar.library(sysconfig.get_paths()["stdlib"])
    with pytest.warns(RuntimeWarning, match="from_the_future"):
        registrar.kernel("from_the_future", print)


def test_memory_limit_must_not_be_negative():
    with pytest.raises(ValueError, match="negative"):
        candelabra.backends.set_memory_limit("cpu", -5)
