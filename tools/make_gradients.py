"""Write docs/gradients.md, the finite-difference checks of every operator's derivatives: ``python
tools/make_gradients.py [OPERATOR …]``.

With operator names, only check and print these. The sample calls are those of candelabra-autograd's
tests. A full run takes some minutes.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "packages" / "autograd" / "tests"))

from checking import as_function  # noqa: E402
from expressions import COMPLEX_EXPRESSIONS, EXPRESSIONS, NOT_DIFFERENTIATED, expressions  # noqa: E402
from samples import COMPLEX_OPERATORS, has_samples, samples  # noqa: E402

import candelabra  # noqa: E402
from candelabra.autograd import gradcheck, gradgradcheck  # noqa: E402
from candelabra.catalogue import FAMILIES, OPERATORS  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PAGE = ROOT / "docs" / "gradients.md"
NONDIFFERENTIABLE = 8
#: Operators whose derivative is a decomposition, checked as the second derivative of another
#: operator.
SECOND_DERIVATIVES = {
    "grid_sampler_backward": "grid_sampler_forward", "native_layer_norm_backward": "native_layer_norm",
    "native_group_norm_backward": "native_group_norm", "lstm_sequence_backward": "lstm_sequence",
    "recurrent_sequence_backward": "recurrent_sequence", "recurrent_stack_backward": "recurrent_stack_kept",
}  # fmt: skip
OPTIONS: dict[str, Any] = {"atol": 1e-4, "rtol": 1e-3}
CHECKS: dict[str, Callable[..., bool]] = {
    "gradient": lambda function, tensors: gradcheck(function, tensors, **OPTIONS),
    "of the gradient": lambda function, tensors: gradgradcheck(function, tensors, **OPTIONS),
    "forward mode": lambda function, tensors: gradcheck(
        function, tensors, check_forward_ad=True, check_backward_ad=False, check_undefined_grad=False, **OPTIONS
    ),
    "forward over reverse": lambda function, tensors: gradgradcheck(
        function, tensors, check_fwd_over_rev=True, check_rev_over_rev=False, **OPTIONS
    ),
    "batches": lambda function, tensors: gradcheck(function, tensors, check_batched_grad=True, **OPTIONS),
}


def calls(name: str, dtype: Any) -> Iterator[tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Yield functions that call an operator, and the tensors to differentiate with respect to."""
    if name in EXPRESSIONS:
        if dtype is candelabra.float64 or name in COMPLEX_EXPRESSIONS:
            yield from expressions(name, dtype)
    elif has_samples(name) and (dtype is candelabra.float64 or name in COMPLEX_OPERATORS):
        for arguments, keywords in samples(name, dtype):
            yield as_function(OPERATORS[name], arguments, keywords)


def outcome(check: Callable[..., bool], name: str, dtype: Any) -> str:
    """Run one check on all calls. Return "yes", the error, or "" without calls."""
    count = 0
    for function, tensors in calls(name, dtype):
        count += 1
        try:
            check(function, tensors)
        except Exception as error:  # the table reports every error
            text = str(error).strip()
            return f"no: {text.splitlines()[0] if text else type(error).__name__}"
    return "yes" if count else ""


def rows(names: list[str]) -> Iterator[list[str]]:
    """Yield the rows of the table."""
    for number, name in enumerate(names):
        print(f"\r{number + 1}/{len(names)} {name:40}", end="", file=sys.stderr, flush=True)
        if name in NOT_DIFFERENTIATED:
            yield [f"`{name}`", *["not differentiated, as in PyTorch"] + [""] * (len(CHECKS) - 1)]
            continue
        if name in SECOND_DERIVATIVES:
            yield [f"`{name}`", *[f"see `{SECOND_DERIVATIVES[name]}`"] + [""] * (len(CHECKS) - 1)]
            continue
        cells = []
        for check in CHECKS.values():
            real = outcome(check, name, candelabra.float64)
            complex_ = outcome(check, name, candelabra.complex128)
            cells.append(
                real
                if not complex_
                else "yes, complex too"
                if real == complex_ == "yes"
                else f"{real}; complex: {complex_}"
            )
        yield [f"`{name}`", *cells]
    print(file=sys.stderr)


def page() -> str:
    """Return the page."""
    parts = [
        "# Gradients\n\nEvery operator whose results have derivatives, against finite differences in float64 (and complex128, where it says so): the gradient, "
        "the gradient\nof the gradient, tangents in forward mode, tangents of the gradient, and gradients computed in a batch by `vmap`.\n\n"
        "Written by `python tools/make_gradients.py` from the sample calls of candelabra-autograd's tests.\n"
    ]
    heads = ["Operator", *CHECKS]
    for family, members in FAMILIES.items():
        names = [name for name in members if not OPERATORS[name].tags & NONDIFFERENTIABLE]
        if not names:
            continue
        lines = [f"| {' | '.join(heads)} |", f"| {' | '.join('---' for _ in heads)} |"]
        lines += [f"| {' | '.join(cell.replace('|', '/')[:160] for cell in row)} |" for row in rows(names)]
        parts.append(f"\n## {family}\n\n" + "\n".join(lines) + "\n")
    return "".join(parts)


def main() -> int:
    """Write the page, or print the rows of the named operators."""
    warnings.simplefilter("ignore")
    candelabra.manual_seed(0)
    if sys.argv[1:]:
        for row in rows(sys.argv[1:]):
            print(" | ".join(row))
        return 0
    text = page()
    PAGE.write_text(text, encoding="utf-8")
    return int("| no: " in text or "complex: no" in text)


if __name__ == "__main__":
    raise SystemExit(main())
