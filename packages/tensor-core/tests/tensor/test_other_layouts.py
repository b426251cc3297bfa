"""Names of sparse, quantized and nested tensors say what is not there; those that mean something
for dense ones work.
"""

import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra
from candelabra.absent import REASONS


@pytest.mark.parametrize(
    "name",
    [
        "coalesce",
        "is_coalesced",
        "indices",
        "values",
        "crow_indices",
        "col_indices",
        "ccol_indices",
        "row_indices",
        "smm",
        "sspaddmm",
    ],
)
def test_methods_of_sparse_tensors(name):
    with pytest.raises(RuntimeError, match=f"{name} expected .* but got Strided: .*there are no sparse ones"):
        getattr(candelabra.ones(2, 2), name)()


@pytest.mark.parametrize(
    ("name", "kind"),
    [("to_sparse", "sparse"), ("to_sparse_csr", "sparse"), ("sparse_mask", "sparse"), ("q_scale", "quantized"),
     ("int_repr", "quantized"), ("qscheme", "quantized"), ("to_mkldnn", "oneDNN"), ("to_padded_tensor", "nested")],
)  # fmt: skip
def test_methods_that_make_what_is_not_there(name, kind):
    with pytest.raises(NotImplementedError, match=f"{name}.*Candelabra has no .*{kind}"):
        getattr(candelabra.ones(2, 2), name)(0)


def test_a_dense_tensor_is_dense():
    x = candelabra.tensor([[1.0, 2.0]])
    assert x.to_dense() is x and x.to_dense(masked_grad=True) is x
    assert x.to_dense(candelabra.float64).dtype is candelabra.float64
    assert x.dequantize() is x and x.long().dequantize().dtype is candelabra.float32
    assert (x.sparse_dim(), x.dense_dim()) == (0, 2)


@pytest.mark.parametrize(
    "name",
    ["is_sparse", "is_sparse_csr", "is_quantized", "is_nested", "is_mkldnn", "is_xla", "is_xpu", "is_mps", "is_ipu", "is_maia",
     "is_mtia", "is_vulkan"],
)  # fmt: skip
def test_attributes_that_are_false(name):
    assert getattr(candelabra.ones(1), name) is False


@pytest.mark.parametrize("name", ["xpu", "ipu", "mtia", "hpu"])
def test_devices_without_a_backend(name):
    with pytest.raises(candelabra.BackendError, match=f"no backend for device '{name}' is installed"):
        getattr(candelabra.ones(1), name)()


@pytest.mark.parametrize("name", sorted(REASONS))
def test_missing_names_say_why(name):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}': .+"):
        getattr(candelabra, name)
    assert not hasattr(candelabra, name)


def test_other_names_have_no_reason():
    with pytest.raises(AttributeError, match="has no attribute 'no_such_thing'$"):
        candelabra.no_such_thing
