"""Random numbers: Philox 4x32-10, counted, so that a seed gives the same numbers on every backend (docs/backends.md, "Random numbers")."""

from .declaration import COMPOSITE, HIDDEN, METHOD_ONLY, NO_OUT, NONDIFFERENTIABLE, RANDOM, operator

_FILL = METHOD_ONLY | RANDOM | NO_OUT
operator("uniform_(Tensor(a!) self, float from=0, float to=1) -> Tensor(a!)", shape="mutate_self", tags=_FILL)
operator("normal_(Tensor(a!) self, float mean=0, float std=1) -> Tensor(a!)", shape="mutate_self", tags=_FILL)
operator("bernoulli_(Tensor(a!) self, float p=0.5) -> Tensor(a!)", shape="mutate_self", tags=_FILL)
operator("exponential_(Tensor(a!) self, float lambd=1) -> Tensor(a!)", shape="mutate_self", tags=_FILL)
# whole numbers from low (included) to high (excluded)
operator("random_range_(Tensor(a!) self, int low, int high) -> Tensor(a!)", shape="mutate_self", tags=_FILL | HIDDEN)
operator("bernoulli(Tensor self) -> Tensor", shape="unary", tags=RANDOM | NONDIFFERENTIABLE)
operator(
    "randperm(int n, *, dtype dtype, device? device=None) -> Tensor", shape="randperm", tags=RANDOM | HIDDEN | NONDIFFERENTIABLE
)
# input where kept, times 1 / (1 - p), else 0; mask is bool, true where kept
operator(
    "native_dropout(Tensor input, float p) -> (Tensor output, Tensor mask)", shape="native_dropout",
    tags=RANDOM | HIDDEN | COMPOSITE | NO_OUT,
)  # fmt: skip
