"""Test that sampling and densities need no autograd."""

import subprocess
import sys

PROGRAM = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[:2] == ["candelabra", "autograd"]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import candelabra
from candelabra import distributions as D

for made in (D.Gamma(2.0, 1.0), D.Beta(0.5, 0.5), D.Normal(0.0, 1.0), D.StudentT(3.0), D.Wishart(3.0, candelabra.eye(2))):
    draws = made.sample((5,))
    assert bool(made.log_prob(draws).isfinite().all())
assert D.kl_divergence(D.Gamma(2.0, 1.0), D.Gamma(2.0, 1.0)).item() == 0
assert not any(name.startswith(("candelabra.autograd", "candelabra.nn", "candelabra.optim")) for name in sys.modules)
print("fine")
"""


def test_without_autograd():
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "fine\n"
