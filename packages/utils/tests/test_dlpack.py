"""Test DLPack under PyTorch's names."""

import numpy
import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra
from candelabra.utils import dlpack


def test_memory_is_shared_with_numpy():
    array = numpy.arange(4.0)
    tensor = dlpack.from_dlpack(array)
    tensor[0] = 9
    assert array[0] == 9


def test_a_capsule_is_taken_once():
    # DLPack has no number for every device.
    capsule = dlpack.to_dlpack(candelabra.tensor([1, 2], device="cpu"))
    assert dlpack.from_dlpack(capsule).tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="only once"):
        dlpack.from_dlpack(capsule)


@pytest.mark.host_only("the type of the CPU")
def test_device_types():
    assert candelabra.ones(1).__dlpack_device__() == (dlpack.DLDeviceType.kDLCPU, 0)
    assert candelabra.utils.dlpack is dlpack


def test_only_tensors():
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        dlpack.to_dlpack(3)
