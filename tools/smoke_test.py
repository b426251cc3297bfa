"""Take one training step with the installed wheels, and import each of them, but those that are
named on the command line. ``nox -s wheels`` runs this in an environment with nothing else.
"""

import sys

import candelabra
from candelabra import nn, optim

candelabra.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = optim.SGD(model.parameters(), lr=0.1)
x = candelabra.randn(16, 4)
y = x.sum(1, keepdim=True)


def step() -> float:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return float(loss.item())


first, second = step(), step()
assert second < first, f"the loss did not fall: {first} to {second}"
for name, package in candelabra.assembly.SUBPACKAGES.items():
    if name in sys.argv[1:]:
        continue
    assert getattr(candelabra, name).__name__ == f"candelabra.{name}", package
assert not candelabra.cuda.is_available(), "the CUDA backend is not among the wheels"
assert x.__array_namespace__() is candelabra.array_api
print(f"smoke test: candelabra {candelabra.__version__}, loss {first:.4f} -> {second:.4f}")
