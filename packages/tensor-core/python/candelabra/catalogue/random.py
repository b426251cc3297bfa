"""Random numbers: counter-based Philox 4x32-10, so that a seed gives the same numbers on every
backend (docs/backends.md, "Random numbers").
"""

from .declaration import (
    COMPOSITE,
    HIDDEN,
    METHOD_ONLY,
    NO_OUT,
    NONDIFFERENTIABLE,
    OVERWRITES,
    RANDOM,
    document,
    operator,
)

# What kernels are given, beyond the general rules of docs/kernel-contract.template.md.
_SEES_FILLED = "The output is self, of any strides; element i in row-major order gets the i-th number of the call."

_FILL = METHOD_ONLY | RANDOM | NO_OUT | OVERWRITES
_GENERATOR = "Generator, optional: the random generator; by default the device's"


def _filled(sentence: str, example: str, **parameters: str) -> str:
    return document(sentence, example, **parameters, generator=_GENERATOR, returns="Tensor: this tensor", out="")


operator(
    "uniform_(Tensor(a!) self, float from=0, float to=1) -> Tensor(a!)", shape="uniform", tier="required", tags=_FILL,
    sees=f"{_SEES_FILLED} The dtype is floating point, and from is not above to.",
    doc=_filled(
        "Fill with numbers drawn uniformly from `from` (included) to `to` (excluded).",
        ">>> x = candelabra.empty(100).uniform_(1, 2)\n>>> bool(((x >= 1) & (x < 2)).all())\nTrue",
        **{"from": "float: the lower end"}, to="float: the upper end",
    ),
)  # fmt: skip
operator(
    "normal_(Tensor(a!) self, float mean=0, float std=1) -> Tensor(a!)", shape="normal", tier="required", tags=_FILL,
    sees=f"{_SEES_FILLED} The dtype is floating point, and std is not negative.",
    doc=_filled(
        "Fill with numbers drawn from a normal distribution.",
        ">>> candelabra.empty(2).normal_(3, 0)\ntensor([3., 3.])",
        mean="float: the mean", std="float: the standard deviation",
    ),
)  # fmt: skip
operator(
    "bernoulli_(Tensor(a!) self, float p=0.5) -> Tensor(a!)", shape="bernoulli_in_place", tier="fast", tags=_FILL,
    sees=f"{_SEES_FILLED} The dtype is not complex, and p is in [0, 1].",
    doc=_filled(
        "Fill with ones with a probability, else with zeros.",
        ">>> candelabra.empty(2).bernoulli_(1.0)\ntensor([1., 1.])", p="float: the probability of one",
    ),
)  # fmt: skip
operator(
    "exponential_(Tensor(a!) self, float lambd=1) -> Tensor(a!)", shape="exponential", tags=_FILL,
    sees=f"{_SEES_FILLED} The dtype is floating point, and lambd is positive.",
    doc=_filled(
        "Fill with numbers drawn from an exponential distribution.",
        ">>> bool((candelabra.empty(100).exponential_() >= 0).all())\nTrue", lambd="float: the rate, one over the mean",
    ),
)  # fmt: skip
# integers from low (included) to high (excluded)
operator(
    "random_range_(Tensor(a!) self, int low, int high) -> Tensor(a!)", shape="random_range", title="random_", tier="required", tags=_FILL | HIDDEN,
    sees=f"{_SEES_FILLED} The dtype is not complex, and low is below high.",
    doc=_filled(
        "Fill with integers drawn uniformly from `low` (included) to `high` (excluded).",
        ">>> candelabra.ops.random_range_(candelabra.empty(2), 7, 8)\ntensor([7., 7.])", low="int: the lowest", high="int: one above the highest",
    ),
)  # fmt: skip
operator(
    "bernoulli(Tensor self) -> Tensor", shape="unary", tags=RANDOM, refuses={"bool": None, "integer": None, "complex": None},
    out="any_dtype",
    sees=(
        "self has the dtype of the output, floating point; element i in row-major order gets the i-th number of the"
        " call."
    ),
    doc=document(
        "Draw ones with given probabilities, else zeros; ``bernoulli(input, p)`` uses one probability for all.",
        ">>> candelabra.bernoulli(candelabra.tensor([0.0, 1.0]))\ntensor([0., 1.])",
        input="Tensor: the probabilities of one", generator=_GENERATOR, returns="Tensor: of the shape and dtype of `input`",
    ),
)  # fmt: skip
operator(
    "randperm(int n, *, dtype dtype, device? device=None) -> Tensor", shape="randperm", tags=RANDOM | HIDDEN | NONDIFFERENTIABLE,
    sees="The output is one-dimensional and contiguous; its dtype holds all numbers below n exactly.",
    doc=document(
        "Return a random permutation of the integers from 0 to ``n - 1``; :func:`candelabra.randperm` has defaults.",
        ">>> candelabra.ops.randperm(3, dtype=candelabra.int64).sum()\ntensor(3)",
        n="int: the number of elements", dtype="dtype: of the result", device="device, optional: by default the default device",
        generator=_GENERATOR, returns="Tensor: of `n` elements",
    ),
)  # fmt: skip
# input where kept, times 1 / (1 - p), else 0; mask is bool, true where kept
operator(
    "native_dropout(Tensor input, float p) -> (Tensor output, Tensor mask)", shape="native_dropout", title="dropout", tier="fast",
    tags=RANDOM | HIDDEN | COMPOSITE | NO_OUT,
    sees=(
        "input is floating point or complex, of any strides; output and mask (bool) have its memory order. Element "
        "i in row-major order gets the i-th number of the call."
    ),
    doc=document(
        "Zero random elements and divide the others by ``1 - p`` (Srivastava et al. 2014).",
        ">>> candelabra.ops.native_dropout(candelabra.ones(2), 1.0).mask\ntensor([False, False])",
        input="Tensor: floating point", p="float: the probability of an element to be zeroed", generator=_GENERATOR,
        returns="(output, mask): the mask is true for elements that were kept", out="",
    ),
)  # fmt: skip
