"""Settings of the process: each is kept, checked, and does what it says."""

import subprocess
import sys
import threading
import warnings

import numpy
import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra


@pytest.fixture(autouse=True)
def settings_are_restored():
    yield
    candelabra.use_deterministic_algorithms(False)
    candelabra.set_float32_matmul_precision("highest")
    candelabra.set_flush_denormal(False)
    candelabra.set_warn_always(False)
    candelabra.set_default_dtype(candelabra.float32)
    candelabra.set_num_interop_threads(1)


# ---- determinism


@pytest.mark.parametrize(
    ("set_up", "asked", "warn_only", "mode"),
    [
        (lambda: candelabra.use_deterministic_algorithms(True), True, False, 2),
        (lambda: candelabra.use_deterministic_algorithms(True, warn_only=True), True, True, 1),
        (lambda: candelabra.use_deterministic_algorithms(False), False, False, 0),
        (lambda: candelabra.set_deterministic_debug_mode("error"), True, False, 2),
        (lambda: candelabra.set_deterministic_debug_mode(1), True, True, 1),
        (lambda: candelabra.set_deterministic_debug_mode("default"), False, False, 0),
    ],
)
def test_determinism_is_kept(set_up, asked, warn_only, mode):
    set_up()
    assert candelabra.are_deterministic_algorithms_enabled() is asked
    assert candelabra.is_deterministic_algorithms_warn_only_enabled() is warn_only
    assert candelabra.get_deterministic_debug_mode() == mode


