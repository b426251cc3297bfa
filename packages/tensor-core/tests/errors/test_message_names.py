"""Messages name functions as programs call them: no names of inner functions or of operators that
have no public name.
"""

from __future__ import annotations

import re
import warnings

import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra as c

SPACES = {"": c, "linalg": c.linalg, "fft": c.fft, "special": c.special}
MATRIX = c.ones(2, 3)
WRONG = [
    (),
    ("text",),
    (None,),
    (MATRIX, "text"),
    (MATRIX, c.ones(4, 5)),
    (MATRIX, MATRIX.double(), None),
    (MATRIX.long(), [MATRIX]),
]
#: Functions that change the state of the process, or read files.
SKIPPED = re.compile(r"_|set_|load|save|manual_seed|seed|compile|use_|from_file|import_|hub")
#: Names that are said on purpose: protocols of Python, and operators that PyTorch's programs call.
KNOWN = re.compile(r"__\w+__|_scaled_mm")
INTERNAL = re.compile(r"<locals>|\b_[a-z]\w*\b|\b\w+_(?:forward|backward|values)\(\)")


def internal_names(message: str) -> list[str]:
    """Return the names in a message that no program can have written."""
    return [name for name in INTERNAL.findall(message) if not KNOWN.fullmatch(name)]


@pytest.mark.parametrize("space", SPACES)
def test_messages_have_no_internal_names(space):
    found = {}
    calls = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in dir(SPACES[space]):
            try:
                function = getattr(SPACES[space], name)
            except (AttributeError, ImportError):  # a package that is not installed, whose names are listed
                continue
            if SKIPPED.match(name) or not callable(function) or isinstance(function, type):
                continue
            for arguments in WRONG:
                try:
                    function(*arguments)
                except Exception as error:
                    calls += 1
                    if names := internal_names(str(error)):
                        found[f"{name}{arguments!r:.40}"] = (names, str(error)[:120])
    assert calls > 100
    assert not found


def test_what_is_internal():
    assert internal_names("_narrow_spellings() missing 1 required positional argument: 'input'") == [
        "_narrow_spellings"
    ]
    assert internal_names("f.<locals>.g() takes 2 positional arguments") == ["<locals>"]
    assert internal_names("nll_loss_forward(): expected a tensor") == ["nll_loss_forward()"]
    assert not internal_names("add_(): argument 'x_y' has no __dlpack__ method")


def test_none_for_a_tensor_is_told_by_its_argument():
    with pytest.raises(TypeError, match=r"trace\(\): argument 'input' \(position 1\) must be Tensor, not NoneType"):
        c.trace(None)
    with pytest.raises(TypeError, match=r"^hsplit\(\) missing 1 required positional argument"):
        c.hsplit(MATRIX)
    with pytest.raises(TypeError, match=r"^to\(\): argument 'dtype' .* must be candelabra.dtype, not int"):
        c.as_tensor(MATRIX, 7)
    with pytest.raises(TypeError, match=r"^triu_indices\(\): argument"):
        c.triu_indices("text", 2)
