"""Provide all layers, grouped by family."""

from typing import TYPE_CHECKING

from . import (
    activation,
    adaptive,
    containers,
    convolution,
    distance,
    dropout,
    embedding,
    flatten,
    fold,
    lazy_layers,
    linear,
    loss,
    multihead_attention,
    normalization,
    padding,
    pixelshuffle,
    pooling,
    rnn,
    transformer,
    upsampling,
)

# These modules exist only so that PyTorch's module paths work.
from . import batchnorm as batchnorm
from . import channelshuffle as channelshuffle
from . import container as container
from . import conv as conv
from . import instancenorm as instancenorm
from . import lazy as lazy
from . import sparse as sparse
from . import utils as _utils  # noqa: F401 (nn has a utils of its own, which stars must not hide)
from .activation import *  # noqa: F403
from .adaptive import *  # noqa: F403
from .containers import *  # noqa: F403
from .convolution import *  # noqa: F403
from .distance import *  # noqa: F403
from .dropout import *  # noqa: F403
from .embedding import *  # noqa: F403
from .flatten import *  # noqa: F403
from .fold import *  # noqa: F403
from .lazy_layers import *  # noqa: F403
from .linear import *  # noqa: F403
from .loss import *  # noqa: F403
from .module import Module as Module
from .multihead_attention import *  # noqa: F403
from .normalization import *  # noqa: F403
from .padding import *  # noqa: F403
from .pixelshuffle import *  # noqa: F403
from .pooling import *  # noqa: F403
from .rnn import *  # noqa: F403
from .transformer import *  # noqa: F403
from .upsampling import *  # noqa: F403

# Type checkers do not follow a computed __all__. Without one, they see what is imported by stars.
if not TYPE_CHECKING:
    __all__ = [
        "Module",
        *(
            name
            for family in (
                activation, adaptive, containers, convolution, distance, dropout, embedding, flatten, fold, lazy_layers, linear, loss,
                multihead_attention, normalization, padding, pixelshuffle, pooling, rnn, transformer, upsampling,
            )
            for name in family.__all__
        ),
    ]  # fmt: skip
