"""Files through both libraries: what PyTorch writes is read here, and what is written here is read
by PyTorch, safetensors and NumPy.

    python tests/parity_files

Every dtype, views and expanded tensors, storages that are shared, parameters, state dicts of
modules and optimizers, plain data, whole modules and other objects; archives with and without
checksums, of every protocol of pickles, mapped and read, and the format from before version 1.6.
"""

from __future__ import annotations

import collections
import contextlib
import importlib.util
import io
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
import whole_objects

import candelabra

NAMES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64",
    "complex64", "complex128",
]  # fmt: skip


def content() -> dict[str, Any]:
    """Return one object of each kind, as PyTorch objects."""
    base = torch.arange(24.0).reshape(2, 3, 4)
    module = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Linear(4, 2))
    optimizer = torch.optim.AdamW(module.parameters())
    module(torch.randn(2, 1, 6, 6)).sum().backward()
    optimizer.step()
    return {
        "base": base, "view": base[:, 1], "transposed": base.transpose(0, 2), "expanded": torch.ones(2, 1).expand(2, 5),
        "empty": torch.zeros(0, 3), "scalar": torch.tensor(3), "channels_last": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        "dtypes": [torch.tensor([0, 1, 2]).to(getattr(torch, name)) for name in NAMES],
        "parameter": torch.nn.Parameter(torch.ones(2)), "frozen": torch.nn.Parameter(torch.ones(2), requires_grad=False),
        "leaf": torch.ones(2, requires_grad=True), "module": module.state_dict(), "optimizer": optimizer.state_dict(),
        "conjugate": torch.tensor([1 + 2j, 3j]).conj(), "negative": torch.tensor([1 + 2j]).conj().imag,
        "plain": [None, True, -(2**80), 2.5, float("inf"), 1 + 2j, "ß", b"\xff\x00", b"", bytearray(b"xy"), (1, (2,)), {1: 2, (1, "a"): []}],
        "sets": [{1, 2}, frozenset([3]), collections.Counter("aab")],
        "own": [torch.float16, torch.device("cpu"), torch.Size([1, 2])],
    }  # fmt: skip


def compare(mine: Any, theirs: Any, place: str = "file") -> int:
    """Raise if an object of Candelabra differs from PyTorch's; return the number of tensors."""
    if isinstance(theirs, torch.Tensor):
        # Lazy conjugates are computed here.
        stride = theirs.stride() if not theirs.is_conj() and not theirs.is_neg() else mine.stride()
        assert tuple(mine.shape) == tuple(theirs.shape) and mine.stride() == stride, place
        assert str(theirs.dtype) == f"torch.{mine.dtype.name}" and mine.requires_grad == theirs.requires_grad, place
        assert isinstance(mine, candelabra.nn.Parameter) == isinstance(theirs, torch.nn.Parameter), place
        dense = theirs.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format).reshape(-1)
        own = mine.detach().clone(memory_format=candelabra.contiguous_format).reshape(-1)
        assert not dense.numel() or dense.view(torch.uint8).tolist() == own.view(candelabra.uint8).tolist(), place
        return 1
    if isinstance(theirs, dict):
        assert type(mine).__name__ == type(theirs).__name__ and list(mine) == list(theirs), place
        assert getattr(mine, "_metadata", None) == getattr(theirs, "_metadata", None), place
        return sum(compare(mine[key], theirs[key], f"{place}[{key!r}]") for key in theirs)
    if isinstance(theirs, (torch.dtype, torch.device)):
        assert str(theirs).removeprefix("torch.") == str(mine).removeprefix("candelabra."), place
        return 0
    if isinstance(theirs, (list, tuple)):
        assert type(mine).__name__ == type(theirs).__name__ and len(mine) == len(theirs), place
        return sum(compare(one, other, f"{place}[{number}]") for number, (one, other) in enumerate(zip(mine, theirs)))
    assert type(mine) is type(theirs) and mine == theirs, place
    return 0


@contextlib.contextmanager
def without_checksums() -> Any:
    """Make both libraries write no checksums."""
    torch.serialization.set_crc32_options(False)
    candelabra.serialization.set_crc32_options(False)
    yield
    torch.serialization.set_crc32_options(True)
    candelabra.serialization.set_crc32_options(True)


def from_pytorch(path: Path, theirs: dict[str, Any]) -> None:
    """Check that Candelabra reads what PyTorch writes."""
    for number, options in enumerate(
        [{}, {"pickle_protocol": 4}, {"pickle_protocol": 5}, {"_use_new_zipfile_serialization": False}, "no checksums"]
    ):
        given = options if isinstance(options, dict) else {}
        held = theirs
        with without_checksums() if options == "no checksums" else contextlib.nullcontext():
            torch.save(held, path, **given)
        for mapped in (False, True) if number != 3 else (False,):
            found = candelabra.load(path, mmap=mapped)
            count = compare(found, held)
            if number != 3:
                assert found["view"].untyped_storage() is found["base"].untyped_storage()
            print(f"read {options}, mapped {mapped}: {count} tensors")


