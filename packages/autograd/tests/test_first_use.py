"""Test the first use of autograd and of its lazy imports, by many threads in fresh processes."""

from __future__ import annotations

import textwrap

import pytest

from candelabra.testing.first_use import run_scenario

# before_walks(action) runs `action` in the middle of the import of candelabra.autograd. The backend
# is loaded first, because its lock would let the threads through one by one and hide the races.
IN_THE_IMPORT = """
from importlib.machinery import PathFinder
import candelabra

candelabra.ones(1)

def before_walks(action):
    class Finder:
        def find_spec(name, path=None, target=None):
            if name != "candelabra.autograd.walks":
                return None
            spec = PathFinder.find_spec(name, path)
            run = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (action(), run(module))
            return spec

    sys.meta_path.insert(0, Finder)
    return Finder
"""

SCENARIOS = {
    "requires_grad": """
        def use(number):
            way = number % 5
            if way == 0:
                x = candelabra.tensor([1.0, 2.0], requires_grad=True)
            elif way == 1:
                x = candelabra.tensor([1.0, 2.0]).requires_grad_()
            elif way == 2:
                x = candelabra.tensor([1.0, 2.0])
                x.requires_grad = True
            elif way == 3:
                x = candelabra.ones(2, requires_grad=True)
                with candelabra.no_grad():
                    x[1] = 2
            else:
                from candelabra import autograd

                x = autograd.Variable(candelabra.tensor([1.0, 2.0]), requires_grad=True)
            y = x * x * number
            assert y.requires_grad and y.grad_fn is not None, "not recorded"
            if number % 2:
                y.sum().backward()
                return x.grad
            return candelabra.autograd.grad(y.sum(), x)[0]

        for number, gradient in enumerate(run_concurrently(use)):
            assert gradient.tolist() == [2.0 * number, 4.0 * number], (number, gradient)
    """,
    # One thread is slowly importing the package by name.
    "a slow import": """
        import time

        begun = threading.Event()
        before_walks(lambda: (begun.set(), time.sleep(0.3)))

        def use(number):
            if number == 0:
                import candelabra.autograd as autograd
            else:
                begun.wait()
            x = candelabra.ones(2, requires_grad=True)
            (x * 3).sum().backward()
            return x.grad.tolist()

        assert run_concurrently(use) == [[3.0, 3.0]] * 32
    """,
    # A failed import must neither disable autograd nor be cached.
    "an import that fails": """
        def fail():
            raise ImportError("the disk is on fire")

        finder = before_walks(fail)
        tensors = [candelabra.ones(2) for _ in range(32)]

        def refused(number):
            try:
                tensors[number].requires_grad_()
            except ImportError as error:
                return str(error)

        assert run_concurrently(refused) == ["the disk is on fire"] * 32
        assert not any(x.requires_grad for x in tensors)
        sys.meta_path.remove(finder)

        def use(number):
            (tensors[number].requires_grad_() * 3).sum().backward()
            return tensors[number].grad.tolist()

        assert run_concurrently(use) == [[3.0, 3.0]] * 32
    """,
    # To break a deadlock of imports, Python returns a partially imported package. It must not pass
    # for a complete one.
    "imports against each other": """
        import types
        from importlib.machinery import ModuleSpec

        class Crossed:
            def find_spec(name, path=None, target=None):
                return ModuleSpec(name, Crossed) if name == "crossed" else None

            def create_module(spec):
                return None

            def exec_module(module):
                importing.set()
                begun.wait()
                try:
                    x = candelabra.ones(2, requires_grad=True)
                except RuntimeError as error:
                    module.told = str(error)
                else:
                    module.told = "" if (x * 3).requires_grad else "not recorded"

        importing, begun = threading.Event(), threading.Event()
        sys.meta_path.insert(0, Crossed)

        def cross():
            begun.set()
            importing.wait()
            import crossed

        before_walks(cross)

        def use(number):
            if number:
                import crossed
            else:
                import candelabra.autograd as autograd

        # Python may see the circle in either thread: it raises there, or gives what there is.
        try:
            run_concurrently(use, 2)
        except SystemExit as failure:
            assert "_DeadlockError" in str(failure), failure
        told = sys.modules["crossed"].told
        assert told == "" or "is being imported by another thread" in told or "deadlock" in told, told
        x = candelabra.ones(2, requires_grad=True)
        assert (x * 3).requires_grad
    """,
    # Importing a module of a package that another thread imports may fail in Python, but must
    # raise.
    "statements that collide": """
        statements = (
            "import candelabra.autograd", "import candelabra.autograd.forward_ad", "from candelabra.autograd.function import Function",
            "import candelabra.autograd.functional", "from candelabra.autograd.graph import saved_tensors_hooks", "pass",
        )

        def use(number):
            try:
                exec(statements[number % 6], {})
            except Exception:
                pass
            try:
                x = candelabra.ones(2, requires_grad=True)
            except Exception:
                return
            assert (x * 3).requires_grad, "not recorded"

        run_concurrently(use)
        x = candelabra.ones(2, requires_grad=True)
        (x * 3).sum().backward()
        assert x.grad.tolist() == [3.0, 3.0]
    """,
    "what requires grad while the package is imported": """
        seen = []
        before_walks(lambda: seen.append(candelabra.ones(2, requires_grad=True)))

        def use(number):
            if number == 0:
                import candelabra.autograd as autograd
            x = candelabra.ones(2, requires_grad=True)
            (x * 3).sum().backward()
            return x.grad.tolist()

        assert run_concurrently(use) == [[3.0, 3.0]] * 32
        assert len(seen) == 1
    """,
    "formulas, with and without hooks on what is kept": """
        import contextlib
        import candelabra
        from candelabra import autograd

        names = ["exp", "sin", "cos", "tanh", "sigmoid", "sqrt", "log", "square", "reciprocal", "relu", "softmax", "cumsum", "erf", "atan"]

        def use(number):
            turn = number % len(names)
            packed = []
            found = {}
            watched = number % 3 == 0
            context = contextlib.nullcontext()
            if watched:
                context = autograd.graph.saved_tensors_hooks(lambda x: packed.append(1) or x, lambda x: x)
            elif number % 3 == 1:
                context = autograd.detect_anomaly()
            with context:
                for name in names[turn:] + names[:turn]:
                    x = candelabra.tensor([0.5, 1.5], requires_grad=True)
                    before = len(packed)
                    function = getattr(candelabra, name)
                    y = function(x, 0) if name in ("softmax", "cumsum") else function(x)
                    if watched and name in ("exp", "sin", "tanh", "log"):
                        assert len(packed) > before, f"{name}: the hooks were not called"
                    (y * candelabra.tensor([1.0, 2.0])).sum().backward()
                    found[name] = x.grad
            return found

        results = run_concurrently(use)
        expected = use(2)
        for found in results:
            for name in names:
                assert candelabra.equal(found[name], expected[name]), name
        # With the last one out, nothing is around the autograd_functions any more.
        assert not autograd.recording._modes
        x = candelabra.ones(2, requires_grad=True)
        assert len({type(one) for one in run_concurrently(lambda number: x.asinh().grad_fn)}) == 1
    """,
    # The hooks are installed after a thread has read the modes, but before it sets the autograd
    # function.
    "hooks that come in while an autograd function is written": """
        from candelabra import autograd

        reading, entered = threading.Event(), threading.Event()

        class Modes(list):
            def __iter__(self):
                yield from list(super().__iter__())
                if threading.current_thread() is not threading.main_thread() and not reading.is_set():
                    reading.set()
                    entered.wait(0.5)

        x = candelabra.tensor([0.5, 1.5], requires_grad=True)
        autograd.recording._modes = Modes()
        first = threading.Thread(target=lambda: x.exp())
        first.start()
        reading.wait()
        packed = []
        with autograd.graph.saved_tensors_hooks(lambda kept: packed.append(kept) or kept, lambda kept: kept):
            entered.set()
            first.join()
            x.exp()
        assert packed, "the hooks were not called"
    """,
    "transformations": """
        import candelabra

        x = candelabra.arange(6, dtype=candelabra.float64).view(3, 2)
        cube = lambda v: (v ** 3).sum()

        def checked(jacobian):
            return jacobian

        uses = (
            lambda: candelabra.vmap(lambda row: (row * row).sum())(x).sum() * 0 + 3 * x.square(),
            lambda: candelabra.func.grad(cube)(x),
            lambda: candelabra.func.jacrev(cube)(x),
            lambda: candelabra.func.jacfwd(cube)(x),
            lambda: candelabra.func.vmap(candelabra.func.grad(cube))(x),
            lambda: candelabra.autograd.functional.jacobian(cube, x),
            lambda: candelabra.autograd.functional.jacobian(cube, x, strategy="forward-mode", vectorize=True),
            lambda: candelabra.autograd.functional.vjp(cube, x)[1],
            lambda: candelabra.func.vjp(cube, x)[1](candelabra.ones((), dtype=candelabra.float64))[0],
            lambda: candelabra.autograd.grad(
                cube(leaf := x.clone().requires_grad_()), leaf, candelabra.ones(1, dtype=candelabra.float64), is_grads_batched=True
            )[0][0],
        )

        def forward_mode():
            with candelabra.autograd.forward_ad.dual_level():
                dual = candelabra.autograd.forward_ad.make_dual(x, candelabra.ones_like(x))
                return candelabra.autograd.forward_ad.unpack_dual(dual ** 3).tangent

        def checkpointed():
            leaf = x.clone().requires_grad_()
            candelabra.autograd.checkpoint.checkpoint(cube, leaf, use_reentrant=False).backward()
            return leaf.grad

        def checks():
            leaf = (x + 1).requires_grad_()
            assert candelabra.autograd.gradcheck(cube, leaf, check_forward_ad=True, check_batched_grad=True)
            return 3 * x.square()

        def profiled():
            with candelabra.autograd.profiler.profile():
                return 3 * x.square()

        def profiled_too():
            assert candelabra.profiler.ProfilerActivity.CPU is not None
            return 3 * x.square()

        uses = (*uses, forward_mode, checkpointed, checks, profiled, profiled_too)

        def use(number):
            turn = number % len(uses)
            for one in uses[turn:] + uses[:turn]:
                assert candelabra.allclose(one(), 3 * x.square()), one

        run_concurrently(use)
    """,
    "custom operators and functions": """
        import candelabra

        @candelabra.library.custom_op("first::cube", mutates_args=())
        def cube(x: candelabra.Tensor) -> candelabra.Tensor:
            return x * x * x

        cube.register_autograd(
            lambda ctx, grad: grad * 3 * ctx.saved_tensors[0] ** 2, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs)
        )

        def use(number):
            x = candelabra.tensor([1.0, 2.0], requires_grad=True)
            cube(x).sum().backward()
            return x.grad.tolist()

        assert run_concurrently(use) == [[3.0, 12.0]] * 32
    """,
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_first_use_by_many_threads(scenario):
    run_scenario(IN_THE_IMPORT + textwrap.dedent(SCENARIOS[scenario]), len(SCENARIOS))
