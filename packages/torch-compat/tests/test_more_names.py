"""Modules of PyTorch that exist only under its name: futures, counters of operations, keys, …"""

from __future__ import annotations

import importlib
import threading

import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra
import candelabra.torch
from candelabra.serialization.pytorch_names import in_candelabra, in_pytorch


@pytest.fixture(autouse=True)
def torch():
    candelabra.torch.install()
    yield importlib.import_module("torch")
    candelabra.torch.uninstall()


def test_futures(torch):
    futures = importlib.import_module("torch.futures")
    first, second = futures.Future(), futures.Future()
    both = futures.collect_all([first, second])
    failed = first.then(lambda done: 1 // (done.value() - 1))
    thread = threading.Thread(target=lambda: (second.set_result("b"), first.set_result(1)))
    thread.start()
    assert futures.wait_all([first, second]) == [1, "b"] and both.wait() == [first, second]
    thread.join()
    with pytest.raises(ZeroDivisionError):
        failed.wait()
    with pytest.raises(RuntimeError, match="only be set with a value once"):
        first.set_result(2)
    with pytest.raises(RuntimeError, match="not done"):
        futures.Future().value()
    with pytest.raises(AssertionError, match="not an Exception"):
        futures.Future().set_exception("no")
    assert futures.collect_all([]).done() and torch.jit.Future is futures.Future


def test_conversions_make_new_parameters_if_asked(torch):
    options = importlib.import_module("torch.__future__")
    layer = torch.nn.Linear(2, 1)
    layer(torch.ones(1, 2)).sum().backward()
    weight = layer.weight
    options.set_overwrite_module_params_on_conversion(True)
    try:
        layer.double()
        assert options.get_overwrite_module_params_on_conversion()
        assert layer.weight is not weight and weight.dtype is torch.float32 and layer.weight.grad.dtype is torch.float64
        assert isinstance(layer.weight, torch.nn.Parameter) and layer._parameters["weight"] is layer.weight
    finally:
        options.set_overwrite_module_params_on_conversion(False)
    weight = layer.weight
    assert layer.float().weight is weight
    number = weight._cdata
    options.set_swap_module_params_on_conversion(True)
    try:
        assert options.get_swap_module_params_on_conversion()
        assert layer.double().weight is weight and weight._cdata != number
    finally:
        options.set_swap_module_params_on_conversion(False)


def test_operations_are_counted(torch):
    counter = importlib.import_module("torch.utils.flop_counter")
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(144, 5))
    with counter.FlopCounterMode(display=False) as mode:
        model(torch.randn(2, 3, 8, 8)).sum().backward()
    # As PyTorch counts them.
    assert mode.get_total_flops() == 39744
    counts = mode.get_flop_counts()
    assert counts["Global"][torch.ops.aten.convolution] == counts["Sequential.0"][torch.ops.aten.convolution] == 15552
    assert "Sequential.2" in mode.get_table() and "100.00%" in mode.get_table()

    @counter.register_flop_formula(torch.ops.aten.exp)
    def exp_flop(shape, *, out_shape=None):
        return 7 * shape[0]

    try:
        with counter.FlopCounterMode(
            display=False, custom_mapping={torch.ops.aten.mm: lambda a, b, out_shape=None: 1}
        ) as mode:
            torch.exp(torch.ones(3))
            torch.mm(torch.ones(2, 2), torch.ones(2, 2))
        assert mode.get_total_flops() == 22
    finally:
        del counter.flop_registry["exp"]


def test_operators_by_aten_s_names(torch):
    aten = torch.ops.aten
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(aten.add.Tensor(x, x), 2 * x) and torch.equal(aten.add.Scalar(x, 1), x + 1)
    assert aten.mm.default is aten.mm.default and aten.mm.default.overloadpacket is aten.mm
    assert aten.mm.default.name() == "aten::mm" and aten.add.Tensor.name() == "aten::add.Tensor"
    assert str(aten.add.Tensor) == "aten.add.Tensor" and "overload='Tensor'" in repr(aten.add.Tensor)
    assert torch.equal(aten.slice.Tensor(x, 1, 0, 2), x[:, :2]) and aten.sym_size.int(x, 1) == 3
    assert torch.equal(aten.relu_.default(x - 2), torch.relu(x - 2))
    assert torch.equal(aten.sum.dim_IntList(x, [0]), x.sum(0)) and torch.equal(aten.view.default(x, [6]), x.view(6))
    out = torch.empty(2, 3)
    assert aten.add.out(x, x, out=out) is out and torch.equal(out, 2 * x)
    assert torch.equal(aten.linalg_inv.default(torch.eye(2)), torch.eye(2))
    with pytest.raises(AttributeError, match="has no overload name 'Complex'"):
        aten.add.Complex
    with pytest.raises(AttributeError, match="'_OpNamespace' 'aten' object has no attribute 'no_such_operator'"):
        aten.no_such_operator
    assert not hasattr(torch.ops.torchvision, "nms")
    with pytest.raises(OSError, match="Could not load this library: /no/such.so"):
        torch.ops.load_library("/no/such.so")


