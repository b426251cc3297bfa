"""Test the worked example of CONTRIBUTING.md, "Adding an operator": its listings must define an
operator.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[3] / "CONTRIBUTING.md"

PROGRAM = """
import importlib.machinery

ADDED = {added!r}
plain = importlib.machinery.SourceFileLoader.get_code


def get_code(self, name):
    # The module with the listing at its end, as if it had been added to the file.
    if name not in ADDED:
        return plain(self, name)
    path = self.get_filename(name)
    return compile(self.get_data(path).decode() + ADDED[name], path, "exec")


importlib.machinery.SourceFileLoader.get_code = get_code

import numpy as np

import candelabra
from candelabra.autograd import gradcheck, gradgradcheck

values = np.linspace(-3, 3, 41)
expected = values**2 / (1 + np.abs(values))
x = candelabra.from_numpy(values.copy())
np.testing.assert_allclose(candelabra.softsquare(x).numpy(), expected, rtol=1e-14)
np.testing.assert_allclose(x.softsquare().numpy(), expected, rtol=1e-14)
out = candelabra.empty(41, dtype=candelabra.float64)
assert candelabra.softsquare(x, out=out) is out
np.testing.assert_allclose(out.numpy(), expected, rtol=1e-14)
changed = x.clone()
assert changed.softsquare_() is changed
np.testing.assert_allclose(changed.numpy(), expected, rtol=1e-14)
assert "softsquare" in candelabra.softsquare.__doc__
point = (x + 0.01).requires_grad_()
assert gradcheck(candelabra.softsquare, point)
assert gradgradcheck(candelabra.softsquare, point)
assert "softsquare" in type(candelabra.softsquare(point).grad_fn).__name__.lower()
"""


def _listing(begin: str) -> str:
    """Return the code block of the example that begins with these words."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text().partition("### Example: softsquare")[2], re.S)
    (block,) = (block for block in blocks if block.startswith(begin))
    return "\n" + block


def test_the_example_makes_an_operator(tmp_path: Path):
    added = {
        "candelabra.catalogue.elementwise": _listing("operator("),
        "candelabra.composite.elementwise.activation": _listing('@decomposes("softsquare")'),
        "candelabra.autograd.derivatives.elementwise": _listing('derivative("softsquare"'),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(added=added)], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
