"""Test that the package needs only the core and a backend."""

import subprocess
import sys

PROGRAM = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[:2] in (["candelabra", "autograd"], ["candelabra", "nn"]):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import candelabra
from candelabra import optim
from candelabra.optim import *

for name in optim.__all__:
    kind = getattr(optim, name)
    if isinstance(kind, type) and kind not in (optim.Optimizer, optim.SparseAdam):
        weight = candelabra.ones(2, 2)
        weight.grad = candelabra.ones(2, 2)
        optimizer = kind([weight], lr=0.1)
        schedule = optim.lr_scheduler.StepLR(optimizer, 1)
        optimizer.step(lambda: 1.0)
        schedule.step()
        assert bool((weight < 1).all()), name
assert not any(name.startswith(("candelabra.autograd", "candelabra.nn")) for name in sys.modules)
print("fine")
"""


def test_without_autograd_and_nn():
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "fine\n"