def test_fake_functions_before_their_operator(torch):
    @torch.library.register_fake("test_later::double")
    def fake(x):
        return torch.empty_like(x)

    @torch.library.custom_op("test_later::double", mutates_args=())
    def double(x: candelabra.Tensor) -> candelabra.Tensor:
        return 2 * x

    assert double._fake is fake
    assert torch.ops.test_later.double(torch.ones(1)).tolist() == [2]


def test_older_custom_operators(torch):
    old = importlib.import_module("torch._custom_ops")
    old.custom_op("test_old_ops::cube", "(Tensor x) -> Tensor")
    old.impl("test_old_ops::cube")(lambda x: x**3)
    with pytest.raises(RuntimeError, match="impl_save_for_backward"):
        old.impl_backward("test_old_ops::cube")(lambda ctx, saved, grad: {})
    old.impl_save_for_backward("test_old_ops::cube")(lambda inputs, output: inputs.x)
    old.impl_backward("test_old_ops::cube")(lambda ctx, saved, grad: {"x": grad * 3 * saved**2})
    x = torch.full((2,), 2.0, requires_grad=True)
    torch.ops.test_old_ops.cube(x).sum().backward()
    assert x.grad.tolist() == [12, 12]


def test_keys(torch):
    key = torch._C.DispatchKey
    keys = torch._C._dispatch_keys(torch.ones(1))
    assert keys.has(key.CPU) and key.AutogradCPU in keys and not keys.has(key.CUDA)
    assert keys.remove(key.CPU) | torch._C.DispatchKeySet(key.CPU) == keys
    assert torch._C._dispatch_has_kernel("aten::add.Tensor")


def test_compiled_classes(torch):
    class Old(torch.jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        @torch.jit.script_method
        def forward(self, x):
            return self.layer(x)

    assert Old()(torch.ones(1, 1)).shape == (1, 1)
    assert isinstance(torch.jit.script(torch.nn.Linear(1, 1)), torch.jit.RecursiveScriptModule)
    assert torch.jit.isinstance([1], list[int])
    with pytest.raises(NotImplementedError, match="nothing is compiled from source"):
        torch.jit.CompilationUnit("def f(): pass")
    with torch.jit.optimized_execution(False), torch.jit.fuser("fuser1"):
        pass


def test_settings_and_processors(torch):
    config = importlib.import_module("torch.utils.serialization.config")
    assert config.load.mmap is False and config.save.compute_crc32 is True
    config.save.compute_crc32 = False
    assert torch.serialization.get_crc32_options() is False
    config.save.compute_crc32 = True
    assert importlib.import_module("torch.utils.deterministic").fill_uninitialized_memory in (True, False)
    assert torch.profiler.kineto_available() is True
    assert torch.cpu.Event().query() and torch.cpu.get_capabilities()["architecture"]
    amp = importlib.import_module("torch.cpu.amp")
    with amp.autocast():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.bfloat16
    assert isinstance(amp.GradScaler(enabled=False), torch.GradScaler)
    bundled = importlib.import_module("torch.utils.bundled_inputs")
    assert bundled.bundle_randn(2).value.shape == (2,)
    with pytest.raises(NotImplementedError, match="torch.save"):
        bundled.bundle_inputs(None, None)


def test_private_names_of_distributions(torch):
    utils = importlib.import_module("torch.distributions.utils")
    assert utils._standard_normal((2, 3), torch.float32, "cpu").shape == (2, 3)
    assert utils._sum_rightmost(torch.ones(2, 3), 1).tolist() == [3, 3]
    assert utils.is_tensor_like(torch.ones(1)) and not utils.is_tensor_like(1)

    class Mixin:
        pass

    class Mine(torch.distributions.Normal, Mixin):
        pass

    @torch.distributions.register_kl(Mixin, Mixin)
    def kl(p, q):
        return torch.tensor(5.0)

    assert torch.distributions.kl_divergence(Mine(0.0, 1.0), Mine(0.0, 1.0)).ndim == 0


def test_distributions_in_their_modules(torch):
    for name in torch.distributions.__all__:
        kind = getattr(torch.distributions, name)
        folder, _, file = getattr(kind, "__module__", "").removeprefix("candelabra.distributions.").partition(".")
        if isinstance(kind, type) and file and folder != "transforms":
            assert getattr(importlib.import_module(f"torch.distributions.{file}"), name) is kind
            assert in_pytorch(kind.__module__, name) == (f"torch.distributions.{file}", name)
    name = "LogitRelaxedBernoulli"
    relaxed = importlib.import_module("torch.distributions.relaxed_bernoulli")
    assert in_candelabra("torch.distributions.relaxed_bernoulli", name) is getattr(relaxed, name)


def test_excluded_keys_of_autocasting(torch):
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU) | torch._C.DispatchKeySet(
        torch._C.DispatchKey.AutocastXPU
    )
    assert [key.name for key in keys] == ["AutocastCPU", "AutocastXPU"]
    with torch.autocast("cpu"):
        with torch._C._ExcludeDispatchKeyGuard(keys):
            assert not torch.is_autocast_enabled("cpu")
        assert torch.is_autocast_enabled("cpu")
        assert not torch.is_autocast_enabled("xpu")
    with torch._C._ExcludeDispatchKeyGuard(keys):
        pass
    assert not torch.is_autocast_enabled("cpu")
    with pytest.raises(NotImplementedError, match="AutogradCPU"):
        torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.AutogradCPU))