def test_determinism_is_checked():
    with pytest.raises(TypeError, match=r"argument 'mode' \(position 1\) must be bool, not int"):
        candelabra.use_deterministic_algorithms(1)
    with pytest.raises(RuntimeError, match="expected one of `default`, `warn`, `error`, but got x"):
        candelabra.set_deterministic_debug_mode("x")
    with pytest.raises(RuntimeError, match="expected 0, 1, or 2, but got 3"):
        candelabra.set_deterministic_debug_mode(3)
    with pytest.raises(TypeError, match="must be str or int"):
        candelabra.set_deterministic_debug_mode(1.5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_unset_memory_of_numbers_is_nan(dtype):
    candelabra.use_deterministic_algorithms(True)
    dtype = getattr(candelabra, dtype)
    x = candelabra.ones(2, 3, dtype=dtype)
    for made in (
        candelabra.empty(3, dtype=dtype), candelabra.empty_like(x), x.new_empty(4), x.new_empty_strided((2, 2), (3, 1)), x.new(2),
        candelabra.empty_strided((2, 2), (1, 2), dtype=dtype), candelabra.empty_permuted((2, 3), (1, 0), dtype=dtype),
    ):  # fmt: skip
        assert made.isnan().all()


def test_unset_memory_of_integers_is_the_largest():
    candelabra.use_deterministic_algorithms(True)
    assert candelabra.empty(2, dtype=candelabra.int64).tolist() == [2**63 - 1] * 2
    assert candelabra.empty(2, dtype=candelabra.uint8).tolist() == [255, 255]
    assert candelabra.empty(2, dtype=candelabra.bool).tolist() == [True, True]
    assert candelabra.Tensor(2).isnan().all()


def test_only_what_resize_adds_is_filled():
    candelabra.use_deterministic_algorithms(True)
    grown = candelabra.tensor([1.0, 2.0]).resize_(4)
    assert grown[:2].tolist() == [1.0, 2.0]
    assert grown[2:].isnan().all()


# ---- numbers


def test_matmul_precision():
    assert candelabra.get_float32_matmul_precision() == "highest"
    candelabra.set_float32_matmul_precision("medium")
    assert candelabra.get_float32_matmul_precision() == "medium"
    with pytest.warns(UserWarning, match="low is not one of 'highest', 'high', or 'medium'"):
        candelabra.set_float32_matmul_precision("low")
    assert candelabra.get_float32_matmul_precision() == "medium"
    with pytest.raises(RuntimeError, match="expects a str, but got int"):
        candelabra.set_float32_matmul_precision(1)


def test_products_are_of_full_precision_with_every_setting():
    a = numpy.random.default_rng(0).standard_normal((64, 64)).astype("float32")
    exact = a.astype("float64") @ a.astype("float64")
    for precision in ("highest", "high", "medium"):
        candelabra.set_float32_matmul_precision(precision)
        x = candelabra.from_numpy(a)
        numpy.testing.assert_allclose((x @ x).numpy(), exact, rtol=0, atol=1e-4)


def test_denormal_numbers_are_flushed_on_all_threads():
    threads = candelabra.get_num_threads()
    candelabra.set_num_threads(2)
    try:
        x = candelabra.full((200_000,), 1e-310, dtype=candelabra.float64)
        assert candelabra.set_flush_denormal(True) is True
        assert (x * 1).count_nonzero() == 0
        assert candelabra.set_flush_denormal(False) is True
        assert (x * 1).count_nonzero() == 200_000
    finally:
        candelabra.set_num_threads(threads)


def test_flushing_takes_a_bool():
    with pytest.raises(RuntimeError, match="flush_denormal expects a bool, but got int"):
        candelabra.set_flush_denormal(1)


# ---- threads


def test_interop_threads():
    candelabra.set_num_interop_threads(3)
    assert candelabra.get_num_interop_threads() == 3
    for wrong in (0, -1, "a", True, 1.0):
        with pytest.raises(RuntimeError, match="set_num_interop_threads expects"):
            candelabra.set_num_interop_threads(wrong)


# ---- warnings


def _count_warnings(always):
    candelabra.set_warn_always(always)
    x = candelabra.ones(2, 2, 2)
    with warnings.catch_warnings(record=True) as seen:
        warnings.resetwarnings()
        candelabra.set_warn_always(always)
        for _ in range(3):
            x.T
    return len(seen)


def test_warnings_are_shown_once_at_each_place_or_always():
    assert _count_warnings(False) == 1
    assert _count_warnings(True) == 3
    assert candelabra.is_warn_always_enabled() is True
    with pytest.raises(RuntimeError, match="set_warn_always expects a bool, but got int"):
        candelabra.set_warn_always(1)


# ---- the default tensor type


def test_default_tensor_type():
    with pytest.warns(UserWarning, match="set_default_tensor_type"):
        candelabra.set_default_tensor_type(candelabra.DoubleTensor)
    assert candelabra.ones(1).dtype is candelabra.float64
    with pytest.warns(UserWarning, match="set_default_tensor_type"):
        candelabra.set_default_tensor_type("candelabra.HalfTensor")
    assert candelabra.ones(1).dtype is candelabra.float16
    for wrong in (candelabra.LongTensor, "candelabra.LongTensor", "abc", candelabra.float32, 3):
        with pytest.raises(TypeError, match="only floating-point"):
            candelabra.set_default_tensor_type(wrong)


# ---- random


def test_fork_rng_gives_the_state_back():
    candelabra.manual_seed(3)
    with candelabra.random.fork_rng():
        inside = candelabra.rand(4)
    assert candelabra.equal(candelabra.rand(4), inside)
    candelabra.manual_seed(3)
    with candelabra.random.fork_rng(devices=["cpu"]):
        candelabra.rand(4)
    assert candelabra.equal(candelabra.rand(4), inside)


def test_fork_rng_may_be_left_out_and_ends_with_an_error():
    candelabra.manual_seed(3)
    first, second = candelabra.rand(2), candelabra.rand(2)
    candelabra.manual_seed(3)
    with candelabra.random.fork_rng(enabled=False):
        assert candelabra.equal(candelabra.rand(2), first)
    assert candelabra.equal(candelabra.rand(2), second)
    candelabra.manual_seed(3)
    drawn = [lambda: candelabra.rand(2), lambda: candelabra.rand(-1)]
    with pytest.raises(RuntimeError, match="negative"), candelabra.random.fork_rng():
        [draw() for draw in drawn]
    assert candelabra.equal(candelabra.rand(2), first)


def test_the_module_random_has_pytorchs_names():
    assert candelabra.random.manual_seed(5) is candelabra.random.default_generator
    assert candelabra.random.initial_seed() == 5
    state = candelabra.random.get_rng_state()
    drawn = candelabra.rand(3)
    candelabra.random.set_rng_state(state)
    assert candelabra.equal(candelabra.rand(3), drawn)
    with pytest.raises(AttributeError, match="no attribute 'shuffle'"):
        candelabra.random.shuffle


def test_settings_are_seen_by_other_threads():
    candelabra.use_deterministic_algorithms(True)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(bool(candelabra.empty(2).isnan().all())))
    thread.start()
    thread.join()
    assert seen == [True]


def test_a_warning_as_error_leaves_everything_as_it_was():
    program = (
        "import warnings; warnings.simplefilter('error')\n"
        "import candelabra\n"
        "x = candelabra.zeros(2)\n"
        "try: x.copy_(candelabra.tensor([1j, 2j]))\n"
        "except UserWarning as warning: print(warning)\n"
        "print(x.tolist())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "discards the imaginary part" in done.stdout
    assert done.stdout.endswith("[0.0, 0.0]\n")


def test_the_device_type_cpu_as_a_module():
    assert candelabra.cpu.is_available() and candelabra.cpu.device_count() == 1
    assert candelabra.cpu.current_device() == "cpu" and candelabra.cpu.is_initialized()
    stream = candelabra.cpu.Stream()
    with candelabra.cpu.stream(stream) as entered:
        assert entered is stream and stream.query()
    stream.wait_stream(candelabra.cpu.current_stream())
    stream.synchronize()
    assert candelabra.cpu.synchronize() is None and candelabra.cpu.set_device("cpu") is None
