"""Test that each package works without the packages that it does not need.

An import finder in a separate process blocks those packages.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

DENIED = """
import sys

class Denied:
    names = {names}

    def find_spec(self, name, path=None, target=None):
        if any(name == one or name.startswith(one + ".") for one in self.names):
            error = ModuleNotFoundError(f"No module named {{name!r}}", name=name)
            error.subpackage = name.split(".")[1]  # as the core's own finder says of a package that is not installed
            raise error

sys.meta_path.insert(0, Denied())
import candelabra
"""

PROGRAMS = {
    "nn computes without autograd and optim": (
        ("candelabra.autograd", "candelabra.optim", "candelabra.distributions"),
        """
from candelabra import nn
model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3), nn.Softmax(-1)).eval()
lstm = nn.LSTM(3, 4, batch_first=True)
encoder = nn.TransformerEncoderLayer(4, 2, batch_first=True).eval()
with candelabra.no_grad():
    out = encoder(lstm(model(candelabra.ones(2, 1, 4, 4))[:, None])[0])
assert out.shape == (2, 1, 4)
again = nn.Linear(2, 2)
again.load_state_dict(nn.Linear(2, 2).state_dict())
print("done")
""",
    ),
    "optim steps without nn": (
        ("candelabra.nn", "candelabra.distributions"),
        """
from candelabra import optim
for kind in (optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop, optim.Adagrad, optim.Adadelta, optim.NAdam):
    x = candelabra.full((3,), 2.0, requires_grad=True)
    optimizer = kind([x], lr=0.1)
    schedule = optim.lr_scheduler.StepLR(optimizer, 1)
    (x * x).sum().backward()
    optimizer.step()
    schedule.step()
    assert (x < 2).all(), kind
print("done")
""",
    ),
    "optim steps with gradients given by hand, without autograd": (
        ("candelabra.nn", "candelabra.autograd", "candelabra.distributions"),
        """
from candelabra import optim
x = candelabra.ones(3)
x.grad = candelabra.ones(3)
optim.SGD([x], lr=0.5).step()
assert x.tolist() == [0.5] * 3
print("done")
""",
    ),
    "autograd differentiates without nn and optim": (
        ("candelabra.nn", "candelabra.optim", "candelabra.distributions"),
        """
from candelabra import autograd, func
x = candelabra.tensor([1.0, 2.0], requires_grad=True)
(x * x).sum().backward()
assert x.grad.tolist() == [2, 4]
assert autograd.functional.hessian(lambda v: (v * v).sum(), x.detach()).tolist() == [[2, 0], [0, 2]]
assert func.vmap(func.grad(lambda v: v * v))(candelabra.tensor([1.0, 2.0])).tolist() == [2, 4]
print("done")
""",
    ),
    "the core computes alone": (
        ("candelabra.nn", "candelabra.optim", "candelabra.autograd", "candelabra.distributions"),
        """
assert (candelabra.ones(3) * 2).sum().item() == 6
assert candelabra.linalg.det(candelabra.eye(2)).item() == 1
try:
    import candelabra.nn
except ModuleNotFoundError as error:
    print("done")
""",
    ),
}


@pytest.mark.parametrize("title", PROGRAMS)
def test_independence(title: str) -> None:
    names, program = PROGRAMS[title]
    done = subprocess.run(
        [sys.executable, "-c", DENIED.format(names=names) + program], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.strip() == "done", done.stderr