def test_checks(torch):
    torch._check(True)
    torch._check_is_size(3, max=3)
    torch._check_tensor_all(torch.tensor([True, True]))
    for check, error in [
        (torch._check, RuntimeError),
        (torch._check_index, IndexError),
        (torch._check_value, ValueError),
        (torch._check_type, TypeError),
        (torch._check_not_implemented, NotImplementedError),
    ]:
        with pytest.raises(error, match="the message"):
            check(False, lambda: "the message")
    with pytest.raises(RuntimeError, match="Expected cond to be True, but got False"):
        torch._check(False)
    with pytest.raises(RuntimeError, match="too long"):
        torch._check_is_size(4, lambda: "too long", max=3)
    with pytest.raises(RuntimeError, match="not all"):
        torch._check_tensor_all(torch.tensor([True, False]), lambda: "not all")
    for call in (
        lambda: torch._check(1),
        lambda: torch._check(False, "text"),
        lambda: torch._check_tensor_all(torch.ones(1)),
    ):
        with pytest.raises(TypeError):
            call()


def test_states_of_torch_function(torch):
    state = torch._C._get_torch_function_state()
    assert state is torch._C._TorchFunctionState.ENABLED
    with torch._C.DisableTorchFunction():
        assert torch._C._get_torch_function_state() is torch._C._TorchFunctionState.ALL_DISABLED
    torch._C._set_torch_function_state(torch._C._TorchFunctionState.SUBCLASSES_DISABLED)
    assert torch._C._get_torch_function_state() is torch._C._TorchFunctionState.SUBCLASSES_DISABLED
    torch._C._set_torch_function_state(state)


def test_private_names_that_programs_use(torch):
    assert torch._C._get_privateuse1_backend_name() == "privateuseone"
    assert torch._utils._is_privateuse1_backend_available() is False
    assert torch._C.has_lapack is torch.has_lapack
    assert torch.autograd.kineto_available() is True
    data = torch.tensor([1.0, 2.0, 3.0])
    assert torch._segment_reduce(data, "sum", lengths=torch.tensor([2, 1])).tolist() == [3.0, 3.0]


def test_callbacks_of_the_engine(torch):
    called = []
    x = torch.ones(1, requires_grad=True)
    engine = torch.autograd.Variable._execution_engine
    x.register_hook(lambda grad: engine.queue_callback(lambda: called.append(x.grad.item())))
    (x * 2).backward()
    assert called == [2.0]


def test_switch_of_forward_mode(torch):
    forward_ad = importlib.import_module("torch.autograd.forward_ad")
    assert forward_ad._current_level == -1 and torch._C._is_fwd_grad_enabled()
    with forward_ad.dual_level():
        assert forward_ad._current_level == 0
        with forward_ad._set_fwd_grad_enabled(False):
            assert not torch._C._is_fwd_grad_enabled()
    torch._C._set_fwd_grad_enabled(True)
    assert torch._C._is_fwd_grad_enabled()


def test_checks_of_tensors(torch):
    x = torch.ones(2)
    assert torch._assert_tensor_metadata(x, size=(2,), stride=(1,), dtype=torch.float32, device="cpu") is None
    for expected, what in (
        ({"dtype": torch.int64}, "dtype"),
        ({"size": (3,)}, "sizes"),
        ({"device": "meta"}, "device"),
    ):
        with pytest.raises(RuntimeError, match=f"Tensor {what} mismatch"):
            torch._assert_tensor_metadata(x, **expected)
    assert torch._disable_dynamo(lambda: 3)() == 3
    assert torch._disable_dynamo()(lambda: 4)() == 4


def test_a_scoped_library_takes_back_what_it_defined(torch):
    for _ in range(2):
        with torch.library._scoped_library("scoped_names", "FRAGMENT") as library:
            library.define("twice(Tensor x) -> Tensor")
            library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
            assert torch.ops.scoped_names.twice(torch.ones(2)).tolist() == [2.0, 2.0]
