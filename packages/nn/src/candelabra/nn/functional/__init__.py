"""Provide functional forms of the layers and losses.

The modules call these functions and pass their parameters as arguments.
"""

from typing import TYPE_CHECKING

from candelabra.composite.registration import overridable

from . import (
    activation,
    attention,
    attention_heads,
    convolution,
    distance,
    distance_loss,
    folding,
    grouped,
    interpolation,
    loss,
    loss_sequence,
    normalization,
    padding,
    pooling,
    spatial,
    unpooling,
)
from . import (
    dropout as _dropout,
)
from . import (
    embedding as _embedding,
)
from . import (
    linear as _linear,
)
from . import (
    native as native,
)
from . import (
    softmax as _softmax,
)
from .activation import *  # noqa: F403
from .attention import *  # noqa: F403
from .attention_heads import *  # noqa: F403
from .convolution import *  # noqa: F403
from .distance import *  # noqa: F403
from .distance_loss import *  # noqa: F403
from .dropout import *  # noqa: F403
from .embedding import *  # noqa: F403
from .embedding import embedding_options as embedding_options
from .folding import *  # noqa: F403
from .grouped import *  # noqa: F403
from .interpolation import *  # noqa: F403
from .interpolation import affine_grid_generator as affine_grid_generator
from .interpolation import grid_sampler as grid_sampler
from .interpolation import grid_sampler_2d as grid_sampler_2d
from .interpolation import grid_sampler_3d as grid_sampler_3d
from .linear import *  # noqa: F403
from .loss import *  # noqa: F403
from .loss_sequence import *  # noqa: F403
from .normalization import *  # noqa: F403
from .padding import *  # noqa: F403
from .pooling import *  # noqa: F403
from .softmax import *  # noqa: F403
from .spatial import *  # noqa: F403
from .unpooling import *  # noqa: F403

# `affine_grid_generator`, `grid_sampler` and its variants are in PyTorch's top-level package only.
# Type checkers do not follow a computed __all__. Without one, they see what is imported by stars.
if not TYPE_CHECKING:
    __all__ = sorted(
        name
        for family in (
            activation, attention, attention_heads, convolution, distance, distance_loss, _dropout, _embedding, folding, grouped,
            interpolation, _linear, loss, loss_sequence, normalization, padding, pooling, _softmax, spatial, unpooling,
        )
        for name in family.__all__
    )  # fmt: skip

    for _name in (*__all__, "affine_grid_generator", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d"):
        if type(globals()[_name]).__name__ == "function":
            globals()[_name] = _public = overridable(_name, globals()[_name])
            _public.__module__ = __name__  # pickle looks the function up in this module
