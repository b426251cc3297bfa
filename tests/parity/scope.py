"""Which entries of PyTorch's operator database are compared, and why the others are not."""

from __future__ import annotations

import re
from typing import Any

#: Names that are no part of Candelabra, or no part of PyTorch's documented interface, with the
#: reason. Patterns match whole names.
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

#: Entries whose function is reachable only through ``torch.ops``, not by a name of their own.
PRIVATE_FUNCTIONS = ("torch.ops.", "torch._", "aten::")

#: Operators whose values are drawn at random: shapes, dtypes and errors are compared, values are
#: not.
RANDOM = re.compile(
    r"(cauchy|exponential|geometric|log_normal|uniform|normal|bernoulli|multinomial|poisson|randn?(_like)?|randint(_like)?"
    r"|nn\.functional\.(rrelu|.*dropout.*|gumbel_softmax|scaled_dot_product_attention_dropout|fractional_max_pool[23]d)"
    r"|native_dropout|svd_lowrank|pca_lowrank|lobpcg)"
)

#: Operators that return memory without writing it: values mean nothing.
UNINITIALIZED = re.compile(r"(new_)?empty(_like|_strided|_permuted)?|new_empty_strided|resize_|resize_as_")

#: Operators that may point at any of several equal elements, with the position of `dim` among the
#: arguments after the input: what their indices point at is compared, unless a stable order is
#: asked for.
TIES = {"sort": 0, "argsort": 0, "topk": 1, "kthvalue": 1, "median": 0, "nanmedian": 0, "mode": 0}

#: Operators whose gradient goes to one of several equal elements: in low precision, where there are
#: such, it is not compared.
TIED_GRADIENTS = ("msort",)

#: Where the difference is an error of PyTorch's, seen by other means than our own result: name to
#: what is wrong. They count as right.
PYTORCH_IS_WRONG: dict[str, str] = {
    "as_strided_scatter": "PyTorch's gradient of the input is that of the part that was overwritten, and zero for the part that was kept",
    "fft.ihfft2": "PyTorch leaves out= as it was where one dimension is transformed",
    "fft.ihfftn": "PyTorch leaves out= as it was where one dimension is transformed",
    "special.bessel_j0": "PyTorch is wrong in the seventh digit near a zero of the function; SciPy agrees with Candelabra",
    "special.bessel_y1": "PyTorch is wrong in the seventh digit near a zero of the function; SciPy agrees with Candelabra",
}

#: Where Candelabra differs from PyTorch and means to, or cannot do otherwise: name to reason. They
#: count as different all the same.
DIFFERENCES: dict[str, str] = {
    "logcumsumexp": "of complex numbers the angle differs by a multiple of 2 pi: Candelabra's is from -pi to pi, as that of log",
}


def out_of_scope(name: str) -> str | None:
    """The reason why this name is not compared, or None when it is."""
    for pattern, reason in OUT_OF_SCOPE:
        if re.fullmatch(pattern, name):
            return reason
    return None


def values_are_compared(name: str) -> bool:
    """Whether two runs of this operator, with different generators, give the same values."""
    return not (RANDOM.fullmatch(name) or UNINITIALIZED.fullmatch(name))


#: Operators with a probability of dropout among their options: where it is among the arguments
#: after the input, when not by name.
DROPOUT = {"nn.functional.scaled_dot_product_attention": 3, "nn.functional.multi_head_attention_forward": 9}


def drops_at_random(name: str, sample: Any) -> bool:
    """Whether this call draws what it leaves out."""
    if name not in DROPOUT or not sample.kwargs.get("training", True):
        return False
    place = DROPOUT[name]
    return sample.kwargs.get("dropout_p", sample.args[place] if len(sample.args) > place else 0.0) > 0
