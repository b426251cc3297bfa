"""What importing the package brings, and what it leaves for later."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import pytest

import candelabra

HEAVY = (
    "numpy",
    "scipy",
    "pluggy",
    "importlib.metadata",
    "zipfile",
    "json",
    "candelabra_backend_cpu",
    "candelabra.autograd",
    "inspect",
    "typing",
    "pathlib",
)

# Names of PyTorch that this package must have.
FUNCTIONS = """
tensor as_tensor from_numpy zeros ones empty full eye arange linspace rand randn randint randperm zeros_like ones_like cat stack
split chunk where gather scatter index_select masked_select nonzero take sum mean max min amax amin argmax argmin std var prod
all any norm matmul mm bmm mv dot einsum tensordot add sub mul div pow exp log sqrt sin cos tanh sigmoid relu softmax log_softmax
clamp abs neg round floor ceil sort topk cumsum cumprod tril triu flip roll transpose permute reshape flatten squeeze unsqueeze
eq ne lt le gt ge isnan isinf isfinite allclose equal is_tensor manual_seed no_grad enable_grad inference_mode set_grad_enabled
float32 float64 float16 bfloat16 int8 int16 int32 int64 uint8 bool complex64 complex128 float double half long int short
Tensor Size device dtype Generator memory_format contiguous_format channels_last preserve_format strided finfo iinfo
set_default_dtype get_default_dtype set_printoptions save load get_num_threads set_num_threads result_type promote_types can_cast
linalg inf nan pi e broadcast_tensors meshgrid dropout bernoulli multinomial normal
"""
METHODS = """
add add_ sub mul mul_ div pow exp exp_ log sqrt abs sum mean max min std var argmax view reshape permute transpose t T mT unsqueeze
squeeze expand expand_as repeat flatten contiguous clone detach detach_ cpu cuda to type float double half long int bool item tolist
numpy backward register_hook retain_grad requires_grad_ zero_ fill_ copy_ normal_ uniform_ bernoulli_ random_ masked_fill
masked_fill_ gather scatter scatter_ scatter_add_ index_add_ index_put_ new_zeros new_ones new_empty new_full new_tensor size
stride dim numel element_size data_ptr is_contiguous storage_offset untyped_storage matmul mm bmm softmax clamp clamp_ sort topk
cumsum split chunk unbind where nonzero eq ne lt all any isnan apply_ map_ share_memory_ is_cuda is_leaf grad data real imag
__array__ __dlpack__ __dlpack_device__ __len__ __iter__ __getitem__ __setitem__ __bool__ __float__ __int__ __index__ __matmul__
"""


def in_a_new_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_is_light():
    before = in_a_new_process(f"import sys; print([m for m in {HEAVY} if m in sys.modules])")
    after = in_a_new_process(f"import sys, candelabra; print([m for m in {HEAVY} if m in sys.modules])")
    assert after == before


def test_tensors_do_not_need_numpy():
    code = """
import sys
sys.modules["numpy"] = None
import candelabra as c
x = c.tensor([[1.0, 2.0], [3.0, 4.0]])
print((x @ x).tolist(), c.randn(3).shape, x)
"""
    pytest.importorskip("candelabra_backend_cpu")
    assert in_a_new_process(code).startswith("[[7.0, 10.0], [15.0, 22.0]]")


def test_the_version_is_that_of_the_distribution():
    assert candelabra.__version__ == importlib.metadata.version("candelabra-tensor-core")


def test_names_are_pytorchs():
    assert [name for name in FUNCTIONS.split() if not hasattr(candelabra, name)] == []
    assert set(FUNCTIONS.split()) <= set(dir(candelabra))


def test_methods_are_pytorchs():
    assert [name for name in METHODS.split() if not hasattr(candelabra.Tensor, name)] == []


def test_hidden_operators_are_only_in_ops():
    assert not hasattr(candelabra, "silu") and not hasattr(candelabra.Tensor, "silu")
    assert candelabra.ops.silu is candelabra.catalogue.OPERATORS["silu"]


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="module 'candelabra' has no attribute 'optimise'"):
        candelabra.optimise
    with pytest.raises(ImportError):
        from candelabra import optimise  # noqa: F401
    assert not hasattr(candelabra.backends, "nothing")
