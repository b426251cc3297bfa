"""Entries of PyTorch's operator database that are compared, and reasons for those that are not."""

from __future__ import annotations

import re
from typing import Any

#: Names that are not part of Candelabra, or of PyTorch's documented interface, with the reason.
#: Patterns match whole names.
OUT_OF_SCOPE = [
    (r"jiterator_.*", "compiles CUDA code from a string; not documented for the CPU"),
    (r"torch\._.*", "a private name"),
    (r"max_pool2d_with_indices_backward", "a private operator without a public name"),
    (r"_.*(?<!__)", "a private name"),
    (r"masked\..*", "torch.masked"),
    (r"sparse\..*|to_sparse|.*sparse_sampled_addmm", "sparse tensors"),
    (r"chalf", "complex32"),
    (r"ops\..*", "a private operator without a public name"),
]

#: Entries whose function is only reachable through ``torch.ops``.
PRIVATE_FUNCTIONS = ("torch.ops.", "torch._", "aten::")

#: Random operators: shapes, dtypes and errors are compared, but not values.
RANDOM = re.compile(
    r"(cauchy|exponential|geometric|log_normal|uniform|normal|bernoulli|multinomial|poisson|randn?(_like)?|randint(_like)?"
    r"|nn\.functional\.(rrelu|.*dropout.*|gumbel_softmax|scaled_dot_product_attention_dropout|fractional_max_pool[23]d)"
    r"|native_dropout|svd_lowrank|pca_lowrank|lobpcg)"
)

#: Operators that return uninitialized memory.
UNINITIALIZED = re.compile(r"(new_)?empty(_like|_strided|_permuted)?|new_empty_strided|resize_|resize_as_")

#: Operators that may select any of several equal elements, with the position of `dim` among the
#: arguments after the input. The selected elements are compared instead of the indices, unless a
#: stable order is requested.
TIES = {"sort": 0, "argsort": 0, "topk": 1, "kthvalue": 1, "median": 0, "nanmedian": 0, "mode": 0}

#: Operators whose gradient goes to one of several equal elements. In low precision, where these
#: occur, it is not compared.
TIED_GRADIENTS = ("msort",)

#: Known errors of PyTorch, established independently of our result, by name. They count as right.
PYTORCH_IS_WRONG: dict[str, str] = {
    "as_strided_scatter": "PyTorch's gradient of the input is that of the part that was overwritten, and zero for the part that was kept",
    "fft.ihfft2": "PyTorch leaves out= as it was where one dimension is transformed",
    "fft.ihfftn": "PyTorch leaves out= as it was where one dimension is transformed",
    "special.bessel_j0": "PyTorch is wrong in the seventh digit near a zero of the function; SciPy agrees with Candelabra",
    "special.bessel_y1": "PyTorch is wrong in the seventh digit near a zero of the function; SciPy agrees with Candelabra",
}

#: Intended or unavoidable differences from PyTorch, by name, with the reason. They still count as
#: different.
DIFFERENCES: dict[str, str] = {
    "logcumsumexp": "of complex numbers the angle differs by a multiple of 2 pi: Candelabra's is from -pi to pi, as that of log",
}


def out_of_scope(name: str) -> str | None:
    """Return the reason why a name is not compared, or None."""
    for pattern, reason in OUT_OF_SCOPE:
        if re.fullmatch(pattern, name):
            return reason
    return None


def values_are_compared(name: str) -> bool:
    """Return whether two runs of an operator with different generators give the same values."""
    return not (RANDOM.fullmatch(name) or UNINITIALIZED.fullmatch(name))


#: Operators with a dropout probability, and its position among the arguments after the input if it
#: is not given by name.
DROPOUT = {"nn.functional.scaled_dot_product_attention": 3, "nn.functional.multi_head_attention_forward": 9}


def drops_at_random(name: str, sample: Any) -> bool:
    """Return whether this call applies dropout."""
    if name not in DROPOUT or not sample.kwargs.get("training", True):
        return False
    place = DROPOUT[name]
    return sample.kwargs.get("dropout_p", sample.args[place] if len(sample.args) > place else 0.0) > 0
