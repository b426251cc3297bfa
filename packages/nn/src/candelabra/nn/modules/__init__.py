"""All layers, by family."""

from . import (
    activation,
    batchnorm,
    container,
    containers,
    conv,
    convolution,
    distance,
    dropout,
    embedding,
    flatten,
    instancenorm,
    linear,
    loss,
    normalization,
    padding,
    pooling,
    sparse,
)
from .activation import *  # noqa: F403
from .containers import *  # noqa: F403
from .convolution import *  # noqa: F403
from .distance import *  # noqa: F403
from .dropout import *  # noqa: F403
from .embedding import *  # noqa: F403
from .flatten import *  # noqa: F403
from .linear import *  # noqa: F403
from .loss import *  # noqa: F403
from .module import Module
from .normalization import *  # noqa: F403
from .padding import *  # noqa: F403
from .pooling import *  # noqa: F403

#: Names that are only there so that PyTorch's module paths work.
_ALIASES = (batchnorm, container, conv, instancenorm, sparse)

__all__ = [
    "Module",
    *(
        name
        for family in (
            activation, containers, convolution, distance, dropout, embedding, flatten, linear, loss, normalization, padding, pooling
        )
        for name in family.__all__
    ),
]  # fmt: skip
