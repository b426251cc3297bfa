"""The first use of each thing that is loaded late, by many threads at once, in fresh processes."""

from __future__ import annotations

import pytest

from candelabra.testing.first_use import run_scenario

# Where there are several things to use, each thread starts with another one.
SCENARIOS = {
    "the package": """
        def use(number):
            import candelabra
            return candelabra.ones(3).sum().item()

        assert run_concurrently(use) == [3.0] * 32
    """,
    "NumPy": """
        import candelabra

        def use(number):
            tensor = candelabra.tensor([number, number + 0.5])
            if number % 4 == 1:
                return tensor.__array__()
            if number % 4 == 2:
                return tensor.numpy(force=True)
            return tensor.numpy()

        found = run_concurrently(use)
        for number, array in enumerate(found):
            assert type(array).__module__ == "numpy" and array.tolist() == [number, number + 0.5], (number, array)
        candelabra.from_numpy(found[0])[0] = 7
        assert found[0][0] == 7
    """,
    "the cpu device": """
        import candelabra

        uses = (
            lambda number: candelabra.ones(3) * number,
            lambda number: candelabra.full((3,), float(number), device="cpu"),
            lambda number: candelabra.tensor([float(number)] * 3),
            lambda number: candelabra.empty(3, device=candelabra.device("cpu", 0)).fill_(number),
            lambda number: candelabra.zeros(3).to("cpu").add_(number),
            lambda number: candelabra.arange(3) * 0.0 + number if candelabra.backends.device_count("cpu") == 1 else None,
        )
        for number, tensor in enumerate(run_concurrently(lambda number: uses[number % len(uses)](number))):
            assert tensor.tolist() == [number] * 3 and tensor.device.type == "cpu", (number, tensor)
        assert candelabra._C.loaded_device_types() == ["cpu"]
    """,
    "a backend in Python": """
        import time
        import types
        from importlib.metadata import EntryPoint

        import candelabra
        from candelabra import _C, backends

        plugin = types.ModuleType("late_plugin")

        @backends.hookimpl
        def candelabra_register_backend(registrar):
            registrar.kernel("fill_", fill)

        def fill(out, self, value):
            memory = memoryview(out).cast("B").cast("f")
            for i in range(len(memory)):
                memory[i] = value

        plugin.candelabra_register_backend = candelabra_register_backend
        sys.modules["late_plugin"] = plugin
        entry = EntryPoint("late", "late_plugin", backends.discovery.GROUP)
        backends.discovery.installed = lambda: {"late": [entry]}
        # Python may change threads after any call; here it does, where the core knows the device.
        register = _C.register_backend
        _C.register_backend = lambda *arguments: (register(*arguments), time.sleep(0.1))

        def use(number):
            # Some use it as soon as the core shows it.
            while number > 27 and "late" not in _C.loaded_device_types():
                time.sleep(0.001)
            return candelabra.full((200,), 2.5, device="late")

        for tensor in run_concurrently(use):
            assert tensor.tolist() == [2.5] * 200 and tensor.device.type == "late"
    """,
    "the default device": """
        import time
        import candelabra
        from candelabra import _C, backends

        _C.register_backend("early", "tests 0", None)
        load = backends.load
        started = threading.Event()

        def slow(device_type):
            started.set()
            time.sleep(0.2)
            load(device_type)

        _C.set_backend_loader(slow)

        def use(number):
            if number:
                return candelabra.get_default_device().type
            started.wait()
            candelabra.set_default_device("early")

        run_concurrently(use)
        # What one thread has chosen is not undone by those that looked for the default before.
        assert candelabra.get_default_device().type == "early"
    """,
    "kernels and libraries": """
        import candelabra

        candelabra.manual_seed(0)
        a = candelabra.rand(96, 96) + candelabra.eye(96) * 96
        images, filters = candelabra.rand(2, 8, 20, 20), candelabra.rand(8, 8, 3, 3)
        uses = {
            "matmul": lambda: a @ a,
            "matmul of doubles": lambda: a.double() @ a.double(),
            "matmul of bfloat16": lambda: a.bfloat16() @ a.bfloat16(),
            "bmm": lambda: candelabra.bmm(a.view(4, 24, 96), a.view(4, 96, 24)),
            "conv2d": lambda: candelabra.ops.convolution(images, filters, None, [1, 1], [1, 1], [1, 1], 1),
            "cholesky": lambda: candelabra.linalg.cholesky(a @ a.T),
            "solve": lambda: candelabra.linalg.solve(a, a[:, :5]),
            "eigvalsh": lambda: candelabra.linalg.eigvalsh(a + a.T),
            "fft": lambda: candelabra.fft.fft(a),
            "sort": lambda: a.flatten().sort()[0],
            "exp": lambda: (a / 96).exp(),
            "sum": lambda: a.sum(0),
            "softmax": lambda: a.softmax(1),
            "einsum": lambda: candelabra.einsum("ij,kj->ik", a, a),
            "index": lambda: a[a > 0.5],
            "print": lambda: candelabra.tensor([float(ord(c)) for c in repr(a)]),
        }
        names = list(uses)

        def use(number):
            turn = number % len(names)
            return {name: uses[name]() for name in names[turn:] + names[:turn]}

        found = run_concurrently(use)
        for name in names:
            expected = uses[name]()
            for result in found:
                assert candelabra.allclose(result[name], expected, rtol=1e-4, atol=1e-4), name
        b = a.numpy().astype("float64")
        assert abs(found[0]["matmul of doubles"].numpy() - b @ b).max() < 1e-6
    """,
    "attributes of the package": """
        import candelabra
        from candelabra.assembly import LAZY_FUNCTIONS, LAZY_MODULES

        # candelabra.func and candelabra.profiler need candelabra-autograd.
        modules = ["cuda", *(name for name in LAZY_MODULES if name not in ("func", "profiler"))]
        names = [*modules, *(name for name in LAZY_FUNCTIONS if name != "vmap"), "default_generator"]

        def use(number):
            turn = number * len(names) // 32
            found = {}
            for name in names[turn:] + names[:turn]:
                found[name] = value = getattr(candelabra, name)
                if name in modules:
                    assert not getattr(value.__spec__, "_initializing", False), f"{name} is seen before it is whole"
                    for exported in getattr(value, "__all__", ()):
                        getattr(value, exported)
            return found

        found = run_concurrently(use)
        for name in names:
            assert all(one[name] is getattr(candelabra, name) for one in found), name
    """,
    "random numbers": """
        import candelabra

        def use(number):
            assert candelabra.default_generator is candelabra.random.default_generator
            return candelabra.rand(64, dtype=candelabra.float64).tolist(), candelabra.initial_seed()

        found = run_concurrently(use)
        assert len({seed for _, seed in found}) == 1
        # No two threads are given the same part of the stream.
        assert len({value for values, _ in found for value in values}) == 32 * 64
    """,
    "files, pickles and protocols": """
        import copy
        import io
        import pickle
        import candelabra

        def save(tensor):
            file = io.BytesIO()
            candelabra.save({"x": tensor}, file)
            file.seek(0)
            return candelabra.load(file)["x"]

        def autocast(tensor):
            with candelabra.autocast("cpu", dtype=candelabra.bfloat16):
                assert (candelabra.ones(2, 2) @ candelabra.ones(2, 2)).dtype is candelabra.bfloat16
            return tensor

        def custom(tensor):
            operator = candelabra.library.custom_op(f"first::use{int(tensor[0])}", mutates_args=())
            def double(x: candelabra.Tensor) -> candelabra.Tensor:
                return x * 2
            return operator(double)(tensor) / 2

        uses = (
            save,
            lambda tensor: pickle.loads(pickle.dumps(tensor)),
            copy.deepcopy,
            lambda tensor: candelabra.from_dlpack(tensor),
            lambda tensor: candelabra.special.expit(candelabra.special.logit(tensor / 100)) * 100,
            autocast,
            custom,
        )

        def use(number):
            tensor = candelabra.tensor([number, number + 1.0])
            turn = number % len(uses)
            return [one(tensor) for one in uses[turn:] + uses[:turn]]

        for number, results in enumerate(run_concurrently(use)):
            for result in results:
                assert candelabra.allclose(result, candelabra.tensor([number, number + 1.0]), atol=1e-3), (number, result)
    """,
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_first_use_by_many_threads(scenario):
    run_scenario(SCENARIOS[scenario], len(SCENARIOS))