def to_pytorch(path: Path, theirs: dict[str, Any]) -> None:
    """Check that PyTorch reads what Candelabra writes, also without code."""
    file = io.BytesIO()
    torch.save(theirs, file)
    file.seek(0)
    mine = candelabra.load(file)
    # PyTorch's reader does not support frozen sets.
    mine["sets"][1] = set(mine["sets"][1])
    # A storage with several dtypes, which PyTorch does not write.
    mine["bits"] = [mine["base"].view(candelabra.int32), mine["base"].view(candelabra.uint16)]
    for options in ({"format": "pytorch"}, {"_use_new_zipfile_serialization": False}):
        held = {key: value for key, value in mine.items() if key != "bits" or "format" in options}
        candelabra.save(held, path, **options)
        for mapped in (False, True) if "format" in options else (False,):
            count = compare(held, torch.load(path, mmap=mapped, weights_only=True))
            print(f"written {options}, mapped {mapped}: {count} tensors")
        stream = io.BytesIO()
        candelabra.save(held, stream, **options)
        stream.seek(0)
        compare(held, torch.load(stream, weights_only=True))
    fresh = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Linear(4, 2))
    candelabra.save(mine["module"], path, format="pytorch")
    fresh.load_state_dict(torch.load(path))
    compare(mine["module"], fresh.state_dict())


def refused() -> None:
    """Check the errors for unsupported objects."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = {
            "sparse": torch.eye(2).to_sparse(), "quantized": torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8),
            "float8_e5m2": torch.ones(2).to(torch.float8_e5m2),
            "Linear": torch.nn.Linear(2, 2), "nested": torch.nested.nested_tensor([torch.ones(2)]), "storage": torch.ones(2).untyped_storage(),
        }  # fmt: skip
    for reason, value in cases.items():
        file = io.BytesIO()
        torch.save(value, file)
        message = ""
        try:
            candelabra.load(file)
        except candelabra.serialization.FileError as error:
            message = str(error)
        assert reason in message, f"{reason}: {message or 'loaded'}"
    print(f"refused: {', '.join(cases)}")


def with_safetensors(path: Path) -> None:
    """Check that the safetensors package reads our files, and Candelabra its files."""
    if importlib.util.find_spec("safetensors") is None:
        print("safetensors is not installed")
        return
    import safetensors.torch as theirs  # type: ignore[import-not-found, unused-ignore]

    held = {name: torch.tensor([[0, 1], [1, 1]]).to(getattr(torch, name)) for name in NAMES if name != "complex128"}
    theirs.save_file(held, path, {"epoch": "3"})
    compare(candelabra.safetensors.load_file(path), theirs.load_file(path))
    compare(candelabra.load(path), theirs.load_file(path))
    mine = {name: candelabra.tensor([[0, 1], [1, 1]]).to(getattr(candelabra, name)) for name in held}
    candelabra.safetensors.save_file(mine, path, {"epoch": "3"})
    found = theirs.load_file(path)
    compare({name: mine[name] for name in found}, found)
    assert theirs.load(candelabra.safetensors.save(mine)).keys() == found.keys()
    with theirs.safe_open(path, "pt") as file:
        assert file.metadata() == {"epoch": "3"}
    print(f"safetensors: {len(found)} dtypes both ways")


def with_numpy(path: Path) -> None:
    """Check arrays of every dtype in both directions."""
    for name in NAMES:
        if name != "bfloat16":
            array = np.arange(6).reshape(2, 3).astype(name)
            np.savez(path, x=array, y=array.T)
            found = candelabra.load(path)
            assert np.array_equal(found["x"].numpy(), array) and np.array_equal(found["y"].numpy(), array.T)
            candelabra.serialization.save_npz(path, **found)
            assert np.array_equal(np.load(path)["y"], array.T)
    print(f"NumPy: {len(NAMES) - 1} dtypes both ways")


def main() -> int:
    """Run all checks."""
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        theirs = content()
        from_pytorch(Path(folder, "x.pt"), theirs)
        to_pytorch(Path(folder, "y.pt"), theirs)
        refused()
        with_safetensors(Path(folder, "x.safetensors"))
        with_numpy(Path(folder, "x.npz"))
        whole_objects.modules()
        whole_objects.objects()
        whole_objects.skipped()
    return 0


if __name__ == "__main__":
    sys.exit(main())
