"""candelabra.backends.cuda and .cudnn: what is set is told to the backend, now or when it is
loaded.
"""

from __future__ import annotations

import pytest

import candelabra
from candelabra.backends import cuda, cudnn


@pytest.fixture
def told(monkeypatch):
    """What a backend that has just been loaded is told."""
    monkeypatch.setattr(cuda, "_tell", [])
    monkeypatch.setattr(cuda, "_ask", [])
    switches = dict(cuda._switches)
    heard: dict[str, int] = {}
    cuda.connect(heard.__setitem__, {"cudnn_version": 92800, "cufft_plans": 3}.__getitem__)
    yield heard
    for name, value in switches.items():
        cuda.set_switch(name, value)


def test_a_backend_hears_all_at_once_and_what_changes(told):
    assert told == cuda._switches and told["cudnn_tf32"] is True and told["matmul_tf32"] is False
    candelabra.backends.cuda.matmul.allow_tf32 = True
    assert told["matmul_tf32"] is True and candelabra.get_float32_matmul_precision() == "high"
    candelabra.set_float32_matmul_precision("highest")
    assert told["matmul_tf32"] is False and not candelabra.backends.cuda.matmul.allow_tf32
    cuda.cufft_plan_cache.clear()
    assert told.pop("cufft_clear") == 1


def test_half_precisions_have_switches_of_their_own(told):
    products = candelabra.backends.cuda.matmul
    products.allow_bf16_reduced_precision_reduction = False
    assert products.allow_fp16_reduced_precision_reduction and not products.allow_bf16_reduced_precision_reduction
    assert told["float16_reduced"] is True and told["bfloat16_reduced"] is False
    with pytest.raises(RuntimeError, match="must be a bool, but got int"):
        products.allow_fp16_reduced_precision_reduction = 1
    with pytest.raises(AttributeError, match="Unknown attribute allow_fp8"):
        products.allow_fp8 = True


def test_flags_of_cudnn(told):
    with cudnn.flags(enabled=True, benchmark=True, benchmark_limit=3, deterministic=True, allow_tf32=False):
        assert cudnn.benchmark and cudnn.benchmark_limit == 3 and cudnn.deterministic and not cudnn.allow_tf32
        assert (
            told["cudnn_benchmark_limit"] == 3 and told["cudnn_deterministic"] is True and told["cudnn_tf32"] is False
        )
    assert told["cudnn_benchmark_limit"] == 10 and not cudnn.deterministic and cudnn.allow_tf32 and not cudnn.benchmark
    with pytest.raises(RuntimeError, match="must be an int, but got bool"):
        cudnn.benchmark_limit = True
    assert cudnn.set_flags(_benchmark=True)[1] is False and cudnn.benchmark
    assert cudnn.version() == 92800


def test_without_a_backend(monkeypatch):
    monkeypatch.setattr(cuda, "_ask", [])
    assert cudnn.version() is None and cuda.cufft_plan_cache.size == 0


def test_plans_of_transforms(told):
    plans = candelabra.backends.cuda.cufft_plan_cache
    assert plans.size == 3 and plans[0].max_size == 4096
    plans.max_size = 7
    assert told["cufft_plans"] == 7
    with pytest.raises(RuntimeError, match="non-negative"):
        plans.max_size = -1
    with pytest.raises(RuntimeError, match="cannot be set"):
        plans.size = 1


def test_ways_to_compute_attention(told):
    assert cuda.attention_ways() == (True, True)
    with cuda.sdp_kernel(enable_flash=False, enable_mem_efficient=False, enable_cudnn=False):
        assert cuda.attention_ways() == (True, False) and told["cudnn_attention"] is False
        assert cuda.math_sdp_enabled() and not cuda.flash_sdp_enabled() and not cuda.mem_efficient_sdp_enabled()
    assert cuda.attention_ways() == (True, True) and told["cudnn_attention"] is True
    cuda.enable_cudnn_sdp(False)
    assert not cuda.cudnn_sdp_enabled() and told["cudnn_attention"] is False
    cuda.enable_cudnn_sdp(True)


def test_which_calls_a_way_can_compute(told):
    x = candelabra.ones(1, 1, 2, 8, dtype=candelabra.float16)
    params = cuda.SDPAParams(x, x, x, None, 0.0, True, False)
    assert not cuda.can_use_flash_attention(params) and not cuda.can_use_cudnn_attention(params)
    with pytest.warns(UserWarning, match="query is on no GPU"):
        cuda.can_use_cudnn_attention(params, debug=True)


def test_precision_of_convolutions_in_words(told):
    assert cudnn.conv.fp32_precision == "tf32"
    cudnn.conv.fp32_precision = "ieee"
    assert not cudnn.allow_tf32 and told["cudnn_tf32"] is False
    with pytest.raises(RuntimeError, match="Invalid precision: half"):
        cudnn.conv.fp32_precision = "half"
