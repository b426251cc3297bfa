"""Test the first use of each package by many threads in fresh processes. The order of imports that
makes it safe is checked by tools/lint_import_order.py.
"""

from __future__ import annotations

import pytest

from candelabra.testing.first_use import run_scenario

SCENARIOS = {
    "attributes of the package": """
        import candelabra
        from candelabra.assembly import LAZY_FUNCTIONS, LAZY_MODULES, NATIVE_FUNCTIONS, NN_FUNCTIONS, SUBPACKAGES, TAPE_FUNCTIONS

        modules = [*SUBPACKAGES, *LAZY_MODULES]
        functions = [*LAZY_FUNCTIONS, *sorted(NN_FUNCTIONS), *sorted(NATIVE_FUNCTIONS), *sorted(TAPE_FUNCTIONS)]
        names = [name for pair in zip(modules, functions) for name in pair] + modules + functions

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
    "import statements": """
        statements = (
            "from candelabra import nn", "from candelabra.nn import functional", "import candelabra.autograd", "from candelabra import optim",
            "from candelabra.func import vmap", "from candelabra import utils", "from candelabra.utils import data",
            "from candelabra import distributions", "import candelabra.torch", "from candelabra.safetensors import load_file",
            "from candelabra.utils.checkpoint import checkpoint", "from candelabra.profiler import profile", "from candelabra import cuda",
            "from candelabra.optim import lr_scheduler, swa_utils", "from candelabra import multiprocessing", "from candelabra import array_api",
            "from candelabra.hub import load",
        )
        import candelabra

        def use(number):
            turn = number % len(statements)
            for statement in statements[turn:] + statements[:turn]:
                names = {}
                exec(statement, names)
                for name, module in names.items():
                    if name != "__builtins__" and hasattr(module, "__spec__"):
                        assert not getattr(module.__spec__, "_initializing", False), f"{name} is seen before it is whole"

        run_concurrently(use)
    """,
    "a layer and a step of training": """
        import candelabra

        def use(number):
            layers = (
                lambda: candelabra.nn.Linear(3, 2),
                lambda: candelabra.nn.Sequential(candelabra.nn.Linear(3, 2), candelabra.nn.LayerNorm(2)),
                lambda: candelabra.nn.Sequential(candelabra.nn.Linear(3, 2), candelabra.nn.Dropout(0.5)).eval(),
            )
            layer = layers[number % 3]().double()
            backward = []
            layer.register_full_backward_hook(lambda module, grad_input, grad_output: backward.append(grad_output[0].shape))
            optimizer = (candelabra.optim.SGD, candelabra.optim.Adam, candelabra.optim.AdamW)[number % 3](layer.parameters(), lr=0.1)
            x = candelabra.ones(4, 3, dtype=candelabra.float64)
            target = candelabra.tensor([[1.0, 7.0]] * 4, dtype=candelabra.float64)
            weight = next(layer.parameters())
            before = weight.detach().clone()
            loss = candelabra.nn.functional.mse_loss(layer(x), target)
            assert loss.requires_grad and loss.grad_fn is not None, "not recorded"
            loss.backward()
            assert all(parameter.grad is not None for parameter in layer.parameters()), "no gradient"
            assert backward == [(4, 2)]
            # The gradient is the one that central differences give.
            gradient, step = weight.grad[0, 0].item(), 1e-6
            with candelabra.no_grad():
                losses = []
                for change in (step, -2 * step):
                    weight[0, 0] += change
                    losses.append(candelabra.nn.functional.mse_loss(layer(x), target).item())
                weight[0, 0] += step
            slope = (losses[0] - losses[1]) / (2 * step)
            assert abs(slope - gradient) < 1e-4 * max(1, abs(slope)), (slope, gradient)
            optimizer.step()
            assert not candelabra.equal(weight.detach(), before)

        run_concurrently(use)
    """,
    "distributions, data, shared memory, mixed precision": """
        import os
        import candelabra

        candelabra.ones(1)

        def gamma():
            concentration = candelabra.tensor([2.0, 3.0], requires_grad=True)
            candelabra.distributions.Gamma(concentration, candelabra.ones(2)).rsample().sum().backward()
            assert concentration.grad is not None and (concentration.grad > 0).all()

        def divergence():
            normal = candelabra.distributions.Normal
            assert abs(candelabra.distributions.kl_divergence(normal(0.0, 1.0), normal(1.0, 1.0)).item() - 0.5) < 1e-6

        def data():
            loader = candelabra.utils.data.DataLoader(candelabra.utils.data.TensorDataset(candelabra.arange(6)), batch_size=4)
            assert [batch[0].tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5]]

        def shared():
            tensor = candelabra.arange(5).share_memory_()
            assert tensor.is_shared() and tensor.tolist() == [0, 1, 2, 3, 4]

        def mixed():
            layer = candelabra.nn.Linear(4, 4)
            with candelabra.autocast("cpu", dtype=candelabra.bfloat16):
                y = layer(candelabra.ones(2, 4))
            assert y.dtype is candelabra.bfloat16
            y.float().sum().backward()
            assert candelabra.allclose(layer.weight.grad, candelabra.full((4, 4), 2.0))

        def transformed():
            layer = candelabra.nn.Linear(3, 1)
            parameters = dict(layer.named_parameters())
            loss = lambda given, x: candelabra.func.functional_call(layer, given, (x,)).sum()
            gradients = candelabra.vmap(candelabra.func.grad(loss), in_dims=(None, 0))(parameters, candelabra.ones(5, 3))
            assert candelabra.equal(gradients["weight"], candelabra.ones(5, 1, 3))

        uses = [gamma, divergence, data, shared, mixed, transformed]

        def use(number):
            turn = number % len(uses)
            for one in uses[turn:] + uses[:turn]:
                one()

        run_concurrently(use)
    """,
    "shared memory by name": """
        import candelabra

        candelabra.multiprocessing.set_sharing_strategy("file_system")

        def use(number):
            return candelabra.full((100,), number).share_memory_()

        for number, tensor in enumerate(run_concurrently(use)):
            assert tensor.tolist() == [number] * 100, number
    """,
    "PyTorch's name": """
        import candelabra
        import candelabra.torch

        candelabra.torch.install()

        def use(number):
            if number % 2:
                from torch import nn
                import torch.nn.functional as F
            else:
                import torch.nn.functional as F
                from torch import nn
            import torch

            x = torch.ones(2, 3, requires_grad=True)
            F.relu(nn.Linear(3, 2)(x) + 10).sum().backward()
            return x.grad is not None and torch.nn.functional is F

        assert all(run_concurrently(use))
    """,
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_first_use_by_many_threads(scenario):
    run_scenario(SCENARIOS[scenario], len(SCENARIOS))
